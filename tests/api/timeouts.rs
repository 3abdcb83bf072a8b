//! `GET /timeouts` and `GET /events`: timeout records, log lines and the lateness of each layer.

use curfew::api::recovery::{event, lateness, timeout, timeout_line};
use curfew::run::{HistoryEvent, RunEvent};
use serde_json::{Value, json};

use crate::run::driver::Driver;

fn view(entry: &RunEvent) -> Value {
    event("run-1", HistoryEvent::of_log(entry))
}

fn document() -> Value {
    json!({
        "timeout_ms": 60_000,
        "nodes": [{"id": "a", "action_id": "work"}, {"id": "b", "action_id": "work", "timeout_ms": 4_000}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}],
    })
}

/// `a` completes at 2 s, `b` times out at 6 s.
fn timed_out() -> Driver {
    let mut run = Driver::start(document());
    run.at(2_000)
        .succeed("t1@1", json!("kept"))
        .at(6_500)
        .wake("t2@1");
    run
}

#[test]
fn a_record_has_the_checkpoint_for_a_resume() {
    let run = timed_out();
    let entry = &run.events()[0];
    let expected = json!({
        "id": 7,
        "timeout_event": {"timestamp": "1970-01-01T00:00:06.500Z", "scope": "tool", "timeout_ms": 4_000,
            "elapsed_ms": 4_500, "due_at": 6_000, "lateness_ms": 500},
        "last_known_state": {"node_id": "b", "token_id": "t2", "phase": "executing",
            "progress": {"steps_completed": 0, "steps_total": 1}},
        "partial_artifacts": [],
        "context_for_resume": {
            "last_successful_checkpoint": {"token_id": "t1", "node_id": "a", "at": 2_000},
            "state": {"a": "kept"},
        },
        "retry_count": 0,
        "final_action": "fail",
        "recovery_path": "/v1/runs/run-1/timeouts/7",
    });
    let ended = run.past().tokens;
    assert_eq!(timeout(&run.run, entry, &ended), Some(expected));
}

#[test]
fn the_checkpoint_of_a_record_is_older_than_its_timeout() {
    let mut document = document();
    document["transitions"][0]["on"] = json!("timeout");
    document["nodes"][0]["timeout_ms"] = json!(4_000);
    let mut run = Driver::start(document);
    run.at(5_500)
        .wake("t1@1")
        .at(6_000)
        .succeed("t2@1", json!(1))
        .assert_status("completed {}");
    let record = timeout(&run.run, &run.events()[0], &run.past().tokens).expect("a record");
    assert_eq!(
        record["context_for_resume"]["last_successful_checkpoint"],
        Value::Null
    );
}

#[test]
fn a_log_line_links_to_its_record() {
    let run = timed_out();
    assert_eq!(
        timeout_line(&run.run.header, &run.events()[0]),
        Some(json!({
            "timestamp": "1970-01-01T00:00:06.500Z", "run_id": "run-1", "flow_key": "flow", "step_id": "b",
            "scope": "tool", "timeout_ms": 4_000, "elapsed_ms": 4_500, "retry_count": 0, "final_action": "fail",
            "recovery_path": "/v1/runs/run-1/timeouts/7",
        }))
    );
}

#[test]
fn only_timeouts_have_a_record_and_a_log_line() {
    let run = timed_out();
    let end = &run.events()[1];
    assert_eq!(timeout_line(&run.run.header, end), None);
    assert_eq!(timeout(&run.run, end, &[]), None);
}

#[test]
fn the_log_line_of_a_run_timeout_has_no_step() {
    let mut run = Driver::start(document());
    run.at(61_000).wake("t1@1");
    let line = timeout_line(&run.run.header, &run.events()[0]).expect("a line");
    assert_eq!((&line["step_id"], &line["scope"]), (&Value::Null, &json!("flow")));
}

#[test]
fn events_are_flat_and_link_to_their_records() {
    let run = timed_out();
    let events: Vec<Value> = run.events().iter().map(view).collect();
    assert_eq!(
        events,
        [
            json!({"seq": 7, "at": 6_500, "kind": "token_timed_out", "token_id": "t2", "workflow_run_id": "run-1",
                "node_id": "b", "timeout_type": "execution", "timeout_duration_ms": 4_000,
                "policy_applied": "fail", "recovery_path": "/v1/runs/run-1/timeouts/7"}),
            json!({"seq": 8, "at": 6_500, "kind": "run_failed", "code": "execution_timeout", "class": "timeout",
                "node_id": "b", "token_id": "t2"}),
        ]
    );
}

/// Rows of earlier builds have the final action of the record instead.
#[test]
fn an_event_of_an_earlier_build_shows_the_name_of_its_policy() {
    for (saved, shown) in [
        ("escalate", "human_gate"),
        ("cancel", "cancel_all"),
        ("proceed", "proceed_with_available"),
        ("retry", "retry"),
        ("fail", "fail"),
        ("cancel_all", "cancel_all"),
    ] {
        let mut entry = timed_out().events()[0].clone();
        entry.fields.insert("policy_applied".into(), json!(saved));
        assert_eq!(view(&entry)["policy_applied"], json!(shown));
    }
}

#[test]
fn lateness_is_shown_by_layer_in_seconds() {
    let row = |scope: &str, count, sum, most| (scope.to_string(), count, sum, most);
    assert_eq!(
        lateness(&[
            row("tool", 2, 1_000, 700),
            row("llm_call", 1, 200, 200),
            row("step", 1, 0, 0),
            row("flow", 1, 50, 50),
            row("sync", 2, 30, 20),
            row("gate", 1, 5, 5),
            row("moon", 9, 9, 9),
        ]),
        json!({
            "execution": {"count": 4, "mean": 0.3, "max": 0.7},
            "workflow": {"count": 1, "mean": 0.05, "max": 0.05},
            "synchronization": {"count": 2, "mean": 0.015, "max": 0.02},
            "gate": {"count": 1, "mean": 0.005, "max": 0.005},
        })
    );
    assert_eq!(lateness(&[]), json!({}));
}
