//! Rows and what they stand for. These shapes are persisted in every run's object: pinned by golden files,
//! changed only by a migration or an optional field.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::engine::{
    Branch, Cut, Escalation, FanIn, Header, Holder, Instance, InstanceId, Lane, ParentLink, PastToken, Run,
    RunStatus, StartRequest, Stranded, Token, TokenId, TokenStatus, TriggeredBy, hops_of,
};
use crate::model::failure::Failure;
use crate::model::snapshot::Snapshot;
use crate::model::time::Millis;
use crate::wire::{Checkpoint, StepReport};

/// Row `header` of table `run`.
#[derive(Debug, Serialize, Deserialize)]
pub struct HeaderRow {
    pub schema: u32,
    pub id: String,
    pub workflow_id: String,
    pub version: u64,
    pub status: RunStatus,
    pub started_at: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    pub attempt: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    pub request: StartRequest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentLink>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggered_by: Option<TriggeredBy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub held_by: BTreeSet<Holder>,
    #[serde(default, skip_serializing_if = "is_none_yet")]
    pub parent_word: u64,
    #[serde(default, skip_serializing_if = "is_none_yet")]
    pub words_said: u64,
    #[serde(default, skip_serializing_if = "is_false")]
    pub on_budget: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub warned: bool,
    #[serde(default, skip_serializing_if = "is_none_yet")]
    pub gates_opened: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    #[serde(default, skip_serializing_if = "is_none_yet")]
    pub ends: u64,
    #[serde(default)]
    pub tokens_before: u64,
    pub revision: u64,
}

impl HeaderRow {
    pub fn of(header: &Header) -> HeaderRow {
        let header = header.clone();
        HeaderRow {
            schema: super::schema::VERSION,
            id: header.id,
            workflow_id: header.workflow_id,
            version: header.version,
            status: header.status,
            started_at: header.started_at,
            ended_at: header.ended_at,
            timeout_at: header.timeout_at,
            timeout_ms: header.timeout_ms,
            attempt: header.attempt,
            output: header.output,
            error: header.error,
            reason: header.reason,
            tags: header.tags,
            request: header.request,
            parent: header.parent,
            triggered_by: header.triggered_by,
            paused_at: header.paused_at,
            held_by: header.held_by,
            parent_word: header.parent_word,
            words_said: header.words_said,
            on_budget: header.on_budget,
            warned: header.warned,
            gates_opened: header.gates_opened,
            secret: header.secret,
            ends: header.ends,
            tokens_before: header.tokens_before,
            revision: header.revision,
        }
    }

    pub fn into_header(mut self) -> Header {
        // Before there were others, only a person could pause.
        if self.paused_at.is_some() && self.held_by.is_empty() {
            self.held_by.insert(Holder::Person);
        }
        Header {
            root_run_id: self
                .parent
                .as_ref()
                .map_or_else(|| self.id.clone(), |it| it.root_run_id.clone()),
            depth: self.parent.as_ref().map_or(0, |parent| parent.depth),
            hops: hops_of(self.parent.as_ref(), self.triggered_by.as_ref()),
            triggered_by: self.triggered_by,
            parent: self.parent,
            paused_at: self.paused_at,
            held_by: self.held_by,
            parent_word: self.parent_word,
            words_said: self.words_said,
            on_budget: self.on_budget,
            warned: self.warned,
            gates_opened: self.gates_opened,
            secret: self.secret,
            ends: self.ends,
            tokens_before: self.tokens_before,
            id: self.id,
            workflow_id: self.workflow_id,
            version: self.version,
            status: self.status,
            started_at: self.started_at,
            ended_at: self.ended_at,
            timeout_at: self.timeout_at,
            timeout_ms: self.timeout_ms,
            attempt: self.attempt,
            output: self.output,
            error: self.error,
            reason: self.reason,
            tags: self.tags,
            request: self.request,
            revision: self.revision,
        }
    }
}

/// Column `row` of table `tokens`. The id and the status stand in columns of their own.
#[derive(Debug, Serialize, Deserialize)]
pub struct TokenRow {
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
        deserialize_with = "written"
    )]
    pub output: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepReport>,
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
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "undo_list")]
    pub undo: Vec<(String, Option<Value>)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "undo_list")]
    pub merge_undo: Vec<(String, Option<Value>)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "undo_list")]
    pub kept: Vec<(String, Option<Value>)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_deadline: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_reason: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub warned: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Box<Checkpoint>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sleep_left_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_of: Option<u64>,
    #[serde(default, skip_serializing_if = "is_none_yet")]
    pub child_news: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation: Option<Box<Escalation>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stranded: Option<Stranded>,
}

