//! The queue lane: an attempt is enqueued, claimed, kept alive by heartbeats, and reported. Each of these messages may be lost,
//! late or repeated.

use curfew::base::limits::QUEUE_MAX_MS;
use curfew::run::{AttemptOrder, Command, Event, Lane, Settings, TokenStatus};
use serde_json::{Value, json};

use super::driver::{Driver, SETTINGS, parse_attempt, succeeded};

const WITH_QUEUE: Settings = Settings {
    queue: true,
    ..SETTINGS
};

const RUN_MS: u64 = QUEUE_MAX_MS;

impl Driver {
    pub fn claim(&mut self, attempt: &str) -> &mut Driver {
        let (token, epoch) = parse_attempt(attempt);
        let token = token.to_string();
        self.feed(Event::Claimed {
            token,
            epoch,
            claimant: None,
        })
    }

    pub fn claim_as(&mut self, attempt: &str, claimant: &str) -> &mut Driver {
        let (token, epoch) = parse_attempt(attempt);
        self.feed(Event::Claimed {
            token: token.to_string(),
            epoch,
            claimant: Some(claimant.into()),
        })
    }

    pub fn heartbeat(&mut self, attempt: &str) -> &mut Driver {
        let (token, epoch) = parse_attempt(attempt);
        let token = token.to_string();
        self.feed(Event::Heartbeat {
            token,
            epoch,
            progress: None,
        })
    }
}

/// The run's limit is within the limit of a queue consumer.
pub fn start(mut document: Value) -> Driver {
    if document.get("timeout_ms").is_none() {
        document["timeout_ms"] = json!(RUN_MS);
    }
    Driver::start_with(WITH_QUEUE, document, json!({"x": 1}))
}

pub fn one_node(more: Value) -> Value {
    let mut node = json!({"id": "a", "action_id": "work"});
    for (key, value) in more.as_object().into_iter().flatten() {
        node[key] = value.clone();
    }
    json!({"nodes": [node]})
}

pub fn two_branches(join: Value) -> Value {
    let mut synchronization = json!({"sibling_group": "each", "merge": {"target": "state.all"}});
    for (key, value) in join.as_object().into_iter().flatten() {
        synchronization[key] = value.clone();
    }
    json!({
        "nodes": [{"id": "s"}, {"id": "a", "action_id": "work"}, {"id": "j"}],
        "transitions": [
            {"id": "each", "from_node_id": "s", "to_node_id": "a", "spawn_count": 2},
            {"from_node_id": "a", "to_node_id": "j", "synchronization": synchronization},
            {"from_node_id": "a", "to_node_id": "j", "on": "failure", "synchronization": synchronization},
            {"from_node_id": "a", "to_node_id": "j", "on": "timeout", "synchronization": synchronization},
        ],
    })
}

fn claimed_order(run: &Driver) -> &AttemptOrder {
    let mut orders = run
        .decision
        .commands()
        .iter()
        .filter_map(|command| match command {
            Command::RespondToClaim(order) => Some(order),
            _others => None,
        });
    orders.next().expect("the claim was answered with an order")
}

#[test]
fn an_attempt_is_enqueued_claimed_and_reported() {
    let mut run = start(one_node(json!({"timeout_ms": 100_000})));
    run.check(
        r#"
        snapshot
        input {"x":1}
        run running until 841000
        token t1 a dispatched@1 watch 11000
        alarm 11000
        enqueue t1@1
        announce
    "#,
    );
    // Its limit begins with the claim.
    run.at(5_000).claim("t1@1").check(
        r#"
        token t1 a executing@1 until 105000 watch 305000
        hand t1@1 {"x":1} by 105000
    "#,
    );
    assert_eq!(claimed_order(&run).limit.map(|(millis, _)| millis), Some(100_000));
    let row = run.row("t1");
    assert_eq!(
        (row.dispatched_at, row.started_at, row.lane),
        (Some(1_000), Some(5_000), Some(Lane::Queue))
    );
    run.at(9_000).succeed("t1@1", json!("done")).check(
        r#"
        run completed {}
        token t1 a completed@1 "done" keeps state.a
        announce
        ended
    "#,
    );
}

