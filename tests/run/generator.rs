//! Random small, valid workflows: nodes and transitions of every kind, fan-outs with joins, also nested, loops, limits,
//! retries, and expressions that may fail when they are evaluated.

use serde_json::{Map, Value, json};

use super::driver::complete_document;
use curfew::simulate::Rng;

const CONDITIONS: &[Option<&str>] = &[
    None,
    None,
    None,
    Some("true"),
    Some("false"),
    Some("input.x > 1"),
    Some("has(state.n0)"),
    Some("error == null || error.class == \"timeout\""),
    Some("_branch == null || _branch.index < 2"),
];

/// Fails unless node n1 has run and its result is in the context.
const CONDITION_THAT_MAY_FAIL: &str = "state.n1.epoch > 0";

pub fn workflow(rng: &mut Rng) -> Value {
    let node_count = 1 + rng.below(8);
    let nodes: Vec<Value> = (0..node_count).map(|index| node(rng, index)).collect();
    // A chain with failure and timeout transitions, so that most runs last long enough to meet faults; then random
    // transitions.
    let mut transitions = Vec::new();
    for from in 1..node_count {
        if rng.chance(92) {
            transitions.push(route(from - 1, from, "success"));
        }
        for on in ["failure", "timeout"] {
            if rng.chance(60) {
                transitions.push(route(from - 1, from, on));
            }
        }
    }
    let mut joins = Vec::new();
    if node_count > 2 && rng.chance(70) {
        let from = rng.below(node_count - 2);
        let to = from + 2 + rng.below(node_count - from - 2);
        fan(rng, &mut transitions, from, to, "outer", &mut joins);
        if to > from + 3 && rng.chance(70) {
            fan(rng, &mut transitions, from + 1, to - 1, "inner", &mut joins);
        }
    }
    if rng.chance(35) {
        let mut again = route(node_count - 1, 0, "success");
        again["loop_config"] = json!({"max_iterations": 1 + rng.below(3)});
        transitions.push(again);
    }
    for _ in 0..rng.below(5) {
        let (from, to) = (rng.below(node_count), rng.below(node_count));
        // A second transition to a join's node, taken together with the join, could not be told from a continuation.
        if !joins.contains(&(from, to)) {
            transitions.push(transition(rng, from, to));
        }
    }
    let mut document = json!({
        "nodes": nodes,
        "transitions": transitions,
        "limits": {
            "tokens_total": *rng.pick(&[150, 150, 150, 150, 150, 150, 7]),
            "tokens_active": *rng.pick(&[40, 40, 40, 40, 40, 40, 3]),
            "loop_iterations": *rng.pick(&[20, 20, 20, 20, 20, 20, 2]),
        },
        "on_timeout": *rng.pick(&["cancel_all", "fail", "human_gate"]),
        "on_no_match": *rng.pick(&["end", "end", "fail"]),
        "clock": *rng.pick(&["stops_at_gates", "stops_at_gates", "runs"]),
    });
    match rng.below(5) {
        0 => {}
        1 => document["timeout_ms"] = json!(*rng.pick(&[60_000, 600_000])),
        2 => document["timeout_ms"] = json!(*rng.pick(&[120_000, 1_500])),
        3 => document["timeout_ms"] = json!(*rng.pick(&[5_000, 12_000, 20_000])),
        _null => document["timeout_ms"] = Value::Null,
    }
    document["actions"] = json!([
        {"id": "work", "kind": "service_call", "implementation": {"binding": "PEER"}},
        {"id": "hand-out", "kind": "service_call", "implementation": {"binding": "PEER"}, "execution": {"mode": "async"}},
        {"id": "reckon", "kind": "update_context", "implementation": {"set": {"epoch": "${6 / int(input.x)}"}}},
    ]);
    document["gate"] = json!({
        "timeout_ms": *rng.pick(&[4_000, 30_000, 200_000]),
        "on_timeout": *rng.pick(&["cancel_all", "fail"]),
    });
    if rng.chance(30) {
        document["timeouts"] = json!({"inherit_budget": true, "warn_at": *rng.pick(&[0.8, 0.5])});
    }
    if rng.chance(20) {
        document["output_mapping"] = json!({"first": "${has(state.n0) ? state.n0 : null}"});
    }
    if rng.chance(10) {
        document["output_schema"] = json!({"required": ["first"]});
    }
    match rng.below(4) {
        0 => document["compensation"] = json!({"timeout_ms": *rng.pick(&[3_000, 60_000])}),
        1 => document["compensation"] = json!({"on": [*rng.pick(&["failed", "cancelled", "timed_out"])]}),
        _default => {}
    }
    if rng.chance(20) {
        document["on_end"] = json!([
            {"action_id": "work", "on": ["failed", "completed"]},
            {"action_id": *rng.pick(&["work", "reckon"]), "input_mapping": {"x": "${input.x}", "was": "${run.status}"}},
        ]);
    }
    if rng.chance(30) {
        document["notify"] = crate::sim::notifications::targets();
    }
    complete_document(document)
}

