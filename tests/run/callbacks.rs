//! Async actions: a token waits for a callback that presents its capability.

use curfew::protocol::task::{ReportStatus, TaskReport};
use curfew::run::{CallbackResult, CallbackSecret, Capability, Event, Rejection, RunStatus};
use serde_json::{Value, json};

use super::driver::{Driver, callback_key, succeeded};
use super::graphs::with;

/// `a` is an async action, followed by `b`.
fn async_document(execution: Value, node: Value) -> Value {
    let execution = with(json!({"mode": "async"}), execution);
    json!({
        "nodes": [with(json!({"id": "a", "action_id": "hand-out"}), node), {"id": "b", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}],
        "actions": [
            {"id": "work", "kind": "service_call", "implementation": {"binding": "PEER"}},
            {"id": "hand-out", "kind": "http_request", "execution": execution,
             "implementation": {"url": "https://peer.example", "method": "POST", "body": {"to": "${callback.url}"}},
             "output_schema": {"type": "object", "required": ["n"]}},
        ],
    })
}

fn capability(run: &Driver) -> Capability {
    let text = run
        .order()
        .capability
        .as_ref()
        .expect("an async action has a capability");
    Capability::parse(text).expect("it is one of ours")
}

fn suspended(attempt: &str) -> TaskReport {
    TaskReport {
        status: ReportStatus::Suspended,
        ..succeeded(attempt, json!({"status": 202}))
    }
}

impl Driver {
    fn call_back(&mut self, capability: &Capability, body: Value) -> &mut Driver {
        self.feed(Event::CallbackReceived {
            capability: Box::new(capability.clone()),
            result: Box::new(CallbackResult::read(body)),
        })
    }
}

#[test]
fn a_callback_brings_the_result_once() {
    let mut run = Driver::start(async_document(json!({}), json!({})));
    let key = capability(&run);
    run.at(1_100).report(suspended("t1@1")).check(
        "
        run waiting until 1001000
        token t1 a suspended@1 until 31100
        alarm 25100
        announce
    ",
    );
    run.reload()
        .at(5_000)
        .call_back(&key, json!({"output": {"n": 7}}));
    run.assert_status("running b:executing");
    assert_eq!(run.state()["a"], json!({"n": 7}));
    run.call_back(&key, json!({"output": {"n": 8}}));
    assert!(
        matches!(run.answer, Err(Rejection::StaleAttempt { .. })),
        "{:?}",
        run.answer
    );
}

#[test]
fn a_callback_may_arrive_before_the_report_of_its_call() {
    let mut run = Driver::start(async_document(json!({}), json!({})));
    let key = capability(&run);
    run.call_back(&key, json!({"n": 1}))
        .assert_status("running b:executing");
    run.report(suspended("t1@1"));
    assert!(matches!(run.answer, Err(Rejection::StaleAttempt { .. })));
    run.assert_status("running b:executing");
}

#[test]
fn a_callback_needs_the_capability() {
    let mut run = Driver::start(async_document(json!({}), json!({})));
    let key = capability(&run);
    run.report(suspended("t1@1"));
    let (started_at, mac) = key.proof.split_once('-').expect("the start and the proof");
    let proofs = [
        "",
        "0",
        "-",
        &"0".repeat(32),
        &key.proof[..31],
        mac,
        &format!("{started_at}0-{mac}"),
    ];
    for proof in proofs {
        let guess = Capability {
            proof: proof.to_string(),
            ..key.clone()
        };
        run.call_back(&guess, json!({"n": 1}));
        assert_eq!(run.answer, Err(Rejection::UnknownCallback), "{proof}");
    }
    // Each attempt has its own capability.
    let next = Capability {
        epoch: 2,
        ..key.clone()
    };
    run.call_back(&next, json!({"n": 1}));
    assert_eq!(run.answer, Err(Rejection::UnknownCallback));
    assert_eq!(run.run.header.status, RunStatus::Waiting);
}

