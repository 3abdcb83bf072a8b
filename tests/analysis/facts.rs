//! Facts of workflows whose worst case can be reckoned by hand.

use serde_json::{Value, json};

use super::analysis_of;

const GRACE_MS: u64 = 500;
/// How late a run's limit is enforced at most.
const LATE_MS: u64 = 1_000;

fn facts(document: Value) -> Value {
    facts_with(document, single())
}

fn facts_with(mut document: Value, action: Value) -> Value {
    document["id"] = json!("w");
    document["actions"] = json!([
        {"id": "call", "kind": "service_call", "implementation": {"binding": "SHOP"}},
        {"id": "set", "kind": "update_context", "implementation": {"set": {"x": 1}}},
        action,
    ]);
    let analysis = analysis_of(&document);
    assert!(analysis.errors.is_empty(), "{:?}", analysis.errors);
    json!(analysis.facts)
}

fn chain(nodes: Vec<Value>) -> Value {
    let count = nodes.len();
    let edges: Vec<Value> = (1..count)
        .map(|to| json!({"from_node_id": nodes[to - 1]["id"], "to_node_id": nodes[to]["id"]}))
        .collect();
    json!({"nodes": nodes, "transitions": edges, "on_timeout": "fail"})
}

#[test]
fn attempts_delays_and_waits_add_up() {
    let call =
        json!({"id": "a", "action_id": "call", "timeout": "10s", "on_timeout": "retry", "max_retries": 2});
    let found = facts(chain(vec![
        call,
        json!({"id": "b", "wait": {"sleep": "1m"}}),
        json!({"id": "c", "action_id": "set"}),
    ]));
    // Three attempts, delays of 1 s and 2 s, the sleep.
    assert_eq!(found["duration_max_ms"], 3 * (10_000 + GRACE_MS) + 3_000 + 60_000);
    assert_eq!(found["ends"]["surely"], true);
    assert_eq!(
        (&found["tokens_alive_max"], &found["tokens_max"]),
        (&json!(1), &json!(3))
    );
    assert_eq!(
        found["longest_wait"],
        json!({"ms": 60_000, "pointer": "/nodes/1"})
    );
    // Table, header, snapshot and input, the end; a row for a token that waits or is executed, and one for each end.
    assert_eq!(found["rows_written"]["happy"], 12);
}

#[test]
fn the_limit_ends_what_has_no_end() {
    let call = json!({"id": "a", "action_id": "call"});
    let found = facts(json!({"nodes": [call], "timeout": "5m", "on_timeout": "fail"}));
    assert_eq!(found["duration_max_ms"], 300_000 + LATE_MS);
    let gated = facts(json!({"nodes": [call], "timeout": "5m", "gate": {"timeout": "1h"}}));
    assert_eq!(gated["duration_max_ms"], 300_000 + LATE_MS + 3_600_000);
    assert_eq!(
        gated["longest_wait"],
        json!({"ms": 3_600_000, "pointer": "/gate"})
    );
    let endless = facts(json!({"nodes": [call], "timeout": null}));
    assert_eq!(endless["duration_max_ms"], Value::Null);
    assert_eq!(endless["ends"]["pointer"], "/nodes/0");
}

#[test]
fn gates_stop_the_clock_of_the_limit() {
    let gate = |timeout: Value| json!({"id": "ask", "gate": {"timeout": timeout}});
    let call = json!({"id": "a", "action_id": "call"});
    let limited = |document: Value, clock: &str| {
        let mut document = document;
        document["timeout"] = json!("10m");
        document["clock"] = json!(clock);
        facts(document)
    };
    let day = || chain(vec![gate(json!("24h")), call.clone()]);
    assert_eq!(
        limited(day(), "stops_at_gates")["duration_max_ms"],
        86_400_000 + 600_000 + LATE_MS
    );
    assert_eq!(limited(day(), "runs")["duration_max_ms"], 600_000 + LATE_MS);
    let forever = limited(chain(vec![gate(Value::Null), call.clone()]), "stops_at_gates");
    assert_eq!(forever["ends"]["surely"], false);
    let reason = forever["ends"]["reason"].as_str().expect("a reason");
    assert!(
        reason.contains("gate \"ask\"") && reason.contains("stands still"),
        "{reason}"
    );
}

#[test]
fn loops_count_as_often_as_they_may() {
    let mut document = chain(vec![
        json!({"id": "a", "action_id": "set"}),
        json!({"id": "b", "wait": {"sleep": "10s"}}),
        json!({"id": "c"}),
    ]);
    document["timeout"] = json!("24h");
    let back =
        json!({"from_node_id": "b", "to_node_id": "a", "priority": -1, "loop_config": {"max_iterations": 5}});
    document["transitions"].as_array_mut().expect("a list").push(back);
    let found = facts(document);
    assert_eq!(found["duration_max_ms"], 6 * 10_000);
    assert_eq!(found["tokens_alive_max"], 1);
    // Six rounds of two nodes; the last one is counted with every round.
    assert_eq!(found["tokens_max"], 18);
}

