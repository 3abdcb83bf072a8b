//! Edge cases of deadlines: two at the same time, very short and very long ones, none at all.

use curfew::base::time::DAY;
use curfew::run::{RunStatus, TokenStatus};
use serde_json::{Value, json};

use super::driver::{Driver, START};
use super::graphs::{and, fan, nested, three, with};

fn one(node: Value) -> Value {
    json!({"nodes": [with(json!({"id": "a", "action_id": "work"}), node)]})
}

#[test]
fn workflow_and_node_deadline_in_the_same_millisecond() {
    let document = with(one(json!({"timeout_ms": 4_500})), json!({"timeout_ms": 5_000}));
    // The attempt's deadline plus grace equals the run's: the run's takes precedence, and one timeout is logged.
    let mut run = Driver::start(document);
    assert_eq!(
        run.run.next_deadline(),
        Some(6_000),
        "both are due at the same moment"
    );
    run.at(6_000).wake("t1@1").check(
        "
        run timed_out workflow_timeout/timeout: Workflow execution timed out after 5s
        token t1 a timed_out@1 (workflow_timeout)
        event run_timed_out workflow_timeout {flow late 0 cancel}
        alarm 10006000
        abort t1@1
        announce
        ended
    ",
    );
    assert_eq!(run.records().len(), 1);
}

#[test]
fn execution_deadline_and_result_in_the_same_millisecond() {
    let document = one(json!({"timeout_ms": 4_000}));
    let mut run = Driver::start(document.clone());
    run.at(5_500)
        .succeed("t1@1", json!(1))
        .assert_status("completed {}");
    run.wake("").assert_status("completed {}");
    assert_eq!(run.kinds(), "");
    let mut run = Driver::start(document);
    run.at(5_500).wake("t1@1").succeed("t1@1", json!(1));
    run.assert_status("failed execution_timeout/timeout: step a timed out: context deadline exceeded");
    assert_eq!(run.kinds(), "token_timed_out run_failed late_result_discarded");
}

/// The run's limit is checked before any result, so a result in the same millisecond is too late.
#[test]
fn workflow_deadline_and_result_in_the_same_millisecond() {
    let document = with(one(json!({})), json!({"timeout_ms": 4_000}));
    for result_first in [true, false] {
        let mut run = Driver::start(document.clone());
        run.at(5_000);
        match result_first {
            true => run.succeed("t1@1", json!(1)).wake("t1@1"),
            false => run.wake("t1@1").succeed("t1@1", json!(1)),
        };
        run.assert_status("timed_out workflow_timeout/timeout: Workflow execution timed out after 4s");
        assert_eq!(run.kinds(), "run_timed_out late_result_discarded");
    }
}

#[test]
fn sync_deadline_and_last_arrival_in_the_same_millisecond() {
    let document = three(json!({"timeout_ms": 5_000, "on_timeout": "proceed_with_available"}));
    let mut run = Driver::start(document.clone());
    run.succeed("t2@1", json!(1))
        .succeed("t3@1", json!(2))
        .at(6_000)
        .succeed("t4@1", json!(3));
    run.wake("t5@1").assert_status("running z:executing");
    assert_eq!(run.state()["all"], json!([1, 2, 3]));
    assert_eq!(run.kinds(), "");
    let mut run = Driver::start(document);
    run.succeed("t2@1", json!(1))
        .succeed("t3@1", json!(2))
        .at(6_000)
        .wake("t4@1")
        .succeed("t4@1", json!(3));
    run.assert_status("running z:executing");
    assert_eq!(run.state()["all"], json!([1, 2]));
    assert_eq!(run.kinds(), "sync_timed_out late_result_discarded");
}

/// The backoff after lost attempts is longer than the remaining time: the token times out, even with `retry`.
#[test]
fn timeout_of_a_token_still_pending() {
    let node = json!({"timeout_ms": 1_500, "on_timeout": "retry", "max_retries": 3});
    let mut run = Driver::start(one(node));
    run.lose("t1@1").at(2_000).lose("t1@2").check(
        "
        token t1 a pending@2 lost 2 until 2500 watch 3000 (attempt_lost)
        alarm 2500
    ",
    );
    run.at(2_500).wake("").check(
        "
        run failed execution_timeout/timeout: step a timed out: context deadline exceeded
        token t1 a timed_out@2 lost 2 (attempt_lost) execution_timeout/timeout: step a timed out: context deadline exceeded
        event token_timed_out t1 a {tool late 0 fail}
        event run_failed t1 a
        alarm 10002500
        announce
        ended
    ",
    );
}

