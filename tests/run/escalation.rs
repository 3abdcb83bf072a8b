//! Escalation of failed tokens to a person: what opens the gate, its decisions, and its deadlines, pauses and withdrawal.

use curfew::base::failure::{Failure, FailureClass};
use curfew::base::time::DAY;
use curfew::protocol::task::{Checkpoint, ReportStatus, TaskReport};
use curfew::run::{Event, RetryMode, RunStatus};
use serde_json::{Value, json};

use super::driver::{Driver, SETTINGS, failed, parse_attempt};
use super::graphs::with;

const WEEK: u64 = 7 * DAY;

/// `a` leads to `b`. Failures of `classes` at `a` escalate for a minute.
fn escalating(classes: &[&str], more: Value) -> Value {
    let document = json!({
        "nodes": [{"id": "a", "action_id": "work", "escalate_on": classes}, {"id": "b", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}],
        "gate": {"timeout_ms": 60_000},
    });
    with(document, more)
}

fn failing(attempt: &str, class: FailureClass) -> TaskReport {
    TaskReport {
        error: Some(Failure::new("peer_failed", class, "no luck")),
        ..failed(attempt)
    }
}

const PROMPT: &str = r#"{"error":{"class":"server_error","code":"peer_failed","message":"status 500","node_id":"a","token_id":"t1"},"text":"Node a failed: status 500. Retry it, fail it or skip it?"}"#;

/// A run whose first attempt failed and that waits at its gate.
fn escalated(more: Value) -> Driver {
    let mut run = Driver::start(escalating(&["server_error"], more));
    run.at(2_000)
        .fail("t1@1")
        .assert_status("waiting a:awaiting_human");
    run
}

#[test]
fn a_failure_of_a_listed_class_opens_a_gate_with_the_error_in_its_prompt() {
    let mut run = Driver::start(escalating(&["server_error"], json!({})));
    run.at(2_000).fail("t1@1").check(&format!(
        "
        run waiting 999000 left
        token t1 a awaiting_human@1 until 62000 (escalated)
        gate g1.1 open {PROMPT} retry|fail|skip until 62000
        alarm 50000
        announce
        announce g1.1 open
    "
    ));
    assert_eq!(run.run.gates().count(), 1);
}

#[test]
fn other_classes_fail_without_a_gate() {
    for class in [FailureClass::BadRequest, FailureClass::Timeout] {
        let mut run = Driver::start(escalating(&["server_error", "auth"], json!({})));
        run.report(failing("t1@1", class));
        assert!(
            run.status_line().starts_with("failed peer_failed/"),
            "{}",
            run.status_line()
        );
        assert_eq!(run.lines_of("gate"), [""; 0]);
    }
}

