//! The trace context that a run passes on: to the calls of its tasks, to the runs it calls, and with the events it emits.

use crate::base::trace::{SpanId, TraceParent};
use crate::host::object::Host;
use crate::host::platform::Platform;
use crate::run::Header;

/// A context to pass on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PassedContext {
    pub traceparent: TraceParent,
    /// Its span is one of the run, which is exported when the run has ended.
    pub records_spans: bool,
}

impl<P: Platform> Host<P> {
    /// With `span` as the parent of what follows, if the run's spans are exported. Otherwise the caller's context goes on as it
    /// came, because a span that is never exported would be missing in the caller's trace. A run without either passes on
    /// nothing: a receiver would take the header for a decision about sampling.
    pub(super) fn context_of(&self, header: &Header, span: impl FnOnce() -> SpanId) -> Option<PassedContext> {
        if self.exports_traces() && header.is_sampled() {
            return Some(PassedContext {
                traceparent: TraceParent {
                    trace_id: header.trace_id(),
                    span_id: span(),
                    sampled: true,
                },
                records_spans: true,
            });
        }
        header.traceparent.map(|traceparent| PassedContext {
            traceparent,
            records_spans: false,
        })
    }
}
