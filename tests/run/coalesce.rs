//! Decisions that are carried out as one leave the same rows as one after another, and no call that nobody wants.

use curfew::run::{Command, Decision, DecisionBatch, Event, Write};
use curfew::storage::commit::Commit;
use serde_json::json;

use super::driver::{Driver, succeeded};
use super::graphs::three;

/// Feeds the events, and returns the decisions on all of them as one. The rows must be those of the single decisions.
fn together(run: &mut Driver, events: Vec<Event>) -> Decision {
    let mut rows = run.store.clone();
    let mut decided = DecisionBatch::default();
    for event in events {
        run.feed(event);
        decided.add(run.decision.clone());
    }
    let decision = decided.into_decision(&run.run);
    let commit = Commit::of(decision.writes(), &run.run).expect("rows are JSON");
    rows.apply(&commit).expect("one commit may do what several may");
    assert_eq!(rows.run, run.store.run);
    assert_eq!(rows.tokens, run.store.tokens);
    decision
}

fn reported(attempts: &[&str]) -> Vec<Event> {
    let report = |attempt: &&str| Event::TaskReported(Box::new(succeeded(attempt, json!({"of": attempt}))));
    attempts.iter().map(report).collect()
}

fn count<T>(list: &[T], wanted: impl Fn(&T) -> bool) -> usize {
    list.iter().filter(|it| wanted(it)).count()
}

fn dispatched(decision: &Decision) -> usize {
    count(decision.commands(), |it| it.dispatched().is_some())
}

#[test]
fn each_row_is_written_once() {
    let mut run = Driver::start(three(json!({"timeout_ms": 5_000})));
    let decision = together(&mut run, reported(&["t2@1", "t3@1", "t4@1"]));
    // Three that arrived and went on, and the one behind the join: none is saved as waiting first.
    assert_eq!(
        count(decision.writes(), |it| matches!(it, Write::SaveToken(_))),
        4
    );
    assert_eq!(
        count(decision.writes(), |it| matches!(it, Write::SaveInstance(_))),
        1
    );
    assert!(decision.alarm().is_some());
    assert_eq!(dispatched(&decision), 1);
    run.stands("running z:executing");
}

#[test]
fn a_single_decision_is_what_it_was() {
    let mut run = Driver::start(three(json!({})));
    let decision = together(&mut run, reported(&["t2@1"]));
    assert_eq!(decision, run.decision);
}

#[test]
fn a_call_that_a_later_decision_has_no_use_for_is_not_made() {
    let mut run = Driver::start(json!({
        "id": "w", "nodes": [{"id": "a", "action_id": "work"}, {"id": "b", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}],
    }));
    let mut events = reported(&["t1@1"]);
    events.push(Event::CancelRequested { reason: None });
    let decision = together(&mut run, events);
    run.stands("cancelled");
    assert_eq!(dispatched(&decision), 0);
    assert_eq!(
        count(decision.commands(), |it| matches!(
            it,
            Command::AbortAttempt { .. }
        )),
        0
    );
}

#[test]
fn orders_that_wait_take_room() {
    let mut run = Driver::start(three(json!({})));
    let mut decided = DecisionBatch::default();
    assert_eq!(decided.calls(), 0);
    for attempt in ["t2@1", "t3@1", "t4@1"] {
        run.succeed(attempt, json!(1));
        decided.add(run.decision.clone());
    }
    assert_eq!(decided.calls(), 1);
}
