//! Which limit it was, and where its length is written.

use serde_json::{Value, json};

use super::{limit, why};
use crate::run::driver::{Driver, timed_out};
use curfew::base::failure::Failure;
use curfew::protocol::task::TaskReport;
use curfew::run::{RetryMode, StartRequest};

/// The document's only node times out when its limit passes.
#[track_caller]
fn check(document: Value, at: u64, expected: Value) -> Value {
    let mut run = Driver::start(document);
    run.at(1_000 + at).time_out("t1@1");
    let why = why(&run, 0);
    assert_eq!(limit(&why), expected, "{why}");
    why
}

fn with_action(execution: Value, more: Value) -> Value {
    let mut document = json!({
        "actions": [{"id": "work", "kind": "service_call", "implementation": {"binding": "PEER"}, "execution": execution}],
        "nodes": [{"id": "a", "action_id": "work"}],
    });
    for (name, value) in more.as_object().expect("fields") {
        document[name] = value.clone();
    }
    document
}

#[test]
fn the_limit_of_an_action_is_in_its_own_document() {
    let once = json!({"timeout": "5s", "retry_policy": {"max_attempts": 1}});
    let why = check(
        with_action(once, json!({})),
        5_000,
        json!(["execution", "action", "/execution/timeout"]),
    );
    assert_eq!(why["limit"]["document"], json!({"kind": "actions", "id": "work"}));
}

#[test]
fn a_call_that_could_be_repeated_was_cut_before_its_attempt() {
    let mut run = Driver::start(with_action(json!({"timeout_ms": 5_000}), json!({})));
    run.at(6_000).report(TaskReport {
        error: Some(Failure {
            step_ref: Some("work".into()),
            ..timed_out("t1@1").error.expect("an error")
        }),
        ..timed_out("t1@1")
    });
    let why = why(&run, 0);
    assert_eq!(limit(&why), json!(["call", "action", "/execution/timeout_ms"]));
    assert_eq!(why["limit"]["timeout_ms"], 5_000);
}

#[test]
fn the_limit_of_a_task_is_in_its_own_document() {
    let document = json!({
        "tasks": [{"id": "job", "timeout": "7s", "steps": [{"ref": "one", "action_id": "work"}, {"ref": "two", "action_id": "work"}]}],
        "nodes": [{"id": "a", "task_id": "job"}],
    });
    let why = check(document, 7_000, json!(["execution", "task", "/timeout"]));
    assert_eq!(why["limit"]["document"], json!({"kind": "tasks", "id": "job"}));
}

#[test]
fn a_default_of_the_workflow_and_one_of_its_preset() {
    let steps = json!([{"ref": "one", "action_id": "work"}, {"ref": "two", "action_id": "work"}]);
    let document = |timeouts: Value| json!({"timeouts": timeouts, "tasks": [{"id": "job", "steps": steps}], "nodes": [{"id": "a", "task_id": "job"}]});
    check(
        document(json!({"step": 8_000})),
        8_000,
        json!(["execution", "workflow", "/timeouts/step"]),
    );
    let of_preset = check(
        document(json!({"preset": "flow"})),
        600_000,
        json!(["execution", "preset", "/timeouts/preset"]),
    );
    assert_eq!(of_preset["limit"]["preset"], "flow");
}

#[test]
fn an_adaptive_limit_says_which_value_it_took_and_why() {
    let mut document = with_action(json!({}), json!({"timeouts": {"step": 8_000}}));
    document["nodes"][0]["timeout"] = json!("adaptive");
    document["actions"] =
        json!([{"id": "work", "kind": "service_call", "implementation": {"binding": "PEER"}}]);
    document["timeouts"] = json!({"tool": 8_000});
    let why = check(
        document,
        8_000,
        json!(["execution", "adaptive", "/nodes/0/timeout"]),
    );
    assert_eq!(
        why["limit"]["reason"],
        "adaptive: 0 of 20 samples, so the default of 8s"
    );
}

#[test]
fn the_limits_of_a_run() {
    let hanging = |more: Value| {
        let mut document = json!({"nodes": [{"id": "a", "action_id": "work"}], "timeout": null});
        document.as_object_mut().expect("fields").remove("timeout");
        for (name, value) in more.as_object().expect("fields") {
            document[name] = value.clone();
        }
        document
    };
    let of = |document: Value, at: u64| {
        let mut run = Driver::start(document);
        run.at(1_000 + at).wake("t1@1");
        limit(&why(&run, 0))
    };
    assert_eq!(
        of(hanging(json!({"timeout": "9s"})), 9_000),
        json!(["workflow", "workflow", "/timeout"])
    );
    assert_eq!(
        of(hanging(json!({"timeout_ms": 9_000})), 9_000),
        json!(["workflow", "workflow", "/timeout_ms"])
    );
}

