//! What a run contributes to the metrics of the deployment, as totals that only grow. They are counted while the run is in memory
//! and can be counted again from its rows, so they need no row of their own and are exact after a crash.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::base::failure::FailureClass;
use crate::base::ordered::sort_by_key;
use crate::base::time::Millis;
use crate::protocol::task::StepReport;
use crate::run::header::RunStatus;
use crate::run::state::Run;
use crate::run::time::event_log::{RunEvent, RunEventKind};
use crate::run::time::row_events::RowEvent;
use crate::run::time::timeout_record::{TimeoutRecord, TimeoutScope};
use crate::run::token::{Token, TokenStatus};
use crate::run::wait::gate::GateStatus;

/// Upper bounds of how late a deadline may be enforced.
pub const LATENESS_BOUNDS_MS: &[u64] = &[
    1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000,
];
/// Upper bounds of how long a run takes.
pub const RUN_BOUNDS_MS: &[u64] = &[
    100, 500, 1_000, 5_000, 10_000, 30_000, 60_000, 300_000, 1_800_000, 3_600_000, 21_600_000, 86_400_000,
];
/// Upper bounds of how long a node takes.
pub const NODE_BOUNDS_MS: &[u64] = &[
    10, 100, 500, 1_000, 5_000, 10_000, 60_000, 300_000, 1_800_000, 3_600_000,
];

/// The nodes of a run that are measured by name: the first ones of its document. The others are measured together, so that the
/// message to the index stays small. The choice must not depend on what has happened: totals would move from name to name.
pub const NAMED_NODES: usize = 100;
pub const OTHER: &str = "other";

/// Counts by upper bound, without those that are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// Each measurement is in one of them only. `u64::MAX` is the last one.
    #[serde(with = "bounds")]
    pub counts: BTreeMap<u64, u64>,
    pub sum_ms: u64,
}

