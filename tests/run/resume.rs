//! Resuming a run that failed or timed out: interrupted tokens continue, and no finished work is lost.

use curfew::run::{RetryMode, RunStatus, TokenStatus};
use serde_json::{Value, json};

use super::driver::{Driver, SETTINGS};
use super::graphs::with;

/// `a`, then `b`.
fn chain(more: Value) -> Value {
    with(
        json!({
            "timeout_ms": 60_000,
            "nodes": [{"id": "a", "action_id": "work"}, {"id": "b", "action_id": "work"}],
            "transitions": [{"from_node_id": "a", "to_node_id": "b"}],
        }),
        more,
    )
}

fn chain_of(node: Value) -> Value {
    let mut document = chain(json!({}));
    document["nodes"][0] = with(json!({"id": "a"}), node);
    document
}

#[test]
fn a_new_token_replaces_a_failed_one_with_the_whole_limit() {
    let mut run = Driver::start(chain(json!({})));
    run.succeed("t1@1", json!("kept")).at(31_000).fail("t2@1");
    run.assert_status("failed peer_failed/server_error: status 500");
    run.reload().at(500_000).retry(RetryMode::RetryStep).check(
        r#"
        run running until 560000
        token t3 b executing@1 watch 530000 (resumed)
        event run_retried retry_step
        alarm 530000
        dispatch t3@1 {"x":1}
        announce
    "#,
    );
    assert_eq!(run.run.header.attempt, 1, "a retry is no new attempt of the run");
    assert_eq!((run.run.header.ended_at, &run.run.header.error), (None, &None));
    assert_eq!(run.row("t3").parent, run.row("t2").id.into());
    // The ended token stays ended, and its late result is rejected.
    run.succeed("t2@1", json!("late"));
    assert!(run.answer.is_err());
    run.succeed("t3@1", json!(2)).assert_status("completed {}");
    assert_eq!(run.state(), &json!({"a": "kept", "b": 2}));
    assert_eq!(run.row("t2").status, TokenStatus::Failed);
}

#[test]
fn a_timed_out_run_continues_where_its_limit_interrupted_it() {
    for (policy, status) in [("cancel_all", RunStatus::TimedOut), ("fail", RunStatus::Failed)] {
        let mut run = Driver::start(chain(json!({"on_timeout": policy})));
        run.at(61_000).wake("t1@1");
        assert_eq!(run.run.header.status, status);
        run.reload()
            .at(70_000)
            .retry(RetryMode::RetryStep)
            .assert_status("running a:executing");
        assert_eq!(run.run.header.timeout_at, Some(130_000));
        run.succeed("t2@1", json!(1))
            .succeed("t3@1", json!(2))
            .assert_status("completed {}");
    }
}

#[test]
fn every_interrupted_token_continues() {
    let mut run = Driver::start(json!({
        "nodes": [{"id": "s"}, {"id": "a", "action_id": "work"}, {"id": "p", "workflow_id": "child"},
                  {"id": "g", "gate": {}}, {"id": "w", "wait": {"signal": "go"}}],
        "transitions": [{"from_node_id": "s", "to_node_id": "a"}, {"from_node_id": "s", "to_node_id": "p"},
                        {"from_node_id": "s", "to_node_id": "g"}, {"from_node_id": "s", "to_node_id": "w"}],
    }));
    run.assert_status("running a:executing g:awaiting_human p:waiting_for_subworkflow w:suspended");
    run.fail("t2@1")
        .assert_status("failed peer_failed/server_error: status 500");
    run.reload().retry(RetryMode::RetryStep);
    run.assert_status("running a:executing g:awaiting_human p:waiting_for_subworkflow w:suspended");
    // A new child, a new gate; the signal is delivered to the new token.
    assert!(
        run.lines_of("deliver")
            .iter()
            .any(|line| line.contains("start run-1~t7 "))
    );
    assert_eq!(run.run.gates().filter(|gate| gate.id == "g8").count(), 1);
    run.signal("go", json!(1));
    run.assert_status("running a:executing g:awaiting_human p:waiting_for_subworkflow");
}

