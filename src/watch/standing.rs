//! How a run stands, as its object tells the index: by the queue when something changed, and as the answer to a ring. Pure,
//! and pinned by golden files, because objects and index may be of different versions.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::index_view;
use crate::engine::{GateState, GateStatus, Run};
use crate::model::time::Millis;

/// Gates that the answer to a ring tells of, the newest first.
const GATES: usize = 100;
/// What all of them may take: the more there are, the less is shown of each that the index has never heard of. It keeps what
/// it was told before.
const GATES_BYTES: usize = 96 << 10;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standing {
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

impl Standing {
    pub fn of(run: &Run, now: Millis) -> Standing {
        Standing {
            revision: run.header.revision,
            at: now,
            due_at: run.ends_by(),
            summary: index_view::run(&run.header),
        }
    }

    fn is_newer_than(&self, other: &Standing) -> bool {
        let age = |it: &Standing| (it.summary["started_at"].as_u64(), it.revision, it.at);
        age(self) > age(other)
    }
}

/// Each run once, as it was told of last, and who told it.
pub fn newest<Teller>(told: Vec<(Teller, Standing)>) -> Vec<(Teller, Standing)> {
    let mut newest: BTreeMap<String, (Teller, Standing)> = BTreeMap::new();
    for (teller, standing) in told {
        let id = standing.summary["id"].as_str().unwrap_or_default().to_string();
        match newest.entry(id) {
            Entry::Occupied(mut other) if standing.is_newer_than(&other.get().1) => {
                other.insert((teller, standing));
            }
            Entry::Occupied(_) => {}
            Entry::Vacant(place) => {
                place.insert((teller, standing));
            }
        }
    }
    newest.into_values().collect()
}

/// What an object answers when it is rung.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rung {
    /// None: no run lives there. Not a 404, which an object of a version without this door answers, too.
    pub standing: Option<Standing>,
    #[serde(default)]
    pub gates: Vec<Value>,
}

impl Rung {
    pub fn of(run: &Run, now: Millis) -> Rung {
        let mut gates: Vec<&GateState> = run.gates().collect();
        // Those that somebody waits at come first.
        gates.sort_by_key(|gate| (gate.status != GateStatus::Open, std::cmp::Reverse(gate.opened_at)));
        gates.truncate(GATES);
        let bytes = index_view::GATE_BYTES.min(GATES_BYTES / gates.len().max(1));
        Rung {
            standing: Some(Standing::of(run, now)),
            gates: gates
                .into_iter()
                .map(|gate| index_view::gate(&run.header.id, gate, bytes))
                .collect(),
        }
    }
}
