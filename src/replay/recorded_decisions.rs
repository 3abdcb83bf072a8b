//! What people decided at the gates of a recorded run.

use std::collections::{BTreeMap, VecDeque};

use crate::replay::recording::RecordedDecision;
use crate::run::{GateKind, GateState};

/// The decisions that were not taken yet.
pub struct Decisions {
    decisions: Vec<Option<RecordedDecision>>,
    by_gate: BTreeMap<String, usize>,
    /// By kind and node.
    by_place: BTreeMap<(&'static str, Option<String>), VecDeque<usize>>,
}

impl Decisions {
    pub fn new(decisions: Vec<RecordedDecision>) -> Decisions {
        let mut by_gate = BTreeMap::new();
        let mut by_place: BTreeMap<_, VecDeque<usize>> = BTreeMap::new();
        for (number, decision) in decisions.iter().enumerate() {
            by_gate.entry(decision.gate_id.clone()).or_insert(number);
            let place = (name_of(decision.kind), decision.node_id.clone());
            by_place.entry(place).or_default().push_back(number);
        }
        Decisions {
            decisions: decisions.into_iter().map(Some).collect(),
            by_gate,
            by_place,
        }
    }

    /// The decision at a gate: the one of the same gate, or else the next one at the same place.
    pub fn take(&mut self, gate: &GateState, must_be_same: bool) -> Option<RecordedDecision> {
        if must_be_same {
            let found = &mut self.decisions[*self.by_gate.get(&gate.id)?];
            let is_alike = |decision: &mut RecordedDecision| {
                decision.kind == gate.kind && decision.node_id == gate.node_id
            };
            return found.take_if(is_alike);
        }
        let place = (name_of(gate.kind), gate.node_id.clone());
        let numbers = self.by_place.get_mut(&place)?;
        std::iter::from_fn(|| numbers.pop_front()).find_map(|number| self.decisions[number].take())
    }
}

fn name_of(kind: GateKind) -> &'static str {
    match kind {
        GateKind::Node => "node",
        GateKind::WorkflowTimeout => "workflow_timeout",
        GateKind::Escalation => "escalation",
    }
}
