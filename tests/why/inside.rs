//! Limits inside an attempt, which cut a call before the limit of the node. The executor is simulated, as are its reports.

use curfew::definition::timeouts::TimeoutRules;
use curfew::simulate::{Deployment, Session};
use serde_json::{Value, json};

use crate::simulate::simulated;

/// A call takes 800 ms. `why` of the first timeout.
#[track_caller]
fn why(document: &Value) -> Value {
    let mut mocks = vec![json!({"node": "n", "after": 800, "result": {}})];
    if document["tasks"][0]["steps"][0]["ref"] == "first" {
        mocks.insert(
            0,
            json!({"node": "n", "step": "first", "after": 50, "result": {}}),
        );
    }
    let body = json!({"workflow": document, "mocks": mocks});
    let opened = Session::open(&body, &TimeoutRules::default(), &Deployment::default());
    let mut session = opened.unwrap_or_else(|error| panic!("{}", error.message));
    session.advance(&json!({"until": "end"})).expect("it ends");
    let view = session.view().expect("a view");
    let id = view["timeouts"][0]["id"].as_u64().expect("it timed out");
    let record = session.timeout(id).expect("a record");
    record["why"].clone()
}

/// Layer, source, pointer, document and length.
#[track_caller]
fn check(document: Value, expected: Value) {
    let why = why(&document);
    let limit = &why["limit"];
    let found = json!([
        limit["layer"],
        limit["source"],
        limit["pointer"],
        limit["document"]["id"],
        limit["timeout_ms"]
    ]);
    assert_eq!(found, expected, "{why:#}");
    assert_eq!(why["more_than_ms"], expected[4]);
    assert_eq!(why["smallest_limit_ms"], Value::Null, "the call never answered");
    // What is named is what cut the call: a longer one lets it take longer.
    let before =
        simulated(json!({"workflow": document, "mocks": [{"node": "n", "after": "1h", "result": {}}]}));
    let mut longer = document.clone();
    let pointer = expected[2].as_str().expect("it is written");
    let id = expected[3].as_str();
    let list = match id {
        Some(id)
            if longer["tasks"]
                .as_array()
                .is_some_and(|tasks| tasks[0]["id"] == id) =>
        {
            "/tasks/0"
        }
        Some(_) => "/actions/0",
        None => "",
    };
    let at = format!("{list}{pointer}");
    *longer.pointer_mut(&at).unwrap_or_else(|| panic!("{at}")) = json!(3_600_000);
    let after = simulated(json!({"workflow": longer, "mocks": [{"node": "n", "after": "1h", "result": {}}]}));
    let first = |answer: &Value| answer["timeouts"][0]["timeout_event"]["elapsed_ms"].as_u64();
    assert!(first(&after) > first(&before), "{at} changes nothing");
}

fn call(execution: Value) -> Value {
    json!({"id": "c", "kind": "service_call", "implementation": {"binding": "PEER"}, "execution": execution})
}

fn of_action(node: Value, execution: Value) -> Value {
    let mut node = node;
    node["id"] = json!("n");
    node["action_id"] = json!("c");
    json!({"id": "w", "nodes": [node], "actions": [call(execution)]})
}

fn of_task(node: Value, task: Value, steps: Value) -> Value {
    let (mut node, mut task) = (node, task);
    node["id"] = json!("n");
    node["task_id"] = json!("t");
    task["id"] = json!("t");
    task["steps"] = steps;
    json!({"id": "w", "nodes": [node], "tasks": [task]})
}

#[test]
fn an_action_within_a_longer_node() {
    check(
        of_action(json!({"timeout_ms": 500}), json!({"timeout_ms": 200})),
        json!(["call", "action", "/execution/timeout_ms", "c", 200]),
    );
}

#[test]
fn a_node_within_a_longer_action() {
    check(
        of_action(json!({"timeout_ms": 200}), json!({"timeout_ms": 500})),
        json!(["execution", "node", "/nodes/0/timeout_ms", null, 200]),
    );
}

#[test]
fn a_step_within_a_longer_task() {
    let steps = json!([{"ref": "s", "timeout_override_ms": 150, "action": call(json!({}))}]);
    check(
        of_task(json!({}), json!({"timeout_ms": 500}), steps),
        json!(["call", "step", "/steps/0/timeout_override_ms", "t", 150]),
    );
}

#[test]
fn the_second_steps_action_within_a_longer_node() {
    let steps = json!([{"ref": "first", "action": call(json!({}))}, {"ref": "second", "action": call(json!({"timeout_ms": 150}))}]);
    let why = why(&of_task(json!({"timeout_ms": 900}), json!({}), steps));
    let limit = &why["limit"];
    assert_eq!(
        json!([
            limit["layer"],
            limit["source"],
            limit["pointer"],
            limit["timeout_ms"]
        ]),
        json!(["call", "action", "/execution/timeout_ms", 150]),
        "{why:#}"
    );
}

#[test]
fn a_task_within_a_longer_node() {
    let steps = json!([{"ref": "first", "action": call(json!({}))}, {"ref": "second", "action": call(json!({"timeout_ms": 900}))}]);
    check(
        of_task(json!({"timeout_ms": 500}), json!({"timeout_ms": 150}), steps),
        json!(["execution", "task", "/timeout_ms", "t", 150]),
    );
}

#[test]
fn two_calls_of_a_retried_action_within_a_longer_node() {
    let retry = json!({"timeout_ms": 200, "on_timeout": "retry", "retry_policy": {"max_attempts": 2, "backoff": "none"}});
    check(
        of_action(json!({"timeout_ms": 900}), retry),
        json!(["call", "action", "/execution/timeout_ms", "c", 200]),
    );
}

#[test]
fn all_calls_together() {
    let retry = json!({"timeout_ms": 200, "on_timeout": "retry",
        "retry_policy": {"total_timeout_ms": 300, "backoff": "none", "max_attempts": 5}});
    for node in [json!({}), json!({"timeout_ms": 900})] {
        let layer = if node["timeout_ms"].is_null() {
            "execution"
        } else {
            "call"
        };
        check(
            of_action(node, retry.clone()),
            json!([
                layer,
                "action",
                "/execution/retry_policy/total_timeout_ms",
                "c",
                300
            ]),
        );
    }
}
