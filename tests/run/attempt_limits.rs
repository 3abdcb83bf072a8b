//! The limit of an attempt: node, task, all calls of the only step together, preset. A timeout bounds one call, not its retries.

use curfew::base::failure::{Failure, FailureClass};
use curfew::base::limits::QUEUE_MAX_MS;
use curfew::protocol::task::TaskReport;
use curfew::run::{Lane, LimitSource, Settings};
use serde_json::{Value, json};

use super::driver::{Driver, SETTINGS, START, timed_out};
use super::graphs::{joining, with};

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;

/// Five waits of 5 min, the longest that a `Retry-After` may ask for, and a second for the order.
const WAITS_MS: u64 = 5 * 5 * MINUTE + SECOND;

const TIMED_OUT: &str = "failed execution_timeout/timeout: step a timed out: context deadline exceeded";

fn action(execution: Value) -> Value {
    json!({"id": "work", "kind": "service_call", "implementation": {"binding": "PEER"}, "execution": execution})
}

/// One node that calls the peer, with more fields of the node.
fn calling(execution: Value, node: Value) -> Value {
    let node = with(json!({"id": "a", "action_id": "work"}), node);
    json!({"nodes": [node], "actions": [action(execution)]})
}

/// One node with a task of these steps.
fn task(steps: Value, more: Value) -> Value {
    let task = with(json!({"id": "task", "steps": steps}), more);
    json!({"nodes": [{"id": "a", "task_id": "task"}], "tasks": [task]})
}

fn step(reference: &str, execution: Value) -> Value {
    let mut action = action(execution);
    action.as_object_mut().expect("an object").remove("id");
    json!({"ref": reference, "action": action})
}

fn limit(document: Value) -> Option<(u64, LimitSource)> {
    Driver::start(document).order().limit
}

/// The executor stopped a step.
fn stopped(attempt: &str, step_ref: &str) -> TaskReport {
    let mut failure = Failure::new("tool_timeout", FailureClass::Timeout, "too slow");
    failure.step_ref = Some(step_ref.into());
    TaskReport {
        error: Some(failure),
        ..timed_out(attempt)
    }
}

#[test]
fn the_nodes_limit_comes_first_then_the_tasks_then_that_of_all_calls() {
    let once = json!({"timeout_ms": 3_000, "retry_policy": {"max_attempts": 1}});
    let of_task = json!({"timeout_ms": 2_000});
    let mut of_node = task(json!([step("s", once.clone())]), of_task.clone());
    of_node["nodes"][0]["timeout_ms"] = json!(1_000);
    assert_eq!(limit(of_node), Some((1_000, LimitSource::Node)));
    let of_task = task(json!([step("s", once.clone())]), of_task);
    assert_eq!(limit(of_task), Some((2_000, LimitSource::Task)));
    assert_eq!(
        limit(calling(once.clone(), json!({}))),
        Some((3_000, LimitSource::Action))
    );
    assert_eq!(limit(calling(once.clone(), json!({"timeout_ms": null}))), None);
    // With several steps each call has its own limit, and only the run's limits all of them.
    let two = json!([step("s", once.clone()), step("r", once)]);
    assert_eq!(limit(task(two, json!({}))), None);
}

#[test]
fn the_limit_leaves_room_for_every_call_and_every_wait() {
    let timeout = json!({"timeout": "5s"});
    let brief = json!({"retry_on": ["network", "server_error"], "jitter": false});
    for (execution, expected) in [
        (timeout.clone(), Some(6 * 5 * SECOND + WAITS_MS)),
        // Timeouts are retried three times; the sixth call may follow rate limits.
        (
            with(timeout.clone(), json!({"on_timeout": "retry"})),
            Some(6 * 5 * SECOND + WAITS_MS),
        ),
        (
            with(timeout.clone(), json!({"retry_policy": brief})),
            Some(20_000 + 7_000 + 1_000),
        ),
        (
            with(
                timeout.clone(),
                json!({"retry_policy": with(brief, json!({"max_attempts": 2}))}),
            ),
            Some(10_000 + 1_000 + 1_000),
        ),
        (
            with(timeout.clone(), json!({"retry_policy": {"max_attempts": 1}})),
            Some(5_000),
        ),
        (
            with(timeout.clone(), json!({"retry_policy": {"retry_on": []}})),
            Some(5_000),
        ),
        // What bounds all calls is the limit itself.
        (
            with(timeout.clone(), json!({"retry_policy": {"total_timeout": "20s"}})),
            Some(20_000),
        ),
        (json!({"retry_policy": {"total_timeout": "20s"}}), Some(20_000)),
        (json!({"retry_policy": {"max_attempts": 3}}), None),
        (json!({"timeout": null}), None),
    ] {
        let found = limit(calling(execution.clone(), json!({})));
        assert_eq!(
            found,
            expected.map(|millis| (millis, LimitSource::Action)),
            "{execution}"
        );
    }
}

