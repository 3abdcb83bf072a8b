//! `dispatch: "inline"` is refused where the task calls out, at the field that says it.

use curfew::definition::snapshot::DocumentKind;
use serde_json::{Value, json};

use super::documents::expect;

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
        {"id": "telling", "kind": "update_context", "implementation": {"set": {"x": "${secret.KEY}"}}},
        {"id": "calling", "kind": "http_request", "implementation": {"url": "http://x.example"}},
    ])
}

fn stored(node: Value, task: Value, expected: &[&str]) {
    expect(DocumentKind::Workflows, workflow(node, task, actions()), expected);
}

#[test]
fn a_pure_task_may_be_inline_by_either_word() {
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
fn the_nodes_word_is_refused_at_the_node_and_the_tasks_at_the_task() {
    let node = json!({"id": "a", "task_id": "t", "dispatch": "inline"});
    stored(
        node.clone(),
        task("auto", "calling"),
        &["/nodes/1/dispatch inline_not_pure"],
    );
    stored(
        node.clone(),
        task("auto", "telling"),
        &["/nodes/1/dispatch inline_not_pure"],
    );
    stored(
        json!({"id": "a", "action_id": "calling", "dispatch": "inline"}),
        task("auto", "pure"),
        &["/nodes/1/dispatch inline_not_pure"],
    );
    // Wrong in itself, whoever uses it and however.
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
fn a_wait_between_attempts_is_not_for_the_coordinator() {
    let mut waiting = task("inline", "pure");
    waiting["retry"] = json!({"max_attempts": 2, "backoff": "linear"});
    stored(
        json!({"id": "a", "task_id": "t"}),
        waiting,
        &["/tasks/0/dispatch inline_not_pure"],
    );
}

#[test]
fn a_task_of_its_own_is_judged_when_it_is_stored() {
    let pure = json!({"kind": "assert", "implementation": {"condition": "true"}});
    let calling = json!({"kind": "service_call", "implementation": {"binding": "X"}});
    let own = |action: &Value| json!({"id": "t", "dispatch": "inline", "steps": [{"action": action}]});
    expect(DocumentKind::Tasks, own(&pure), &[]);
    expect(DocumentKind::Tasks, own(&calling), &["/dispatch inline_not_pure"]);
}

#[test]
fn what_does_not_resolve_or_is_wrong_otherwise_is_told_once() {
    let broken = json!({"id": "t", "dispatch": "inline", "steps": [{"action": {"kind": "nonsense", "implementation": {}}}]});
    expect(DocumentKind::Tasks, broken, &["/steps/0/action/kind"]);
}
