//! What goes into the engine and what comes out. Events are facts, effects are orders; an effect is final:
//! whoever performs it asks no further question.

use std::rc::Rc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::failure::Failure;
use crate::base::limits::TooLarge;
use crate::base::time::Millis;
use crate::protocol::task::{ActionTimeouts, Checkpoint, TaskReport};
use crate::run::context::Context;
use crate::run::fan::instances::{Instance, InstanceId};
use crate::run::header::{EventRef, Header, PauseReason, RunStatus};
use crate::run::time::event_log::RunEvent;
use crate::run::token::lane::BatchKind;
use crate::run::token::{Interrupted, Token, TokenId, TokenStatus};
use crate::run::wait::callback::{Capability, Outcome};
use crate::run::wait::gate::{GateDecision, GateState};

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
        outcome: Box<Outcome>,
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

/// Who asks something of a run as its parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentSender {
    pub run_id: String,
    /// Messages that an older build has saved do not name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_id: Option<String>,
}

/// Why a child cannot be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartRefusal {
    /// Another run has its id.
    IdTaken,
    /// What it would begin with is no row.
    TooLarge,
}

/// How much more time a run gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    By(u64),
    Until(Millis),
}

/// How a run that ended goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryMode {
    /// From the failed tokens, with the state as it is and what their attempts had done.
    RetryStep,
    /// From the failed tokens, without what they had done.
    DiscardAndRetry,
    /// Ready to go on, in front of a person.
    Escalate,
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

/// Something to do. Saves come first and are committed together; orders are performed after the commit.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// As text.
    SaveSnapshot(Rc<str>),
    SaveInput(Rc<Value>),
    SaveRun(Box<Header>),
    /// `key` is `state.<name>` or `output.<name>`; the text is JSON, or `context::GONE`.
    SaveContext {
        key: String,
        text: String,
    },
    DeleteContext {
        key: String,
    },
    SaveToken(Box<Token>),
    SaveInstance(Box<Instance>),
    SaveGate(Box<GateState>),
    SaveEvent(Box<RunEvent>),
    /// Signals that came before anybody waited for them.
    SaveSignals {
        name: String,
        payloads: Vec<Value>,
    },
    SaveMessage {
        id: u64,
        message: Message,
    },
    DeleteMessage {
        id: u64,
    },
    /// What woke the run was saved: earlier failures to do so do not count any more.
    ForgetFailedWakes,
    SetAlarm(Millis),
    /// Nothing of the run is needed any more.
    DeleteStorage,
    Dispatch(Order),
    /// Ring for whoever takes attempts out of the queue.
    Enqueue {
        token: TokenId,
        epoch: u64,
    },
    /// The answer to a claim.
    Hand(Order),
    /// Cancel the call of this attempt; its answer no longer counts.
    Abort {
        token: TokenId,
        epoch: u64,
    },
    /// Send a message of the outbox; its fate comes back as an event.
    Deliver {
        id: u64,
        message: Message,
    },
    /// Tell the index how the run stands.
    Announce,
    AnnounceGate(Box<GateState>),
    /// Tell the index how long a node took whose limit is learnt from that.
    AnnounceLatency {
        node_id: String,
        token: TokenId,
        millis: u64,
    },
    /// Wake everybody who waits for the end.
    RunEnded,
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

impl Effect {
    /// The attempt that is to be made by a call.
    pub fn order(&self) -> Option<&Order> {
        if let Effect::Dispatch(order) = self {
            Some(order)
        } else {
            None
        }
    }
}

/// One attempt to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    pub token: TokenId,
    pub epoch: u64,
    /// Index into the snapshot's tasks.
    pub task: usize,
    pub input: Rc<Value>,
    /// The attempt's own: the executor stops at it.
    pub deadline_at: Option<Millis>,
    /// When the run would end, and the call with it. The executor does not stop at it, because the run may be extended.
    pub run_ends_at: Option<Millis>,
    /// The limit of this attempt, and whose word it is.
    pub limit: Option<(u64, LimitSource)>,
    /// What an earlier attempt had done.
    pub checkpoint: Option<Box<Checkpoint>>,
    pub company: BatchKind,
    /// How many calls its task makes if none has to be made again.
    pub calls: usize,
    /// Over soon, and no other order comes of it: it goes by a request of its own.
    pub is_short_and_last: bool,
    /// Of an async action: what its result is brought with.
    pub capability: Option<String>,
    /// The token whose work this is: the same for every attempt, also after the run was brought back.
    pub work_of: TokenId,
    /// Limits of single actions, in a task of several.
    pub action_timeouts: Option<ActionTimeouts>,
}

/// Who set a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitSource {
    Node,
    Task,
    Action,
    Adaptive,
    Preset,
}

/// What must reach another run's object, however often it takes. Persisted until it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Message {
    StartChild {
        run_id: String,
        node_id: String,
        token_id: String,
        epoch: u64,
        input: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
        /// What is left of the parent, if the child may not have more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget_ms: Option<u64>,
        /// The limit is the node's: the child ends when it passes.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        node_decides: bool,
    },
    /// Stand still, or go on. A word with a lower number than one that was heard means nothing any more.
    HoldChild {
        run_id: String,
        number: u64,
        held: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget_ms: Option<u64>,
        /// The token that waits for the child.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token_id: Option<String>,
    },
    CancelChild {
        run_id: String,
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token_id: Option<String>,
    },
    NotifyParent {
        run_id: String,
        report: ChildReport,
    },
    TellParent {
        run_id: String,
        news: ChildNews,
    },
    /// An event for every workflow that it triggers. Whoever hears the key again has heard it before.
    Emit {
        key: String,
        name: String,
        payload: Value,
        /// How many events lead to the runs it starts.
        hops: u32,
        /// Workflows up to this one have heard it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
        /// The first of the events that lead to the runs it starts, where this one is not it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        root: Option<EventRef>,
    },
}

/// That a child stands in front of a person or goes on, as its parent is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildNews {
    pub token_id: String,
    pub epoch: u64,
    pub run_id: String,
    /// News may overtake each other: the higher number counts.
    pub number: u64,
    pub paused: bool,
}

/// How a child ended, as its parent is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildReport {
    pub token_id: String,
    pub epoch: u64,
    pub run_id: String,
    pub status: RunStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

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
