//! How a run stands, as its object tells the index: by the queue when something changed, and as the answer to a ring. Pure,
//! and pinned by golden files, because objects and index may be of different versions.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::views;
use crate::engine::{GateState, GateStatus, Run};
use crate::model::time::Millis;

/// Gates that the answer to a ring tells of, the newest first.
const GATES: usize = 100;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// Words may overtake each other: the higher one counts, and of two that are the same the later.
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
            summary: views::summary(&run.header),
        }
    }

    fn is_newer_than(&self, other: &Standing) -> bool {
        (self.revision, self.at) > (other.revision, other.at)
    }
}

/// Each run once, as it was told of last: one statement cannot change a row twice.
pub fn newest(told: Vec<Standing>) -> Vec<Standing> {
    let mut newest: Vec<Standing> = Vec::new();
    for standing in told {
        let id = &standing.summary["id"];
        match newest.iter_mut().find(|other| other.summary["id"] == *id) {
            Some(other) if standing.is_newer_than(other) => *other = standing,
            Some(_) => {}
            None => newest.push(standing),
        }
    }
    newest
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
        let views = gates.into_iter().take(GATES);
        Rung {
            standing: Some(Standing::of(run, now)),
            gates: views.map(|gate| views::gate(&run.header.id, gate)).collect(),
        }
    }
}
