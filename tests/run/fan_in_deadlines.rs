//! How long a join waits, from when, and what its deadline does to waiting and missing branches.

use curfew::run::TokenStatus;
use serde_json::{Value, json};

use super::driver::Driver;
use super::fan_in::{continuations, status_of};
use super::graphs::{and, fan, joining, three, with};

fn proceed() -> Value {
    json!({"timeout_ms": 5_000, "on_timeout": "proceed_with_available"})
}

#[test]
fn the_wait_is_measured_from_the_first_arrival() {
    let mut run = Driver::start(three(json!({"timeout_ms": 5_000})));
    // The wait has not begun yet, even long after the fan-out.
    run.at(20_000)
        .wake("t2@1 t3@1 t4@1")
        .assert_status("running 3xb:executing");
    run.succeed("t2@1", json!(1));
    assert_eq!(run.run.next_deadline(), Some(25_000));
    run.at(24_999)
        .succeed("t3@1", json!(1))
        .assert_status("running b:executing 2xb:waiting_for_siblings");
    run.at(25_000).wake("t4@1");
    run.assert_status("failed sync_timeout/timeout: Synchronization timeout exceeded");
}

#[test]
fn the_default_wait_is_computed_from_the_branches() {
    let minutes = |count: u64| count * 60_000;
    let wait = |timeout: Value, count: u64| -> Option<u64> {
        let mut document = fan(json!({"spawn_count": count}), json!({}));
        document["timeout_ms"] = json!(null);
        document["nodes"][1] = with(json!({"id": "b", "action_id": "work"}), timeout);
        let mut run = Driver::start(document);
        run.succeed("t2@1", json!(1));
        let instance = run.run.instances().next().expect("the fan-out is open");
        instance
            .fan_ins
            .values()
            .next()
            .expect("the wait began")
            .timeout_ms
    };
    // Longest attempt x branches x 1.5.
    assert_eq!(wait(json!({"timeout_ms": 2_000}), 3), Some(9_000));
    assert_eq!(
        wait(json!({"timeout_ms": 60_000}), 3),
        Some(minutes(30).min(270_000))
    );
    assert_eq!(wait(json!({"timeout_ms": minutes(10)}), 3), Some(minutes(30)));
    assert_eq!(wait(json!({}), 3), Some(minutes(30)));
    let mut document = three(json!({"timeout_ms": null}));
    document["timeout_ms"] = json!(null);
    let mut run = Driver::start(document);
    run.succeed("t2@1", json!(1));
    assert_eq!(run.lines_of("instance"), ["instance 1 out of 3 join z from 1000"]);
}

#[test]
fn the_longest_limit_counts_at_any_node_of_a_branch() {
    let document = json!({
        "nodes": [{"id": "a", "action_id": "work", "timeout_ms": 900_000}, {"id": "b", "action_id": "work", "timeout_ms": 1_000},
                  {"id": "c", "action_id": "slow"}, {"id": "z", "action_id": "work", "timeout_ms": 800_000}],
        "transitions": [
            {"id": "out", "from_node_id": "a", "to_node_id": "b", "spawn_count": 2},
            {"from_node_id": "b", "to_node_id": "c", "condition": "_branch.index == 1"},
            {"from_node_id": "b", "to_node_id": "z", "condition": "_branch.index == 0", "synchronization": joining("out", json!({}))},
            {"from_node_id": "c", "to_node_id": "z", "synchronization": joining("out", json!({}))},
        ],
        "actions": [
            {"id": "work", "kind": "service_call", "implementation": {"binding": "PEER"}},
            {"id": "slow", "kind": "service_call", "implementation": {"binding": "PEER"}, "execution": {"timeout_ms": 7_000}},
        ],
    });
    let mut run = Driver::start(document);
    run.succeed("t1@1", json!(1)).succeed("t2@1", json!(1));
    assert_eq!(
        run.lines_of("instance"),
        ["instance 1 out of 2 join z from 1000 until 22000"]
    );
}

