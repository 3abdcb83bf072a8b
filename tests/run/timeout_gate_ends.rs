//! The end of a run that waits at the gate of its limit: by a decision, by the gate's deadline, by a cancel or a restart.

use curfew::run::{GateStatus, RetryMode, RunStatus, TokenStatus};
use serde_json::{Value, json};

use super::driver::Driver;

const PROMPT: &str =
    "\"The run has used up its limit of 4s. Extend it, abort it or fail it?\" extend|abort|fail";

fn watched(gate: Value) -> Value {
    json!({
        "timeout_ms": 4_000, "on_timeout": "human_gate", "gate": gate,
        "nodes": [{"id": "a", "action_id": "work"}, {"id": "b", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}],
    })
}

fn at_the_gate(gate: Value) -> Driver {
    let mut run = Driver::start(watched(gate));
    run.at(5_000).wake("t1@1").assert_status("paused a:executing");
    run
}

fn gate_status(run: &Driver) -> Option<GateStatus> {
    run.run
        .gates()
        .find(|gate| gate.id == "run1")
        .map(|gate| gate.status)
}

#[test]
fn abort_ends_the_run_as_timed_out() {
    at_the_gate(json!({}))
        .at(9_000)
        .decide("run1", "abort")
        .check(&format!(
            "
        run timed_out workflow_timeout/timeout: Workflow execution timed out after 4s
        token t1 a timed_out@1 (workflow_timeout)
        gate run1 decided {PROMPT} until 604805000 abort by ada at 9000
        event run_timed_out person by ada
        alarm 10009000
        abort t1@1
        announce
        announce run1 decided
        ended
    "
        ));
}

#[test]
fn fail_ends_the_run_as_failed() {
    at_the_gate(json!({}))
        .at(9_000)
        .decide("run1", "fail")
        .check(&format!(
            "
        run failed workflow_timeout/timeout: Workflow execution timed out after 4s
        token t1 a timed_out@1 (workflow_timeout)
        gate run1 decided {PROMPT} until 604805000 fail by ada at 9000
        event run_failed person by ada
        alarm 10009000
        abort t1@1
        announce
        announce run1 decided
        ended
    "
        ));
}

#[test]
fn the_gates_own_deadline_makes_the_end_certain() {
    let mut run = at_the_gate(json!({"timeout_ms": 8_000}));
    assert_eq!(run.run.next_deadline(), Some(13_000));
    run.at(12_999).wake("t1@1").assert_status("paused a:executing");
    run.at(13_250).wake("t1@1").check(&format!(
        "
        run timed_out workflow_timeout/timeout: Workflow execution timed out after 4s
        token t1 a timed_out@1 (workflow_timeout)
        gate run1 timed_out {PROMPT} until 13000
        event gate_timed_out {{gate late 250 cancel}}
        alarm 10013250
        abort t1@1
        announce
        announce run1 timed_out
        ended
    "
    ));
    let record = run.records().pop().expect("a record of the gate");
    assert_eq!(record.timeout_event.timeout_ms, Some(8_000));
    assert_eq!(record.timeout_event.elapsed_ms, 8_250);
    assert_eq!(record.last_known_state.phase, "paused");
}

#[test]
fn the_gates_own_deadline_may_fail_the_run() {
    let mut run = at_the_gate(json!({"timeout_ms": 8_000, "on_timeout": "fail"}));
    run.reload().at(13_000).wake("");
    run.assert_status("failed workflow_timeout/timeout: Workflow execution timed out after 4s");
    assert_eq!(gate_status(&run), Some(GateStatus::TimedOut));
    assert_eq!(run.row("t1").status, TokenStatus::TimedOut);
    assert_eq!(json!(run.records()[1].final_action), json!("fail"));
}

#[test]
fn the_warning_of_the_gates_deadline_is_logged_once_at_four_fifths() {
    let mut run = at_the_gate(json!({"timeout_ms": 100_000}));
    assert_eq!(run.run.next_deadline(), Some(85_000));
    run.at(85_000).wake("t1@1");
    assert_eq!(run.lines_of("event"), ["event deadline_warning gate"]);
    run.wake("t1@1").check("");
    run.reload().at(90_000).wake("").check("");
    assert_eq!(run.run.next_deadline(), Some(105_000));
}

