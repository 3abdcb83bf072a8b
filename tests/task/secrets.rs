//! Secrets: which calls get their values, and that no report contains one.

use curfew::base::failure::FailureClass::{BadRequest, Network};
use serde_json::{Value, json};

use super::fake_runtime::PeerResponse::{self, Endless, Result, Says};
use super::fake_runtime::{FakeRuntime, START, TaskRun, call, check, secrets, set, with};

const VALUE: &str = "s3cr3t-\"value\"/ü";

/// A secret that no task here names.
const OTHERS: &str = "others-9f8e7d6c";

fn run_with(task: Value, answers: &[(&str, PeerResponse)], order: Value) -> TaskRun {
    let mut runtime = FakeRuntime::new(answers);
    runtime.secrets = secrets(
        "TOKEN, PIN, UNSET, OF_ANOTHER_TASK",
        &[
            ("TOKEN", VALUE),
            ("PIN", "1234"),
            ("OF_ANOTHER_TASK", OTHERS),
            ("OTHER", "not-listed"),
        ],
    );
    runtime.order(task, order)
}

/// A call whose body is `body`.
fn sending(reference: &str, body: Value) -> Value {
    let mut step = call(reference);
    step["action"]["implementation"]["body"] = body;
    step
}

/// The whole report, as the coordinator gets it.
fn report(run: &TaskRun) -> String {
    let done = &run.result;
    json!([done.output, done.error, done.steps, done.partial, done.checkpoint]).to_string()
}

#[track_caller]
fn check_redacted(run: &TaskRun) {
    let text = report(run);
    for part in ["s3cr3t", "value\\\"/", "1234"] {
        assert!(!text.contains(part), "{part} in {text}");
    }
}

#[test]
fn a_call_gets_the_value_and_the_report_does_not() {
    let echo = json!({"body": {"auth": format!("Bearer {VALUE}"), VALUE: [VALUE, "1234", "x"]}, "url": "/?k=s3cr3t-%22value%22%2F%C3%BC"});
    let run = run_with(
        json!({"steps": [sending("a", json!({"auth": "Bearer ${secret.TOKEN}", "pin": "${secret['PIN']}"}))]}),
        &[("a", Result(echo))],
        json!({}),
    );
    let trace = run.trace();
    let sent = json!({"auth": format!("Bearer {VALUE}"), "pin": "1234"});
    assert!(trace.contains(&format!("call a {{\"n\":1}} {sent}")), "{trace}");
    assert_eq!(
        run.result.output,
        Some(
            json!({"body": {"auth": "Bearer [redacted]", "[redacted]": ["[redacted]", "[redacted]", "x"]}, "url": "/?k=[redacted]"})
        )
    );
    check_redacted(&run);
}

#[test]
fn only_names_that_are_listed_and_set_are_read() {
    for (name, message) in [
        (
            "OTHER",
            "the executor may not read the secret \"OTHER\": its variable CURFEW_SECRETS does not list it",
        ),
        (
            "UNSET",
            "the executor has no secret \"UNSET\", although its variable CURFEW_SECRETS lists it",
        ),
    ] {
        let step = sending("a", json!(format!("${{secret.TOKEN}} ${{secret.{name}}}")));
        let run = run_with(json!({"steps": [step]}), &[], json!({}));
        check(
            &run.trace(),
            &format!("step a failed x1 0 ms\nfailed secret_not_allowed/permanent at a: {message}"),
        );
    }
}

#[test]
fn a_failure_is_redacted_in_the_context_too() {
    let failing = with(
        sending("a", json!("${secret.TOKEN}")),
        json!({"on_failure": "continue"}),
    );
    let steps = json!([
        failing,
        set(
            "b",
            json!({"errors": "${state._errors}", "parts": "${state._errors[0].message.split('-')}"})
        )
    ]);
    let message = format!("status 400: you sent {VALUE}");
    let run = run_with(
        json!({"steps": steps}),
        &[("a", Says(BadRequest, message))],
        json!({}),
    );
    check_redacted(&run);
    assert!(report(&run).contains("you sent [redacted]"), "{}", report(&run));

    let message = format!("{} refused by 1234 {VALUE}", serde_json::json!(VALUE));
    let answers = [("a", Says(Network, message))];
    let once = json!({"steps": [with(sending("a", json!("${secret.TOKEN}")), json!({}))]});
    let run = run_with(once, &answers, json!({"deadline_at": START + 10}));
    check(
        &run.result
            .error
            .as_ref()
            .map(|error| error.message.clone())
            .unwrap_or_default(),
        r#""[redacted]" refused by 1234 [redacted]; not tried again: the next call would begin in 1s, after the attempt's deadline; write a longer "timeout" on the node or the task"#,
    );
}

