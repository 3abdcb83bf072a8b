//! Workflows that would never end, or that are too much: an error says which bound was reached.

use serde_json::{Value, json};

use super::{chain, refused, simulated};
use crate::analysis::deployment;
use curfew::analysis::analyze;
use curfew::definition::snapshot::Library;

#[track_caller]
fn check(body: Value, expected: &str) {
    let (status, code, message) = refused(body);
    assert_eq!((status, code), (422, "limit_exceeded"), "{message}");
    assert!(message.contains(expected), "{message}");
}

fn polling(timeout: Value, wait: &str) -> Value {
    let mut workflow = chain(
        json!([{"id": "ask", "action_id": "work"}, {"id": "pause", "wait": {"sleep": wait}}]),
        json!({"timeout": timeout, "limits": {"tokens_total": 1_000_000, "loop_iterations": 1_000_000}}),
    );
    workflow["transitions"] = json!([
        {"from_node_id": "ask", "to_node_id": "pause"},
        {"from_node_id": "pause", "to_node_id": "ask", "loop_config": {"max_iterations": 1_000_000}}]);
    workflow
}

#[test]
fn years_of_polling_end_at_a_bound() {
    let mocks = json!([{"node": "ask", "result": {"ready": false}}]);
    check(
        json!({"workflow": polling(json!(null), "1h"), "mocks": mocks}),
        "the simulation was stopped: it takes more than",
    );
    let answer = simulated(json!({"workflow": polling(json!("240h"), "1h"), "mocks": mocks}));
    assert_eq!(answer["calls"].as_array().map(Vec::len), Some(240));
}

#[test]
fn a_call_that_hangs_for_a_month_is_no_loop() {
    let node = json!({"id": "a", "action_id": "work", "timeout": "700h", "allow_exceed_hard": true});
    let workflow = chain(
        json!([node]),
        json!({"timeout": "720h", "allow_exceed_hard": true, "on_timeout": "fail"}),
    );
    let answer = simulated(json!({"workflow": workflow, "mocks": [{"node": "a", "hang": true}]}));
    assert_eq!(answer["virtual_ms"], 2_520_000_000_u64, "{:#}", answer["run"]);
}

#[test]
fn a_large_result_in_a_loop_ends_at_a_bound() {
    let mocks = json!([{"node": "ask", "result": {"text": "x".repeat(100_000)}}]);
    check(
        json!({"workflow": polling(json!(null), "1h"), "mocks": mocks}),
        "the simulation was stopped: it takes more than",
    );
}

fn wide(input: Value, mock: Value) -> Value {
    let mut workflow = chain(json!([{"id": "a"}, {"id": "b", "action_id": "work"}]), json!({}));
    workflow["transitions"] = json!([{"from_node_id": "a", "to_node_id": "b", "spawn_count": 1_000}]);
    json!({"workflow": workflow, "input": input, "mocks": [mock]})
}

/// A thousand answers of one mock that come at the same moment are a thousand copies of it.
#[test]
fn large_answers_at_the_same_moment_end_at_a_bound() {
    let large = || "x".repeat(400_000);
    let expected = "more than 33554432 bytes of mocked answers";
    check(wide(json!({}), json!({"node": "b", "result": large()})), expected);
    check(
        wide(
            json!({}),
            json!({"node": "b", "after": "1s", "fail": {"class": "permanent", "message": large()}}),
        ),
        expected,
    );
    check(
        wide(
            json!({}),
            json!({"node": "b", "fail": "permanent", "partial": large()}),
        ),
        expected,
    );
    let mut mocked = wide(json!({}), json!({"node": "b", "after": "1s", "result": large()}));
    mocked["workflow"]["nodes"][1] = json!({"id": "b", "workflow_id": "called"});
    mocked["documents"] = json!({"workflows": [{"id": "called", "nodes": [{"id": "c"}]}]});
    check(mocked, expected);
}