#[test]
fn the_override_of_the_only_step_is_the_limit_of_its_calls() {
    let once = json!({"timeout": "5s", "retry_policy": {"max_attempts": 1}});
    let overridden = |value: Value| {
        let step = with(step("s", once.clone()), json!({"timeout_override_ms": value}));
        limit(task(json!([step]), json!({})))
    };
    assert_eq!(overridden(json!(700)), Some((700, LimitSource::Action)));
    assert_eq!(overridden(Value::Null), None);
}

#[test]
fn business_retries_of_the_only_step_have_their_time_too() {
    let retry = json!({"max_attempts": 3, "backoff": "linear", "initial_delay_ms": 100});
    let rounds = |execution: Value| {
        let step = with(step("s", execution), json!({"on_failure": "retry"}));
        limit(task(json!([step]), json!({"retry": retry})))
    };
    let once = json!({"timeout": "5s", "retry_policy": {"max_attempts": 1}});
    assert_eq!(rounds(once), Some((15_000 + 300 + 1_000, LimitSource::Action)));
    let total = json!({"retry_policy": {"total_timeout": "4s"}});
    assert_eq!(rounds(total), Some((12_300, LimitSource::Action)));
}

#[test]
fn the_token_says_how_its_limit_was_made() {
    let run = Driver::start(calling(json!({"timeout": "5s"}), json!({})));
    assert_eq!(
        run.row("t1").deadline.reason.as_deref(),
        Some("6 calls of 5s, and waits of up to 25m0s")
    );
    let once = json!({"timeout": "5s", "retry_policy": {"max_attempts": 1}});
    let run = Driver::start(calling(once, json!({})));
    assert_eq!(run.row("t1").deadline.reason, None);
}

#[test]
fn a_presets_limits_bound_one_call_and_its_step_the_attempt() {
    let flow = |document: Value| {
        with(
            document,
            json!({"timeouts": {"preset": "flow"}, "timeout": "30m"}),
        )
    };
    let run = Driver::start(flow(calling(json!({}), json!({}))));
    assert_eq!(run.order().limit, Some((10 * MINUTE, LimitSource::Preset)));
    let timeouts = run.order().action_timeouts.expect("the calls are limited");
    assert_eq!(
        (timeouts.llm_call_ms, timeouts.tool_ms),
        (Some(2 * MINUTE), Some(5 * MINUTE))
    );
    // All calls would take longer than a step may.
    assert_eq!(
        limit(flow(calling(json!({"timeout": "5s"}), json!({})))),
        Some((10 * MINUTE, LimitSource::Preset))
    );
    let once = |timeout: &str| json!({"timeout": timeout, "retry_policy": {"max_attempts": 1}});
    assert_eq!(
        limit(flow(calling(once("5s"), json!({})))),
        Some((5_000, LimitSource::Action))
    );
    let two = json!([step("s", json!({})), step("r", json!({}))]);
    let run = Driver::start(flow(task(two, json!({}))));
    assert_eq!(run.order().limit, Some((10 * MINUTE, LimitSource::Preset)));
    assert!(run.order().action_timeouts.is_some());
    // A document that allows one call more than a step.
    let long = with(
        step("s", json!({"timeout": "12m"})),
        json!({"allow_exceed_hard": true}),
    );
    assert_eq!(
        limit(flow(task(json!([long]), json!({})))),
        Some((12 * MINUTE, LimitSource::Preset))
    );
    // Without a preset's limit of a step, the workflow's default for tools bounds each call.
    let tools = json!({"timeouts": {"tool": "5s"}});
    let run = Driver::start(with(calling(json!({}), json!({})), tools));
    assert_eq!(run.order().limit, Some((30_000 + WAITS_MS, LimitSource::Preset)));
    assert_eq!(run.order().action_timeouts.and_then(|it| it.tool_ms), Some(5_000));
}

