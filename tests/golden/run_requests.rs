//! Requests to a run's object and the bodies of its responses. Sender and object may be of different builds.

use std::rc::Rc;

use curfew::protocol::caller::{Caller, WorkflowScope};
use curfew::protocol::child::{ChildReport, ChildStatusUpdate, ParentSender, RunStatus};
use curfew::protocol::run::{
    AbandonResponse, Extension, GateDecision, HeartbeatResponse, LivePage, PROTOCOL, PageRequest,
    REQUEST_URL, RetryMode, RunCall, RunRequest, RunResponse, WorkflowResponse,
};
use curfew::protocol::start::{EventRef, ParentLink, ResolvedVersion, StartRequest, StartRun, TriggeredBy};
use curfew::protocol::task::{ReportStatus, TaskMessage, TaskReport};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::{check_json, read};
use crate::run::progress::progress;

fn start() -> StartRun {
    let stored = to_raw_value(&json!({"version": 3, "workflow": {"id": "order"}})).expect("this is JSON");
    StartRun {
        run_id: "run-1".into(),
        stored: Rc::from(stored),
        input: json!({"id": 7}),
        request: StartRequest::default(),
        parent: None,
        triggered_by: None,
        callback_secret: None,
        started_by: None,
        traceparent: None,
    }
}

fn child_start() -> StartRun {
    StartRun {
        run_id: "run-1~t2".into(),
        request: StartRequest {
            version: Some(3),
            timeout_ms: Some(60_000),
            budget_ms: Some(45_000),
            node_decides: true,
        },
        parent: Some(ParentLink {
            run_id: "run-1".into(),
            token_id: "t2".into(),
            epoch: 1,
            root_run_id: "run-1".into(),
            depth: 1,
            hops: 2,
            root_event: Some(event()),
        }),
        triggered_by: Some(TriggeredBy {
            event: "order.billed".into(),
            key: "8".into(),
            hops: 2,
            root: Some(event()),
        }),
        callback_secret: Some("29b1f3e2ad72e5e0d80e13f4fea3ce2e".into()),
        started_by: Some("ada".into()),
        ..start()
    }
}

fn event() -> EventRef {
    EventRef {
        event: "order.paid".into(),
        key: "7".into(),
    }
}

fn sender() -> ParentSender {
    ParentSender {
        run_id: "run-1".into(),
        token_id: Some("t2".into()),
    }
}

fn requests() -> Vec<RunRequest> {
    let page = PageRequest {
        after: 20,
        limit: 100,
    };
    vec![
        RunRequest::Start {
            command: start(),
            wait_ms: Some(30_000),
        },
        RunRequest::Start {
            command: child_start(),
            wait_ms: None,
        },
        RunRequest::Read { wait_ms: 0 },
        RunRequest::ListTokens(page),
        RunRequest::ListEvents(page),
        RunRequest::ReadLive { after: 20 },
        RunRequest::ListTimeouts(page),
        RunRequest::ListNotifications(page),
        RunRequest::ReadTimeoutLines,
        RunRequest::ReadTimeout { id: 4 },
        RunRequest::ReadResumeOptions,
        RunRequest::ReadDeliverable,
        RunRequest::Cancel { reason: None },
        RunRequest::Cancel {
            reason: Some("too late".into()),
        },
        RunRequest::Pause,
        RunRequest::Resume,
        RunRequest::Extend(Extension::By(60_000)),
        RunRequest::Extend(Extension::Until(1_700_000_000_000)),
        RunRequest::Retry {
            mode: RetryMode::RetryStep,
            token_id: None,
            version: None,
        },
        RunRequest::Retry {
            mode: RetryMode::DiscardAndRetry,
            token_id: Some("t3".into()),
            version: None,
        },
        RunRequest::Retry {
            mode: RetryMode::Escalate,
            token_id: None,
            version: None,
        },
        RunRequest::Restart {
            from_node_id: None,
            version: None,
        },
        RunRequest::Restart {
            from_node_id: Some("pay".into()),
            version: None,
        },
        RunRequest::Signal {
            name: "paid".into(),
            payload: json!({"amount": 12}),
        },
        RunRequest::DecideGate {
            gate_id: "g3".into(),
            decision: GateDecision {
                choice: "approve".into(),
                input: json!({"note": "ok"}),
                comment: Some("fine".into()),
                by: Some("ada".into()),
                at: 0,
            },
        },
        RunRequest::Callback {
            capability: "run-1~t1~1~5e0f".into(),
            body: json!({"output": 1}),
        },
        RunRequest::CancelChild {
            sender: sender(),
            reason: Some("run_cancelled".into()),
        },
        RunRequest::HoldChild {
            sender: sender(),
            number: 3,
            held: true,
            budget_ms: Some(45_000),
        },
        RunRequest::ChildStatusUpdate(ChildStatusUpdate {
            token_id: "t2".into(),
            epoch: 1,
            run_id: "run-1~t2".into(),
            number: 1,
            paused: true,
        }),
        RunRequest::ChildEnded(ChildReport {
            token_id: "t2".into(),
            epoch: 1,
            run_id: "run-1~t2".into(),
            status: RunStatus::Completed,
            output: Some(json!({"total": 12})),
            error: None,
        }),
        RunRequest::Claim {
            token_id: "t1".into(),
            epoch: 1,
            claimant: Some("message-1".into()),
        },
        RunRequest::Heartbeat {
            token_id: "t1".into(),
            epoch: 1,
            progress: None,
        },
        RunRequest::Report(TaskReport {
            token_id: "t1".into(),
            epoch: 1,
            status: ReportStatus::Completed,
            output: Some(json!({"status": 200})),
            error: None,
            steps: Vec::new(),
            partial: Vec::new(),
            checkpoint: None,
            events: Vec::new(),
            gave_up_before: None,
        }),
        RunRequest::ReportLost {
            token_id: "t1".into(),
            epoch: 1,
            message: "the executor answered with status 500".into(),
        },
        RunRequest::Probe,
        RunRequest::Abandon,
        RunRequest::ReadWorkflow,
        RunRequest::ReadRecording,
        RunRequest::Retry {
            mode: RetryMode::RetryStep,
            token_id: None,
            version: Some(version(Some("5e5e"))),
        },
        RunRequest::Restart {
            from_node_id: None,
            version: Some(version(None)),
        },
        RunRequest::Heartbeat {
            token_id: "t1".into(),
            epoch: 1,
            progress: Some(progress(2, "Dear A")),
        },
    ]
}

