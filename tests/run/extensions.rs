//! Extensions of a live run: by a duration or until a time, in every state of the run.

use curfew::protocol::task::{Checkpoint, TaskReport};
use curfew::run::{RunStatus, TokenStatus};
use serde_json::{Value, json};

use super::driver::{Driver, failed};
use super::graphs::with;

fn one(node: Value) -> Value {
    json!({
        "timeout_ms": 60_000,
        "nodes": [with(json!({"id": "a", "action_id": "work"}), node), {"id": "b", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}],
    })
}

const TOO_EARLY: &str =
    "rejected invalid_extension the run may take as long as that already; name a later moment";

#[test]
fn a_duration_counts_from_the_deadline() {
    Driver::start(one(json!({}))).at(2_000).extend(10_000).check(
        "
        run running until 71000
        event run_extended by_ms 10000
        announce
    ",
    );
}

#[test]
fn an_operation_extends_a_run_once() {
    let mut run = Driver::start(one(json!({})));
    run.at(2_000).extend_for("op-1", 10_000).check(
        "
        run running until 71000
        event run_extended by_ms 10000
        announce
    ",
    );
    run.reload().at(3_000).extend_for("op-1", 10_000).check("");
    assert_eq!(run.answer, Ok(()));
    run.at(4_000).extend_for("op-2", 10_000).check(
        "
        run running until 81000
        event run_extended by_ms 10000
        announce
    ",
    );
}

#[test]
fn an_absolute_time_becomes_the_deadline() {
    let mut run = Driver::start(one(json!({})));
    run.at(2_000).extend_until(100_000).check(
        "
        run running until 100000
        event run_extended by_ms 39000
        announce
    ",
    );
    assert_eq!(run.run.header.timeout_ms, Some(99_000));
    run.reload()
        .at(99_999)
        .wake("t1@1")
        .assert_status("running a:executing");
    run.at(100_000)
        .wake("t1@1")
        .assert_status("timed_out workflow_timeout/timeout: Workflow execution timed out after 1m39s");
}

#[test]
fn an_earlier_time_is_rejected() {
    let mut run = Driver::start(one(json!({})));
    for moment in [0, 1_500, 60_999, 61_000] {
        run.extend_until(moment).check(TOO_EARLY);
    }
    run.extend(0).check(TOO_EARLY);
    run.extend_until(61_001);
    assert_eq!(run.run.header.timeout_at, Some(61_001));
}

#[test]
fn an_extension_is_at_most_the_maximum_limit() {
    let mut run = Driver::start(one(json!({})));
    let month = 30 * 24 * 3_600_000;
    for too_much in [month + 1, u64::MAX] {
        run.extend(too_much)
            .check("rejected invalid_extension a run can be extended by 720h0m0s at a time");
    }
    run.extend(month);
    assert_eq!(run.run.header.timeout_at, Some(61_000 + month));
}

#[test]
fn an_extension_during_a_pause_does_not_end_the_pause() {
    let mut run = Driver::start(one(json!({})));
    run.at(11_000).pause().at(20_000).extend(10_000).check(
        "
        run paused until 71000 held by person
        event run_extended by_ms 10000
        announce
    ",
    );
    run.reload()
        .at(111_000)
        .resume()
        .assert_status("running a:executing");
    assert_eq!(
        run.run.header.timeout_at,
        Some(171_000),
        "60 s were left, by the run's own clock"
    );
    // An absolute time is interpreted as if the run resumed now.
    let mut run = Driver::start(one(json!({})));
    run.at(11_000).pause().at(21_000).extend_until(100_000).resume();
    assert_eq!(run.run.header.timeout_at, Some(100_000));
    let mut run = Driver::start(one(json!({})));
    run.at(11_000)
        .pause()
        .at(21_000)
        .extend_until(71_000)
        .check(TOO_EARLY);
}

