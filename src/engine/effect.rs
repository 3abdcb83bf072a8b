//! What goes into the engine and what comes out. Events are facts, effects are orders; an effect is final:
//! whoever performs it asks no further question.

use std::rc::Rc;

use serde_json::Value;

use super::run::Header;
use super::token::{Token, TokenId};
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
    CancelRequested {
        reason: Option<String>,
    },
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
    SaveToken(Box<Token>),
    SetAlarm(Millis),
    /// Nothing of the run is needed any more.
    DeleteStorage,
    Dispatch(Order),
    /// Cancel the call of this attempt; its answer no longer counts.
    Abort {
        token: TokenId,
        epoch: u64,
    },
    /// Tell the index how the run stands.
    Announce,
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

/// An expected "no": nothing changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The result is not of the token's current attempt.
    StaleAttempt { token: String, epoch: u64 },
    /// The run has ended.
    RunFinished,
}
