//! Rows, messages and views of branches, joins, gates, signals and child runs.

use curfew::api::views;
use curfew::run::{
    ChildIds, ChildReport, Event, EventRef, GateKind, GateState, Message, ParentLink, PauseReason, RunStatus,
    TriggeredBy,
};
use curfew::storage::rows::{HeaderRow, InstanceRow, TokenRow};
use serde_json::{Value, json};

use super::rows::failure;
use super::{check_json, read};
use crate::run::driver::{Driver, SETTINGS};
use crate::run::graphs::{joining, nested};

/// A run with a fan-out over items whose inner join is half full, a gate, a sleeping child, and buffered signals.
fn busy() -> Driver {
    let mut run = Driver::start_with(
        SETTINGS,
        json!({
            "id": "busy",
            "nodes": [
                {"id": "a"},
                {"id": "judge", "action_id": "work"},
                {"id": "z"},
                {"id": "ask", "gate": {"prompt": "Ship to ${input.to}?", "choices": ["yes", "no"], "timeout": "1h",
                    "input_schema": {"type": "object"}}},
                {"id": "call", "workflow_id": "child", "timeout": "5m"},
                {"id": "listen", "wait": {"signal": "paid"}},
                {"id": "later", "wait": {"signal": "hint"}},
            ],
            "transitions": [
                {"id": "out", "from_node_id": "a", "to_node_id": "judge",
                 "foreach": {"collection": "input.cities", "item_var": "city"}},
                {"from_node_id": "judge", "to_node_id": "z", "synchronization": joining("out", json!({"timeout": "10s",
                    "on_branch_failure": "proceed_with_available", "merge": {"target": "state.all"}}))},
                {"from_node_id": "a", "to_node_id": "ask"},
                {"from_node_id": "a", "to_node_id": "call"},
                {"from_node_id": "a", "to_node_id": "listen"},
                {"from_node_id": "listen", "to_node_id": "later"},
            ],
        }),
        json!({"to": "Ada", "cities": ["Oslo", "Rome", "Kyiv"]}),
    );
    let branch = |run: &Driver, index: u32| {
        let of_branch =
            |token: &&curfew::run::Token| token.branch.as_ref().is_some_and(|it| it.index == index);
        run.run
            .live_tokens()
            .find(of_branch)
            .expect("the branch is running")
            .id
    };
    let (first, second) = (branch(&run, 0), branch(&run, 1));
    run.at(2_000).succeed(&format!("{first}@1"), json!({"score": 3}));
    run.at(2_500).fail(&format!("{second}@1"));
    run.at(3_000)
        .signal("hint", json!({"n": 1}))
        .signal("hint", json!(2));
    run
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("rows are JSON")
}

#[test]
fn rows_of_a_busy_run() {
    let run = busy();
    for (key, name) in [
        ("instance/1", "row_instance.json"),
        ("signals/hint", "row_signals.json"),
        ("outbox/1", "row_outbox_start_child.json"),
    ] {
        check_json(name, &parse(&run.store.run[key]));
    }
    let gate = run.run.gates().next().expect("the gate is open");
    check_json("row_gate_open.json", &json!(gate));
    let waiting = run
        .run
        .live_tokens()
        .find(|token| token.join.is_some())
        .expect("one waits for its siblings");
    check_json("token_in_branch.json", &json!(TokenRow::of(waiting, &run.run)));
    // A run can be restored from these files and ends.
    let mut again = busy();
    again.reload().at(9_000);
    again.decide_with(&gate.id, "yes", json!({}));
    again.signal("paid", json!(1));
    let calling = again
        .run
        .live_tokens()
        .find(|token| token.status.name() == "waiting_for_subworkflow");
    let calling = calling.expect("a child is running").id;
    again.child_ended(&format!("{calling}@1"), RunStatus::Completed, None);
    let last = again
        .run
        .live_tokens()
        .find(|token| token.status.name() == "executing")
        .expect("a branch")
        .id;
    again
        .succeed(&format!("{last}@1"), json!({"score": 1}))
        .assert_status("completed {}");
    assert_eq!(again.state()["all"], json!([{"score": 3}, {"score": 1}]));
}

#[test]
fn row_of_an_inner_fan_instance() {
    let mut run = Driver::start(nested(json!({}), json!({})));
    run.succeed("t4@1", json!(1)).succeed("t5@1", json!(2));
    check_json(
        "row_instance_inner_closed.json",
        &parse(&run.store.run["instance/2"]),
    );
    for name in ["row_instance.json", "row_instance_inner_closed.json"] {
        let row: InstanceRow = serde_json::from_str(&read(name)).expect("a stored instance can be read");
        check_json(name, &json!(row));
    }
}

