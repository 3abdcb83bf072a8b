//! A run whose limit has passed waits at a gate with its clock stopped, and continues from there after an extension.

use curfew::run::{GateStatus, Rejection};
use serde_json::{Value, json};

use super::driver::Driver;
use super::graphs::{fan, with};

/// `a`, then `b`, with a limit of four seconds and a gate at the limit.
fn watched(node: Value) -> Value {
    json!({
        "timeout_ms": 4_000, "on_timeout": "human_gate",
        "nodes": [with(json!({"id": "a", "action_id": "work"}), node), {"id": "b", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}],
    })
}

/// The same with another kind of node first.
fn watched_node(node: Value) -> Value {
    let mut document = watched(json!({}));
    document["nodes"][0] = with(json!({"id": "a"}), node);
    document
}

fn at_the_gate(document: Value) -> Driver {
    let mut run = Driver::start(document);
    run.at(5_000).wake("t1@1");
    run
}

const SEVEN_DAYS: u64 = 7 * 24 * 3_600_000;

#[test]
fn the_limit_opens_a_gate_with_its_choices_and_a_deadline_of_its_own() {
    let mut run = at_the_gate(watched(json!({})));
    run.check(
        r#"
        run paused until 5000 held by workflow_timeout
        gate run1 open "The run has used up its limit of 4s. Extend it, abort it or fail it?" extend|abort|fail until 604805000
        event run_paused workflow_timeout {flow late 0 escalate}
        alarm 483845000
        announce
        announce run1 open
    "#,
    );
    run.assert_status("paused a:executing");
    let gate = run.run.gate_of_run().expect("a gate");
    assert_eq!(
        (gate.opened_at, gate.timeout_at),
        (5_000, Some(5_000 + SEVEN_DAYS))
    );
    assert_eq!((&gate.node_id, &gate.token_id), (&None, &None));
    assert_eq!(
        gate.input_schema
            .as_ref()
            .map(|schema| &schema["properties"]["by_ms"]["minimum"]),
        Some(&json!(1))
    );
}

#[test]
fn an_extension_gives_exactly_the_time_asked() {
    let mut run = at_the_gate(watched(json!({})));
    run.at(3_600_000).grant("run1", 60_000).check(
        r#"
        run running until 3660000
        token t1 a executing@1 watch 3626000
        gate run1 decided "The run has used up its limit of 4s. Extend it, abort it or fail it?" extend|abort|fail until 604805000 extend by ada at 3600000
        event run_extended by_ms 60000 by ada
        event run_resumed workflow_timeout by ada
        alarm 3626000
        announce
        announce run1 decided
    "#,
    );
    assert_eq!(run.run.header.timeout_ms, Some(64_000));
    run.at(3_659_999)
        .wake("t1@1")
        .assert_status("running a:executing");
    // The next timeout opens another gate.
    run.at(3_660_000).wake("t1@1").assert_status("paused a:executing");
    assert_eq!(run.run.gate_of_run().map(|gate| gate.id.as_str()), Some("run2"));
}

#[test]
fn an_attempt_keeps_its_remaining_time() {
    let mut run = at_the_gate(watched(json!({"timeout_ms": 6_000})));
    assert_eq!(
        run.run.next_deadline(),
        Some(483_845_000),
        "only the gate's warning"
    );
    run.at(6_500).wake("t1@1").assert_status("paused a:executing");
    run.at(100_000).grant("run1", 60_000);
    // Two seconds of six, and the grace.
    assert_eq!(run.run.next_deadline(), Some(102_500));
    run.at(102_500)
        .wake("t1@1")
        .assert_status("failed execution_timeout/timeout: step a timed out: context deadline exceeded");
}

#[test]
fn a_join_keeps_its_remaining_wait() {
    let mut document = fan(json!({"spawn_count": 2}), json!({"timeout_ms": 6_000}));
    document["timeout_ms"] = json!(4_000);
    document["on_timeout"] = json!("human_gate");
    let mut run = Driver::start(document);
    run.at(2_000).succeed("t2@1", json!(1)).at(5_000).wake("t3@1");
    run.assert_status("paused b:executing b:waiting_for_siblings");
    run.at(9_000).wake("t3@1").reload();
    run.at(50_000).grant("run1", 60_000);
    assert_eq!(
        run.lines_of("instance"),
        ["instance 1 out of 2 join z from 2000 until 53000"]
    );
    run.at(53_000)
        .wake("t3@1")
        .assert_status("failed sync_timeout/timeout: Synchronization timeout exceeded");
}

#[test]
fn a_sleep_keeps_its_remaining_time_and_a_wait_until_a_moment_does_not() {
    let mut run = at_the_gate(watched_node(json!({"wait": {"sleep_ms": 10_000}})));
    run.at(20_000).wake("").assert_status("paused a:suspended");
    run.at(100_000).grant("run1", 60_000);
    assert_eq!(run.run.next_deadline(), Some(106_000), "six of ten seconds");
    let mut run = at_the_gate(watched_node(json!({"wait": {"until": 11_000}})));
    run.at(20_000).wake("").assert_status("paused a:suspended");
    run.at(100_000).grant("run1", 60_000);
    assert_eq!(run.run.next_deadline(), Some(11_000), "it has passed");
    run.wake("").assert_status("running b:executing");
}