#[test]
fn a_run_without_a_limit_cannot_be_extended() {
    let mut document = one(json!({}));
    document["timeout_ms"] = Value::Null;
    let mut run = Driver::start(document);
    run.extend(10_000).check("rejected no_deadline");
    run.extend_until(1_000_000).check("rejected no_deadline");
}

#[test]
fn an_ended_run_cannot_be_extended() {
    type End = fn(&mut Driver);
    let ends: [(&str, End); 4] = [
        ("completed", |run| {
            run.succeed("t1@1", json!(1)).succeed("t2@1", json!(1));
        }),
        ("failed", |run| {
            run.fail("t1@1");
        }),
        ("cancelled", |run| {
            run.cancel(None);
        }),
        ("timed_out", |run| {
            run.at(61_000).wake("t1@1");
        }),
    ];
    for (status, end) in ends {
        let mut run = Driver::start(one(json!({})));
        end(&mut run);
        run.extend(10_000)
            .check(&format!("rejected cannot_extend {status}"));
    }
}

/// An extension by the API decides the timeout gate.
#[test]
fn an_extension_at_the_gate_decides_the_gate() {
    let mut document = one(json!({}));
    document["on_timeout"] = json!("human_gate");
    let mut run = Driver::start(document.clone());
    run.at(61_000)
        .wake("t1@1")
        .at(100_000)
        .extend_until(130_000)
        .assert_status("running a:executing");
    assert_eq!(run.run.header.timeout_at, Some(130_000));
    let gate = run.run.gates().next().expect("a gate");
    let decision = gate.decision.as_ref().expect("decided");
    assert_eq!(
        (decision.choice.as_str(), &decision.input),
        ("extend", &json!({"by_ms": 30_000}))
    );
    let mut run = Driver::start(document);
    run.at(61_000)
        .wake("t1@1")
        .at(100_000)
        .extend_until(99_999)
        .check(TOO_EARLY);
    run.assert_status("paused a:executing");
}

fn checkpoint() -> Checkpoint {
    Checkpoint {
        next: "second".into(),
        state: json!({"first": 1}),
        output: json!({}),
        wrote_output: false,
        last_result: json!(1),
        steps: Vec::new(),
        events: Vec::new(),
        rounds_before: 0,
    }
}

/// The coordinator ends the call when the run ends. The executor does not, because an extension cannot reach it.
#[test]
fn work_in_flight_continues_past_the_old_deadline() {
    for policy in ["cancel_all", "fail", "human_gate"] {
        let document = with(one(json!({})), json!({"on_timeout": policy}));
        let mut run = Driver::start(document.clone());
        assert_eq!(run.lines_of("dispatch"), ["dispatch t1@1 {\"x\":1}"], "{policy}");
        run.at(2_000).extend(100_000).reload();
        run.at(61_000).wake("t1@1").assert_status("running a:executing");
        run.at(100_000)
            .succeed("t1@1", json!(1))
            .assert_status("running b:executing");
        assert_eq!(run.row("t1").epoch, 1, "{policy}");
        // The executor gets the attempt's own deadline, even beyond the end of the run.
        let mut document = document;
        document["nodes"][0]["timeout_ms"] = json!(300_000);
        let run = Driver::start(document);
        assert_eq!(run.order().deadline_at, Some(301_000), "{policy}");
    }
}

#[test]
fn an_order_carries_the_end_of_the_run() {
    let ends_at = |more: Value| Driver::start(with(one(json!({})), more)).order().run_ends_at;
    assert_eq!(ends_at(json!({})), Some(61_000));
    assert_eq!(ends_at(json!({"on_timeout": "fail"})), Some(61_000));
    // The run waits at a gate first, and still accepts the result there.
    let gate = json!({"on_timeout": "human_gate", "gate": {"timeout_ms": 5_000}});
    assert_eq!(ends_at(gate), Some(66_000));
    assert_eq!(ends_at(json!({"timeout_ms": null})), None);
}

