//! Whatever an object answers: spans have parents, lie inside them, and are bounded.

use std::collections::BTreeMap;

use curfew::base::trace::SpanId;
use curfew::trace::span::{AttributeValue, EVENTS_PER_SPAN, Span};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::export::{export, official};
use super::samples::{read, spans_of};

const KINDS: &[&str] = &[
    "token_created",
    "token_dispatched",
    "token_dispatched",
    "token_timed_out",
    "token_retried",
    "attempt_reaped",
    "token_completed",
    "deadline_warning",
    "late_result_discarded",
    "a kind of a later build",
];
const STATUSES: &[&str] = &[
    "completed",
    "failed",
    "timed_out",
    "cancelled",
    "waiting_for_siblings",
];

fn event() -> impl Strategy<Value = Value> {
    (
        0u64..50,
        0u64..20_000,
        prop::sample::select(KINDS),
        prop::option::of(0u64..5),
        ".{0,80}",
    )
        .prop_map(|(seq, at, kind, epoch, code)| {
            let mut event = json!({"seq": seq, "at": at, "kind": kind, "code": code});
            if let Some(epoch) = epoch {
                event["epoch"] = json!(epoch);
            }
            event
        })
}

fn step() -> impl Strategy<Value = Value> {
    let statuses = prop::sample::select(&["completed", "skipped", "failed", "timed_out"][..]);
    let action = prop::option::of(prop::sample::select(&["http_request", "llm_call", "assert"][..]));
    (
        statuses,
        action,
        0u64..30_000,
        prop::option::of(0u64..30_000),
        0u64..40_000,
        ".{0,300}",
    )
        .prop_map(|(status, action, duration_ms, started_at, after_ms, model)| {
            let mut step = json!({
                "ref": "a", "status": status, "attempts": 2, "duration_ms": duration_ms,
                "retries": [{"class": "network", "code": "x", "delay_ms": 1, "after_ms": after_ms}],
                "gen_ai": {"operation": "chat", "request_model": model},
            });
            if let Some(action) = action {
                step["action"] = json!(action);
            }
            if let Some(started_at) = started_at {
                step["started_at"] = json!(started_at);
            }
            step
        })
}

fn token(id: u64) -> impl Strategy<Value = Value> {
    let times = (
        0u64..20_000,
        prop::option::of(0u64..20_000),
        prop::option::of(0u64..20_000),
    );
    let parts = (prop::sample::select(STATUSES), any::<bool>(), any::<bool>());
    (times, parts, prop::collection::vec(event(), 0..8), prop::collection::vec(step(), 0..3)).prop_map(
        move |((created_at, started_at, ended_at), (status, joins, has_gate), events, steps)| {
            let mut token = json!({
                "id": id, "node_id": "n", "status": status, "epoch": 1, "created_at": created_at, "events": events,
            });
            // Steps of one token have different names.
            let named = steps.into_iter().enumerate().map(|(index, mut step)| {
                step["ref"] = json!(format!("s{index}"));
                step
            });
            token["steps"] = named.collect();
            for (name, at) in [("started_at", started_at), ("ended_at", ended_at)] {
                if let Some(at) = at {
                    token[name] = json!(at);
                }
            }
            if joins {
                token["joins_at"] = json!("j");
            }
            if has_gate {
                token["gates"] = json!([{"id": format!("g{id}"), "kind": "node", "opened_at": 0, "status": "open"}]);
                token["only_step"] = json!(["s0", "shell"]);
            }
            token
        },
    )
}

fn check(spans: &[Span]) {
    let by_id: BTreeMap<SpanId, &Span> = spans.iter().map(|span| (span.span_id, span)).collect();
    let roots = spans.iter().filter(|span| span.parent.is_none());
    assert_eq!(roots.count(), 1);
    for span in spans {
        assert!(span.time.start <= span.time.end);
        assert!(span.events.len() <= EVENTS_PER_SPAN && span.name.chars().count() <= 257);
        for event in &span.events {
            assert!(span.time.contains(event.at), "{event:?} of {span:?}");
        }
        for (name, value) in &span.attributes {
            if let AttributeValue::Text(text) = value {
                assert!(text.chars().count() <= 257, "{name}");
            }
        }
        if let Some(parent) = span.parent {
            let parent = by_id.get(&parent).expect("the parent is in the trace");
            let is_inside = parent.time.start <= span.time.start && span.time.end <= parent.time.end;
            assert!(is_inside, "{span:?} inside {parent:?}");
        }
    }
    for body in export(spans) {
        official(&body);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn spans_have_parents_and_lie_inside_them(
        tokens in prop::collection::vec(Just(()), 0..4).prop_flat_map(|list| {
            let tokens: Vec<_> = (1..=list.len() as u64).map(token).collect();
            tokens
        }),
        events in prop::collection::vec(event(), 0..6),
        began_at in 0u64..20_000,
        ended_at in 0u64..20_000,
    ) {
        let run = json!({
            "run_id": "run-1", "started_at": 1_000, "workflow_id": "w", "version": 1, "attempt": 1, "end": 2,
            "status": "failed", "began_at": began_at, "ended_at": ended_at,
        });
        let events: Vec<Value> = events.into_iter().enumerate().map(|(index, mut event)| {
            if index % 2 == 0 {
                event["token_id"] = json!("t1");
            }
            event
        }).collect();
        let pages = vec![
            json!({"run": run, "events": events, "next": {"events": 9}}),
            json!({"run": run, "tokens": tokens}),
        ];
        let spans = spans_of(read(pages.clone()));
        check(&spans);
        prop_assert_eq!(spans, spans_of(read(pages)), "a second export is the same");
    }
}

#[test]
fn a_run_with_very_many_events_keeps_the_first() {
    let run = json!({
        "run_id": "run-1", "started_at": 1, "workflow_id": "w", "version": 1, "attempt": 1, "end": 1,
        "status": "completed", "began_at": 1, "ended_at": 2,
    });
    let many = |from: u64| -> Vec<Value> {
        (from..from + 1_000)
            .map(|seq| json!({"seq": seq, "at": 1, "kind": "run_paused"}))
            .collect()
    };
    let mut pages: Vec<Value> = (0..10)
        .map(|page| json!({"run": run, "events": many(page * 1_000), "next": {"events": page * 1_000 + 999}}))
        .collect();
    pages.push(json!({"run": run}));
    let spans = spans_of(read(pages));
    assert_eq!(spans.len(), 1);
    assert_eq!(spans[0].events.len() as u64 + spans[0].dropped_events, 10_000);
    check(&spans);
}
