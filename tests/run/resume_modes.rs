//! The three modes of a resume: with the checkpoints of the attempts, without them, or after a person's decision.

use curfew::protocol::task::{Checkpoint, TaskReport};
use curfew::run::{Event, GateStatus, PauseReason, RetryMode, RunStatus, TokenId};
use serde_json::{Value, json};

use super::driver::{Driver, failed};
use super::graphs::{three, with};

fn checkpoint() -> Box<Checkpoint> {
    Box::new(Checkpoint {
        next: "second".into(),
        state: json!({"first": 1}),
        output: json!({}),
        wrote_output: false,
        last_result: json!(1),
        steps: Vec::new(),
        events: Vec::new(),
        rounds_before: 0,
    })
}

/// An attempt that failed after its first step.
fn failed_midway(attempt: &str) -> TaskReport {
    TaskReport {
        checkpoint: Some(checkpoint()),
        ..failed(attempt)
    }
}

/// `b` writes to the state, and then its condition fails.
fn writing() -> Value {
    json!({
        "timeout_ms": 60_000,
        "nodes": [{"id": "a", "action_id": "work", "output_mapping": {"state.n": "${result}"}},
                  {"id": "b", "action_id": "work",
                   "output_mapping": {"state.n": "${result}", "output.seen": "${state.n}"}},
                  {"id": "c", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"},
                        {"from_node_id": "b", "to_node_id": "c", "condition": "state.n.go"}],
    })
}

fn one() -> Value {
    json!({"timeout_ms": 60_000, "nodes": [{"id": "a", "action_id": "work"}]})
}

#[test]
fn retry_step_keeps_the_checkpoint_and_is_the_same_work_to_a_peer() {
    let mut run = Driver::start(one());
    run.report(failed_midway("t1@1"))
        .reload()
        .retry(RetryMode::RetryStep);
    let order = run.order();
    assert_eq!(order.checkpoint, Some(checkpoint()));
    assert_eq!((order.token, order.work_of), (TokenId(2), TokenId(1)));
    // A lost attempt keeps the checkpoint.
    run.reload().at(2_000).load();
    assert_eq!(run.order().checkpoint, Some(checkpoint()));
    assert_eq!(run.order().work_of, TokenId(1));
}

#[test]
fn discard_and_retry_drops_the_checkpoint_and_is_new_work() {
    let mut run = Driver::start(one());
    run.report(failed_midway("t1@1"))
        .reload()
        .retry(RetryMode::DiscardAndRetry);
    let order = run.order();
    assert_eq!(order.checkpoint, None);
    assert_eq!((order.token, order.work_of), (TokenId(2), TokenId(2)));
}

#[test]
fn retry_step_leaves_the_state_as_it_is() {
    let mut run = Driver::start(writing());
    run.succeed("t1@1", json!(1)).succeed("t2@1", json!(2));
    assert_eq!(run.run.header.status, RunStatus::Failed);
    run.reload().retry(RetryMode::RetryStep);
    assert_eq!(run.state(), &json!({"n": 2}));
}

#[test]
fn discard_and_retry_undoes_the_writes_of_the_failed_token() {
    let mut run = Driver::start(writing());
    run.succeed("t1@1", json!(1)).succeed("t2@1", json!(2));
    assert_eq!(run.state(), &json!({"n": 2}));
    run.reload().at(2_000).retry(RetryMode::DiscardAndRetry).check(
        r#"
        run running until 62000
        uncontext output.seen
        context state.n = 1
        token t3 b executing@1 watch 32000 (resumed)
        event run_retried discard_and_retry
        dispatch t3@1 {"x":1}
        announce
    "#,
    );
    assert_eq!(run.reload().state(), &json!({"n": 1}));
}

#[test]
fn only_a_chosen_token_starts_over() {
    let mut document = three(json!({}));
    document["timeout_ms"] = json!(60_000);
    let mut run = Driver::start(document);
    run.report(failed_midway("t2@1"));
    assert_eq!(run.run.header.status, RunStatus::Failed);
    run.reload().retry_token(RetryMode::DiscardAndRetry, "t3");
    let works: Vec<(TokenId, bool)> = run
        .decision
        .commands()
        .iter()
        .filter_map(|command| match command {
            curfew::run::Command::DispatchTask(order) => Some((order.work_of, order.checkpoint.is_some())),
            _others => None,
        })
        .collect();
    assert_eq!(
        works,
        [(TokenId(2), true), (TokenId(6), false), (TokenId(4), false)],
        "t3 is another piece of work now, the others continue"
    );
}

#[test]
fn a_chosen_token_must_be_resumable() {
    let mut run = Driver::start(writing());
    run.succeed("t1@1", json!(1)).fail("t2@1");
    for token in ["t1", "t9"] {
        run.retry_token(RetryMode::RetryStep, token).check(&format!(
            "rejected not_resumable token {token} is none of those that can go on: t2"
        ));
    }
    run.retry_token(RetryMode::RetryStep, "t2")
        .assert_status("running b:executing");
}

#[test]
fn escalate_opens_a_gate_and_begins_nothing() {
    let mut run = Driver::start(one());
    run.report(failed_midway("t1@1"))
        .reload()
        .at(9_000)
        .retry(RetryMode::Escalate)
        .check(
            r#"
        run paused until 69000 held by escalation
        token t2 a pending@0 (resumed)
        gate run1 open "The run ended: status 500. Shall it go on from there?" retry|fail until 604809000
        event run_retried escalate
        announce
        announce run1 open
    "#,
        );
    run.resume().check("rejected held_by escalation run1");
    run.decide("run1", "extend")
        .check("rejected invalid_decision /choice: \"extend\" is none of retry, fail");
    // Only the gate has a timer.
    run.reload()
        .at(400_000)
        .wake("")
        .assert_status("paused a:pending");
    run.at(500_000)
        .decide("run1", "retry")
        .assert_status("running a:executing");
    assert_eq!(
        run.run.header.timeout_at,
        Some(560_000),
        "a whole limit from here on"
    );
    assert_eq!(run.order().checkpoint, Some(checkpoint()));
    assert_eq!(run.order().work_of, TokenId(1));
}

#[test]
fn a_person_may_refuse_at_an_escalation() {
    let mut run = Driver::start(one());
    run.report(failed_midway("t1@1"))
        .retry(RetryMode::Escalate)
        .at(9_000)
        .decide("run1", "fail");
    run.assert_status("failed escalation_refused/permanent: a person decided not to go on");
    // The run can still be resumed.
    run.reload()
        .retry(RetryMode::RetryStep)
        .assert_status("running a:executing");
    assert_eq!(
        run.order().checkpoint,
        Some(checkpoint()),
        "nothing was lost meanwhile"
    );
    assert_eq!(run.order().work_of, TokenId(1));
}

#[test]
fn an_undecided_escalation_ends_at_its_deadline() {
    let mut document = one();
    document["gate"] = json!({"timeout_ms": 5_000});
    let mut run = Driver::start(document.clone());
    run.fail("t1@1").retry(RetryMode::Escalate).at(6_000).wake("");
    run.assert_status("timed_out gate_timeout/timeout: nobody decided in time");
    assert_eq!(
        run.run.gates().next().map(|gate| gate.status),
        Some(GateStatus::TimedOut)
    );
    document["gate"]["on_timeout"] = json!("fail");
    let mut run = Driver::start(document);
    run.fail("t1@1")
        .retry(RetryMode::Escalate)
        .reload()
        .at(6_000)
        .wake("");
    run.assert_status("failed gate_timeout/timeout: nobody decided in time");
    run.at(7_000)
        .retry(RetryMode::RetryStep)
        .assert_status("running a:executing");
}

#[test]
fn an_escalated_run_can_be_cancelled_and_restarted() {
    let mut run = Driver::start(one());
    run.fail("t1@1")
        .retry(RetryMode::Escalate)
        .cancel(None)
        .assert_status("cancelled");
    assert_eq!(
        run.run.gates().next().map(|gate| gate.status),
        Some(GateStatus::Cancelled)
    );
    let mut run = Driver::start(one());
    run.fail("t1@1")
        .retry(RetryMode::Escalate)
        .restart()
        .assert_status("running a:executing");
    assert_eq!(run.run.header.pause_reasons.len(), 0);
}

#[test]
fn an_extension_during_an_escalation_counts_after_it() {
    let mut run = Driver::start(one());
    run.fail("t1@1")
        .at(9_000)
        .retry(RetryMode::Escalate)
        .extend(30_000)
        .assert_status("paused a:pending");
    assert_eq!(
        run.run.header.pause_reasons.iter().collect::<Vec<_>>(),
        [&PauseReason::Escalation]
    );
    run.at(20_000).decide("run1", "retry");
    assert_eq!(run.run.header.timeout_at, Some(110_000));
}

#[test]
fn the_prompt_names_the_reason_of_the_end() {
    let mut run = Driver::start(one());
    run.at(61_000).wake("t1@1").retry(RetryMode::Escalate);
    let gate = run.run.gate_of_run().expect("a gate");
    assert_eq!(
        gate.prompt,
        json!("The run ended: its time was over. Shall it go on from there?")
    );
}

#[test]
fn a_retry_without_a_past_is_refused() {
    let mut run = Driver::start(with(one(), json!({})));
    run.fail("t1@1").feed(Event::RetryRequested {
        by: None,
        mode: RetryMode::RetryStep,
        token: None,
        version: None,
        past: Box::default(),
        rows: Box::default(),
    });
    run.check("rejected not_resumable nothing was under way when the run ended; restart it");
}