/// The executor did not retry a failed call because the retry was due after the old end of the run.
#[test]
fn a_retry_skipped_because_of_the_old_deadline_is_made_after_all() {
    let gave_up = || TaskReport {
        checkpoint: Some(Box::new(checkpoint())),
        gave_up_before: Some(61_000),
        ..failed("t1@1")
    };
    let mut run = Driver::start(one(json!({})));
    run.at(2_000).extend(100_000).reload();
    run.at(50_000).report(gave_up());
    assert_eq!(run.lines_of("dispatch"), ["dispatch t1@2 {\"x\":1}"]);
    assert_eq!(run.order().checkpoint.as_deref(), Some(&checkpoint()));
    assert_eq!(run.order().run_ends_at, Some(161_000));
    let token = run.row("t1");
    assert_eq!((token.status, token.retry_count), (TokenStatus::Executing, 0));
    assert_eq!(run.kinds(), "run_extended", "nothing failed");

    // The run was not extended.
    let mut run = Driver::start(one(json!({})));
    run.at(50_000).report(gave_up());
    assert_eq!(run.run.header.status, RunStatus::Failed);

    // A pause also moves the end of the run.
    let mut run = Driver::start(one(json!({})));
    run.at(40_000).pause().at(50_000).report(gave_up());
    run.assert_status("paused a:pending").at(60_000).resume();
    run.assert_status("running a:executing");
}

#[test]
fn a_timeout_at_the_attempts_own_deadline_is_accepted() {
    let mut run = Driver::start(one(json!({"timeout_ms": 60_000})));
    run.at(2_000).extend(100_000).at(61_000).time_out("t1@1");
    run.assert_status("failed execution_timeout/timeout: step a timed out: context deadline exceeded");
}

/// A step of the task may time out at any time, independently of the run's limit.
#[test]
fn a_timeout_long_before_the_old_deadline_is_accepted() {
    let mut run = Driver::start(one(json!({"timeout_ms": 300_000})));
    run.at(2_000).extend(100_000).at(30_000).time_out("t1@1");
    run.assert_status("failed execution_timeout/timeout: step a timed out: context deadline exceeded");
}

#[test]
fn without_an_extension_the_end_of_the_run_comes_first() {
    let mut run = Driver::start(one(json!({"timeout_ms": 300_000})));
    run.at(61_500).time_out("t1@1");
    assert_eq!(run.run.header.status, RunStatus::TimedOut);
}

#[test]
fn the_new_deadline_gets_its_own_warning() {
    let mut run = Driver::start(one(json!({})));
    run.at(49_000).wake("t1@1");
    assert_eq!(run.warnings(), [(49_000, json!("workflow"))]);
    run.at(50_000).extend(40_000);
    run.at(80_999).wake("t1@1");
    assert_eq!(run.warnings().len(), 1);
    // 80 % of 100 s from the start.
    run.at(81_000).wake("t1@1");
    assert_eq!(
        run.warnings(),
        [(49_000, json!("workflow")), (81_000, json!("workflow"))]
    );
    run.at(82_000).wake("t1@1");
    assert_eq!(run.warnings().len(), 2);
}

#[test]
fn only_children_that_share_the_budget_are_extended() {
    let call = json!({
        "timeout_ms": 60_000,
        "nodes": [{"id": "p", "workflow_id": "child"}],
    });
    let mut run = Driver::start(with(call.clone(), json!({"timeouts": {"inherit_budget": true}})));
    run.delivered(1).at(11_000).extend(40_000);
    assert_eq!(
        run.lines_of("deliver"),
        ["deliver 2 release run-1~t1 #1 budget 90000"]
    );
    // Children with their own limit get no message.
    let mut run = Driver::start(call);
    run.delivered(1).at(11_000).extend(40_000);
    assert_eq!(run.lines_of("deliver"), [""; 0]);
}
