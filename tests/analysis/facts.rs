//! Facts of workflows whose worst case can be reckoned by hand.

use serde_json::{Value, json};

use super::analysis_of;

const GRACE_MS: u64 = 500;
/// How late a run's limit is enforced at most.
const LATE_MS: u64 = 1_000;

fn facts(document: Value) -> Value {
    let mut document = document;
    document["id"] = json!("w");
    document["actions"] = json!([
        {"id": "call", "kind": "service_call", "implementation": {"binding": "SHOP"}},
        {"id": "set", "kind": "update_context", "implementation": {"set": {"x": 1}}},
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
    // Work in flight reports, then the compensation, then the handler, each in its phase, and a second after each.
    assert_eq!(
        found["duration_max_ms"],
        10_000 + GRACE_MS + 3 * (120_000 + 1_000)
    );
}
