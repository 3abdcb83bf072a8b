//! Published events: the ids of the runs they start, and the response to the publisher. Pure. The run id is derived from the
//! event, so that publishing an event twice starts each run once.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::api::error::Error;
use crate::base::ids;
use crate::base::limits::{RUNS_PER_EVENT, WORKFLOWS_PER_EVENT};
use crate::run::{EVENT_LIMIT, EventRef};

/// One workflow that an event triggers.
#[derive(Clone, Debug, PartialEq)]
pub struct TriggeredStart {
    pub workflow_id: String,
    pub outcome: TriggerOutcome,
}

impl TriggeredStart {
    /// The first event of the chain has started as many runs as it may.
    pub fn is_over_limit(&self) -> bool {
        matches!(&self.outcome, TriggerOutcome::Refused(error) if error.code == EVENT_LIMIT)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum TriggerOutcome {
    Started {
        run_id: String,
    },
    /// By the same event, published before.
    AlreadyStarted {
        run_id: String,
    },
    /// An event with this key and another payload was published before.
    KeyUsed {
        run_id: String,
    },
    /// Retrying would not help.
    Refused(Error),
}

/// Unambiguous, because no part may contain a `|`.
pub fn run_id(event: &str, key: &str, workflow_id: &str) -> String {
    let digest = Sha256::digest(format!("{event}|{key}|{workflow_id}"));
    let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("e-{hex}")
}

/// Checks a caller's key. The keys of emitted events contain a `/`, so that callers cannot use one of those.
pub fn check_key(key: &str) -> Result<(), Error> {
    match ids::is_breaker_key(key) {
        true => Ok(()),
        false => Err(Error::bad_request(
            "Idempotency-Key is 1-128 characters of A-Z, a-z, 0-9, -, _, . and :",
        )),
    }
}

/// A workflow with this trigger would exceed the limit of workflows per event.
pub fn too_many_workflows(event: &str) -> Error {
    let message = format!(
        "event {event} starts {WORKFLOWS_PER_EVENT} other workflows, which is the limit; take its trigger out of one of them, or let \
         one of them call this workflow"
    );
    let mut error = Error::new(409, "limit_exceeded", message);
    error.pointer = Some("/trigger/event".into());
    error
}

/// `root` is the first event of the chain.
pub fn too_many_runs(root: &EventRef) -> Error {
    let message = format!(
        "event {} with key \"{}\" has led to {RUNS_PER_EVENT} runs, which is the limit for one event and all that follow from \
         it; look for workflows that trigger each other, or let one of them call the others",
        root.event, root.key
    );
    let mut error = Error::new(409, EVENT_LIMIT, message);
    error.details = Some(json!({"root_event": root, "limit": RUNS_PER_EVENT}));
    error
}

/// 202 if at least one run was started, otherwise 200.
pub fn response(event: &str, key: &str, starts: &[TriggeredStart]) -> Result<(u16, Value), Error> {
    let (mut runs, mut refused, mut status) = (Vec::new(), Vec::new(), 200);
    for start in starts {
        let run =
            |id: &str, created: bool| json!({"id": id, "workflow_id": start.workflow_id, "created": created});
        match &start.outcome {
            TriggerOutcome::Started { run_id } => {
                status = 202;
                runs.push(run(run_id, true));
            }
            TriggerOutcome::AlreadyStarted { run_id } => runs.push(run(run_id, false)),
            TriggerOutcome::KeyUsed { run_id } => {
                let message = format!(
                    "an event {event} with this Idempotency-Key and another payload started run \"{run_id}\"; \
                     choose another key"
                );
                return Err(Error::new(409, "key_used", message));
            }
            TriggerOutcome::Refused(error) => {
                refused.push(json!({"workflow_id": start.workflow_id, "error": error.body()["error"]}));
            }
        }
    }
    Ok((
        status,
        json!({"event": event, "key": key, "runs": runs, "refused": refused}),
    ))
}
