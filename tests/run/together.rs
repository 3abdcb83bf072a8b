//! Decisions that are carried out as one leave the same rows as one after another, and no call that nobody wants.

use curfew::run::{Decided, Effect, Event};
use curfew::storage::commit::Commit;
use serde_json::json;

use super::driver::{Driver, succeeded};
use super::graphs::three;

/// Feeds the events, and returns the effects of all of them as one. The rows must be those of the single decisions.
fn together(run: &mut Driver, events: Vec<Event>) -> Vec<Effect> {
    let mut rows = run.store.clone();
    let mut decided = Decided::default();
    for event in events {
        run.feed(event);
        decided.add(run.effects.clone());
    }
    let effects = decided.into_effects(&run.run);
    let commit = Commit::of(&effects, &run.run).expect("rows are JSON");
    rows.apply(&commit).expect("one commit may do what several may");
    assert_eq!(rows.run, run.store.run);
    assert_eq!(rows.tokens, run.store.tokens);
    effects
}

fn reported(attempts: &[&str]) -> Vec<Event> {
    let report = |attempt: &&str| Event::TaskReported(Box::new(succeeded(attempt, json!({"of": attempt}))));
    attempts.iter().map(report).collect()
}

fn count(effects: &[Effect], wanted: impl Fn(&Effect) -> bool) -> usize {
    effects.iter().filter(|effect| wanted(effect)).count()
}

#[test]
fn each_row_is_written_once() {
    let mut run = Driver::start(three(json!({"timeout_ms": 5_000})));
    let effects = together(&mut run, reported(&["t2@1", "t3@1", "t4@1"]));
    // Three that arrived and went on, and the one behind the join: none is saved as waiting first.
    assert_eq!(count(&effects, |it| matches!(it, Effect::SaveToken(_))), 4);
    assert_eq!(count(&effects, |it| matches!(it, Effect::SaveInstance(_))), 1);
    assert_eq!(count(&effects, |it| matches!(it, Effect::SetAlarm(_))), 1);
    assert_eq!(count(&effects, |it| it.order().is_some()), 1);
    run.stands("running z:executing");
}

#[test]
fn a_single_decision_is_what_it_was() {
    let mut run = Driver::start(three(json!({})));
    let effects = together(&mut run, reported(&["t2@1"]));
    assert_eq!(effects, run.effects);
}

#[test]
fn a_call_that_a_later_decision_has_no_use_for_is_not_made() {
    let mut run = Driver::start(json!({
        "id": "w", "nodes": [{"id": "a", "action_id": "work"}, {"id": "b", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}],
    }));
    let mut events = reported(&["t1@1"]);
    events.push(Event::CancelRequested { reason: None });
    let effects = together(&mut run, events);
    run.stands("cancelled");
    assert_eq!(count(&effects, |it| it.order().is_some()), 0);
    assert_eq!(count(&effects, |it| matches!(it, Effect::Abort { .. })), 0);
}

#[test]
fn orders_that_wait_take_room() {
    let mut run = Driver::start(three(json!({})));
    let mut decided = Decided::default();
    assert_eq!(decided.calls(), 0);
    for attempt in ["t2@1", "t3@1", "t4@1"] {
        run.succeed(attempt, json!(1));
        decided.add(run.effects.clone());
    }
    assert_eq!(decided.calls(), 1);
}
