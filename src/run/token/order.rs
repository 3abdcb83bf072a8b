//! One attempt as the host dispatches it or answers a claim with it.

use std::rc::Rc;

use serde::Serialize;
use serde_json::Value;

use crate::base::time::Millis;
use crate::protocol::task::{ActionTimeouts, Checkpoint};
use crate::run::token::TokenId;
use crate::run::token::lane::BatchKind;

/// One attempt to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptOrder {
    pub token: TokenId,
    pub epoch: u64,
    /// Index into the snapshot's tasks.
    pub task: usize,
    pub input: Rc<Value>,
    /// The attempt's own: the executor stops at it.
    pub deadline_at: Option<Millis>,
    /// When the run would end, and the call with it. The executor does not stop at it, because the run may be extended.
    pub run_ends_at: Option<Millis>,
    /// The limit of this attempt, and what set it.
    pub limit: Option<(u64, LimitSource)>,
    /// What an earlier attempt had done.
    pub checkpoint: Option<Box<Checkpoint>>,
    pub batch: BatchKind,
    /// How many calls its task makes if none has to be made again.
    pub calls: usize,
    /// The attempt is short and no other order follows from it, so it goes by a request of its own.
    pub is_short_and_last: bool,
    /// Of an async action: the credential for its callback.
    pub capability: Option<String>,
    /// The token whose work this is: the same for every attempt, also after the run was retried.
    pub work_of: TokenId,
    /// Limits of single actions, in a task of several.
    pub action_timeouts: Option<ActionTimeouts>,
}

/// What set a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitSource {
    Node,
    Task,
    Action,
    Adaptive,
    Preset,
}
