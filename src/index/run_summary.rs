//! How a run stands, as its object tells the index: by the queue when something changed, and as the answer to a ring. Pure,
//! and pinned by golden files, because objects and index may be of different versions.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::time::Millis;
use crate::index::index_view;
use crate::run::{GateState, GateStatus, Run};

/// Gates that the answer to a ring tells of, the newest first.
const GATES: usize = 100;
/// What all of them may take: the more there are, the less is shown of each that the index has never heard of. It keeps what
/// it was told before.
const GATES_BYTES: usize = 96 << 10;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Words may overtake each other: the higher one counts, and of two that are the same the later. A run that uses an id
    /// again begins anew with it: what started later counts before everything else.
    pub revision: u64,
    #[serde(default)]
    pub at: Millis,
    /// By when the run must have ended or asked a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Millis>,
    /// Its row in lists.
    pub summary: Value,
}

impl RunSummary {
    pub fn of(run: &Run, now: Millis) -> RunSummary {
        RunSummary {
            revision: run.header.revision,
            at: now,
            due_at: run.ends_by(),
            summary: index_view::run(&run.header),
        }
    }

    fn is_newer_than(&self, other: &RunSummary) -> bool {
        let age = |it: &RunSummary| (it.summary["started_at"].as_u64(), it.revision, it.at);
        age(self) > age(other)
    }
}

/// Each run once, as it was told of last, and who told it.
pub fn newest<Teller>(told: Vec<(Teller, RunSummary)>) -> Vec<(Teller, RunSummary)> {
    let mut newest: BTreeMap<String, (Teller, RunSummary)> = BTreeMap::new();
    for (teller, summary) in told {
        let id = summary.summary["id"].as_str().unwrap_or_default().to_string();
        match newest.entry(id) {
            Entry::Occupied(mut other) if summary.is_newer_than(&other.get().1) => {
                other.insert((teller, summary));
            }
            Entry::Occupied(_) => {}
            Entry::Vacant(place) => {
                place.insert((teller, summary));
            }
        }
    }
    newest.into_values().collect()
}

/// What an object answers when it is rung.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbeResponse {
    /// None: no run lives there. Not a 404, which an object of a version without this door answers, too.
    #[serde(rename = "standing")]
    pub summary: Option<RunSummary>,
    #[serde(default)]
    pub gates: Vec<Value>,
}

impl ProbeResponse {
    pub fn of(run: &Run, now: Millis) -> ProbeResponse {
        let mut gates: Vec<&GateState> = run.gates().collect();
        // Those that somebody waits at come first.
        gates.sort_by_key(|gate| (gate.status != GateStatus::Open, std::cmp::Reverse(gate.opened_at)));
        gates.truncate(GATES);
        let bytes = index_view::GATE_BYTES.min(GATES_BYTES / gates.len().max(1));
        ProbeResponse {
            summary: Some(RunSummary::of(run, now)),
            gates: gates
                .into_iter()
                .map(|gate| index_view::gate(&run.header.id, gate, bytes))
                .collect(),
        }
    }
}
