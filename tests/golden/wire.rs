//! The messages between coordinator and executor, and the API views of a run, byte for byte.

use curfew::api::views;
use curfew::base::failure::FailureClass;
use curfew::protocol::task::{
    ActionTimeouts, Artifact, Checkpoint, Emitted, PROGRESS_LINE, ReportStatus, RetryReport, StepProgress,
    StepReport, StepStatus, TaskOrder, TaskProgress, TaskReport,
};
use curfew::storage::rows::TokenRow;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::rows::{failure, full_header, full_token, midway};
use super::{check_json, read};
use crate::run::driver::Driver;
use crate::run::progress::progress;

#[test]
fn task_orders() {
    let (run, _) = midway();
    let task = &run.run.snapshot().tasks[0].text;
    let raw = |text| serde_json::from_str::<&RawValue>(text).expect("this is JSON");
    for (name, deadline_at) in [("order_full.json", Some(61_500)), ("order_minimal.json", None)] {
        let order = TaskOrder {
            callback_url: None,
            run_id: "run-1",
            token_id: "t1",
            epoch: 2,
            task,
            input: raw(r#"{"to":"Ada"}"#),
            deadline_at,
            run_ends_at: None,
            idempotency_key: "run-1:t1",
            resume_from: None,
            action_timeouts: None,
            traceparent: None,
            records_spans: false,
        };
        check_json(name, &json!(order));
        let text = read(name);
        let again: TaskOrder = serde_json::from_str(&text).expect("an executor can read its order");
        assert_eq!((again.epoch, again.deadline_at), (2, deadline_at));
        assert!(again.resume_from.is_none() && again.action_timeouts.is_none());
    }
}

fn checkpoint() -> Checkpoint {
    Checkpoint {
        next: "post".into(),
        state: json!({"load": {"status": 200}}),
        output: json!({"count": 1}),
        wrote_output: true,
        last_result: json!({"status": 200}),
        steps: vec![StepReport {
            reference: "load".into(),
            status: StepStatus::Completed,
            attempts: 1,
            duration_ms: 40,
            retries: Vec::new(),
            started_at: None,
            span_id: None,
            gen_ai: None,
        }],
        events: Vec::new(),
        rounds_before: 0,
    }
}

#[test]
fn an_order_with_a_checkpoint() {
    let text = json!(checkpoint()).to_string();
    let raw = |text| serde_json::from_str::<&RawValue>(text).expect("this is JSON");
    let timeouts = ActionTimeouts {
        llm_call_ms: Some(120_000),
        tool_ms: Some(300_000),
    };
    let order = TaskOrder {
        callback_url: Some("https://curfew.example/v1/callbacks/run-1~t1~1~5e0f"),
        run_id: "run-1",
        token_id: "t1",
        epoch: 3,
        task: raw("{}"),
        input: raw("{}"),
        deadline_at: Some(61_500),
        run_ends_at: Some(3_601_000),
        idempotency_key: "run-1:t1",
        resume_from: Some(raw(&text)),
        action_timeouts: Some(timeouts),
        traceparent: None,
        records_spans: false,
    };
    check_json("order_with_checkpoint.json", &json!(order));
    let text = read("order_with_checkpoint.json");
    let again: TaskOrder = serde_json::from_str(&text).expect("an executor can read its order");
    assert_eq!(again.checkpoint(), Some(checkpoint()));
    assert_eq!(again.action_timeouts, Some(timeouts));
}

#[test]
fn task_reports() {
    let step = |status, attempts| StepReport {
        reference: "post".into(),
        status,
        attempts,
        duration_ms: 12,
        retries: Vec::new(),
        started_at: None,
        span_id: None,
        gen_ai: None,
    };
    let report = |status, output: Option<Value>, error, steps| TaskReport {
        token_id: "t2".into(),
        epoch: 1,
        status,
        output,
        error,
        steps,
        partial: Vec::new(),
        checkpoint: None,
        events: Vec::new(),
        gave_up_before: None,
    };
    let artifact = |name: &str, complete, bytes, text: &str| Artifact {
        name: name.into(),
        complete,
        bytes,
        text: text.into(),
    };
    let mut partial = report(
        ReportStatus::TimedOut,
        None,
        Some(failure()),
        vec![step(StepStatus::TimedOut, 1)],
    );
    partial.partial = vec![
        artifact("load", true, 14, r#"{"status":200}"#),
        artifact("post", false, 9, "so far so"),
    ];
    partial.checkpoint = Some(Box::new(checkpoint()));
    let mut retried = step(StepStatus::Completed, 3);
    retried.retries = [
        (FailureClass::RateLimited, "http_429", 60_000),
        (FailureClass::ProviderTransient, "http_529", 1_250),
    ]
    .map(|(class, code, delay_ms)| RetryReport {
        class,
        code: code.into(),
        delay_ms,
        after_ms: None,
    })
    .to_vec();
    let emitted = |name: &str, payload| Emitted {
        name: name.into(),
        payload,
    };
    let events = vec![
        emitted("order.paid", json!({"id": 7})),
        emitted("done", Value::Null),
    ];
    let mut emitting = report(
        ReportStatus::Completed,
        Some(json!({"id": 7})),
        None,
        vec![step(StepStatus::Completed, 1)],
    );
    emitting.events = events.clone();
    let mut emitting_later = partial.clone();
    emitting_later.checkpoint = Some(Box::new(Checkpoint {
        events,
        ..checkpoint()
    }));
    for (name, report) in [
        ("report_emitting.json", emitting),
        ("report_partial_emitting.json", emitting_later),
        (
            "report_retried.json",
            report(ReportStatus::Completed, Some(json!("done")), None, vec![retried]),
        ),
        ("report_partial.json", partial),
        (
            "report_completed.json",
            report(
                ReportStatus::Completed,
                Some(json!({"status": 200})),
                None,
                vec![step(StepStatus::Completed, 1), step(StepStatus::Skipped, 0)],
            ),
        ),
        (
            "report_failed.json",
            report(
                ReportStatus::Failed,
                None,
                Some(failure()),
                vec![step(StepStatus::Failed, 1)],
            ),
        ),
        (
            "report_timed_out.json",
            report(
                ReportStatus::TimedOut,
                None,
                Some(failure()),
                vec![step(StepStatus::TimedOut, 1)],
            ),
        ),
    ] {
        check_json(name, &json!(report));
        let again: TaskReport = serde_json::from_str(&read(name)).expect("a report can be read");
        assert_eq!(again, report, "{name}");
    }
}

/// A change after an earlier one, and the least that there can be.
#[test]
fn task_progress() {
    let of = |progress: StepProgress| TaskProgress {
        token_id: "t2".into(),
        epoch: 1,
        progress,
    };
    let mut change = progress(2, "Dear A");
    change.keep = 1;
    change.partial.remove(0);
    let mut least = progress(1, "");
    least.partial.clear();
    let lines = [of(change), of(least)];
    check_json("task_progress.json", &json!(lines));
    let again: Vec<TaskProgress> = serde_json::from_str(&read("task_progress.json")).expect("it can be read");
    assert_eq!(again, lines);
    assert_eq!(PROGRESS_LINE, "progress ");
}

/// An executor of a newer build may send more fields, one of an older build fewer.
#[test]
fn a_report_is_read_leniently() {
    let text = r#"{"token_id": "t1", "epoch": 1, "status": "completed", "news": {"partial": true}}"#;
    let report: TaskReport = serde_json::from_str(text).expect("unknown fields are passed over");
    assert_eq!((report.output, report.steps), (None, Vec::new()));
}

#[test]
fn views_of_a_run() {
    let (run, _) = midway();
    check_json("view_run_running.json", &views::run(&run.run, 5_000));
    let (mut ended, _) = midway();
    ended.run.header.started_by = Some("ada".into());
    ended.at(9_000).cancel(Some("not needed"));
    check_json("view_run_cancelled.json", &views::run(&ended.run, 99_000));
    check_json("view_summary_running.json", &views::summary(&run.run.header));
    check_json("view_summary_ended.json", &views::summary(&full_header(&run)));
}

#[test]
fn views_of_tokens() {
    let (run, _) = midway();
    let view = |driver: &Driver| {
        let token = full_token(driver);
        views::token(token.id.0, token.status, TokenRow::of(&token, &run.run), None)
    };
    check_json("view_token_full.json", &view(&run));
    let live = run.run.live_tokens().next().expect("one token is live");
    let minimal = views::token(live.id.0, live.status, TokenRow::of(live, &run.run), None);
    check_json("view_token_live.json", &minimal);
}