/// The executor makes a call again that timed out, so the attempt is over when it reports.
#[test]
fn the_actions_on_timeout_is_used_up_when_its_calls_had_time_for_retries() {
    let retry = json!({"timeout_ms": 3_000, "on_timeout": "retry"});
    let mut run = Driver::start(calling(retry.clone(), json!({})));
    run.time_out("t1@1").assert_status(TIMED_OUT);
    let total = with(
        retry.clone(),
        json!({"retry_policy": {"total_timeout_ms": 20_000}}),
    );
    let mut run = Driver::start(calling(total, json!({})));
    run.time_out("t1@1").assert_status(TIMED_OUT);
    let mut run = Driver::start(calling(retry.clone(), json!({"timeout_ms": 10_000})));
    run.time_out("t1@1").assert_status(TIMED_OUT);
    // Another attempt follows where the executor could make only one call, and where the node says so.
    for (execution, node) in [
        (retry.clone(), json!({"timeout_ms": 3_000})),
        (json!({"on_timeout": "retry"}), json!({"timeout_ms": 3_000})),
        (
            with(retry.clone(), json!({"retry_policy": {"max_attempts": 1}})),
            json!({}),
        ),
        (json!({"timeout_ms": 3_000}), json!({"on_timeout": "retry"})),
    ] {
        let mut run = Driver::start(calling(execution, node));
        run.time_out("t1@1").assert_status("running a:pending");
    }
    let mut run = Driver::start(calling(retry, json!({"timeout_ms": 3_000, "on_timeout": "fail"})));
    run.time_out("t1@1").assert_status(TIMED_OUT);
}

/// An attempt that an earlier build began has the limit of one call, and keeps it.
#[test]
fn an_attempt_of_an_earlier_build_keeps_its_deadline() {
    let mut run = Driver::start(calling(
        json!({"timeout_ms": 3_000, "on_timeout": "retry"}),
        json!({}),
    ));
    let row = &mut run.store.tokens.get_mut(&1).expect("t1 is saved").1;
    let mut earlier: Value = serde_json::from_str(row).expect("rows are JSON");
    earlier["timeout_at"] = json!(START + 3_000);
    earlier["timeout_ms"] = json!(3_000);
    earlier
        .as_object_mut()
        .expect("an object")
        .remove("timeout_reason");
    *row = earlier.to_string();
    run.reload();
    assert_eq!(run.row("t1").deadline.at, Some(START + 3_000));
    run.at(START + 3_500)
        .wake("t1@1")
        .assert_status("running a:pending");
    run.at(START + 4_500)
        .wake("")
        .assert_status("running a:executing");
    let limit_ms = 6 * 3 * SECOND + WAITS_MS;
    assert_eq!(
        run.row("t1").deadline.timeout_ms,
        Some(limit_ms),
        "the next attempt"
    );
}

#[test]
fn the_record_names_the_limit_that_passed() {
    let limits = |run: &Driver| {
        let record = run.records().pop().expect("a record");
        let timeout = record.timeout_event;
        let events = run.events();
        assert_eq!(events[0].fields["timeout_duration_ms"], json!(timeout.timeout_ms));
        (timeout.timeout_ms, timeout.elapsed_ms, timeout.lateness_ms)
    };
    // One of several calls timed out, long before the deadline of all of them.
    let mut run = Driver::start(calling(json!({"timeout": "5s"}), json!({})));
    let step_ref = run.run.snapshot().tasks[0].task.steps[0].reference.clone();
    run.at(START + 6_200).report(stopped("t1@1", &step_ref));
    assert_eq!(limits(&run), (Some(5_000), 6_200, 0));
    let steps = json!([
        step("s", json!({"timeout": "5s"})),
        step("r", json!({"retry_policy": {"total_timeout": "7s"}}))
    ]);
    let several = with(task(steps, json!({"timeout": "1m"})), json!({}));
    for (step_ref, limit_ms) in [("s", 5_000), ("r", 7_000)] {
        let mut run = Driver::start(several.clone());
        run.at(START + 8_000).report(stopped("t1@1", step_ref));
        assert_eq!(limits(&run).0, Some(limit_ms), "{step_ref}");
        // At the deadline of the attempt it is the attempt's limit, also if the clocks differ a little.
        let mut run = Driver::start(several.clone());
        run.at(START + MINUTE - SETTINGS.grace_ms)
            .report(stopped("t1@1", step_ref));
        assert_eq!(limits(&run).0, Some(MINUTE), "{step_ref}");
    }
}

