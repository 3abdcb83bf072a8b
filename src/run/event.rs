//! The input of a run's decisions: facts that have already happened.

use std::rc::Rc;

use serde_json::Value;

use crate::base::time::Millis;
use crate::protocol::notification::NotificationReport;
use crate::protocol::task::{StepProgress, TaskReport};
use crate::run::context::Context;
use crate::run::fan::{Instance, InstanceId, InstanceStatus};
use crate::run::message::{ChildReport, ChildStatusUpdate};
use crate::run::recovery::compensate::ReadRows;
use crate::run::recovery::version::{Misfit, NewVersion};
use crate::run::token::{Interrupted, Token, TokenId, TokenStatus};
use crate::run::wait::callback::CallbackResult;
use crate::run::wait::capability::Capability;
use crate::run::wait::gate::GateDecision;

pub use crate::protocol::child::ParentSender;
pub use crate::protocol::run::{Extension, RetryMode};

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// The object was loaded into memory: none of its earlier calls is still open.
    Loaded,
    /// The alarm fired, possibly early. The platform has already cleared it. `open_calls` as in `Woken`.
    AlarmFired {
        open_calls: Vec<(TokenId, u64)>,
    },
    /// A request arrived, or something became due before the alarm fired. `open_calls` are the attempts whose call this
    /// object still holds open.
    Woken {
        open_calls: Vec<(TokenId, u64)>,
    },
    /// Handling due work failed repeatedly, which is a bug. The run ends, so that its parent and its waiting callers get a
    /// result.
    Abandoned,
    /// An executor reported the result of an attempt.
    TaskReported(Box<TaskReport>),
    /// A queue consumer claims an attempt. `claimant` is the same when the claim is repeated because its response was lost.
    Claimed {
        token: String,
        epoch: u64,
        claimant: Option<String>,
    },
    /// The callback of an async action arrived.
    CallbackReceived {
        capability: Box<Capability>,
        result: Box<CallbackResult>,
    },
    /// An attempt is still running. `progress`: how far it has come, if that has changed.
    Heartbeat {
        token: String,
        epoch: u64,
        progress: Option<Box<StepProgress>>,
    },
    /// A call ended without a valid report.
    CallLost {
        token: TokenId,
        epoch: u64,
        message: String,
    },
    /// A child run ended.
    ChildEnded(Box<ChildReport>),
    /// The child of `StartChild` message `id` can never be started.
    ChildRefused {
        id: u64,
        refusal: StartRefusal,
    },
    /// A request of the parent run. Rejected if the sender is not the parent.
    FromParent {
        sender: ParentSender,
        event: Box<Event>,
    },
    /// An outbox message was delivered.
    Delivered {
        id: u64,
    },
    /// An outbox message was not delivered. `is_gone`: the receiving run does not exist.
    DeliveryFailed {
        id: u64,
        is_gone: bool,
    },
    /// Workflows that an emitted event could not start, because its root event has started the maximum number of runs.
    StartsRefused {
        id: u64,
        workflows: Vec<String>,
    },
    /// The call budget ran out while an emitted event was delivered: only workflows up to `after` have received it.
    DeliveryUnfinished {
        id: u64,
        after: Option<String>,
    },
    /// An executor tried to deliver a notification, or could not be reached.
    NotificationAnswered {
        number: u64,
        report: NotificationReport,
    },
    SignalReceived {
        name: String,
        payload: Value,
        by: Option<String>,
    },
    GateDecided {
        gate: String,
        decision: GateDecision,
    },
    /// `by`, here and below, is the name of the caller, if it has one.
    CancelRequested {
        reason: Option<String>,
        by: Option<String>,
    },
    PauseRequested {
        by: Option<String>,
    },
    ResumeRequested {
        by: Option<String>,
    },
    ExtendRequested {
        extension: Extension,
        by: Option<String>,
        /// The bulk operation that asks for it. It may ask twice, which counts once.
        operation: Option<String>,
    },
    /// A run that failed or timed out is to be resumed, on its own version or on another one. `rows` are read for that version.
    RetryRequested {
        by: Option<String>,
        mode: RetryMode,
        token: Option<TokenId>,
        version: Option<NewVersion>,
        past: Box<Past>,
        rows: Box<ResumeRows>,
    },
    /// The parent run was paused, resumed, or given more time.
    ParentHolds {
        number: u64,
        held: bool,
        budget_ms: Option<u64>,
    },
    /// A child began or stopped waiting for a person.
    ChildStatusUpdate(Box<ChildStatusUpdate>),
    /// The rows that `Run::needed_rows` asked for.
    RowsRead(ReadRows),
    /// Restart the run from the beginning, or from a node it has visited with the context as it was then. On another version
    /// the run's history is needed.
    RestartRequested {
        from: Option<RestartPoint>,
        by: Option<String>,
        version: Option<(NewVersion, Box<Past>)>,
    },
}

