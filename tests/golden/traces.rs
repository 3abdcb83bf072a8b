//! Trace context in orders, reports, rows and starts, and the pages that a trace is made of.

use curfew::base::trace::TraceParent;
use curfew::protocol::run::RunRequest;
use curfew::protocol::task::{GenAi, GenAiOperation, RetryReport, StepReport, StepStatus, TaskOrder};
use curfew::protocol::trace::{TraceCursor, TracePage};
use curfew::storage::rows::HeaderRow;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::rows::midway;
use super::{check_json, read};
use crate::trace::samples::{CALLER, pages};

#[test]
fn an_order_with_a_trace_context() {
    let raw = |text| serde_json::from_str::<&RawValue>(text).expect("this is JSON");
    let order = |records_spans| TaskOrder {
        run_id: "run-1",
        token_id: "t1",
        epoch: 1,
        task: raw("{}"),
        input: raw("{}"),
        deadline_at: None,
        run_ends_at: None,
        idempotency_key: "run-1:t1",
        resume_from: None,
        action_timeouts: None,
        callback_url: None,
        traceparent: Some(CALLER),
        records_spans,
    };
    check_json("order_traced.json", &json!([order(true), order(false)]));
    let text = read("order_traced.json");
    let again: Vec<TaskOrder> = serde_json::from_str(&text).expect("an executor can read its orders");
    let read: Vec<_> = again
        .iter()
        .map(|order| (order.traceparent, order.records_spans))
        .collect();
    assert_eq!(read, [(Some(CALLER), true), (Some(CALLER), false)]);
}

#[test]
fn steps_of_a_traced_report() {
    let step = StepReport {
        reference: "ask".into(),
        status: StepStatus::Completed,
        attempts: 2,
        duration_ms: 12,
        retries: vec![RetryReport {
            class: curfew::base::failure::FailureClass::Network,
            code: "network".into(),
            delay_ms: 1_000,
            after_ms: Some(40),
        }],
        started_at: Some(1_700_000_000_000),
        span_id: TraceParent::parse(CALLER).map(|parent| parent.span_id),
        gen_ai: Some(Box::new(GenAi {
            operation: GenAiOperation::Chat,
            provider: Some("openai".into()),
            request_model: Some("m-1".into()),
            response_model: Some("m-1-2026".into()),
            input_tokens: Some(7),
            output_tokens: Some(3),
            tool: None,
        })),
    };
    let tool = json!({"operation": "execute_tool", "tool": "search"});
    let tool: GenAi = serde_json::from_value(tool).expect("fields are optional");
    check_json("report_steps_traced.json", &json!([step, tool]));
    let stored: Vec<Value> = serde_json::from_str(&read("report_steps_traced.json")).expect("a list");
    let again: StepReport = serde_json::from_value(stored[0].clone()).expect("a step can be read");
    assert_eq!(again, step);
}

#[test]
fn the_header_of_a_run_that_continues_a_trace() {
    let (run, _) = midway();
    let mut header = run.run.header.clone();
    header.traceparent = TraceParent::parse(CALLER);
    check_json("header_traced.json", &json!(HeaderRow::of(&header)));
    let row: HeaderRow = serde_json::from_str(&read("header_traced.json")).expect("a header can be read");
    let again = row.into_header();
    assert_eq!(
        again.traceparent.map(|parent| parent.to_string()).as_deref(),
        Some(CALLER)
    );
    assert_eq!(again.trace_id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
}

#[test]
fn requests_for_a_trace_and_their_pages() {
    let requests = [
        RunRequest::ReadTrace {
            end: None,
            cursor: TraceCursor::START,
        },
        RunRequest::ReadTrace {
            end: Some(2),
            cursor: TraceCursor::Tokens(96),
        },
    ];
    check_json("trace_requests.json", &json!(requests));
    let again: Vec<RunRequest> =
        serde_json::from_str(&read("trace_requests.json")).expect("requests can be read");
    assert_eq!(json!(again), json!(requests));
    check_json("trace_pages.json", &json!(pages()));
    let again: Vec<TracePage> = serde_json::from_str(&read("trace_pages.json")).expect("pages can be read");
    assert_eq!(json!(again), json!(pages()), "every field is known");
}