#[test]
fn an_attempt_is_claimed_once() {
    let mut run = start(one_node(json!({})));
    run.at(1_100).claim("t1@1");
    run.claim("t1@1").check("rejected stale_attempt t1@1");
    for wrong in ["t1@0", "t1@2", "t2@1"] {
        run.claim(wrong).check(&format!("rejected stale_attempt {wrong}"));
    }
    run.succeed("t1@1", json!(1));
    run.claim("t1@1").check("rejected stale_attempt t1@1");
}

/// The response to the claim was lost, and the queue delivers the message again.
#[test]
fn a_claimant_may_repeat_its_claim_until_its_first_heartbeat_or_report() {
    let mut run = start(one_node(json!({"timeout_ms": 100_000})));
    run.at(2_000).claim_as("t1@1", "m1");
    run.reload().at(10_000);
    for other in ["m2", ""] {
        run.claim_as("t1@1", other).check("rejected stale_attempt t1@1");
    }
    run.claim("t1@1").check("rejected stale_attempt t1@1");
    // Its limit begins with the repeated claim.
    run.claim_as("t1@1", "m1").check(
        r#"
        token t1 a executing@1 until 110000 watch 310000
        hand t1@1 {"x":1} by 110000
    "#,
    );
    run.at(10_500).heartbeat("t1@1").check(
        "
        token t1 a executing@1 until 110000 watch 310500
    ",
    );
    run.reload()
        .claim_as("t1@1", "m1")
        .check("rejected stale_attempt t1@1");
    run.at(10_600).heartbeat("t1@1").check("");
    run.at(15_000).succeed("t1@1", json!(1));
    run.claim_as("t1@1", "m1").check("rejected stale_attempt t1@1");
}

#[test]
fn a_claimant_without_a_name_claims_once() {
    let mut run = start(one_node(json!({})));
    run.at(2_000).claim("t1@1");
    run.claim("t1@1").check("rejected stale_attempt t1@1");
    run.claim_as("t1@1", "m1").check("rejected stale_attempt t1@1");
}

/// No executor works on it: the next attempt begins with the resume, not when the watch has passed.
#[test]
fn a_claim_repeated_during_a_pause_is_revoked() {
    let mut run = start(one_node(json!({})));
    run.at(2_000).claim_as("t1@1", "m1");
    run.at(3_000).pause();
    run.at(4_000).claim_as("t1@1", "m1").check(
        "
        rejected paused
        token t1 a pending@1
    ",
    );
    run.reload().at(9_000).resume();
    assert_eq!(run.lines_of("enqueue"), ["enqueue t1@2"]);
    run.at(9_100)
        .claim_as("t1@2", "m2")
        .assert_status("running a:executing");
}

#[test]
fn an_unclaimed_attempt_cannot_report_nor_send_heartbeats_nor_be_lost() {
    let mut run = start(one_node(json!({})));
    run.at(1_100).succeed("t1@1", json!(1)).check(
        "
        rejected stale_attempt t1@1
        event late_result_discarded t1
    ",
    );
    run.heartbeat("t1@1").check("rejected stale_attempt t1@1");
    run.lose("t1@1").check("rejected stale_attempt t1@1");
    run.assert_status("running a:dispatched");
}

#[test]
fn claims_are_rejected_during_a_pause_and_the_resume_enqueues_again() {
    let mut run = start(one_node(json!({})));
    run.at(2_000).pause();
    run.at(3_000).claim("t1@1").check("rejected paused");
    run.at(50_000).wake("").assert_status("paused a:dispatched");
    // The time to be claimed starts again.
    run.at(90_000).resume().check(
        "
        run running until 929000
        token t1 a dispatched@1 watch 100000
        event run_resumed person
        alarm 100000
        enqueue t1@1
        announce
    ",
    );
    run.at(100_000).wake("").check(
        "
        token t1 a dispatched@1 watch 120000
        event dispatch_rung_again t1
        alarm 120000
        enqueue t1@1
    ",
    );
    run.claim("t1@1").assert_status("running a:executing");
}

#[test]
fn a_pause_moves_the_watch_of_a_claimed_attempt() {
    let mut run = start(one_node(json!({})));
    run.at(2_000).claim("t1@1");
    run.at(3_000).pause();
    run.at(400_000).wake("").assert_status("paused a:executing");
    run.heartbeat("t1@1");
    run.at(500_000).resume();
    assert_eq!(run.row("t1").watch_at, Some(302_000 + 497_000));
}

