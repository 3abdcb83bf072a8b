//! What a task writes of its progress while its calls are under way.

use curfew::protocol::task::StepProgress;
use curfew::task::progress::ProgressCell;
use serde_json::{Value, json};

use super::fake_runtime::PeerResponse::{BreaksOff, Endless, Failure, Result};
use super::fake_runtime::{FakeRuntime, PeerResponse, call, check, secrets, set, with};

/// Everything that is sent while the task runs, one line each.
fn sent(task: Value, more: Value, answers: &[(&str, PeerResponse)]) -> String {
    let mut runtime = FakeRuntime::new(answers);
    runtime.progress = Some(ProgressCell::default());
    runtime.secrets = secrets("KEY", &[("KEY", "sk-0123456789")]);
    runtime.order(task, more);
    let lines = runtime.sent.borrow();
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn line(progress: &StepProgress) -> String {
    let mut line = format!(
        "{} {} of {} call {}",
        progress.step_ref, progress.step_index, progress.steps_total, progress.attempt
    );
    if progress.keep > 0 {
        line += &format!(" keep {}", progress.keep);
    }
    for artifact in &progress.partial {
        let whole = if artifact.complete { "complete" } else { "partial" };
        line += &format!(
            "; {whole} {} {}: {}",
            artifact.name, artifact.bytes, artifact.text
        );
    }
    line
}

#[test]
fn each_call_shows_its_step_and_the_results_before_it() {
    let steps = json!([call("a"), set("b", json!({"x": 2})), call("c"), call("d")]);
    let answers = [
        ("a", Result(json!("one sk-0123456789"))),
        ("c", Result(json!({"three": 3}))),
        ("d", Endless("fo".into())),
    ];
    check(
        &sent(json!({"steps": steps}), json!({"deadline_at": 9_000}), &answers),
        r#"
            a 0 of 4 call 1
            c 2 of 4 call 1; complete a 14: one [redacted]; complete b 7: {"x":2}
            d 3 of 4 call 1 keep 2; complete c 11: {"three":3}
            d 3 of 4 call 1 keep 3; partial d 2: fo
        "#,
    );
}

#[test]
fn a_call_that_is_made_again_begins_without_the_text_before() {
    let quick = json!({"retry_policy": {"max_attempts": 3, "initial_delay_ms": 1, "jitter": false}});
    let mut step = call("a");
    step["action"]["execution"] = quick;
    let answers = [
        ("a", BreaksOff("the key sk-0123")),
        ("a", BreaksOff("the key sk-0123456789 ok")),
        ("a", Result(json!(1))),
    ];
    check(
        &sent(json!({"steps": [step]}), json!({}), &answers),
        "
            a 0 of 1 call 1
            a 0 of 1 call 1; partial a 15: the key
            a 0 of 1 call 2
            a 0 of 1 call 2; partial a 24: the key [redacted] ok
            a 0 of 1 call 3
        ",
    );
}

#[test]
fn a_business_retry_begins_without_the_results_before() {
    let again = with(call("b"), json!({"on_failure": "retry"}));
    let task = json!({"steps": [call("a"), again], "retry": {"max_attempts": 2, "backoff": "none"}});
    let answers = [
        ("a", Result(json!("one"))),
        ("b", Failure("no luck")),
        ("a", Result(json!("two"))),
        ("b", Result(json!("three"))),
    ];
    check(
        &sent(task, json!({}), &answers),
        "
            a 0 of 2 call 1
            b 1 of 2 call 1; complete a 3: one
            a 0 of 2 call 1
            b 1 of 2 call 1; complete a 3: two
        ",
    );
}

/// An attempt that resumes has no results of the steps before it.
#[test]
fn a_resumed_task_shows_where_it_goes_on() {
    let checkpoint =
        json!({"next": "b", "state": {}, "output": {}, "wrote_output": false, "last_result": 1, "steps": []});
    let task = json!({"steps": [call("a"), call("b")]});
    check(
        &sent(
            task,
            json!({"resume_from": checkpoint}),
            &[("b", Result(json!(2)))],
        ),
        "b 1 of 2 call 1",
    );
}
