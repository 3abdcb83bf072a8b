//! `GET /deliverable`: every ended run has a deliverable.

use curfew::api::recovery::deliverable;
use curfew::run::{Routes, Settings};
use serde_json::{Value, json};

use crate::run::driver::Driver;

fn document() -> Value {
    json!({
        "timeout_ms": 60_000,
        "nodes": [{"id": "a", "action_id": "work"}, {"id": "b", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}, {"from_node_id": "b", "to_node_id": "a",
            "condition": "state.b == 'again'"}],
        "on_no_match": "end",
        "output_mapping": {"made": "${state.b}"},
    })
}

fn view(run: &Driver) -> Value {
    let timeouts = run.records().len() as u64;
    run.deliverable(timeouts)
}

#[test]
fn a_completed_run_delivers_its_output() {
    let mut run = Driver::start(document());
    run.succeed("t1@1", json!(1)).succeed("t2@1", json!(2));
    assert_eq!(
        view(&run),
        json!({"kind": "output", "status": "complete", "run_id": "run-1", "output": {"made": 2}})
    );
}

#[test]
fn a_failed_run_delivers_partial_results() {
    let mut run = Driver::start(document());
    run.at(2_000).succeed("t1@1", json!(1)).at(5_000).fail("t2@1");
    let error = json!({"code": "peer_failed", "class": "server_error", "message": "status 500", "node_id": "b",
        "token_id": "t2"});
    assert_eq!(
        view(&run),
        json!({
            "kind": "fallback", "status": "partial", "run_id": "run-1", "reason": "peer_failed",
            "message": "status 500", "completed_nodes": ["a"], "state": {"a": 1}, "output": {},
            "diagnostics": {"run_status": "failed", "attempt": 1, "duration_ms": 4_000,
                "errors": [{"token_id": "t2", "node_id": "b", "error": error}], "timeouts": 0,
                "resume": "/v1/runs/run-1/resume"},
        })
    );
}

#[test]
fn a_timed_out_run_delivers_its_number_of_timeouts() {
    let mut run = Driver::start(document());
    run.at(61_000).wake("t1@1");
    let view = view(&run);
    assert_eq!(
        (
            &view["reason"],
            &view["message"],
            &view["diagnostics"]["timeouts"]
        ),
        (
            &json!("workflow_timeout"),
            &json!("Workflow execution timed out after 1m0s"),
            &json!(1)
        )
    );
    assert_eq!(view["completed_nodes"], json!([]));
}

#[test]
fn a_cancelled_run_delivers_the_reason() {
    let mut run = Driver::start(document());
    run.cancel(Some("not needed any more"));
    let cancelled = view(&run);
    assert_eq!(
        (&cancelled["reason"], &cancelled["message"]),
        (&json!("cancelled"), &json!("not needed any more"))
    );
    let mut run = Driver::start(document());
    run.cancel(None);
    assert_eq!(view(&run)["message"], json!("the run was cancelled"));
}

/// In the order of their first completion, also in a loop.
#[test]
fn completed_nodes_are_listed_once() {
    let mut run = Driver::start(document());
    run.succeed("t1@1", json!(1))
        .succeed("t2@1", json!("again"))
        .succeed("t3@1", json!(1))
        .fail("t4@1");
    assert_eq!(view(&run)["completed_nodes"], json!(["a", "b"]));
}

#[test]
fn a_run_that_has_not_ended_has_no_deliverable() {
    let mut run = Driver::start(document());
    for _ in 0..2 {
        let error = deliverable(&run.run, &[], &Default::default(), 0).expect_err("not ended");
        assert_eq!((error.status, error.code), (409, "run_not_ended"));
        run.pause();
    }
}

/// Runs every alarm until the run ends. No task is ever claimed or reported.
fn run_alarms_to_the_end(settings: Settings, document: Value) -> Driver {
    let mut run = Driver::start_with(settings, document, json!({}));
    for _ in 0..100 {
        match run
            .run
            .alarm_at()
            .filter(|_| !run.run.header.status.is_terminal())
        {
            Some(at) => run.at(at).wake(""),
            None => break,
        };
    }
    run
}

#[test]
fn every_forced_end_has_a_deliverable_and_a_resume_option() {
    let settings = Settings::default();
    let queue = Settings {
        queue: true,
        ..settings
    };
    let no_route = Settings {
        routes: Routes {
            executor: false,
            queue: false,
        },
        ..settings
    };
    let one = |more: Value| {
        let mut document = json!({"nodes": [{"id": "a", "action_id": "work"}], "timeout": "14m"});
        if let (Value::Object(document), Value::Object(more)) = (&mut document, more) {
            document.extend(more);
        }
        document
    };
    let endless = json!({"timeout": "1m", "nodes": [{"id": "a", "wait": {"sleep": "10s"}}, {"id": "b", "wait": {"sleep": "10s"}}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}, {"from_node_id": "b", "to_node_id": "a"}]});
    for (what, reason, settings, document) in [
        ("never claimed", "dispatch_timeout", queue, one(json!({}))),
        ("lost executor", "attempt_lost", settings, one(json!({}))),
        ("no route to an executor", "no_route", no_route, one(json!({}))),
        ("the run's timeout", "workflow_timeout", settings, endless.clone()),
        ("undecided gate", "workflow_timeout", settings, {
            let mut document = endless.clone();
            document["on_timeout"] = json!("human_gate");
            document
        }),
    ] {
        let run = run_alarms_to_the_end(settings, document);
        let view = view(&run);
        assert_eq!(
            (&view["kind"], &view["reason"]),
            (&json!("fallback"), &json!(reason)),
            "{what}: {view}"
        );
        let options = run.resume_view();
        assert!(options["recommended"].is_string(), "{what}: {options}");
    }
}