/// Turns the transition after `from` into a fan-out and the one before `to` into its join.
fn fan(
    rng: &mut Rng,
    transitions: &mut Vec<Value>,
    from: u64,
    to: u64,
    group: &str,
    joins: &mut Vec<(u64, u64)>,
) {
    let width = 1 + rng.below(4);
    let out = |on: &str| {
        let mut out = route(from, from + 1, on);
        out["sibling_group"] = json!(group);
        out
    };
    transitions.retain(|other| !is_between(other, from, from + 1) && !is_between(other, to - 1, to));
    match rng.below(4) {
        0 | 1 => {
            let mut out = out("success");
            out["spawn_count"] = json!(width);
            transitions.push(out);
        }
        2 => {
            let mut out = out("success");
            let collection = *rng.pick(&["[1, 2, 3]", "[]", "[input.x]", "input.missing", "[\"p\", \"q\"]"]);
            out["foreach"] = json!({"collection": collection, "item_var": format!("{group}_item")});
            transitions.push(out);
        }
        _several => transitions.extend((0..width).map(|_| out("success"))),
    }
    let strategy = match rng.below(4) {
        0 | 1 => json!("all"),
        2 => json!("any"),
        _quorum => json!({"m_of_n": 1 + rng.below(width)}),
    };
    let mut join = json!({
        "sibling_group": group,
        "strategy": strategy,
        "on_timeout": *rng.pick(&["fail", "proceed_with_available"]),
        "on_branch_failure": *rng.pick(&["fail", "proceed_with_available"]),
        "on_early_complete": *rng.pick(&["abandon", "cancel", "allow_late_merge"]),
    });
    if join["strategy"] != json!("all") {
        join["on_branch_failure"] = Value::Null;
    }
    match rng.below(4) {
        0 => {}
        1 => join["timeout_ms"] = json!(2_000),
        2 => join["timeout_ms"] = json!(50_000),
        _null => join["timeout_ms"] = Value::Null,
    }
    if !rng.chance(20) {
        let late = join["on_early_complete"] == json!("allow_late_merge");
        let target = if group == "inner" && !late && rng.chance(60) {
            "_branch.output"
        } else {
            *rng.pick(&["state.all", "output.all", "state.deep.all"])
        };
        let strategy = *rng.pick(&["append", "keyed_by_branch", "last_wins", "concat", "merge_object"]);
        join["merge"] = json!({"target": target, "strategy": strategy});
    }
    let into = |on: &str| {
        let mut into = route(to - 1, to, on);
        into["synchronization"] = join.clone();
        into
    };
    transitions.push(into("success"));
    for on in ["failure", "timeout"] {
        if rng.chance(30) {
            transitions.push(into(on));
        }
    }
    joins.push((to - 1, to));
}

fn is_between(transition: &Value, from: u64, to: u64) -> bool {
    transition["from_node_id"] == json!(format!("n{from}"))
        && transition["to_node_id"] == json!(format!("n{to}"))
}

