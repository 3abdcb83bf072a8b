//! What the rows of a run say about its time: when its tokens were made, dispatched and done, when its joins began, and its log.
//! Read one row at a time; results, which make rows large, are skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::base::text::shared;
use crate::base::time::Millis;
use crate::protocol::task::{NOT_TRIED_AGAIN, StepReport, StepStatus};
use crate::run::{
    FinalAction, InstanceId, Lane, RowEvent, RunEvent, RunEventKind, TimeoutRecord, TimeoutScope, TokenId,
};
use crate::storage::rows::InstanceRow;

/// Which rows of tokens and instances are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    None,
    Token(TokenId),
    All,
}

#[derive(Debug, Default)]
pub struct Facts {
    pub(super) tokens: BTreeMap<TokenId, TokenTimes>,
    pub(super) joins: Vec<JoinTimes>,
    /// The events that are rows of their own, by number.
    pub(super) log: Vec<Noted>,
}

#[derive(Debug)]
pub(super) struct TokenTimes {
    pub id: TokenId,
    pub node_id: Rc<str>,
    pub lane: Option<Lane>,
    pub parent: Option<TokenId>,
    pub created_at: Millis,
    pub started_at: Option<Millis>,
    /// When its work was done: of a token that waited at a join, its arrival there.
    pub ended_at: Option<Millis>,
    /// Pauses since it began the last time.
    pub stopped_ms: u64,
    pub branch: Option<(InstanceId, u32)>,
    pub joins_at: Option<Rc<str>>,
    pub has_error: bool,
    /// A step failed and might have been tried again with more time.
    pub lacked_time: bool,
    /// It arrived at a join that had fired, and was merged.
    pub merged_late: bool,
    /// Of the token that is asked about.
    pub steps: Vec<StepReport>,
    /// In the order of their numbers.
    pub events: Vec<Noted>,
}

/// A join of one firing of a group.
#[derive(Debug)]
pub(super) struct JoinTimes {
    pub instance: InstanceId,
    pub total: u32,
    pub node_id: String,
    pub transition_id: String,
    pub started_at: Millis,
    pub timeout_at: Option<Millis>,
}

/// The part of an event that says something about time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Noted {
    pub seq: u64,
    pub at: Millis,
    pub kind: RunEventKind,
    pub token: Option<TokenId>,
    pub epoch: Option<u64>,
    pub has_record: bool,
    pub flow: Option<FlowTimes>,
    /// Boxed, because most events have none and a run may have many events.
    more: Option<Box<More>>,
}

/// The limit of the run passed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FlowTimes {
    pub due_at: Millis,
    pub limit_ms: u64,
    pub action: FinalAction,
}

impl FlowTimes {
    fn of(record: &TimeoutRecord) -> Option<FlowTimes> {
        let event = &record.timeout_event;
        let is_flow = event.scope == TimeoutScope::Flow;
        let limit_ms = event.timeout_ms.filter(|_| is_flow)?;
        Some(FlowTimes {
            due_at: event.due_at,
            limit_ms,
            action: record.final_action,
        })
    }
}

/// What few events say.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct More {
    pub paused_ms: Option<u64>,
    pub by_ms: Option<u64>,
    pub version: Option<u64>,
    /// How a late attempt or a child ended.
    pub status: Option<String>,
    /// Of a signal.
    pub name: Option<String>,
    /// Of a retry of the run.
    pub mode: Option<String>,
    pub child_run_id: Option<String>,
}

const NOTHING_MORE: &More = &More {
    paused_ms: None,
    by_ms: None,
    version: None,
    status: None,
    name: None,
    mode: None,
    child_run_id: None,
};

impl Noted {
    fn new(seq: u64, at: Millis, kind: RunEventKind, fields: Option<&Map<String, Value>>) -> Noted {
        let number = |name: &str| fields.and_then(|it| it.get(name)).and_then(Value::as_u64);
        let text = |name: &str| fields.and_then(|it| it.get(name)).and_then(Value::as_str);
        Noted {
            seq,
            at,
            kind,
            token: text("token_id").and_then(TokenId::parse),
            epoch: number("epoch"),
            has_record: false,
            flow: None,
            more: Some(More {
                paused_ms: number("paused_ms"),
                by_ms: number("by_ms"),
                version: number("version"),
                status: text("status").map(str::to_string),
                name: text("name").map(str::to_string),
                mode: text("mode").map(str::to_string),
                child_run_id: text("child_run_id").map(str::to_string),
            })
            .filter(|more| more != NOTHING_MORE)
            .map(Box::new),
        }
    }

    pub fn more(&self) -> &More {
        self.more.as_deref().unwrap_or(NOTHING_MORE)
    }
}

impl Facts {
    /// The version with which the run has gone on after event `seq`, if it is another one.
    pub(super) fn other_version_after(&self, seq: u64) -> Option<u64> {
        let later = self.log.iter().filter(|event| event.seq > seq);
        later.filter_map(|event| event.more().version).next_back()
    }

    pub(super) fn of_kind(&self, kind: RunEventKind) -> impl Iterator<Item = &Noted> {
        self.log.iter().filter(move |event| event.kind == kind)
    }

    /// The first signal of this name after event `seq`, and the token that it went to. `None`: it was kept.
    pub(super) fn signal_after(&self, seq: u64, name: &str) -> Option<(&Noted, Option<&TokenTimes>)> {
        let is_it = |event: &&Noted| {
            event.kind == RunEventKind::SignalReceived
                && event.seq > seq
                && event.more().name.as_deref() == Some(name)
        };
        let kept = self.log.iter().filter(is_it).map(|event| (event, None));
        let tokens = self.tokens.values();
        let taken = tokens.flat_map(|token| {
            token
                .events
                .iter()
                .filter(is_it)
                .map(move |event| (event, Some(token)))
        });
        kept.chain(taken).min_by_key(|(event, _)| event.seq)
    }

