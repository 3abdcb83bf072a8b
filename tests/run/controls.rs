//! User requests to a run: pause and resume with their effect on deadlines, cancel, restart.

use crate::run::plans::Plans;
use curfew::run::{Event, RestartPoint, RunStatus};
use serde_json::{Value, json};

use super::driver::{Driver, WORKFLOW_TIMEOUT_MS};
use super::graphs::{and, three, with};

fn one(node: Value) -> Value {
    json!({"nodes": [with(json!({"id": "a"}), node), {"id": "b", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}]})
}

#[test]
fn a_pause_moves_the_runs_deadline() {
    let mut run = Driver::start(one(json!({"action_id": "work"})));
    run.at(2_000).pause().check(
        "
        run paused until 1001000 held by person
        event run_paused person
        announce
    ",
    );
    run.pause().check("");
    run.reload().at(5_000_000).wake("t1@1").check("");
    run.assert_status("paused a:executing");
    run.at(5_002_000).resume();
    assert_eq!(run.run.header.timeout_at, Some(1_001_000 + 5_000_000));
    run.assert_status("running a:executing");
    run.resume().check("rejected not_paused");
}

#[test]
fn an_attempt_keeps_its_remaining_time() {
    let mut run = Driver::start(one(json!({"action_id": "work", "timeout_ms": 10_000})));
    run.at(4_000).pause();
    assert_eq!(run.run.next_deadline(), None);
    run.at(100_000).wake("t1@1").assert_status("paused a:executing");
    run.resume();
    // 7 s and the grace were left; the warning moved with the deadline.
    assert_eq!(run.run.next_deadline(), Some(105_000));
    run.at(105_000).wake("t1@1");
    assert_eq!(run.lines_of("event"), ["event deadline_warning t1 a execution"]);
    assert_eq!(run.run.next_deadline(), Some(107_500));
    run.at(107_499).wake("t1@1").assert_status("running a:executing");
    run.at(107_500).wake("t1@1");
    run.assert_status("failed execution_timeout/timeout: step a timed out: context deadline exceeded");
}

#[test]
fn reports_are_accepted_during_a_pause_and_nothing_new_begins() {
    let mut run = Driver::start(one(json!({"action_id": "work"})));
    run.at(2_000).pause().at(3_000).succeed("t1@1", json!("kept"));
    run.check(
        "
        token t1 a completed@1 \"kept\" keeps state.a
        token t2 b pending@0
    ",
    );
    run.assert_status("paused b:pending").reload().at(4_000).resume();
    assert_eq!(run.lines_of("dispatch"), ["dispatch t2@1 {\"x\":1}"]);
    run.assert_status("running b:executing");
}

#[test]
fn a_run_does_not_complete_while_it_is_paused() {
    let mut run = Driver::start(json!({"nodes": [{"id": "a", "action_id": "work"}]}));
    run.pause().succeed("t1@1", json!(1)).assert_status("paused");
    run.reload().wake("").assert_status("paused");
    run.at(9_000).resume().assert_status("completed {}");
    assert_eq!(run.lines_of("ended"), ["ended"]);
}

#[test]
fn a_lost_attempt_is_replaced_after_the_pause() {
    let mut run = Driver::start(one(json!({"action_id": "work", "timeout_ms": 5_000})));
    // The object is loaded long after the deadline, but the run was paused.
    run.at(2_000)
        .pause()
        .reload()
        .at(60_000)
        .load()
        .assert_status("paused a:pending");
    assert_eq!(run.lines_of("dispatch"), [""; 0]);
    run.at(61_000).resume().assert_status("running a:executing");
    assert_eq!(run.lines_of("dispatch"), ["dispatch t1@2 {\"x\":1} by 66000"]);
}