fn node(rng: &mut Rng, index: u64) -> Value {
    let mut node = Map::new();
    node.insert("id".into(), json!(format!("n{index}")));
    match rng.below(24) {
        0..=10 => work(rng, &mut node, "action_id", "work"),
        11 => work(rng, &mut node, "action_id", "hand-out"),
        12 | 13 => work(rng, &mut node, "action_id", "reckon"),
        14..=16 => {}
        17 | 18 => {
            let mut gate = json!({"prompt": "x is ${input.x}", "on_timeout": *rng.pick(&["fail", "approve", "reject", "cancel_all"])});
            if rng.chance(80) {
                gate["timeout_ms"] = json!(*rng.pick(&[3_000, 90_000]));
            }
            node.insert("gate".into(), gate);
        }
        19 => {
            let sleep = match rng.below(4) {
                // Negative for some inputs.
                0 => json!("${(input.x - 1) * 3000}"),
                1 => json!("${string(input.x) + \"s\"}"),
                _constant => json!(*rng.pick(&[50, 5_000, 70_000])),
            };
            node.insert("wait".into(), json!({"sleep_ms": sleep}));
        }
        20 => {
            let until = *rng.pick(&[
                "${run.started_at + 8000}",
                "${run.started_at - 1}",
                "${input.nonsense}",
            ]);
            node.insert("wait".into(), json!({"until": until}));
        }
        21 => {
            let mut wait = json!({"signal": *rng.pick(&["go", "stop"])});
            if rng.chance(60) {
                wait["timeout_ms"] = json!(*rng.pick(&[2_000, 60_000]));
                wait["on_timeout"] = json!(*rng.pick(&["fail", "continue"]));
            }
            node.insert("wait".into(), wait);
        }
        _child => {
            let called = *rng.pick(&[
                "child",
                "child",
                "brief",
                "middle",
                "strict",
                "gated",
                "gated",
                "hasty",
                "thrifty",
                "approving",
                "approving",
            ]);
            work(rng, &mut node, "workflow_id", called);
            if rng.chance(30) {
                node.insert("on_failure".into(), json!("catch"));
            }
        }
    }
    match rng.below(6) {
        1 => {
            node.insert("output_mapping".into(), json!({}));
        }
        2 => {
            node.insert("output_mapping".into(), json!({"output.last": "${result}"}));
        }
        3 => {
            node.insert(
                "output_mapping".into(),
                json!({"state.seen": "${input.x}", "state.deep.er": "${result}"}),
            );
        }
        _default => {}
    }
    Value::Object(node)
}

fn work(rng: &mut Rng, node: &mut Map<String, Value>, form: &str, id: &str) {
    node.insert(form.into(), json!(id));
    match rng.below(5) {
        0 | 1 => {}
        2 => {
            node.insert("timeout_ms".into(), json!(1_000));
        }
        3 => {
            node.insert("timeout_ms".into(), json!(*rng.pick(&[3_000, 11_000])));
        }
        _long => {
            node.insert("timeout_ms".into(), json!(40_000));
        }
    }
    // Without a queue, `dispatch: queue` has no effect.
    match (form, rng.below(10)) {
        ("action_id", 8) => node.insert("dispatch".into(), json!("direct")),
        ("action_id", 5..=7) => node.insert("dispatch".into(), json!("queue")),
        (_any, _auto) => None,
    };
    if rng.chance(40) {
        node.insert("on_timeout".into(), json!("retry"));
        node.insert("max_retries".into(), json!(rng.below(3)));
    }
    if rng.chance(30) {
        let mut compensate = json!({"action_id": *rng.pick(&["work", "work", "reckon", "hand-out"])});
        if rng.chance(50) {
            compensate["timeout_ms"] = json!(*rng.pick(&[1_000, 5_000]));
        }
        if rng.chance(50) {
            compensate["input_mapping"] = json!({"of": "${result}", "x": "${input.x}"});
        }
        node.insert("compensate".into(), compensate);
    }
    if rng.chance(25) {
        let classes = *rng.pick(&[
            &["server_error", "validation"][..],
            &["server_error", "timeout", "network"],
            &[],
        ]);
        node.insert("escalate_on".into(), json!(classes));
    }
    match rng.below(20) {
        19 => {
            node.insert("input_mapping".into(), json!({"value": "${state.missing}"}));
        }
        10..19 => {
            let mapping = json!({"value": "${has(state.n1) ? state.n1 : input.x}"});
            node.insert("input_mapping".into(), mapping);
        }
        _none => {}
    }
}

fn route(from: u64, to: u64, on: &str) -> Value {
    json!({"from_node_id": format!("n{from}"), "to_node_id": format!("n{to}"), "on": on})
}

fn transition(rng: &mut Rng, from: u64, to: u64) -> Value {
    let on = *rng.pick(&["success", "success", "success", "failure", "timeout"]);
    let mut transition = route(from, to, on);
    transition["priority"] = json!(rng.below(4) as i64 - 1);
    if rng.chance(4) {
        transition["condition"] = json!(CONDITION_THAT_MAY_FAIL);
    } else if let Some(condition) = rng.pick(CONDITIONS) {
        transition["condition"] = json!(condition);
    }
    // Unbounded loops without work are rejected by validation, so every backward transition is bounded.
    if to <= from {
        transition["loop_config"] = json!({"max_iterations": 1 + rng.below(3)});
    }
    transition
}