#[test]
fn retry_begins_a_new_attempt_and_its_failure_opens_a_new_gate() {
    let mut run = escalated(json!({}));
    run.at(3_000).decide("g1.1", "retry").check(&format!(
        "
        run running until 1002000
        token t1 a executing@2 watch 33000 (retried_by_person)
        gate g1.1 decided {PROMPT} retry|fail|skip until 62000 retry by ada at 3000
        alarm 33000
        dispatch t1@2 {{\"x\":1}}
        announce
        announce g1.1 decided
    "
    ));
    run.reload().at(4_000).fail("t1@2");
    run.assert_status("waiting a:awaiting_human");
    assert_eq!(run.lines_of("announce"), ["announce", "announce g1.2 open"]);
    run.decide("g1.1", "skip");
    assert!(run.answer.is_err(), "the first gate is closed");
    run.decide("g1.2", "retry").succeed("t1@3", json!(7));
    run.assert_status("running b:executing");
    assert_eq!(run.state()["a"], json!(7));
}

#[test]
fn skip_completes_the_node_without_a_result() {
    let mut run = escalated(json!({}));
    run.decide("g1.1", "skip").assert_status("running b:executing");
    assert_eq!(run.state()["a"], Value::Null);
    assert_eq!(
        run.lines_of("token")[0],
        "token t1 a completed@1 null keeps state.a"
    );
}

#[test]
fn skip_fails_if_the_output_mapping_needs_a_result() {
    let more = json!({"nodes": [{"id": "a", "action_id": "work", "escalate_on": ["server_error", "validation"],
        "output_mapping": {"state.n": "${result.n}"}}], "transitions": []});
    let mut run = escalated(more);
    run.decide("g1.1", "skip")
        .assert_status("waiting a:awaiting_human");
    run.reload().decide("g1.2", "fail");
    assert!(
        run.status_line()
            .starts_with("failed expression_failed/validation"),
        "{}",
        run.status_line()
    );
}

#[test]
fn fail_ends_the_token_as_without_escalation() {
    let mut run = escalated(json!({}));
    run.decide("g1.1", "fail")
        .assert_status("failed peer_failed/server_error: status 500");
    let route = json!({"transitions": [{"from_node_id": "a", "to_node_id": "b", "on": "failure",
        "condition": "error.code == \"peer_failed\""}]});
    let mut run = escalated(route);
    run.reload()
        .decide("g1.1", "fail")
        .assert_status("running b:executing");
}

#[test]
fn only_the_gates_choices_are_accepted() {
    let mut run = escalated(json!({}));
    run.decide("g1.1", "approve");
    run.check("rejected invalid_decision /choice: \"approve\" is none of retry, fail, skip");
    run.decide("g1", "retry").check("rejected unknown_gate");
}

#[test]
fn an_undecided_gate_fails_the_token() {
    let mut run = escalated(json!({}));
    run.at(50_000).wake("");
    assert_eq!(run.lines_of("event"), ["event deadline_warning t1 a gate"]);
    run.reload().at(62_000).wake("");
    run.assert_status("failed peer_failed/server_error: status 500");
    assert_eq!(
        run.lines_of("gate"),
        [format!(
            "gate g1.1 timed_out {PROMPT} retry|fail|skip until 62000"
        )]
    );
    assert_eq!(
        run.lines_of("event")[0],
        "event gate_timed_out t1 a {gate late 0 fail}"
    );
    run.decide("g1.1", "retry");
    assert!(run.answer.is_err(), "time has decided");
}

#[test]
fn the_default_gate_timeout_is_a_week() {
    let run = escalated(json!({"gate": null}));
    let gate = run.run.gates().next().expect("it is open");
    assert_eq!(gate.timeout_at, Some(2_000 + WEEK));
}

#[test]
fn a_timeout_escalates_after_its_retries_and_keeps_its_timeout_transitions() {
    let node = json!({"id": "a", "action_id": "work", "escalate_on": ["timeout"], "timeout_ms": 5_000,
        "on_timeout": "retry", "max_retries": 1});
    let routes = json!([{"from_node_id": "a", "to_node_id": "b", "on": "timeout"}]);
    let mut run = Driver::start(escalating(
        &[],
        json!({"nodes": [node, {"id": "b", "action_id": "work"}],
        "transitions": routes}),
    ));
    run.at(6_000).time_out("t1@1").assert_status("running a:pending");
    run.at(7_000).wake("").assert_status("running a:executing");
    run.at(12_500)
        .wake("t1@2")
        .assert_status("waiting a:awaiting_human");
    assert_eq!(run.lines_of("abort"), ["abort t1@2"]);
    run.reload()
        .decide("g1.1", "fail")
        .assert_status("running b:executing");
}

#[test]
fn retry_resets_the_count_of_lost_attempts() {
    let mut run = Driver::start(escalating(&["network"], json!({})));
    for epoch in 1..=6 {
        run.lose(&format!("t1@{epoch}"));
        if let Some(at) = run.run.next_deadline().filter(|_| epoch < 6) {
            run.at(at).wake("");
        }
    }
    run.assert_status("waiting a:awaiting_human")
        .decide("g1.1", "retry");
    run.assert_status("running a:executing").lose("t1@7");
    run.assert_status("running a:executing");
}

#[test]
fn retry_continues_from_the_checkpoint() {
    let mut run = Driver::start(escalating(&["server_error"], json!({})));
    let checkpoint = Checkpoint {
        next: "second".into(),
        state: json!({}),
        output: json!({}),
        wrote_output: false,
        last_result: json!(1),
        steps: Vec::new(),
        events: Vec::new(),
        rounds_before: 0,
    };
    run.report(TaskReport {
        checkpoint: Some(Box::new(checkpoint)),
        ..failed("t1@1")
    });
    run.reload().decide("g1.1", "retry");
    let order = run.decision.commands().iter().find_map(|command| match command {
        curfew::run::Command::DispatchTask(order) => Some(order.clone()),
        _other => None,
    });
    let order = order.expect("another attempt is made");
    assert_eq!(order.checkpoint.map(|it| it.next), Some("second".to_string()));
}

#[test]
fn a_late_result_does_not_decide_the_gate() {
    let mut run = escalated(json!({}));
    run.succeed("t1@1", json!(1));
    assert!(run.answer.is_err());
    run.assert_status("waiting a:awaiting_human");
}

#[test]
fn a_failed_child_escalates_and_is_retried_with_a_new_child() {
    let node = json!({"id": "a", "workflow_id": "child", "escalate_on": ["server_error"]});
    let mut run = Driver::start(escalating(&[], json!({"nodes": [node], "transitions": []})));
    run.child_ended("t1@1", RunStatus::Failed, None)
        .assert_status("waiting a:awaiting_human");
    run.reload()
        .decide("g1.1", "retry")
        .assert_status("running a:waiting_for_subworkflow");
    assert!(
        run.lines_of("deliver")[0].contains("start run-1~t1~2"),
        "{:?}",
        run.lines_of("deliver")
    );
    run.child_ended("t1@2", RunStatus::Completed, Some(json!(3)));
    assert_eq!(run.state()["a"], json!(3));
}

#[test]
fn a_pause_moves_the_gates_deadline_and_defers_the_attempt() {
    let mut run = escalated(json!({}));
    run.at(10_000).pause();
    run.at(15_000).resume();
    assert_eq!(
        run.run.gates().next().and_then(|gate| gate.timeout_at),
        Some(67_000)
    );
    run.at(20_000)
        .pause()
        .decide("g1.1", "retry")
        .assert_status("paused a:pending");
    run.reload()
        .at(21_000)
        .resume()
        .assert_status("running a:executing");
}

#[test]
fn a_failure_during_a_pause_keeps_the_full_gate_timeout() {
    let mut run = Driver::start(escalating(&["server_error"], json!({})));
    run.at(2_000).pause();
    run.at(9_000)
        .fail("t1@1")
        .assert_status("paused a:awaiting_human");
    run.reload()
        .at(12_000)
        .resume()
        .assert_status("waiting a:awaiting_human");
    assert_eq!(
        run.run.gates().next().and_then(|gate| gate.timeout_at),
        Some(72_000)
    );
    run.at(71_999).wake("").assert_status("waiting a:awaiting_human");
    run.at(72_000)
        .wake("")
        .assert_status("failed peer_failed/server_error: status 500");
}

#[test]
fn the_end_of_the_run_withdraws_the_gate() {
    let mut run = escalated(json!({}));
    run.cancel(None);
    assert_eq!(
        run.lines_of("gate"),
        [format!(
            "gate g1.1 cancelled {PROMPT} retry|fail|skip until 62000"
        )]
    );
    run.decide("g1.1", "retry");
    assert!(run.answer.is_err());
    let mut run = escalated(json!({}));
    run.reload().feed(Event::RestartRequested {
        from: None,
        by: None,
        version: None,
    });
    run.assert_status("running a:executing");
    assert!(
        run.run
            .gates()
            .all(|gate| gate.status == curfew::run::GateStatus::Cancelled)
    );
}

#[test]
fn a_run_that_ended_at_the_gate_resumes_at_the_node() {
    let mut run = escalated(json!({"timeout_ms": 10_000, "on_timeout": "cancel_all", "clock": "runs"}));
    run.at(11_000).wake("");
    assert_eq!(run.run.header.status, RunStatus::TimedOut);
    run.at(12_000).retry(RetryMode::RetryStep);
    run.assert_status("running a:executing");
    run.fail("t2@1").assert_status("waiting a:awaiting_human");
    run.reload()
        .decide("g2.1", "skip")
        .assert_status("running b:executing");
}

#[test]
fn in_a_branch_the_join_waits_for_the_decision() {
    let mut document = super::graphs::three(json!({}));
    document["nodes"][1]["escalate_on"] = json!(["server_error"]);
    let mut run = Driver::start(document);
    run.succeed("t2@1", json!(1))
        .fail("t3@1")
        .succeed("t4@1", json!(3));
    run.assert_status("waiting b:awaiting_human 2xb:waiting_for_siblings");
    run.reload()
        .decide("g3.1", "skip")
        .assert_status("running z:executing");
    assert_eq!(run.state()["all"], json!([1, null, 3]));
}

#[test]
fn preset_flow_escalates_failures_that_a_person_can_fix() {
    for (class, asked) in [
        (FailureClass::Auth, true),
        (FailureClass::Permanent, true),
        (FailureClass::RateLimited, true),
        (FailureClass::BreakerOpen, true),
        (FailureClass::ServerError, false),
        (FailureClass::Validation, false),
    ] {
        let document = json!({"nodes": [{"id": "a", "action_id": "work"}], "timeouts": {"preset": "flow"}});
        let mut run = Driver::start(document.clone());
        run.report(failing("t1@1", class));
        assert_eq!(run.lines_of("gate").len(), usize::from(asked), "{class:?}");
        let mut off = document;
        off["nodes"][0]["escalate_on"] = json!([]);
        let mut run = Driver::start(off);
        run.report(failing("t1@1", class));
        assert_eq!(run.lines_of("gate").len(), 0, "{class:?}");
    }
}

#[test]
fn an_unclaimed_task_escalates() {
    let settings = curfew::run::Settings {
        queue: true,
        ..SETTINGS
    };
    let mut run = Driver::start_with(
        settings,
        with(
            escalating(&["timeout"], json!({})),
            json!({"timeout_ms": 840_000}),
        ),
        json!({}),
    );
    run.assert_status("running a:dispatched");
    while run.status_line() == "running a:dispatched" {
        let due = run.run.next_deadline().expect("it is rung for again");
        run.at(due).wake("");
    }
    run.assert_status("waiting a:awaiting_human")
        .decide("g1.1", "retry");
    run.assert_status("running a:dispatched");
    let (token, epoch) = parse_attempt("t1@4");
    run.feed(Event::Claimed {
        token: token.to_string(),
        epoch,
        claimant: None,
    });
    run.assert_status("running a:executing");
    let report = TaskReport {
        status: ReportStatus::Completed,
        output: Some(json!(1)),
        error: None,
        ..failed("t1@4")
    };
    run.report(report).assert_status("running b:dispatched");
}
