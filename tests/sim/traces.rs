//! The traces of every end of every run, exported from its rows when the simulation is over.

use std::collections::{BTreeMap, BTreeSet};

use curfew::base::time::Millis;
use curfew::base::trace::SpanId;
use curfew::protocol::run::{RunRequest, RunResponse};
use curfew::protocol::trace::{TraceCursor, TracePage};
use curfew::trace::span::{EVENTS_PER_SPAN, Span};
use curfew::trace::trace_builder::TraceBuilder;

use super::simulation::Simulation;

impl Simulation {
    /// Every span has a parent in the trace and lies inside it, ids are unique, and a second export is the same.
    pub(super) fn check_traces(&mut self) {
        let started = self.runs.iter().filter_map(|(id, run)| {
            let header = run.store().header()?;
            Some((id.clone(), header.ends))
        });
        let started: Vec<(String, u64)> = started.collect();
        self.stop_faults();
        self.config.settings.retention_ms = Millis::MAX / 2;
        let mut all: BTreeMap<SpanId, Span> = BTreeMap::new();
        let mut roots = BTreeSet::new();
        for (id, ends) in &started {
            // It was deleted long after its end; its rows are still known here.
            self.evict(id);
            self.runs[id].durable.deleted.set(false);
            for end in 1..=*ends {
                let spans = self.trace_of(id, end);
                assert_eq!(spans, self.trace_of(id, end), "{id} {end}");
                let of_run: Vec<&Span> = spans
                    .iter()
                    .filter(|span| span.name.starts_with("run "))
                    .collect();
                assert_eq!(of_run.len(), 1, "{id} has one span for end {end} of {ends}");
                roots.insert(of_run[0].span_id);
                for span in spans {
                    let name = span.name.clone();
                    assert!(
                        all.insert(span.span_id, span).is_none(),
                        "two spans {name} of {id}"
                    );
                }
            }
        }
        for span in all.values() {
            check_span(span, &all, roots.contains(&span.span_id));
        }
        let tokens: usize = self.runs.values().map(|run| run.store().tokens.len()).sum();
        let exported = all.values().filter(|span| {
            let names = span.attributes.iter().map(|(name, _)| *name);
            names.into_iter().any(|name| name == "curfew.token.status")
        });
        assert_eq!(exported.count(), tokens, "every token has its span");
        self.environment.outcome.borrow_mut().spans += all.len() as u64;
    }

    fn trace_of(&mut self, id: &str, end: u64) -> Vec<Span> {
        let mut builder = TraceBuilder::default();
        let (mut spans, mut cursor) = (Vec::new(), Some(TraceCursor::START));
        while let Some(from) = cursor {
            let request = RunRequest::ReadTrace {
                end: Some(end),
                cursor: from,
            };
            let text = match self.request(id, request) {
                Some(RunResponse::Done(text)) => text,
                other => panic!("{id} has a page of its trace, not {other:?}"),
            };
            let page: TracePage = serde_json::from_str(&text).expect("a page can be read");
            assert_ne!(page.next, Some(from), "the pages of {id} go on");
            cursor = page.next;
            spans.extend(builder.add(page));
        }
        spans
    }
}

fn check_span(span: &Span, all: &BTreeMap<SpanId, Span>, is_root: bool) {
    assert!(span.time.start <= span.time.end, "{span:?}");
    assert!(span.events.len() <= EVENTS_PER_SPAN, "{span:?}");
    for event in &span.events {
        assert!(span.time.contains(event.at), "{event:?} of {span:?}");
    }
    let Some(parent) = span.parent else {
        return assert!(is_root, "{span:?} has no parent");
    };
    let parent = all.get(&parent);
    let parent = parent.unwrap_or_else(|| panic!("the parent of {span:?} is in the trace"));
    assert_eq!(span.trace_id, parent.trace_id);
    // A child run has a clock and an end of its own.
    if !is_root {
        assert!(
            parent.time.start <= span.time.start && span.time.end <= parent.time.end,
            "{span:?} lies inside {parent:?}"
        );
    }
}