#[test]
fn a_gate_that_timed_out_is_opened_again() {
    let mut run = Driver::start(chain_of(json!({"gate": {"timeout_ms": 5_000}})));
    run.at(6_000)
        .wake("")
        .assert_status("failed gate_timeout/timeout: nobody decided in time");
    run.reload()
        .at(9_000)
        .retry(RetryMode::RetryStep)
        .assert_status("waiting a:awaiting_human");
    assert_eq!(
        run.lines_of("gate"),
        ["gate g2 open null approve|reject until 14000"]
    );
    run.decide("g1", "approve");
    assert!(run.answer.is_err(), "the old one is closed");
    run.decide("g2", "approve").assert_status("running b:executing");
}

#[test]
fn a_run_cancelled_by_a_gate_timeout_can_be_resumed() {
    let gate = json!({"gate": {"timeout_ms": 5_000, "on_timeout": "cancel_all"}});
    let mut run = Driver::start(chain_of(gate));
    run.at(6_000)
        .wake("")
        .assert_status("timed_out gate_timeout/timeout: nobody decided in time");
    run.reload()
        .retry(RetryMode::RetryStep)
        .assert_status("waiting a:awaiting_human");
}

#[test]
fn a_wait_for_a_signal_that_timed_out_waits_again() {
    let mut run = Driver::start(chain_of(json!({"wait": {"signal": "go", "timeout_ms": 5_000}})));
    run.at(6_000)
        .wake("")
        .assert_status("failed signal_timeout/timeout: the signal did not come in time");
    run.reload()
        .at(9_000)
        .retry(RetryMode::RetryStep)
        .assert_status("waiting a:suspended");
    assert_eq!(run.row("t2").deadline.at, Some(14_000));
    run.signal("go", json!(1)).assert_status("running b:executing");
}

#[test]
fn a_sleeping_token_keeps_the_rest_of_its_sleep() {
    let mut run = Driver::start(chain_of(json!({"wait": {"sleep_ms": 100_000}})));
    run.at(61_000).wake("");
    assert_eq!(run.run.header.status, RunStatus::TimedOut);
    run.reload()
        .at(70_000)
        .retry(RetryMode::RetryStep)
        .assert_status("running a:suspended");
    assert_eq!(run.row("t2").watch_at, Some(110_000), "40 s of 100 were left");
    // Interrupted again, at the gate of the run, before it could sleep.
    let mut run = Driver::start(chain_of(json!({"wait": {"sleep_ms": 100_000}})));
    run.at(61_000)
        .wake("")
        .retry(RetryMode::Escalate)
        .decide("run1", "fail");
    run.reload().at(70_000).retry(RetryMode::RetryStep);
    assert_eq!(run.row("t3").watch_at, Some(110_000));
}

#[test]
fn a_wait_until_a_moment_keeps_its_moment() {
    let mut run = Driver::start(chain_of(json!({"wait": {"until": 200_000}})));
    run.at(61_000).wake("").at(190_000).retry(RetryMode::RetryStep);
    assert_eq!(run.row("t2").watch_at, Some(200_000));
}

#[test]
fn a_run_can_be_resumed_after_every_end() {
    let mut run = Driver::start(chain(json!({})));
    run.succeed("t1@1", json!(1)).fail("t2@1");
    run.reload().retry(RetryMode::RetryStep).fail("t3@1");
    run.assert_status("failed peer_failed/server_error: status 500");
    run.reload()
        .retry(RetryMode::RetryStep)
        .assert_status("running b:executing");
    assert_eq!(
        run.order().work_of,
        run.row("t2").id,
        "one piece of work, however often it is tried"
    );
    run.succeed("t4@1", json!(2)).assert_status("completed {}");
    assert_eq!(run.kinds(), "run_failed run_retried run_failed run_retried");
    assert_eq!(run.run.header.ends, 3);
}

#[test]
fn a_retry_and_then_a_restart() {
    let mut run = Driver::start(chain(json!({})));
    run.succeed("t1@1", json!(1))
        .fail("t2@1")
        .at(2_000)
        .retry(RetryMode::RetryStep);
    run.at(3_000).restart().assert_status("running a:executing");
    assert_eq!(run.lines_of("abort"), ["abort t3@1"]);
    assert_eq!(
        (run.run.header.attempt, run.run.header.timeout_at),
        (2, Some(63_000))
    );
    assert_eq!(run.state(), &json!({}));
    // A later retry does not resume tokens from before the restart.
    run.fail("t4@1")
        .reload()
        .retry(RetryMode::RetryStep)
        .assert_status("running a:executing");
}

