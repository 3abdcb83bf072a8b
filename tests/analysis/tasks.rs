//! Warnings about what tasks read, and about the limits of their calls.

use serde_json::{Value, json};

use super::{analysis_of, codes};

/// Codes and pointers of a workflow whose only node runs a task of these steps.
fn found(steps: Value, actions: Value) -> Vec<String> {
    warnings(
        json!({"id": "w", "nodes": [{"id": "a", "task_id": "t"}], "tasks": [{"id": "t", "steps": steps}],
        "actions": actions}),
    )
}

fn warnings(document: Value) -> Vec<String> {
    let analysis = analysis_of(&document);
    assert!(analysis.errors.is_empty(), "{:?}", analysis.errors);
    let codes = codes(&analysis).into_iter();
    codes.map(|(code, pointer)| format!("{code} {pointer}")).collect()
}

fn get() -> Value {
    json!({"kind": "http_request", "implementation": {"url": "https://example.com"}, "execution": {"timeout": "5s"}})
}

fn named(id: &str, action: Value) -> Value {
    let mut action = action;
    action["id"] = json!(id);
    action
}

#[test]
fn a_result_is_kept_under_the_name_of_its_step() {
    let reads =
        |path: &str| json!({"ref": "use", "action": get(), "input_mapping": {"x": format!("${{{path}}}")}});
    let wrong = vec!["unwritten_path /tasks/0/steps/1/input_mapping/x".to_string()];
    let actions = || json!([named("get", get())]);
    for first in [
        json!({"ref": "load", "action": get()}),
        json!({"ref": "load", "action_id": "get"}),
    ] {
        let steps = |path: &str| json!([first, reads(path)]);
        assert_eq!(found(steps("state.load.body"), actions()), Vec::<String>::new());
        assert_eq!(found(steps("state.laod.body"), actions()), wrong);
    }
    let unnamed = json!([{"action": get()}, reads("state['step-1'].body")]);
    assert_eq!(found(unnamed, actions()), Vec::<String>::new());
    // A mapping takes its place.
    let mapped =
        json!({"ref": "load", "action_id": "get", "output_mapping": {"state.page": "${result.body}"}});
    assert_eq!(
        found(json!([mapped, reads("state.page")]), actions()),
        Vec::<String>::new()
    );
    assert_eq!(found(json!([mapped, reads("state.load")]), actions()), wrong);
}

#[test]
fn an_action_of_the_document_writes_what_it_says() {
    let set = json!({"kind": "update_context", "implementation": {"set": {"state.rows": 1}}});
    let actions = json!([named("prepare", set)]);
    let steps = |path: &str| {
        json!([{"ref": "prepare", "action_id": "prepare"},
            {"ref": "use", "action": get(), "input_mapping": {"x": format!("${{{path}}}")}}])
    };
    assert_eq!(found(steps("state.rows"), actions.clone()), Vec::<String>::new());
    // A pure action has no other result.
    assert_eq!(
        found(steps("state.prepare"), actions),
        ["unwritten_path /tasks/0/steps/1/input_mapping/x"]
    );
}

#[test]
fn a_compensation_without_a_timeout_may_use_up_the_time_of_all() {
    let call = |execution: Value| json!({"kind": "http_request", "implementation": {"method": "POST", "url": "https://example.com"}, "execution": execution});
    let document = |undo: Value, page: Value| {
        json!({"id": "w", "on_end": [{"action_id": "page"}],
            "nodes": [{"id": "a", "action_id": "pay", "compensate": undo}],
            "actions": [named("pay", call(json!({"timeout": "5s"}))), named("refund", call(json!({}))), named("page", page)]})
    };
    let limited = call(json!({"timeout": "5s"}));
    assert_eq!(
        warnings(document(json!({"action_id": "refund"}), limited.clone())),
        ["no_timeout /actions/1"]
    );
    assert_eq!(
        warnings(document(
            json!({"action_id": "refund", "timeout": "1m"}),
            limited.clone()
        )),
        Vec::<String>::new()
    );
    assert_eq!(
        warnings(document(json!({"action_id": "pay"}), call(json!({})))),
        ["no_timeout /actions/2"]
    );
}
