//! What a caller of the API reads when a run rejects a request.

use serde_json::json;

use crate::api::callback;
use crate::api::error::Error;
use crate::base::limits::{BUFFERED_SIGNALS, BUFFERED_SIGNALS_BYTES};
use crate::run::{FourEyes, Misfit, PauseReason, Rejection, RunStatus};

pub fn response(rejection: &Rejection) -> Error {
    match rejection {
        Rejection::RunFinished => Error::new(409, "run_finished", "the run has ended and cannot be changed"),
        Rejection::Ending => Error::new(
            409,
            "run_ending",
            "the end of the run is decided: its compensations and end handlers run, and nothing changes that",
        ),
        Rejection::StaleAttempt { token, epoch } => Error::new(
            409,
            "stale_attempt",
            format!("attempt {epoch} of token {token} is not the current one"),
        ),
        Rejection::NotParent { run_id } => Error::new(
            409,
            "not_the_parent",
            format!("run \"{run_id}\" did not start this run and cannot hold or cancel it as its parent"),
        ),
        Rejection::NotChild { run_id } => Error::new(
            409,
            "not_the_child",
            format!("run \"{run_id}\" is not the child that the token waits for"),
        ),
        Rejection::PausedFor { holder, gate } => not_paused_by_request(*holder, gate.as_deref()),
        Rejection::CannotExtend(status) => cannot_extend(*status),
        Rejection::LimitOfParent => Error::new(
            409,
            "limit_of_parent",
            "the limit is that of the node that called this run; give that node more time, or none, in its workflow",
        ),
        Rejection::NoDeadline => Error::new(409, "no_timeout", "the run has no limit that could be extended"),
        Rejection::InvalidExtension { pointer, message } => Error::invalid_request(pointer, message.as_str()),
        Rejection::NotEnded => Error::new(
            409,
            "run_not_ended",
            "the run has not ended; extend, pause, cancel or restart it instead",
        ),
        Rejection::NotResumable(message) => Error::new(409, "not_resumable", message.as_str()),
        Rejection::Paused => Error::new(409, "paused", "the run is paused: nothing new begins"),
        Rejection::NotPaused => Error::new(409, "not_paused", "the run is not paused"),
        Rejection::UnknownCallback => callback::unknown(),
        Rejection::UnknownGate => Error::not_found("the gate"),
        Rejection::GateClosed(gate) => {
            let mut error = Error::new(409, "gate_closed", "the gate was decided before");
            error.details = Some(json!({"status": gate.status, "decision": gate.decision}));
            error
        }
        Rejection::FourEyes(why) => four_eyes(why),
        Rejection::InvalidDecision { pointer, message } => Error::invalid_request(pointer, message.as_str()),
        Rejection::VersionDoesNotFit { version, misfits } => version_does_not_fit(*version, misfits),
        Rejection::NoWayBack(message) => Error::new(409, "no_way_back", message.as_str()),
        Rejection::TooManySignals => Error::new(
            429,
            "too_many_signals",
            format!(
                "the run keeps {BUFFERED_SIGNALS} signals, and {BUFFERED_SIGNALS_BYTES} bytes of them, until one of its waits hears \
                 them; send it again later"
            ),
        ),
        Rejection::UnknownSignal { name, known } => unknown_signal(name, known),
        Rejection::TooLarge(too_large) => Error::too_large(too_large),
    }
}

fn version_does_not_fit(version: u64, misfits: &[Misfit]) -> Error {
    let first = misfits
        .first()
        .map_or_else(String::new, |misfit| match &misfit.node_id {
            Some(node_id) => format!(": node \"{node_id}\": {}", misfit.reason),
            None => format!(": {}", misfit.reason),
        });
    let others = match misfits.len().saturating_sub(1) {
        0 => String::new(),
        others => format!(" (and {others} more in details)"),
    };
    let message = format!(
        "the run cannot go on with version {version}{first}{others}; store a version that fits, or restart the run from the start"
    );
    let mut error = Error::new(409, "version_does_not_fit", message);
    let details = misfits.iter().map(|misfit| {
        let mut detail = json!({"node_id": misfit.node_id, "reason": misfit.reason});
        if let Some(token) = misfit.token {
            detail["token_id"] = json!(token.to_string());
        }
        detail
    });
    error.details = Some(details.collect());
    error
}

fn not_paused_by_request(holder: PauseReason, gate: Option<&str>) -> Error {
    match (holder, gate) {
        (PauseReason::Parent, _) => Error::new(
            409,
            "paused_by_parent",
            "the run stands still with the run that called it; resume that one",
        ),
        (PauseReason::WorkflowTimeout | PauseReason::Escalation | PauseReason::Person, gate) => {
            let mut error = Error::new(
                409,
                "decision_needed",
                "the run waits for a decision: decide its gate, or extend it",
            );
            error.details = Some(json!({"gate_id": gate}));
            error
        }
    }
}

fn four_eyes(why: &FourEyes) -> Error {
    let names = "this gate has four_eyes: the names of those who start and decide are compared";
    let message = match why {
        FourEyes::SameName(name) => format!(
            "\"{name}\" started this run, and a gate with four_eyes is decided by another person; ask a colleague to decide"
        ),
        FourEyes::UnnamedDecision => format!(
            "{names}, and this decision has no name; decide with a credential that has one (in development: {{\"by\": ...}})"
        ),
        FourEyes::UnnamedStart => format!(
            "{names}, and this run was started without a name; cancel it and start it with a credential that has one (in \
             development: {{\"by\": ...}})"
        ),
    };
    Error::new(403, "four_eyes", message)
}

fn unknown_signal(name: &str, known: &[String]) -> Error {
    let waits = match known {
        [] => "it has no wait for a signal".to_string(),
        [_, ..] => format!("it waits for {}", known.join(", ")),
    };
    let message = format!("no wait of the run's workflow is for signal \"{name}\": {waits}");
    Error::new(404, "unknown_signal", message)
}

/// Says what can be done instead.
fn cannot_extend(status: RunStatus) -> Error {
    match status {
        RunStatus::Failed | RunStatus::TimedOut => Error::new(
            409,
            "run_finished",
            "the run has ended; POST .../retry {\"mode\": \"retry_step\"} lets it go on with a new deadline, \
             GET .../resume says which ways are open",
        ),
        RunStatus::Running
        | RunStatus::Waiting
        | RunStatus::Paused
        | RunStatus::Compensating
        | RunStatus::Completed
        | RunStatus::Cancelled => Error::new(
            409,
            "run_finished",
            "the run has ended; POST .../restart begins it again",
        ),
    }
}
