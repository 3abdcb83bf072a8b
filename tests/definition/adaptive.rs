//! Adaptive limits: how they are read, computed and explained.

use curfew::base::time::{DAY, HOUR, Limit, MINUTE, SECOND};
use curfew::definition::snapshot::{Latency, Snapshot, StoredSnapshot, adaptive_nodes};
use curfew::definition::timeouts::{Preset, TimeoutLayer};
use serde_json::{Value, json};

use super::documents::workflow;
use super::timeouts::{read, top};
use crate::run::driver::store_document;
use crate::run::graphs::with;

#[test]
fn a_node_may_have_an_adaptive_limit() {
    let nodes = json!([{"id": "a", "action_id": "work", "timeout": "adaptive", "allow_exceed_hard": true}]);
    let read_node = read(json!({ "nodes": nodes })).nodes.remove(0);
    assert!(read_node.adaptive && read_node.allow_exceed_hard);
    assert_eq!(read_node.timeout, Limit::Unset);
    let other = read(json!({})).nodes.remove(0);
    assert!(!other.adaptive && !other.allow_exceed_hard);
    for (node, problem) in [
        (
            json!({"action_id": "work", "timeout_ms": "adaptive"}),
            "/nodes/0/timeout_ms wrong_type: \"adaptive\" is no number of milliseconds; write \"timeout\": \"adaptive\"",
        ),
        (
            json!({"action_id": "work", "timeout": "adaptive", "timeout_ms": 5}),
            "/nodes/0/timeout both_forms",
        ),
        (
            json!({"action_id": "work", "timeout": "adaptiv"}),
            "/nodes/0/timeout invalid_duration",
        ),
        (
            json!({"timeout": "adaptive"}),
            "/nodes/0/timeout adaptive_without_work: only a node with a \"task_id\"",
        ),
        (
            json!({"gate": {}, "timeout": "adaptive"}),
            "/nodes/0/timeout adaptive_without_work",
        ),
        (
            json!({"wait": {"sleep_ms": 5}, "timeout": "adaptive"}),
            "/nodes/0/timeout adaptive_without_work",
        ),
    ] {
        workflow(json!({"nodes": [with(json!({"id": "a"}), node)]}), &[problem]);
    }
    top(json!({"timeout": "adaptive"}), &["/timeout invalid_duration"]);
}

/// A workflow with one adaptive node of each layer.
fn adaptive_workflow(timeouts: Value) -> StoredSnapshot {
    let set = json!({"id": "set", "kind": "update_context", "implementation": {"set": {"state.x": 1}}});
    let work = json!({"id": "work", "kind": "service_call", "implementation": {"binding": "PEER"}});
    let two =
        json!({"id": "two", "steps": [{"ref": "x", "action_id": "work"}, {"ref": "y", "action_id": "set"}]});
    let node = |id: &str, field: &str, work: &str| json!({"id": id, field: work, "timeout": "adaptive"});
    let mut exceeding = node("exceeding", "action_id", "work");
    exceeding["allow_exceed_hard"] = json!(true);
    let nodes = [
        node("tool", "action_id", "work"),
        node("pure", "action_id", "set"),
        node("two", "task_id", "two"),
        node("call", "workflow_id", "child"),
        exceeding,
        json!({"id": "gate", "gate": {}}),
    ];
    let transitions: Vec<Value> = nodes
        .windows(2)
        .map(|pair| json!({"from_node_id": pair[0]["id"], "to_node_id": pair[1]["id"]}))
        .collect();
    store_document(&json!({
        "id": "learner", "nodes": nodes, "transitions": transitions, "timeouts": timeouts,
        "actions": [set, work], "tasks": [two],
    }))
}

fn snapshot_with_latency(timeouts: Value, samples: u64, p99_ms: u64) -> Snapshot {
    let mut stored = adaptive_workflow(timeouts);
    for node in ["tool", "pure", "two", "call", "exceeding"] {
        stored.latencies.insert(node.into(), Latency { samples, p99_ms });
    }
    Snapshot::read(stored).expect("a snapshot")
}

#[test]
fn every_node_has_a_timeout_layer() {
    let snapshot = snapshot_with_latency(json!({}), 0, 0);
    let layers: Vec<TimeoutLayer> = (0..6).map(|node| snapshot.layer_of(node)).collect();
    assert_eq!(
        layers,
        [
            TimeoutLayer::Tool,
            TimeoutLayer::Step,
            TimeoutLayer::Step,
            TimeoutLayer::Flow,
            TimeoutLayer::Tool,
            TimeoutLayer::Step
        ]
    );
    assert_eq!(snapshot.default_limit(TimeoutLayer::Flow), Limit::After(HOUR));
    assert_eq!(snapshot.default_limit(TimeoutLayer::Tool), Limit::Unset);
    let snapshot = snapshot_with_latency(json!({"preset": "flow", "tool": "1m"}), 0, 0);
    assert_eq!(snapshot.default_limit(TimeoutLayer::Tool), Limit::After(MINUTE));
}