/// As the API checks it: with the key and the run's id alone.
#[test]
fn the_capabilities_of_a_run_and_of_its_children_can_be_checked_with_the_key() {
    let run = Driver::start(async_document(json!({}), json!({})));
    assert!(callback_key().proves(&capability(&run)));
    // No action of the parent is async, but one of its child.
    let parent = Driver::start(json!({"nodes": [{"id": "p", "workflow_id": "deferring"}]}));
    let child = Driver::start_child(&parent);
    let issued = capability(&child);
    assert_eq!(
        (issued.run_id.as_str(), callback_key().proves(&issued)),
        ("run-1~t1", true)
    );
    assert_eq!(
        parent
            .run
            .header
            .callback_secret_of("run-1~t1")
            .map(CallbackSecret::Derived),
        child.run.header.callback_secret,
    );
    let plain = Driver::start(json!({"nodes": [{"id": "p", "workflow_id": "child"}]}));
    assert_eq!(plain.run.header.callback_secret, None);
}

/// The id of a deleted run may be used again. Its secret is the same then.
#[test]
fn a_capability_of_an_earlier_run_with_the_same_id_is_unknown() {
    let earlier = capability(&Driver::start(async_document(json!({}), json!({}))));
    let mut run = Driver::start(async_document(json!({}), json!({})));
    run.run.header.started_at += 1;
    run.report(suspended("t1@1")).call_back(&earlier, json!({"n": 1}));
    assert_eq!(run.answer, Err(Rejection::UnknownCallback));
}

/// A start without a secret comes from an earlier build, or from a run that one started.
#[test]
fn a_run_with_a_random_secret_takes_callbacks_and_passes_on_no_secret() {
    let mut run = Driver::start(async_document(json!({}), json!({})));
    run.run.header.callback_secret = Some(CallbackSecret::Random("nobody guesses this".into()));
    run.fail("t1@1").feed(Event::RestartRequested {
        from: None,
        by: None,
        version: None,
    });
    let key = capability(&run);
    assert!(!callback_key().proves(&key));
    run.reload().report(suspended("t2@1"));
    let wrong = Capability {
        epoch: 2,
        ..key.clone()
    };
    run.call_back(&wrong, json!({"n": 1}));
    assert_eq!(run.answer, Err(Rejection::UnknownCallback));
    run.call_back(&key, json!({"n": 1}))
        .assert_status("running b:executing");
    assert_eq!(run.run.header.callback_secret_of("run-1~t1"), None);
}

#[test]
fn the_callback_body_is_validated() {
    let mut run = Driver::start(async_document(json!({}), json!({})));
    let key = capability(&run);
    run.report(suspended("t1@1"))
        .call_back(&key, json!({"output": {"m": 7}}));
    assert!(
        run.status_line().starts_with("failed schema_mismatch"),
        "{}",
        run.status_line()
    );
    let mut run = Driver::start(async_document(json!({}), json!({})));
    let key = capability(&run);
    run.report(suspended("t1@1"))
        .call_back(
            &key,
            json!({"error": {"code": "no_luck", "message": "it did not work"}}),
        )
        .assert_status("failed no_luck/unknown: it did not work");
}

#[test]
fn no_callback_in_time_is_a_timeout_like_any_other() {
    let mut run = Driver::start(async_document(json!({"timeout_ms": 60_000}), json!({})));
    run.at(2_000).report(suspended("t1@1"));
    assert_eq!(
        run.row("t1").deadline.at,
        Some(62_000),
        "the action's limit, where it is the longer one"
    );
    run.at(62_000).wake("").assert_status(
        "failed tool_timeout/timeout: step a timed out: context deadline exceeded (no callback came)",
    );
    let record = &run.records()[0];
    assert_eq!(
        record.error.as_ref().map(|error| error.code.as_str()),
        Some("tool_timeout")
    );
    assert_eq!(run.records().len(), 1);
}

#[test]
fn the_limit_of_a_node_also_applies_to_its_callback() {
    for (limit, waits_until) in [(10_000, 11_000), (90_000, 91_000)] {
        let mut run = Driver::start(async_document(
            json!({"timeout_ms": 60_000}),
            json!({"timeout_ms": limit}),
        ));
        run.at(2_000).report(suspended("t1@1"));
        assert_eq!(run.row("t1").deadline.at, Some(waits_until));
        run.at(waits_until - 1)
            .wake("")
            .assert_status("waiting a:suspended");
        run.at(waits_until).wake("");
        assert_eq!(run.row("t1").error.map(|it| it.code), Some("tool_timeout".into()));
    }
    // An explicit `null` means no limit.
    let mut run = Driver::start(async_document(json!({}), json!({"timeout_ms": null})));
    run.at(2_000).report(suspended("t1@1"));
    assert_eq!(run.row("t1").deadline.at, None);
}