#[test]
fn a_retry_and_then_a_pause() {
    let mut run = Driver::start(chain(json!({})));
    run.fail("t1@1")
        .at(2_000)
        .retry(RetryMode::RetryStep)
        .at(12_000)
        .pause();
    run.reload()
        .at(100_000)
        .succeed("t2@1", json!(1))
        .assert_status("paused b:pending");
    run.resume().assert_status("running b:executing");
    assert_eq!(run.run.header.timeout_at, Some(150_000), "50 s were left");
}

#[test]
fn a_resumed_run_is_not_deleted() {
    let mut run = Driver::start(chain(json!({})));
    run.fail("t1@1");
    let deleted_at = 1_000 + SETTINGS.retention_ms;
    assert_eq!(run.run.next_deadline(), Some(deleted_at));
    run.at(deleted_at - 1).retry(RetryMode::RetryStep);
    run.at(deleted_at).wake("t2@1");
    assert_eq!(run.lines_of("delete"), [""; 0]);
    run.assert_status("running a:executing");
}

#[test]
fn only_a_run_that_failed_or_timed_out_can_be_resumed() {
    let mut run = Driver::start(chain(json!({})));
    run.retry(RetryMode::RetryStep).check("rejected not_ended");
    run.pause()
        .retry(RetryMode::RetryStep)
        .check("rejected not_ended");
    run.cancel(None)
        .retry(RetryMode::RetryStep)
        .check("rejected not_resumable the run was cancelled; restart it to run it again");
    let mut run = Driver::start(chain(json!({})));
    run.succeed("t1@1", json!(1))
        .succeed("t2@1", json!(1))
        .retry(RetryMode::Escalate);
    run.check("rejected not_resumable the run completed; restart it to run it again");
}

#[test]
fn a_run_that_failed_without_live_tokens_cannot_be_resumed() {
    let mut run = Driver::start(chain(json!({"output_mapping": "${state.nothing.there}"})));
    run.succeed("t1@1", json!(1)).succeed("t2@1", json!(1));
    assert_eq!(run.run.header.status, RunStatus::Failed);
    run.retry(RetryMode::RetryStep)
        .check("rejected not_resumable nothing was under way when the run ended; restart it");
}

/// The token of `c` was never created and is not recorded: completing without it would look like a success.
#[test]
fn a_run_that_reached_one_of_its_limits_cannot_be_resumed() {
    let mut run = Driver::start(json!({
        "nodes": [{"id": "s"}, {"id": "a", "action_id": "work"}, {"id": "b", "action_id": "work"},
                  {"id": "c", "action_id": "work"}],
        "transitions": [{"from_node_id": "s", "to_node_id": "a"}, {"from_node_id": "s", "to_node_id": "b"},
                        {"from_node_id": "a", "to_node_id": "c"}],
        "limits": {"tokens_total": 3},
    }));
    run.succeed("t2@1", json!(1));
    run.assert_status("failed limit_exceeded/permanent: limit tokens_total exceeded: the run may have 3");
    run.retry(RetryMode::RetryStep).check(
        "rejected not_resumable the run met one of its limits where a path would have gone on; restart it",
    );
    run.restart().assert_status("running a:executing b:executing");
}

#[test]
fn a_token_whose_result_was_too_large_can_be_retried() {
    let mut run = Driver::start(chain(json!({})));
    run.succeed("t1@1", json!("x".repeat(600_000)));
    assert_eq!(run.run.header.status, RunStatus::Failed);
    run.retry(RetryMode::RetryStep)
        .assert_status("running a:executing");
}

#[test]
fn tokens_from_before_a_resume_do_not_count_towards_limits() {
    let mut run = Driver::start(chain(json!({"limits": {"tokens_total": 2}})));
    run.succeed("t1@1", json!(1))
        .fail("t2@1")
        .retry(RetryMode::RetryStep);
    run.succeed("t3@1", json!(1)).assert_status("completed {}");
}
