//! Gates: prompts, decisions and their validation, reminders and timeouts.

use curfew::run::Decision;
use serde_json::{Value, json};

use super::driver::{Driver, SETTINGS};
use super::graphs::with;

/// `ask` leads to `yes` or `no`. Tests add a timeout transition if they need one.
fn approval(gate: Value) -> Value {
    json!({
        "nodes": [{"id": "ask", "gate": gate}, {"id": "yes", "action_id": "work", "input_mapping": "${state.ask}"},
                  {"id": "no", "action_id": "work"}],
        "transitions": [
            {"from_node_id": "ask", "to_node_id": "yes", "condition": "state.ask.choice == \"approve\""},
            {"from_node_id": "ask", "to_node_id": "no", "condition": "state.ask.choice == \"reject\""},
        ],
    })
}

fn within(millis: u64) -> Value {
    json!({"timeout_ms": millis})
}

#[test]
fn a_gate_opens_with_its_prompt_rendered_and_the_run_waits() {
    let gate = json!({"prompt": {"text": "Ship ${input.x} boxes?", "n": "${input.x}"}, "timeout_ms": 10_000});
    Driver::start(approval(gate)).check(
        r#"
        snapshot
        input {"x":1}
        run waiting 1000000 left
        token t1 ask awaiting_human@1 until 11000 watch 8500
        gate g1 open {"n":1,"text":"Ship 1 boxes?"} approve|reject until 11000
        alarm 8500
        announce
        announce g1 open
    "#,
    );
}

#[test]
fn a_gate_without_a_limit_sets_no_alarm_of_its_own() {
    let mut document = approval(json!({}));
    document["timeout_ms"] = json!(null);
    let run = Driver::start(document);
    assert_eq!(run.status_line(), "waiting ask:awaiting_human");
    assert_eq!(run.run.next_deadline(), None);
    assert_eq!(run.lines_of("alarm"), [""; 0]);
}

#[test]
fn a_decision_completes_the_node_and_selects_the_transition() {
    let mut run = Driver::start(approval(json!({})));
    run.at(3_000).feed(curfew::run::Event::GateDecided {
        gate: "g1".into(),
        decision: curfew::run::GateDecision {
            choice: "approve".into(),
            input: json!({"n": 2}),
            comment: Some("fine".into()),
            by: Some("ada".into()),
            at: 7,
        },
    });
    let result = r#"{"by":"ada","choice":"approve","comment":"fine","input":{"n":2}}"#;
    run.check(&format!(
        "
        run running until 1003000
        token t1 ask completed@1 {result} keeps state.ask
        token t2 yes executing@1 watch 33000
        gate g1 decided null approve|reject approve by ada at 3000
        alarm 33000
        dispatch t2@1 {result}
        announce
        announce g1 decided
    "
    ));
    let mut run = Driver::start(approval(json!({})));
    run.decide("g1", "reject").assert_status("running no:executing");
}

#[test]
fn the_first_decision_wins_and_the_second_is_rejected_with_it() {
    let mut run = Driver::start(approval(json!({})));
    run.at(2_000).decide("g1", "reject");
    for _ in 0..2 {
        run.at(2_000).decide("g1", "approve");
        run.check("rejected closed gate g1 decided null approve|reject reject by ada at 2000");
        run.assert_status("running no:executing").reload();
    }
}

#[test]
fn only_the_gates_choices_are_accepted() {
    let mut document = approval(json!({"choices": ["now", "later"]}));
    document["on_no_match"] = json!("end");
    let mut run = Driver::start(document);
    run.decide("g1", "approve");
    run.check("rejected invalid_decision /choice: \"approve\" is none of now, later");
    run.decide("g2", "now").check("rejected unknown_gate");
    run.decide("g1", "later").assert_status("completed {}");
}

#[test]
fn the_input_of_a_decision_is_validated_against_the_schema() {
    let schema =
        json!({"type": "object", "required": ["amount"], "properties": {"amount": {"type": "integer"}}});
    let mut run = Driver::start(approval(json!({"input_schema": schema})));
    for (input, place) in [
        (json!(null), "/input:"),
        (json!({"amount": "3"}), "/input/amount:"),
    ] {
        run.decide_with("g1", "approve", input);
        let said = format!("{:?}", run.answer);
        assert!(said.contains("InvalidDecision"), "{said}");
        assert!(
            said.contains(&place.replace(':', "\"")),
            "{said} is not at {place}"
        );
        assert_eq!(run.decision, Decision::default());
    }
    run.reload()
        .decide_with("g1", "approve", json!({"amount": 3}))
        .assert_status("running yes:executing");
}

#[test]
fn reminders_are_sent_once_at_each_fraction() {
    let gate = json!({"timeout_ms": 10_000, "remind_at": [0.9, 0.5]});
    let mut run = Driver::start(approval(gate));
    assert_eq!(run.run.next_deadline(), Some(6_000));
    run.at(6_000).wake("").check(
        "
        token t1 ask awaiting_human@1 until 11000 watch 10000
        gate g1 open null approve|reject until 11000 reminded 6000
        alarm 9000
        announce g1 open
    ",
    );
    // The deadline warning is separate and does not count as a reminder.
    run.reload().at(9_000).wake("").check(
        "
        token t1 ask awaiting_human@1 until 11000 watch 10000
        event deadline_warning t1 ask gate
        alarm 10000
    ",
    );
    run.reload().at(10_000).wake("");
    assert_eq!(
        run.lines_of("gate"),
        ["gate g1 open null approve|reject until 11000 reminded 10000"]
    );
    assert_eq!(run.run.next_deadline(), Some(11_000));
    run.decide("g1", "approve").assert_status("running yes:executing");
}

