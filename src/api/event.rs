//! What an event means for the workflows it triggers: the ids of their runs, and what whoever raised it hears. Pure.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::api::error::Error;
use crate::base::ids;
use crate::base::limits::{EVENT_RUNS, TRIGGERED};
use crate::run::{EVENT_LIMIT, EventRef};

/// What came of one workflow that an event triggers.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    pub workflow_id: String,
    pub outcome: Outcome,
}

impl Start {
    /// It was refused because the first event of the chain had started as many runs as it may.
    pub fn is_over_limit(&self) -> bool {
        matches!(&self.outcome, Outcome::Refused(error) if error.code == EVENT_LIMIT)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Started {
        run_id: String,
    },
    /// The same event came before.
    Known {
        run_id: String,
    },
    /// Another event came before under this key.
    Taken {
        run_id: String,
    },
    /// The workflow cannot be started with it, now or later.
    Refused(Error),
}

/// The run that an event starts of a workflow: the same whenever the same event comes, so that starting twice is starting once.
/// No part holds a `|`.
pub fn run_id(event: &str, key: &str, workflow_id: &str) -> String {
    let digest = Sha256::digest(format!("{event}|{key}|{workflow_id}"));
    let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("e-{hex}")
}

/// Keys of callers. Those that Curfew makes for emitted events hold a `/`, so that nobody can take one of them.
pub fn check_key(key: &str) -> Result<(), Error> {
    match ids::is_breaker_key(key) {
        true => Ok(()),
        false => Err(Error::new(
            400,
            "invalid_request",
            "Idempotency-Key is 1-128 characters of A-Z, a-z, 0-9, -, _, . and :",
        )),
    }
}

/// One workflow too many.
pub fn crowded(event: &str) -> Error {
    let message = format!(
        "event {event} starts {TRIGGERED} other workflows, which is the limit; take its trigger out of one of them, or let \
         one of them call this workflow"
    );
    let mut error = Error::new(409, "limit_exceeded", message);
    error.pointer = Some("/trigger/event".into());
    error
}

/// One run too many. `root` is the first event of the chain.
pub fn too_many_runs(root: &EventRef) -> Error {
    let message = format!(
        "event {} with key \"{}\" has led to {EVENT_RUNS} runs, which is the limit for one event and all that follow from \
         it; look for workflows that trigger each other, or let one of them call the others",
        root.event, root.key
    );
    let mut error = Error::new(409, EVENT_LIMIT, message);
    error.details = Some(json!({"root_event": root, "limit": EVENT_RUNS}));
    error
}

/// 202 if runs began, 200 if there was nothing to begin.
pub fn answer(event: &str, key: &str, starts: &[Start]) -> Result<(u16, Value), Error> {
    let (mut runs, mut refused, mut status) = (Vec::new(), Vec::new(), 200);
    for start in starts {
        let run =
            |id: &str, created: bool| json!({"id": id, "workflow_id": start.workflow_id, "created": created});
        match &start.outcome {
            Outcome::Started { run_id } => {
                status = 202;
                runs.push(run(run_id, true));
            }
            Outcome::Known { run_id } => runs.push(run(run_id, false)),
            Outcome::Taken { run_id } => {
                let message = format!(
                    "an event {event} with this Idempotency-Key and another payload started run \"{run_id}\"; \
                     choose another key"
                );
                return Err(Error::new(409, "key_used", message));
            }
            Outcome::Refused(error) => {
                refused.push(json!({"workflow_id": start.workflow_id, "error": error.body()["error"]}));
            }
        }
    }
    Ok((
        status,
        json!({"event": event, "key": key, "runs": runs, "refused": refused}),
    ))
}
