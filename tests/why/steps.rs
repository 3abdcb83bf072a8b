//! Attempts, calls and waits.

use curfew::run::Settings;
use serde_json::{Value, json};

use super::{limit, reason, smallest, why};
use crate::run::driver::{Driver, SETTINGS, complete_document, succeeded, timed_out};
use curfew::protocol::task::{RetryReport, StepReport, StepStatus, TaskReport};

fn one(node: Value) -> Value {
    let mut whole = json!({"id": "a", "action_id": "work"});
    for (name, value) in node.as_object().expect("fields") {
        whole[name] = value.clone();
    }
    json!({"nodes": [whole]})
}

#[test]
fn a_call_that_hangs_has_no_smallest_limit() {
    let mut run = Driver::start(one(json!({"timeout": "5s"})));
    run.at(6_500).wake("t1@1");
    let why = why(&run, 0);
    assert_eq!(limit(&why), json!(["execution", "node", "/nodes/0/timeout"]));
    assert_eq!(smallest(&why), json!([null, 5_000, null]));
    assert_eq!(
        reason(&why),
        "more than 5s: the call had not answered when it was cut"
    );
    assert_eq!(
        why["used"],
        json!({
            "elapsed_ms": 5_500, "queued_ms": 0, "waited_ms": 0, "stopped_ms": 0,
            "attempts": [{"epoch": 1, "dispatched_at": 1_000, "queued_ms": 0, "duration_ms": 5_500, "ended": "timed_out"}],
            "attempts_left_out": 0, "waits": [], "waits_left_out": 0, "calls": [],
        })
    );
    assert_eq!(
        why["usual"],
        json!({"workflow_id": "flow", "node_id": "a", "samples": 0, "p50_ms": null, "p99_ms": null, "source": null,
            "reason": "the index was not asked"})
    );
}

#[test]
fn retries_that_are_spent_are_all_shown_with_the_delays_between_them() {
    let mut run = Driver::start(one(
        json!({"timeout_ms": 5_000, "on_timeout": "retry", "max_retries": 2}),
    ));
    run.at(6_000).time_out("t1@1");
    run.at(7_000).wake("").at(12_000).time_out("t1@2");
    run.at(14_000).wake("").at(19_000).time_out("t1@3");
    let last = why(&run, 2);
    let attempts: Vec<Value> = last["used"]["attempts"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| json!([it["epoch"], it["dispatched_at"], it["duration_ms"], it["ended"]]))
        .collect();
    assert_eq!(
        attempts,
        [
            json!([1, 1_000, 5_000, "timed_out"]),
            json!([2, 7_000, 5_000, "timed_out"]),
            json!([3, 14_000, 5_000, "timed_out"])
        ]
    );
    assert_eq!(
        last["used"]["waits"],
        json!([{"began_at": 6_000, "duration_ms": 1_000, "why": "retry_delay"},
            {"began_at": 12_000, "duration_ms": 2_000, "why": "retry_delay"}])
    );
    assert_eq!(last["used"]["waited_ms"], 3_000);
    // The first record is of the first attempt, whatever followed.
    let first = why(&run, 0);
    assert_eq!(first["used"]["attempts"].as_array().map(Vec::len), Some(1));
    assert_eq!(first["used"]["waits"], json!([]));
}

#[test]
fn an_attempt_that_is_repeated_in_time_says_how_long_the_next_one_took() {
    let mut run = Driver::start(one(json!({"timeout_ms": 5_000, "on_timeout": "retry"})));
    run.at(6_000)
        .time_out("t1@1")
        .at(7_000)
        .wake("")
        .at(9_000)
        .succeed("t1@2", json!(1));
    run.assert_status("completed {}");
    let why = why(&run, 0);
    assert_eq!(smallest(&why), json!([null, 5_000, null]));
    assert_eq!(
        reason(&why),
        "more than 5s: the call had not answered when it was cut; attempt 2 took 2s"
    );
}

#[test]
fn a_result_that_came_late_gives_the_smallest_limit_and_its_change() {
    let mut run = Driver::start(one(json!({"timeout": "5s"})));
    run.at(6_500).wake("t1@1");
    run.at(8_300).succeed("t1@1", json!(1));
    let why = why(&run, 0);
    assert_eq!(
        smallest(&why),
        json!([7_301, 7_300, [{"op": "replace", "path": "/nodes/0/timeout", "value": "7301ms"}]])
    );
    assert_eq!(
        reason(&why),
        "the result of this attempt came 7.3s after it began, and was discarded"
    );
}

#[test]
fn a_late_failure_is_no_result() {
    let mut run = Driver::start(one(json!({"timeout_ms": 5_000})));
    run.at(6_500).wake("t1@1").at(8_000).fail("t1@1");
    let why = why(&run, 0);
    assert_eq!(smallest(&why), json!([null, 5_000, null]));
    assert!(
        reason(&why).starts_with("the attempt failed 7s after it began"),
        "{why}"
    );
}

#[test]
fn a_pause_is_no_part_of_the_smallest_limit() {
    let mut run = Driver::start(one(json!({"timeout_ms": 5_000})));
    run.at(2_000).pause().at(12_000).resume();
    run.at(16_500).wake("t1@1");
    run.at(17_000).pause().at(27_000).resume();
    let before = why(&run, 0);
    assert_eq!(before["used"]["elapsed_ms"], 5_500);
    assert_eq!(before["used"]["stopped_ms"], 10_000);
}

