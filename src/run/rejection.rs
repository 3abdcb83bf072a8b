//! Why an event was not accepted: a typed, expected response.

use crate::base::limits::TooLarge;
use crate::run::header::{PauseReason, RunStatus};
use crate::run::recovery::version::Misfit;
use crate::run::wait::gate::GateState;

/// An expected refusal: nothing changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Rejection {
    /// The report does not belong to the token's current attempt.
    StaleAttempt {
        token: String,
        epoch: u64,
    },
    /// The run has ended.
    RunFinished,
    /// The run's end is decided.
    Ending,
    /// The sender is not the parent of this run.
    NotParent {
        run_id: String,
    },
    /// The reporting run is not the child that the token waits for.
    NotChild {
        run_id: String,
    },
    /// The run is paused: no new attempt begins.
    Paused,
    /// Only a paused run can be resumed.
    NotPaused,
    /// Only a user's pause ends with a resume request; the others end with their cause.
    PausedFor {
        holder: PauseReason,
        gate: Option<String>,
    },
    /// The run has ended. Its status decides what can be done instead.
    CannotExtend(RunStatus),
    /// The limit was set by the calling node, so only the parent run could extend it.
    LimitOfParent,
    /// The run has no limit that could be extended.
    NoDeadline,
    InvalidExtension {
        pointer: &'static str,
        message: String,
    },
    /// Only an ended run can be resumed or restarted.
    NotEnded,
    /// The run cannot be resumed; the message says why.
    NotResumable(String),
    UnknownGate,
    /// The capability does not belong to this run.
    UnknownCallback,
    /// The gate was already decided or has timed out.
    GateClosed(Box<GateState>),
    /// The gate needs another person than the one who started the run.
    FourEyes(FourEyes),
    InvalidDecision {
        pointer: String,
        message: String,
    },
    TooManySignals,
    /// No wait of the workflow is for a signal of this name. The names that it has waits for.
    UnknownSignal {
        name: String,
        known: Vec<String>,
    },
    /// A value in the request exceeds its size limit.
    TooLarge(TooLarge),
    /// The run cannot go on with this version; the misfits say why.
    VersionDoesNotFit {
        version: u64,
        misfits: Vec<Misfit>,
    },
    /// The run cannot restart from that node; the message says why.
    NoWayBack(String),
}

/// Why a gate with `four_eyes` refuses a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FourEyes {
    /// The decision comes from the caller that started the run.
    SameName(String),
    /// The decision has no name.
    UnnamedDecision,
    /// The run was started without a name.
    UnnamedStart,
}