#[test]
fn a_wait_for_a_signal_keeps_its_remaining_time_and_receives_signals_meanwhile() {
    let wait = json!({"wait": {"signal": "go", "timeout_ms": 9_000}});
    let mut run = at_the_gate(watched_node(wait.clone()));
    run.at(100_000)
        .grant("run1", 60_000)
        .assert_status("waiting a:suspended");
    assert_eq!(run.run.header.timeout_at, Some(160_000));
    assert_eq!(run.row("t1").deadline.at, Some(105_000));
    let mut run = at_the_gate(watched_node(wait));
    run.at(50_000)
        .signal("go", json!(7))
        .assert_status("paused b:pending");
    run.at(100_000)
        .grant("run1", 60_000)
        .assert_status("running b:executing");
    assert_eq!(run.state()["a"], json!(7));
}

#[test]
fn a_gate_of_a_node_keeps_its_remaining_time_and_takes_a_decision_meanwhile() {
    let gate = json!({"gate": {"timeout_ms": 9_000, "remind_at": []}});
    let mut document = watched_node(gate);
    document["clock"] = json!("runs");
    let mut run = at_the_gate(document.clone());
    run.at(12_000).wake("").assert_status("paused a:awaiting_human");
    run.at(100_000)
        .grant("run1", 60_000)
        .assert_status("waiting a:awaiting_human");
    let open = run.run.gates().find(|gate| gate.id == "g1");
    assert_eq!(open.and_then(|gate| gate.timeout_at), Some(105_000));
    let mut run = at_the_gate(document);
    run.at(50_000)
        .decide("g1", "approve")
        .assert_status("paused b:pending");
    run.at(100_000)
        .grant("run1", 60_000)
        .assert_status("running b:executing");
}

#[test]
fn children_are_paused_and_released() {
    let mut run = Driver::start(watched_node(json!({"workflow_id": "child"})));
    run.delivered(1).at(5_000).wake("");
    assert_eq!(run.lines_of("deliver"), ["deliver 2 hold run-1~t1 #1"]);
    run.delivered(2).at(100_000).grant("run1", 60_000);
    assert_eq!(run.lines_of("deliver"), ["deliver 3 release run-1~t1 #2"]);
}

#[test]
fn results_in_flight_are_kept_and_the_next_node_does_not_begin() {
    let mut run = at_the_gate(watched(json!({})));
    run.at(5_200).succeed("t1@1", json!("kept")).check(
        "
        token t1 a completed@1 \"kept\" keeps state.a
        token t2 b pending@0
    ",
    );
    run.reload().assert_status("paused b:pending");
    run.at(9_000)
        .grant("run1", 60_000)
        .assert_status("running b:executing");
    assert_eq!(run.lines_of("dispatch"), ["dispatch t2@1 {\"x\":1}"]);
}

#[test]
fn a_failure_in_flight_takes_its_route_without_beginning_it() {
    let mut document = watched(json!({}));
    document["transitions"][0]["on"] = json!("failure");
    let mut run = at_the_gate(document);
    run.fail("t1@1").assert_status("paused b:pending");
    // Without a route the run ends and the gate is cancelled.
    let mut run = at_the_gate(watched(json!({})));
    run.fail("t1@1")
        .assert_status("failed peer_failed/server_error: status 500");
    assert_eq!(run.lines_of("announce"), ["announce", "announce run1 cancelled"]);
}

/// The executor does not learn of the pause: it stops at the deadline it was sent and reports a timeout.
#[test]
fn a_timeout_that_an_executor_reports_during_a_pause_does_not_count() {
    let mut run = at_the_gate(watched(json!({"on_timeout": "retry", "max_retries": 1})));
    run.at(5_500).time_out("t1@1").check(
        "
        token t1 a pending@1
    ",
    );
    run.reload()
        .at(9_000)
        .grant("run1", 60_000)
        .assert_status("running a:executing");
    assert_eq!(run.lines_of("dispatch"), ["dispatch t1@2 {\"x\":1}"]);
    assert_eq!(run.row("t1").retry_count, 0);
    assert_eq!(run.records().len(), 1, "only the run's own");
}

#[test]
fn a_run_whose_last_token_ended_meanwhile_completes_after_the_extension() {
    let mut run = Driver::start(json!({"timeout_ms": 4_000, "on_timeout": "human_gate",
        "nodes": [{"id": "a", "action_id": "work"}]}));
    run.at(5_000)
        .wake("t1@1")
        .at(6_000)
        .succeed("t1@1", json!(1))
        .assert_status("paused");
    run.grant("run1", 1).assert_status("completed {}");
    assert_eq!(run.lines_of("ended"), ["ended"]);
}

