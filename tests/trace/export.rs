//! One export as a golden file, and as the official messages of OTLP read it.

use curfew::base::trace::RunSpans;
use curfew::trace::requests::ExportRequests;
use curfew::trace::span::{Span, SpanKind, SpanStatus};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as OtlpValue;
use opentelemetry_proto::tonic::trace::v1::Span as OtlpSpan;
use serde_json::Value;

use super::samples::{pages, read, spans_of};
use crate::golden::check_json;

pub fn export(spans: &[Span]) -> Vec<String> {
    let mut requests = ExportRequests::new("curfew");
    let mut bodies = Vec::new();
    for span in spans {
        bodies.extend(requests.add(&0, span).map(|request| request.body));
    }
    bodies.extend(requests.take().map(|request| request.body));
    bodies
}

#[test]
fn an_export_byte_for_byte() {
    let bodies = export(&spans_of(read(pages())));
    assert_eq!(bodies.len(), 1);
    let body: Value = serde_json::from_str(&bodies[0]).expect("it is JSON");
    check_json("trace_export.json", &body);
}

/// The spans as a receiver that is built with the official messages reads them.
#[track_caller]
pub fn official(body: &str) -> Vec<OtlpSpan> {
    let request: ExportTraceServiceRequest = serde_json::from_str(body).expect("a receiver can read it");
    let mut resources = request.resource_spans.into_iter();
    let resource = resources.next().expect("a resource");
    assert!(resources.next().is_none());
    let attributes = resource.resource.expect("a resource").attributes;
    assert_eq!(attributes[0].key, "service.name");
    let scopes = resource.scope_spans;
    scopes.into_iter().flat_map(|scope| scope.spans).collect()
}

#[test]
fn a_receiver_reads_what_was_meant() {
    let spans = spans_of(read(pages()));
    let read = official(&export(&spans)[0]);
    assert_eq!(read.len(), spans.len());
    for (span, read) in spans.iter().zip(read) {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex(&read.trace_id), span.trace_id.to_string());
        assert_eq!(hex(&read.span_id), span.span_id.to_string());
        assert_eq!(
            hex(&read.parent_span_id),
            span.parent.map_or(String::new(), |id| id.to_string())
        );
        assert_eq!(read.name, span.name);
        assert_eq!(read.start_time_unix_nano, span.time.start * 1_000_000);
        assert_eq!(read.end_time_unix_nano, span.time.end * 1_000_000);
        let kind = match span.kind {
            SpanKind::Internal => 1,
            SpanKind::Client => 3,
        };
        assert_eq!(read.kind, kind);
        let status = read.status.unwrap_or_default();
        let expected = match &span.status {
            SpanStatus::Unset => (0, ""),
            SpanStatus::Ok => (1, ""),
            SpanStatus::Error(code) => (2, code.as_str()),
        };
        assert_eq!((status.code, status.message.as_str()), expected);
        assert_eq!(read.events.len(), span.events.len());
        assert_eq!(read.attributes.len(), span.attributes.len());
        for attribute in read.attributes {
            let value = attribute.value.and_then(|value| value.value);
            assert!(matches!(
                value,
                Some(OtlpValue::StringValue(_) | OtlpValue::IntValue(_))
            ));
        }
    }
}

fn named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

#[track_caller]
fn only<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    match named(spans, name).as_slice() {
        [span] => span,
        other => panic!("{} spans {name}", other.len()),
    }
}

#[test]
fn attempts_steps_and_children_have_the_ids_that_calls_carried() {
    let spans = spans_of(read(pages()));
    let ids = RunSpans {
        run_id: "run-1",
        started_at: 1_000,
    };
    let root = only(&spans, "run order");
    assert_eq!(root.span_id, ids.run(1));
    assert_eq!(
        root.parent.map(|id| id.to_string()).as_deref(),
        Some("00f067aa0ba902b7")
    );
    assert_eq!(
        only(&spans, "workflow bill").span_id,
        ids.token(3),
        "the parent of the child's root"
    );
    let attempts = named(&spans, "attempt load");
    let found: Vec<_> = attempts.iter().map(|span| span.span_id).collect();
    assert_eq!(found, [ids.attempt(1, 1), ids.attempt(1, 2)]);
    let errors: Vec<_> = attempts.iter().map(|span| span.status.clone()).collect();
    assert_eq!(errors, [SpanStatus::Error("timeout".into()), SpanStatus::Ok]);
    // The step of the attempt that timed out was not reported, but its peer has the id.
    let steps: Vec<_> = named(&spans, "http_request get")
        .iter()
        .map(|span| (span.parent, span.span_id))
        .collect();
    let expected = [2, 1].map(|epoch| {
        let attempt = ids.attempt(1, epoch);
        (Some(attempt), attempt.step("get", 0))
    });
    assert_eq!(steps, expected);
}

#[test]
fn waits_and_ends_are_where_they_were() {
    let spans = spans_of(read(pages()));
    // The branch was done with its last step, not with its join.
    let attempt = only(&spans, "attempt think");
    assert_eq!((attempt.time.start, attempt.time.end), (2_000, 2_970));
    let joins = named(&spans, "join done");
    assert_eq!((joins[0].time.start, joins[0].time.end), (2_970, 3_500));
    assert_eq!(
        (joins[1].time.start, joins[1].time.end),
        (3_100, 3_500),
        "from the end of the child"
    );
    let gate = only(&spans, "gate");
    assert_eq!(gate.parent, Some(only(&spans, "gate approve").span_id));
    assert_eq!(
        only(&spans, "gate workflow_timeout").status,
        SpanStatus::Error("gate_timeout".into())
    );
    assert!(
        named(&spans, "update_context log").is_empty(),
        "a skipped step did nothing"
    );
    assert_eq!(
        only(&spans, "http_request post").status,
        SpanStatus::Error("http_status".into())
    );
    assert_eq!(only(&spans, "compensate stock").status, SpanStatus::Ok);
    let root = only(&spans, "run order");
    let events: Vec<&str> = root.events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(events, ["deadline_warning"], "the end is the span's own");
}

#[test]
fn a_run_that_is_not_sampled_has_no_spans() {
    assert!(spans_of(read(vec![serde_json::json!({})])).is_empty());
}
