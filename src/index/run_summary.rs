//! A run's entry in the index. Run objects send it through the queue when something has changed, and in response to a probe of
//! the sweep. Golden files pin the shapes, because objects and index may run different builds.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::ordered::sort_by_key;
use crate::base::time::Millis;
use crate::index::index_view;
use crate::run::{GateState, GateStatus, Run, RunMetrics, RunStatus};

/// Gates in a probe response, the newest first.
const GATES_MAX: usize = 100;
/// For all gates of a probe response: the more there are, the more each is truncated. A gate that is in the index
/// already keeps its longer view.
const GATES_BYTES: usize = 96 << 10;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Messages may be reordered: of two summaries the one with the later start of the run counts, because ids may be reused;
    /// then the higher revision, then the later `at`.
    pub revision: u64,
    #[serde(default)]
    pub at: Millis,
    /// The run's deadline or, while it waits at its own gate, the deadline of the gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Millis>,
    /// Since when the run is paused or waits for a person as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked_since: Option<Millis>,
    /// What the run has added to the metrics so far. `None`: an earlier build sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Box<RunMetrics>>,
    /// The run's entry in lists.
    pub summary: Value,
    /// How often the run has ended. Each end is exported as a trace once.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ends: u64,
}

fn is_zero(ends: &u64) -> bool {
    *ends == 0
}

impl RunSummary {
    pub fn of(run: &Run, now: Millis) -> RunSummary {
        RunSummary {
            revision: run.header.revision,
            at: now,
            due_at: run.ends_by(),
            parked_since: run.parked_since(),
            metrics: run.metrics().cloned().map(Box::new),
            summary: index_view::run(&run.header),
            ends: run.header.ends,
        }
    }

    /// The end that the summary tells of, if the run has ended.
    pub fn ended(&self) -> Option<EndedRun> {
        let status = self.summary["status"].as_str()?;
        let mut statuses = RunStatus::ALL.into_iter();
        let status = statuses.find(|known| known.name() == status)?;
        status.is_terminal().then_some(EndedRun {
            run_id: self.summary["id"].as_str()?.to_string(),
            started_at: self.summary["started_at"].as_u64()?,
            end: Some(self.ends).filter(|ends| *ends > 0),
        })
    }

    fn is_newer_than(&self, other: &RunSummary) -> bool {
        let age = |it: &RunSummary| (it.summary["started_at"].as_u64(), it.revision, it.at);
        age(self) > age(other)
    }
}

/// One end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedRun {
    pub run_id: String,
    pub started_at: Millis,
    /// Its number. Absent in messages of earlier builds.
    pub end: Option<u64>,
}

impl EndedRun {
    /// Identifies the end.
    pub fn key(&self) -> String {
        let end = self.end.unwrap_or(0);
        format!("{}/{}/{end}", self.run_id, self.started_at)
    }
}

/// The newest summary of each run, with its source.
pub fn newest<Source>(summaries: Vec<(Source, RunSummary)>) -> Vec<(Source, RunSummary)> {
    let mut newest: BTreeMap<String, (Source, RunSummary)> = BTreeMap::new();
    for (source, summary) in summaries {
        let id = summary.summary["id"].as_str().unwrap_or_default().to_string();
        match newest.entry(id) {
            Entry::Occupied(mut other) if summary.is_newer_than(&other.get().1) => {
                other.insert((source, summary));
            }
            Entry::Occupied(_) => {}
            Entry::Vacant(entry) => {
                entry.insert((source, summary));
            }
        }
    }
    newest.into_values().collect()
}

/// The response of a run's object to a probe.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbeResponse {
    /// `None`: the object has no run. Not a 404, which an older build returns because it does not know the route.
    #[serde(rename = "standing")]
    pub summary: Option<RunSummary>,
    #[serde(default)]
    pub gates: Vec<Value>,
}

impl ProbeResponse {
    pub fn of(run: &Run, summary: RunSummary) -> ProbeResponse {
        let mut gates: Vec<&GateState> = run.gates().collect();
        // Open gates come first.
        sort_by_key(&mut gates, |gate| {
            (gate.status != GateStatus::Open, std::cmp::Reverse(gate.opened_at))
        });
        gates.truncate(GATES_MAX);
        let bytes = index_view::GATE_BYTES.min(GATES_BYTES / gates.len().max(1));
        ProbeResponse {
            summary: Some(summary),
            gates: gates
                .into_iter()
                .map(|gate| index_view::gate(&run.header.id, gate, bytes))
                .collect(),
        }
    }
}
