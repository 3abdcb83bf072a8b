//! Messages between a run and the runs it calls. They are saved in the sender's outbox until they arrive, so their JSON is
//! pinned.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::failure::Failure;

/// The parent run that sends a request, and its token that waits for the child.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentSender {
    pub run_id: String,
    /// Absent in messages that an older build saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_id: Option<String>,
}

/// A child started or stopped waiting for a decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildStatusUpdate {
    pub token_id: String,
    pub epoch: u64,
    pub run_id: String,
    /// Messages may overtake each other: only the highest number counts.
    pub number: u64,
    pub paused: bool,
}

/// A child ended.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    Running,
    /// Every live token waits for a decision or a signal.
    Waiting,
    /// Every clock of the run is stopped.
    Paused,
    /// Its end is decided; compensations and end handlers run before it.
    Compensating,
    Completed,
    Failed,
    TimedOut,
    Cancelled,
}

impl RunStatus {
    pub const ALL: [RunStatus; 8] = [
        RunStatus::Running,
        RunStatus::Waiting,
        RunStatus::Paused,
        RunStatus::Compensating,
        RunStatus::Completed,
        RunStatus::Failed,
        RunStatus::TimedOut,
        RunStatus::Cancelled,
    ];

    /// The name in rows, views and queries.
    pub fn name(self) -> &'static str {
        match self {
            RunStatus::Running => "running",
            RunStatus::Waiting => "waiting",
            RunStatus::Paused => "paused",
            RunStatus::Compensating => "compensating",
            RunStatus::Completed => "completed",
            RunStatus::Failed => "failed",
            RunStatus::TimedOut => "timed_out",
            RunStatus::Cancelled => "cancelled",
        }
    }

    pub fn is_terminal(self) -> bool {
        match self {
            RunStatus::Running | RunStatus::Waiting | RunStatus::Paused | RunStatus::Compensating => false,
            RunStatus::Completed | RunStatus::Failed | RunStatus::TimedOut | RunStatus::Cancelled => true,
        }
    }
}
