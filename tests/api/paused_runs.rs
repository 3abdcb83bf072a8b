//! `GET /v1/runs/{id}` of a paused run: pause reasons, remaining times and the open gate.

use curfew::api::views;
use serde_json::{Value, json};

use crate::run::driver::Driver;

fn document() -> Value {
    json!({
        "timeout_ms": 4_000, "on_timeout": "human_gate",
        "nodes": [{"id": "a", "action_id": "work", "timeout_ms": 6_000}],
    })
}

#[test]
fn a_run_at_its_gate_shows_the_gate_and_remaining_times() {
    let mut run = Driver::start(document());
    run.at(5_000).wake("t1@1");
    let view = views::run(&run.run, 9_000);
    assert_eq!(view["status"], json!("paused"));
    assert_eq!(view["paused_by"], json!(["workflow_timeout"]));
    assert_eq!(
        view["deadlines"],
        json!([
            {"kind": "workflow", "remaining_ms": 0},
            // The run's deadline also limits the attempt.
            {"kind": "execution", "remaining_ms": 0, "token_id": "t1", "node_id": "a"},
            {"kind": "gate", "due_at": 604_805_000, "gate_id": "run1"},
        ])
    );
    assert_eq!(
        view["gate"],
        json!({
            "id": "run1", "run_id": "run-1", "node_id": null, "token_id": null, "kind": "workflow_timeout",
            "prompt": "The run has used up its limit of 4s. Extend it, abort it or fail it?",
            "choices": ["extend", "abort", "fail"],
            "input_schema": {"type": "object",
                "properties": {"by_ms": {"type": "integer", "minimum": 1, "maximum": 2_592_000_000u64},
                    "by": {"type": "string"}}},
            "opened_at": 5_000, "timeout_at": 604_805_000, "reminded_at": null, "status": "open", "decision": null,
        })
    );
}

#[test]
fn a_resumed_run_shows_absolute_deadlines() {
    let mut run = Driver::start(document());
    run.at(5_000).wake("t1@1").at(10_000).grant("run1", 60_000);
    let view = views::run(&run.run, 10_000);
    assert_eq!((&view["gate"], &view["paused_by"]), (&Value::Null, &Value::Null));
    assert_eq!(
        (&view["timeout_at"], &view["timeout_ms"]),
        (&json!(70_000), &json!(64_000))
    );
    assert_eq!(
        view["deadlines"],
        json!([
            {"kind": "workflow", "due_at": 70_000},
            {"kind": "execution", "due_at": 12_000, "token_id": "t1", "node_id": "a"},
        ])
    );
}

#[test]
fn all_pause_reasons_are_listed() {
    let mut run = Driver::start(document());
    run.at(2_000).pause().parent_holds(1, true, None);
    let view = views::run(&run.run, 3_000);
    assert_eq!(view["paused_by"], json!(["person", "parent"]));
    assert_eq!(
        view["deadlines"][0],
        json!({"kind": "workflow", "remaining_ms": 3_000})
    );
}
