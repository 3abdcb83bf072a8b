//! The events of tasks: sent when the task completes, kept in a checkpoint, dropped by a business retry.

use curfew::base::compute::Meter;
use curfew::definition::problem::Problems;
use curfew::definition::task::Task;
use curfew::protocol::task::{ActionTimeouts, ReportStatus};
use curfew::task::inline::run_inline;
use curfew::task::run_task::Assignment;
use serde_json::{Value, json};

use super::fake_runtime::PeerResponse::{Endless, Failure, Result};
use super::fake_runtime::{FakeRuntime, TaskRun, call, check, order, secrets, set, with};

fn emit(reference: &str, name: &str, payload: Value) -> Value {
    json!({"ref": reference, "action": {"kind": "emit_event", "implementation": {"name": name, "payload": payload}}})
}

fn events(run: &TaskRun) -> String {
    let events = run.result.events.iter();
    let lines: Vec<String> = events
        .map(|event| format!("{} {}", event.name, event.payload))
        .collect();
    lines.join(", ")
}

fn refused(run: &TaskRun) -> String {
    assert!(run.result.events.is_empty(), "{:?}", run.result);
    let failure = run.result.error.as_ref().expect("it failed");
    format!("{:?} {}: {}", failure.class, failure.code, failure.message)
}

