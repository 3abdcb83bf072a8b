//! Merged decisions leave the same rows as single ones, without superfluous calls.

use curfew::run::{Command, Decision, DecisionBatch, Event, Write};
use curfew::storage::commit::Commit;
use serde_json::json;

use super::driver::{Driver, succeeded};
use super::graphs::three;

/// Handles the events and returns the merged decision. Asserts that its rows equal those of the single decisions.
fn merged(run: &mut Driver, events: Vec<Event>) -> Decision {
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
    let decision = merged(&mut run, reported(&["t2@1", "t3@1", "t4@1"]));
    // Three branch tokens and the one after the join: none is first saved as waiting.
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
    run.assert_status("running z:executing");
}

#[test]
fn a_single_decision_is_unchanged() {
    let mut run = Driver::start(three(json!({})));
    let decision = merged(&mut run, reported(&["t2@1"]));
    assert_eq!(decision, run.decision);
}

#[test]
fn a_call_made_obsolete_by_a_later_decision_is_not_made() {
    let mut run = Driver::start(json!({
        "id": "w", "nodes": [{"id": "a", "action_id": "work"}, {"id": "b", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}],
    }));
    let mut events = reported(&["t1@1"]);
    events.push(Event::CancelRequested {
        reason: None,
        by: None,
    });
    let decision = merged(&mut run, events);
    run.assert_status("cancelled");
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
fn pending_orders_count_against_the_call_budget() {
    let mut run = Driver::start(three(json!({})));
    let mut decided = DecisionBatch::default();
    assert_eq!(decided.calls(), 0);
    for attempt in ["t2@1", "t3@1", "t4@1"] {
        run.succeed(attempt, json!(1));
        decided.add(run.decision.clone());
    }
    assert_eq!(decided.calls(), 1);
}