#[test]
fn outputs_are_redacted() {
    let steps = json!([
        set(
            "a",
            json!({"state.header": "Bearer ${secret.TOKEN}", "kept": "${secret.TOKEN}", "pin": "${secret.PIN}"})
        ),
        sending("b", json!("${state.header}")),
    ]);
    let run = run_with(json!({"steps": steps}), &[("b", Result(json!("ok")))], json!({}));
    assert!(run.trace().contains("Bearer s3cr3t"), "the call gets it");
    assert_eq!(
        run.result.output,
        Some(json!({"kept": "[redacted]", "pin": "[redacted]"}))
    );

    // Artifacts, checkpoint and error of a stopped task are redacted, too.
    let steps = json!([
        set(
            "a",
            json!({"state.header": "Bearer ${secret.TOKEN}", "kept": "${secret.TOKEN}"})
        ),
        sending("b", json!("${state.header}")),
    ]);
    let arrived = format!("so far {VALUE} and s3cr3t-\"val");
    let run = run_with(
        json!({"steps": steps}),
        &[("b", Endless(arrived))],
        json!({"deadline_at": START + 100}),
    );
    check_redacted(&run);
    check(
        &run.left(),
        r#"
            complete a 21 bytes: {"kept":"[redacted]"}
            partial b 32 bytes: so far [redacted] and [redacted]
            after a go on with b: state {"header":"Bearer [redacted]"} output {"kept":"[redacted]"} written true last {"kept":"[redacted]"}
        "#,
    );
}

#[test]
fn an_artifact_is_redacted_before_it_is_cut() {
    let long = format!("{}{VALUE}", "x".repeat((16 << 10) - 2 - 9));
    let steps = json!([
        set(
            "a",
            json!({"x": format!("{}${{secret.TOKEN}}", "x".repeat((16 << 10) - 12))})
        ),
        sending("b", json!("${secret.TOKEN}"))
    ]);
    let run = run_with(
        json!({"steps": steps}),
        &[("b", Says(BadRequest, long))],
        json!({}),
    );
    check_redacted(&run);
}

#[test]
fn an_assertion_that_quotes_it_is_redacted() {
    let step = json!({"ref": "a", "action": {"kind": "assert", "implementation": {"condition": "false", "message": "not ${secret.TOKEN}"}}});
    check(
        &run_with(json!({"steps": [step]}), &[], json!({})).trace(),
        "
            step a failed x1 0 ms
            failed assertion_failed/assertion at a: not [redacted]
        ",
    );
}

#[test]
fn a_resumed_attempt_knows_the_secrets_of_earlier_steps() {
    let steps = json!([sending("a", json!("${secret.TOKEN}")), call("b")]);
    let checkpoint = json!({"next": "b", "state": {"a": 1}, "output": {}, "wrote_output": false, "last_result": 1, "steps": []});
    let run = run_with(
        json!({"steps": steps}),
        &[("b", Result(json!(format!("I remember {VALUE}"))))],
        json!({"resume_from": checkpoint}),
    );
    assert_eq!(run.result.output, Some(json!("I remember [redacted]")));
}

