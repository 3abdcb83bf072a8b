//! Lost attempts, evicted objects, late and repeated results, cancelled runs.

use curfew::run::{LATE_NOTED, RunEventKind};
use serde_json::{Value, json};

use super::driver::Driver;

fn one_node() -> Value {
    json!({"nodes": [{"id": "a", "action_id": "work"}]})
}

fn two_branches() -> Value {
    json!({
        "nodes": [{"id": "a"}, {"id": "b", "action_id": "work"}, {"id": "c", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}, {"from_node_id": "a", "to_node_id": "c"}],
    })
}

#[test]
fn a_result_counts_once() {
    let mut run = Driver::start(two_branches());
    run.at(1_100).succeed("t2@1", json!(1));
    run.succeed("t2@1", json!(2)).check(
        "
        rejected stale_attempt t2@1
        event late_result_discarded t2
    ",
    );
    // Each attempt is logged once.
    run.fail("t2@1").check("rejected stale_attempt t2@1");
    run.reload().fail("t2@1").check("rejected stale_attempt t2@1");
    run.lose("t2@1").check(
        "
        rejected stale_attempt t2@1
    ",
    );
    assert_eq!(run.run.context().state(), &json!({"b": 1}));
}

#[test]
fn a_result_of_an_older_or_unknown_attempt_changes_nothing() {
    let mut run = Driver::start(one_node());
    run.at(1_100).lose("t1@1");
    for attempt in ["t1@1", "t1@3", "t1@0", "t2@1", "t0@1"] {
        let token = &attempt[..2];
        run.succeed(attempt, json!(1)).check(&format!(
            "rejected stale_attempt {attempt}
             event late_result_discarded {token}"
        ));
    }
    let mut report = super::driver::succeeded("t1@2", json!(1));
    report.token_id = "nonsense".into();
    run.report(report).check(
        "
        rejected stale_attempt nonsense@2
        event late_result_discarded nonsense
    ",
    );
    run.succeed("t1@2", json!(1)).check(
        "
        run completed {}
        token t1 a completed@2 lost 1 1 keeps state.a
        announce
        ended
    ",
    );
}

#[test]
fn late_results_do_not_fill_the_storage() {
    let mut run = Driver::start(one_node());
    let late = |run: &Driver| {
        run.events()
            .iter()
            .filter(|it| it.kind == RunEventKind::LateResultDiscarded)
            .count()
    };
    for epoch in 2..60 {
        run.succeed(&format!("t1@{epoch}"), json!(1));
    }
    assert_eq!(late(&run), 58);
    // The logged attempts are restored after an eviction.
    run.reload();
    for epoch in 2..1_000 {
        run.succeed(&format!("t1@{epoch}"), json!(1));
        assert!(run.answer.is_err());
    }
    assert_eq!(late(&run), LATE_NOTED);
    run.reload()
        .succeed("t9@9", json!(1))
        .check("rejected stale_attempt t9@9");
    run.succeed("t1@1", json!(1)).assert_status("completed {}");
}

#[test]
fn a_result_after_the_end_of_its_run_is_stale() {
    let mut run = Driver::start(one_node());
    run.at(1_100).cancel(None);
    run.succeed("t1@1", json!(1)).check(
        "
        rejected stale_attempt t1@1
        event late_result_discarded t1
    ",
    );
}