/// Why a child cannot be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartRefusal {
    /// Another run already has its id.
    IdTaken,
    /// Its snapshot or input does not fit in a row.
    TooLarge,
}

/// The part of a run's history that planning a resume or restart needs. It stays small however large the tokens' values are.
/// Nodes go by their ids: the version that the run has now may lack nodes of the version that a token ran on.
#[derive(Clone, Debug, Default)]
pub struct Past {
    pub tokens: Vec<TokenSummary>,
    pub instances: Vec<InstanceSummary>,
}

/// The facts about a live or ended token that a plan needs.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenSummary {
    pub id: TokenId,
    pub node_id: Rc<str>,
    pub status: TokenStatus,
    /// The innermost branch it was in.
    pub branch: Option<(InstanceId, u32)>,
    pub created_order: u64,
    pub exit_order: Option<u64>,
    pub ended_at: Option<Millis>,
    pub interrupted: Option<Interrupted>,
    /// The node of the join that it waited at.
    pub joins_at: Option<Rc<str>>,
    pub has_error: bool,
    pub has_checkpoint: bool,
    /// The context was written when the token completed (`wrote`), or when it was created (`wrote_at_creation`).
    pub wrote: bool,
    pub wrote_at_creation: bool,
    pub went_back_to: Option<TokenId>,
    /// Its work was done.
    pub has_output: bool,
    /// The token whose work it continued.
    pub work_of: Option<TokenId>,
    /// The token whose work it undid.
    pub compensates: Option<TokenId>,
}

/// The facts about an open or closed instance that a plan needs.
#[derive(Clone, Debug, PartialEq)]
pub struct InstanceSummary {
    pub id: InstanceId,
    pub group: String,
    pub total: u32,
    /// The branch it was created in.
    pub parent: Option<(InstanceId, u32)>,
    pub status: InstanceStatus,
    pub has_fired: bool,
}

/// The complete rows that a resumed run continues with: the tokens and instances of its `ResumePlan`.
#[derive(Clone, Debug, Default)]
pub struct ResumeRows {
    pub tokens: Vec<Token>,
    pub instances: Vec<Instance>,
    /// Rows that refer to nodes or joins which the version does not have.
    pub misfits: Vec<Misfit>,
}

/// Where a restart continues: the node, the token that was created there, and the context at that time (`Rewind`).
#[derive(Clone, Debug)]
pub struct RestartPoint {
    pub node: usize,
    pub target: TokenId,
    pub context: Box<Context>,
}

impl Event {
    /// Events that end the run are handled before due work, because the due work may be what keeps failing.
    pub fn comes_first(&self) -> bool {
        match self {
            Event::Abandoned | Event::CancelRequested { .. } => true,
            Event::FromParent { event, .. } => event.comes_first(),
            Event::Loaded
            | Event::AlarmFired { .. }
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
            | Event::NotificationAnswered { .. }
            | Event::SignalReceived { .. }
            | Event::GateDecided { .. }
            | Event::PauseRequested { .. }
            | Event::ResumeRequested { .. }
            | Event::ExtendRequested { .. }
            | Event::RetryRequested { .. }
            | Event::ParentHolds { .. }
            | Event::ChildStatusUpdate(_)
            | Event::RowsRead(_)
            | Event::RestartRequested { .. } => false,
        }
    }
}
