//! A paused run pauses its children, and releases those it no longer waits for.

use curfew::run::{ChildStatusUpdate, Event, Extension, Message, RunStatus, Write};
use serde_json::{Value, json};

use super::driver::{Driver, START};
use super::graphs::joining;
use super::time_steps::asked_by_parent;

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

fn send_hold(child: &mut Driver, number: u64, held: bool) {
    child.feed(Event::ParentHolds {
        number,
        held,
        budget_ms: None,
    });
}

/// Otherwise it would stay paused forever: the parent only resumes children it waits for.
#[test]
fn a_child_that_is_abandoned_during_a_pause_is_released() {
    let mut run = Driver::start(racing());
    run.delivered(1).at(2_000).pause();
    assert_eq!(run.lines_of("deliver"), ["deliver 2 hold run-1~t2 #1"]);
    run.delivered(2).at(3_000).succeed("t3@1", json!(1));
    run.assert_status("paused z:pending");
    assert_eq!(run.lines_of("deliver"), ["deliver 3 release run-1~t2 #2"]);
    run.delivered(3).at(4_000).resume().assert_status("completed {}");
    assert_eq!(run.lines_of("deliver"), Vec::<String>::new());
}

/// A hold that was not delivered yet is retracted.
#[test]
fn the_last_message_to_a_child_replaces_earlier_ones() {
    let mut run = Driver::start(racing());
    run.delivered(1).at(2_000).pause().reload();
    run.at(3_000).succeed("t3@1", json!(1));
    assert_eq!(run.lines_of("unmessage"), ["unmessage 2"]);
    assert_eq!(run.lines_of("deliver"), ["deliver 3 release run-1~t2 #2"]);
}

/// Its parent received the report of its end and no longer waits for it: a late hold would pause it forever.
#[test]
fn a_child_that_was_restarted_after_its_end_is_not_paused_by_its_parent() {
    let parent = Driver::start(racing());
    let mut child = Driver::start_child(&parent);
    child
        .at(2_000)
        .succeed("t1@1", json!(1))
        .assert_status("completed 1");
    child.feed(Event::RestartRequested {
        from: None,
        by: None,
        version: None,
    });
    send_hold(&mut child, 1, true);
    assert_eq!(child.answer, Ok(()));
    child.reload().assert_status("running c:executing");
    // The parent still waits for a child that was restarted before its end.
    let mut child = Driver::start_child(&parent);
    child.feed(Event::RestartRequested {
        from: None,
        by: None,
        version: None,
    });
    send_hold(&mut child, 1, true);
    child.assert_status("paused c:executing");
    send_hold(&mut child, 2, false);
    child.succeed("t2@1", json!(2)).assert_status("completed 2");
    assert_eq!(child.run.header.status, RunStatus::Completed);
}

/// A parent that gives its children the rest of its time.
fn sharing(child: &str) -> Driver {
    Driver::start(json!({
        "timeout_ms": 10_000,
        "timeouts": {"inherit_budget": true},
        "nodes": [{"id": "call", "workflow_id": child}],
    }))
}

fn extend(run: &mut Driver, by_ms: u64) {
    run.feed(Event::ExtendRequested {
        extension: Extension::By(by_ms),
        by: None,
        operation: None,
    });
    assert_eq!(run.answer, Ok(()));
}

/// Delivers to the child what the parent has just posted.
fn deliver(child: &mut Driver, parent: &Driver) {
    let events: Vec<Event> = parent.decision.writes().iter().filter_map(hold_event).collect();
    assert_eq!(events.len(), 1);
    for event in events {
        child.at(parent.now).feed(event);
    }
}

fn hold_event(write: &Write) -> Option<Event> {
    match write.message() {
        Some(message @ Message::HoldChild { .. }) => asked_by_parent("run-1", message),
        _other => None,
    }
}