/// The executor never reports: the alarm times the attempt out after its deadline and the grace.
#[test]
fn timeout_of_an_attempt_without_a_report() {
    let mut run = Driver::start(one(json!({"timeout_ms": 4_000})));
    run.at(5_000).wake("t1@1").check("");
    run.at(5_499).wake("t1@1").assert_status("running a:executing");
    run.at(5_500).wake("t1@1").check(
        "
        run failed execution_timeout/timeout: step a timed out: context deadline exceeded
        token t1 a timed_out@1 execution_timeout/timeout: step a timed out: context deadline exceeded
        event token_timed_out t1 a {tool late 500 fail}
        event run_failed t1 a
        alarm 10005500
        abort t1@1
        announce
        ended
    ",
    );
}

#[test]
fn nested_fan_ins_with_different_deadlines() {
    let proceed = |millis: u64| json!({"timeout_ms": millis, "on_timeout": "proceed_with_available"});
    let mut run = Driver::start(nested(proceed(3_000), proceed(10_000)));
    // t2, t3 are the outer branches; t4, t5 are in the first, t6, t7 in the second.
    run.assert_status("running 4xc:executing");
    run.at(2_000).succeed("t4@1", json!("a"));
    assert_eq!(run.run.next_deadline(), Some(5_000));
    // The first inner join times out; its branch continues to the outer join, whose wait begins now.
    run.at(5_000).wake("t5@1 t6@1 t7@1");
    run.assert_status("running 2xc:executing d:waiting_for_siblings");
    assert_eq!(run.run.next_deadline(), Some(13_000), "80 % of the outer wait");
    run.at(7_000).succeed("t6@1", json!("b"));
    assert_eq!(run.run.next_deadline(), Some(10_000), "the second inner wait");
    run.at(10_000).wake("t7@1").assert_status("running z:executing");
    assert_eq!(run.state()["all"], json!([["a"], ["b"]]));
    assert_eq!(run.kinds(), "sync_timed_out sync_timed_out");
}

#[test]
fn an_outer_fan_in_that_times_out_first_ends_the_inner_waits() {
    let inner = json!({"timeout_ms": 30_000});
    let outer = json!({"timeout_ms": 3_000, "on_timeout": "proceed_with_available"});
    let mut run = Driver::start(nested(inner, outer));
    run.succeed("t4@1", json!("a"))
        .succeed("t5@1", json!("b"))
        .succeed("t6@1", json!("c"));
    run.assert_status("running c:executing c:waiting_for_siblings d:waiting_for_siblings");
    run.at(4_000).wake("t7@1").assert_status("running z:executing");
    assert_eq!(run.state()["all"], json!([["a", "b"]]));
    assert_eq!(run.kinds(), "sync_timed_out");
    run.succeed("t7@1", json!("late"))
        .assert_status("running z:executing")
        .reload()
        .assert_status("running z:executing");
}

#[test]
fn a_straggler_that_finishes_after_proceed_with_available_is_discarded() {
    let document = three(json!({"timeout_ms": 5_000, "on_timeout": "proceed_with_available"}));
    let mut run = Driver::start(document);
    run.succeed("t3@1", json!("in time")).at(6_000).wake("t2@1 t4@1");
    run.assert_status("running z:executing");
    run.at(7_000).succeed("t2@1", json!("late")).check(
        "
        rejected stale_attempt t2@1
        event late_result_discarded t2
    ",
    );
    assert_eq!(run.state(), &json!({"all": ["in time"]}));
    assert_eq!(run.row("t2").status, TokenStatus::TimedOut);
    assert_eq!(run.row("t3").status, TokenStatus::Completed);
}

/// A token that arrived by a failure transition waits, but has not completed.
#[test]
fn no_sibling_completed() {
    let proceed = json!({"timeout_ms": 5_000, "on_timeout": "proceed_with_available"});
    let document = three(with(proceed, json!({"strategy": {"m_of_n": 2}})));
    let join = document["transitions"][1]["synchronization"].clone();
    let document = and(
        document,
        json!({"id": "broken", "from_node_id": "b", "to_node_id": "z", "on": "failure", "synchronization": join}),
    );
    let mut run = Driver::start(document);
    run.fail("t2@1")
        .assert_status("running 2xb:executing b:waiting_for_siblings");
    run.at(6_000)
        .wake("t3@1 t4@1")
        .assert_status("failed sync_timeout/timeout: No siblings completed before timeout");
    let record = run.records().pop().expect("a record");
    assert_eq!(json!(record.final_action), json!("fail"));
    assert_eq!(run.row("t2").status, TokenStatus::TimedOut);
}