#[test]
fn row_of_a_decided_gate() {
    let mut run = busy();
    let gate = run.run.gates().next().expect("the gate is open").id.clone();
    check_json(
        "view_gate_open.json",
        &views::gate("run-1", run.run.gates().next().expect("one")),
    );
    run.at(4_000).feed(Event::GateDecided {
        gate,
        decision: curfew::run::GateDecision {
            choice: "yes".into(),
            input: json!({"boxes": 2}),
            comment: Some("by ship".into()),
            by: Some("ada".into()),
            at: 0,
        },
    });
    let decided = run.run.gates().next().expect("it is kept");
    check_json("row_gate_decided.json", &json!(decided));
    check_json("view_gate_decided.json", &views::gate("run-1", decided));
    let again: curfew::run::GateState =
        serde_json::from_str(&read("row_gate_decided.json")).expect("a stored gate can be read");
    assert_eq!(&again, decided);
}

#[test]
fn messages_to_parents_children_and_events() {
    let report = ChildReport {
        token_id: "t3".into(),
        epoch: 2,
        run_id: "run-1~t3~2".into(),
        status: RunStatus::Failed,
        output: None,
        error: Some(failure()),
    };
    let completed = ChildReport {
        status: RunStatus::Completed,
        output: Some(json!({"sum": 3})),
        error: None,
        ..report.clone()
    };
    for (name, message) in [
        (
            "message_start_child.json",
            Message::StartChild {
                run_id: "run-1~t3".into(),
                node_id: "call".into(),
                token_id: "t3".into(),
                epoch: 1,
                input: json!({"to": "Ada"}),
                timeout_ms: Some(5_000),
                budget_ms: Some(4_000),
                node_decides: true,
            },
        ),
        (
            "message_cancel_child.json",
            Message::CancelChild {
                run_id: "run-1~t3".into(),
                reason: "run_cancelled".into(),
                token_id: Some("t3".into()),
            },
        ),
        (
            "message_emit.json",
            Message::Emit {
                key: "run-1/1000/t3/0".into(),
                name: "order.paid".into(),
                payload: json!({"id": 7}),
                hops: 1,
                after: None,
                root: None,
            },
        ),
        (
            "message_emit_in_part.json",
            Message::Emit {
                key: "run-1/1000/t3/1".into(),
                name: "order.paid".into(),
                payload: Value::Null,
                hops: 3,
                after: Some("billing".into()),
                root: Some(root()),
            },
        ),
        (
            "message_notify_parent.json",
            Message::NotifyParent {
                run_id: "run-1".into(),
                report: report.clone(),
            },
        ),
    ] {
        check_json(name, &json!(message));
        let again: Message = serde_json::from_str(&read(name)).expect("a message can be read");
        assert_eq!(again, message, "{name}");
    }
    for (name, report) in [
        ("child_report_failed.json", report),
        ("child_report_completed.json", completed),
    ] {
        check_json(name, &json!(report));
        let again: ChildReport = serde_json::from_str(&read(name)).expect("a report can be read");
        assert_eq!(again, report, "{name}");
    }
}

/// The files that end in `_second` come from a build whose messages to children did not contain the token.
#[test]
fn messages_to_children_of_the_second_build_can_be_read() {
    for name in [
        "message_cancel_child_second.json",
        "message_hold_child_second.json",
    ] {
        let message: Message = serde_json::from_str(&read(name)).expect("a message can be read");
        let (Message::CancelChild { token_id, run_id, .. } | Message::HoldChild { token_id, run_id, .. }) =
            message
        else {
            panic!("{name} is for a child");
        };
        assert_eq!((run_id.as_str(), token_id), ("run-1.t3", None), "{name}");
    }
}

/// A run of an older build keeps the format of its child run ids.
#[test]
fn the_format_of_child_ids_never_changes_within_a_run() {
    let run = busy();
    let header = &run.run.header;
    assert_eq!(header.child_ids, ChildIds::Reserved);
    let row: HeaderRow =
        serde_json::from_str(&read("header_child_paused_first.json")).expect("a stored header can be read");
    let older = row.into_header();
    assert_eq!(older.child_ids, ChildIds::Dotted);
    let again = serde_json::to_string(&HeaderRow::of(&older)).expect("JSON");
    assert!(!again.contains("child_ids"), "{again}");
}

#[test]
fn header_of_a_paused_child() {
    let mut run = busy();
    run.at(5_000).pause();
    let mut header = run.run.header.clone();
    header.parent = Some(ParentLink {
        run_id: "run-0".into(),
        token_id: "t9".into(),
        epoch: 1,
        root_run_id: "run-00".into(),
        depth: 2,
        hops: 0,
        root_event: None,
    });
    check_json("header_child_paused.json", &json!(HeaderRow::of(&header)));
    let row: HeaderRow =
        serde_json::from_str(&read("header_child_paused.json")).expect("a stored header can be read");
    let again = row.into_header();
    assert_eq!(
        (again.depth, again.root_run_id.as_str(), again.paused_at),
        (2, "run-00", Some(5_000))
    );
    check_json("view_run_paused.json", &views::run(&run.run, 6_000));
}

