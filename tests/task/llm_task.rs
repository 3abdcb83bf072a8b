//! `llm_call` as a step: its own limits, and the text of a response that broke off.

use serde_json::{Value, json};

use super::fake_runtime::PeerResponse::{BreaksOff, Endless, Result};
use super::fake_runtime::{FakeRuntime, check, order, secrets, with};

fn ask(reference: &str) -> Value {
    let implementation = json!({"provider": "openai", "model": "m", "prompt": "Hi ${secret.KEY}"});
    json!({"ref": reference, "action": {"kind": "llm_call", "implementation": implementation}})
}

fn runtime(answers: &[(&str, super::fake_runtime::PeerResponse)]) -> FakeRuntime {
    let mut runtime = FakeRuntime::new(answers);
    runtime.secrets = secrets("KEY", &[("KEY", "sk-0123456789")]);
    runtime
}

#[test]
fn llm_calls_have_their_own_limit() {
    let limits = json!({"action_timeouts": {"llm_call_ms": 500, "tool_ms": 300}});
    let run = runtime(&[("a", Endless("So f".into()))]).order(json!({"steps": [ask("a")]}), limits);
    check(
        &run.trace(),
        r#"
            call a {"n":1} by 1500
            step a timed_out x1 500 ms
            timed_out tool_timeout/timeout at a: step a timed out: context deadline exceeded
        "#,
    );
    check(&run.left(), "partial a 4 bytes: So f");
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
    let run = runtime(&answers).order(json!({"steps": [step.clone()]}), json!({}));
    check(
        &run.trace(),
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
        &run.left(),
        "partial a 33 bytes: the key [redacted], or [redacted]",
    );

    let answers = [("a", BreaksOff("first")), ("a", Result(json!({"text": "whole"})))];
    let run = runtime(&answers).order(json!({"steps": [step]}), json!({}));
    assert!(
        run.trace().ends_with(r#"completed {"text":"whole"}"#),
        "{}",
        run.trace()
    );
}

#[test]
fn a_failed_step_that_continues_keeps_its_text_too() {
    let mut step = with(ask("a"), json!({"on_failure": "continue"}));
    step["action"]["execution"] = json!({"retry_policy": {"max_attempts": 1}});
    let steps = json!([step, super::fake_runtime::call("b")]);
    let answers = [
        ("a", BreaksOff("half")),
        ("b", super::fake_runtime::PeerResponse::Failure("no")),
    ];
    let run = runtime(&answers).order(json!({"steps": steps}), json!({}));
    check(&run.left(), "partial a 4 bytes: half");
    let unknown = order(json!({"steps": [ask("a")]}), json!({}), &[]);
    assert!(
        unknown.trace().contains("secret_not_allowed/permanent at a"),
        "{}",
        unknown.trace()
    );
}
