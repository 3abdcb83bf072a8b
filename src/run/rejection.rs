//! Why an event was not accepted: a typed, expected answer.

use crate::base::limits::TooLarge;
use crate::run::header::{PauseReason, RunStatus};
use crate::run::wait::gate::GateState;

/// An expected "no": nothing changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Rejection {
    /// The result is not of the token's current attempt.
    StaleAttempt {
        token: String,
        epoch: u64,
    },
    /// The run has ended.
    RunFinished,
    /// The sender is not the parent of this run.
    NotParent {
        run_id: String,
    },
    /// The reporting run is not the child that the token waits for.
    NotChild {
        run_id: String,
    },
    /// The clocks stand still: nothing new begins.
    Paused,
    /// Only a paused run can be resumed.
    NotPaused,
    /// Only a person's pause ends with a resume; the others end where they came from.
    PausedFor {
        holder: PauseReason,
        gate: Option<String>,
    },
    /// The run has ended; how says what can be done instead.
    CannotExtend(RunStatus),
    /// The limit is that of the node that called the run: only its own run could give more.
    LimitOfParent,
    /// The run has no limit that could be extended.
    NoDeadline,
    InvalidExtension {
        pointer: &'static str,
        message: String,
    },
    /// Only a run that ended can be brought back.
    NotEnded,
    /// The run cannot be brought back; the message says why.
    NotResumable(String),
    UnknownGate,
    /// No capability of this run.
    UnknownCallback,
    /// Somebody decided before, or time did.
    GateClosed(Box<GateState>),
    InvalidDecision {
        pointer: String,
        message: String,
    },
    TooManySignals,
    /// What was brought is larger than what can be kept.
    TooLarge(TooLarge),
    /// The node cannot be gone back to; the message says why.
    NoWayBack(String),
}