#[test]
fn a_pause_does_not_lengthen_the_backoff_between_attempts() {
    let mut run = Driver::start(one(json!({"action_id": "work"})));
    run.at(2_000)
        .lose("t1@1")
        .at(10_000)
        .pause()
        .at(20_000)
        .lose("t1@2")
        .assert_status("paused a:pending");
    run.at(30_000).resume();
    // The backoff of one second counts from the start of the pause, and the resume moves it.
    assert_eq!(run.run.next_deadline(), Some(31_000));
    run.at(31_000).wake("").assert_status("running a:executing");
}

#[test]
fn a_pause_stops_the_wait_of_a_join() {
    let mut run = Driver::start(three(json!({"timeout_ms": 5_000})));
    run.succeed("t2@1", json!(1)).at(3_000).pause();
    run.reload()
        .at(50_000)
        .wake("t3@1 t4@1")
        .assert_status("paused 2xb:executing b:waiting_for_siblings");
    run.resume();
    assert_eq!(
        run.lines_of("instance"),
        ["instance 1 out of 3 join z from 1000 until 53000"]
    );
    run.reload().at(53_000).wake("t3@1 t4@1");
    run.assert_status("failed sync_timeout/timeout: Synchronization timeout exceeded");
}

#[test]
fn a_wait_that_begins_during_a_pause_keeps_its_full_time() {
    let mut run = Driver::start(three(json!({"timeout_ms": 5_000})));
    run.at(2_000).pause().at(30_000).succeed("t2@1", json!(1));
    run.assert_status("paused 2xb:executing b:waiting_for_siblings");
    run.at(40_000).resume();
    let deadline = run
        .run
        .instances()
        .next()
        .and_then(|it| it.fan_ins.values().next())
        .and_then(|it| it.timeout_at);
    assert_eq!(deadline, Some(45_000));
}

#[test]
fn the_last_arrival_may_come_during_a_pause() {
    let mut run = Driver::start(three(json!({})));
    run.succeed("t2@1", json!(1)).pause();
    run.succeed("t3@1", json!(2))
        .succeed("t4@1", json!(3))
        .assert_status("paused z:pending");
    run.reload().resume().assert_status("running z:executing");
    assert_eq!(run.state()["all"], json!([1, 2, 3]));
}

#[test]
fn a_pause_moves_the_deadline_and_reminders_of_a_gate() {
    let gate = json!({"gate": {"timeout_ms": 10_000, "remind_at": [0.5, 0.9]}});
    let mut run = Driver::start(one(gate));
    run.at(2_000)
        .pause()
        .at(50_000)
        .wake("")
        .assert_status("paused a:awaiting_human");
    run.at(102_000).resume().assert_status("waiting a:awaiting_human");
    assert_eq!(
        run.lines_of("gate"),
        ["gate g1 open null approve|reject until 111000"]
    );
    assert_eq!(run.run.next_deadline(), Some(106_000));
    run.reload().at(106_000).wake("");
    assert_eq!(run.run.next_deadline(), Some(109_000), "the warning moved, too");
    run.reload().at(109_000).wake("");
    assert_eq!(run.run.next_deadline(), Some(110_000), "and the second reminder");
    run.at(110_000).wake("");
    assert_eq!(run.run.next_deadline(), Some(111_000));
}

#[test]
fn a_gate_can_be_decided_during_a_pause() {
    let mut run = Driver::start(one(json!({"gate": {}})));
    run.pause()
        .decide("g1", "approve")
        .assert_status("paused b:pending");
    run.resume().assert_status("running b:executing");
}

#[test]
fn a_pause_stops_sleeps_and_keeps_signals() {
    let mut run = Driver::start(one(json!({"wait": {"sleep_ms": 10_000}})));
    run.at(4_000)
        .pause()
        .reload()
        .at(50_000)
        .wake("")
        .assert_status("paused a:suspended");
    run.at(54_000).resume();
    assert_eq!(run.run.next_deadline(), Some(61_000));
    let mut run = Driver::start(one(json!({"wait": {"signal": "go", "timeout_ms": 10_000}})));
    run.at(4_000)
        .pause()
        .reload()
        .at(50_000)
        .signal("go", json!(1))
        .assert_status("paused b:pending");
    run.resume().assert_status("running b:executing");
}

