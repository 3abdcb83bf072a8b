//! A token: one point of control moving through the graph, and its legal status changes.

pub mod attempt;
pub mod attempt_limit;
pub mod begin;
pub mod claim;
pub mod deadline;
pub mod lane;
pub mod order;
pub mod progress;
pub mod report;
pub mod route;
pub mod tokens;
pub mod unroutable;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::failure::{Failure, FailureClass};
use crate::base::text::json_bytes;
use crate::base::time::Millis;
use crate::protocol::task::{Checkpoint, StepReport};
use crate::run::fan::Branch;
use crate::run::recovery::compensate::Compensates;
use crate::run::recovery::rewind::WrittenAt;
use crate::run::recovery::undo::{Patch, UNDO_INLINE_BYTES};
use crate::run::time::row_events::RowEvent;
use crate::run::token::deadline::TokenDeadline;
use crate::run::token::progress::Progress;
use crate::run::token::unroutable::Unroutable;
use crate::run::wait::escalation::Escalation;

/// Limit for context values stored on a token besides its output. A token's row is always read whole.
const CONTEXT_ON_TOKEN_BYTES: usize = 16 << 10;

/// The reason of a token whose child waits for a person.
pub(in crate::run) const CHILD_PAUSED: &str = "child_paused";

/// Tokens of a run are numbered in the order of their creation, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TokenId(pub u64);