#[test]
fn the_report_of_a_step_shows_which_limit_passed() {
    let both = json!({"timeout": "2s", "retry_policy": {"total_timeout": "7s"}});
    let steps = json!([step("s", both), step("other", json!({}))]);
    let document = with(
        task(steps, json!({"timeout": "9s"})),
        json!({"timeout": "9300ms"}),
    );
    // How long the step took, and the retries before its last call: when the call before failed, and the delay after it.
    for (duration_ms, retries, limit_ms) in [
        (2_000, vec![], 2_000),
        (5_000, vec![(2_000, 1_000)], 2_000),
        (7_000, vec![(2_000, 1_000), (5_000, 1_500)], 7_000),
        // The task's limit came first, also where that of the attempt is within the grace.
        (1_200, vec![], 9_000),
        (4_000, vec![(2_000, 1_000)], 9_000),
    ] {
        let mut report = stopped("t1@1", "s");
        let retries: Vec<Value> = retries
            .iter()
            .map(|(after, delay)| json!({"class": "timeout", "code": "c", "delay_ms": delay, "after_ms": after}))
            .collect();
        let step = json!({"ref": "s", "status": "timed_out", "attempts": retries.len() + 1, "duration_ms": duration_ms, "retries": retries});
        report.steps = vec![serde_json::from_value(step).expect("a step")];
        let mut run = Driver::start(document.clone());
        run.at(START + 9_000).report(report);
        let record = run.records().pop().expect("a record");
        assert_eq!(
            record.timeout_event.timeout_ms,
            Some(limit_ms),
            "{duration_ms} {retries:?}"
        );
    }
}

/// A long deadline for retries does not change how an attempt is sent.
#[test]
fn retries_do_not_change_the_lane() {
    const WITH_QUEUE: Settings = Settings {
        queue: true,
        ..SETTINGS
    };
    let start = |execution: Value, node: Value| {
        let document = with(calling(execution, node), json!({"timeout": "1h"}));
        Driver::start_with(WITH_QUEUE, document, json!({"x": 1}))
    };
    let lane = |execution: Value, node: Value| start(execution, node).row("t1").lane;
    assert_eq!(lane(json!({"timeout": "5s"}), json!({})), Some(Lane::Direct));
    assert_eq!(lane(json!({"timeout": "2m"}), json!({})), Some(Lane::Queue));
    let queue = json!({"dispatch": "queue"});
    assert_eq!(lane(json!({"timeout": "5s"}), queue), Some(Lane::Queue));
    assert_eq!(lane(json!({"timeout": "20m"}), json!({})), Some(Lane::Direct));
    // A consumer makes the retries it has time for.
    let mut run = start(json!({"timeout": "2m"}), json!({}));
    run.claim("t1@1");
    let deadline = run.row("t1").deadline;
    assert_eq!(deadline.timeout_ms, Some(QUEUE_MAX_MS));
    assert_eq!(
        deadline.reason.as_deref(),
        Some("6 calls of 2m0s, and waits of up to 25m0s; 14m0s at most in the queue")
    );
    let brief = json!({"timeout": "2m", "retry_policy": {"max_attempts": 2, "retry_on": ["network"], "jitter": false}});
    let mut run = start(brief, json!({}));
    run.claim("t1@1");
    assert_eq!(run.row("t1").deadline.timeout_ms, Some(4 * MINUTE + 2_000));
}

/// A plain request may be lost with the object while an attempt waits for its next call.
#[test]
fn only_attempts_that_are_short_with_all_retries_use_a_plain_request() {
    let is_plain = |execution: Value| {
        let run = Driver::start(calling(execution, json!({})));
        run.order().is_short_and_last
    };
    assert!(!is_plain(json!({"timeout": "5s"})));
    assert!(is_plain(
        json!({"timeout": "5s", "retry_policy": {"max_attempts": 1}})
    ));
    assert!(is_plain(
        json!({"timeout": "5s", "retry_policy": {"retry_on": ["network"]}})
    ));
}

#[test]
fn a_joins_default_wait_does_not_count_retries() {
    let mut run = Driver::start(json!({
        "nodes": [{"id": "start"}, {"id": "a", "action_id": "work"}, {"id": "z"}],
        "transitions": [
            {"id": "out", "from_node_id": "start", "to_node_id": "a", "spawn_count": 2},
            {"from_node_id": "a", "to_node_id": "z", "synchronization": joining("out", json!({}))},
        ],
        "actions": [action(json!({"timeout": "4s"}))],
    }));
    run.succeed("t2@1", json!(1));
    assert_eq!(
        run.lines_of("instance"),
        ["instance 1 out of 2 join z from 1000 until 13000"]
    );
}
