//! Rows `token/<id>`: one for each token, ended ones included. Field names on disk never change; a new field is optional.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{is_false, is_zero, optional_values, present};
use crate::base::failure::{Failure, FailureClass};
use crate::base::from_json::from_json;
use crate::base::time::Millis;
use crate::definition::snapshot::Snapshot;
use crate::protocol::task::{Checkpoint, StepReport};
use crate::run::{
    Compensates, Escalation, InstanceId, Interrupted, JoinWait, Lane, Patch, Progress, QueueClaim, RowEvent,
    Run, Token, TokenDeadline, TokenId, TokenStatus, TokenSummary, TokenUndo, UNDO_INLINE_BYTES, Unroutable,
    WrittenAt, last_seq,
};
use crate::storage::rows::instance::BranchRow;

/// The id is part of the key, the status is a column.
#[derive(Debug, Serialize, Deserialize)]
pub struct TokenRow {
    /// The number of its last event. The first field, because `schema::LOAD_SUMMARY` reads it from its place in the text.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub seq: u64,
    pub node_id: String,
    pub epoch: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unclaimed: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unheard: bool,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retry_count: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_count: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<Lane>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u64>,
    pub created_at: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatched_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_stopped_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Failure>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub output: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepReport>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub retried: BTreeMap<FailureClass, u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub loops: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<BranchRow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joins_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival: Option<u64>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reminded: u32,
    #[serde(default)]
    pub born_order: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_order: Option<u64>,
    /// Older builds stored whole values instead of patches. Read, never written.
    #[serde(default, skip_serializing, with = "optional_values")]
    pub undo: Vec<(String, Option<Value>)>,
    #[serde(default, skip_serializing, with = "optional_values")]
    pub merge_undo: Vec<(String, Option<Value>)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undo_patches: Vec<Patch>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merge_undo_patches: Vec<Patch>,
    /// Which of the two lists are rows of their own (`undo/`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undo_apart: Vec<WrittenAt>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub went_back_to: Option<u64>,
    #[serde(
        default,
        rename = "kept",
        skip_serializing_if = "Vec::is_empty",
        with = "optional_values"
    )]
    pub context_on_token: Vec<(String, Option<Value>)>,
    #[serde(default, rename = "told_deadline", skip_serializing_if = "Option::is_none")]
    pub executor_deadline: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_by: Option<String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stopped_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_reason: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub warned: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Box<Checkpoint>>,
    /// Of an attempt of the queue that is executing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Box<Progress>>,
    #[serde(default, rename = "cut", skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<Interrupted>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sleep_left_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_of: Option<u64>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub child_news: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation: Option<Box<Escalation>>,
    #[serde(default, rename = "stranded", skip_serializing_if = "Option::is_none")]
    pub unroutable: Option<Box<Unroutable>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compensates: Option<Box<Compensates>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<RowEvent>,
}

impl TokenRow {
    /// Removes large undo patches from the row: each list becomes a row of its own.
    pub fn take_large_undo(&mut self) -> Vec<(WrittenAt, Vec<Patch>)> {
        let lists = [
            (WrittenAt::Exit, &mut self.undo_patches),
            (WrittenAt::Birth, &mut self.merge_undo_patches),
        ];
        let mut taken = Vec::new();
        for (at, list) in lists {
            if list.iter().map(Patch::bytes).sum::<usize>() > UNDO_INLINE_BYTES {
                taken.push((at, std::mem::take(list)));
                self.undo_apart.push(at);
            }
        }
        taken
    }

    pub fn of(token: &Token, run: &Run) -> TokenRow {
        let workflow = &run.snapshot_of(token.id).workflow;
        let token = token.clone();
        TokenRow {
            seq: last_seq(&token.events),
            node_id: workflow.nodes[token.node].id.clone(),
            branch: token
                .branch
                .as_ref()
                .map(|branch| BranchRow::of_token(branch, token.output.as_ref(), run)),
            joins_at: token.join.map(|it| workflow.nodes[it.node].id.clone()),
            arrival: token.join.map(|it| it.arrival),
            reminded: token.reminded,
            born_order: token.created_order,
            exit_order: token.exit_order,
            undo: Vec::new(),
            merge_undo: Vec::new(),
            undo_patches: token.undo.writes,
            merge_undo_patches: token.undo.creation,
            undo_apart: token.undo.apart,
            went_back_to: token.undo.reset_to.map(|id| id.0),
            context_on_token: token.context_on_token,
            executor_deadline: token.deadline.executor_deadline,
            claimed_by: token.claim.claimed_by,
            stopped_ms: token.stopped_ms,
            timeout_reason: token.deadline.reason,
            warned: token.deadline.warned,
            checkpoint: token.checkpoint,
            // The call of a direct attempt ends with the object's memory, and so does its progress.
            progress: token.progress.filter(|_| token.lane == Some(Lane::Queue)),
            interrupted: token.interrupted,
            sleep_left_ms: token.sleep_left_ms,
            work_of: token.work_of.map(|id| id.0),
            child_news: token.child_news,
            escalation: token.escalation,
            unroutable: token.unroutable,
            compensates: token.compensates,
            events: token.events,
            epoch: token.epoch,
            unclaimed: token.claim.unclaimed,
            unheard: token.claim.heartbeat_extended,
            retry_count: token.retry_count,
            lost_count: token.lost_count,
            lane: token.lane,
            parent: token.parent.map(|id| id.0),
            created_at: token.created_at,
            dispatched_at: token.dispatched_at,
            started_at: token.started_at,
            ended_at: token.ended_at,
            timeout_at: token.deadline.at,
            timeout_ms: token.deadline.timeout_ms,
            deadline_stopped_at: token.deadline.stopped_at,
            watch_at: token.watch_at,
            reason: token.reason,
            error: token.error,
            cause: token.cause,
            output: token.output,
            steps: token.steps,
            retried: token.retried,
            loops: token.loops,
        }
    }