#[test]
fn the_first_decision_counts() {
    let mut run = at_the_gate(json!({}));
    run.at(6_000)
        .grant("run1", 60_000)
        .at(7_000)
        .decide("run1", "abort");
    run.check(&format!(
        "rejected closed gate run1 decided {PROMPT} until 604805000 extend by ada at 6000"
    ));
    run.assert_status("running a:executing");
    let mut run = at_the_gate(json!({}));
    run.decide("run1", "abort").grant("run1", 60_000);
    run.check(&format!(
        "rejected closed gate run1 decided {PROMPT} until 604805000 abort by ada at 5000"
    ));
    run.decide("run2", "abort").check("rejected unknown_gate");
}

/// The first of the two events decides.
#[test]
fn a_decision_and_the_gates_deadline_in_the_same_millisecond() {
    let mut run = at_the_gate(json!({"timeout_ms": 8_000}));
    run.at(13_000)
        .grant("run1", 60_000)
        .wake("t1@1")
        .assert_status("running a:executing");
    let mut run = at_the_gate(json!({"timeout_ms": 8_000}));
    run.at(13_000).wake("t1@1").grant("run1", 60_000);
    assert!(run.answer.is_err());
    assert_eq!(run.run.header.status, RunStatus::TimedOut);
}

#[test]
fn a_plain_resume_is_refused_and_names_the_gate() {
    let mut run = at_the_gate(json!({}));
    run.resume().check("rejected held_by workflow_timeout run1");
    run.reload()
        .resume()
        .check("rejected held_by workflow_timeout run1");
}

#[test]
fn a_person_may_pause_as_well_and_both_pauses_must_end() {
    let mut run = at_the_gate(json!({}));
    run.at(6_000).pause().check(
        "
        run paused until 5000 held by person held by workflow_timeout
        event run_paused person
        announce
    ",
    );
    // The person resumes first: the limit has still passed.
    run.at(7_000).resume().assert_status("paused a:executing");
    assert_eq!(run.answer, Ok(()));
    run.at(8_000)
        .resume()
        .check("rejected held_by workflow_timeout run1");
    // The extension comes first: it counts in full once the person resumes.
    run.at(9_000)
        .pause()
        .grant("run1", 60_000)
        .assert_status("paused a:executing");
    run.reload()
        .at(1_000_000)
        .wake("")
        .assert_status("paused a:executing");
    run.at(2_000_000).resume().assert_status("running a:executing");
    assert_eq!(run.run.header.timeout_at, Some(2_060_000));
}

#[test]
fn the_gates_deadline_ends_a_run_that_a_person_paused_as_well() {
    let mut run = at_the_gate(json!({"timeout_ms": 8_000}));
    run.pause().at(13_000).wake("");
    run.assert_status("timed_out workflow_timeout/timeout: Workflow execution timed out after 4s");
}

#[test]
fn a_cancel_at_the_gate_withdraws_it() {
    let mut run = at_the_gate(json!({}));
    run.at(6_000).cancel(Some("enough")).check(&format!(
        "
        run cancelled (enough)
        token t1 a cancelled@1 (run_cancelled)
        gate run1 cancelled {PROMPT} until 604805000
        event run_cancelled
        alarm 10006000
        abort t1@1
        announce
        announce run1 cancelled
        ended
    "
    ));
    run.grant("run1", 60_000);
    assert!(run.answer.is_err(), "the gate is closed");
    run.assert_status("cancelled");
}

#[test]
fn a_restart_at_the_gate_withdraws_it_and_begins_with_a_whole_limit() {
    let mut run = at_the_gate(json!({}));
    run.at(6_000).restart().check(&format!(
        "
        run running until 10000
        token t1 a cancelled@1 (run_restarted)
        token t2 a executing@1 watch 36000
        gate run1 cancelled {PROMPT} until 604805000
        event run_restarted
        alarm 10000
        abort t1@1
        dispatch t2@1 {{\"x\":1}}
        announce
        announce run1 cancelled
    "
    ));
    // The next gate has another id, so that a late decision cannot apply to it.
    run.at(10_000).wake("t2@1").assert_status("paused a:executing");
    run.decide("run1", "abort");
    assert!(run.answer.is_err());
    assert_eq!(run.run.gate_of_run().map(|gate| gate.id.as_str()), Some("run2"));
}

#[test]
fn a_run_aborted_at_the_gate_can_be_resumed() {
    let mut run = at_the_gate(json!({}));
    run.decide("run1", "abort");
    run.at(6_000)
        .retry(RetryMode::RetryStep)
        .assert_status("running a:executing");
    assert_eq!(run.run.header.timeout_at, Some(10_000), "a whole limit");
}