/// A token's place among its siblings. Group and total are the instance's, repeated so that a token tells all of it.
#[derive(Debug, Serialize, Deserialize)]
pub struct BranchRow {
    pub instance: u64,
    pub index: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u32>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "written"
    )]
    pub item: Option<Value>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub output: Value,
}

impl BranchRow {
    fn of(branch: &Branch, run: Option<&Run>) -> BranchRow {
        let instance = run.and_then(|run| run.instance(branch.instance));
        BranchRow {
            instance: branch.instance.0,
            index: branch.index,
            group: instance.map(|instance| instance.group.clone()),
            total: instance.map(|instance| instance.total),
            item: branch.item.clone(),
            output: branch.output.clone(),
        }
    }

    fn into_branch(self) -> Branch {
        Branch {
            instance: InstanceId(self.instance),
            index: self.index,
            item: self.item,
            output: self.output,
        }
    }
}

/// Row `instance/<id>` of table `run`: one firing of one sibling group and its joins.
#[derive(Debug, Serialize, Deserialize)]
pub struct InstanceRow {
    pub id: u64,
    pub group: String,
    pub total: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<BranchRow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item_var: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fan_ins: Vec<FanInRow>,
    /// Branches that arrived at a join that has fired and still takes what comes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arrived: Vec<u32>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub closed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_by: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<Failure>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct FanInRow {
    pub node_id: String,
    pub transition_id: String,
    pub started_at: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fired_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub warned: bool,
}

impl InstanceRow {
    pub fn of(instance: &Instance, snapshot: &Snapshot) -> InstanceRow {
        let workflow = &snapshot.workflow;
        InstanceRow {
            id: instance.id.0,
            group: instance.group.clone(),
            total: instance.total,
            parent: instance.parent.as_ref().map(|branch| BranchRow::of(branch, None)),
            item_var: instance.item_var.clone(),
            fan_ins: instance
                .fan_ins
                .iter()
                .map(|(node, fan_in)| FanInRow {
                    node_id: workflow.nodes[*node].id.clone(),
                    transition_id: workflow.transitions[fan_in.transition].id.clone(),
                    started_at: fan_in.started_at,
                    timeout_at: fan_in.timeout_at,
                    timeout_ms: fan_in.timeout_ms,
                    fired_at: fan_in.fired_at,
                    warned: fan_in.warned,
                })
                .collect(),
            arrived: instance.late_arrivals(),
            closed: instance.closed,
            closed_by: instance.closed_by,
            last_error: instance.last_error.clone(),
        }
    }

    pub fn into_instance(self, snapshot: &Snapshot) -> Result<Instance, String> {
        let workflow = &snapshot.workflow;
        let parent = self.parent.map(BranchRow::into_branch);
        let mut instance = Instance::new(InstanceId(self.id), self.group, self.total, parent, self.item_var);
        instance.closed = self.closed;
        instance.closed_by = self.closed_by;
        instance.last_error = self.last_error;
        instance.remember_arrivals(self.arrived);
        for row in self.fan_ins {
            let node = workflow.node_index(&row.node_id);
            let transition = workflow
                .transitions
                .iter()
                .position(|it| it.id == row.transition_id);
            let (Some(node), Some(transition)) = (node, transition) else {
                return Err(format!(
                    "a join at unknown node {} or transition {}",
                    row.node_id, row.transition_id
                ));
            };
            instance.fan_ins.insert(
                node,
                FanIn::recalled(
                    transition,
                    row.started_at,
                    row.timeout_at,
                    row.timeout_ms,
                    row.fired_at,
                    row.warned,
                ),
            );
        }
        Ok(instance)
    }
}

/// A `null` that was written is a value, unlike a field that was not.
fn written<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// What a place held before: a list of one, or an empty one for nothing, because `null` is something.
mod undo_list {
    use serde::{Deserialize, Deserializer, Serializer};
    use serde_json::Value;