#[test]
fn unclaimed_attempts_are_resent_then_recreated_then_failed() {
    let mut run = start(one_node(json!({})));
    run.at(11_000).wake("").check(
        "
        token t1 a dispatched@1 watch 31000
        event dispatch_rung_again t1
        alarm 31000
        enqueue t1@1
    ",
    );
    assert_eq!(run.row("t1").dispatched_at, Some(1_000));
    run.at(31_000).wake("").check(
        "
        token t1 a dispatched@2 watch 41000
        alarm 41000
        enqueue t1@2
    ",
    );
    run.claim("t1@1").check("rejected stale_attempt t1@1");
    assert_eq!(run.row("t1").claim.unclaimed, 1);
    run.at(41_000).wake("").at(61_000).wake("").check(
        "
        token t1 a dispatched@3 watch 71000
        alarm 71000
        enqueue t1@3
    ",
    );
    run.at(71_000).wake("").at(91_000).wake("").check(
        "
        run failed dispatch_timeout/timeout: nobody took the task out of the queue, 3 times for 30s
        token t1 a timed_out@3 (dispatch_timeout) dispatch_timeout/timeout: nobody took the task out of the queue, 3 times for 30s
        event run_failed t1 a
        alarm 10091000
        announce
        ended
    ",
    );
}

#[test]
fn a_claim_resets_the_count_of_unclaimed_rounds() {
    let mut run = start(one_node(json!({})));
    for at in [11_000, 31_000, 41_000, 61_000] {
        run.at(at).wake("");
    }
    run.at(62_000).claim("t1@3");
    assert_eq!(run.row("t1").claim.unclaimed, 0);
    run.lose("t1@3").assert_status("running a:dispatched");
    run.at(92_000).wake("").assert_status("running a:dispatched");
    assert_eq!((run.row("t1").epoch, run.row("t1").claim.unclaimed), (5, 1));
}

#[test]
fn an_unclaimed_attempt_may_end_at_a_join() {
    let mut run = start(two_branches(
        json!({"on_branch_failure": "proceed_with_available"}),
    ));
    run.at(1_100).claim("t2@1").succeed("t2@1", json!(1));
    for at in [11_000, 31_000, 41_000, 61_000, 71_000, 91_000] {
        run.at(at).wake("");
    }
    run.assert_status("completed {}");
    assert_eq!(run.row("t3").reason.as_deref(), Some("dispatch_timeout"));
    assert!(run.row("t3").join.is_some(), "its route led to the join");
}

#[test]
fn an_input_mapping_that_fails_fails_the_token_at_its_claim() {
    let mut run = start(one_node(json!({"input_mapping": "${state.missing}"})));
    run.at(1_100).claim("t1@1");
    assert!(run.lines_of("hand").is_empty());
    assert!(
        run.status_line()
            .starts_with("failed expression_failed/validation"),
        "{}",
        run.status_line()
    );
    let mut document = two_branches(json!({"on_branch_failure": "proceed_with_available"}));
    document["nodes"][1]["input_mapping"] = json!("${state.missing}");
    let mut run = start(document);
    run.claim("t2@1")
        .assert_status("running a:dispatched a:waiting_for_siblings");
}

#[test]
fn a_heartbeat_moves_the_watch_and_rarely_writes_a_row() {
    let mut run = start(one_node(json!({})));
    run.at(2_000).claim("t1@1");
    run.at(11_000).wake("").check("alarm 302000");
    // Three quarters of the watch are left, so no row is written.
    run.at(77_000).heartbeat("t1@1").check("");
    run.at(77_001)
        .heartbeat("t1@1")
        .check("token t1 a executing@1 watch 377001");
    run.at(302_000).wake("").check("alarm 377001");
    run.heartbeat("t1@1").check("token t1 a executing@1 watch 602000");
    for wrong in ["t1@2", "t2@1"] {
        run.heartbeat(wrong)
            .check(&format!("rejected stale_attempt {wrong}"));
    }
    run.cancel(None);
    run.heartbeat("t1@1").check("rejected stale_attempt t1@1");
}