/// The files that end in `_first` were written by the first build and are never rewritten.
#[test]
fn gates_and_pauses_of_the_first_build_can_be_read() {
    let gate: GateState =
        serde_json::from_str(&read("row_gate_open_first.json")).expect("a stored gate can be read");
    assert_eq!(gate.kind, GateKind::Node, "there were no others");
    let row: HeaderRow =
        serde_json::from_str(&read("header_child_paused_first.json")).expect("a stored header can be read");
    let header = row.into_header();
    assert_eq!(header.paused_at, Some(5_000));
    assert!(
        header.pause_reasons.iter().eq([&PauseReason::Person]),
        "only a person could pause"
    );
    // A run of such rows can be resumed, and its gate can be decided.
    let mut run = busy();
    run.at(5_000).pause();
    let keep = [
        ("header", "header_child_paused_first.json"),
        ("gate/g2", "row_gate_open_first.json"),
    ];
    for (key, name) in keep {
        assert!(run.store.run.contains_key(key), "{key}");
        run.store.replace_row(key, read(name));
    }
    run.reload().at(6_000).resume();
    run.decide_with("g2", "no", json!({}));
    assert_eq!(run.answer, Ok(()));
    assert_eq!(
        run.run.header.timeout_at,
        Some(1_002_000),
        "the pause took one second"
    );
}

#[test]
fn views_of_a_busy_run() {
    let run = busy();
    check_json("view_run_busy.json", &views::run(&run.run, 6_000));
    let waiting = run
        .run
        .live_tokens()
        .find(|token| token.join.is_some())
        .expect("one waits");
    let row = TokenRow::of(waiting, &run.run);
    check_json(
        "view_token_in_branch.json",
        &views::token(waiting.id.0, waiting.status, row, None),
    );
}

/// The first event of a chain.
fn root() -> EventRef {
    EventRef {
        event: "cart.filled".into(),
        key: "key:1".into(),
    }
}

/// A run that an event started, and a child of such a run, which inherits its hops.
#[test]
fn headers_of_triggered_runs() {
    let run = busy();
    let mut header = run.run.header.clone();
    header.triggered_by = Some(TriggeredBy {
        event: "order.paid".into(),
        key: "run-0/1000/t3/0".into(),
        hops: 2,
        root: Some(root()),
    });
    check_json("header_triggered.json", &json!(HeaderRow::of(&header)));
    check_json("view_summary_triggered.json", &views::summary(&header));
    let mut child = run.run.header.clone();
    child.parent = Some(ParentLink {
        run_id: "run-0".into(),
        token_id: "t9".into(),
        epoch: 1,
        root_run_id: "run-0".into(),
        depth: 1,
        hops: 2,
        root_event: Some(root()),
    });
    check_json("header_child_of_triggered.json", &json!(HeaderRow::of(&child)));
    for name in ["header_triggered.json", "header_child_of_triggered.json"] {
        let row: HeaderRow = serde_json::from_str(&read(name)).expect("a stored header can be read");
        let header = row.into_header();
        assert_eq!((header.hops, header.root_event), (2, Some(root())), "{name}");
    }
    // The files that end in `_first` come from a build that did not store the first event of a chain.
    for (name, expected) in [
        (
            "header_triggered_first.json",
            Some(("order.paid", "run-0/1000/t3/0")),
        ),
        ("header_child_of_triggered_first.json", None),
    ] {
        let row: HeaderRow = serde_json::from_str(&read(name)).expect("a stored header can be read");
        let first = row.into_header().root_event;
        let first = first
            .as_ref()
            .map(|root| (root.event.as_str(), root.key.as_str()));
        assert_eq!(first, expected, "{name}");
    }
    let mut run = busy();
    run.run.header = header;
    let view = views::run(&run.run, 6_000);
    assert_eq!(
        view["triggered_by"],
        json!({"event": "order.paid", "key": "run-0/1000/t3/0"})
    );
}

/// A large branch output that equals the result of its token is stored once.
#[test]
fn row_of_a_token_whose_branch_output_is_its_result() {
    let mut run = busy();
    let waiting = run.run.live_tokens().find(|token| token.join.is_some());
    let mut token = waiting.expect("one waits").clone();
    let large = json!("x".repeat(17 << 10));
    token.output = Some(large.clone());
    token.branch.as_mut().expect("it is in a branch").output = large.clone();
    let row = TokenRow::of(&token, &run.run);
    let mut text = json!(row);
    assert_eq!(text["output"], large);
    text["output"] = json!("17 KiB of text");
    check_json("token_in_branch_large.json", &text);
    let row = TokenRow::of(&token, &run.run);
    assert_eq!(
        views::token(1, token.status, TokenRow::of(&token, &run.run), None)["branch"]["output"],
        large
    );
    let read = row
        .into_token(token.id.0, token.status, run.run.snapshot())
        .expect("a stored token can be read");
    assert_eq!(read.branch, token.branch);
    run.reload();
}
