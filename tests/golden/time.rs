//! Rows, messages and views of warnings, timeouts, the timeout gate of a run, and the reasons for which a run is paused.

use curfew::api::{recovery, views};
use curfew::base::failure::{Failure, FailureClass};
use curfew::protocol::task::{Artifact, Checkpoint, StepReport, StepStatus, TaskReport};
use curfew::run::{
    ChildStatusUpdate, Escalation, GateState, Header, HistoryEvent, Interrupted, Message, PauseReason,
    RunEvent, Token, TokenId, TokenStatus, Write,
};
use curfew::storage::rows::{HeaderRow, InstanceRow, TokenRow};
use serde_json::{Value, json};

use super::rows::full_token;
use super::{check_json, read};
use crate::run::driver::{Driver, SETTINGS, succeeded, timed_out};
use crate::run::graphs::three;
use crate::run::progress::progress;

/// Two steps, the second of them slow. The run has a limit and a timeout gate.
fn document() -> Value {
    json!({
        "id": "letter",
        "timeout": "1m",
        "on_timeout": "human_gate",
        "gate": {"timeout": "1h"},
        "nodes": [
            {"id": "write", "action_id": "work"},
            {"id": "send", "task_id": "send", "timeout": "30s", "on_timeout": "retry", "max_retries": 1},
        ],
        "tasks": [
            {"id": "send", "steps": [{"ref": "load", "action_id": "work"}, {"ref": "post", "action_id": "work"}]},
        ],
        "transitions": [{"from_node_id": "write", "to_node_id": "send"}],
        "output_mapping": {"text": "${state.write}"},
    })
}

fn checkpoint() -> Checkpoint {
    Checkpoint {
        next: "post".into(),
        state: json!({"load": {"status": 200}}),
        output: json!({}),
        wrote_output: false,
        last_result: json!({"status": 200}),
        steps: vec![StepReport {
            reference: "load".into(),
            status: StepStatus::Completed,
            attempts: 1,
            duration_ms: 40,
            retries: Vec::new(),
            started_at: None,
            span_id: None,
            gen_ai: None,
        }],
        events: Vec::new(),
        rounds_before: 0,
    }
}

/// The report of an executor that stopped during its second step.
fn halfway(attempt: &str) -> TaskReport {
    let mut report = timed_out(attempt);
    let step = |reference: &str, status| StepReport {
        reference: reference.into(),
        status,
        attempts: 1,
        duration_ms: 40,
        retries: Vec::new(),
        started_at: None,
        span_id: None,
        gen_ai: None,
    };
    report.steps = vec![
        step("load", StepStatus::Completed),
        step("post", StepStatus::TimedOut),
    ];
    report.partial = vec![Artifact {
        name: "post".into(),
        complete: false,
        bytes: 6,
        text: "Dear A".into(),
    }];
    report.checkpoint = Some(Box::new(checkpoint()));
    report
}

/// The first attempt got a warning and timed out, the second is running.
pub fn late() -> Driver {
    let mut run = Driver::start_with(SETTINGS, document(), json!({"to": "Ada"}));
    run.at(1_250).report(succeeded("t1@1", json!("Dear Ada")));
    run.at(25_250).wake("t2@1");
    run.at(31_240).report(halfway("t2@1"));
    run.at(32_240).wake("");
    run
}

/// The run exceeded its limit, and was then also paused by a person.
pub fn at_the_gate() -> Driver {
    let mut run = late();
    run.at(49_000).wake("t2@2").at(56_240).wake("t2@2");
    run.at(61_040).wake("t2@2");
    run.at(63_000).pause();
    run
}

/// The event in row `number` of those that have a row of their own.
fn event_row(run: &Driver, number: usize) -> Value {
    let seq = run.store.entries()[number - 1].seq;
    let row = &run.store.run[&curfew::storage::commit::event_key(seq)];
    serde_json::from_str(row).expect("rows are JSON")
}

#[test]
fn rows_of_timeout_events() {
    let mut run = late();
    run.at(33_000).pause().named("ada").at(34_000).resume();
    for (number, kind, name) in [
        (1, "deadline_warning", "row_event_deadline_warning.json"),
        (2, "token_timed_out", "row_event_token_timed_out.json"),
        (4, "run_paused", "row_event_run_paused.json"),
        (5, "run_resumed", "row_event_run_resumed_by_a_caller.json"),
    ] {
        let row = event_row(&run, number);
        assert_eq!(row["kind"], json!(kind));
        check_json(name, &row);
        check_json(name, &json!(run.store.entries()[number - 1]));
    }
}

