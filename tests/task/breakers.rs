//! Calls that go through a breaker: which key, when they are made, when another is tried.

use std::cell::RefCell;

use curfew::base::failure::FailureClass::{NotFound, ServerError};
use curfew::task::breaker::{Admission, Permit};
use serde_json::{Value, json};

use super::fake_world::Answer::{Fails, Result};
use super::fake_world::{FakeWorld, START, Told, call, check};

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

fn run(
    admissions: &[Admission],
    answers: &[(&str, super::fake_world::Answer)],
    task: Value,
    more: Value,
) -> Told {
    let mut world = FakeWorld::new(answers);
    world.admissions = RefCell::new(admissions.to_vec().into());
    world.order(task, more)
}

#[test]
fn every_call_asks_and_tells_how_it_went() {
    let told = run(
        &[Admission::Call(Permit::Healthy), Admission::Call(Permit::Watched)],
        &[("a", Fails(ServerError, None)), ("a", Result(json!(1)))],
        guarded("pay", json!({})),
        json!({}),
    );
    check(
        &told.story(),
        r#"
            ask pay
            call a {"n":1}
            tell pay Healthy Failed
            retry a server_error peer_failed
            sleep 1000
            ask pay
            call a {"n":1}
            tell pay Watched Alive
            step a completed x2 1000 ms
            completed 1
        "#,
    );
}

#[test]
fn an_open_breaker_is_not_called_and_a_retry_waits_for_the_next_trial() {
    let told = run(
        &[open(12_000), Admission::Call(Permit::Trial(3))],
        &[("a", Result(json!("back")))],
        guarded("pay", json!({})),
        json!({}),
    );
    check(
        &told.story(),
        r#"
            ask pay
            retry a breaker_open breaker_open
            sleep 12000
            ask pay
            call a {"n":1}
            tell pay Trial(3) Alive
            step a completed x2 12000 ms
            completed "back"
        "#,
    );
}

#[test]
fn three_retries_and_no_more() {
    let told = run(
        &[open(10), open(20_000), open(0), open(5_000)],
        &[],
        guarded("pay", json!({})),
        json!({}),
    );
    check(
        &told.story(),
        "
            ask pay
            retry a breaker_open breaker_open
            sleep 100
            ask pay
            retry a breaker_open breaker_open
            sleep 20000
            ask pay
            retry a breaker_open breaker_open
            sleep 100
            ask pay
            step a failed x4 20200 ms
            failed breaker_open/breaker_open at a: breaker \"pay\" is open: the call was not made; the next trial is in 5s
        ",
    );
}

#[test]
fn without_the_time_to_wait_it_fails_at_once_and_says_so() {
    let told = run(
        &[open(30_000)],
        &[],
        guarded("pay", json!({})),
        json!({"deadline_at": START + 10_000}),
    );
    let story = told.story();
    assert!(
        story.starts_with("ask pay by 11000\nstep a failed x1 0 ms"),
        "{story}"
    );
    assert!(story.ends_with("could not finish before the deadline"), "{story}");
}

#[test]
fn a_policy_may_say_that_an_open_breaker_is_final() {
    let policy = json!({"retry_policy": {"retry_on": ["network"]}});
    let told = run(&[open(10)], &[], guarded("pay", policy), json!({}));
    assert!(told.story().contains("step a failed x1 0 ms"), "{}", told.story());
}

#[test]
fn a_key_is_made_of_what_the_action_works_on() {
    let told = run(
        &[Admission::Call(Permit::Healthy)],
        &[("a", Fails(NotFound, None))],
        guarded("pay:${input.n}", json!({})),
        json!({}),
    );
    assert!(told.story().starts_with("ask pay:1\ncall a"), "{}", told.story());
    assert!(
        told.story().contains("tell pay:1 Healthy Unknown"),
        "{}",
        told.story()
    );
    for (key, code) in [
        ("${input}", "invalid_breaker"),
        ("a b ${input.n}", "invalid_breaker"),
        ("${input.x.y}", "expression_failed"),
    ] {
        let told = run(&[], &[], guarded(key, json!({})), json!({}));
        let error = told.done.error.as_ref().expect("no call was made");
        assert_eq!(error.code, code, "{key}");
    }
}

#[test]
fn an_action_without_one_asks_nobody() {
    let told = run(
        &[],
        &[("a", Result(json!(1)))],
        json!({"steps": [call("a")]}),
        json!({}),
    );
    assert!(told.story().starts_with("call a"), "{}", told.story());
}