#[test]
fn a_completed_task_reports_its_events() {
    let task = json!({"steps": [
        set("count", json!({"state.n": 2})),
        emit("one", "order.${input.kind}", json!({"n": "${state.n}"})),
        with(emit("none", "never", json!(1)), json!({"condition": "state.n == 0"})),
        {"ref": "two", "action": {"kind": "emit_event", "implementation": {"name": "done"}}},
    ]});
    let run = order(task, json!({"input": {"kind": "paid"}}), &[]);
    assert_eq!(events(&run), r#"order.paid {"n":2}, done null"#);
    assert_eq!(
        run.result.output,
        Some(Value::Null),
        "the last payload is its result"
    );
    let mapped = json!({"steps": [with(emit("one", "a", json!({"n": 1})), json!({"output_mapping": {"output.n": "${result.n}"}}))]});
    assert_eq!(order(mapped, json!({}), &[]).result.output, Some(json!({"n": 1})));
}

#[test]
fn a_failed_task_reports_none() {
    let steps = json!([emit("one", "a", json!(1)), call("b")]);
    let run = order(
        json!({"steps": steps}),
        json!({}),
        &[("b", Failure("status 500"))],
    );
    assert_eq!(run.result.status, ReportStatus::Failed);
    assert_eq!(events(&run), "");
    let schema = json!({"steps": [emit("one", "a", json!(1))], "output_schema": {"type": "string"}});
    assert!(refused(&order(schema, json!({}), &[])).contains("output_schema of the task"));
}

#[test]
fn a_business_retry_drops_the_events_of_the_pass_before() {
    let task = json!({"retry": {"max_attempts": 2, "backoff": "none"}, "steps": [
        emit("one", "a", json!(1)), with(call("b"), json!({"on_failure": "retry"})), emit("two", "c", json!("${state.b}"))]});
    let answers = [("b", Failure("status 500")), ("b", Result(json!(7)))];
    assert_eq!(events(&order(task, json!({}), &answers)), "a 1, c 7");
}

#[test]
fn a_resumed_task_neither_loses_nor_repeats_an_event() {
    let task = json!({"steps": [emit("one", "a", json!(1)), call("b"), emit("two", "c", json!(2)), call("d"), emit("three", "e", json!(3))]});
    let by = json!({"deadline_at": 1_300});
    let first = order(task.clone(), by.clone(), &[("b", Endless("so f".into()))]);
    assert_eq!(events(&first), "", "what did not complete says nothing yet");
    let go_on = |run: &TaskRun| with(by.clone(), json!({"resume_from": run.checkpoint()}));
    let second = order(
        task.clone(),
        go_on(&first),
        &[("b", Result(json!(1))), ("d", Endless("so f".into()))],
    );
    let third = order(task, go_on(&second), &[("d", Result(json!(1)))]);
    assert_eq!(events(&third), "a 1, c 2, e 3");
}

#[test]
fn a_step_that_fails_has_emitted_nothing() {
    let failing = json!({"output_mapping": {"state.x": "${result.missing}"}, "on_failure": "continue"});
    let task = json!({"steps": [with(emit("one", "a", json!({})), failing), emit("two", "b", json!(2))]});
    assert_eq!(events(&order(task, json!({}), &[])), "b 2");
}

#[test]
fn names_are_checked_after_rendering() {
    for (name, shown) in [
        (json!("a b"), r#""a b""#),
        (json!(""), r#""""#),
        (json!(5), "5"),
        (json!({"x": 1}), r#"{"x":1}"#),
    ] {
        let task = json!({"steps": [emit("one", "${input.name}", json!(1))]});
        let run = order(task, json!({"input": {"name": name}}), &[]);
        let expected = format!(
            "Validation invalid_event: step one cannot emit {shown}: an event's name is 1-128 characters of \
             A-Z, a-z, 0-9, -, _ and ."
        );
        assert_eq!(refused(&run), expected);
    }
    let missing = json!({"steps": [emit("one", "a", json!("${input.nothing}"))]});
    assert!(
        refused(&order(missing, json!({}), &[]))
            .starts_with("Validation expression_failed: payload of step one")
    );
}

#[test]
fn events_have_a_limit_of_number_and_of_size() {
    let steps: Vec<Value> = (0..100).map(|n| emit(&format!("s{n}"), "a", json!(n))).collect();
    assert_eq!(
        order(json!({"steps": steps}), json!({}), &[]).result.events.len(),
        100
    );
    // More events than a task has steps, as a checkpoint may hold them.
    let stopped = order(
        json!({"steps": steps[..99].iter().cloned().chain([call("b")]).collect::<Vec<_>>()}),
        json!({}),
        &[("b", Failure("status 500"))],
    );
    let more = json!({"steps": [call("b"), emit("x", "a", json!(1)), emit("y", "a", json!(1))]});
    let run = order(
        more,
        json!({"resume_from": stopped.checkpoint()}),
        &[("b", Result(json!(1)))],
    );
    assert_eq!(
        refused(&run),
        "Validation limit_exceeded: a task may emit 100 events"
    );
    let large = json!({"input": {"text": "x".repeat(300_000)}});
    let task = json!({"steps": [emit("one", "a", json!("${input.text}")), emit("two", "b", json!("${input.text}"))]});
    assert_eq!(
        refused(&order(task, large, &[])),
        "Validation limit_exceeded: with event b the task has emitted 600004 bytes; the limit is 524288"
    );
}

/// An earlier step has put the secret into the context.
#[test]
fn events_are_redacted() {
    let mut runtime = FakeRuntime::new(&[]);
    runtime.secrets = secrets("KEY", &[("KEY", "s3cret-value")]);
    let task = json!({"steps": [set("copy", json!({"state.key": "${secret.KEY}"})), emit("one", "a", json!({"k": "it is ${state.key}"}))]});
    let run = runtime.order(task, json!({}));
    check(&events(&run), r#"a {"k":"it is [redacted]"}"#);
}

#[test]
fn a_pure_task_emits_inside_the_coordinator() {
    let document = json!({"id": "t", "steps": [emit("one", "a", json!({"n": "${input.n}"}))]});
    let problems = Problems::prechecked();
    let task = Task::read(&document, "", &problems).expect("a task");
    assert!(task.is_pure());
    let done = run_inline(
        1_000,
        &Meter::default(),
        Assignment {
            task: &task,
            input: &json!({"n": 3}),
            deadline_at: None,
            run_ends_at: None,
            resume_from: None,
            action_timeouts: ActionTimeouts::default(),
            callback: Value::Null,
            trace: None,
        },
    );
    assert_eq!(done.events.len(), 1);
    assert_eq!(done.events[0].payload, json!({"n": 3}));
}