#[test]
fn the_waits_between_calls_of_one_attempt_are_in_its_calls() {
    let mut run = Driver::start(one(json!({"timeout_ms": 9_000})));
    let retry = |after_ms| RetryReport {
        class: curfew::base::failure::FailureClass::ServerError,
        code: "status_500".into(),
        delay_ms: 2_000,
        after_ms: Some(after_ms),
    };
    let step = StepReport {
        reference: "work".into(),
        status: StepStatus::TimedOut,
        attempts: 3,
        duration_ms: 9_000,
        retries: vec![retry(1_000), retry(4_000)],
        started_at: None,
        span_id: None,
        gen_ai: None,
    };
    run.at(10_000).report(TaskReport {
        steps: vec![step],
        ..timed_out("t1@1")
    });
    let why = why(&run, 0);
    assert_eq!(
        why["used"]["calls"],
        json!([{"step_ref": "work", "status": "timed_out", "calls": 3, "duration_ms": 9_000, "backoff_ms": 4_000}])
    );
    assert_eq!(why["used"]["waited_ms"], 4_000);
}

#[test]
fn the_time_in_the_queue_is_apart_from_the_attempt() {
    let settings = Settings {
        queue: true,
        ..SETTINGS
    };
    let document = json!({"timeout": "10m", "nodes": [{"id": "a", "action_id": "work", "timeout": "2m", "dispatch": "queue"}]});
    let mut run = Driver::start_with(settings, document, json!({}));
    run.at(8_000).claim("t1@1");
    run.at(128_600).wake("");
    let record = why(&run, 0);
    assert_eq!(record["used"]["queued_ms"], 7_000);
    assert_eq!(
        record["used"]["attempts"],
        json!([{"epoch": 1, "dispatched_at": 1_000, "queued_ms": 7_000, "duration_ms": 120_600, "ended": "timed_out"}])
    );
    // A consumer that had lost its connection reports after all.
    run.at(141_000).report(succeeded("t1@1", json!(1)));
    let smallest_ms = &why(&run, 0)["smallest_limit_ms"];
    assert_eq!(*smallest_ms, 133_001, "from its claim");
}

#[test]
fn a_silent_attempt_is_of_the_deployments_watch() {
    let settings = Settings {
        queue: true,
        ..SETTINGS
    };
    let document = json!({"timeout": "10m", "nodes": [{"id": "a", "action_id": "work", "timeout": "9m", "dispatch": "queue"}]});
    let mut run = Driver::start_with(settings, document, json!({}));
    run.at(2_000).claim("t1@1");
    run.at(302_000).wake("");
    let why = why(&run, 0);
    assert_eq!(limit(&why), json!(["heartbeat", "deployment", null]));
    assert_eq!(why["change"], Value::Null);
}

#[test]
fn an_attempt_that_could_not_begin_again_in_time() {
    let mut run = Driver::start(one(json!({"timeout_ms": 5_000})));
    for (now, attempt) in [(4_000, "t1@1"), (4_500, "t1@2"), (5_600, "t1@3")] {
        run.at(now).wake(attempt).lose(attempt);
    }
    run.at(30_000).wake("");
    let why = why(&run, 0);
    let ends: Vec<&Value> = why["used"]["attempts"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| &it["ended"])
        .collect();
    assert!(ends.len() >= 2, "{why}");
    assert_eq!(ends[0], "repeated");
    assert!(why["smallest_limit_ms"].is_null());
}

#[test]
fn a_sub_workflow_names_the_run_that_was_cut() {
    let document =
        complete_document(json!({"nodes": [{"id": "a", "workflow_id": "child", "timeout_ms": 5_000}]}));
    let mut run = Driver::start(document);
    run.at(6_500).wake("");
    let why = why(&run, 0);
    assert_eq!(limit(&why), json!(["execution", "node", "/nodes/0/timeout_ms"]));
    assert_eq!(why["used"]["attempts"][0]["child_run_id"], "run-1~t1");
    assert_eq!(
        reason(&why),
        "more than 5s: the run run-1~t1 had not ended when it was cut"
    );
}

#[test]
fn a_signal_that_came_late() {
    let wait = json!({"id": "w", "wait": {"signal": "go", "timeout_ms": 5_000, "on_timeout": "continue"}});
    let document = json!({"nodes": [wait, {"id": "b", "action_id": "work"}],
        "transitions": [{"from_node_id": "w", "to_node_id": "b"}]});
    let mut run = Driver::start(document);
    run.at(6_000).wake("");
    let never = why(&run, 0);
    assert_eq!(limit(&never), json!(["wait", "wait", "/nodes/0/wait/timeout_ms"]));
    assert_eq!(reason(&never), "the signal has not come since");
    run.at(9_000).signal("go", json!(1));
    let why = why(&run, 0);
    assert_eq!(
        smallest(&why),
        json!([8_001, 8_000, [{"op": "replace", "path": "/nodes/0/wait/timeout_ms", "value": 8_001}]])
    );
}