#[test]
fn a_child_gets_more_time_with_its_parent_but_never_more_than_its_own_limit() {
    let mut parent = sharing("brief");
    let mut child = Driver::start_child(&parent);
    assert_eq!(child.run.header.timeout_at, Some(START + 10_000));
    parent.delivered(1).at(5_000);
    extend(&mut parent, 4_000);
    deliver(&mut child, &parent);
    assert_eq!(child.run.header.timeout_at, Some(START + 14_000));
    // Its own limit is 20 s.
    extend(&mut parent, 3_600_000);
    deliver(&mut child, &parent);
    assert_eq!(child.run.header.timeout_at, Some(START + 20_000));
    assert_eq!(child.run.header.timeout_ms, Some(20_000));
    child
        .reload()
        .at(START + 20_000)
        .wake("t1@1")
        .assert_status("timed_out workflow_timeout/timeout: Workflow execution timed out after 20s");
}

#[test]
fn a_pause_counts_for_neither_limit() {
    let mut parent = sharing("brief");
    let mut child = Driver::start_child(&parent);
    parent.delivered(1).at(4_000).pause();
    deliver(&mut child, &parent);
    parent.at(104_000).resume();
    deliver(&mut child, &parent);
    // 7 s of 10 are left.
    assert_eq!(child.run.header.timeout_at, Some(111_000));
    extend(&mut parent, 600_000);
    deliver(&mut child, &parent);
    // 17 s of 20.
    assert_eq!(child.run.header.timeout_at, Some(121_000));
}

/// Otherwise the hold would be lost, and the child would run while its parent is paused.
#[test]
fn a_hold_is_kept_for_a_child_whose_start_has_not_arrived() {
    let mut run = Driver::start(racing());
    run.at(2_000).pause();
    for _ in 0..8 {
        let due_at = run.run.next_deadline().expect("messages are sent again");
        run.at(due_at).wake("").delivery_failed(2, true);
    }
    assert!(run.store.run.contains_key("outbox/2"), "still to be delivered");
    run.delivered(1);
    for _ in 0..8 {
        let due_at = run.run.next_deadline().unwrap_or(run.now);
        run.at(due_at).wake("").delivery_failed(2, true);
    }
    assert!(
        !run.store.run.contains_key("outbox/2"),
        "there is no such child any more"
    );
}

#[test]
fn a_restart_at_its_gate_notifies_the_parent() {
    let mut parent = Driver::start(json!({"nodes": [{"id": "call", "workflow_id": "gated"}]}));
    let mut child = Driver::start_child(&parent);
    child.at(4_000).wake("t1@1").assert_status("paused c:executing");
    assert_eq!(child.lines_of("message"), ["message 1 tell run-1 t1@1 paused #1"]);
    child.at(5_000).feed(Event::RestartRequested {
        from: None,
        by: None,
        version: None,
    });
    assert_eq!(
        child.lines_of("message"),
        ["message 2 tell run-1 t1@1 goes on #2"]
    );
    assert_eq!(child.lines_of("unmessage"), ["unmessage 1"]);
    for paused in [true, false] {
        parent.feed(Event::ChildStatusUpdate(Box::new(ChildStatusUpdate {
            token_id: "t1".into(),
            epoch: 1,
            run_id: "run-1~t1".into(),
            number: if paused { 1 } else { 2 },
            paused,
        })));
    }
    parent.check(
        "
        run running until 1001000
        token t1 call waiting_for_subworkflow@1
        event subworkflow_resumed t1
        announce
    ",
    );
}

#[test]
fn a_restarted_child_stays_paused_with_its_parent() {
    let parent = Driver::start(racing());
    let mut child = Driver::start_child(&parent);
    send_hold(&mut child, 1, true);
    child.at(3_000).pause();
    child.at(5_000).feed(Event::RestartRequested {
        from: None,
        by: None,
        version: None,
    });
    child.reload().assert_status("paused c:pending");
    send_hold(child.at(9_000), 2, false);
    child.assert_status("running c:executing");
    let limit_ms = child.run.header.timeout_ms;
    assert_eq!(
        child.run.header.timeout_at,
        limit_ms.map(|millis| 9_000 + millis),
        "its whole limit"
    );
}