/// Bounds as texts: what holds a histogram may be read by way of a value whose keys are texts only.
mod bounds {
    use std::collections::BTreeMap;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(counts: &BTreeMap<u64, u64>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(counts.iter().map(|(bound, count)| (bound.to_string(), count)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<u64, u64>, D::Error> {
        let counts = BTreeMap::<String, u64>::deserialize(deserializer)?.into_iter();
        counts
            .map(|(bound, count)| Ok((bound.parse().map_err(D::Error::custom)?, count)))
            .collect()
    }
}

impl Histogram {
    pub fn add(&mut self, bounds: &[u64], millis: u64) {
        let bound = bounds.iter().find(|bound| millis <= **bound);
        *self.counts.entry(bound.copied().unwrap_or(u64::MAX)).or_default() += 1;
        self.sum_ms = self.sum_ms.saturating_add(millis);
    }

    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}

/// The totals of a run. Optional fields are added as such: objects and index may run different builds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunMetrics {
    /// Starts, retries and restarts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub starts: u64,
    /// Ends by status. A run that is retried or restarted may end several times.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ends: BTreeMap<String, u64>,
    /// From a start, retry or restart to the end after it.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub duration: Histogram,
    /// Deadlines that were enforced, by layer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub timeouts: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub lateness: Histogram,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nodes: BTreeMap<String, Histogram>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub retries: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late_results: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub redelivered: u64,
    /// As of the last saved header.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rows_written: u64,
    /// When the run was started, retried or restarted last.
    #[serde(skip)]
    pub began_at: Millis,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The part of an event that is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredEvent {
    pub seq: u64,
    pub at: Millis,
    pub kind: RunEventKind,
    /// Of a timeout: which kind of deadline, and how late it was enforced.
    pub timeout: Option<(TimeoutScope, u64)>,
}

impl MeasuredEvent {
    pub fn on_row(event: &RowEvent) -> MeasuredEvent {
        MeasuredEvent {
            seq: event.seq,
            at: event.at,
            kind: event.kind,
            timeout: None,
        }
    }

    pub fn of(event: &RunEvent) -> MeasuredEvent {
        let of_record = |record: &TimeoutRecord| {
            let event = &record.timeout_event;
            (event.scope, event.lateness_ms)
        };
        MeasuredEvent {
            seq: event.seq,
            at: event.at,
            kind: event.kind,
            timeout: event.record.as_deref().map(of_record),
        }
    }
}

/// The part of an ended token that is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredToken {
    pub node_id: String,
    pub status: TokenStatus,
    pub created_at: Millis,
    pub started_at: Option<Millis>,
    pub ended_at: Option<Millis>,
    pub retried: BTreeMap<FailureClass, u64>,
}

impl MeasuredToken {
    /// How long its work took. `None`: it did none, or it was cut off. A token that only took over the arrival of another one at
    /// a join has that one's times, from before its own creation.
    fn work_ms(&self) -> Option<u64> {
        work_ms(self.status, self.created_at, self.started_at, self.ended_at)
    }
}

/// The rows of a run that are not in memory and that its metrics are counted from. Without the events of the header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeasuredRows {
    pub events: Vec<MeasuredEvent>,
    pub ended_tokens: Vec<MeasuredToken>,
}

impl RunMetrics {
    fn count_event(&mut self, event: &MeasuredEvent) {
        if let Some((scope, lateness_ms)) = event.timeout {
            add(&mut self.timeouts, scope.layer(), 1);
            self.lateness.add(LATENESS_BOUNDS_MS, lateness_ms);
        }
        let ended_as = match event.kind {
            RunEventKind::RunStarted | RunEventKind::RunRetried | RunEventKind::RunRestarted => {
                self.starts += 1;
                self.began_at = event.at;
                return;
            }
            RunEventKind::RunCompleted => RunStatus::Completed,
            RunEventKind::RunFailed => RunStatus::Failed,
            RunEventKind::RunTimedOut => RunStatus::TimedOut,
            RunEventKind::RunCancelled => RunStatus::Cancelled,
            RunEventKind::TokenRetried => return add(&mut self.retries, FailureClass::Timeout.name(), 1),
            RunEventKind::LateResultDiscarded => {
                self.late_results += 1;
                return;
            }
            RunEventKind::DispatchRungAgain => {
                self.redelivered += 1;
                return;
            }
            RunEventKind::RunCompensating
            | RunEventKind::RunPaused
            | RunEventKind::RunResumed
            | RunEventKind::RunExtended
            | RunEventKind::TokenCreated
            | RunEventKind::TokenDispatched
            | RunEventKind::TokenCompleted
            | RunEventKind::TokenFailed
            | RunEventKind::TokenTimedOut
            | RunEventKind::TokenCancelled
            | RunEventKind::FanOutStarted
            | RunEventKind::FanInStarted
            | RunEventKind::FanInCompleted
            | RunEventKind::SyncTimedOut
            | RunEventKind::GateOpened
            | RunEventKind::GateReminded
            | RunEventKind::GateDecided
            | RunEventKind::GateTimedOut
            | RunEventKind::DeadlineWarning
            | RunEventKind::SignalReceived
            | RunEventKind::SubworkflowStarted
            | RunEventKind::SubworkflowEnded
            | RunEventKind::SubworkflowPaused
            | RunEventKind::SubworkflowResumed
            | RunEventKind::LimitExceeded
            | RunEventKind::AttemptReaped => return,
        };
        add(&mut self.ends, ended_as.name(), 1);
        self.duration
            .add(RUN_BOUNDS_MS, event.at.saturating_sub(self.began_at));
    }

    fn count_node(&mut self, name: &str, millis: u64) {
        if !self.nodes.contains_key(name) {
            self.nodes.insert(name.to_string(), Histogram::default());
        }
        if let Some(node) = self.nodes.get_mut(name) {
            node.add(NODE_BOUNDS_MS, millis);
        }
    }

