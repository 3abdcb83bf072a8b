//! OTLP/HTTP JSON: the protobuf messages of OpenTelemetry as JSON, with ids in hex, 64-bit numbers as strings and enums as
//! numbers.

use serde_json::{Map, Value, json};

use crate::base::time::Millis;
use crate::trace::span::{Attribute, AttributeValue, Span, SpanEvent, SpanKind, SpanStatus};

/// The JSON of a span.
pub fn span(span: &Span) -> Value {
    let mut fields = json!({
        "traceId": span.trace_id,
        "spanId": span.span_id,
        // The flags of `traceparent`: sampled.
        "flags": 1,
        "name": span.name,
        "kind": match span.kind {
            SpanKind::Internal => 1,
            SpanKind::Client => 3,
        },
        "startTimeUnixNano": nanos(span.time.start),
        "endTimeUnixNano": nanos(span.time.end),
        "attributes": attributes(&span.attributes),
    });
    if let Some(parent) = span.parent {
        fields["parentSpanId"] = json!(parent);
    }
    if !span.events.is_empty() {
        fields["events"] = span.events.iter().map(event).collect();
    }
    if span.dropped_events > 0 {
        fields["droppedEventsCount"] = json!(span.dropped_events.min(u32::MAX.into()));
    }
    if let Some(link) = span.link {
        fields["links"] = json!([{"traceId": span.trace_id, "spanId": link}]);
    }
    match &span.status {
        SpanStatus::Unset => {}
        SpanStatus::Ok => fields["status"] = json!({"code": 1}),
        SpanStatus::Error(code) => fields["status"] = json!({"code": 2, "message": code}),
    }
    fields
}

fn event(event: &SpanEvent) -> Value {
    json!({
        "timeUnixNano": nanos(event.at),
        "name": event.name,
        "attributes": attributes(&event.attributes),
    })
}

fn attributes(attributes: &[Attribute]) -> Value {
    let attributes = attributes.iter().map(|(name, value)| {
        let value = match value {
            AttributeValue::Text(text) => json!({"stringValue": text}),
            AttributeValue::Number(number) => json!({"intValue": number.to_string()}),
        };
        json!({"key": name, "value": value})
    });
    attributes.collect()
}

fn nanos(at: Millis) -> String {
    at.saturating_mul(1_000_000).to_string()
}

/// What precedes and follows the spans of a request.
pub fn envelope(service_name: &str) -> (String, String) {
    let version = env!("CARGO_PKG_VERSION");
    let resource: Vec<Value> = [("service.name", service_name), ("service.version", version)]
        .iter()
        .map(|(key, value)| json!({"key": key, "value": {"stringValue": value}}))
        .collect();
    let mut scope = Map::new();
    scope.insert("name".into(), "curfew".into());
    scope.insert("version".into(), version.into());
    let before = format!(
        r#"{{"resourceSpans":[{{"resource":{},"scopeSpans":[{{"scope":{},"spans":["#,
        json!({"attributes": resource}),
        Value::Object(scope)
    );
    (before, "]}]}]}".into())
}
