//! Warnings: a deadline of ten seconds or more is logged once before it passes.

use serde_json::{Value, json};

use super::driver::Driver;
use super::graphs::{three, with};

fn one(node: Value) -> Value {
    json!({"nodes": [with(json!({"id": "a"}), node), {"id": "b", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}]})
}

fn limited(millis: u64) -> Value {
    with(one(json!({"action_id": "work"})), json!({"timeout_ms": millis}))
}

#[test]
fn the_runs_own_deadline() {
    let mut run = Driver::start(limited(20_000));
    assert_eq!(run.run.next_deadline(), Some(17_000));
    run.at(16_999).wake("t1@1").check("");
    run.at(17_000).wake("t1@1").check(
        "
        run running until 21000
        event deadline_warning workflow
        alarm 21000
    ",
    );
    let warning = &run.events()[0];
    assert_eq!(
        json!(warning.fields),
        json!({"deadline": "workflow", "due_at": 21_000, "remaining_ms": 4_000, "timeout_ms": 20_000})
    );
    run.wake("t1@1").check("");
}

#[test]
fn the_deadline_of_an_attempt() {
    let mut run = Driver::start(one(json!({"action_id": "work", "timeout_ms": 20_000})));
    assert_eq!(run.run.next_deadline(), Some(17_000));
    run.at(17_500).wake("t1@1");
    assert_eq!(run.lines_of("event"), ["event deadline_warning t1 a execution"]);
    run.assert_status("running a:executing");
    assert_eq!(run.run.next_deadline(), Some(21_500));
    // The next attempt has a deadline of its own.
    let node = json!({"action_id": "work", "timeout_ms": 20_000, "on_timeout": "retry"});
    let mut run = Driver::start(one(node));
    run.at(17_000)
        .wake("t1@1")
        .at(21_000)
        .time_out("t1@1")
        .at(22_000)
        .wake("");
    run.at(38_000).wake("t1@2");
    assert_eq!(
        run.warnings(),
        [(17_000, json!("execution")), (38_000, json!("execution"))]
    );
}

#[test]
fn the_deadline_of_a_child() {
    let mut run = Driver::start(one(json!({"workflow_id": "child", "timeout_ms": 20_000})));
    run.delivered(1).at(17_000).wake("");
    assert_eq!(run.warnings(), [(17_000, json!("execution"))]);
    run.assert_status("running a:waiting_for_subworkflow");
}

#[test]
fn the_deadline_of_a_gate_besides_its_reminders() {
    let mut run = Driver::start(one(
        json!({"gate": {"timeout_ms": 20_000, "remind_at": [0.5, 0.8]}}),
    ));
    run.at(11_000).wake("");
    assert_eq!(
        (run.lines_of("gate").len(), run.warnings().len()),
        (1, 0),
        "a reminder"
    );
    run.at(17_000).wake("");
    assert_eq!(
        (run.lines_of("gate").len(), run.warnings().len()),
        (1, 1),
        "both at once"
    );
    assert_eq!(run.lines_of("event"), ["event deadline_warning t1 a gate"]);
}

#[test]
fn the_deadline_of_a_wait_for_a_signal_and_none_of_a_sleep() {
    let mut run = Driver::start(one(json!({"wait": {"signal": "go", "timeout_ms": 20_000}})));
    run.at(17_000).wake("");
    assert_eq!(run.lines_of("event"), ["event deadline_warning t1 a wait"]);
    let mut run = Driver::start(one(json!({"wait": {"sleep_ms": 20_000}})));
    run.at(20_999).wake("");
    assert_eq!(run.kinds(), "", "nothing is wrong when a sleep ends");
}

