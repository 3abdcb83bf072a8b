//! Everything of a recorded run that a replay answers with.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::error::Error;
use crate::base::time::Millis;
use crate::protocol::run::GateDecision;
use crate::replay::departure::AttemptLimits;
use crate::replay::export::{Export, GateView};
use crate::replay::history::{History, events_by_token};
use crate::replay::recorded_calls::{CallPlace, RecordedAttempt, attempts};
use crate::replay::recorded_child::{RecordedChild, children};
use crate::replay::recorded_requests::{RecordedRequest, requests};
use crate::replay::recorded_tasks::RecordedTasks;
use crate::run::GateKind;

pub struct Recording {
    pub attempts: Vec<RecordedAttempt>,
    pub children: Vec<RecordedChild>,
    pub decisions: Vec<RecordedDecision>,
    /// The ids of all gates.
    pub gates: BTreeSet<String>,
    pub requests: Vec<RecordedRequest>,
    /// The limits of the attempts, where they are known.
    pub limits: BTreeMap<CallPlace, AttemptLimits>,
    /// Moments at which the object did something.
    pub wakes: BTreeSet<Millis>,
}

/// A person's decision at a gate.
#[derive(Clone, Debug)]
pub struct RecordedDecision {
    pub gate_id: String,
    pub node_id: Option<String>,
    pub kind: GateKind,
    pub after_ms: u64,
    pub decision: GateDecision,
    pub rank: u64,
}

impl Recording {
    pub fn of(export: &Export, tasks: &RecordedTasks) -> Result<Recording, Error> {
        let looked_up = History::of(export);
        let by_token = events_by_token(export);
        let mut recording = Recording {
            attempts: Vec::new(),
            children: Vec::new(),
            decisions: decisions(export),
            gates: export.gates.iter().map(|gate| gate.id.clone()).collect(),
            requests: requests(export)?,
            limits: BTreeMap::new(),
            wakes: export.events.iter().map(|event| event.at).collect(),
        };
        for token in &export.tokens {
            if let Some(events) = by_token.get(token.id.as_str()) {
                recording
                    .attempts
                    .extend(attempts(&looked_up, token, events, tasks));
                recording.children.extend(children(&looked_up, token, events));
            }
        }
        Ok(recording)
    }
}

fn decisions(export: &Export) -> Vec<RecordedDecision> {
    let decided = export.events.iter().filter(|event| event.kind == "gate_decided");
    let ranks: BTreeMap<&str, u64> = decided
        .filter_map(|event| Some((event.text("gate_id")?, event.seq)))
        .collect();
    let decided = export.gates.iter().filter_map(|gate: &GateView| {
        // One whose time was over has a decision, too: that of its policy.
        let rank = *ranks.get(gate.id.as_str())?;
        let decision = gate.decision.clone()?;
        Some(RecordedDecision {
            gate_id: gate.id.clone(),
            node_id: gate.node_id.clone(),
            kind: gate.kind,
            after_ms: decision.at.saturating_sub(gate.opened_at),
            rank,
            decision,
        })
    });
    decided.collect()
}
