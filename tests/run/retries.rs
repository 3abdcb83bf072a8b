//! Resumed runs whose joins cannot fire, and runs that had only run out of time.

use curfew::run::RetryMode;
use serde_json::json;

use super::driver::Driver;
use super::graphs::joining;

/// Only the join of the fan-out is left and no arrival would evaluate it again: the run must not complete without it.
#[test]
fn a_join_that_nothing_can_reach_fails_the_run_again() {
    let join = joining("out", json!({"on_branch_failure": "proceed_with_available"}));
    let mut run = Driver::start(json!({
        "nodes": [{"id": "a"}, {"id": "b", "action_id": "work"}, {"id": "z", "action_id": "work"},
                  {"id": "other", "action_id": "work"}],
        "transitions": [
            {"id": "out", "from_node_id": "a", "to_node_id": "b", "spawn_count": 2},
            {"from_node_id": "b", "to_node_id": "z", "synchronization": join, "condition": "input.x > 5"},
            {"from_node_id": "a", "to_node_id": "other"},
        ],
        "on_no_match": "end",
    }));
    run.assert_status("running 2xb:executing other:executing");
    let branches: Vec<String> = run
        .run
        .live_tokens()
        .filter(|token| token.branch.is_some())
        .map(|token| format!("{}@1", token.id))
        .collect();
    for attempt in &branches {
        run.succeed(attempt, json!(1));
    }
    let failed = "failed fan_in_failed/permanent: \
        fan-in at node z cannot be met: 0 of 2 branches completed, 0 may still and it needs 1";
    run.assert_status(failed);
    run.reload()
        .at(2_000)
        .retry(RetryMode::RetryStep)
        .assert_status(failed);
    let instance = &run.store.run["instance/1"];
    assert!(instance.contains("\"closed\":true"), "{instance}");
}

/// Its results arrived while it waited at the gate of its limit, and the gate timed out.
#[test]
fn a_run_with_all_its_work_done_completes_when_it_is_resumed() {
    for mode in [RetryMode::RetryStep, RetryMode::DiscardAndRetry] {
        let mut run = done_too_late();
        let view = run.resume_view();
        assert_eq!(
            (&view["resumable"], &view["recommended"]),
            (&json!(true), &json!("retry_step"))
        );
        run.at(40_000).retry(mode).assert_status("completed {}");
    }
    let mut run = done_too_late();
    run.at(40_000).retry(RetryMode::Escalate).assert_status("paused");
    run.reload().decide("run2", "retry").assert_status("completed {}");
}

fn done_too_late() -> Driver {
    let mut run = Driver::start(json!({
        "timeout_ms": 5_000, "on_timeout": "human_gate", "gate": {"timeout_ms": 9_000},
        "nodes": [{"id": "a", "action_id": "work"}],
    }));
    run.at(6_000).wake("t1@1").assert_status("paused a:executing");
    run.at(7_000).succeed("t1@1", json!(1)).assert_status("paused");
    run.reload().at(15_000).wake("");
    run.assert_status("timed_out workflow_timeout/timeout: Workflow execution timed out after 5s");
    run
}
