//! What a run decides on: facts that have already happened.

use serde_json::Value;

use crate::base::time::Millis;
use crate::protocol::task::TaskReport;
use crate::run::context::Context;
use crate::run::fan::{Instance, InstanceId};
use crate::run::message::{ChildNews, ChildReport};
use crate::run::token::{Interrupted, Token, TokenId, TokenStatus};
use crate::run::wait::callback::{CallbackResult, Capability};
use crate::run::wait::gate::GateDecision;

pub use crate::protocol::child::ParentSender;
pub use crate::protocol::run::{Extension, RetryMode};

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// The object came back into memory: no call it had made before is still open.
    Loaded,
    /// The alarm rang, and the platform cleared it before, also where it rang early. `open_calls` as below.
    AlarmRang {
        open_calls: Vec<(TokenId, u64)>,
    },
    /// A request came in, or something is due before the alarm rang. `open_calls` are the attempts whose call this object
    /// still holds.
    Woken {
        open_calls: Vec<(TokenId, u64)>,
    },
    /// What was due could not be decided, time and again: a bug. Whoever waits for the run must hear of an end all the same.
    Abandoned,
    /// An executor answered.
    TaskReported(Box<TaskReport>),
    /// A consumer took an attempt out of the queue and asks for it. `claimant` is the same when it asks again because no
    /// answer came.
    Claimed {
        token: String,
        epoch: u64,
        claimant: Option<String>,
    },
    /// Somebody brought the result of an async action.
    CallbackReceived {
        capability: Box<Capability>,
        result: Box<CallbackResult>,
    },
    /// An attempt out of the queue is still under way.
    Heartbeat {
        token: String,
        epoch: u64,
    },
    /// A call ended without an answer: the executor is gone, or said something that is no report.
    CallLost {
        token: TokenId,
        epoch: u64,
        message: String,
    },
    /// A child run ended.
    ChildEnded(Box<ChildReport>),
    /// The child of a message that starts one cannot be started, now or later.
    ChildRefused {
        id: u64,
        refusal: StartRefusal,
    },
    /// What the run that called this one asks of it. Refused if the sender is not that run.
    FromParent {
        sender: ParentSender,
        event: Box<Event>,
    },
    /// A message of the outbox arrived, or did not.
    Delivered {
        id: u64,
    },
    /// `is_gone`: there is no such run.
    DeliveryFailed {
        id: u64,
        is_gone: bool,
    },
    /// Workflows that an event of the outbox was not allowed to start: its root had started as many runs as it may.
    StartsRefused {
        id: u64,
        workflows: Vec<String>,
    },
    /// A message for many was not brought to all of them for want of room, but to those up to `after`.
    DeliveryUnfinished {
        id: u64,
        after: Option<String>,
    },
    SignalReceived {
        name: String,
        payload: Value,
    },
    GateDecided {
        gate: String,
        decision: GateDecision,
    },
    CancelRequested {
        reason: Option<String>,
    },
    PauseRequested,
    ResumeRequested,
    ExtendRequested(Extension),
    /// A run that failed or timed out goes on.
    RetryRequested {
        mode: RetryMode,
        token: Option<TokenId>,
        past: Box<Past>,
        rows: Box<RowsToGoOn>,
    },
    /// The run that called this one stands still, goes on, or has more time to give.
    ParentHolds {
        number: u64,
        held: bool,
        budget_ms: Option<u64>,
    },
    /// A child stands in front of a person, or goes on.
    ChildNews(Box<ChildNews>),
    /// The same run again: from its start, or from a node it has been at, with the state as it was then.
    RestartRequested {
        from: Option<RestartPoint>,
    },
}

/// Why a child cannot be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartRefusal {
    /// Another run has its id.
    IdTaken,
    /// What it would begin with is no row.
    TooLarge,
}

/// Everything a run has been through, as far as it takes to plan a way back: small, however much the tokens hold.
#[derive(Clone, Debug, Default)]
pub struct Past {
    pub tokens: Vec<PastToken>,
    /// Without what the branches around them had made.
    pub instances: Vec<Instance>,
}

/// What a plan needs to know of a token, live or ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PastToken {
    pub id: TokenId,
    pub node: usize,
    pub status: TokenStatus,
    /// The innermost branch it was in.
    pub branch: Option<(InstanceId, u32)>,
    pub born_order: u64,
    pub exit_order: Option<u64>,
    pub ended_at: Option<Millis>,
    pub interrupted: Option<Interrupted>,
    pub joins_at: Option<usize>,
    pub arrival: Option<u64>,
    pub has_error: bool,
    pub has_checkpoint: bool,
    /// It wrote to the context when its work was done; something did when it was born.
    pub wrote: bool,
    pub wrote_at_birth: bool,
    pub went_back_to: Option<TokenId>,
}

/// What a run that is brought back goes on with, whole: the tokens and instances of its `ResumePlan`.
#[derive(Clone, Debug, Default)]
pub struct RowsToGoOn {
    pub tokens: Vec<Token>,
    pub instances: Vec<Instance>,
}

/// Where to go on from: the node, the token that was born there, and the context as it was then (`Rewind`).
#[derive(Clone, Debug)]
pub struct RestartPoint {
    pub node: usize,
    pub target: TokenId,
    pub context: Box<Context>,
}

impl Event {
    /// It ends the run whatever is due, and must not wait for that: what is due may be what cannot be carried out.
    pub fn comes_first(&self) -> bool {
        match self {
            Event::Abandoned | Event::CancelRequested { .. } => true,
            Event::FromParent { event, .. } => event.comes_first(),
            Event::Loaded
            | Event::AlarmRang { .. }
            | Event::Woken { .. }
            | Event::TaskReported(_)
            | Event::Claimed { .. }
            | Event::CallbackReceived { .. }
            | Event::Heartbeat { .. }
            | Event::CallLost { .. }
            | Event::ChildEnded(_)
            | Event::Delivered { .. }
            | Event::DeliveryFailed { .. }
            | Event::DeliveryUnfinished { .. }
            | Event::ChildRefused { .. }
            | Event::StartsRefused { .. }
            | Event::SignalReceived { .. }
            | Event::GateDecided { .. }
            | Event::PauseRequested
            | Event::ResumeRequested
            | Event::ExtendRequested(_)
            | Event::RetryRequested { .. }
            | Event::ParentHolds { .. }
            | Event::ChildNews(_)
            | Event::RestartRequested { .. } => false,
        }
    }
}