    pub fn serialize<S: Serializer>(
        undo: &[(String, Option<Value>)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(
            undo.iter()
                .map(|(key, before)| (key, before.iter().collect::<Vec<_>>())),
        )
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(String, Option<Value>)>, D::Error> {
        let rows = Vec::<(String, Vec<Value>)>::deserialize(deserializer)?;
        Ok(rows
            .into_iter()
            .map(|(key, before)| (key, before.into_iter().next()))
            .collect())
    }
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

fn is_none_yet(number: &u64) -> bool {
    *number == 0
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl TokenRow {
    pub fn of(token: &Token, run: &Run) -> TokenRow {
        let workflow = &run.snapshot().workflow;
        let token = token.clone();
        TokenRow {
            node_id: workflow.nodes[token.node].id.clone(),
            branch: token
                .branch
                .as_ref()
                .map(|branch| BranchRow::of(branch, Some(run))),
            joins_at: token.joins_at.map(|node| workflow.nodes[node].id.clone()),
            arrival: token.arrival,
            reminded: token.reminded,
            born_order: token.born_order,
            exit_order: token.exit_order,
            undo: token.undo,
            merge_undo: token.merge_undo,
            kept: token.kept,
            told_deadline: token.told_deadline,
            timeout_reason: token.timeout_reason,
            warned: token.warned,
            checkpoint: token.checkpoint,
            cut: token.cut,
            sleep_left_ms: token.sleep_left_ms,
            work_of: token.work_of.map(|id| id.0),
            child_news: token.child_news,
            escalation: token.escalation,
            stranded: token.stranded,
            epoch: token.epoch,
            unclaimed: token.unclaimed,
            unheard: token.unheard,
            retry_count: token.retry_count,
            lost_count: token.lost_count,
            lane: token.lane,
            parent: token.parent.map(|id| id.0),
            created_at: token.created_at,
            dispatched_at: token.dispatched_at,
            started_at: token.started_at,
            ended_at: token.ended_at,
            timeout_at: token.timeout_at,
            timeout_ms: token.timeout_ms,
            watch_at: token.watch_at,
            reason: token.reason,
            error: token.error,
            cause: token.cause,
            output: token.output,
            steps: token.steps,
            loops: token.loops,
        }
    }

    /// What a restart needs to know of this token.
    pub fn into_past(self, id: u64, snapshot: &Snapshot) -> Option<PastToken> {
        Some(PastToken {
            id: TokenId(id),
            node: snapshot.workflow.node_index(&self.node_id)?,
            in_branch: self.branch.is_some(),
            born_order: self.born_order,
            exit_order: self.exit_order,
            undo: self.undo,
            merge_undo: self.merge_undo,
        })
    }

    pub fn into_token(self, id: u64, status: TokenStatus, snapshot: &Snapshot) -> Result<Token, String> {
        let node = snapshot
            .workflow
            .node_index(&self.node_id)
            .ok_or_else(|| format!("token t{id} stands at unknown node {}", self.node_id))?;
        let joins_at = self
            .joins_at
            .as_deref()
            .and_then(|id| snapshot.workflow.node_index(id));
        Ok(Token {
            branch: self.branch.map(BranchRow::into_branch),
            joins_at,
            arrival: self.arrival,
            reminded: self.reminded,
            born_order: self.born_order,
            exit_order: self.exit_order,
            undo: self.undo,
            merge_undo: self.merge_undo,
            kept: self.kept,
            told_deadline: self.told_deadline,
            timeout_reason: self.timeout_reason,
            warned: self.warned,
            checkpoint: self.checkpoint,
            cut: self.cut,
            sleep_left_ms: self.sleep_left_ms,
            work_of: self.work_of.map(TokenId),
            child_news: self.child_news,
            escalation: self.escalation,
            stranded: self.stranded,
            id: TokenId(id),
            node,
            status,
            epoch: self.epoch,
            unclaimed: self.unclaimed,
            unheard: self.unheard,
            retry_count: self.retry_count,
            lost_count: self.lost_count,
            lane: self.lane,
            parent: self.parent.map(TokenId),
            created_at: self.created_at,
            dispatched_at: self.dispatched_at,
            started_at: self.started_at,
            ended_at: self.ended_at,
            timeout_at: self.timeout_at,
            timeout_ms: self.timeout_ms,
            watch_at: self.watch_at,
            reason: self.reason,
            error: self.error,
            cause: self.cause,
            output: self.output,
            steps: self.steps,
            loops: self.loops,
        })
    }
}

/// What a token that has ended keeps of the context.
#[derive(Deserialize)]
struct KeptRow {
    #[serde(default)]
    output: Value,
    #[serde(default, with = "undo_list")]
    kept: Vec<(String, Option<Value>)>,
}

/// Names and values, of the row of a token whose status is `KEEPING`.
pub fn kept(row: &str) -> Result<Vec<(String, Value)>, serde_json::Error> {
    let KeptRow { output, kept } = serde_json::from_str(row)?;
    let kept = kept.into_iter();
    Ok(kept
        .map(|(name, value)| (name, value.unwrap_or_else(|| output.clone())))
        .collect())
}

/// The status of a completed token that keeps something of the context: whoever loads the run finds it by this.
pub const KEEPING: &str = "completed+";

/// As the column has it.
pub fn status_of(token: &Token) -> &'static str {
    match token.kept.is_empty() {
        true => token.status.name(),
        false => KEEPING,
    }
}

pub fn parse_status(column: &str) -> Result<TokenStatus, String> {
    if column == KEEPING {
        return Ok(TokenStatus::Completed);
    }
    TokenStatus::ALL
        .into_iter()
        .find(|status| status.name() == column)
        .ok_or_else(|| format!("unknown token status {column}"))
}