fn version(callback_secret: Option<&str>) -> ResolvedVersion {
    ResolvedVersion {
        stored: start().stored,
        callback_secret: callback_secret.map(str::to_string),
    }
}

#[test]
fn the_workflow_of_a_run() {
    let response = WorkflowResponse {
        workflow_id: "order".into(),
    };
    check_json("run_response_workflow.json", &json!(response));
}

#[test]
fn a_page_for_a_watcher() {
    let page = LivePage {
        last: 220,
        last_of_run: 4_321,
        ended: false,
    };
    check_json("run_response_live.json", &json!(page));
}

#[test]
fn every_request_keeps_its_shape() {
    check_json("run_requests.json", &json!(requests()));
    let stored: Vec<Value> = serde_json::from_str(&read("run_requests.json")).expect("a list");
    for request in stored {
        // From text, as the object reads it: a start keeps its workflow as text.
        let again: RunRequest = serde_json::from_str(&request.to_string()).expect("a request can be read");
        assert_eq!(json!(again), request);
    }
}

/// The envelope of requests from the API, from a caller in development, and from inside.
#[test]
fn calls() {
    let call = |caller| RunCall {
        caller,
        operation: None,
        request: RunRequest::Pause,
    };
    let workflows = WorkflowScope::new(vec!["order-*".into(), "refund".into()]).expect("valid");
    let bound = Caller {
        name: Some("ada".into()),
        workflows,
    };
    let calls = [call(Some(bound)), call(Some(Caller::default())), call(None)];
    let of_operation = RunCall {
        operation: Some("op-1".into()),
        ..call(Some(Caller::default()))
    };
    check_json("run_call_of_an_operation.json", &json!(of_operation));
    check_json("run_calls.json", &json!(calls));
    let again: Vec<RunCall> = serde_json::from_str(&read("run_calls.json")).expect("calls can be read");
    assert_eq!(json!(again), json!(calls));
}

/// `entry.mjs` writes this call by hand, and `object_request.mjs` the protocol.
#[test]
fn what_javascript_writes_by_hand() {
    let call = RunCall {
        caller: None,
        operation: None,
        request: RunRequest::Abandon,
    };
    assert_eq!(json!(call), json!({"request": "abandon"}));
    assert_eq!(REQUEST_URL, format!("http://run/requests/{PROTOCOL}"));
    let script = include_str!("../../src/worker/platform/object_request.mjs");
    assert!(script.contains(&format!("const PROTOCOL = \"{PROTOCOL}\";")));
}

#[test]
fn a_request_is_read_leniently() {
    let text = r#"{"claim": {"token_id": "t1", "epoch": 1, "priority": 3}}"#;
    assert!(matches!(
        serde_json::from_str(text),
        Ok(RunRequest::Claim { claimant: None, .. })
    ));
    // A message of a parent names its sender: one without it is refused and sent again by a newer build.
    assert!(serde_json::from_str::<RunRequest>(r#"{"hold_child": {"number": 1, "held": true}}"#).is_err());
}

/// Consumer and object may be of different builds.
#[test]
fn messages_of_the_task_queue() {
    let message = TaskMessage {
        run_id: "run-1".into(),
        token_id: "t1".into(),
        epoch: 2,
    };
    check_json("task_message.json", &json!(message));
    let again: TaskMessage = serde_json::from_str(&read("task_message.json")).expect("a message can be read");
    assert_eq!(again, message);
}

#[test]
fn responses() {
    let heartbeat = HeartbeatResponse {
        run_ends_at: Some(61_500),
    };
    check_json("run_response_heartbeat.json", &json!(heartbeat));
    check_json(
        "run_response_abandon.json",
        &json!(AbandonResponse { abandoned: true }),
    );
    let of_an_order: HeartbeatResponse = serde_json::from_str(&read("order_with_checkpoint.json"))
        .expect("an order has the field of a heartbeat");
    assert_eq!(of_an_order.run_ends_at, Some(3_601_000));
    for status in [200, 201, 400, 404, 409, 413, 422, 429, 500, 503] {
        let response = RunResponse::from_parts(status, "{}".into());
        assert_eq!(response.into_parts(), (status, "{}".to_string()));
    }
}