impl From<TokenId> for String {
    fn from(id: TokenId) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for TokenId {
    type Error = String;

    fn try_from(text: String) -> Result<TokenId, String> {
        TokenId::parse(&text).ok_or_else(|| format!("\"{text}\" is no id of a token"))
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{}", self.0)
    }
}

impl TokenId {
    pub fn parse(text: &str) -> Option<TokenId> {
        let id = text.strip_prefix('t')?.parse().ok().map(TokenId)?;
        // Each id has exactly one spelling: no leading zeros or signs.
        (id.to_string() == text).then_some(id)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenStatus {
    /// Created, or waiting for its next attempt.
    Pending,
    /// An attempt is in the queue and not claimed yet.
    Dispatched,
    /// An attempt is running, supervised by a deadline or a watch.
    Executing,
    /// Its own work is done, and it waits at a join.
    WaitingForSiblings,
    /// A child run does the work.
    WaitingForSubworkflow,
    /// At a gate, waiting for a person's decision.
    AwaitingHuman,
    /// Waits for a time, a signal or a callback.
    Suspended,
    Completed,
    Failed,
    TimedOut,
    Cancelled,
}

impl TokenStatus {
    pub const ALL: [TokenStatus; 11] = [
        TokenStatus::Pending,
        TokenStatus::Dispatched,
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
            TokenStatus::Dispatched => "dispatched",
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
            | TokenStatus::Dispatched
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

    /// The legal status changes. Terminal tokens never change.
    pub fn may_become(self, next: TokenStatus) -> bool {
        use TokenStatus::*;
        match self {
            // A pass-through node completes immediately; a mapping may fail before any attempt.
            Pending => next != Pending,
            // Claimed, or recreated. A token whose attempts stay unclaimed, or whose input mapping fails, may have a
            // transition into a join or escalate.
            Dispatched => {
                matches!(
                    next,
                    Pending | Executing | AwaitingHuman | WaitingForSiblings | Failed | TimedOut | Cancelled
                )
            }
            // Pending: the attempt is over and another follows. AwaitingHuman: it failed and escalates.
            WaitingForSubworkflow => {
                matches!(
                    next,
                    Pending | AwaitingHuman | WaitingForSiblings | Completed | Failed | TimedOut | Cancelled
                )
            }
            // Suspended: the action was accepted and waits for its callback.
            Executing => {
                matches!(
                    next,
                    Pending
                        | Suspended
                        | AwaitingHuman
                        | WaitingForSiblings
                        | Completed
                        | Failed
                        | TimedOut
                        | Cancelled
                )
            }
            // Pending: a person chose to retry.
            AwaitingHuman => {
                matches!(
                    next,
                    Pending | WaitingForSiblings | Completed | Failed | TimedOut | Cancelled
                )
            }
            // Pending: no callback arrived, and the call is retried. AwaitingHuman: the callback reported a failure.
            Suspended => {
                matches!(
                    next,
                    Pending | AwaitingHuman | WaitingForSiblings | Completed | Failed | TimedOut | Cancelled
                )
            }
            WaitingForSiblings => matches!(next, Completed | Failed | TimedOut | Cancelled),
            Completed | Failed | TimedOut | Cancelled => false,
        }
    }
}

/// How an attempt reaches its executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// Executed inside the coordinator, in the decision that began it.
    Inline,
    /// A call over the service binding, held open until the report.
    Direct,
    /// A queue message. Its consumer claims the attempt, sends heartbeats, and reports.
    Queue,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    pub id: TokenId,
    pub node: usize,
    pub status: TokenStatus,
    /// The number of the current attempt. Every report carries the epoch of its attempt.
    pub epoch: u64,
    /// Retries after a timeout.
    pub retry_count: u32,
    /// Attempts that were lost without a report.
    pub lost_count: u32,
    pub lane: Option<Lane>,
    pub claim: QueueClaim,
    pub parent: Option<TokenId>,
    pub created_at: Millis,
    pub dispatched_at: Option<Millis>,
    pub started_at: Option<Millis>,
    pub ended_at: Option<Millis>,
    pub deadline: TokenDeadline,
    /// When to check that the attempt is alive (executing), or when to begin the next one (pending).
    pub watch_at: Option<Millis>,
    pub reason: Option<String>,
    pub error: Option<Failure>,
    /// The failure or timeout whose transition created this token: `error` in expressions.
    pub cause: Option<Failure>,
    pub output: Option<Value>,
    pub steps: Vec<StepReport>,
    /// Calls that executors repeated, in all attempts, by the class of the failure before each.
    pub retried: BTreeMap<FailureClass, u64>,
    /// How often each transition of a cycle fired on the path to this token.
    pub loops: BTreeMap<String, u64>,
    pub branch: Option<Branch>,
    /// The join it waits at.
    pub join: Option<JoinWait>,
    /// Reminders sent for its gate.
    pub reminded: u32,
    /// How many tokens had finished their work when this one was created, and when it finished its own.
    pub created_order: u64,
    pub exit_order: Option<u64>,
    pub undo: TokenUndo,
    /// Context names that are stored only on this token's row, with their values. `None`: the value is its output.
    pub context_on_token: Vec<(String, Option<Value>)>,
    /// How long the run was paused since `started_at`.
    pub stopped_ms: u64,
    /// The finished steps of an unfinished attempt. The next attempt continues from them.
    pub checkpoint: Option<Box<Checkpoint>>,
    /// How far the attempt that is executing has come. None in any other status.
    pub progress: Option<Box<Progress>>,
    /// The end of the run that interrupted it.
    pub interrupted: Option<Interrupted>,
    /// The remaining time of an interrupted wait.
    pub sleep_left_ms: Option<u64>,
    /// The token whose work this one continues: towards peers it is the same work.
    pub work_of: Option<TokenId>,
    /// The number of the last status message received from its child.
    pub child_news: u64,
    /// It failed and waits for a person's decision.
    pub escalation: Option<Box<Escalation>>,
    /// It waits for a route to an executor.
    pub unroutable: Option<Box<Unroutable>>,
    /// It undoes the work of another token.
    pub compensates: Option<Box<Compensates>>,
    /// Its part of the run's history.
    pub events: Vec<RowEvent>,
}

/// What the queue lane knows of a token's attempts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueClaim {
    /// Consecutive attempts that no consumer claimed.
    pub unclaimed: u32,
    /// The consumer that claimed the attempt and has sent no heartbeat yet. It may repeat its claim.
    pub claimed_by: Option<String>,
    /// The heartbeat deadline passed while the object was not in memory, and was extended once.
    pub heartbeat_extended: bool,
}

/// A wait for siblings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinWait {
    pub node: usize,
    /// The token's position in the order of arrivals.
    pub arrival: u64,
}

/// How a token's changes of the context are undone, for a restart or a retry without it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenUndo {
    /// Patches that undo the token's own writes.
    pub writes: Vec<Patch>,
    /// Patches that undo the changes at its creation: by the merge of a join, or by a retry that undid writes.
    pub creation: Vec<Patch>,
    /// Which of the two lists are stored in separate rows, which are read only when needed.
    pub apart: Vec<WrittenAt>,
    /// Set by a restart: the context was reset to the creation of that token. 0: to the empty context of the start.
    pub reset_to: Option<TokenId>,
}