    pub fn into_token(self, id: u64, status: TokenStatus, snapshot: &Snapshot) -> Result<Token, String> {
        let node = snapshot
            .workflow
            .node_index(&self.node_id)
            .ok_or_else(|| format!("token t{id} stands at unknown node {}", self.node_id))?;
        let join = join_wait(self.joins_at.as_deref(), self.arrival, snapshot);
        Ok(Token {
            branch: self
                .branch
                .map(|branch| branch.into_branch_of(self.output.as_ref())),
            join,
            reminded: self.reminded,
            created_order: self.born_order,
            exit_order: self.exit_order,
            undo: TokenUndo {
                writes: patches(self.undo, self.undo_patches),
                creation: patches(self.merge_undo, self.merge_undo_patches),
                apart: self.undo_apart,
                reset_to: self.went_back_to.map(TokenId),
            },
            context_on_token: self.context_on_token,
            stopped_ms: self.stopped_ms,
            checkpoint: self.checkpoint,
            progress: self.progress.map(|progress| {
                let saved_at = Some(progress.at);
                Box::new(Progress {
                    saved_at,
                    ..*progress
                })
            }),
            interrupted: self.interrupted,
            sleep_left_ms: self.sleep_left_ms,
            work_of: self.work_of.map(TokenId),
            child_news: self.child_news,
            escalation: self.escalation,
            unroutable: self.unroutable,
            compensates: self.compensates,
            events: self.events,
            id: TokenId(id),
            node,
            status,
            epoch: self.epoch,
            claim: QueueClaim {
                unclaimed: self.unclaimed,
                claimed_by: self.claimed_by,
                heartbeat_extended: self.unheard,
            },
            retry_count: self.retry_count,
            lost_count: self.lost_count,
            lane: self.lane,
            parent: self.parent.map(TokenId),
            created_at: self.created_at,
            dispatched_at: self.dispatched_at,
            started_at: self.started_at,
            ended_at: self.ended_at,
            deadline: TokenDeadline {
                at: self.timeout_at,
                timeout_ms: self.timeout_ms,
                reason: self.timeout_reason,
                warned: self.warned,
                executor_deadline: self.executor_deadline,
                stopped_at: self.deadline_stopped_at,
            },
            watch_at: self.watch_at,
            reason: self.reason,
            error: self.error,
            cause: self.cause,
            output: self.output,
            steps: self.steps,
            retried: self.retried,
            loops: self.loops,
        })
    }
}

/// Values of older builds come first: they were written before the patches.
fn patches(older: Vec<(String, Option<Value>)>, patches: Vec<Patch>) -> Vec<Patch> {
    let older = older.into_iter();
    older
        .map(|(name, before)| Patch::whole(name, before))
        .chain(patches)
        .collect()
}

/// The fields that resume plans need.
#[derive(Deserialize)]
struct PastRow {
    node_id: String,
    #[serde(default)]
    ended_at: Option<Millis>,
    #[serde(default)]
    error: Option<IgnoredAny>,
    #[serde(default)]
    branch: Option<PastBranch>,
    #[serde(default)]
    joins_at: Option<String>,
    #[serde(default)]
    arrival: Option<u64>,
    #[serde(default)]
    born_order: u64,
    #[serde(default)]
    exit_order: Option<u64>,
    #[serde(default)]
    undo: Vec<IgnoredAny>,
    #[serde(default)]
    merge_undo: Vec<IgnoredAny>,
    #[serde(default)]
    undo_patches: Vec<IgnoredAny>,
    #[serde(default)]
    merge_undo_patches: Vec<IgnoredAny>,
    #[serde(default)]
    undo_apart: Vec<WrittenAt>,
    #[serde(default)]
    went_back_to: Option<u64>,
    #[serde(default)]
    checkpoint: Option<IgnoredAny>,
    #[serde(default, rename = "cut")]
    interrupted: Option<Interrupted>,
    #[serde(default, deserialize_with = "is_present")]
    output: bool,
    #[serde(default)]
    work_of: Option<u64>,
    #[serde(default)]
    compensates: Option<PastCompensation>,
}

