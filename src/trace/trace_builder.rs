//! Makes spans of the pages of a run, in the order in which its object returns them: events first, then tokens. Holds the events
//! and one page.

use std::collections::BTreeMap;

use crate::base::ordered::sort_by_key;
use crate::base::trace::{RunSpans, TraceId};
use crate::protocol::trace::{TracePage, TracedEvent, TracedGate, TracedRun};
use crate::trace::span::{Attribute, AttributeValue, Interval, Span, SpanStatus, code_of};
use crate::trace::token_spans;

/// Exceptional events that are kept of a run, so that a run with very many needs little memory. The span of the run says how
/// many are missing.
pub const EVENTS_KEPT: usize = 5_000;

#[derive(Debug, Default)]
pub struct TraceBuilder {
    of_run: Vec<TracedEvent>,
    of_tokens: BTreeMap<String, Vec<TracedEvent>>,
    kept: usize,
    dropped: u64,
    gates: Vec<TracedGate>,
    has_run_span: bool,
}

/// What the spans of a run have in common.
#[derive(Clone, Copy)]
pub(super) struct RunContext<'a> {
    pub run: &'a TracedRun,
    pub spans: RunSpans<'a>,
    pub trace_id: TraceId,
}

impl TraceBuilder {
    /// The spans that the page completes.
    pub fn add(&mut self, page: TracePage) -> Vec<Span> {
        let Some(mut run) = page.run else {
            return Vec::new();
        };
        self.gates.append(&mut run.gates);
        for event in page.events {
            self.keep(event);
        }
        if page.tokens.is_empty() && page.next.is_some() {
            return Vec::new();
        }
        let spans = RunSpans {
            run_id: &run.run_id,
            started_at: run.started_at,
        };
        let continued = run.traceparent.map(|parent| parent.trace_id);
        let context = RunContext {
            run: &run,
            spans,
            trace_id: continued.unwrap_or_else(|| spans.trace_id()),
        };
        let mut root = run_span(context);
        let mut all = Vec::new();
        for token in &page.tokens {
            let id = format!("t{}", token.id);
            let events = self.of_tokens.remove(&id).unwrap_or_default();
            all.extend(token_spans::of(context, &root, token, events));
        }
        if !std::mem::replace(&mut self.has_run_span, true) {
            for gate in std::mem::take(&mut self.gates) {
                all.push(gate_span(context, &root, &gate));
            }
            add_events(&mut root, std::mem::take(&mut self.of_run));
            root.dropped_events += self.dropped;
            all.push(root);
        }
        all
    }

    fn keep(&mut self, event: TracedEvent) {
        if self.kept >= EVENTS_KEPT {
            self.dropped += 1;
            return;
        }
        self.kept += 1;
        match &event.token_id {
            Some(token) if !is_of_run(&event) => {
                self.of_tokens.entry(token.clone()).or_default().push(event);
            }
            Some(_) | None => self.of_run.push(event),
        }
    }
}

/// The failure of a run names the token that caused it.
fn is_of_run(event: &TracedEvent) -> bool {
    event.kind.starts_with("run_")
}

fn run_span(context: RunContext) -> Span {
    let RunContext { run, spans, trace_id } = context;
    let time = Interval::new(run.began_at, run.ended_at);
    let name = format!("run {}", run.workflow_id);
    let mut span = Span::new(trace_id, spans.run(run.end), name, time);
    span.parent = run.traceparent.map(|parent| parent.span_id);
    span.text("curfew.run.id", &run.run_id);
    span.text("curfew.workflow.id", &run.workflow_id);
    span.number("curfew.workflow.version", run.version);
    span.number("curfew.attempt", run.attempt);
    span.text("curfew.run.status", run.status.name());
    span.optional_text("curfew.parent.run.id", run.parent_run_id.as_deref());
    span.optional_text("curfew.trigger.event", run.triggered_by.as_deref());
    span.end_as(run.status.name(), run.error.as_ref());
    span.link = (run.end > 1).then(|| spans.run(run.end - 1));
    span
}

/// A gate is open until a decision, its deadline, or the end of what it belongs to.
pub(super) fn gate_span(context: RunContext, parent: &Span, gate: &TracedGate) -> Span {
    let closed_at = gate.closed_at.unwrap_or(parent.time.end);
    let time = Interval::new(gate.opened_at, closed_at);
    let name = match gate.kind.as_str() {
        "node" => "gate".to_string(),
        kind => format!("gate {kind}"),
    };
    let mut span = parent.child(context.spans.gate(&gate.id), name, time);
    span.text("curfew.run.id", &context.run.run_id);
    span.text("curfew.gate.id", &gate.id);
    span.text("curfew.gate.status", &gate.status);
    match gate.status.as_str() {
        "decided" => span.status = SpanStatus::Ok,
        "timed_out" => span.fail("gate_timeout", None),
        _open_or_cancelled => {}
    }
    span
}

/// Kinds that spans stand for.
const SHOWN_AS_SPANS: &[&str] = &[
    "run_started",
    "run_completed",
    "run_failed",
    "run_timed_out",
    "run_cancelled",
    "token_created",
    "token_dispatched",
    "token_completed",
    "token_failed",
    "token_cancelled",
    "gate_opened",
    "gate_decided",
    "subworkflow_started",
    "subworkflow_ended",
];

pub(super) fn add_events(span: &mut Span, mut events: Vec<TracedEvent>) {
    events.retain(|event| !SHOWN_AS_SPANS.contains(&event.kind.as_str()));
    sort_by_key(&mut events, |event| (event.at, event.seq));
    for event in events {
        let text = |name, value: Option<String>| {
            let value = AttributeValue::Text(code_of(&value?));
            Some((name, value))
        };
        let number = |name, value: Option<u64>| Some((name, AttributeValue::Number(value?)));
        let attributes: [Option<Attribute>; 6] = [
            number("curfew.attempt", event.epoch),
            text("error.type", event.code),
            text("curfew.timeout.type", event.timeout_type),
            number("curfew.timeout.ms", event.timeout_ms),
            text("curfew.timeout.policy", event.policy),
            number("curfew.retry.delay_ms", event.delay_ms),
        ];
        span.event(
            event.at,
            code_of(&event.kind),
            attributes.into_iter().flatten().collect(),
        );
    }
}
