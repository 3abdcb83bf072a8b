//! The order for one attempt: the host dispatches it or returns it as the response to a claim.

use std::rc::Rc;

use serde::Serialize;
use serde_json::Value;

use crate::base::time::Millis;
use crate::protocol::task::{ActionTimeouts, Checkpoint};
use crate::run::token::TokenId;
use crate::run::token::lane::BatchKind;

/// The order for one attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptOrder {
    pub token: TokenId,
    pub epoch: u64,
    /// Index into the snapshot's tasks.
    pub task: usize,
    pub input: Rc<Value>,
    /// The attempt's own deadline. The executor stops at it.
    pub deadline_at: Option<Millis>,
    /// The run's deadline, which would also end the call. The executor does not stop at it, because the run may be extended.
    pub run_ends_at: Option<Millis>,
    /// The limit of this attempt, and what set it.
    pub limit: Option<(u64, LimitSource)>,
    /// The progress of an earlier attempt.
    pub checkpoint: Option<Box<Checkpoint>>,
    pub batch: BatchKind,
    /// The number of calls its task makes without retries.
    pub calls: usize,
    /// The attempt is short and no other order follows from it, so it uses a plain request.
    pub is_short_and_last: bool,
    /// The credential for the callback of an async action.
    pub capability: Option<String>,
    /// Identifies the work towards peers: the same token for every attempt, also after the run was resumed.
    pub work_of: TokenId,
    /// Limits of single actions, in a task of several steps.
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