#[test]
fn by_default_a_gate_reminds_at_three_quarters() {
    let run = Driver::start(approval(within(8_000)));
    assert_eq!(run.run.next_deadline(), Some(7_000));
    let run = Driver::start(approval(with(within(8_000), json!({"remind_at": []}))));
    assert_eq!(run.run.next_deadline(), Some(9_000));
}

#[test]
fn a_timeout_may_approve_or_reject() {
    for (policy, place) in [("approve", "yes"), ("reject", "no")] {
        let mut run = Driver::start(approval(with(
            within(5_000),
            json!({"on_timeout": policy, "remind_at": []}),
        )));
        run.at(6_000)
            .wake("")
            .assert_status(&format!("running {place}:executing"));
        assert_eq!(
            run.lines_of("gate"),
            [format!(
                "gate g1 timed_out null approve|reject until 6000 {policy} by timeout at 6000"
            )]
        );
        run.decide("g1", "approve");
        assert!(run.answer.is_err(), "time has decided");
    }
}

#[test]
fn a_timeout_fails_the_token_without_a_timeout_transition() {
    let gate = with(within(5_000), json!({"remind_at": []}));
    let mut run = Driver::start(approval(gate.clone()));
    run.at(6_000)
        .wake("")
        .assert_status("failed gate_timeout/timeout: nobody decided in time");
    let mut document = approval(gate);
    document["transitions"][0]["on"] = json!("timeout");
    document["transitions"][0]["condition"] = json!("error.code == \"gate_timeout\"");
    document["nodes"][1]["input_mapping"] = json!("${error.message}");
    let mut run = Driver::start(document);
    run.at(6_000).wake("").assert_status("running yes:executing");
    assert_eq!(
        run.lines_of("dispatch"),
        ["dispatch t2@1 \"nobody decided in time\""]
    );
}

#[test]
fn a_timeout_may_end_the_run() {
    let document = json!({
        "nodes": [{"id": "a"}, {"id": "ask", "gate": {"timeout_ms": 5_000, "on_timeout": "cancel_all", "remind_at": []}},
                  {"id": "b", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "ask"}, {"from_node_id": "a", "to_node_id": "b"}],
    });
    let mut run = Driver::start(document);
    run.at(6_000)
        .wake("t3@1")
        .assert_status("timed_out gate_timeout/timeout: nobody decided in time");
    assert_eq!(run.lines_of("abort"), ["abort t3@1"]);
}

#[test]
fn a_decision_and_the_deadline_in_one_millisecond_decide_once() {
    let gate = with(within(5_000), json!({"on_timeout": "approve", "remind_at": []}));
    let mut run = Driver::start(approval(gate.clone()));
    run.at(6_000)
        .decide("g1", "reject")
        .assert_status("running no:executing");
    run.wake("t2@1").assert_status("running no:executing");
    let mut run = Driver::start(approval(gate));
    run.at(6_000).wake("").decide("g1", "reject");
    run.check("rejected closed gate g1 timed_out null approve|reject until 6000 approve by timeout at 6000");
    run.assert_status("running yes:executing");
}

#[test]
fn a_run_is_waiting_only_while_no_other_work_is_running() {
    let document = json!({
        "nodes": [{"id": "a"}, {"id": "ask", "gate": {}}, {"id": "b", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "ask"}, {"from_node_id": "a", "to_node_id": "b"}],
    });
    let mut run = Driver::start(document);
    run.assert_status("running ask:awaiting_human b:executing");
    run.succeed("t3@1", json!(1))
        .assert_status("waiting ask:awaiting_human");
    assert_eq!(run.lines_of("run"), ["run waiting 1000000 left"]);
    assert_eq!(run.lines_of("announce"), ["announce"]);
    run.reload().decide("g2", "approve").assert_status("completed {}");
}

#[test]
fn siblings_wait_for_a_gate_in_a_branch() {
    let mut document = super::graphs::three(json!({}));
    document["nodes"][1] = json!({"id": "b", "gate": {"prompt": "judge ${_branch.index}"}});
    let mut run = Driver::start(document);
    run.assert_status("waiting 3xb:awaiting_human");
    run.decide("g2", "approve")
        .assert_status("waiting 2xb:awaiting_human b:waiting_for_siblings");
    run.reload()
        .decide("g4", "reject")
        .decide("g3", "approve")
        .assert_status("running z:executing");
    assert_eq!(run.state()["all"][2]["choice"], json!("reject"));
}

#[test]
fn the_end_of_a_run_withdraws_its_gates() {
    let mut run = Driver::start(approval(json!({})));
    run.cancel(None);
    assert_eq!(run.lines_of("gate"), ["gate g1 cancelled null approve|reject"]);
    assert!(
        run.lines_of("announce")
            .contains(&"announce g1 cancelled".to_string())
    );
    run.decide("g1", "approve")
        .check("rejected closed gate g1 cancelled null approve|reject");
    let mut run = Driver::start(with(approval(json!({})), json!({"clock": "runs"})));
    run.at(1_001_000)
        .wake("")
        .assert_status("timed_out workflow_timeout/timeout: Workflow execution timed out after 16m40s");
    assert_eq!(run.lines_of("gate"), ["gate g1 cancelled null approve|reject"]);
}

#[test]
fn a_prompt_that_cannot_be_rendered_fails_the_token() {
    let run = Driver::start_with(
        SETTINGS,
        approval(json!({"prompt": "${input.missing.deep}"})),
        json!({}),
    );
    assert!(
        run.status_line()
            .starts_with("failed expression_failed/validation: prompt of gate ask"),
        "{}",
        run.status_line()
    );
    assert_eq!(run.lines_of("gate"), [""; 0]);
}
