//! Calls through a circuit breaker: their key, when they are made, when they are retried.

use std::cell::RefCell;

use curfew::base::failure::FailureClass::{NotFound, ServerError};
use curfew::task::breaker::{Admission, Permit};
use serde_json::{Value, json};

use super::fake_runtime::PeerResponse::{Fails, Result};
use super::fake_runtime::{FakeRuntime, START, TaskRun, call, check};

fn guarded(breaker: &str, execution: Value) -> Value {
    let mut step = call("a");
    step["action"]["execution"] = execution;
    step["action"]["execution"]["breaker"] = json!(breaker);
    json!({"steps": [step]})
}

fn open(retry_after_ms: u64) -> Admission {
    Admission::Refused {
        retry_after_ms,
        escalated: false,
    }
}

fn run_with(
    admissions: &[Admission],
    answers: &[(&str, super::fake_runtime::PeerResponse)],
    task: Value,
    more: Value,
) -> TaskRun {
    let mut runtime = FakeRuntime::new(answers);
    runtime.admissions = RefCell::new(admissions.to_vec().into());
    runtime.order(task, more)
}

#[test]
fn every_call_is_admitted_and_reported() {
    let run = run_with(
        &[Admission::Call(Permit::Healthy), Admission::Call(Permit::Watched)],
        &[("a", Fails(ServerError, None)), ("a", Result(json!(1)))],
        guarded("pay", json!({})),
        json!({}),
    );
    check(
        &run.trace(),
        r#"
            admit pay
            call a {"n":1}
            report pay Healthy Failed
            retry a server_error peer_failed
            sleep 1000
            admit pay
            call a {"n":1}
            report pay Watched Alive
            step a completed x2 1000 ms
            completed 1
        "#,
    );
}

#[test]
fn an_open_breaker_is_not_called_and_a_retry_waits_for_the_next_trial() {
    let run = run_with(
        &[open(12_000), Admission::Call(Permit::Trial(3))],
        &[("a", Result(json!("back")))],
        guarded("pay", json!({})),
        json!({}),
    );
    check(
        &run.trace(),
        r#"
            admit pay
            retry a breaker_open breaker_open
            sleep 12000
            admit pay
            call a {"n":1}
            report pay Trial(3) Alive
            step a completed x2 12000 ms
            completed "back"
        "#,
    );
}

/// An open breaker does not hide why it is open.
#[test]
fn the_message_of_an_open_breaker_has_the_last_error() {
    let run = run_with(
        &[
            Admission::Call(Permit::Watched),
            open(5_000),
            open(5_000),
            open(5_000),
        ],
        &[("a", Fails(ServerError, None))],
        guarded("pay", json!({})),
        json!({}),
    );
    let trace = run.trace();
    let last = trace.lines().last().unwrap_or_default();
    assert!(
        last.contains(
            "breaker \"pay\" is open: the call was not made; the next trial is in 5s; the last call failed: "
        ),
        "{last}"
    );
}

#[test]
fn three_retries_and_no_more() {
    let run = run_with(
        &[open(10), open(20_000), open(0), open(5_000)],
        &[],
        guarded("pay", json!({})),
        json!({}),
    );
    check(
        &run.trace(),
        "
            admit pay
            retry a breaker_open breaker_open
            sleep 100
            admit pay
            retry a breaker_open breaker_open
            sleep 20000
            admit pay
            retry a breaker_open breaker_open
            sleep 100
            admit pay
            step a failed x4 20200 ms
            failed breaker_open/breaker_open at a: breaker \"pay\" is open: the call was not made; the next trial is in 5s
        ",
    );
}

#[test]
fn without_time_for_the_next_trial_it_fails_at_once() {
    let run = run_with(
        &[open(30_000)],
        &[],
        guarded("pay", json!({})),
        json!({"deadline_at": START + 10_000}),
    );
    let trace = run.trace();
    assert!(
        trace.starts_with("admit pay by 11000\nstep a failed x1 0 ms"),
        "{trace}"
    );
    let why = "not tried again: the next call would begin in 30s, after the attempt's deadline";
    assert!(trace.contains(why), "{trace}");
}

#[test]
fn a_policy_may_make_an_open_breaker_final() {
    let policy = json!({"retry_policy": {"retry_on": ["network"]}});
    let run = run_with(&[open(10)], &[], guarded("pay", policy), json!({}));
    assert!(run.trace().contains("step a failed x1 0 ms"), "{}", run.trace());
}

#[test]
fn a_key_may_be_a_template() {
    let run = run_with(
        &[Admission::Call(Permit::Healthy)],
        &[("a", Fails(NotFound, None))],
        guarded("pay:${input.n}", json!({})),
        json!({}),
    );
    assert!(run.trace().starts_with("admit pay:1\ncall a"), "{}", run.trace());
    assert!(
        run.trace().contains("report pay:1 Healthy Unknown"),
        "{}",
        run.trace()
    );
    for (key, code) in [
        ("${input}", "invalid_breaker"),
        ("a b ${input.n}", "invalid_breaker"),
        ("${input.x.y}", "expression_failed"),
    ] {
        let run = run_with(&[], &[], guarded(key, json!({})), json!({}));
        let error = run.result.error.as_ref().expect("no call was made");
        assert_eq!(error.code, code, "{key}");
    }
}

#[test]
fn an_action_without_a_breaker_asks_none() {
    let run = run_with(
        &[],
        &[("a", Result(json!(1)))],
        json!({"steps": [call("a")]}),
        json!({}),
    );
    assert!(run.trace().starts_with("call a"), "{}", run.trace());
}
