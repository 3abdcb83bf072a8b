//! Actions of kind `emit_event`, and the trigger of a workflow.

use curfew::definition::event::trigger_event;
use curfew::definition::snapshot::DocumentKind;
use serde_json::{Value, json};

use super::documents::expect;

fn action(implementation: Value, expected: &[&str]) {
    let document = json!({"id": "a", "kind": "emit_event", "implementation": implementation});
    expect(DocumentKind::Actions, document, expected);
}

fn trigger(trigger: Value, expected: &[&str]) {
    let document = json!({"id": "w", "nodes": [{"id": "a"}], "trigger": trigger});
    expect(DocumentKind::Workflows, document, expected);
}

#[test]
fn an_event_has_a_name_and_an_optional_payload() {
    action(json!({"name": "order.paid"}), &[]);
    action(
        json!({"name": "order-${input.kind}", "payload": {"id": "${state.id}", "rows": [1, "${output.n}"]}}),
        &[],
    );
    action(
        json!({"payload": "${result}", "body": 1}),
        &[
            "/implementation/body unknown_field",
            "/implementation/name missing_field: \"name\" is required",
            "/implementation/payload unknown_name",
        ],
    );
    action(json!({"name": 5}), &["/implementation/name wrong_type"]);
    for name in ["order paid", "", "a/b", &"x".repeat(129)] {
        action(json!({"name": name}), &["/implementation/name invalid_id"]);
    }
}

/// The runs that an event starts show its payload.
#[test]
fn events_cannot_use_secrets() {
    action(
        json!({"name": "${secret.A}", "payload": {"key": "${secret.B}"}}),
        &[
            "/implementation/name unknown_name",
            "/implementation/payload unknown_name",
        ],
    );
}

#[test]
fn emit_event_has_no_retries_and_no_breaker() {
    let action = |execution: Value| json!({"id": "a", "kind": "emit_event", "implementation": {"name": "n"}, "execution": execution});
    for (execution, expected) in [
        (json!({"timeout": "5s"}), vec![]),
        (json!({"mode": "async"}), vec!["/execution/mode unknown_field"]),
        (json!({"breaker": "x"}), vec!["/execution/breaker unsupported"]),
        (
            json!({"retry_policy": {"max_attempts": 2}}),
            vec!["/execution/retry_policy unsupported"],
        ),
    ] {
        expect(DocumentKind::Actions, action(execution), &expected);
    }
    let task = json!({"id": "t", "dispatch": "inline", "steps": [
        {"action": {"kind": "emit_event", "implementation": {"name": "n"}}}]});
    expect(DocumentKind::Tasks, task, &[]);
}

#[test]
fn a_trigger_names_an_event() {
    trigger(json!({"event": "order.paid"}), &[]);
    trigger(Value::Null, &[]);
    trigger(json!({}), &["/trigger/event missing_field"]);
    trigger(json!("order.paid"), &["/trigger wrong_type"]);
    trigger(json!({"event": ["a"]}), &["/trigger/event wrong_type"]);
    trigger(json!({"event": "${input.x}"}), &["/trigger/event invalid_id"]);
    trigger(
        json!({"event": "a", "events": ["b"]}),
        &["/trigger/events unknown_field"],
    );
    assert_eq!(trigger_event(&json!({"trigger": {"event": "a"}})), Some("a"));
    for none in [
        json!({}),
        json!({"trigger": null}),
        json!({"trigger": {"event": null}}),
    ] {
        assert_eq!(trigger_event(&none), None);
    }
}

#[test]
fn a_schedule_is_rejected_not_ignored() {
    trigger(
        json!({"cron": "0 9 * * *", "timezone": "Europe/Kyiv"}),
        &["/trigger/cron unsupported: \"cron\" is not supported by this version of Curfew yet"],
    );
}
