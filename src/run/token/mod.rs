//! A token: one point of control moving through the graph, and the moves it may make.

pub mod attempt;
pub mod begin;
pub mod claim;
pub mod lane;
pub mod order;
pub mod report;
pub mod route;
pub mod tokens;
pub mod unroutable;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::failure::Failure;
use crate::base::text::json_bytes;
use crate::base::time::{Millis, SECOND};
use crate::protocol::task::{Checkpoint, StepReport};
use crate::run::fan::Branch;
use crate::run::recovery::rewind::WrittenAt;
use crate::run::recovery::undo::{Patch, UNDO_INLINE_BYTES};
use crate::run::token::unroutable::Unroutable;
use crate::run::wait::escalation::Escalation;

/// What a token keeps of the context besides its output: its row has a limit, and is read whole when somebody looks at it.
const KEPT_BYTES: usize = 16 << 10;

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
    /// An attempt lies in the queue: whoever takes it claims it first.
    Dispatched,
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

    /// The moves a token may make. Terminal tokens never move.
    pub fn may_become(self, next: TokenStatus) -> bool {
        use TokenStatus::*;
        match self {
            // A pass-through node completes where it is born; a mapping may fail before any attempt.
            Pending => next != Pending,
            // Claimed, or given up and made anew. One that nobody takes, or whose input cannot be made, may have a
            // route into a join, or to a person.
            Dispatched => {
                matches!(
                    next,
                    Pending | Executing | AwaitingHuman | WaitingForSiblings | Failed | TimedOut | Cancelled
                )
            }
            // Back to pending: the attempt is over and another will be made. To a person: it failed, and somebody is
            // to say what follows.
            WaitingForSubworkflow => {
                matches!(
                    next,
                    Pending | AwaitingHuman | WaitingForSiblings | Completed | Failed | TimedOut | Cancelled
                )
            }
            // Suspended: understood, and to be called back.
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
            // Back to pending: a person had it tried again.
            AwaitingHuman => {
                matches!(
                    next,
                    Pending | WaitingForSiblings | Completed | Failed | TimedOut | Cancelled
                )
            }
            // Back to pending: no callback came, and the call is made again. To a person: it brought a failure.
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

/// The way an attempt reaches its executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// Inside the coordinator, in the decision that began it.
    Inline,
    /// A call over the service binding, held open until it is answered.
    Direct,
    /// A message of a queue; its consumer claims the attempt, says that it lives, and reports.
    Queue,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    pub id: TokenId,
    pub node: usize,
    pub status: TokenStatus,
    /// The number of the attempt that counts. Every result carries the epoch it answers.
    pub epoch: u64,
    /// Attempts in a row that nobody took out of the queue.
    pub unclaimed: u32,
    /// Its watch passed while the object was away, and began again.
    pub unheard: bool,
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
    pub created_order: u64,
    pub exit_order: Option<u64>,
    /// The way back from what this token wrote to the context, for a restart or a retry without it.
    pub undo: Vec<Patch>,
    /// The same for what changed when it was born: the join it is born of merged, or a retry took something back.
    pub merge_undo: Vec<Patch>,
    /// Those of both lists that are rows of their own, and are read only when they are needed.
    pub undo_apart: Vec<WrittenAt>,
    /// Born of a restart that found the context as it was at the birth of this token; 0: empty, as at the start.
    pub went_back_to: Option<TokenId>,
    /// Names of the context that have no row but this token's, and what stands there; `None`: its output.
    pub context_on_token: Vec<(String, Option<Value>)>,
    /// What the executor was told, where that is nearer than `timeout_at`: a pause came since, or an older build told
    /// it the run's limit.
    pub executor_deadline: Option<Millis>,
    /// Who claimed the attempt out of the queue and has not been heard of since: it may claim it again.
    pub claimed_by: Option<String>,
    /// How long the clocks stood still since `started_at`.
    pub stopped_ms: u64,
    /// Why the limit is what it is, where no document says it.
    pub timeout_reason: Option<String>,
    /// Its deadline was warned of.
    pub warned: bool,
    /// What an attempt that did not finish had done; the next one goes on from there.
    pub checkpoint: Option<Box<Checkpoint>>,
    /// The end of the run that cut it off.
    pub interrupted: Option<Interrupted>,
    /// What is left to sleep of a wait that was cut off.
    pub sleep_left_ms: Option<u64>,
    /// The token whose work this one goes on with: to a peer it is the same work.
    pub work_of: Option<TokenId>,
    /// The number of the last news heard of its child.
    pub child_news: u64,
    /// It failed and stands in front of a person.
    pub escalation: Option<Box<Escalation>>,
    /// It waits for a way to an executor.
    pub unroutable: Option<Unroutable>,
}

/// How a run's end found a token that had not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interrupted {
    /// Which end: a run may be brought back and end again.
    pub end: u64,
    pub from: TokenStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sleep_left_ms: Option<u64>,
}

