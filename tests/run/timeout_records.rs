//! The record of each timeout, with its scope, its lateness and the action taken; and the sources of limits that no document
//! sets.

use std::collections::BTreeMap;

use curfew::base::failure::{Failure, FailureClass};
use curfew::definition::snapshot::Latency;
use curfew::protocol::task::{Artifact, StepReport, StepStatus, TaskReport};
use curfew::run::{Command, LimitSource, TimeoutRecord};
use serde_json::{Value, json};

use super::driver::{Driver, SETTINGS, complete_document, create_run, store_document, timed_out};
use super::graphs::{three, with};

fn one(node: Value) -> Value {
    json!({"nodes": [with(json!({"id": "a"}), node), {"id": "b", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}]})
}

/// The only record so far: scope, limit, elapsed, lateness, action.
#[track_caller]
fn only(run: &Driver) -> (TimeoutRecord, Value) {
    let records = run.records();
    assert_eq!(records.len(), 1, "{records:?}");
    let record = records[0].clone();
    let event = &record.timeout_event;
    let short = json!([
        event.scope,
        event.timeout_ms,
        event.elapsed_ms,
        event.lateness_ms,
        record.final_action
    ]);
    (record, short)
}

#[test]
fn an_attempt_that_times_out_and_fails() {
    let mut run = Driver::start(one(json!({"action_id": "work", "timeout_ms": 4_000})));
    run.at(5_700).wake("t1@1");
    let (record, short) = only(&run);
    assert_eq!(short, json!(["tool", 4_000, 4_700, 700, "fail"]));
    assert_eq!(
        json!(record.last_known_state),
        json!({"node_id": "a", "token_id": "t1", "phase": "executing",
            "progress": {"steps_completed": 0, "steps_total": 1}})
    );
    let event = &run.events()[0];
    assert_eq!(
        json!(event.fields),
        json!({"token_id": "t1", "workflow_run_id": "run-1", "node_id": "a", "timeout_type": "execution",
            "timeout_duration_ms": 4_000, "policy_applied": "fail"})
    );
}

#[test]
fn an_attempt_that_times_out_and_is_retried() {
    let node = json!({"action_id": "work", "timeout_ms": 4_000, "on_timeout": "retry", "max_retries": 1});
    let mut run = Driver::start(one(node));
    run.at(5_000)
        .time_out("t1@1")
        .at(6_000)
        .wake("")
        .at(10_000)
        .time_out("t1@2");
    let records = run.records();
    let short: Vec<Value> = records
        .iter()
        .map(|it| json!([it.timeout_event.elapsed_ms, it.retry_count, it.final_action]))
        .collect();
    assert_eq!(short, [json!([4_000, 0, "retry"]), json!([4_000, 1, "fail"])]);
    assert_eq!(
        run.kinds(),
        "token_timed_out token_retried token_timed_out run_failed"
    );
}

/// The report of the executor is stored only in the record.
#[test]
fn partial_artifacts_and_steps_of_the_report() {
    let step = |reference: &str, status: StepStatus| StepReport {
        reference: reference.into(),
        status,
        attempts: 1,
        duration_ms: 10,
        retries: Vec::new(),
        started_at: None,
        span_id: None,
        gen_ai: None,
    };
    let artifact = Artifact {
        name: "fetch".into(),
        complete: false,
        bytes: 6,
        text: "half a".into(),
    };
    let mut run = Driver::start(json!({
        "nodes": [{"id": "a", "task_id": "task", "timeout_ms": 4_000}],
        "tasks": [{"id": "task", "steps": [{"ref": "plan", "action_id": "work"}, {"ref": "fetch", "action_id": "work"}]}],
    }));
    let mut error = Failure::new("tool_timeout", FailureClass::Timeout, "too slow");
    error.step_ref = Some("fetch".into());
    run.at(5_000).report(TaskReport {
        error: Some(error),
        partial: vec![artifact.clone()],
        steps: vec![
            step("plan", StepStatus::Completed),
            step("fetch", StepStatus::TimedOut),
        ],
        ..timed_out("t1@1")
    });
    let (record, short) = only(&run);
    assert_eq!(
        short,
        json!(["step", 4_000, 4_000, 0, "fail"]),
        "of several actions none is the one"
    );
    assert_eq!(record.partial_artifacts, [artifact.into()]);
    let message = "step a timed out: context deadline exceeded (in step fetch of node a)";
    run.assert_status(&format!("failed execution_timeout/timeout: {message}"));
    assert_eq!(record.last_known_state.step_ref.as_deref(), Some("fetch"));
    assert_eq!(
        record.last_known_state.progress,
        json!({"steps_completed": 1, "steps_total": 2})
    );
}