#[test]
fn an_adaptive_limit_explains_its_value() {
    let (tool, step, call, exceeding) = (0, 2, 3, 4);
    let flow = json!({"preset": "flow"});
    let after = |millis: u64| Limit::After(millis);
    for (timeouts, samples, p99_ms, node, limit, reason) in [
        (
            &flow,
            7,
            420,
            step,
            after(10 * MINUTE),
            "adaptive: 7 of 20 samples, so the default of 10m0s",
        ),
        (
            &json!({}),
            0,
            0,
            tool,
            Limit::Unset,
            "adaptive: 0 of 20 samples, so no limit",
        ),
        (
            &json!({"tool": null}),
            19,
            5,
            tool,
            Limit::Never,
            "adaptive: 19 of 20 samples, so no limit",
        ),
        (
            &flow,
            19,
            5,
            call,
            Limit::Unset,
            "adaptive: 19 of 20 samples, so the called workflow's own limit",
        ),
        (
            &flow,
            57,
            420,
            tool,
            after(1_260),
            "adaptive: 3 x p99 420ms of 57 samples",
        ),
        (
            &flow,
            20,
            100,
            tool,
            after(1_000),
            "adaptive: 3 x p99 100ms of 20 samples, raised to 1s",
        ),
        // Between the default and the hard limit the value is not changed.
        (
            &flow,
            20,
            3 * MINUTE,
            tool,
            after(9 * MINUTE),
            "adaptive: 3 x p99 3m0s of 20 samples",
        ),
        (
            &flow,
            20,
            4 * MINUTE,
            tool,
            after(10 * MINUTE),
            "adaptive: 3 x p99 4m0s of 20 samples, cut to the hard limit of 10m0s",
        ),
        (
            &flow,
            20,
            4 * MINUTE,
            exceeding,
            after(12 * MINUTE),
            "adaptive: 3 x p99 4m0s of 20 samples",
        ),
        (
            &json!({"tool": "1m"}),
            20,
            MINUTE,
            tool,
            after(MINUTE),
            "adaptive: 3 x p99 1m0s of 20 samples, cut to the default of 1m0s",
        ),
        (
            &json!({}),
            20,
            DAY,
            tool,
            after(3 * DAY),
            "adaptive: 3 x p99 24h0m0s of 20 samples",
        ),
        (
            &json!({}),
            20,
            u64::MAX,
            call,
            after(HOUR),
            "adaptive: 3 x p99 5124095576030h25m51.615s of 20 samples, cut to the default of 1h0m0s",
        ),
    ] {
        let snapshot = snapshot_with_latency(timeouts.clone(), samples, p99_ms);
        assert_eq!(snapshot.adaptive_limit(node), (limit, reason.to_string()));
    }
}

#[test]
fn a_node_without_latencies_has_no_samples() {
    let snapshot = Snapshot::read(adaptive_workflow(json!({}))).expect("a snapshot");
    let (limit, reason) = snapshot.adaptive_limit(0);
    assert_eq!(limit, Limit::Unset);
    assert_eq!(reason, "adaptive: 0 of 20 samples, so no limit");
}

#[test]
fn adaptive_nodes_are_listed_for_the_workflow_and_those_it_calls() {
    let mut stored = adaptive_workflow(json!({}));
    stored.children[0].workflow["nodes"][0]["timeout"] = json!("adaptive");
    let again = stored.children[0].clone();
    stored.children.push(again);
    let found = adaptive_nodes(&stored);
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|(flow, node)| (flow.as_str(), node.as_str()))
        .collect();
    let learner = ["call", "exceeding", "pure", "tool", "two"].map(|node| ("learner", node));
    assert_eq!(found, [&[("child", "c")], learner.as_slice()].concat());
}

#[test]
fn a_child_has_its_own_latencies() {
    let mut stored = adaptive_workflow(json!({}));
    let (own, childs) = (
        Latency {
            samples: 30,
            p99_ms: 1,
        },
        Latency {
            samples: 40,
            p99_ms: 2,
        },
    );
    stored.latencies.insert("tool".into(), own);
    stored.children[0].latencies.insert("c".into(), childs);
    let child = stored.child(3).expect("node 3 calls");
    assert_eq!(
        child.latencies.into_iter().collect::<Vec<_>>(),
        [("c".to_string(), childs)]
    );
}

#[test]
fn a_snapshot_keeps_the_preset_of_its_creation() {
    let stored = adaptive_workflow(json!({}));
    let text = serde_json::to_value(&stored).expect("JSON");
    assert_eq!(
        (&text["preset"], &text["latencies"]),
        (&Value::Null, &Value::Null)
    );
    let mut stored = stored;
    stored.preset = Preset::Service;
    stored.latencies.insert(
        "tool".into(),
        Latency {
            samples: 20,
            p99_ms: 7,
        },
    );
    let text = serde_json::to_value(&stored).expect("JSON");
    assert_eq!(text["preset"], json!("service"));
    assert_eq!(text["latencies"], json!({"tool": {"samples": 20, "p99_ms": 7}}));
    assert_eq!(
        serde_json::from_value::<StoredSnapshot>(text).expect("a snapshot"),
        stored
    );
    let snapshot = Snapshot::read(stored).expect("a snapshot");
    assert_eq!(
        snapshot.default_limit(TimeoutLayer::Flow),
        Limit::After(30 * SECOND)
    );
}
