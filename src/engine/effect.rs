//! What goes into the engine and what comes out. Events are facts, effects are orders; an effect is final:
//! whoever performs it asks no further question.

use std::rc::Rc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::branch::Instance;
use super::gate::{Decision, GateState};
use super::header::{Header, RunStatus};
use super::token::{Token, TokenId};
use crate::model::failure::Failure;
use crate::model::snapshot::Stored;
use crate::model::time::Millis;
use crate::wire::TaskReport;

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// The object came back into memory: no call it had made before is still open.
    Loaded,
    /// The alarm rang, or somebody knocked. `open_calls` are the attempts whose call this object still holds.
    Woken {
        open_calls: Vec<(TokenId, u64)>,
    },
    /// An executor answered.
    TaskReported(Box<TaskReport>),
    /// A call ended without an answer: the executor is gone, or said something that is no report.
    CallLost {
        token: TokenId,
        epoch: u64,
        message: String,
    },
    /// A child run ended.
    ChildEnded(Box<ChildReport>),
    /// A message of the outbox arrived, or did not.
    Delivered {
        id: u64,
    },
    /// `is_gone`: there is no such run.
    DeliveryFailed {
        id: u64,
        is_gone: bool,
    },
    SignalReceived {
        name: String,
        payload: Value,
    },
    GateDecided {
        gate: String,
        decision: Decision,
    },
    CancelRequested {
        reason: Option<String>,
    },
    PauseRequested,
    ResumeRequested,
    /// The same run again: from its start, or from a node it has been at, with the state as it was then.
    RestartRequested {
        from: Option<RestartPoint>,
    },
}

/// Where to go on from, and the past it takes to get there.
#[derive(Clone, Debug)]
pub struct RestartPoint {
    pub node: usize,
    pub history: Vec<PastToken>,
}

/// What a restart needs to know of a token.
#[derive(Clone, Debug)]
pub struct PastToken {
    pub id: TokenId,
    pub node: usize,
    pub in_branch: bool,
    pub born_order: u64,
    pub exit_order: Option<u64>,
    pub undo: Vec<(String, Option<Value>)>,
    pub merge_undo: Vec<(String, Option<Value>)>,
}

/// Something to do. Saves come first and are committed together; orders are performed after the commit.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    SaveSnapshot(Rc<Stored>),
    SaveInput(Rc<Value>),
    SaveRun(Box<Header>),
    /// `key` is `state.<name>` or `output.<name>`; the text is what was measured against the limit.
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
    SetAlarm(Millis),
    /// Nothing of the run is needed any more.
    DeleteStorage,
    Dispatch(Order),
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
    /// Wake everybody who waits for the end.
    RunEnded,
}

/// One attempt to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    pub token: TokenId,
    pub epoch: u64,
    /// Index into the snapshot's tasks.
    pub task: usize,
    pub input: Rc<Value>,
    pub deadline_at: Option<Millis>,
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
    },
    CancelChild {
        run_id: String,
        reason: String,
    },
    NotifyParent {
        run_id: String,
        report: ChildReport,
    },
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
    /// Only a paused run can be resumed.
    NotPaused,
    UnknownGate,
    /// Somebody decided before, or time did.
    GateClosed(Box<GateState>),
    InvalidDecision {
        pointer: String,
        message: String,
    },
    TooManySignals,
    /// The node cannot be gone back to; the message says why.
    NoWayBack(String),
}