/// The state of a live token when the run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interrupted {
    /// The number of the end: a run may be resumed and end again.
    pub end: u64,
    pub from: TokenStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sleep_left_ms: Option<u64>,
}

/// Settings that determine when a token is due.
#[derive(Clone, Copy, Debug)]
pub struct TimeoutConfig {
    pub grace_ms: u64,
    pub warn_at: f64,
}

impl Token {
    /// A new pending token.
    pub fn new(id: TokenId, node: usize, created_at: Millis) -> Token {
        Token {
            id,
            node,
            status: TokenStatus::Pending,
            epoch: 0,
            retry_count: 0,
            lost_count: 0,
            lane: None,
            claim: QueueClaim::default(),
            parent: None,
            created_at,
            dispatched_at: None,
            started_at: None,
            ended_at: None,
            deadline: TokenDeadline::default(),
            watch_at: None,
            reason: None,
            error: None,
            cause: None,
            output: None,
            steps: Vec::new(),
            retried: BTreeMap::new(),
            loops: BTreeMap::new(),
            branch: None,
            join: None,
            reminded: 0,
            created_order: 0,
            exit_order: None,
            undo: TokenUndo::default(),
            context_on_token: Vec::new(),
            stopped_ms: 0,
            checkpoint: None,
            progress: None,
            interrupted: None,
            sleep_left_ms: None,
            work_of: None,
            child_news: 0,
            escalation: None,
            unroutable: None,
            compensates: None,
            events: Vec::new(),
        }
    }

    /// The size of the undo patches in its row. A long list is stored in a separate row.
    pub fn undo_bytes(&self) -> usize {
        let lists = [&self.undo.writes, &self.undo.creation].into_iter();
        lists
            .map(|list| list.iter().map(Patch::bytes).sum::<usize>())
            .filter(|bytes| *bytes <= UNDO_INLINE_BYTES)
            .sum()
    }

    /// Stores a context name on the token's row, if it fits. Returns whether it did.
    pub(in crate::run) fn store_context(&mut self, name: &str, value: &Value) -> bool {
        let is_output = self.output.as_ref() == Some(value);
        let bytes = || -> usize {
            let others = self
                .context_on_token
                .iter()
                .filter_map(|(_, value)| value.as_ref());
            others.map(json_bytes).sum::<usize>() + json_bytes(value)
        };
        let is_stored =
            self.status == TokenStatus::Completed && (is_output || bytes() <= CONTEXT_ON_TOKEN_BYTES);
        if is_stored {
            let value = (!is_output).then(|| value.clone());
            self.context_on_token.push((name.to_string(), value));
        }
        is_stored
    }

    /// Its child said that it waits for a person, and not yet that it goes on.
    pub fn child_waits_for_person(&self) -> bool {
        self.status == TokenStatus::WaitingForSubworkflow && self.reason.as_deref() == Some(CHILD_PAUSED)
    }

    /// It could not begin, during a pause or because too many messages are undelivered, and no moment is set for it.
    pub fn is_held_back(&self) -> bool {
        self.status == TokenStatus::Pending && self.watch_at.is_none()
    }

    /// The next time this token is due if no event arrives for it.
    pub fn due_at(&self, config: TimeoutConfig) -> Option<Millis> {
        let warning_at = self.deadline.warning_at(config.warn_at);
        match self.status {
            TokenStatus::Executing | TokenStatus::WaitingForSubworkflow => {
                let deadline = self.deadline.enforced_at(config.grace_ms);
                deadline.into_iter().chain(self.watch_at).chain(warning_at).min()
            }
            TokenStatus::AwaitingHuman | TokenStatus::Suspended => {
                let deadline = self.deadline.at.into_iter();
                deadline.chain(self.watch_at).chain(warning_at).min()
            }
            TokenStatus::Pending => self.deadline.at.into_iter().chain(self.watch_at).min(),
            TokenStatus::Dispatched => self.watch_at,
            TokenStatus::WaitingForSiblings
            | TokenStatus::Completed
            | TokenStatus::Failed
            | TokenStatus::TimedOut
            | TokenStatus::Cancelled => None,
        }
    }
}
