//! A span before it is encoded. Every text in it is bounded.

use crate::base::failure::FailureClass;
use crate::base::text::shorten_to;
use crate::base::time::Millis;
use crate::base::trace::{SpanId, TraceId};
use crate::protocol::trace::TracedError;

/// OpenTelemetry's default limit.
pub const EVENTS_PER_SPAN: usize = 128;
/// Longer texts are cut. Ids of runs, nodes and workflows are shorter.
const TEXT_CHARACTERS: usize = 256;
const CODE_CHARACTERS: usize = 64;
/// OpenTelemetry's name for an error that is not one of a small set.
const OTHER_ERROR: &str = "_OTHER";

#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    pub trace_id: TraceId,
    pub span_id: SpanId,
    pub parent: Option<SpanId>,
    pub name: String,
    pub kind: SpanKind,
    pub time: Interval,
    pub status: SpanStatus,
    pub attributes: Vec<Attribute>,
    pub events: Vec<SpanEvent>,
    /// Events that did not fit.
    pub dropped_events: u64,
    /// The span of the run up to its end before this one.
    pub link: Option<SpanId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    Internal,
    /// A call to the outside.
    Client,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanStatus {
    /// Neither good nor bad: cancelled, or not known.
    Unset,
    Ok,
    /// The code of the error, never its message, which may quote data.
    Error(String),
}

#[derive(Clone, Debug, PartialEq)]
pub struct SpanEvent {
    pub at: Millis,
    pub name: String,
    pub attributes: Vec<Attribute>,
}

pub type Attribute = (&'static str, AttributeValue);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    Text(String),
    Number(u64),
}

/// From and to, in that order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    pub start: Millis,
    pub end: Millis,
}

impl Interval {
    pub fn new(start: Millis, end: Millis) -> Interval {
        Interval {
            start,
            end: end.max(start),
        }
    }

    /// The part of it inside `outer`. Executors and objects have clocks of their own, but spans are shown inside their parents.
    pub fn within(self, outer: Interval) -> Interval {
        let start = self.start.clamp(outer.start, outer.end);
        Interval {
            start,
            end: self.end.clamp(start, outer.end),
        }
    }

    pub fn contains(self, moment: Millis) -> bool {
        (self.start..=self.end).contains(&moment)
    }
}

impl Span {
    pub fn new(trace_id: TraceId, span_id: SpanId, name: String, time: Interval) -> Span {
        Span {
            trace_id,
            span_id,
            parent: None,
            name: bounded(&name),
            kind: SpanKind::Internal,
            time,
            status: SpanStatus::Unset,
            attributes: Vec::new(),
            events: Vec::new(),
            dropped_events: 0,
            link: None,
        }
    }

    /// A child of `self`, inside its time.
    pub fn child(&self, span_id: SpanId, name: String, time: Interval) -> Span {
        Span {
            parent: Some(self.span_id),
            ..Span::new(self.trace_id, span_id, name, time.within(self.time))
        }
    }

    pub fn rename(&mut self, name: &str) {
        self.name = bounded(name);
    }

    pub fn text(&mut self, name: &'static str, value: impl AsRef<str>) {
        let value = bounded(value.as_ref());
        self.attributes.push((name, AttributeValue::Text(value)));
    }

    pub fn optional_text(&mut self, name: &'static str, value: Option<impl AsRef<str>>) {
        if let Some(value) = value {
            self.text(name, value);
        }
    }

    pub fn number(&mut self, name: &'static str, value: impl Into<Option<u64>>) {
        let value = value.into();
        self.attributes
            .extend(value.map(|value| (name, AttributeValue::Number(value))));
    }

    pub fn fail(&mut self, code: &str, class: Option<FailureClass>) {
        let code = code_of(code);
        self.text("error.type", &code);
        let class = class.and_then(|class| serde_json::to_value(class).ok());
        self.optional_text(
            "curfew.error.class",
            class.as_ref().and_then(serde_json::Value::as_str),
        );
        self.status = SpanStatus::Error(code);
    }

    /// Sets the status of work that ended as `status`, the name of the status of a run, token or step.
    pub fn end_as(&mut self, status: &str, error: Option<&TracedError>) {
        match (status, error) {
            ("completed", _) => self.status = SpanStatus::Ok,
            ("failed" | "timed_out", Some(error)) => self.fail(&error.code, Some(error.class)),
            ("failed" | "timed_out", None) => self.fail(status, None),
            _cancelled_or_unknown => {}
        }
    }

    pub fn event(&mut self, at: Millis, name: String, attributes: Vec<Attribute>) {
        if self.events.len() >= EVENTS_PER_SPAN {
            self.dropped_events += 1;
            return;
        }
        let at = at.clamp(self.time.start, self.time.end);
        self.events.push(SpanEvent { at, name, attributes });
    }
}

/// The code of an error. Callbacks may bring any text: what is no code is not shown.
pub fn code_of(code: &str) -> String {
    let is_code = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    match !code.is_empty() && code.len() <= CODE_CHARACTERS && code.chars().all(is_code) {
        true => code.to_string(),
        false => OTHER_ERROR.to_string(),
    }
}

fn bounded(text: &str) -> String {
    shorten_to(text, TEXT_CHARACTERS)
}