/// The record of a join names the tokens whose output it has.
#[test]
fn the_row_of_a_join_that_timed_out() {
    let mut run = Driver::start(three(json!({"timeout_ms": 5_000})));
    run.at(2_000).succeed("t2@1", json!(1));
    run.at(3_000).progress("t3@1", progress(1, "Dear A"));
    run.at(7_000).wake("t3@1 t4@1");
    let row = event_row(&run, 1);
    assert_eq!(row["kind"], json!("sync_timed_out"));
    check_json("row_event_sync_timed_out.json", &row);
    let mut event: RunEvent = serde_json::from_str(&read("row_event_sync_timed_out.json")).expect("a row");
    assert_eq!(json!(event), row);
    let record = event.record.as_mut().expect("it has a record");
    record.artifacts_cut = true;
    check_json("record_with_cut_artifacts.json", &json!(record));
}

/// The first builds saved the cause of a pause as `by`.
#[test]
fn the_cause_of_an_older_event() {
    let older: RunEvent = serde_json::from_str(&read("row_event_run_paused_first.json")).expect("a row");
    let view = recovery::event("run-1", HistoryEvent::of_log(&older));
    assert_eq!((&view["cause"], &view["by"]), (&json!("person"), &Value::Null));
    let newer = read("row_event_run_resumed_by_a_caller.json");
    let newer: RunEvent = serde_json::from_str(&newer).expect("a row");
    let view = recovery::event("run-1", HistoryEvent::of_log(&newer));
    assert_eq!((&view["cause"], &view["by"]), (&json!("person"), &json!("ada")));
}

#[test]
fn rows_and_views_of_a_run_at_its_timeout_gate() {
    let mut run = at_the_gate();
    run.assert_status("paused send:executing");
    let gate = run.run.gate_of_run().expect("the run waits at its gate");
    check_json("row_gate_workflow_timeout.json", &json!(gate));
    let again: GateState =
        serde_json::from_str(&read("row_gate_workflow_timeout.json")).expect("it can be read");
    assert_eq!(&again, gate);
    check_json("view_gate_workflow_timeout.json", &views::gate("run-1", gate));
    check_json("view_run_at_timeout_gate.json", &views::run(&run.run, 64_000));
    let last = event_row(&run, run.store.entries().len() - 1);
    check_json("row_event_run_paused_by_timeout.json", &last);
    run.reload().at(64_000).resume();
    run.decide_with("run1", "extend", json!({"by_ms": 30_000}));
    assert_eq!(run.answer, Ok(()));
}

#[test]
fn header_of_a_run_that_is_paused_for_two_reasons() {
    let run = at_the_gate();
    let mut header: Header = run.run.header.clone();
    let holders = [&PauseReason::Person, &PauseReason::WorkflowTimeout];
    assert!(
        header.pause_reasons.iter().eq(holders),
        "{:?}",
        header.pause_reasons
    );
    check_json(
        "header_paused_for_two_reasons.json",
        &json!(HeaderRow::of(&header)),
    );
    let read_again = |name: &str| -> Header {
        let row: HeaderRow = serde_json::from_str(&read(name)).expect("a stored header can be read");
        row.into_header()
    };
    assert_eq!(read_again("header_paused_for_two_reasons.json"), header);
    header.hold_seq_received = 3;
    header.hold_seq_sent = 4;
    header.on_budget = true;
    header.warned = true;
    header.ends = 2;
    header.tokens_before = 7;
    header.request.budget_ms = Some(60_000);
    header.request.node_decides = true;
    check_json("header_of_a_child_on_budget.json", &json!(HeaderRow::of(&header)));
    assert_eq!(read_again("header_of_a_child_on_budget.json"), header);
}

/// A token with every field that a timeout and the end of its run can set.
fn timely_token(run: &Driver) -> Token {
    let mut token = full_token(run);
    token.deadline.executor_deadline = Some(61_500);
    token.deadline.reason = Some("3 x the p99 of 40 runs".into());
    token.deadline.warned = true;
    token.checkpoint = Some(Box::new(checkpoint()));
    token.interrupted = Some(Interrupted {
        end: 1,
        from: TokenStatus::Suspended,
        sleep_left_ms: Some(9_000),
    });
    token.sleep_left_ms = Some(9_000);
    token.work_of = Some(TokenId(1));
    token.child_news = 2;
    token
}

#[test]
fn row_of_a_token_with_timeouts() {
    let (run, _) = super::rows::midway();
    let token = timely_token(&run);
    check_json("token_with_timeouts.json", &json!(TokenRow::of(&token, &run.run)));
    let row: TokenRow =
        serde_json::from_str(&read("token_with_timeouts.json")).expect("a stored token can be read");
    let again = row.into_token(token.id.0, token.status, run.run.snapshot());
    assert_eq!(again.as_ref(), Ok(&token));
    let row = TokenRow::of(&token, &run.run);
    // The run's deadline is before the token's own.
    let view = views::token(token.id.0, token.status, row, Some(50_000));
    assert_eq!(view["timeout_at"], json!(50_000));
    check_json("view_token_with_timeouts.json", &view);
}