#[test]
fn a_silent_attempt_is_reaped() {
    let mut run = start(one_node(json!({})));
    run.at(2_000).claim("t1@1");
    run.at(302_000).wake("").check(
        "
        run failed attempt_reaped/timeout: nothing was heard of the attempt for 5m0s
        token t1 a failed@2 (timeout_reaped_by_watchdog) attempt_reaped/timeout: nothing was heard of the attempt for 5m0s
        event attempt_reaped t1 {tool late 0 fail}
        event run_failed t1 a
        alarm 10302000
        announce
        ended
    ",
    );
    run.succeed("t1@1", json!(1)).check(
        "
        rejected stale_attempt t1@1
        event late_result_discarded t1
    ",
    );
}

#[test]
fn a_silent_attempt_is_retried_if_the_policy_is_to_retry() {
    let of_node = one_node(json!({"on_timeout": "retry", "max_retries": 1}));
    let mut of_action = one_node(json!({"max_retries": 1}));
    of_action["actions"] = json!([{"id": "work", "kind": "service_call", "implementation": {"binding": "PEER"},
        "execution": {"timeout_ms": 900_000, "on_timeout": "retry", "retry_policy": {"max_attempts": 1}}}]);
    for document in [of_node, of_action] {
        let what = document.to_string();
        let mut run = start(document);
        run.at(2_000).claim("t1@1");
        run.at(302_000).wake("").assert_status("running a:pending");
        run.at(303_000).wake("").assert_status("running a:dispatched");
        assert_eq!(run.row("t1").epoch, 2, "{what}");
        run.claim("t1@2")
            .heartbeat("t1@1")
            .check("rejected stale_attempt t1@1");
        run.at(603_000).wake("");
        assert!(
            run.status_line().starts_with("failed attempt_reaped"),
            "{}",
            run.status_line()
        );
    }
}

#[test]
fn a_reloaded_object_keeps_claimed_attempts() {
    let mut run = start(one_node(json!({})));
    run.at(2_000).claim("t1@1");
    run.at(11_000).wake("");
    run.reload().at(100_000).load().check("");
    run.wake("").assert_status("running a:executing");
    run.succeed("t1@1", json!(1)).assert_status("completed {}");
}

#[test]
fn a_watch_that_passed_during_an_eviction_restarts_once() {
    let mut run = start(one_node(json!({})));
    run.at(2_000).claim("t1@1");
    run.reload().at(350_000).load().check(
        "
        token t1 a executing@1 watch 650000
        alarm 650000
    ",
    );
    run.wake("").assert_status("running a:executing");
    // An object may be evicted between any two alarms.
    run.reload().at(650_000).load().wake("");
    assert!(
        run.status_line().starts_with("failed attempt_reaped"),
        "{}",
        run.status_line()
    );

    let mut run = start(one_node(json!({})));
    run.at(2_000).claim("t1@1");
    run.reload().at(350_000).load().heartbeat("t1@1");
    run.reload()
        .at(700_000)
        .load()
        .wake("")
        .assert_status("running a:executing");
}

#[test]
fn the_watch_repeats_a_message_that_a_crash_prevented() {
    let mut run = start(one_node(json!({})));
    run.reload().at(5_000).load().check("");
    run.at(11_000).wake("");
    assert_eq!(run.lines_of("enqueue"), ["enqueue t1@1"]);
    run.claim("t1@1").assert_status("running a:executing");
}

#[test]
fn a_lost_attempt_is_enqueued_again() {
    let mut run = start(one_node(json!({})));
    run.at(2_000).claim("t1@1").lose("t1@1").check(
        "
        token t1 a dispatched@2 lost 1 watch 12000 (attempt_lost)
        enqueue t1@2
    ",
    );
    run.claim("t1@2").lose("t1@2").check(
        "
        token t1 a pending@2 lost 2 watch 3000 (attempt_lost)
        alarm 3000
    ",
    );
    run.at(3_000).wake("").assert_status("running a:dispatched");
}

