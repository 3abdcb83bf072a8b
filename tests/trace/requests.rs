//! Requests are bounded in number and bytes, whatever is in a trace.

use curfew::base::time::Millis;
use curfew::base::trace::RunSpans;
use curfew::trace::requests::{ExportRequests, SPANS_BYTES, SPANS_MAX};
use curfew::trace::span::{EVENTS_PER_SPAN, Interval, Span};

use super::export::official;

fn span(number: u64, text: usize, events: usize) -> Span {
    let ids = RunSpans {
        run_id: "run",
        started_at: 1,
    };
    let time = Interval::new(1_000, 2_000);
    let mut span = Span::new(ids.trace_id(), ids.token(number), "x".repeat(text), time);
    let attributes = if text > 1 { 40 } else { 1 };
    for _ in 0..attributes {
        span.text("curfew.node.id", "y".repeat(text));
    }
    for _ in 0..events {
        span.event(Millis::MAX, "e".into(), Vec::new());
    }
    span
}

fn requests(spans: &[(usize, Span)]) -> Vec<(usize, Vec<usize>)> {
    let mut requests = ExportRequests::new("s");
    let mut all = Vec::new();
    for (source, span) in spans {
        all.extend(requests.add(source, span));
    }
    all.extend(requests.take());
    assert_eq!(requests.take(), None);
    let counted = all.into_iter().map(|request| {
        assert!(
            request.body.len() < SPANS_BYTES + 64_000,
            "{}",
            request.body.len()
        );
        assert!(request.spans <= SPANS_MAX);
        assert_eq!(official(&request.body).len(), request.spans);
        (request.spans, request.sources)
    });
    counted.collect()
}

#[test]
fn small_spans_of_many_runs_share_a_request() {
    let spans: Vec<_> = (0..100)
        .map(|number| (number, span(number as u64, 1, 0)))
        .collect();
    let requests = requests(&spans);
    assert_eq!(requests, [(100, (0..100).collect::<Vec<_>>())]);
}

#[test]
fn a_large_run_is_several_requests() {
    let spans: Vec<_> = (0..1_300)
        .map(|number| (number / 1_000, span(number as u64, 1, 0)))
        .collect();
    assert_eq!(
        requests(&spans),
        [(512, vec![0]), (512, vec![0, 1]), (276, vec![1])]
    );
}

#[test]
fn long_texts_and_many_events_are_cut() {
    let spans: Vec<_> = (0..200).map(|number| (0, span(number, 100_000, 1_000))).collect();
    let requests = requests(&spans);
    assert!(requests.len() > 2, "{requests:?}");
    assert_eq!(requests.iter().map(|(count, _)| count).sum::<usize>(), 200);
    let (_, span) = &spans[0];
    assert_eq!(
        (span.events.len(), span.dropped_events),
        (EVENTS_PER_SPAN, 1_000 - 128)
    );
    assert!(span.events.iter().all(|event| event.at == 2_000));
}

#[test]
fn nothing_is_no_request() {
    assert!(requests(&[]).is_empty());
}