#[test]
fn fan_outs_are_as_wide_as_their_branches() {
    let nodes = json!([{"id": "a"}, {"id": "b", "action_id": "call", "timeout": "10s"}, {"id": "c", "action_id": "call", "timeout": "10s"},
        {"id": "d"}]);
    let fan = |spawn: Value| {
        let mut each = json!({"id": "each", "from_node_id": "a", "to_node_id": "b"});
        for (field, value) in spawn.as_object().expect("fields") {
            each[field] = value.clone();
        }
        json!([each, {"from_node_id": "b", "to_node_id": "c"},
            {"from_node_id": "c", "to_node_id": "d", "synchronization": {"sibling_group": "each", "merge": {"target": "state.all"}}}])
    };
    let counted = facts(json!({"nodes": nodes, "transitions": fan(json!({"spawn_count": 7}))}));
    assert_eq!(counted["tokens_alive_max"], 7);
    assert_eq!(counted["tokens_max"], 1 + 7 * 2 + 1);
    assert_eq!(counted["duration_max_ms"], 2 * (10_000 + GRACE_MS));
    let each = fan(json!({"foreach": {"collection": "input.list"}}));
    let schema = json!({"properties": {"list": {"type": "array", "maxItems": 20}}});
    let listed = facts(json!({"nodes": nodes, "transitions": each, "input_schema": schema}));
    assert_eq!(listed["tokens_alive_max"], 20);
    let unknown = facts(json!({"nodes": nodes, "transitions": each}));
    assert_eq!(unknown["tokens_alive_max"], 1_000);
    // One item.
    assert_eq!(
        unknown["rows_written"]["happy"].as_u64(),
        counted["rows_written"]["happy"].as_u64().map(|rows| rows - 6 * 4)
    );
}

#[test]
fn compensations_and_end_handlers_take_their_time() {
    let undo = json!({"action_id": "call", "timeout": "1s"});
    let call = json!({"id": "a", "action_id": "call", "timeout": "10s", "compensate": undo});
    let found =
        facts(json!({"nodes": [call], "compensation": {"timeout": "2m"}, "on_end": [{"action_id": "call"}]}));
    // The compensation has a limit of its own, the handler only that of its phase, whose end is noticed within a second.
    assert_eq!(
        found["duration_max_ms"],
        (10_000 + GRACE_MS) + (1_000 + GRACE_MS) + (120_000 + 1_000)
    );
    assert_eq!(
        found["longest_wait"],
        json!({"ms": 121_000, "pointer": "/on_end/0"})
    );
}

/// An action whose only call may take 30 s.
fn single() -> Value {
    json!({"id": "single", "kind": "service_call", "implementation": {"binding": "SHOP"},
        "execution": {"timeout": "30s", "retry_policy": {"max_attempts": 1}}})
}

#[test]
fn nothing_is_decided_while_the_end_of_a_run_waits() {
    let handled = json!({"nodes": [{"id": "a"}], "on_end": [{"action_id": "single"}, {"action_id": "set"}]});
    let found = facts(handled);
    assert_eq!(found["duration_max_ms"], 30_000 + GRACE_MS);
    assert_eq!(
        found["longest_wait"],
        json!({"ms": 30_000 + GRACE_MS, "pointer": "/on_end/0"})
    );
    // Ends that exclude each other.
    let one_of = json!({"nodes": [{"id": "a"}], "on_end": [
        {"on": ["completed"], "action_id": "single"}, {"on": ["failed", "timed_out"], "action_id": "single"}]});
    assert_eq!(facts(one_of)["duration_max_ms"], 30_000 + GRACE_MS);
    let undone = chain(vec![
        json!({"id": "a", "action_id": "set", "compensate": {"action_id": "single"}}),
        json!({"id": "b", "action_id": "set"}),
    ]);
    let found = facts(undone);
    assert_eq!(found["duration_max_ms"], 30_000 + GRACE_MS);
    assert_eq!(
        found["longest_wait"],
        json!({"ms": 30_000 + GRACE_MS, "pointer": "/nodes/0/compensate"})
    );
}

#[test]
fn the_limit_does_not_stop_work_that_must_report() {
    let call = json!({"id": "a", "action_id": "single", "compensate": {"action_id": "set"}});
    let found = facts(json!({"nodes": [call], "timeout": "5s", "on_timeout": "fail"}));
    assert_eq!(found["duration_max_ms"], 5_000 + LATE_MS + 30_000 + GRACE_MS);
    assert_eq!(
        found["longest_wait"],
        json!({"ms": 30_000 + GRACE_MS, "pointer": "/nodes/0"})
    );
}