#[test]
fn what_was_left_of_the_run_is_said_and_bounds_the_smallest_limit() {
    let document = json!({"timeout_ms": 6_000, "nodes": [{"id": "a", "action_id": "work", "timeout_ms": 4_000}],
        "on_timeout": "cancel_all"});
    let mut run = Driver::start(document);
    run.at(5_500).wake("t1@1");
    let before = why(&run, 0);
    assert_eq!(before["outer"]["left_ms"], 1_500);
    assert_eq!(before["outer"]["layer"], "workflow");
    run.at(9_000).succeed("t1@1", json!(1));
    let after = why(&run, 0);
    assert_eq!(after["smallest_limit_ms"], 8_001);
    assert!(
        super::reason(&after).contains("the run's own limit would have passed first"),
        "{after}"
    );
}

#[test]
fn after_another_version_pointers_are_left_out() {
    let document = json!({"nodes": [{"id": "a", "action_id": "work", "timeout_ms": 4_000}]});
    let mut run = Driver::start(document.clone());
    run.at(5_500).wake("t1@1");
    run.at(9_000).retry_on(RetryMode::RetryStep, 2, document);
    let why = why(&run, 0);
    assert_eq!(limit(&why), json!(["execution", "unknown", null]));
    assert!(
        why["limit"]["reason"]
            .as_str()
            .expect("a sentence")
            .contains("version 2"),
        "{why}"
    );
}

#[test]
fn the_limit_of_a_start_is_in_no_document() {
    let mut start = crate::run::driver::Start {
        id: "run-1".into(),
        stored: crate::run::driver::store_document(&crate::run::driver::complete_document(
            json!({"nodes": [{"id": "a", "action_id": "work"}]}),
        )),
        input: json!({}),
        request: StartRequest {
            timeout_ms: Some(3_000),
            ..StartRequest::default()
        },
        parent: None,
        triggered_by: None,
        started_by: None,
    };
    start.id = "run-1".into();
    let (run, decision) = start.run(1_000, crate::run::driver::SETTINGS);
    let mut run = Driver::of(run, decision, crate::run::driver::SETTINGS);
    run.at(4_000).wake("t1@1");
    let why = why(&run, 0);
    assert_eq!(limit(&why), json!(["workflow", "start", null]));
    assert_eq!(why["change"], Value::Null);
}

/// The result came late, because the executor had lost its connection.
fn late_result(document: Value, at: u64) -> Value {
    let mut run = Driver::start(document);
    run.at(1_000 + at)
        .wake("t1@1")
        .at(1_000 + at + 4_000)
        .succeed("t1@1", json!(1));
    why(&run, 0)
}

#[test]
fn a_change_is_proposed_only_where_it_holds() {
    let once = json!({"timeout": "5s", "retry_policy": {"max_attempts": 1}});
    let of_action = late_result(with_action(once.clone(), json!({})), 5_500);
    assert_eq!(of_action["smallest_limit_ms"], 9_501);
    assert_eq!(
        of_action["change"],
        Value::Null,
        "the call would still be cut at 5 s"
    );

    let mut document = with_action(once, json!({}));
    document["nodes"][0]["timeout"] = json!("3s");
    let of_node = late_result(document, 3_500);
    assert_eq!(of_node["change"][0]["path"], "/nodes/0/timeout");
    let reason = super::reason(&of_node);
    assert!(
        reason.contains("the limit of its call, 5s, would have passed first"),
        "{reason}"
    );

    let never = json!({"retry_policy": {"max_attempts": 1}});
    let of_default = late_result(with_action(never, json!({"timeouts": {"tool": "4s"}})), 4_500);
    assert_eq!(
        of_default["change"],
        json!([{"op": "replace", "path": "/timeouts/tool", "value": "8501ms"}])
    );
}

#[test]
fn a_hard_limit_that_forbids_the_smallest_limit_is_said() {
    let document = json!({"timeouts": {"preset": "flow"}, "timeout": "40m", "nodes": [{"id": "a", "action_id": "work", "timeout": "9m"}]});
    let mut run = Driver::start(document);
    let minutes = |count: u64| 1_000 + count * 60_000;
    run.at(minutes(9) + 500)
        .wake("t1@1")
        .at(minutes(11))
        .succeed("t1@1", json!(1));
    let why = why(&run, 0);
    assert_eq!(why["smallest_limit_ms"], 660_001);
    let reason = super::reason(&why);
    assert!(
        reason.contains("over the hard limit of 10m0s for a tool under preset \"flow\""),
        "{reason}"
    );
    assert!(
        reason.contains("the limit of its call, 5m0s, would have passed first"),
        "{reason}"
    );
}
