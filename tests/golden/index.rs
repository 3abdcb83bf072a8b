//! Messages from a run's object to the index. Objects, queue consumer and sweep may be of different versions.

use curfew::api::bulk::Operation;
use curfew::api::control::Control;
use curfew::index::batch::RemovedRun;
use curfew::index::batch::{IndexUpdate, decode, operation_message};
use curfew::index::run_summary::{ProbeResponse, RunSummary};
use curfew::protocol::caller::{Caller, WorkflowScope};
use serde_json::{Value, json};

use super::time::at_the_gate;
use super::{check_json, read};

#[test]
fn run_summaries_and_probe_responses() {
    let run = at_the_gate();
    check_json("run_summary.json", &json!(RunSummary::of(&run.run, 61_000)));
    check_json(
        "probe_response.json",
        &json!(ProbeResponse::of(&run.run, RunSummary::of(&run.run, 61_000))),
    );
    check_json(
        "probe_response_without_run.json",
        &json!(ProbeResponse::default()),
    );
    check_json(
        "removed.json",
        &json!({"removed": RemovedRun::of(&run.run, RunSummary::of(&run.run, 70_000))}),
    );
    for name in ["probe_response.json", "probe_response_without_run.json"] {
        let response: ProbeResponse = serde_json::from_str(&read(name)).expect("a response can be read");
        check_json(name, &json!(response));
    }
    for (name, is_expected) in [
        (
            "run_summary.json",
            (|update| matches!(update, IndexUpdate::Run(_))) as fn(&IndexUpdate) -> bool,
        ),
        ("removed.json", |update| {
            matches!(update, IndexUpdate::Removed { .. })
        }),
    ] {
        let message = decode(&read(name)).expect("a message can be read");
        assert!(
            message.updates.iter().all(is_expected) && message.unreadable == 0,
            "{message:?}"
        );
    }
    let summary: RunSummary = serde_json::from_str(&read("run_summary.json")).expect("a summary can be read");
    check_json("run_summary.json", &json!(summary));
}

/// The format before the sweep existed. Such messages may still be in the queue.
#[test]
fn messages_of_the_first_build_can_be_read() {
    let first = r#"{"revision": 3, "summary": {"id": "run-1", "status": "running"}}"#;
    let summary: RunSummary = serde_json::from_str(first).expect("an older message can be read");
    assert_eq!((summary.revision, summary.at, summary.due_at), (3, 0, None));
}

/// The rows of bulk operations in D1, and the message that has one continued.
#[test]
fn operations() {
    let caller = Caller {
        name: Some("ada".into()),
        workflows: WorkflowScope::new(vec!["order-*".into()]).expect("valid"),
    };
    let operation = |control: Control, caller: Caller, body: Value| {
        let operation = Operation::read(&control, &body, caller, 1_700_000_000_000);
        operation.expect("valid")
    };
    let filter = json!({"filter": {"status": ["running"], "tag": "a"}, "with": {"reason": "closed"}});
    let ids = json!({"ids": ["run-1", "run-2"], "with": {"by_ms": 60_000}});
    let operations = [
        operation(Control::Cancel, caller, filter),
        operation(Control::Extend, Caller::ANONYMOUS, ids),
    ];
    check_json("operations.json", &json!(operations));
    let again: Vec<Operation> = serde_json::from_str(&read("operations.json")).expect("rows can be read");
    check_json("operations.json", &json!(again));
    let message = operation_message("op-1");
    check_json(
        "operation_message.json",
        &serde_json::from_str(&message).expect("JSON"),
    );
    let updates = decode(&message).expect("a message can be read").updates;
    let operation = "op-1".to_string();
    assert_eq!(updates, [IndexUpdate::Operation { operation }]);
}
