//! Business retries: their idempotency keys, and none after the end of the run.

use curfew::base::failure::FailureClass::ServerError;
use curfew::protocol::task::ReportStatus;
use serde_json::{Value, json};

use super::fake_runtime::PeerResponse::{After, Fails, Failure, Result};
use super::fake_runtime::{FakeRuntime, PeerResponse, START, call, with};

/// `a`, then `b`, whose failure starts the task over.
fn two_steps() -> Value {
    let again = with(call("b"), json!({"on_failure": "retry"}));
    json!({"steps": [call("a"), again], "retry": {"max_attempts": 3}})
}

fn keys(task: Value, more: Value, answers: &[(&str, PeerResponse)]) -> Vec<String> {
    let runtime = FakeRuntime::new(answers);
    runtime.order(task, more);
    runtime.keys.take()
}

#[test]
fn each_business_retry_has_its_own_keys() {
    let answers = [
        ("a", Result(json!(1))),
        ("b", Failure("wrong")),
        ("a", Result(json!(1))),
        ("b", Failure("wrong")),
        ("a", Result(json!(1))),
        ("b", Result(json!(2))),
    ];
    let expected = ["work:a", "work:b", "work:a:2", "work:b:2", "work:a:3", "work:b:3"];
    assert_eq!(keys(two_steps(), json!({}), &answers), expected);
    // The attempt after a lost one has the same keys.
    assert_eq!(keys(two_steps(), json!({}), &answers), expected);
}

#[test]
fn a_retried_call_keeps_its_key() {
    let answers = [
        ("a", Fails(ServerError, None)),
        ("a", Result(json!(1))),
        ("b", Failure("wrong")),
        ("a", Fails(ServerError, None)),
        ("a", Result(json!(1))),
        ("b", Result(json!(2))),
    ];
    let expected = ["work:a", "work:a", "work:b", "work:a:2", "work:a:2", "work:b:2"];
    assert_eq!(keys(two_steps(), json!({}), &answers), expected);
}

#[test]
fn a_resumed_attempt_keeps_its_round() {
    let runtime = FakeRuntime::new(&[
        ("a", Result(json!(1))),
        ("b", Failure("wrong")),
        ("a", Result(json!(1))),
        ("b", Failure("wrong")),
    ]);
    let mut task = two_steps();
    task["retry"]["max_attempts"] = json!(2);
    let checkpoint = runtime.order(task.clone(), json!({})).checkpoint();
    assert_eq!(checkpoint["rounds_before"], json!(1));
    let answers = [
        ("b", Failure("wrong")),
        ("a", Result(json!(1))),
        ("b", Result(json!(2))),
    ];
    assert_eq!(
        keys(task, json!({"resume_from": checkpoint}), &answers),
        ["work:b:2", "work:a:3", "work:b:3"]
    );
}

/// The coordinator ends the call with the run. Until then the run may be extended.
#[test]
fn a_call_under_way_continues_after_run_ends_at() {
    let runtime = FakeRuntime::new(&[("a", After(50_000, json!(1)))]);
    let run = runtime.order(
        json!({"steps": [call("a")]}),
        json!({"run_ends_at": START + 10_000}),
    );
    assert_eq!(run.result.status, ReportStatus::Completed);
    assert_eq!(run.result.gave_up_before, None);
}

#[test]
fn no_call_is_retried_after_the_end_of_the_run() {
    // The first retry comes after one second.
    for (ends_at, is_made) in [(START + 1_001, true), (START + 1_000, false)] {
        let answers = [("a", Fails(ServerError, None)), ("a", Result(json!(1)))];
        let runtime = FakeRuntime::new(&answers[..if is_made { 2 } else { 1 }]);
        let run = runtime.order(json!({"steps": [call("a")]}), json!({"run_ends_at": ends_at}));
        let status = match is_made {
            true => ReportStatus::Completed,
            false => ReportStatus::Failed,
        };
        assert_eq!(run.result.status, status);
        assert_eq!(run.result.gave_up_before, (!is_made).then_some(ends_at));
    }
    // The task is not started over either.
    let task = with(
        two_steps(),
        json!({"retry": {"max_attempts": 2, "backoff": "linear", "initial_delay_ms": 5_000}}),
    );
    let answers = [("a", Result(json!(1))), ("b", Failure("wrong"))];
    let run = FakeRuntime::new(&answers).order(task, json!({"run_ends_at": START + 5_000}));
    assert_eq!(run.result.gave_up_before, Some(START + 5_000));
}

#[test]
fn gave_up_before_is_only_set_for_the_end_of_the_run() {
    // Its own deadline is earlier.
    let run = FakeRuntime::new(&[("a", Fails(ServerError, None))]).order(
        json!({"steps": [call("a")]}),
        json!({"deadline_at": START + 900, "run_ends_at": START + 950}),
    );
    assert_eq!(run.result.gave_up_before, None);
    // One failed step continues, another fails for good.
    let passed_over = with(call("a"), json!({"on_failure": "continue"}));
    let answers = [("a", Fails(ServerError, None)), ("b", Failure("wrong"))];
    let run = FakeRuntime::new(&answers).order(
        json!({"steps": [passed_over, call("b")]}),
        json!({"run_ends_at": START + 900}),
    );
    assert_eq!(
        (run.result.status, run.result.gave_up_before),
        (ReportStatus::Failed, None)
    );
}
