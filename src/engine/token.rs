//! A token: one point of control moving through the graph, and the moves it may make.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::branch::Branch;
use crate::model::failure::Failure;
use crate::model::time::Millis;
use crate::wire::StepReport;

/// Tokens of a run are numbered in the order of their birth, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenId(pub u64);

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{}", self.0)
    }
}

impl TokenId {
    pub fn parse(text: &str) -> Option<TokenId> {
        let id = text.strip_prefix('t')?.parse().ok().map(TokenId)?;
        // One token, one spelling.
        (id.to_string() == text).then_some(id)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenStatus {
    /// Born, or waiting for its next attempt.
    Pending,
    /// An attempt is under way; a deadline or a watch stands behind it.
    Executing,
    /// At a join, its own work done.
    WaitingForSiblings,
    /// A child run does the work.
    WaitingForSubworkflow,
    /// At a gate: a person decides.
    AwaitingHuman,
    /// Waits for a moment or a signal.
    Suspended,
    Completed,
    Failed,
    TimedOut,
    Cancelled,
}

impl TokenStatus {
    pub const ALL: [TokenStatus; 10] = [
        TokenStatus::Pending,
        TokenStatus::Executing,
        TokenStatus::WaitingForSiblings,
        TokenStatus::WaitingForSubworkflow,
        TokenStatus::AwaitingHuman,
        TokenStatus::Suspended,
        TokenStatus::Completed,
        TokenStatus::Failed,
        TokenStatus::TimedOut,
        TokenStatus::Cancelled,
    ];

    pub fn name(self) -> &'static str {
        match self {
            TokenStatus::Pending => "pending",
            TokenStatus::Executing => "executing",
            TokenStatus::WaitingForSiblings => "waiting_for_siblings",
            TokenStatus::WaitingForSubworkflow => "waiting_for_subworkflow",
            TokenStatus::AwaitingHuman => "awaiting_human",
            TokenStatus::Suspended => "suspended",
            TokenStatus::Completed => "completed",
            TokenStatus::Failed => "failed",
            TokenStatus::TimedOut => "timed_out",
            TokenStatus::Cancelled => "cancelled",
        }
    }

    pub fn is_terminal(self) -> bool {
        match self {
            TokenStatus::Pending
            | TokenStatus::Executing
            | TokenStatus::WaitingForSiblings
            | TokenStatus::WaitingForSubworkflow
            | TokenStatus::AwaitingHuman
            | TokenStatus::Suspended => false,
            TokenStatus::Completed | TokenStatus::Failed | TokenStatus::TimedOut | TokenStatus::Cancelled => {
                true
            }
        }
    }

    /// The moves a token may make. Terminal tokens never move.
    pub fn may_become(self, next: TokenStatus) -> bool {
        use TokenStatus::*;
        match self {
            // A pass-through node completes where it is born; a mapping may fail before any attempt.
            Pending => next != Pending,
            // Back to pending: the attempt is over and another will be made.
            Executing | WaitingForSubworkflow => {
                matches!(
                    next,
                    Pending | WaitingForSiblings | Completed | Failed | TimedOut | Cancelled
                )
            }
            AwaitingHuman | Suspended => {
                matches!(
                    next,
                    WaitingForSiblings | Completed | Failed | TimedOut | Cancelled
                )
            }
            WaitingForSiblings => matches!(next, Completed | Failed | TimedOut | Cancelled),
            Completed | Failed | TimedOut | Cancelled => false,
        }
    }
}

/// The way an attempt reaches its executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    Direct,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    pub id: TokenId,
    pub node: usize,
    pub status: TokenStatus,
    /// The number of the attempt that counts. Every result carries the epoch it answers.
    pub epoch: u64,
    /// Attempts made again because a deadline passed.
    pub retry_count: u32,
    /// Attempts made again because the one before vanished without an answer.
    pub lost_count: u32,
    pub lane: Option<Lane>,
    pub parent: Option<TokenId>,
    pub created_at: Millis,
    pub dispatched_at: Option<Millis>,
    pub started_at: Option<Millis>,
    pub ended_at: Option<Millis>,
    pub timeout_at: Option<Millis>,
    pub timeout_ms: Option<u64>,
    /// When to look whether the attempt is still alive (executing), or when to make the next one (pending).
    pub watch_at: Option<Millis>,
    pub reason: Option<String>,
    pub error: Option<Failure>,
    /// The failure or timeout whose route this token came by: `error` in expressions.
    pub cause: Option<Failure>,
    pub output: Option<Value>,
    pub steps: Vec<StepReport>,
    /// How often each transition of a cycle fired on the path to here.
    pub loops: BTreeMap<String, u64>,
    pub branch: Option<Branch>,
    /// The node of the join it waits at, and its place in the order of arrivals.
    pub joins_at: Option<usize>,
    pub arrival: Option<u64>,
    /// Reminders sent for its gate.
    pub reminded: u32,
    /// How many tokens had done their work when this one was born, and when it had done its own.
    pub born_order: u64,
    pub exit_order: Option<u64>,
    /// What the context held where this token wrote, and where the join it was born of merged: the way back for a
    /// restart.
    pub undo: Vec<(String, Option<Value>)>,
    pub merge_undo: Vec<(String, Option<Value>)>,
}

impl Token {
    /// The next moment at which this token needs attention if nothing is heard of it.
    pub fn due_at(&self, grace_ms: u64) -> Option<Millis> {
        match self.status {
            TokenStatus::Executing | TokenStatus::WaitingForSubworkflow => {
                let deadline = self.timeout_at.map(|at| at.saturating_add(grace_ms));
                deadline.into_iter().chain(self.watch_at).min()
            }
            TokenStatus::AwaitingHuman | TokenStatus::Suspended => {
                self.timeout_at.into_iter().chain(self.watch_at).min()
            }
            TokenStatus::Pending => self.watch_at,
            TokenStatus::WaitingForSiblings
            | TokenStatus::Completed
            | TokenStatus::Failed
            | TokenStatus::TimedOut
            | TokenStatus::Cancelled => None,
        }
    }
}