/// The alarm of the old deadline may fire while the limit is extended.
#[test]
fn extend_while_the_alarm_is_running() {
    let document = with(
        one(json!({})),
        json!({"timeout_ms": 4_000, "on_timeout": "human_gate"}),
    );
    // The extension comes first, in the last millisecond: the alarm finds nothing due and is set again.
    let mut run = Driver::start(document.clone());
    run.at(4_999).extend(10_000);
    run.at(5_000).wake("t1@1").check("alarm 12200");
    run.assert_status("running a:executing");
    assert_eq!(run.run.header.timeout_at, Some(15_000));
    // The alarm comes first: the run waits at its gate, and the extension decides the gate.
    let mut run = Driver::start(document);
    run.at(5_000)
        .wake("t1@1")
        .assert_status("paused a:executing")
        .extend(10_000)
        .assert_status("running a:executing");
    assert_eq!(run.run.header.timeout_at, Some(15_000));
    assert_eq!(run.kinds(), "run_paused run_extended run_resumed");
}

/// An extension in the millisecond of the deadline is too late for a run without a timeout gate.
#[test]
fn an_extension_at_the_deadline_is_too_late() {
    let mut run = Driver::start(with(one(json!({})), json!({"timeout_ms": 4_000})));
    run.at(5_000).extend(10_000);
    assert_eq!(run.lines_of("rejected"), [""; 0]);
    run.assert_status("timed_out workflow_timeout/timeout: Workflow execution timed out after 4s");
    assert!(
        matches!(
            run.answer,
            Err(curfew::run::Rejection::CannotExtend(RunStatus::TimedOut))
        ),
        "{:?}",
        run.answer
    );
}

#[test]
fn pause_during_a_retry_backoff() {
    let node = json!({"timeout_ms": 4_000, "on_timeout": "retry"});
    let mut run = Driver::start(one(node));
    run.at(5_000).time_out("t1@1").check(
        "
        token t1 a pending@1 retry 1 watch 6000 (execution_timeout)
        event token_timed_out t1 a {tool late 0 retry}
        event token_retried t1 retry_count 1 delay_ms 1000
    ",
    );
    // 700 ms of the backoff are left, both before and after the pause.
    run.at(5_300).pause().reload();
    run.at(6_000).wake("").assert_status("paused a:pending");
    run.at(60_000).resume().assert_status("running a:pending");
    assert_eq!(run.run.next_deadline(), Some(60_700));
    run.at(60_700).wake("").assert_status("running a:executing");
    assert_eq!(run.lines_of("dispatch"), ["dispatch t1@2 {\"x\":1} by 64700"]);
}

#[test]
fn a_clock_that_goes_back_moves_no_deadline() {
    let mut run = Driver::start(one(json!({"timeout_ms": 4_000})));
    run.at(4_000).wake("t1@1");
    run.at(10)
        .wake("t1@1")
        .check("")
        .assert_status("running a:executing");
    assert_eq!(run.run.next_deadline(), Some(5_500));
    // A pause that seems to end before it began has no length.
    run.at(4_500).pause().at(20).resume();
    assert_eq!(run.run.next_deadline(), Some(5_500));
    // A reload loses the latest time seen, but the run's time is never before its start.
    run.reload().at(5).load().assert_status("running a:executing");
    assert_eq!(run.lines_of("dispatch"), ["dispatch t1@2 {\"x\":1} by 5000"]);
}

#[test]
fn timeout_of_one_millisecond() {
    let mut run = Driver::start(with(one(json!({"timeout_ms": 1})), json!({"timeout_ms": 1})));
    assert_eq!(run.run.next_deadline(), Some(START + 1));
    run.at(START)
        .succeed("t1@1", json!(1))
        .assert_status("completed {}");
    let mut run = Driver::start(with(one(json!({})), json!({"timeout_ms": 1})));
    run.at(START + 1)
        .wake("t1@1")
        .assert_status("timed_out workflow_timeout/timeout: Workflow execution timed out after 1ms");
}

