//! Who stands still with whom: a run that is held holds its children, and lets go of those it no longer waits for.

use curfew::engine::{Event, RunStatus};
use serde_json::{Value, json};

use super::driver::Driver;
use super::graphs::joining;

/// A call of `child`, and work that may overtake it.
fn racing() -> Value {
    json!({
        "nodes": [{"id": "a"}, {"id": "call", "workflow_id": "child"}, {"id": "work", "action_id": "work"}, {"id": "z"}],
        "transitions": [
            {"from_node_id": "a", "to_node_id": "call", "sibling_group": "race"},
            {"from_node_id": "a", "to_node_id": "work", "sibling_group": "race"},
            {"from_node_id": "call", "to_node_id": "z", "synchronization": joining("race", json!({"strategy": "any"}))},
            {"from_node_id": "work", "to_node_id": "z", "synchronization": joining("race", json!({"strategy": "any"}))},
        ],
    })
}

fn parent_says(child: &mut Driver, number: u64, held: bool) {
    child.feed(Event::ParentHolds {
        number,
        held,
        budget_ms: None,
    });
}

/// Else it would stand still for ever: the parent speaks only to those it waits for.
#[test]
fn a_child_that_is_abandoned_during_a_pause_goes_on() {
    let mut run = Driver::start(racing());
    run.delivered(1).at(2_000).pause();
    assert_eq!(run.lines_of("deliver"), ["deliver 2 hold run-1.t2 #1"]);
    run.delivered(2).at(3_000).succeed("t3@1", json!(1));
    run.stands("paused z:pending");
    assert_eq!(run.lines_of("deliver"), ["deliver 3 release run-1.t2 #2"]);
    run.delivered(3).at(4_000).resume().stands("completed {}");
    assert_eq!(run.lines_of("deliver"), Vec::<String>::new());
}

/// A hold that has not left yet is taken back.
#[test]
fn the_last_word_to_a_child_replaces_those_before() {
    let mut run = Driver::start(racing());
    run.delivered(1).at(2_000).pause().reload();
    run.at(3_000).succeed("t3@1", json!(1));
    assert_eq!(run.lines_of("unmessage"), ["unmessage 2"]);
    assert_eq!(run.lines_of("deliver"), ["deliver 3 release run-1.t2 #2"]);
}

/// Its parent was told how it ended and waits for it no longer: a word that comes late would hold it for ever.
#[test]
fn a_child_that_was_begun_again_after_its_end_is_not_held_by_its_parent() {
    let parent = Driver::start(racing());
    let mut child = Driver::start_child(&parent);
    child.at(2_000).succeed("t1@1", json!(1)).stands("completed 1");
    child.feed(Event::RestartRequested { from: None });
    parent_says(&mut child, 1, true);
    assert_eq!(child.answer, Ok(()));
    child.reload().stands("running c:executing");
    // One that has not ended yet is begun again with its parent still waiting.
    let mut child = Driver::start_child(&parent);
    child.feed(Event::RestartRequested { from: None });
    parent_says(&mut child, 1, true);
    child.stands("paused c:executing");
    parent_says(&mut child, 2, false);
    child.succeed("t2@1", json!(2)).stands("completed 2");
    assert_eq!(child.run.header.status, RunStatus::Completed);
}