    /// Each time that the limit of the run passed, from this moment on.
    pub(super) fn flow_timeouts(&self, from: Millis) -> impl Iterator<Item = &Noted> {
        let timeouts = self.log.iter().filter(|event| event.flow.is_some());
        timeouts.filter(move |event| event.at >= from)
    }

    /// The pauses of the run: all clocks stopped.
    pub(super) fn pauses(&self) -> impl Iterator<Item = (Millis, Millis)> {
        let ends = self.of_kind(RunEventKind::RunResumed);
        ends.filter_map(|end| Some((end.at.saturating_sub(end.more().paused_ms?), end.at)))
    }

    /// How much of a time the run was paused.
    pub(super) fn paused_ms(&self, from: Millis, to: Millis) -> u64 {
        let parts = self
            .pauses()
            .map(|(start, end)| end.min(to).saturating_sub(start.max(from)));
        parts.sum()
    }
}

/// The fields of a token's row that say something about time. `storage::rows::TokenRow` has all of them.
#[derive(Deserialize)]
struct TokenPart {
    node_id: String,
    #[serde(default)]
    lane: Option<Lane>,
    #[serde(default)]
    parent: Option<u64>,
    created_at: Millis,
    #[serde(default)]
    started_at: Option<Millis>,
    #[serde(default)]
    ended_at: Option<Millis>,
    #[serde(default)]
    stopped_ms: u64,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    error: Option<ErrorPart>,
    #[serde(default)]
    steps: Vec<StepReport>,
    #[serde(default)]
    branch: Option<BranchPart>,
    #[serde(default)]
    joins_at: Option<String>,
    #[serde(default)]
    arrival: Option<u64>,
    #[serde(default)]
    events: Vec<RowEvent>,
}

#[derive(Deserialize)]
struct ErrorPart {
    #[serde(default)]
    message: String,
}

impl TokenPart {
    fn lacked_time(&self) -> bool {
        match &self.error {
            Some(error) => error.message.contains(NOT_TRIED_AGAIN),
            // Its task went on without the step.
            None => self.steps.iter().any(|step| step.status == StepStatus::Failed),
        }
    }
}

#[derive(Deserialize)]
struct BranchPart {
    instance: u64,
    index: u32,
}

/// The reason of a branch that arrived late.
const LATE_MERGE: &str = "late_merge";

/// Collects the facts, one row at a time.
#[derive(Default)]
pub struct FactsReader {
    facts: Facts,
    node_ids: BTreeSet<Rc<str>>,
}

impl FactsReader {
    pub fn event(&mut self, event: &RunEvent) {
        let mut noted = Noted::new(event.seq, event.at, event.kind, Some(&event.fields));
        noted.has_record = event.record.is_some();
        noted.flow = event.record.as_deref().and_then(FlowTimes::of);
        self.facts.log.push(noted);
    }

    /// `keeps_steps`: of the token that is asked about.
    pub fn token(&mut self, id: u64, row: &str, keeps_steps: bool) -> Result<(), String> {
        let part: TokenPart = serde_json::from_str(row).map_err(|error| format!("token t{id}: {error}"))?;
        let id = TokenId(id);
        let lacked_time = part.lacked_time();
        let events = part.events.iter().map(|event| {
            let noted = Noted::new(event.seq, event.at, event.kind, event.fields.as_deref());
            Noted {
                token: Some(id),
                ..noted
            }
        });
        let times = TokenTimes {
            id,
            lane: part.lane,
            parent: part.parent.map(TokenId),
            created_at: part.created_at,
            started_at: part.started_at,
            ended_at: part.ended_at,
            stopped_ms: part.stopped_ms,
            branch: part.branch.map(|it| (InstanceId(it.instance), it.index)),
            has_error: part.error.is_some(),
            lacked_time,
            merged_late: part.reason.as_deref() == Some(LATE_MERGE),
            steps: if keeps_steps { part.steps } else { Vec::new() },
            events: events.collect(),
            joins_at: part
                .joins_at
                .filter(|_| part.arrival.is_some())
                .map(|id| shared(&mut self.node_ids, id)),
            node_id: shared(&mut self.node_ids, part.node_id),
        };
        self.facts.tokens.insert(id, times);
        Ok(())
    }

    pub fn instance(&mut self, row: &str) -> Result<(), String> {
        let row: InstanceRow = serde_json::from_str(row).map_err(|error| format!("an instance: {error}"))?;
        let (instance, total) = (InstanceId(row.id), row.total);
        let joins = row.fan_ins.into_iter().map(|join| JoinTimes {
            instance,
            total,
            node_id: join.node_id,
            transition_id: join.transition_id,
            started_at: join.started_at,
            timeout_at: join.timeout_at,
        });
        self.facts.joins.extend(joins);
        Ok(())
    }

    pub fn finish(mut self) -> Facts {
        self.facts.log.sort_by_key(|event| event.seq);
        for event in &self.facts.log {
            if let Some(token) = event.token.and_then(|id| self.facts.tokens.get_mut(&id)) {
                token.events.push(event.clone());
            }
        }
        for token in self.facts.tokens.values_mut() {
            token.events.sort_by_key(|event| event.seq);
        }
        self.facts
    }
}
