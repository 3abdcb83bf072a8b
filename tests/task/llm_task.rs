//! `llm_call` as a step: its own limits, and what is left of an answer that broke off.

use serde_json::{Value, json};

use super::fake_world::Answer::{BreaksOff, Endless, Result};
use super::fake_world::{FakeWorld, check, order, with};

fn ask(reference: &str) -> Value {
    let implementation = json!({"provider": "openai", "model": "m", "prompt": "Hi ${secret.KEY}"});
    json!({"ref": reference, "action": {"kind": "llm_call", "implementation": implementation}})
}

fn world(answers: &[(&str, super::fake_world::Answer)]) -> FakeWorld {
    let mut world = FakeWorld::new(answers);
    world.secrets = vec![("KEY", Some("sk-0123456789"))];
    world
}

#[test]
fn calls_to_models_have_a_limit_of_their_own() {
    let limits = json!({"action_timeouts": {"llm_call_ms": 500, "tool_ms": 300}});
    let told = world(&[("a", Endless("So f".into()))]).order(json!({"steps": [ask("a")]}), limits);
    check(
        &told.story(),
        r#"
            call a {"n":1} by 1500
            step a timed_out x1 500 ms
            timed_out tool_timeout/timeout at a: step a timed out: context deadline exceeded
        "#,
    );
    check(&told.left(), "partial a 4 bytes: So f");
}

#[test]
fn the_text_of_the_last_call_that_broke_off_is_kept() {
    let quick = json!({"retry_policy": {"max_attempts": 2, "initial_delay_ms": 1, "jitter": false}});
    let mut step = ask("a");
    step["action"]["execution"] = quick;
    let answers = [
        ("a", BreaksOff("first")),
        ("a", BreaksOff("the key sk-0123456789, or sk-01")),
    ];
    let told = world(&answers).order(json!({"steps": [step.clone()]}), json!({}));
    check(
        &told.story(),
        r#"
            call a {"n":1}
            retry a network peer_failed
            sleep 1
            call a {"n":1}
            step a failed x2 1 ms
            failed peer_failed/network at a: it broke off
        "#,
    );
    check(
        &told.left(),
        "partial a 33 bytes: the key [redacted], or [redacted]",
    );

    let answers = [("a", BreaksOff("first")), ("a", Result(json!({"text": "whole"})))];
    let told = world(&answers).order(json!({"steps": [step]}), json!({}));
    assert!(
        told.story().ends_with(r#"completed {"text":"whole"}"#),
        "{}",
        told.story()
    );
}

#[test]
fn a_step_that_is_passed_over_leaves_its_text_too() {
    let mut step = with(ask("a"), json!({"on_failure": "continue"}));
    step["action"]["execution"] = json!({"retry_policy": {"max_attempts": 1}});
    let steps = json!([step, super::fake_world::call("b")]);
    let answers = [
        ("a", BreaksOff("half")),
        ("b", super::fake_world::Answer::Failure("no")),
    ];
    let told = world(&answers).order(json!({"steps": steps}), json!({}));
    check(&told.left(), "partial a 4 bytes: half");
    let unknown = order(json!({"steps": [ask("a")]}), json!({}), &[]);
    assert!(
        unknown.story().contains("secret_not_allowed/permanent at a"),
        "{}",
        unknown.story()
    );
}