#[test]
fn a_lost_attempt_is_retried_at_once_then_with_backoff_and_then_fails() {
    let mut run = Driver::start(one_node());
    run.at(2_000).lose("t1@1").check(
        r#"
        token t1 a executing@2 lost 1 watch 32000 (attempt_lost)
        dispatch t1@2 {"x":1}
    "#,
    );
    run.lose("t1@2").check(
        "
        token t1 a pending@2 lost 2 watch 3000 (attempt_lost)
        alarm 3000
    ",
    );
    // The result of the lost attempt arrives between two attempts.
    run.succeed("t1@2", json!(1)).check(
        "
        rejected stale_attempt t1@2
        event late_result_discarded t1
    ",
    );
    run.at(3_000).wake("").check(
        r#"
        token t1 a executing@3 lost 2 watch 33000 (attempt_lost)
        alarm 33000
        dispatch t1@3 {"x":1}
    "#,
    );
    for (at, epoch, pause) in [(3_000, 3, 2_000), (5_000, 4, 4_000), (9_000, 5, 8_000)] {
        run.at(at).lose(&format!("t1@{epoch}"));
        assert_eq!(run.run.next_deadline(), Some(at + pause), "after attempt {epoch}");
        run.at(at + pause).wake("");
        assert_eq!(run.lines_of("dispatch").len(), 1, "attempt {}", epoch + 1);
    }
    run.lose("t1@6").check("
        run failed attempt_lost/network: no executor answered in 6 attempts; last: connection refused
        token t1 a failed@6 lost 5 (attempt_lost) attempt_lost/network: no executor answered in 6 attempts; last: connection refused
        event run_failed t1 a
        announce
        ended
    ");
}

#[test]
fn a_reloaded_object_retries_every_attempt() {
    Driver::start(two_branches()).at(1_100).load().check(
        r#"
        token t2 b executing@2 lost 1 watch 31100 (attempt_lost)
        token t3 c executing@2 lost 1 watch 31100 (attempt_lost)
        dispatch t2@2 {"x":1}
        dispatch t3@2 {"x":1}
    "#,
    );
}

#[test]
fn an_object_reloaded_after_a_deadline_enforces_it() {
    Driver::start(json!({"nodes": [{"id": "a", "action_id": "work", "timeout_ms": 4_000}]}))
        .at(5_000)
        .load()
        .check(
            "
            run failed execution_timeout/timeout: step a timed out: context deadline exceeded
            token t1 a timed_out@1 execution_timeout/timeout: step a timed out: context deadline exceeded
            event token_timed_out t1 a {tool late 0 fail}
            event run_failed t1 a
            abort t1@1
            announce
            ended
        ",
        );
}

#[test]
fn an_object_reloaded_after_its_run_ended_does_nothing() {
    let mut run = Driver::start(one_node());
    run.at(1_100).cancel(None);
    run.at(1_200).load().check("");
}

#[test]
fn the_watch_keeps_open_calls_and_retries_lost_ones() {
    Driver::start(two_branches())
        .at(31_000)
        .wake("t2@1")
        .check(
            r#"
            token t3 c executing@2 lost 1 watch 61000 (attempt_lost)
            alarm 61000
            dispatch t3@2 {"x":1}
        "#,
        )
        .at(61_000)
        .wake("t2@1 t3@2")
        .check(
            "
            alarm 91000
        ",
        );
}

#[test]
fn a_call_of_an_older_attempt_does_not_count_as_open() {
    let mut run = Driver::start(one_node());
    run.at(2_000).lose("t1@1");
    run.at(32_000).wake("t1@1").check(
        "
        token t1 a pending@2 lost 2 watch 33000 (attempt_lost)
        alarm 33000
    ",
    );
}

#[test]
fn cancelling_ends_every_token_and_aborts_its_work() {
    let mut run = Driver::start(two_branches());
    run.at(1_100).lose("t3@1");
    run.lose("t3@2");
    run.at(1_200).cancel(Some("not needed")).check(
        "
        run cancelled (not needed)
        token t2 b cancelled@1 (run_cancelled)
        token t3 c cancelled@2 lost 2 (run_cancelled)
        event run_cancelled
        abort t2@1
        announce
        ended
    ",
    );
    // Cancelling is idempotent and keeps the first reason.
    run.at(1_300).cancel(Some("again")).check("");
    assert_eq!(run.run.header.reason.as_deref(), Some("not needed"));
}

#[test]
fn a_run_that_ended_otherwise_cannot_be_cancelled() {
    let mut run = Driver::start(one_node());
    run.succeed("t1@1", json!(1));
    run.cancel(None).check("rejected run_finished");
    let mut run = Driver::start(one_node());
    run.fail("t1@1");
    run.cancel(None).check("rejected run_finished");
}

/// Cancelling does not handle what is due first: that may be what cannot be decided.
#[test]
fn a_run_whose_limit_has_passed_can_be_cancelled() {
    let mut run = Driver::start(one_node());
    run.at(1_001_000).cancel(None).check(
        "
        run cancelled
        token t1 a cancelled@1 (run_cancelled)
        event run_cancelled
        alarm 11001000
        abort t1@1
        announce
        ended
    ",
    );
}
