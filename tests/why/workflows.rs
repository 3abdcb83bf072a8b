//! Random workflows with short limits. Each node always takes the same time, so that a repeated call is like the first.

use curfew::simulate::Rng;
use serde_json::{Value, json};

fn length(rng: &mut Rng, least: u64, most: u64) -> u64 {
    least + rng.below(most - least)
}

fn node(rng: &mut Rng, id: &str) -> Value {
    match rng.below(12) {
        0 | 1 => json!({"id": id, "wait": {"sleep_ms": length(rng, 100, 1_500)}}),
        2 => {
            let ends = *rng.pick(&["approve", "reject"]);
            json!({"id": id, "gate": {"timeout_ms": length(rng, 300, 2_000), "on_timeout": ends}})
        }
        3 => {
            let name = *rng.pick(&["paid", "sent"]);
            let wait =
                json!({"signal": name, "timeout_ms": length(rng, 200, 1_500), "on_timeout": "continue"});
            json!({"id": id, "wait": wait})
        }
        4 => json!({"id": id, "task_id": "two"}),
        5 => json!({"id": id, "workflow_id": "child"}),
        _other => {
            let mut node = json!({"id": id, "action_id": "call"});
            if rng.chance(30) {
                node["timeout_ms"] = json!(length(rng, 200, 2_000));
                if rng.chance(50) {
                    node["on_timeout"] = json!("retry");
                    node["max_retries"] = json!(1);
                }
            }
            node
        }
    }
}

/// A chain, branches that join, or branches that do not.
fn workflow(rng: &mut Rng) -> Value {
    let (mut nodes, mut ways) = (vec![node(rng, "a")], Vec::new());
    let way = |from: &str, to: &str| json!({"from_node_id": from, "to_node_id": to});
    let has_join = rng.chance(60);
    let branches = 1 + rng.below(3);
    let group = |mut way: Value| {
        if has_join {
            way["sibling_group"] = json!("g");
        }
        way
    };
    let length_of_branch: Vec<u64> = (0..branches).map(|_| 1 + rng.below(2)).collect();
    for (number, count) in length_of_branch.iter().enumerate() {
        let mut last = "a".to_string();
        for place in 0..*count {
            let id = format!("b{number}{place}");
            nodes.push(node(rng, &id));
            let next = way(&last, &id);
            ways.push(if place == 0 { group(next) } else { next });
            last = id;
        }
        if has_join {
            ways.push(way(&last, "j"));
        }
    }
    if has_join {
        let mut join = json!({
            "sibling_group": "g",
            "strategy": rng.pick(&["all", "all", "any"]),
            "on_timeout": rng.pick(&["fail", "proceed_with_available", "proceed_with_available"]),
            "on_early_complete": rng.pick(&["abandon", "cancel", "allow_late_merge", "allow_late_merge"]),
            "merge": {"target": "state.all"},
        });
        join["timeout_ms"] = json!(length(rng, 50, 2_500));
        for way in ways.iter_mut().filter(|way| way["to_node_id"] == "j") {
            way["synchronization"] = join.clone();
        }
        nodes.push(json!({"id": "j"}));
        nodes.push(node(rng, "z"));
        ways.push(way("j", "z"));
    }
    let mut execution = json!({"retry_policy": {"max_attempts": 1}});
    if rng.chance(30) {
        execution = json!({"timeout_ms": length(rng, 300, 2_000), "retry_policy": {"max_attempts": 2, "jitter": false, "initial_delay_ms": 100}});
    }
    let call = json!({"id": "call", "kind": "service_call", "implementation": {"binding": "PEER"}, "execution": execution});
    json!({
        "id": "flow",
        "clock": rng.pick(&["stops_at_gates", "stops_at_gates", "runs"]),
        "on_timeout": rng.pick(&["fail", "cancel_all", "human_gate", "human_gate"]),
        "timeout_ms": if rng.chance(30) { 9_000 } else { length(rng, 150, 3_000) },
        "nodes": nodes, "transitions": ways, "actions": [call],
        "tasks": [{"id": "two", "steps": [{"ref": "s1", "action_id": "call"}, {"ref": "s2", "action_id": "call"}]}],
    })
}

pub fn body(rng: &mut Rng) -> Value {
    let workflow = workflow(rng);
    let (mut mocks, mut people, mut signals) = (Vec::new(), Vec::new(), Vec::new());
    for node in workflow["nodes"].as_array().expect("a list") {
        let id = &node["id"];
        let after = length(rng, 20, 1_600);
        if node["action_id"].is_string() || node["task_id"].is_string() {
            mocks.push(match rng.below(20) {
                0 => json!({"node": id, "hang": true}),
                1 => json!({"node": id, "after": after, "fail": "server_error"}),
                _other => json!({"node": id, "after": after, "result": {}}),
            });
        }
        if node["gate"].is_object() && rng.chance(70) {
            let decision = json!({"gate": id, "after": after, "choice": "approve"});
            people.extend([decision.clone(), decision.clone(), decision]);
        }
    }
    let waits = |name: &str| {
        let mut nodes = workflow["nodes"].as_array().expect("a list").iter();
        nodes.any(|node| node["wait"]["signal"] == name)
    };
    for name in ["paid", "sent"] {
        if waits(name) && rng.chance(80) {
            signals.push(json!({"name": name, "at": length(rng, 100, 3_000)}));
        }
    }
    let child =
        json!({"id": "child", "nodes": [{"id": "rest", "wait": {"sleep_ms": length(rng, 100, 1_000)}}]});
    json!({
        "workflow": workflow, "documents": {"workflows": [child]}, "mocks": mocks, "people": people, "signals": signals,
    })
}

/// The document under a change, with another length.
pub fn changed(workflow: &Value, change: &[Value], millis: u64) -> Value {
    let mut workflow = workflow.clone();
    for operation in change {
        let path = operation["path"].as_str().expect("a path");
        let (parent, name) = path.rsplit_once('/').expect("a pointer");
        let value = match &operation["value"] {
            Value::String(_) => json!(format!("{millis}ms")),
            Value::Object(_) => json!({"timeout_ms": millis}),
            _number => json!(millis),
        };
        workflow.pointer_mut(parent).expect("it is there")[name] = value;
    }
    workflow
}