/// Another task has sent them to the peer.
#[test]
fn every_listed_secret_is_redacted_not_only_those_of_the_task() {
    let run = run_with(
        json!({"steps": [call("a")]}),
        &[(
            "a",
            Result(json!({"seen": [OTHERS, format!("Bearer {VALUE}")], OTHERS: 1})),
        )],
        json!({}),
    );
    assert_eq!(
        run.result.output,
        Some(json!({"seen": ["[redacted]", "Bearer [redacted]"], "[redacted]": 1}))
    );

    let steps = json!([call("a"), call("b")]);
    let answers = [
        ("a", Result(json!(format!("kept {OTHERS}")))),
        ("b", Says(BadRequest, format!("status 400: {OTHERS}"))),
    ];
    let run = run_with(json!({"steps": steps}), &answers, json!({}));
    assert!(!report(&run).contains("others-9f"), "{}", report(&run));
    assert!(
        report(&run).contains("status 400: [redacted]"),
        "{}",
        report(&run)
    );
    assert!(run.result.checkpoint.is_some(), "the first step is kept");

    // What had arrived may end inside a value.
    let answers = [("a", Endless(format!("so far {OTHERS} and others-9f8")))];
    let order = json!({"deadline_at": START + 100});
    let run = run_with(json!({"steps": [call("a")]}), &answers, order);
    check(
        &run.left(),
        "partial a 32 bytes: so far [redacted] and [redacted]",
    );
}

#[test]
fn secrets_that_are_empty_or_not_set_are_not_searched() {
    let mut runtime = FakeRuntime::new(&[("a", Result(json!({"text": "", "list": ["x", "UNSET"]})))]);
    runtime.secrets = secrets("EMPTY, UNSET", &[("EMPTY", "")]);
    assert!(runtime.secrets.redactor().is_idle());
    let run = runtime.order(json!({"steps": [call("a")]}), json!({}));
    assert_eq!(
        run.result.output,
        Some(json!({"text": "", "list": ["x", "UNSET"]}))
    );
}

#[test]
fn with_an_invalid_setting_no_secret_can_be_used() {
    let invalid = r#"{"TOKEN": ["a.example"], "KEY": "key-0123456789"}"#;
    let values = [("TOKEN", VALUE), ("KEY", "key-0123456789")];
    let mut runtime = FakeRuntime::new(&[]);
    runtime.secrets = secrets(invalid, &values);
    let step = sending("a", json!("${secret.TOKEN}"));
    check(
        &runtime.order(json!({"steps": [step]}), json!({})).trace(),
        r#"
            step a failed x1 0 ms
            failed secret_not_allowed/permanent at a: the executor's variable CURFEW_SECRETS is invalid, so the secret "TOKEN" cannot be used: "KEY" needs a list of hosts, like ["api.example.com"]; an empty list means every host
        "#,
    );
    // Other tasks go on, and what the setting names is redacted.
    let mut runtime = FakeRuntime::new(&[("a", Result(json!(format!("{VALUE} key-0123456789"))))]);
    runtime.secrets = secrets(invalid, &values);
    let run = runtime.order(json!({"steps": [call("a")]}), json!({}));
    assert_eq!(run.result.output, Some(json!("[redacted] [redacted]")));
}

/// Documents of earlier builds may compute with secrets. Their runs go on as they did.
#[test]
fn an_expression_over_a_secret_in_a_running_task_goes_on() {
    let run = run_with(
        json!({"steps": [sending("a", json!(["${secret.TOKEN + '!'}", "${size(secret['PIN'])}"]))]}),
        &[("a", Result(json!("ok")))],
        json!({}),
    );
    let sent = json!([format!("{VALUE}!"), 4]);
    assert!(run.trace().contains(&sent.to_string()), "{}", run.trace());
    assert_eq!(run.result.output, Some(json!("ok")));
    // It names no secret, so it gets none, and fails where it is evaluated.
    let step = set("a", json!({"x": "${secret}"}));
    check(
        &run_with(json!({"steps": [step]}), &[], json!({})).trace(),
        "
            step a failed x1 0 ms
            failed expression_failed/validation at a: set of step a: expression `secret`: unknown name: secret (known: input, now, output, state)
        ",
    );
}

#[test]
fn an_expression_error_does_not_quote_the_start_of_a_secret() {
    const LONG: &str = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIn0.sig";
    let mut runtime = FakeRuntime::new(&[]);
    runtime.secrets = secrets("JWT", &[("JWT", LONG)]);
    let step = set("a", json!({"n": "${int(secret.JWT)}"}));
    check(
        &runtime.order(json!({"steps": [step]}), json!({})).trace(),
        r#"
            step a failed x1 0 ms
            failed expression_failed/validation at a: set of step a: expression `int(secret.JWT)`: int cannot read "[redacted]…"
        "#,
    );
}
