//! Random small workflows, always valid: nodes with and without work, routes of every kind, loops, limits, retries,
//! and expressions that may fail when they are evaluated.

use serde_json::{Map, Value, json};

use super::dice::Dice;
use super::driver::complete_document;

const CONDITIONS: &[Option<&str>] = &[
    None,
    None,
    None,
    Some("true"),
    Some("false"),
    Some("input.x > 1"),
    Some("has(state.n0)"),
    Some("error == null || error.class == \"timeout\""),
];

/// Fails unless node n1 has run and kept its result.
const CONDITION_THAT_MAY_FAIL: &str = "state.n1.epoch > 0";

pub fn workflow(dice: &mut Dice) -> Value {
    let node_count = 1 + dice.below(6);
    let nodes: Vec<Value> = (0..node_count).map(|index| node(dice, index)).collect();
    // A chain with ways out, so that most runs live long enough to meet trouble; then anything.
    let mut transitions = Vec::new();
    for from in 1..node_count {
        if dice.chance(92) {
            transitions.push(route(from - 1, from, "success"));
        }
        for on in ["failure", "timeout"] {
            if dice.chance(80) {
                transitions.push(route(from - 1, from, on));
            }
        }
    }
    if dice.chance(50) {
        let mut again = route(node_count - 1, 0, "success");
        again["loop_config"] = json!({"max_iterations": 1 + dice.below(4)});
        transitions.push(again);
    }
    for _ in 0..dice.below(5) {
        transitions.push(transition(dice, node_count));
    }
    let mut document = json!({
        "nodes": nodes,
        "transitions": transitions,
        "limits": {
            "tokens_total": *dice.pick(&[60, 60, 60, 60, 60, 60, 5]),
            "tokens_active": *dice.pick(&[20, 20, 20, 20, 20, 20, 2]),
            "loop_iterations": *dice.pick(&[20, 20, 20, 20, 20, 20, 2]),
        },
        "on_timeout": *dice.pick(&["cancel_all", "fail"]),
    });
    match dice.below(4) {
        0 => {}
        1 => document["timeout_ms"] = json!(60_000),
        2 => document["timeout_ms"] = json!(*dice.pick(&[120_000, 1_500])),
        _null => document["timeout_ms"] = Value::Null,
    }
    if dice.chance(20) {
        document["output_mapping"] = json!({"first": "${has(state.n0) ? state.n0 : null}"});
    }
    if dice.chance(10) {
        document["output_schema"] = json!({"required": ["first"]});
    }
    complete_document(document)
}

fn node(dice: &mut Dice, index: u64) -> Value {
    let mut node = Map::new();
    node.insert("id".into(), json!(format!("n{index}")));
    if !dice.chance(25) {
        node.insert("action_id".into(), json!("work"));
        match dice.below(4) {
            0 | 1 => {}
            2 => {
                node.insert("timeout_ms".into(), json!(1_000));
            }
            _long => {
                node.insert("timeout_ms".into(), json!(40_000));
            }
        }
        if dice.chance(40) {
            node.insert("on_timeout".into(), json!("retry"));
            node.insert("max_retries".into(), json!(dice.below(3)));
        }
        match dice.below(20) {
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
    match dice.below(6) {
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

fn route(from: u64, to: u64, on: &str) -> Value {
    json!({"from_node_id": format!("n{from}"), "to_node_id": format!("n{to}"), "on": on})
}

fn transition(dice: &mut Dice, node_count: u64) -> Value {
    let (from, to) = (dice.below(node_count), dice.below(node_count));
    let on = *dice.pick(&["success", "success", "success", "failure", "timeout"]);
    let mut transition = route(from, to, on);
    transition["priority"] = json!(dice.below(4) as i64 - 1);
    if dice.chance(4) {
        transition["condition"] = json!(CONDITION_THAT_MAY_FAIL);
    } else if let Some(condition) = dice.pick(CONDITIONS) {
        transition["condition"] = json!(condition);
    }
    // A loop that does nothing and never ends is refused: every edge that leads back is bounded.
    if to <= from {
        transition["loop_config"] = json!({"max_iterations": 1 + dice.below(3)});
    }
    transition
}