#[test]
fn timeout_of_thirty_days() {
    let document = with(
        json!({"nodes": [{"id": "a", "wait": {"signal": "go"}}]}),
        json!({"timeout_ms": 30 * DAY}),
    );
    let mut run = Driver::start(document);
    assert_eq!(run.run.next_deadline(), Some(START + 24 * DAY), "the warning");
    run.at(START + 24 * DAY).wake("").reload();
    assert_eq!(run.run.next_deadline(), Some(START + 30 * DAY));
    run.at(START + 30 * DAY - 1)
        .wake("")
        .assert_status("waiting a:suspended");
    run.at(START + 30 * DAY).wake("");
    run.assert_status("timed_out workflow_timeout/timeout: Workflow execution timed out after 720h0m0s");
}

/// Commits stay small: each wake handles a hundred tokens, the longest overdue first, and the alarm fires again immediately.
#[test]
fn a_thousand_tokens_due_at_once() {
    let mut document = fan(
        json!({"spawn_count": 1_000}),
        json!({"on_branch_failure": "proceed_with_available"}),
    );
    document["nodes"][1]["timeout_ms"] = json!(4_000);
    document["transitions"][1]["synchronization"]["timeout_ms"] = Value::Null;
    let mut run = Driver::start(document);
    run.at(5_500);
    for wake in 1..=10 {
        run.wake("");
        let ended: Vec<String> = run
            .lines_of("token")
            .iter()
            .filter_map(|line| line.split(' ').nth(1).map(str::to_string))
            .collect();
        let first = (wake - 1) * 100 + 2;
        let expected: Vec<String> = (first..first + 100).map(|id| format!("t{id}")).collect();
        assert_eq!(ended, expected, "wake {wake}");
        if wake < 10 {
            assert_eq!(run.lines_of("alarm"), ["alarm 5500"], "wake {wake}");
        }
    }
    assert_eq!(run.run.header.status, RunStatus::Failed);
    assert_eq!(run.records().len(), 1_000);
    assert_eq!(run.run.counts()[&TokenStatus::TimedOut], 1_000);
}

/// Only the watch on its attempts remains.
#[test]
fn timeout_null() {
    let mut run = Driver::start(with(one(json!({"timeout_ms": null})), json!({"timeout": null})));
    assert_eq!(run.run.header.timeout_at, None);
    assert_eq!(run.lines_of("dispatch"), ["dispatch t1@1 {\"x\":1}"]);
    let mut now = START;
    for _ in 0..20 {
        now += 40 * DAY;
        run.at(now).wake("t1@1").assert_status("running a:executing");
    }
    assert_eq!(run.kinds(), "");
    run.extend(1_000).check("rejected no_deadline");
    run.succeed("t1@1", json!(1)).assert_status("completed {}");
}

#[test]
fn an_infinite_loop_is_caught_by_the_workflow_deadline() {
    let step = |from: &str, to: &str| json!({"from_node_id": from, "to_node_id": to});
    let node = |id: &str| json!({"id": id, "action_id": "work"});
    let mut run = Driver::start(json!({
        "nodes": [node("a"), node("b"), node("c")],
        "transitions": [step("a", "b"), step("b", "c"), step("c", "a")],
        "timeout_ms": 60_000,
    }));
    let mut token = 0;
    while !run.run.header.status.is_terminal() {
        token += 1;
        let now = run.now + 700;
        run.at(now).succeed(&format!("t{token}@1"), json!(token));
        assert!(token < 1_000, "nothing stops it");
    }
    run.assert_status("timed_out workflow_timeout/timeout: Workflow execution timed out after 1m0s");
    assert_eq!(token, 86, "the first result that is too late");
}

#[test]
fn an_exponential_fan_out_is_caught_by_tokens_active() {
    let mut run = Driver::start(json!({
        "nodes": [{"id": "a", "action_id": "work"}],
        "transitions": [{"id": "twice", "from_node_id": "a", "to_node_id": "a", "spawn_count": 2}],
        "limits": {"tokens_active": 64},
    }));
    let mut token = 0;
    while !run.run.header.status.is_terminal() {
        token += 1;
        run.succeed(&format!("t{token}@1"), json!(0));
        assert!(token < 1_000, "nothing stops it");
    }
    run.assert_status("failed limit_exceeded/permanent: limit tokens_active exceeded: the run may have 64");
    assert_eq!(run.run.live_tokens().count(), 0);
    assert_eq!(run.kinds(), "limit_exceeded run_failed");
}