/// Without enough samples an adaptive limit is none, but a callback that never comes must not hold up the run.
#[test]
fn an_adaptive_limit_without_samples_leaves_the_deadline_of_callbacks() {
    for (execution, waits_until) in [(json!({}), 32_000), (json!({"timeout": "60s"}), 62_000)] {
        let mut run = Driver::start(async_document(execution, json!({"timeout": "adaptive"})));
        run.at(2_000).report(suspended("t1@1"));
        assert_eq!(run.row("t1").deadline.at, Some(waits_until));
        run.at(waits_until).wake("");
        assert_eq!(run.row("t1").error.map(|it| it.code), Some("tool_timeout".into()));
    }
}

#[test]
fn a_retry_after_a_timeout_has_a_new_capability() {
    let mut run = Driver::start(async_document(json!({}), json!({"on_timeout": "retry"})));
    let first = capability(&run);
    run.at(2_000).report(suspended("t1@1"));
    run.at(32_000).wake("");
    run.at(33_000).wake("").assert_status("running a:executing");
    let second = capability(&run);
    assert_ne!(first, second);
    run.call_back(&first, json!({"n": 1}));
    assert!(matches!(run.answer, Err(Rejection::StaleAttempt { .. })));
    run.call_back(&second, json!({"n": 1}))
        .assert_status("running b:executing");
}

/// The executor cannot wait for a callback again, so the action's policy is for the attempt.
#[test]
fn a_missing_callback_is_retried_by_the_actions_policy() {
    let policy = json!({"max_attempts": 3});
    for execution in [
        json!({"on_timeout": "retry"}),
        json!({"on_timeout": "retry", "timeout": "20s", "retry_policy": policy}),
    ] {
        let mut run = Driver::start(async_document(execution, json!({})));
        run.at(2_000).report(suspended("t1@1"));
        run.at(32_000).wake("").assert_status("running a:pending");
        run.at(33_000).wake("").assert_status("running a:executing");
    }
}

#[test]
fn a_pause_stops_the_callback_deadline_and_accepts_the_result() {
    let mut run = Driver::start(async_document(json!({}), json!({})));
    let key = capability(&run);
    run.at(2_000).report(suspended("t1@1"));
    run.at(3_000).pause();
    run.at(100_000)
        .call_back(&key, json!({"n": 1}))
        .assert_status("paused b:pending");
    run.at(101_000).resume().assert_status("running b:executing");
}

#[test]
fn malformed_capabilities_are_rejected() {
    for text in [
        "",
        "run~t1~1",
        "run~t1~one~x",
        "run~t1~1~x~y",
        "plain",
        "~~~~",
        "run~t1~x~1~y",
        "run~~t1~1~y",
        "..~t1~1~y",
        "a b~t1~1~y",
    ] {
        assert_eq!(Capability::parse(text), None, "{text}");
    }
    let long = format!("{}~t1~1~x", "r".repeat(600));
    assert_eq!(Capability::parse(&long), None);
    let one = Capability::parse("run.1~t7~2~abc").expect("as we write them");
    assert_eq!(
        (one.text(), one.run_id),
        ("run.1~t7~2~abc".into(), "run.1".into())
    );
    // The id of a child contains the same character.
    let of_child = Capability::parse("run.1~t3~2~t9~t7~2~abc").expect("as we write them");
    let parts = (
        of_child.run_id.as_str(),
        of_child.token_id.as_str(),
        of_child.epoch,
    );
    assert_eq!(parts, ("run.1~t3~2~t9", "t7", 2));
    assert_eq!(of_child.text(), "run.1~t3~2~t9~t7~2~abc");
}

#[test]
fn a_failure_from_a_callback_may_escalate() {
    let node = json!({"escalate_on": ["unknown", "timeout", "permanent"]});
    let mut run = Driver::start(async_document(json!({}), node));
    let first = capability(&run);
    run.at(2_000).report(suspended("t1@1"));
    run.call_back(
        &first,
        json!({"message_type": "timeout", "status": "timeout", "error": {"code": "tool_timeout"}}),
    );
    run.at(32_000).wake("").assert_status("waiting a:awaiting_human");
    run.call_back(&first, json!({"n": 1}));
    assert!(run.answer.is_err(), "it is not waited for any more");
    run.reload()
        .decide("g1.1", "retry")
        .assert_status("running a:executing");
    let second = capability(&run);
    run.report(suspended("t1@2")).call_back(&second, json!({"n": 1}));
    run.assert_status("running b:executing");
}
