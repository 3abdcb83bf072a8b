//! Who started a run, who controls it and who decides its gates.

use curfew::run::{Event, GateDecision, RetryMode};
use serde_json::{Value, json};

use super::driver::{Driver, SETTINGS, START, Start, complete_document, store_document};

fn working() -> Value {
    json!({"nodes": [{"id": "a", "action_id": "work"}]})
}

fn started_by(name: Option<&str>, document: Value) -> Driver {
    let start = Start {
        id: "run-1".into(),
        stored: store_document(&complete_document(document)),
        input: json!({}),
        request: Default::default(),
        parent: None,
        triggered_by: None,
        started_by: name.map(str::to_string),
    };
    let (run, decision) = start.run(START, SETTINGS);
    Driver::of(run, decision, SETTINGS)
}

fn decide(run: &mut Driver, gate: &str, by: Option<&str>) {
    run.feed(Event::GateDecided {
        gate: gate.into(),
        decision: GateDecision {
            choice: "approve".into(),
            input: Value::Null,
            comment: None,
            by: by.map(str::to_string),
            at: 0,
        },
    });
}

#[test]
fn the_header_keeps_the_name_of_the_starter() {
    let mut run = started_by(Some("ada"), working());
    run.check(
        "
        snapshot
        input {}
        run running until 1001000 started by ada
        token t1 a executing@1 watch 31000
        alarm 31000
        dispatch t1@1 {}
        announce
    ",
    );
    run.reload();
    assert_eq!(run.run.header.started_by.as_deref(), Some("ada"));
    // A restart is the same run.
    run.named("bob").restart();
    assert_eq!(run.run.header.started_by.as_deref(), Some("ada"));
}

#[test]
fn each_control_names_its_caller() {
    let mut run = Driver::start(json!({"nodes": [{"id": "a", "action_id": "work"}], "on_timeout": "fail"}));
    run.named("ada").pause();
    assert_eq!(run.lines_of("event"), ["event run_paused person by ada"]);
    run.named("bob").resume();
    assert_eq!(run.lines_of("event"), ["event run_resumed person by bob"]);
    run.named("cyd").extend(5_000);
    assert_eq!(run.lines_of("event"), ["event run_extended by_ms 5000 by cyd"]);
    run.named("dan").restart();
    assert_eq!(run.lines_of("event"), ["event run_restarted by dan"]);
    run.fail("t2@1").named("eve").retry(RetryMode::RetryStep);
    assert_eq!(
        run.lines_of("event"),
        ["event run_retried retry_step by eve"],
        "event is the failure"
    );
    run.named("fay").cancel(None);
    assert_eq!(run.lines_of("event"), ["event run_cancelled by fay"]);
}

#[test]
fn without_a_caller_no_event_has_a_name() {
    let mut run = Driver::start(working());
    run.pause();
    assert_eq!(run.lines_of("event"), ["event run_paused person"]);
    run.resume();
    assert_eq!(run.lines_of("event"), ["event run_resumed person"]);
    run.cancel(None);
    assert_eq!(run.lines_of("event"), ["event run_cancelled"]);
}

#[test]
fn decisions_about_the_whole_run_name_their_caller() {
    let document = json!({"nodes": [{"id": "a", "action_id": "work"}], "timeout_ms": 10_000, "on_timeout": "human_gate"});
    for (choice, expected) in [
        ("abort", "event run_timed_out person by bob"),
        ("fail", "event run_failed person by bob"),
    ] {
        let mut run = Driver::start(document.clone());
        run.at(11_000).wake("t1@1").named("bob").decide("run1", choice);
        assert_eq!(run.lines_of("event"), [expected]);
    }
    let mut run = Driver::start(document.clone());
    run.at(11_000).wake("t1@1").named("bob").grant("run1", 5_000);
    let events = [
        "event run_extended by_ms 5000 by bob",
        "event run_resumed workflow_timeout by bob",
    ];
    assert_eq!(run.lines_of("event"), events);
    // An extension is the decision at the gate of the limit.
    let mut run = Driver::start(document);
    run.at(11_000).wake("t1@1").named("bob").extend(5_000);
    let gates = run.lines_of("gate");
    assert!(gates[0].ends_with("extend by bob at 11000"), "{gates:?}");
    assert_eq!(run.lines_of("event"), events);
}

#[test]
fn a_child_has_the_starter_of_its_root() {
    let parent = started_by(Some("ada"), json!({"nodes": [{"id": "call", "workflow_id": "middle"}]}));
    let child = Driver::start_child(&parent);
    let grandchild = Driver::start_child(&child);
    for run in [&child, &grandchild] {
        assert_eq!(run.run.header.started_by.as_deref(), Some("ada"));
    }
}

fn gated(gate: Value) -> Value {
    json!({"nodes": [{"id": "ask", "gate": gate}]})
}

#[test]
fn with_four_eyes_another_person_decides() {
    let mut run = started_by(Some("ada"), gated(json!({"four_eyes": true})));
    decide(&mut run, "g1", Some("ada"));
    run.check("rejected four_eyes SameName(\"ada\")");
    decide(&mut run, "g1", None);
    run.check("rejected four_eyes UnnamedDecision");
    run.reload().assert_status("waiting ask:awaiting_human");
    decide(&mut run, "g1", Some("bob"));
    run.assert_status("completed {}");
    // A gate that is closed says so to everyone.
    decide(&mut run, "g1", Some("ada"));
    let said = format!("{:?}", run.answer);
    assert!(said.contains("GateClosed"), "{said}");
}

#[test]
fn with_four_eyes_a_run_without_a_starter_cannot_be_decided() {
    for by in [Some("bob"), None] {
        let mut run = started_by(None, gated(json!({"four_eyes": true})));
        decide(&mut run, "g1", by);
        run.check("rejected four_eyes UnnamedStart");
    }
}

#[test]
fn without_four_eyes_the_starter_may_decide() {
    for gate in [json!({}), json!({"four_eyes": false})] {
        for name in [Some("ada"), None] {
            let mut run = started_by(name, gated(gate.clone()));
            decide(&mut run, "g1", name);
            run.assert_status("completed {}");
        }
    }
}

#[test]
fn a_restart_by_another_does_not_make_the_starter_a_second_person() {
    let mut run = started_by(Some("ada"), gated(json!({"four_eyes": true})));
    run.named("bob").restart();
    decide(&mut run, "g2", Some("ada"));
    run.check("rejected four_eyes SameName(\"ada\")");
}

#[test]
fn the_timeout_of_a_gate_with_four_eyes_still_decides() {
    let gate = json!({"four_eyes": true, "timeout_ms": 5_000, "on_timeout": "approve"});
    let mut run = started_by(None, gated(gate));
    run.at(6_000).wake("").assert_status("completed {}");
}

#[test]
fn four_eyes_does_not_concern_escalations_and_limits() {
    let mut document = gated(json!({"four_eyes": true}));
    document["timeout_ms"] = json!(10_000);
    document["on_timeout"] = json!("human_gate");
    let mut run = started_by(Some("ada"), document);
    run.at(11_000).wake("").named("ada").grant("run1", 5_000);
    assert_eq!(run.answer, Ok(()));
    let document = json!({"nodes": [{"id": "a", "action_id": "work", "escalate_on": ["server_error"]}]});
    let mut run = started_by(Some("ada"), document);
    run.fail("t1@1").named("ada").decide("g1.1", "skip");
    run.assert_status("completed {}");
}