/// A result of `null` is a result.
fn is_present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(deserializer).map(|_| true)
}

#[derive(Deserialize)]
struct PastCompensation {
    token: TokenId,
}

#[derive(Deserialize)]
struct PastBranch {
    instance: u64,
    index: u32,
}

fn join_wait(node_id: Option<&str>, arrival: Option<u64>, snapshot: &Snapshot) -> Option<JoinWait> {
    let node = snapshot.workflow.node_index(node_id?)?;
    arrival.map(|arrival| JoinWait { node, arrival })
}

/// Reads only the fields that resume plans need. `shared` gives the ids of nodes that many rows have.
pub fn past_token(
    id: u64,
    status: &str,
    row: &str,
    shared: &mut impl FnMut(String) -> Rc<str>,
) -> Result<TokenSummary, String> {
    let row: PastRow = from_json(row).map_err(|error| format!("token t{id}: {error}"))?;
    let joins_at = row.joins_at.filter(|_| row.arrival.is_some());
    Ok(TokenSummary {
        id: TokenId(id),
        node_id: shared(row.node_id),
        status: parse_status(status)?,
        branch: row
            .branch
            .map(|branch| (InstanceId(branch.instance), branch.index)),
        created_order: row.born_order,
        exit_order: row.exit_order,
        ended_at: row.ended_at,
        interrupted: row.interrupted,
        joins_at: joins_at.map(shared),
        has_error: row.error.is_some(),
        has_checkpoint: row.checkpoint.is_some(),
        wrote: !row.undo.is_empty()
            || !row.undo_patches.is_empty()
            || row.undo_apart.contains(&WrittenAt::Exit),
        wrote_at_creation: !row.merge_undo.is_empty()
            || !row.merge_undo_patches.is_empty()
            || row.undo_apart.contains(&WrittenAt::Birth),
        went_back_to: row.went_back_to.map(TokenId),
        has_output: row.output,
        work_of: row.work_of.map(TokenId),
        compensates: row.compensates.map(|it| it.token),
    })
}

/// The undo patches of a token's row.
#[derive(Deserialize)]
struct UndoRow {
    #[serde(default, with = "optional_values")]
    undo: Vec<(String, Option<Value>)>,
    #[serde(default, with = "optional_values")]
    merge_undo: Vec<(String, Option<Value>)>,
    #[serde(default)]
    undo_patches: Vec<Patch>,
    #[serde(default)]
    merge_undo_patches: Vec<Patch>,
    #[serde(default)]
    undo_apart: Vec<WrittenAt>,
}

/// `None`: the patches are a row of their own.
pub fn patches_of(row: &str, at: WrittenAt) -> Result<Option<Vec<Patch>>, serde_json::Error> {
    let row: UndoRow = from_json(row)?;
    let patches = match at {
        WrittenAt::Exit => patches(row.undo, row.undo_patches),
        WrittenAt::Birth => patches(row.merge_undo, row.merge_undo_patches),
    };
    Ok(Some(patches).filter(|_| !row.undo_apart.contains(&at)))
}

pub fn error_of(row: &str) -> Result<Option<Failure>, serde_json::Error> {
    #[derive(Deserialize)]
    struct ErrorRow {
        #[serde(default)]
        error: Option<Failure>,
    }
    Ok(from_json::<ErrorRow>(row)?.error)
}

#[derive(Deserialize)]
struct ContextRow {
    #[serde(default)]
    output: Value,
    /// A value that equals the output is stored as none.
    #[serde(default, with = "optional_values")]
    kept: Vec<(String, Option<Value>)>,
}

/// Names and values of the context that the row of a token with status `COMPLETED_WITH_CONTEXT` holds.
pub fn context_on_token(row: &str) -> Result<Vec<(String, Value)>, serde_json::Error> {
    let ContextRow { output, kept } = from_json(row)?;
    Ok(kept
        .into_iter()
        .map(|(name, value)| (name, value.unwrap_or_else(|| output.clone())))
        .collect())
}

/// The status column of a completed token whose row holds context values. Loading a run selects rows by it.
pub const COMPLETED_WITH_CONTEXT: &str = "completed+";

/// The value of the status column.
pub fn status_of(token: &Token) -> &'static str {
    match token.context_on_token.is_empty() {
        true => token.status.name(),
        false => COMPLETED_WITH_CONTEXT,
    }
}

pub fn parse_status(column: &str) -> Result<TokenStatus, String> {
    if column == COMPLETED_WITH_CONTEXT {
        return Ok(TokenStatus::Completed);
    }
    TokenStatus::ALL
        .into_iter()
        .find(|status| status.name() == column)
        .ok_or_else(|| format!("unknown token status {column}"))
}