    fn count_retries(&mut self, retried: &BTreeMap<FailureClass, u64>) {
        for (class, count) in retried {
            add(&mut self.retries, class.name(), *count);
        }
    }
}

fn add(counts: &mut BTreeMap<String, u64>, name: &str, more: u64) {
    match counts.get_mut(name) {
        Some(count) => *count += more,
        None => {
            counts.insert(name.to_string(), more);
        }
    }
}

fn work_ms(
    status: TokenStatus,
    created_at: Millis,
    started_at: Option<Millis>,
    ended_at: Option<Millis>,
) -> Option<u64> {
    let is_measured = match status {
        TokenStatus::Completed | TokenStatus::Failed | TokenStatus::TimedOut => true,
        TokenStatus::Cancelled
        | TokenStatus::Pending
        | TokenStatus::Dispatched
        | TokenStatus::Executing
        | TokenStatus::WaitingForSiblings
        | TokenStatus::WaitingForSubworkflow
        | TokenStatus::AwaitingHuman
        | TokenStatus::Suspended => false,
    };
    let started_at = started_at.filter(|at| is_measured && *at >= created_at)?;
    Some(ended_at?.saturating_sub(started_at))
}

/// Retries of these steps, by the class of the failure before each.
pub(in crate::run) fn retries_of(steps: &[StepReport]) -> BTreeMap<FailureClass, u64> {
    let mut retries = BTreeMap::new();
    for retry in steps.iter().flat_map(|step| &step.retries) {
        *retries.entry(retry.class).or_default() += 1;
    }
    retries
}

impl Run {
    /// `None` after the run was loaded, until `restore_metrics`: most requests do not need them.
    pub fn metrics(&self) -> Option<&RunMetrics> {
        self.metrics.as_ref()
    }

    pub fn restore_metrics(&mut self, rows: MeasuredRows) {
        self.metrics = Some(self.counted_from(rows));
    }

    /// Counts the metrics from the rows of the run and from what is in memory.
    pub fn counted_from(&self, mut rows: MeasuredRows) -> RunMetrics {
        let mut metrics = RunMetrics {
            began_at: self.header.started_at,
            ..RunMetrics::default()
        };
        rows.events
            .extend(self.header.events.iter().map(MeasuredEvent::on_row));
        sort_by_key(&mut rows.events, |event| event.seq);
        for event in &rows.events {
            metrics.count_event(event);
        }
        for token in &rows.ended_tokens {
            metrics.count_retries(&token.retried);
            if let Some(millis) = token.work_ms() {
                metrics.count_node(self.measured_name(&token.node_id), millis);
            }
        }
        for token in self.tokens.values() {
            metrics.count_retries(&token.retried);
        }
        metrics.rows_written = self.header.rows_written;
        metrics
    }

    fn measured_name<'a>(&self, node_id: &'a str) -> &'a str {
        let workflow = &self.snapshot.workflow;
        let is_named = workflow.nodes.len() <= NAMED_NODES
            || workflow
                .node_index(node_id)
                .is_some_and(|node| node < NAMED_NODES);
        if is_named { node_id } else { OTHER }
    }

    /// Events that the decision saves, and tokens that it ended.
    pub(in crate::run) fn measure(
        &mut self,
        mut on_header: Vec<MeasuredEvent>,
        rows: &[RunEvent],
        ended: &[Token],
    ) {
        let Some(metrics) = &mut self.metrics else {
            return;
        };
        let nodes = &self.snapshot.workflow.nodes;
        on_header.extend(rows.iter().map(MeasuredEvent::of));
        // A run may be restarted and end in one decision.
        sort_by_key(&mut on_header, |event| event.seq);
        for event in &on_header {
            metrics.count_event(event);
        }
        for token in ended {
            let millis = work_ms(token.status, token.created_at, token.started_at, token.ended_at);
            if let Some(millis) = millis {
                let is_named = nodes.len() <= NAMED_NODES || token.node < NAMED_NODES;
                let name = if is_named { &nodes[token.node].id } else { OTHER };
                metrics.count_node(name, millis);
            }
        }
    }

    pub(in crate::run) fn measure_retries(&mut self, retried: &BTreeMap<FailureClass, u64>) {
        if let Some(metrics) = &mut self.metrics {
            metrics.count_retries(retried);
        }
    }

    /// The object counted the rows that it has written for the run.
    pub fn note_rows_written(&mut self, rows: u64) {
        self.header.rows_written = rows;
        if let Some(metrics) = &mut self.metrics {
            metrics.rows_written = rows;
        }
    }

    /// Since when the run is paused, or all of it waits for a person.
    pub fn parked_since(&self) -> Option<Millis> {
        if self.has_ended() {
            return None;
        }
        if let Some(at) = self.header.paused_at {
            return Some(at);
        }
        if !self.waits_for_person() {
            return None;
        }
        let open = self.gates().filter(|gate| gate.status == GateStatus::Open);
        let opened = open.map(|gate| gate.opened_at);
        let began = self.tokens.values().filter_map(|token| token.started_at);
        self.header.stopped_at.or(opened.max()).or(began.max())
    }
}
