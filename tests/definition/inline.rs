//! `dispatch: "inline"` is rejected for a task that calls services, at the field that requests it.

use curfew::definition::snapshot::{CatalogueDocument, DocumentKind, Library, Reference};
use curfew::definition::timeouts::TimeoutRules;
use serde_json::{Value, json};

use super::documents::{expect, expect_under};

fn workflow(node: Value, task: Value, actions: Value) -> Value {
    json!({"id": "w", "nodes": [{"id": "first"}, node], "tasks": [task], "actions": actions,
        "transitions": [{"from_node_id": "first", "to_node_id": "a"}]})
}

fn task(dispatch: &str, action: &str) -> Value {
    json!({"id": "t", "dispatch": dispatch, "steps": [{"ref": "s", "action_id": action}]})
}

fn actions() -> Value {
    json!([
        {"id": "pure", "kind": "update_context", "implementation": {"set": {"x": 1}}},
        {"id": "calling", "kind": "http_request", "implementation": {"url": "http://x.example"}},
    ])
}

fn stored(node: Value, task: Value, expected: &[&str]) {
    expect(DocumentKind::Workflows, workflow(node, task, actions()), expected);
}

#[test]
fn a_pure_task_may_be_inline_by_node_or_by_task() {
    stored(
        json!({"id": "a", "task_id": "t", "dispatch": "inline"}),
        task("auto", "pure"),
        &[],
    );
    stored(json!({"id": "a", "task_id": "t"}), task("inline", "pure"), &[]);
    stored(
        json!({"id": "a", "action_id": "pure", "dispatch": "inline"}),
        task("direct", "calling"),
        &[],
    );
}

#[test]
fn inline_is_rejected_where_it_is_requested() {
    let node = json!({"id": "a", "task_id": "t", "dispatch": "inline"});
    stored(
        node.clone(),
        task("auto", "calling"),
        &["/nodes/1/dispatch inline_not_pure"],
    );
    stored(
        json!({"id": "a", "action_id": "calling", "dispatch": "inline"}),
        task("auto", "pure"),
        &["/nodes/1/dispatch inline_not_pure"],
    );
    // The task itself is invalid, however it is used.
    stored(
        json!({"id": "a", "task_id": "t", "dispatch": "direct"}),
        task("inline", "calling"),
        &["/tasks/0/dispatch inline_not_pure: only a task of update_context, assert and emit_event steps"],
    );
    stored(
        node,
        task("inline", "calling"),
        &[
            "/nodes/1/dispatch inline_not_pure",
            "/tasks/0/dispatch inline_not_pure",
        ],
    );
}

#[test]
fn a_task_with_delays_between_attempts_cannot_be_inline() {
    let mut waiting = task("inline", "pure");
    waiting["retry"] = json!({"max_attempts": 2, "backoff": "linear"});
    stored(
        json!({"id": "a", "task_id": "t"}),
        waiting,
        &["/tasks/0/dispatch inline_not_pure"],
    );
}

/// An earlier build accepted secrets in a pure action.
#[test]
fn a_task_with_secrets_cannot_be_inline() {
    let telling =
        json!({"id": "telling", "kind": "update_context", "implementation": {"set": {"x": "${secret.KEY}"}}});
    let reference = Reference {
        kind: DocumentKind::Actions,
        id: "telling".into(),
        version: None,
    };
    let stored = CatalogueDocument {
        version: 1,
        content: telling,
    };
    let library: Library = [(reference, Some(stored))].into();
    expect_under(
        &TimeoutRules::default(),
        DocumentKind::Tasks,
        task("inline", "telling"),
        &library,
        &["/dispatch inline_not_pure"],
    );
}

#[test]
fn a_catalogue_task_is_checked_when_it_is_stored() {
    let pure = json!({"kind": "assert", "implementation": {"condition": "true"}});
    let calling = json!({"kind": "service_call", "implementation": {"binding": "X"}});
    let own = |action: &Value| json!({"id": "t", "dispatch": "inline", "steps": [{"action": action}]});
    expect(DocumentKind::Tasks, own(&pure), &[]);
    expect(DocumentKind::Tasks, own(&calling), &["/dispatch inline_not_pure"]);
}

#[test]
fn an_unresolvable_or_invalid_task_is_reported_once() {
    let broken = json!({"id": "t", "dispatch": "inline", "steps": [{"action": {"kind": "nonsense", "implementation": {}}}]});
    expect(DocumentKind::Tasks, broken, &["/steps/0/action/kind"]);
}
