//! `shell`: the request to a runner, and the meaning of its response.

use curfew::base::failure::{Failure, FailureClass};
use curfew::base::time::Millis;
use curfew::definition::action::ActionKind;
use curfew::definition::shell::Shell;
use curfew::task::redact::Redactor;
use curfew::task::request::Outgoing;
use curfew::task::shell::{CommandEnd, order, outcome};
use serde_json::{Value, json};

use super::action_call::calling;
use super::fake_runtime::with;

const NOW: Millis = 1_000;

fn shell(more: Value) -> Value {
    with(
        json!({"url": "https://runner.example/run", "command": "make"}),
        more,
    )
}

fn ordered(more: Value, input: Value, deadline_at: Option<Millis>) -> Result<Outgoing, Failure> {
    calling("shell", shell(more), input, deadline_at, |call| {
        let ActionKind::Shell(shell) = &call.action.kind else {
            panic!("it is a command");
        };
        order(shell, call, "key", NOW)
    })
}

fn body(more: Value, input: Value, deadline_at: Option<Millis>) -> Value {
    let sent = ordered(more, input, deadline_at).expect("it is fine");
    serde_json::from_str(sent.body.as_deref().expect("it has a body")).expect("it is JSON")
}

#[test]
fn a_command_is_rendered_from_its_templates() {
    let sent =
        ordered(json!({"headers": {"authorization": "Bearer x"}}), json!({}), None).expect("it is fine");
    assert_eq!(
        (&*sent.method, sent.url.as_str()),
        ("POST", "https://runner.example/run")
    );
    let headers: Vec<_> = sent.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(headers, ["content-type", "idempotency-key", "authorization"]);
    assert_eq!(
        body(json!({}), json!({}), None),
        json!({"command": "make", "args": [], "env": {}, "cwd": null, "stdin": null, "timeout_ms": null})
    );
    let whole = json!({"args": ["-j", "${input.n}", "${input.none}", true, {"a": 1}], "cwd": "/srv/${input.n}",
        "env": {"N": "${input.n}", "NONE": null, "LIST": [1]}, "stdin": {"n": "${input.n}"}});
    assert_eq!(
        body(whole, json!({"n": 4, "none": null}), None),
        json!({"command": "make", "args": ["-j", "4", "true", "{\"a\":1}"], "cwd": "/srv/4",
            "env": {"LIST": "[1]", "N": "4"}, "stdin": "{\"n\":4}", "timeout_ms": null})
    );
    for (more, what) in [
        (json!({"args": "-v"}), "args must be an array"),
        (json!({"env": ["A=1"]}), "env must be an object"),
        (json!({"cwd": 5}), "cwd must be a string"),
        (json!({"command": ["make"]}), "command must be a string"),
    ] {
        let failure = ordered(more, json!({}), None).expect_err("it is of no use");
        assert_eq!(
            (&*failure.code, failure.class),
            ("wrong_type", FailureClass::Validation)
        );
        assert!(failure.message.starts_with(what), "{}", failure.message);
    }
}

#[test]
fn a_runner_gets_the_time_that_is_left() {
    for (left_ms, told_ms) in [(60_000, 59_750), (2_500, 2_250), (1_000, 900), (5, 5), (0, 0)] {
        let sent = body(json!({}), json!({}), Some(NOW + left_ms));
        assert_eq!(sent["timeout_ms"], told_ms, "{left_ms}");
    }
    assert_eq!(body(json!({}), json!({}), Some(NOW - 500))["timeout_ms"], 0);
}

fn with_shell<T>(more: Value, use_it: impl FnOnce(&Shell) -> T) -> T {
    calling("shell", shell(more), json!({}), None, |call| {
        let ActionKind::Shell(shell) = &call.action.kind else {
            panic!("it is a command");
        };
        use_it(shell)
    })
}

fn ended(more: Value, answer: Value, left_ms: Option<u64>) -> Result<CommandEnd, Failure> {
    let redactor = Redactor::new(["secret-value".to_string()]);
    with_shell(more, |shell| {
        outcome(shell, &answer.to_string(), &redactor, left_ms)
    })
}

fn output(more: Value) -> Value {
    with(json!({"exit_code": 0, "stdout": "out\n", "stderr": "err"}), more)
}

#[test]
fn an_exit_code_that_is_expected_is_a_result() {
    assert_eq!(
        ended(json!({}), output(json!({})), None),
        Ok(CommandEnd::Result(
            json!({"exit_code": 0, "stdout": "out\n", "stderr": "err", "truncated": false})
        ))
    );
    let cut = ended(
        json!({"expect_exit": [0, 3]}),
        output(json!({"exit_code": 3, "truncated": true})),
        None,
    );
    assert_eq!(
        cut,
        Ok(CommandEnd::Result(
            json!({"exit_code": 3, "stdout": "out\n", "stderr": "err", "truncated": true})
        ))
    );
}

#[test]
fn any_other_end_is_a_failure_with_its_output() {
    for (more, answer, line) in [
        (
            json!({}),
            json!({"exit_code": 2}),
            "exit_code Permanent: the command ended with exit code 2; stderr: err; stdout: out",
        ),
        (
            json!({"expect_exit": 3}),
            json!({"stdout": "", "stderr": "it is secret-value"}),
            "exit_code Permanent: the command ended with exit code 0; stderr: it is [redacted]",
        ),
        (
            json!({}),
            json!({"exit_code": null, "signal": "SIGSEGV", "stdout": ""}),
            "killed Permanent: the command was ended by SIGSEGV; stderr: err",
        ),
        (
            json!({}),
            json!({"exit_code": null}),
            "invalid_response Validation: the runner sent an answer without exit_code",
        ),
        (
            json!({}),
            json!({"stdout": 5}),
            "invalid_response Validation: the runner sent an answer without stdout and stderr",
        ),
    ] {
        let failure = ended(more, output(answer), None).expect_err("it failed");
        assert_eq!(
            format!("{} {:?}: {}", failure.code, failure.class, failure.message),
            line
        );
    }
    let nonsense = with_shell(json!({}), |shell| {
        outcome(shell, "<html>", &Redactor::default(), None)
    });
    assert_eq!(
        nonsense.map_err(|it| it.code),
        Err("invalid_response".to_string())
    );
}

#[test]
fn the_redacted_end_of_a_long_output_is_quoted() {
    let stderr = format!("{}secret-value{}", "x".repeat(50), "y".repeat(995));
    let failure = ended(
        json!({}),
        output(json!({"exit_code": 1, "stderr": stderr, "stdout": ""})),
        None,
    )
    .expect_err("it failed");
    assert!(
        failure.message.contains("; stderr: ...cted]yyy"),
        "{}",
        failure.message
    );
}

#[test]
fn a_command_out_of_time_keeps_its_output() {
    let stopped = || output(json!({"exit_code": null, "signal": "SIGKILL", "timed_out": true}));
    assert_eq!(
        ended(json!({}), stopped(), Some(250)),
        Ok(CommandEnd::OutOfTime("out\nerr".to_string()))
    );
    for left_ms in [None, Some(251)] {
        let failure = ended(json!({}), stopped(), left_ms).expect_err("the runner has a limit of its own");
        assert_eq!(
            (&*failure.code, failure.class),
            ("runner_timeout", FailureClass::Timeout)
        );
    }
}