#[test]
fn the_deadline_of_a_join() {
    let mut run = Driver::start(three(json!({"timeout_ms": 20_000})));
    run.at(5_000).succeed("t2@1", json!(1));
    assert_eq!(run.run.next_deadline(), Some(21_000));
    run.at(21_000).wake("t3@1 t4@1");
    assert_eq!(
        run.lines_of("event"),
        ["event deadline_warning z synchronization"]
    );
    run.reload().at(22_000).wake("t3@1 t4@1");
    assert_eq!(run.warnings().len(), 1);
    // The deadline is enforced as well.
    run.at(25_000).wake("t3@1 t4@1");
    run.assert_status("failed sync_timeout/timeout: Synchronization timeout exceeded");
}

#[test]
fn nothing_under_ten_seconds() {
    let mut run = Driver::start(limited(9_999));
    assert_eq!(run.run.next_deadline(), Some(10_999));
    run.at(10_998).wake("t1@1");
    assert_eq!(run.warnings(), []);
    let mut run = Driver::start(limited(10_000));
    run.at(9_000).wake("t1@1");
    assert_eq!(run.warnings(), [(9_000, json!("workflow"))]);
}

#[test]
fn not_when_woken_after_the_deadline() {
    let mut run = Driver::start(limited(20_000));
    run.at(30_000).wake("t1@1");
    assert_eq!(run.kinds(), "run_timed_out");
    let mut run = Driver::start(with(limited(20_000), json!({"on_timeout": "human_gate"})));
    run.at(30_000).wake("t1@1");
    assert_eq!(run.kinds(), "run_paused");
    let mut run = Driver::start(one(json!({"action_id": "work", "timeout_ms": 20_000})));
    // In the grace of the executor it is too late for a warning.
    run.at(21_200).wake("t1@1").assert_status("running a:executing");
    assert_eq!(run.warnings(), []);
    run.at(21_500).wake("t1@1");
    assert_eq!(run.kinds(), "token_timed_out run_failed");
    let mut run = Driver::start(three(json!({"timeout_ms": 20_000})));
    run.succeed("t2@1", json!(1)).at(21_000).wake("t3@1 t4@1");
    assert_eq!(run.kinds(), "sync_timed_out run_failed");
}

/// The grace of a run on its parent's budget is left to the parent: it is too late for a warning.
#[test]
fn not_in_the_grace_of_a_budget() {
    let document = with(
        one(json!({"workflow_id": "child"})),
        json!({"timeout_ms": 20_000, "timeouts": {"inherit_budget": true}}),
    );
    let parent = Driver::start(document);
    let mut child = Driver::child_of(&parent);
    child.at(21_100).wake("t1@1").assert_status("running c:executing");
    assert_eq!(child.warnings(), []);
}

#[test]
fn once_whatever_crashes_in_between() {
    let mut run = Driver::start(with(
        one(json!({"action_id": "work", "timeout_ms": 20_000})),
        json!({"timeout_ms": 25_000}),
    ));
    run.at(17_000).wake("t1@1").reload().wake("t1@1");
    run.at(21_000).wake("t1@1").reload().wake("t1@1").wake("t1@1");
    assert_eq!(
        run.warnings(),
        [(17_000, json!("execution")), (21_000, json!("workflow"))]
    );
}

#[test]
fn a_pause_moves_the_warning_with_its_deadline() {
    let mut run = Driver::start(limited(20_000));
    run.at(11_000).pause().at(50_000).wake("t1@1");
    assert_eq!(run.warnings(), []);
    run.at(111_000).resume().at(116_999).wake("t1@1");
    assert_eq!(run.warnings(), []);
    run.at(117_000).wake("t1@1");
    assert_eq!(run.warnings(), [(117_000, json!("workflow"))]);
    // A warning from before a pause is not repeated after it.
    run.pause().at(200_000).resume().at(201_000).wake("t1@1");
    assert_eq!(run.warnings().len(), 1);
}

#[test]
fn a_workflow_may_set_the_moment() {
    let document = with(limited(20_000), json!({"timeouts": {"warn_at": 0.25}}));
    let mut run = Driver::start(document);
    assert_eq!(run.run.next_deadline(), Some(6_000));
    run.at(6_000).wake("t1@1");
    assert_eq!(run.warnings(), [(6_000, json!("workflow"))]);
}
