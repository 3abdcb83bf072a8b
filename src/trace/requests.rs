//! Requests of bounded size, each with the spans of one or several runs. A large run is several requests of the same trace.

use crate::trace::otlp;
use crate::trace::span::Span;

/// Limits of a request. Receivers commonly accept 4 MiB and more.
pub const SPANS_MAX: usize = 512;
pub const SPANS_BYTES: usize = 512 << 10;

/// A request, and where its spans come from.
#[derive(Debug, PartialEq, Eq)]
pub struct ExportRequest<Source> {
    pub body: String,
    pub spans: usize,
    pub sources: Vec<Source>,
}

/// Collects spans and makes requests of them.
#[derive(Debug)]
pub struct ExportRequests<Source> {
    before: String,
    after: String,
    spans: String,
    count: usize,
    sources: Vec<Source>,
}

impl<Source: Clone + PartialEq> ExportRequests<Source> {
    pub fn new(service_name: &str) -> ExportRequests<Source> {
        let (before, after) = otlp::envelope(service_name);
        ExportRequests {
            before,
            after,
            spans: String::new(),
            count: 0,
            sources: Vec::new(),
        }
    }

    /// Returns a request if the span does not fit into it any more.
    #[must_use]
    pub fn add(&mut self, source: &Source, span: &Span) -> Option<ExportRequest<Source>> {
        let text = otlp::span(span).to_string();
        let is_full = self.count >= SPANS_MAX || self.spans.len() + text.len() >= SPANS_BYTES;
        let full = is_full.then(|| self.take()).flatten();
        if self.count > 0 {
            self.spans.push(',');
        }
        self.spans.push_str(&text);
        self.count += 1;
        if !self.sources.contains(source) {
            self.sources.push(source.clone());
        }
        full
    }

    /// What has been collected and not returned yet.
    pub fn take(&mut self) -> Option<ExportRequest<Source>> {
        if self.count == 0 {
            return None;
        }
        let body = format!("{}{}{}", self.before, self.spans, self.after);
        self.spans.clear();
        Some(ExportRequest {
            body,
            spans: std::mem::take(&mut self.count),
            sources: std::mem::take(&mut self.sources),
        })
    }
}
