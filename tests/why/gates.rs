//! Gates whose deadline passed.

use curfew::run::RetryMode;
use serde_json::{Value, json};

use super::{limit, reason, smallest, why};
use crate::run::driver::Driver;

fn gate() -> Value {
    json!({"nodes": [{"id": "ask", "gate": {"timeout": "10s", "remind_at": [0.5, 0.8]}}]})
}

#[test]
fn a_gate_says_how_long_it_was_open_and_how_often_it_reminded() {
    let mut run = Driver::start(gate());
    run.at(6_000).wake("").at(9_000).wake("").at(11_000).wake("");
    let why = why(&run, 0);
    assert_eq!(limit(&why), json!(["gate", "gate", "/nodes/0/gate/timeout"]));
    assert_eq!(
        why["used"],
        json!({"elapsed_ms": 10_000, "stopped_ms": 0, "gate_id": "g1", "opened_at": 1_000, "reminders": 2})
    );
    assert_eq!(smallest(&why), json!([null, 10_000, null]));
    assert!(reason(&why).starts_with("no person has decided"), "{why}");
}

#[test]
fn a_decision_at_the_next_gate_of_the_same_place_is_none_at_this_one() {
    let mut run = Driver::start(gate());
    run.at(11_000).wake("");
    run.at(20_000).retry(RetryMode::RetryStep);
    run.at(26_000).decide("g2", "approve");
    run.assert_status("completed {}");
    let why = why(&run, 0);
    assert_eq!(smallest(&why), json!([null, 10_000, null]));
    assert_eq!(
        reason(&why),
        "no person decided while it was open; the next gate of this place, g2, was decided 6s after it had opened, 25s after this one"
    );
}

#[test]
fn the_gate_of_the_runs_limit_has_a_limit_of_its_own() {
    let document = json!({"timeout_ms": 4_000, "on_timeout": "human_gate", "gate": {"timeout_ms": 20_000},
        "nodes": [{"id": "a", "action_id": "work"}]});
    let mut run = Driver::start(document);
    run.at(5_000).wake("t1@1");
    run.at(25_000).wake("t1@1");
    run.assert_status("timed_out workflow_timeout/timeout: Workflow execution timed out after 4s");
    let of_gate = why(&run, 1);
    assert_eq!(limit(&of_gate), json!(["gate", "workflow", "/gate/timeout_ms"]));
    assert_eq!(of_gate["used"]["gate_id"], "run1");
    assert!(of_gate["smallest_limit_ms"].is_null());
}

#[test]
fn a_gate_without_a_limit_of_its_own_has_the_default() {
    let document =
        json!({"timeout_ms": 4_000, "on_timeout": "human_gate", "nodes": [{"id": "a", "action_id": "work"}]});
    let mut run = Driver::start(document);
    run.at(5_000).wake("t1@1");
    run.at(5_000 + 7 * 86_400_000).wake("t1@1");
    assert_eq!(limit(&why(&run, 1)), json!(["gate", "gate_default", null]));
}