/// What it takes to know when a token needs attention.
#[derive(Clone, Copy, Debug)]
pub struct TimeoutConfig {
    pub grace_ms: u64,
    pub warn_at: f64,
}

/// Shorter deadlines are not warned of: nobody could act on it.
const WARNED_FROM_MS: u64 = 10 * SECOND;

/// When to warn of a deadline, if at all. Counted back from the deadline: a pause moves both.
pub fn warning_at(timeout_at: Option<Millis>, timeout_ms: Option<u64>, warn_at: f64) -> Option<Millis> {
    let timeout_ms = timeout_ms.filter(|millis| *millis >= WARNED_FROM_MS)?;
    let left = (timeout_ms as f64 * (1.0 - warn_at)).round() as u64;
    Some(timeout_at?.saturating_sub(left))
}

impl Token {
    /// A token with nothing behind it.
    pub fn new(id: TokenId, node: usize, created_at: Millis) -> Token {
        Token {
            id,
            node,
            status: TokenStatus::Pending,
            epoch: 0,
            unclaimed: 0,
            unheard: false,
            retry_count: 0,
            lost_count: 0,
            lane: None,
            parent: None,
            created_at,
            dispatched_at: None,
            started_at: None,
            ended_at: None,
            timeout_at: None,
            timeout_ms: None,
            watch_at: None,
            reason: None,
            error: None,
            cause: None,
            output: None,
            steps: Vec::new(),
            loops: BTreeMap::new(),
            branch: None,
            joins_at: None,
            arrival: None,
            reminded: 0,
            created_order: 0,
            exit_order: None,
            undo: Vec::new(),
            merge_undo: Vec::new(),
            undo_apart: Vec::new(),
            went_back_to: None,
            context_on_token: Vec::new(),
            executor_deadline: None,
            claimed_by: None,
            stopped_ms: 0,
            timeout_reason: None,
            warned: false,
            checkpoint: None,
            interrupted: None,
            sleep_left_ms: None,
            work_of: None,
            child_news: 0,
            escalation: None,
            unroutable: None,
        }
    }

    /// What its row spends on the way back. A long list is a row of its own.
    pub fn undo_bytes(&self) -> usize {
        let lists = [&self.undo, &self.merge_undo].into_iter();
        lists
            .map(|list| list.iter().map(Patch::bytes).sum::<usize>())
            .filter(|bytes| *bytes <= UNDO_INLINE_BYTES)
            .sum()
    }

    /// Takes a name of the context onto its own row, where that has room for it.
    pub(in crate::run) fn keep(&mut self, name: &str, value: &Value) -> bool {
        let is_output = self.output.as_ref() == Some(value);
        let bytes = || -> usize {
            let others = self
                .context_on_token
                .iter()
                .filter_map(|(_, value)| value.as_ref());
            others.map(json_bytes).sum::<usize>() + json_bytes(value)
        };
        let is_kept = self.status == TokenStatus::Completed && (is_output || bytes() <= KEPT_BYTES);
        if is_kept {
            let value = (!is_output).then(|| value.clone());
            self.context_on_token.push((name.to_string(), value));
        }
        is_kept
    }

    /// When to warn of its deadline, if that is still to be done.
    pub fn warning_at(&self, config: TimeoutConfig) -> Option<Millis> {
        match self.warned {
            true => None,
            false => warning_at(self.timeout_at, self.timeout_ms, config.warn_at),
        }
    }

    /// The next moment at which this token needs attention if nothing is heard of it.
    pub fn due_at(&self, config: TimeoutConfig) -> Option<Millis> {
        let warning_at = self.warning_at(config);
        match self.status {
            TokenStatus::Executing | TokenStatus::WaitingForSubworkflow => {
                let deadline = self.timeout_at.map(|at| at.saturating_add(config.grace_ms));
                deadline.into_iter().chain(self.watch_at).chain(warning_at).min()
            }
            TokenStatus::AwaitingHuman | TokenStatus::Suspended => self
                .timeout_at
                .into_iter()
                .chain(self.watch_at)
                .chain(warning_at)
                .min(),
            TokenStatus::Pending => self.timeout_at.into_iter().chain(self.watch_at).min(),
            TokenStatus::Dispatched => self.watch_at,
            TokenStatus::WaitingForSiblings
            | TokenStatus::Completed
            | TokenStatus::Failed
            | TokenStatus::TimedOut
            | TokenStatus::Cancelled => None,
        }
    }
}