#[test]
fn a_gate_does_not_use_up_the_limit() {
    let gate = |id: &str| json!({"id": id, "gate": {"timeout": "24h", "on_timeout": "approve"}});
    let alone = facts(json!({"nodes": [gate("ask")]}));
    assert_eq!(alone["duration_max_ms"], 86_400_000);
    assert_eq!(
        alone["longest_wait"],
        json!({"ms": 86_400_000, "pointer": "/nodes/0"})
    );
    let reason = alone["ends"]["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("every path has an end"), "{reason}");
    let single = json!({"id": "a", "action_id": "single"});
    let found = facts(chain(vec![gate("ask"), single.clone(), gate("again")]));
    assert_eq!(found["duration_max_ms"], 2 * 86_400_000 + 30_000 + GRACE_MS);
    // Many calls at once take as long as one, and then the clock stands.
    let fan = json!({"nodes": [{"id": "a"}, {"id": "b", "action_id": "single"}, gate("ask")], "transitions": [
        {"id": "each", "from_node_id": "a", "to_node_id": "b", "spawn_count": 1_000},
        {"from_node_id": "b", "to_node_id": "ask", "synchronization": {"sibling_group": "each"}}]});
    assert_eq!(facts(fan)["duration_max_ms"], 30_000 + GRACE_MS + 86_400_000);
    // Of two ways each works while the other one stands at its gate: together they use up the limit.
    let sleep = |id: &str| json!({"id": id, "wait": {"sleep": "40m"}});
    let beside = json!({"on_timeout": "fail", "nodes": [{"id": "start"}, gate("g"), sleep("s"), sleep("t"), gate("h")],
        "transitions": [{"from_node_id": "start", "to_node_id": "g"}, {"from_node_id": "start", "to_node_id": "t"},
            {"from_node_id": "g", "to_node_id": "s"}, {"from_node_id": "t", "to_node_id": "h"}]});
    let reason = facts(beside)["ends"]["reason"].clone();
    assert!(
        reason.as_str().is_some_and(|it| it.contains("ends it")),
        "{reason}"
    );
}

#[test]
fn steps_of_a_task_add_up() {
    let task = |steps: Value, more: Value| {
        let mut document =
            json!({"nodes": [{"id": "a", "task_id": "t"}], "tasks": [{"id": "t", "steps": steps}]});
        for (field, value) in more.as_object().expect("fields") {
            document["tasks"][0][field] = value.clone();
        }
        facts(document)["duration_max_ms"].clone()
    };
    let step = |reference: &str| json!({"ref": reference, "action_id": "single"});
    assert_eq!(task(json!([step("x"), step("y")]), json!({})), 60_000 + GRACE_MS);
    let again = json!({"ref": "z", "action_id": "single", "on_failure": "retry"});
    let retry = json!({"retry": {"max_attempts": 3, "backoff": "linear", "initial_delay": "1s"}});
    // Three rounds, with delays of 1 s and 2 s.
    assert_eq!(
        task(json!([step("x"), again]), retry),
        3 * 60_000 + 3_000 + GRACE_MS
    );
    let endless = json!({"ref": "w", "action_id": "call"});
    assert_eq!(
        task(json!([step("x"), endless]), json!({"timeout": "5m"})),
        300_000 + GRACE_MS
    );
}

#[test]
fn a_total_timeout_is_not_tried_again() {
    let action = json!({"id": "hard", "kind": "service_call", "implementation": {"binding": "SHOP"},
        "execution": {"timeout": "10s", "on_timeout": "retry", "retry_policy": {"max_attempts": 50, "total_timeout": "20s"}}});
    let found = facts_with(json!({"nodes": [{"id": "a", "action_id": "hard"}]}), action);
    assert_eq!(found["duration_max_ms"], 20_000 + GRACE_MS);
}

#[test]
fn a_join_that_needs_few_branches_fires_with_the_first_ones() {
    let sleeping = |strategy: Value, policy: &str, then: Value| {
        let nodes = json!([{"id": "a"}, {"id": "b", "wait": {"sleep": "1s"}}, {"id": "b2", "wait": {"sleep": "2s"}},
            {"id": "c", "wait": {"sleep": "100s"}}, {"id": "e", "wait": {"sleep": "50s"}}, then]);
        let join = json!({"sibling_group": "g", "strategy": strategy, "on_early_complete": policy});
        facts(json!({"nodes": nodes, "transitions": [
            {"from_node_id": "a", "to_node_id": "b", "sibling_group": "g"}, {"from_node_id": "a", "to_node_id": "c", "sibling_group": "g"},
            {"from_node_id": "a", "to_node_id": "e", "sibling_group": "g"},
            {"from_node_id": "b", "to_node_id": "b2"}, {"from_node_id": "b2", "to_node_id": "d", "synchronization": join},
            {"from_node_id": "c", "to_node_id": "d", "synchronization": join}, {"from_node_id": "e", "to_node_id": "d", "synchronization": join}]}))
            ["duration_max_ms"].clone()
    };
    let pass = || json!({"id": "d"});
    assert_eq!(sleeping(json!("any"), "cancel", pass()), 3_000);
    assert_eq!(sleeping(json!({"m_of_n": 2}), "cancel", pass()), 50_000);
    assert_eq!(sleeping(json!("all"), "cancel", pass()), 100_000);
    // The others go on beside what follows.
    let nap = || json!({"id": "d", "wait": {"sleep": "60s"}});
    assert_eq!(sleeping(json!("any"), "abandon", nap()), 100_000);
    assert_eq!(sleeping(json!({"m_of_n": 2}), "abandon", nap()), 110_000);
}
