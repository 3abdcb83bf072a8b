//! The queue lane after a resume or a restart: earlier messages of the queue may still arrive.

use curfew::run::RetryMode;
use serde_json::json;

use super::queue::{one_node, start, two_branches};

#[test]
fn a_resumed_run_enqueues_its_interrupted_attempts_again() {
    for mode in [RetryMode::RetryStep, RetryMode::DiscardAndRetry] {
        let mut document = two_branches(json!({}));
        document["on_timeout"] = json!("fail");
        document["timeout_ms"] = json!(100_000);
        let mut run = start(document);
        run.at(2_000).claim("t2@1");
        for at in [11_000, 31_000, 41_000, 61_000, 101_000] {
            run.at(at).wake("");
        }
        assert!(
            run.status_line().starts_with("failed workflow_timeout"),
            "{}",
            run.status_line()
        );
        run.at(102_000)
            .retry(mode)
            .assert_status("running 2xa:dispatched");
        assert_eq!(run.lines_of("enqueue"), ["enqueue t4@1", "enqueue t5@1"]);
        assert_eq!(run.row("t5").claim.unclaimed, 0);
        run.claim("t4@1")
            .succeed("t4@1", json!(1))
            .claim("t5@1")
            .succeed("t5@1", json!(2));
        run.assert_status("completed {}");
    }
}

#[test]
fn claims_from_before_a_restart_are_rejected() {
    let mut run = start(one_node(json!({})));
    run.at(2_000).restart().assert_status("running a:dispatched");
    run.claim("t1@1").check("rejected stale_attempt t1@1");
    run.claim("t2@1").assert_status("running a:executing");
}

/// A document has no retry policy for them, and the run promises that they run.
#[test]
fn a_compensation_and_an_end_handler_survive_a_silent_consumer() {
    let mut document = one_node(json!({"compensate": {"action_id": "work"}}));
    document["on_end"] = json!([{"action_id": "work"}]);
    document["compensation"] = json!({"timeout_ms": 800_000});
    document["actions"] = json!([{"id": "work", "kind": "service_call", "implementation": {"binding": "PEER"},
        "execution": {"timeout_ms": 700_000, "retry_policy": {"max_attempts": 1}}}]);
    let mut run = start(document);
    run.at(2_000).claim("t1@1").cancel(None);
    run.at(3_000).succeed("t1@1", json!(1)).provide();
    run.assert_status("compensating a~compensate:dispatched");
    run.at(4_000).claim("t2@1");
    run.at(304_000)
        .wake("")
        .assert_status("compensating a~compensate:pending");
    run.at(306_000).wake("").claim("t2@2");
    run.succeed("t2@2", json!(1)).provide();
    run.assert_status("compensating on_end~1:dispatched");
    run.at(307_000).claim("t3@1");
    run.at(607_000)
        .wake("")
        .assert_status("compensating on_end~1:pending");
    run.at(609_000).wake("").claim("t3@2");
    run.succeed("t3@2", json!(1)).assert_status("cancelled");
    assert_eq!(
        json!(run.run.header.compensation)["status"],
        "completed",
        "{:?}",
        run.run.header.compensation
    );
}