#[test]
fn a_deadline_fails_the_run_and_times_out_all_siblings() {
    let mut run = Driver::start(three(json!({"timeout_ms": 5_000})));
    run.succeed("t2@1", json!(1)).at(6_000).wake("t3@1 t4@1");
    run.assert_status("failed sync_timeout/timeout: Synchronization timeout exceeded");
    assert_eq!(
        [status_of(&run, 2), status_of(&run, 3), status_of(&run, 4)],
        ["timed_out", "timed_out", "timed_out"]
    );
    assert_eq!(run.lines_of("abort"), ["abort t3@1", "abort t4@1"]);
    assert_eq!(
        run.run
            .header
            .error
            .as_ref()
            .and_then(|error| error.node_id.as_deref()),
        Some("z")
    );
}

#[test]
fn a_deadline_may_proceed_with_the_arrived_branches() {
    let mut run = Driver::start(three(proceed()));
    run.succeed("t4@1", json!("c"))
        .at(2_000)
        .succeed("t2@1", json!("a"));
    run.at(6_000).wake("t3@1").assert_status("running z:executing");
    assert_eq!(run.state(), &json!({"all": ["a", "c"]}));
    assert_eq!(
        [status_of(&run, 2), status_of(&run, 3), status_of(&run, 4)],
        ["completed", "timed_out", "completed"]
    );
    // A late branch changes nothing.
    run.at(6_001).succeed("t3@1", json!("b")).check(
        "
            rejected stale_attempt t3@1
            event late_result_discarded t3",
    );
    run.succeed("t5@1", json!("z")).assert_status("completed {}");
    assert_eq!(continuations(&run), 1);
}

/// Tokens that arrived by a failure transition have no result to proceed with.
#[test]
fn a_deadline_without_a_completed_branch_fails_with_its_own_error() {
    let join = json!({"timeout_ms": 5_000, "on_timeout": "proceed_with_available",
        "on_branch_failure": "proceed_with_available"});
    let document = and(
        fan(json!({"spawn_count": 3}), join.clone()),
        json!({"from_node_id": "b", "to_node_id": "z", "on": "failure", "synchronization": joining("out", join)}),
    );
    let mut run = Driver::start(document);
    run.fail("t2@1")
        .assert_status("running 2xb:executing b:waiting_for_siblings");
    run.at(6_000).wake("t3@1 t4@1");
    run.assert_status("failed sync_timeout/timeout: No siblings completed before timeout");
    assert_eq!(status_of(&run, 2), "timed_out");
}

#[test]
fn a_deadline_and_the_last_arrival_in_one_millisecond_create_one_continuation() {
    // The host handles due deadlines first; the engine must also handle the arrival first.
    let mut run = Driver::start(three(proceed()));
    run.succeed("t2@1", json!(1)).succeed("t3@1", json!(2));
    run.at(6_000).wake("t4@1").assert_status("running z:executing");
    run.succeed("t4@1", json!(3)).check(
        "
        rejected stale_attempt t4@1
        event late_result_discarded t4",
    );
    run.wake("").assert_status("running z:executing");
    assert_eq!(continuations(&run), 1);
    let mut run = Driver::start(three(proceed()));
    run.succeed("t2@1", json!(1)).succeed("t3@1", json!(2));
    run.at(6_000)
        .succeed("t4@1", json!(3))
        .assert_status("running z:executing");
    run.wake("t5@1").assert_status("running z:executing");
    assert_eq!(continuations(&run), 1);
    assert_eq!(run.state()["all"], json!([1, 2, 3]));
}

#[test]
fn a_timed_out_branch_without_a_transition_did_not_complete() {
    let mut document = three(json!({"on_branch_failure": "proceed_with_available"}));
    document["nodes"][1]["timeout_ms"] = json!(1_000);
    let mut run = Driver::start(document);
    run.succeed("t2@1", json!(1)).succeed("t3@1", json!(1));
    run.at(2_500).wake("t4@1").assert_status("running z:executing");
    assert_eq!(status_of(&run, 4), TokenStatus::TimedOut.name());
}