/// Each task has the run's input, unless its node maps it.
#[test]
fn large_inputs_of_tasks_at_the_same_time_end_at_a_bound() {
    let expected = "more than 16777216 bytes of tasks at the same time";
    let body = wide(
        json!("x".repeat(400_000)),
        json!({"node": "b", "after": "1s", "result": 1}),
    );
    check(body.clone(), expected);
    let mut queued = body.clone();
    queued["queue"] = json!(true);
    check(queued, expected);
    let mut mapped = body;
    mapped["workflow"]["nodes"][1]["input_mapping"] = json!({});
    let answer = simulated(mapped);
    assert_eq!(answer["calls"].as_array().map(Vec::len), Some(1_000));
}

/// What has ended is not at work any more.
#[test]
fn tasks_one_after_another_have_no_bound_together() {
    let mut workflow = polling(json!("60h"), "1h");
    workflow["actions"][0]["implementation"]["body"] = json!({});
    let body = json!({
        "workflow": workflow, "input": "x".repeat(400_000),
        "mocks": [{"node": "ask", "result": 1}],
    });
    let answer = simulated(body);
    assert_eq!(answer["calls"].as_array().map(Vec::len), Some(60));
}

#[test]
fn a_thousand_times_a_thousand_branches_end_at_a_bound() {
    let workflow = json!({
        "id": "flow",
        "actions": [{"id": "work", "kind": "service_call", "implementation": {"binding": "PEER"}}],
        "nodes": [{"id": "a"}, {"id": "b"}, {"id": "c", "action_id": "work"}],
        "transitions": [
            {"from_node_id": "a", "to_node_id": "b", "spawn_count": 1_000, "sibling_group": "outer"},
            {"from_node_id": "b", "to_node_id": "c", "spawn_count": 1_000, "sibling_group": "inner"}],
        "limits": {"tokens_total": 1_000_000, "tokens_active": 1_000_000},
    });
    let body = json!({"workflow": workflow, "mocks": [{"node": "c", "result": 1}]});
    // The run's own limit on tokens may come first.
    match super::try_simulate(&body) {
        Ok(answer) => assert_eq!(
            answer["run"]["error"]["code"], "limit_exceeded",
            "{:#}",
            answer["run"]
        ),
        Err(error) => assert_eq!(error.code, "limit_exceeded", "{}", error.message),
    }
}

/// An object that waits for several calls at once is in memory once.
#[test]
fn calls_at_once_are_paid_once() {
    let node = json!({"id": "b", "action_id": "work", "timeout": "1m"});
    let cost = |branches: u64, mock: Value| {
        let mut workflow = chain(json!([{"id": "a"}, node, {"id": "c"}]), json!({}));
        workflow["transitions"] = json!([
            {"id": "each", "from_node_id": "a", "to_node_id": "b", "spawn_count": branches},
            {"from_node_id": "b", "to_node_id": "c", "synchronization": {"sibling_group": "each", "on_branch_failure": "proceed_with_available"}}]);
        let answer = simulated(json!({"workflow": workflow, "mocks": [mock]}));
        let facts = analyze(&workflow, &Library::new(), &deployment()).expect("it refers to nothing else");
        let worst = facts.facts.and_then(|it| it.dollars.worst).expect("a bound");
        let dollars = answer["dollars"].as_f64().expect("a price");
        assert!(dollars <= worst, "{branches}: {dollars} of {worst}");
        dollars
    };
    let slow = || json!({"node": "b", "after": "60s", "result": 1});
    let quick = || json!({"node": "b", "after": "0s", "result": 1});
    let minute = |branches: u64| cost(branches, slow()) - cost(branches, quick());
    // A minute awake costs 96 millionths of a dollar, for one call as for three.
    let paid = [minute(1), minute(2), minute(3)].map(|dollars| (dollars * 1e6).round());
    assert!(
        paid.iter().all(|it| (96.0..110.0).contains(it)),
        "with a few rows, for the warning of each: {paid:?}"
    );
    cost(3, json!({"node": "b", "hang": true}));
    cost(100, slow());
}