#[test]
fn the_executor_enforces_the_deadline_of_a_claimed_attempt_before_the_alarm() {
    let mut run = start(one_node(json!({"timeout_ms": 70_000})));
    run.at(2_000).claim("t1@1");
    run.at(72_000).wake("").assert_status("running a:executing");
    run.at(72_500).wake("");
    assert!(
        run.status_line().starts_with("failed execution_timeout/timeout"),
        "{}",
        run.status_line()
    );
    run.report(succeeded("t1@1", json!(1)));
    assert_eq!(run.lines_of("event"), ["event late_result_discarded t1"]);
    run.heartbeat("t1@1").check("rejected stale_attempt t1@1");
    // The executor reports the timeout itself.
    let mut run = start(one_node(json!({"timeout_ms": 70_000, "on_timeout": "retry"})));
    run.at(2_000).claim("t1@1");
    run.at(72_000).time_out("t1@1").assert_status("running a:pending");
    run.at(73_000).wake("").assert_status("running a:dispatched");
}

#[test]
fn time_in_the_queue_counts_for_the_run_but_not_for_the_attempt() {
    let mut document = one_node(json!({"timeout_ms": 70_000}));
    document["timeout_ms"] = json!(80_000);
    let mut run = start(document);
    run.at(30_000).claim("t1@1");
    assert_eq!(run.row("t1").deadline.at, Some(100_000));
    assert_eq!(
        claimed_order(&run).deadline_at,
        Some(100_000),
        "its own; the end of the run ends it anyway"
    );
    run.at(81_000).wake("");
    assert!(
        run.status_line().starts_with("timed_out workflow_timeout"),
        "{}",
        run.status_line()
    );
}

#[test]
fn the_end_of_a_run_ends_queued_and_claimed_attempts() {
    let mut run = start(two_branches(json!({})));
    run.at(2_000).claim("t2@1");
    run.at(3_000).cancel(None).check(
        "
        run cancelled
        token t2 a cancelled@1 [1.0] (run_cancelled)
        token t3 a cancelled@1 [1.1] (run_cancelled)
        instance 1 each of 2 closed
        event run_cancelled
        abort t2@1
        announce
        ended
    ",
    );
    for attempt in ["t2@1", "t3@1"] {
        run.claim(attempt)
            .check(&format!("rejected stale_attempt {attempt}"));
        run.heartbeat(attempt)
            .check(&format!("rejected stale_attempt {attempt}"));
    }
    let mut run = start(two_branches(json!({})));
    run.at(2_000).claim("t2@1");
    run.at(841_000)
        .wake("")
        .claim("t3@1")
        .check("rejected stale_attempt t3@1");
    assert!(
        run.status_line().starts_with("timed_out"),
        "{}",
        run.status_line()
    );
}

#[test]
fn a_join_that_fired_cancels_queued_attempts() {
    let mut run = start(two_branches(
        json!({"strategy": "any", "on_early_complete": "cancel"}),
    ));
    run.at(2_000).claim("t2@1").succeed("t2@1", json!(1));
    run.assert_status("completed {}");
    assert_eq!(run.row("t3").status, TokenStatus::Cancelled);
    run.claim("t3@1").check("rejected stale_attempt t3@1");
}

#[test]
fn after_the_queue_is_switched_off_queued_attempts_are_dispatched_directly() {
    let mut run = start(one_node(json!({})));
    run.run = run.store.recall(SETTINGS).expect("what was saved can be read");
    run.at(11_000).wake("").at(31_000).wake("");
    assert_eq!(run.lines_of("dispatch").len(), 1);
    assert_eq!(run.row("t1").lane, Some(Lane::Direct));
}

#[test]
fn queued_attempts_do_not_count_as_calls() {
    let mut run = start(two_branches(json!({})));
    run.room = 0;
    run.at(2_000)
        .claim("t2@1")
        .claim("t3@1")
        .assert_status("running 2xa:executing");
}

/// A branch that never began arrives late by its timeout route: it does not count as completed.
#[test]
fn an_unclaimed_attempt_may_arrive_at_a_join_that_has_fired() {
    let mut run = start(two_branches(
        json!({"strategy": "any", "on_early_complete": "allow_late_merge"}),
    ));
    run.at(2_000).claim("t2@1").succeed("t2@1", json!("fast"));
    for at in [11_000, 31_000, 41_000, 61_000, 71_000, 91_000] {
        run.at(at).wake("");
    }
    let (status, row) = &run.store.tokens[&3];
    assert_eq!(status, "timed_out", "{row}");
    assert!(row.contains("\"reason\":\"dispatch_timeout\""), "{row}");
    run.assert_status("completed {}");
}