#[test]
fn an_extension_may_be_a_duration() {
    let mut run = at_the_gate(watched(json!({})));
    for (input, problem) in [
        (
            json!({"by": "soon"}),
            "/input/by: invalid duration \"soon\": expected a number",
        ),
        (
            json!({"by": "-5m"}),
            "/input/by: invalid duration \"-5m\": it must not be negative",
        ),
        (json!({"by": "0s"}), "/input/by: an extension is at least 1ms"),
        (json!({"by": 60_000}), "/input/by: write either"),
        (json!({"by": "1m", "by_ms": 60_000}), "/input/by: write either"),
    ] {
        run.decide_with("run1", "extend", input.clone());
        let Err(Rejection::InvalidDecision { pointer, message }) = &run.answer else {
            panic!("{input}: {:?}", run.answer);
        };
        let found = format!("{pointer}: {message}");
        assert!(found.starts_with(problem), "{input}: {found}");
    }
    run.at(3_600_000)
        .decide_with("run1", "extend", json!({"by": "1m"}));
    assert_eq!(
        run.lines_of("run"),
        ["run running until 3660000"],
        "as with by_ms 60000"
    );
}

#[test]
fn an_extension_needs_a_number_of_milliseconds() {
    let mut run = at_the_gate(watched(json!({})));
    for input in [
        json!(null),
        json!({}),
        json!({"by_ms": 0}),
        json!({"by_ms": -5}),
        json!({"by_ms": 1.5}),
        json!({"by_ms": "60000"}),
        json!("60000"),
    ] {
        run.decide_with("run1", "extend", input.clone()).check(
            "rejected invalid_decision /input/by_ms: \"extend\" needs the number of milliseconds the run gets more, or \"by\": \"10m\"",
        );
        run.assert_status("paused a:executing");
    }
    run.decide("run1", "approve")
        .check("rejected invalid_decision /choice: \"approve\" is none of extend, abort, fail");
    let gate = run.run.gate_of_run().expect("still open");
    assert_eq!(gate.status, GateStatus::Open);
    run.grant("run1", 31 * 24 * 3_600_000);
    assert!(run.answer.is_err(), "more than a deadline may be");
    run.assert_status("paused a:executing");
}

#[test]
fn a_crash_at_the_gate_loses_nothing() {
    let mut run = at_the_gate(watched(json!({"timeout_ms": 6_000})));
    run.reload().at(8_000).load().assert_status("paused a:pending");
    assert_eq!(run.lines_of("dispatch"), [""; 0]);
    assert_eq!(run.run.gate_of_run().map(|gate| gate.id.as_str()), Some("run1"));
    assert_eq!(run.run.next_deadline(), Some(483_845_000));
    run.reload().at(100_000).grant("run1", 60_000);
    run.assert_status("running a:executing");
    assert_eq!(run.run.header.timeout_at, Some(160_000));
    // The next attempt has the whole limit: the lost one left no checkpoint.
    assert_eq!(run.lines_of("dispatch"), ["dispatch t1@2 {\"x\":1} by 106000"]);
}

#[test]
fn a_crash_after_the_extension_loses_nothing() {
    let mut run = at_the_gate(watched(json!({"timeout_ms": 6_000})));
    run.at(100_000).grant("run1", 60_000).reload();
    run.assert_status("running a:executing");
    assert_eq!(run.run.header.timeout_at, Some(160_000));
    assert_eq!(run.run.next_deadline(), Some(102_500));
    assert_eq!(run.run.gate_of_run(), None);
    run.grant("run1", 1);
    assert!(
        run.lines_of("gate").is_empty() && run.answer.is_err(),
        "decided once"
    );
}

/// The limit is enforced first, however late the alarm is; other overdue timers are due again after the pause.
#[test]
fn a_late_alarm_that_finds_the_limit_and_other_deadlines_due() {
    let mut run = Driver::start(watched(json!({"timeout_ms": 2_000})));
    run.at(9_000).wake("t1@1").assert_status("paused a:executing");
    assert_eq!(
        run.lines_of("event"),
        ["event run_paused workflow_timeout {flow late 4000 escalate}"]
    );
    run.at(50_000)
        .grant("run1", 60_000)
        .assert_status("running a:executing");
    // The whole extension, however late the alarm was.
    assert_eq!(run.run.header.timeout_at, Some(110_000));
    run.wake("t1@1")
        .assert_status("failed execution_timeout/timeout: step a timed out: context deadline exceeded");
}

/// The pause ends before the executor stops at the deadline it was sent, which has moved since: that is no timeout.
#[test]
fn an_attempt_that_stops_at_its_deadline_from_before_a_pause_is_repeated() {
    let mut run = Driver::start(with(
        watched(json!({"timeout_ms": 10_000, "on_timeout": "retry"})),
        json!({"timeout_ms": 60_000}),
    ));
    assert_eq!(run.lines_of("dispatch"), ["dispatch t1@1 {\"x\":1} by 11000"]);
    run.at(4_000).pause().at(6_000).resume().reload();
    run.at(11_000).time_out("t1@1");
    assert_eq!(run.lines_of("dispatch"), ["dispatch t1@2 {\"x\":1} by 21000"]);
    assert_eq!(run.row("t1").retry_count, 0);
    assert_eq!(run.records().len(), 0);
    // An attempt that was sent the right deadline times out.
    run.at(21_000).time_out("t1@2");
    assert_eq!(run.row("t1").retry_count, 1);
}