#[test]
fn children_end_during_a_pause() {
    let mut run = Driver::start(one(json!({"workflow_id": "child", "timeout_ms": 10_000})));
    run.delivered(1).at(2_000).pause().reload();
    run.at(60_000)
        .wake("")
        .assert_status("paused a:waiting_for_subworkflow");
    run.child_ended("t1@1", RunStatus::Completed, Some(json!(1)))
        .assert_status("paused b:pending");
    run.at(61_000).resume().assert_status("running b:executing");
}

#[test]
fn messages_are_sent_during_a_pause() {
    let mut run = Driver::start(one(json!({"workflow_id": "child"})));
    run.pause();
    assert_eq!(run.run.next_deadline(), Some(11_000));
    run.at(11_000).wake("");
    assert_eq!(
        run.lines_of("deliver"),
        ["deliver 1 start run-1~t1 {\"x\":1}", "deliver 2 hold run-1~t1 #1"],
        "the child is begun and told to stand still, in whatever order it hears of it"
    );
}

#[test]
fn a_paused_run_can_be_cancelled() {
    let mut run = Driver::start(one(json!({"action_id": "work"})));
    run.pause()
        .at(2_000)
        .cancel(Some("enough"))
        .assert_status("cancelled");
    assert_eq!(run.lines_of("abort"), ["abort t1@1"]);
    run.resume().check("rejected run_finished");
    run.pause().check("rejected run_finished");
}

#[test]
fn a_failure_without_a_route_ends_a_paused_run() {
    let mut run = Driver::start(one(json!({"action_id": "work"})));
    run.pause()
        .fail("t1@1")
        .assert_status("failed peer_failed/server_error: status 500");
}

#[test]
fn a_waiting_run_that_was_paused_waits_again() {
    let mut run = Driver::start(one(json!({"wait": {"signal": "go"}})));
    run.assert_status("waiting a:suspended")
        .pause()
        .assert_status("paused a:suspended");
    run.reload().resume().assert_status("waiting a:suspended");
}

pub(super) fn restart(run: &mut Driver, from: Option<RestartPoint>) {
    run.feed(Event::RestartRequested {
        from,
        by: None,
        version: None,
    });
}

/// The restart point as the host finds it: from the rows of all tokens.
pub(super) fn point(run: &Driver, node: &str) -> RestartPoint {
    let point = run.store.restart_point(&run.run, node);
    point.unwrap_or_else(|no| panic!("no way back to {node}: {no:?}"))
}

#[test]
fn a_restart_is_the_same_run_in_its_next_attempt() {
    let mut run = Driver::start(one(json!({"action_id": "work"})));
    run.succeed("t1@1", json!(1))
        .fail("t2@1")
        .assert_status("failed peer_failed/server_error: status 500");
    run.reload().at(9_000);
    restart(&mut run, None);
    run.check(
        r#"
        run running until 1009000
        context state.a gone
        token t3 a executing@1 watch 39000
        event run_restarted
        dispatch t3@1 {"x":1}
        announce
    "#,
    );
    assert_eq!((run.run.header.attempt, run.run.header.ended_at), (2, None));
    run.succeed("t2@1", json!("late")).check(
        "
            rejected stale_attempt t2@1
            event late_result_discarded t2",
    );
    run.succeed("t3@1", json!(2))
        .succeed("t4@1", json!(3))
        .assert_status("completed {}");
    assert_eq!(run.state(), &json!({"a": 2, "b": 3}));
}

