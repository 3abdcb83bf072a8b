//! The runs that a published event starts, and the response to the publisher.

use curfew::api::error::Error;
use curfew::api::event::{TriggerOutcome, TriggeredStart, check_key, response, run_id, too_many_workflows};
use curfew::base::ids;
use serde_json::json;

fn start(workflow_id: &str, outcome: TriggerOutcome) -> TriggeredStart {
    TriggeredStart {
        workflow_id: workflow_id.into(),
        outcome,
    }
}

/// A run that an earlier build started must not be started again by this build.
#[test]
fn an_event_always_starts_the_same_runs() {
    let id = run_id("order.paid", "run-1/1000/t3/0", "billing");
    assert_eq!(id, "e-611f25d92df1541630cd8dd3729a704d");
    assert!(ids::is_run_id(&id));
    for other in [
        run_id("order.paid", "run-1/1000/t3/0", "shipping"),
        run_id("order.paid", "run-1/1000/t3/1", "billing"),
        run_id("order.made", "run-1/1000/t3/0", "billing"),
    ] {
        assert_ne!(id, other);
    }
}

#[test]
fn keys_of_callers_are_not_those_of_runs() {
    for key in ["a", "order:7", "5a1f-9", &"x".repeat(128)] {
        assert_eq!(check_key(key), Ok(()));
    }
    for key in ["", "run-1/1000/t3/0", "a b", &"x".repeat(129)] {
        assert_eq!(check_key(key).expect_err(key).status, 400);
    }
}

#[test]
fn the_response_lists_every_workflow() {
    let (started, already_started) = (
        TriggerOutcome::Started { run_id: "e-1".into() },
        TriggerOutcome::AlreadyStarted { run_id: "e-2".into() },
    );
    let refused = TriggerOutcome::Refused(Error::new(422, "invalid_input", "no"));
    let starts = [
        start("a", started),
        start("b", already_started.clone()),
        start("c", refused),
    ];
    assert_eq!(
        response("news", "k", &starts),
        Ok((
            202,
            json!({
                "event": "news", "key": "k",
                "runs": [{"id": "e-1", "workflow_id": "a", "created": true}, {"id": "e-2", "workflow_id": "b", "created": false}],
                "refused": [{"workflow_id": "c", "error": {"code": "invalid_input", "message": "no"}}],
            })
        ))
    );
    let nothing = json!({"event": "news", "key": "k", "runs": [], "refused": []});
    assert_eq!(response("news", "k", &[]), Ok((200, nothing)));
    assert_eq!(
        response("news", "k", &starts[1..2]).map(|(status, _)| status),
        Ok(200)
    );
    let used = start("d", TriggerOutcome::KeyUsed { run_id: "e-3".into() });
    let error = response("news", "k", &[used]).expect_err("the key was used");
    assert_eq!((error.status, error.code), (409, "key_used"));
    assert_eq!(
        too_many_workflows("news").pointer.as_deref(),
        Some("/trigger/event")
    );
}