/// A pause moves the deadline and is not part of the elapsed time.
#[test]
fn a_pause_does_not_count() {
    let mut run = Driver::start(one(json!({"action_id": "work", "timeout_ms": 4_000})));
    run.at(2_000)
        .pause()
        .at(102_000)
        .resume()
        .at(105_500)
        .wake("t1@1");
    assert_eq!(only(&run).1, json!(["tool", 4_000, 4_500, 500, "fail"]));
    let mut run = Driver::start(three(json!({"timeout_ms": 4_000})));
    run.succeed("t2@1", json!(1))
        .at(2_000)
        .pause()
        .at(102_000)
        .resume()
        .at(105_000)
        .wake("t3@1 t4@1");
    assert_eq!(only(&run).1, json!(["sync", 4_000, 4_000, 0, "fail"]));
}

#[test]
fn a_join_that_proceeds_and_one_that_fails() {
    let mut run = Driver::start(three(
        json!({"timeout_ms": 5_000, "on_timeout": "proceed_with_available"}),
    ));
    run.at(2_000)
        .succeed("t2@1", json!(1))
        .at(7_100)
        .wake("t3@1 t4@1");
    let (record, short) = only(&run);
    assert_eq!(short, json!(["sync", 5_000, 5_100, 100, "proceed"]));
    assert_eq!(record.last_known_state.node_id.as_deref(), Some("z"));
    assert_eq!(
        record.last_known_state.progress["tokens"],
        json!({"completed": 1, "executing": 2, "waiting_for_siblings": 1})
    );
    let mut run = Driver::start(three(json!({"timeout_ms": 5_000})));
    run.at(2_000)
        .succeed("t2@1", json!(1))
        .at(7_000)
        .wake("t3@1 t4@1");
    assert_eq!(only(&run).1, json!(["sync", 5_000, 5_000, 0, "fail"]));
}

#[test]
fn a_gate_under_each_of_its_policies() {
    for (policy, action) in [
        ("fail", "fail"),
        ("approve", "proceed"),
        ("reject", "proceed"),
        ("cancel_all", "cancel"),
    ] {
        let mut run = Driver::start(one(json!({"gate": {"timeout_ms": 5_000, "on_timeout": policy}})));
        run.at(6_000).wake("");
        let (record, short) = only(&run);
        assert_eq!(short, json!(["gate", 5_000, 5_000, 0, action]), "{policy}");
        assert_eq!(record.last_known_state.phase, "awaiting_human");
    }
}

#[test]
fn a_wait_for_a_signal_under_both_policies() {
    for (policy, action) in [("fail", "fail"), ("continue", "proceed")] {
        let wait = json!({"wait": {"signal": "go", "timeout_ms": 5_000, "on_timeout": policy}});
        let mut run = Driver::start(one(wait));
        run.at(6_000).wake("");
        assert_eq!(only(&run).1, json!(["step", 5_000, 5_000, 0, action]), "{policy}");
    }
}

#[test]
fn the_run_under_each_of_its_policies() {
    for (policy, action) in [
        ("cancel_all", "cancel"),
        ("fail", "fail"),
        ("human_gate", "escalate"),
    ] {
        let document = with(
            one(json!({"action_id": "work"})),
            json!({"timeout_ms": 4_000, "on_timeout": policy}),
        );
        let mut run = Driver::start(document);
        run.at(5_050).wake("t1@1");
        let (record, short) = only(&run);
        assert_eq!(short, json!(["flow", 4_000, 4_050, 50, action]), "{policy}");
        assert_eq!(record.last_known_state.phase, "running");
        assert_eq!(
            record.last_known_state.progress,
            json!({"tokens": {"executing": 1}, "live": ["t1"], "nodes": {"a": 1},
                "at_work": [{"token_id": "t1", "node_id": "a", "status": "executing"}]})
        );
        let fields = &run.events()[0].fields;
        assert_eq!(fields["timeout_type"], json!("workflow"));
        assert_eq!(fields["timeout_duration_ms"], json!(4_000));
    }
}

#[test]
fn an_order_names_the_source_of_its_limit() {
    let run = Driver::start(one(json!({"action_id": "work", "timeout_ms": 4_000})));
    assert_eq!(run.order().limit, Some((4_000, LimitSource::Node)));
    let run = Driver::start(one(json!({"action_id": "work"})));
    assert_eq!(run.order().limit, None);
}