#[test]
fn a_restart_from_a_node_restores_the_context() {
    let document = and(
        and(three(json!({})), json!({"from_node_id": "z", "to_node_id": "y"})),
        json!({"from_node_id": "y", "to_node_id": "x"}),
    );
    let document = with(
        document.clone(),
        json!({"nodes": [
            document["nodes"][0], document["nodes"][1], document["nodes"][2],
            {"id": "y", "action_id": "work", "output_mapping": {"state.z": "${result}", "state.all": "${[]}"}},
            {"id": "x", "action_id": "work"},
        ]}),
    );
    let mut run = Driver::start(document);
    for (attempt, result) in [("t2@1", 1), ("t3@1", 2), ("t4@1", 3), ("t5@1", 50), ("t6@1", 60)] {
        run.succeed(attempt, json!(result));
    }
    assert_eq!(run.state(), &json!({"all": [], "z": 60}));
    let back = point(&run, "y");
    restart(&mut run, Some(back));
    assert_eq!(run.state(), &json!({"all": [1, 2, 3], "z": 50}));
    run.assert_status("running y:executing").reload();
    let back = point(&run, "z");
    restart(&mut run, Some(back));
    assert_eq!(run.state(), &json!({"all": [1, 2, 3]}));
    let back = point(&run, "a");
    restart(&mut run, Some(back));
    assert_eq!(run.state(), &json!({}));
    run.assert_status("running 3xb:executing");
}

#[test]
fn a_restart_into_a_branch_or_at_an_unvisited_node_is_rejected() {
    let run = Driver::start(three(json!({})));
    for (node, why) in [
        ("b", "the node lies in a branch"),
        ("z", "the run has never been at this node"),
    ] {
        let no = run
            .store
            .restart_point(&run.run, node)
            .expect_err("there is none");
        assert!(format!("{no:?}").contains(why), "{no:?}");
    }
}

#[test]
fn a_restart_of_a_live_run_cancels_its_work() {
    let mut run = Driver::start(three(json!({})));
    run.succeed("t2@1", json!(1)).pause();
    restart(&mut run, None);
    assert_eq!(run.lines_of("abort"), ["abort t3@1", "abort t4@1"]);
    run.assert_status("running 3xb:executing");
    assert_eq!(run.run.header.paused_at, None);
    run.reload();
    for token in ["t6@1", "t7@1", "t8@1"] {
        run.succeed(token, json!(0));
    }
    run.assert_status("running z:executing");
    assert_eq!(run.run.header.timeout_at, Some(1_000 + WORKFLOW_TIMEOUT_MS));
}

/// A missing value and `null` are different.
#[test]
fn a_restart_restores_null_values() {
    let mut document = one(json!({"action_id": "work"}));
    document["nodes"][1]["output_mapping"] = json!({"state.a": "${result}", "state.new": "${result}"});
    let mut run = Driver::start(document);
    run.succeed("t1@1", json!(null)).succeed("t2@1", json!(7));
    assert_eq!(run.state(), &json!({"a": 7, "new": 7}));
    let back = point(&run, "b");
    restart(&mut run, Some(back));
    assert_eq!(run.state(), &json!({"a": null}));
    assert_eq!(run.reload().state(), &json!({"a": null}));
}

/// Deadlines that passed long ago are not handled before the run ends.
#[test]
fn an_abandoned_run_fails_and_keeps_its_rows() {
    let mut run = Driver::start(three(json!({"timeout_ms": 5_000})));
    run.at(2_000).succeed("t2@1", json!("one"));
    run.at(900_000_000).feed(Event::Abandoned);
    assert_eq!(run.lines_of("abort"), ["abort t3@1", "abort t4@1"]);
    assert!(
        run.status_line().starts_with("failed internal_error/permanent: "),
        "{}",
        run.status_line()
    );
    for (token, status) in [(2, "cancelled"), (3, "cancelled"), (4, "cancelled")] {
        assert_eq!(run.store.tokens[&token].0, status);
    }
    run.feed(Event::Abandoned).check("rejected run_finished");
    let status_line = run.status_line().to_string();
    run.reload().wake("").assert_status(&status_line);
}