/// The clock of the run's limit stands still.
#[test]
fn header_and_view_of_a_run_at_a_gate() {
    let document = json!({"timeout": "20s", "nodes": [{"id": "ask", "gate": {"timeout": "24h"}}]});
    let run = Driver::start_with(SETTINGS, document, json!({"to": "Ada"}));
    let name = "header_stopped_at_a_gate.json";
    check_json(name, &json!(HeaderRow::of(&run.run.header)));
    let row: HeaderRow = serde_json::from_str(&read(name)).expect("a stored header can be read");
    assert_eq!(row.into_header(), run.run.header);
    check_json("view_run_stopped_at_a_gate.json", &views::run(&run.run, 9_000));
}

/// The child of the token waits for a person, and the limit of the node stands still.
#[test]
fn row_of_a_token_whose_child_waits() {
    let (run, _) = super::rows::midway();
    let mut token = timely_token(&run);
    token.status = TokenStatus::WaitingForSubworkflow;
    token.reason = Some("child_paused".into());
    token.deadline.stopped_at = Some(30_000);
    let name = "token_of_a_waiting_child.json";
    check_json(name, &json!(TokenRow::of(&token, &run.run)));
    let row: TokenRow = serde_json::from_str(&read(name)).expect("a stored token can be read");
    let again = row.into_token(token.id.0, token.status, run.run.snapshot());
    assert_eq!(again.as_ref(), Ok(&token));
    let row = TokenRow::of(&token, &run.run);
    let view = views::token(token.id.0, token.status, row, Some(50_000));
    assert_eq!(view["timeout_at"], Value::Null, "it has no moment");
}

/// A failed token that waits for a person's decision.
#[test]
fn row_of_an_escalated_token() {
    let (run, _) = super::rows::midway();
    let mut token = full_token(&run);
    token.status = TokenStatus::AwaitingHuman;
    token.error = None;
    for (unwritten, name) in [
        (false, "token_escalated.json"),
        (true, "token_escalated_unwritten.json"),
    ] {
        token.escalation = Some(Box::new(Escalation {
            gate_id: "g3.1".into(),
            ends: TokenStatus::TimedOut,
            failure: Failure::new("http_401", FailureClass::Auth, "the answer has status 401: no"),
            unwritten,
        }));
        check_json(name, &json!(TokenRow::of(&token, &run.run)));
        let row: TokenRow = serde_json::from_str(&read(name)).expect("a stored token can be read");
        let again = row.into_token(token.id.0, token.status, run.run.snapshot());
        assert_eq!(again.as_ref(), Ok(&token));
    }
    let row = TokenRow::of(&token, &run.run);
    let view = views::token(token.id.0, token.status, row, None);
    assert_eq!(view["error"]["code"], json!("http_401"));
}

#[test]
fn messages_with_timeouts() {
    let news = ChildStatusUpdate {
        token_id: "t3".into(),
        epoch: 1,
        run_id: "run-1~t3".into(),
        number: 2,
        paused: true,
    };
    let start = |node_decides| Message::StartChild {
        run_id: "run-1~t3".into(),
        node_id: "call".into(),
        token_id: "t3".into(),
        epoch: 1,
        input: json!({"to": "Ada"}),
        timeout_ms: Some(5_000).filter(|_| node_decides),
        budget_ms: None,
        node_decides,
    };
    let hold = |held, budget_ms| Message::HoldChild {
        run_id: "run-1~t3".into(),
        number: 4,
        held,
        budget_ms,
        token_id: Some("t3".into()),
    };
    for (name, message) in [
        ("message_hold_child.json", hold(true, None)),
        ("message_release_child.json", hold(false, Some(30_000))),
        (
            "message_tell_parent.json",
            Message::TellParent {
                run_id: "run-1".into(),
                news,
            },
        ),
        ("message_start_child_of_a_node_with_a_limit.json", start(true)),
        // The format before this field existed.
        ("message_start_child_without_limits.json", start(false)),
    ] {
        check_json(name, &json!(message));
        let again: Message = serde_json::from_str(&read(name)).expect("a message can be read");
        assert_eq!(again, message, "{name}");
    }
}

#[test]
fn row_of_an_instance_that_the_end_of_its_run_closed() {
    let mut run = Driver::start(three(json!({"timeout": "20s"})));
    run.at(2_000).succeed("t2@1", json!(1));
    run.at(18_000).wake("t3@1 t4@1").at(22_000).wake("t3@1 t4@1");
    run.assert_status("failed sync_timeout/timeout: Synchronization timeout exceeded");
    let text = &run.store.run["instance/1"];
    let value: Value = serde_json::from_str(text).expect("rows are JSON");
    check_json("row_instance_closed_by_the_end.json", &value);
    let row: InstanceRow = serde_json::from_str(text).expect("a stored instance can be read");
    check_json("row_instance_closed_by_the_end.json", &json!(row));
    let saved = run.decision.writes().iter().filter_map(|write| match write {
        Write::SaveToken(token) => token.interrupted,
        _other => None,
    });
    assert_eq!(
        saved.count(),
        3,
        "all three branches can go on from where they were cut off"
    );
}
