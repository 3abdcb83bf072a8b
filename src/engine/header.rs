//! What is true of a run as a whole, what was asked of it, and what an operator may set.

use serde_json::{Value, json};

use crate::model::failure::Failure;
use crate::model::time::{DAY, Millis, SECOND};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    Running,
    /// Every live token waits for a person or a signal.
    Waiting,
    /// The clocks stand still.
    Paused,
    Completed,
    Failed,
    TimedOut,
    Cancelled,
}

impl RunStatus {
    pub fn is_terminal(self) -> bool {
        match self {
            RunStatus::Running | RunStatus::Waiting | RunStatus::Paused => false,
            RunStatus::Completed | RunStatus::Failed | RunStatus::TimedOut | RunStatus::Cancelled => true,
        }
    }
}

/// What is true of the run as a whole. Saved when the run starts, changes status, and ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    pub id: String,
    pub workflow_id: String,
    pub version: u64,
    pub status: RunStatus,
    pub started_at: Millis,
    pub ended_at: Option<Millis>,
    pub timeout_at: Option<Millis>,
    pub timeout_ms: Option<u64>,
    pub attempt: u64,
    pub output: Option<Value>,
    pub error: Option<Failure>,
    pub reason: Option<String>,
    pub tags: Vec<String>,
    pub request: StartRequest,
    pub parent: Option<ParentLink>,
    pub root_run_id: String,
    pub depth: u32,
    /// Since when the clocks stand still.
    pub paused_at: Option<Millis>,
    /// Tokens born in earlier attempts: limits count within one.
    pub tokens_before: u64,
    /// Grows with every announcement, so that the index can tell an old message from a new one.
    pub revision: u64,
}

/// The token that waits for this run.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ParentLink {
    pub run_id: String,
    pub token_id: String,
    pub epoch: u64,
    pub root_run_id: String,
    pub depth: u32,
}

/// What the caller asked for, beyond the input: the same again is the same run.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct StartRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What is left of the parent: the run's limit, however long it would be, is cut to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_ms: Option<u64>,
}

/// What an operator may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long a run without a limit of its own may take.
    pub workflow_timeout_ms: u64,
    /// How long after its deadline an executor may still report before it counts as gone.
    pub grace_ms: u64,
    /// How often an attempt without news is looked after.
    pub watch_ms: u64,
    /// How often an attempt may vanish before its token fails.
    pub lost_max: u32,
    /// How long an ended run is kept.
    pub retention_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            workflow_timeout_ms: 3_600 * SECOND,
            grace_ms: 500,
            watch_ms: 30 * SECOND,
            lost_max: 5,
            retention_ms: 30 * DAY,
        }
    }
}

/// `run` in expressions.
pub(super) fn facts_of(header: &Header) -> Value {
    json!({
        "id": header.id,
        "started_at": header.started_at,
        "attempt": header.attempt,
    })
}
