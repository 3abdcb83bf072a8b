//! `GET /deliverable`: every run that ended has something to show.

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
        "output_mapping": {"made": "${state.b}"},
    })
}

fn view(run: &Driver) -> Value {
    let timeouts = run.records().len() as u64;
    run.deliverable(timeouts)
}

#[test]
fn of_a_completed_run_it_is_the_output() {
    let mut run = Driver::start(document());
    run.succeed("t1@1", json!(1)).succeed("t2@1", json!(2));
    assert_eq!(
        view(&run),
        json!({"kind": "output", "status": "complete", "run_id": "run-1", "output": {"made": 2}})
    );
}

#[test]
fn of_a_failed_run_it_is_as_much_as_there_is() {
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
fn of_a_run_whose_time_was_over_it_counts_the_timeouts() {
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
fn of_a_cancelled_run_it_says_who_wanted_it() {
    let mut run = Driver::start(document());
    run.cancel(Some("not needed any more"));
    let told = view(&run);
    assert_eq!(
        (&told["reason"], &told["message"]),
        (&json!("cancelled"), &json!("not needed any more"))
    );
    let mut run = Driver::start(document());
    run.cancel(None);
    assert_eq!(view(&run)["message"], json!("the run was cancelled"));
}

/// In the order they were done, each once, however often a loop came by.
#[test]
fn completed_nodes_are_named_once() {
    let mut run = Driver::start(document());
    run.succeed("t1@1", json!(1))
        .succeed("t2@1", json!("again"))
        .succeed("t3@1", json!(1))
        .fail("t4@1");
    assert_eq!(view(&run)["completed_nodes"], json!(["a", "b"]));
}

#[test]
fn a_run_that_has_not_ended_has_none_yet() {
    let mut run = Driver::start(document());
    for _ in 0..2 {
        let error = deliverable(&run.run, &[], &Default::default(), 0).expect_err("not ended");
        assert_eq!((error.status, error.code), (409, "run_not_ended"));
        run.pause();
    }
}

/// The run whenever its alarm rings, for as long as it lives; nobody answers it.
fn forced(settings: Settings, document: Value) -> Driver {
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
fn after_every_forced_end_there_is_one_and_a_way_back() {
    let settings = Settings::default();
    let queue = Settings {
        queue: true,
        ..settings
    };
    let nowhere = Settings {
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
        ("nobody claims it", "dispatch_timeout", queue, one(json!({}))),
        ("its executor is gone", "attempt_lost", settings, one(json!({}))),
        ("no way to an executor", "no_route", nowhere, one(json!({}))),
        ("the run's limit", "workflow_timeout", settings, endless.clone()),
        ("nobody decides", "workflow_timeout", settings, {
            let mut document = endless.clone();
            document["on_timeout"] = json!("human_gate");
            document
        }),
    ] {
        let run = forced(settings, document);
        let view = view(&run);
        assert_eq!(
            (&view["kind"], &view["reason"]),
            (&json!("fallback"), &json!(reason)),
            "{what}: {view}"
        );
        let ways = run.ways_back();
        assert!(ways["recommended"].is_string(), "{what}: {ways}");
    }
}