#[test]
fn the_presets_own_limit_of_a_run() {
    let mut document = one(json!({"action_id": "work"}));
    document["timeout_ms"] = Value::Null;
    for (preset, millis) in [("standard", 3_600_000), ("service", 30_000), ("flow", 1_800_000)] {
        let mut document = complete_document(document.clone());
        document.as_object_mut().expect("an object").remove("timeout_ms");
        document["timeouts"] = json!({"preset": preset});
        let (run, _) = create_run(1_000, SETTINGS, store_document(&document), json!({}));
        assert_eq!(run.header.timeout_ms, Some(millis), "{preset}");
        assert_eq!(run.limit_source(), "preset");
    }
}

fn adaptive(latency: Option<Latency>, more: Value) -> Driver {
    let document = with(one(json!({"action_id": "work", "timeout": "adaptive"})), more);
    let mut stored = store_document(&complete_document(document));
    stored.latencies = latency
        .map(|it| ("a".to_string(), it))
        .into_iter()
        .collect::<BTreeMap<_, _>>();
    let (run, decision) = create_run(1_000, SETTINGS, stored, json!({}));
    Driver::of(run, decision, SETTINGS)
}

#[test]
fn an_adaptive_limit_has_its_reason_on_the_token() {
    let run = adaptive(
        Some(Latency {
            samples: 20,
            p99_ms: 2_000,
        }),
        json!({}),
    );
    assert_eq!(run.order().limit, Some((6_000, LimitSource::Adaptive)));
    let token = run.row("t1");
    assert_eq!(token.deadline.at, Some(7_000));
    assert_eq!(
        token.deadline.reason.as_deref(),
        Some("adaptive: 3 x p99 2s of 20 samples")
    );
    let run = adaptive(
        Some(Latency {
            samples: 19,
            p99_ms: 2_000,
        }),
        json!({}),
    );
    assert_eq!(run.order().limit, None);
    assert_eq!(
        run.row("t1").deadline.reason.as_deref(),
        Some("adaptive: 19 of 20 samples, so no limit")
    );
    let flow = json!({"timeouts": {"preset": "flow"}, "timeout": "30m"});
    let run = adaptive(
        Some(Latency {
            samples: 50,
            p99_ms: 400_000,
        }),
        flow,
    );
    assert_eq!(
        run.order().limit,
        Some((600_000, LimitSource::Adaptive)),
        "cut to the hard limit"
    );
}

/// Pauses do not count: otherwise the learnt limit would grow with every pause.
#[test]
fn the_latency_of_an_adaptive_node_excludes_pauses() {
    let learnt = || Latency {
        samples: 20,
        p99_ms: 2_000,
    };
    // With a limit and without one yet.
    for latency in [Some(learnt()), None] {
        let mut run = adaptive(latency, json!({}));
        run.at(2_000).pause().at(500_000).resume();
        run.at(500_500).pause().reload().at(600_000).resume();
        run.at(601_000).succeed("t1@1", json!(1));
        assert_eq!(run.lines_of("latency"), ["latency a t1 2500"]);
        // A result during a pause counts as of the beginning of the pause.
        let mut run = adaptive(latency, json!({}));
        run.at(2_000).pause().at(500_000).succeed("t1@1", json!(1));
        assert_eq!(run.lines_of("latency"), ["latency a t1 1000"]);
    }
}

/// Only latencies of adaptive nodes are published, and only of successes: a timeout does not show how long the work takes.
#[test]
fn the_latency_of_an_adaptive_node_is_published() {
    let mut run = adaptive(
        Some(Latency {
            samples: 20,
            p99_ms: 2_000,
        }),
        json!({}),
    );
    run.at(3_500).succeed("t1@1", json!(1));
    assert_eq!(run.lines_of("latency"), ["latency a t1 2500"]);
    run.succeed("t2@1", json!(1));
    assert_eq!(run.lines_of("latency"), [""; 0], "b has a limit of its own");
    let mut run = adaptive(
        Some(Latency {
            samples: 20,
            p99_ms: 2_000,
        }),
        json!({}),
    );
    run.at(7_500).wake("t1@1");
    let announced = run
        .decision
        .commands()
        .iter()
        .any(|command| matches!(command, Command::PublishLatency { .. }));
    assert!(!announced);
}

#[test]
fn every_late_result_is_logged() {
    let mut run = Driver::start(one(json!({"action_id": "work"})));
    run.succeed("t1@9", json!(1)).check(
        "
        rejected stale_attempt t1@9
        event late_result_discarded t1
    ",
    );
    let event = &run.events()[0];
    assert_eq!(
        json!(event.fields),
        json!({"token_id": "t1", "epoch": 9, "status": "completed"})
    );
    run.fail("t1@1").time_out("t1@1");
    assert_eq!(
        run.kinds(),
        "late_result_discarded run_failed late_result_discarded"
    );
}
