//! All gates of a run, open and closed, and which of them a decision changed.
//!
//! A gate belongs to one token, or to the whole run. At most one gate of the run is open.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::ordered::map_of;
use crate::base::time::Millis;
use crate::run::time::row_events::RowEvent;
use crate::run::token::TokenId;
use crate::run::wait::gate::{GateDecision, GateState, GateStatus};

#[derive(Debug, Default)]
pub(in crate::run) struct Gates {
    by_id: BTreeMap<String, GateState>,
    open_run_gate: Option<String>,
    changed: BTreeSet<String>,
}

/// The gate of a node, for the token that waits there.
pub(in crate::run) fn node_gate_id(token: TokenId) -> String {
    format!("g{}", token.0)
}

impl Gates {
    pub fn restore(gates: Vec<GateState>) -> Gates {
        let is_open_run_gate = |gate: &&GateState| gate.token_id.is_none() && is_open(gate);
        let run_gate = gates.iter().find(is_open_run_gate);
        Gates {
            open_run_gate: run_gate.map(|gate| gate.id.clone()),
            by_id: map_of(gates.into_iter().map(|gate| (gate.id.clone(), gate))),
            changed: BTreeSet::new(),
        }
    }

    pub fn get(&self, id: &str) -> Option<&GateState> {
        self.by_id.get(id)
    }

    pub fn iter(&self) -> impl Iterator<Item = &GateState> {
        self.by_id.values()
    }

    /// The open gate of the whole run.
    pub fn run_gate(&self) -> Option<&GateState> {
        self.by_id.get(self.open_run_gate.as_ref()?)
    }

    /// The open gate of a token, or without a token that of the whole run.
    pub fn open_of(&self, token_id: Option<&str>) -> Option<&GateState> {
        match token_id {
            None => self.run_gate(),
            Some(token_id) => {
                let mut open = self.by_id.values().filter(|gate| is_open(gate));
                open.find(|gate| gate.token_id.as_deref() == Some(token_id))
            }
        }
    }

    pub fn open(&mut self, gate: GateState) {
        if gate.token_id.is_none() {
            self.open_run_gate = Some(gate.id.clone());
        }
        self.changed.insert(gate.id.clone());
        self.by_id.insert(gate.id.clone(), gate);
    }

    pub fn close(&mut self, id: &str, status: GateStatus, decision: Option<GateDecision>) {
        let gate = self.change(id);
        gate.status = status;
        gate.decision = decision;
        if self.open_run_gate.as_deref() == Some(id) {
            self.open_run_gate = None;
        }
    }

    /// The token ends for another reason: nothing is left to decide. A token without a gate has nothing to withdraw.
    pub fn withdraw(&mut self, id: &str) {
        if self.by_id.get(id).is_some_and(is_open) {
            self.close(id, GateStatus::Cancelled, None);
        }
    }

    pub fn add_event(&mut self, id: &str, event: RowEvent) {
        self.change(id).events.push(event);
    }

    pub fn mark_reminded(&mut self, id: &str, now: Millis) {
        self.change(id).reminded_at = Some(now);
    }

    /// The warning of the deadline of the run's gate was logged.
    pub fn mark_warned(&mut self, id: &str) {
        self.change(id).warned = true;
    }

    fn change(&mut self, id: &str) -> &mut GateState {
        self.changed.insert(id.to_string());
        self.by_id.get_mut(id).expect("gates are never removed")
    }

    /// A token may be escalated again after a retry: each time opens a gate of its own.
    pub fn next_escalation_id(&self, token: TokenId) -> String {
        let prefix = format!("{}.", node_gate_id(token));
        let gates = self.by_id.range(prefix.clone()..);
        let opened = gates.take_while(|(id, _)| id.starts_with(&prefix)).count();
        format!("{prefix}{}", opened + 1)
    }

    /// Moves the deadlines of open token gates by the length of a pause. The gate of the run may end the pause, so
    /// its deadline stays.
    pub fn shift_deadlines(&mut self, pause_ms: u64) {
        for (id, gate) in &mut self.by_id {
            let is_shifted = is_open(gate) && gate.token_id.is_some();
            if let Some(at) = gate.timeout_at.filter(|_| is_shifted) {
                gate.timeout_at = Some(at.saturating_add(pause_ms));
                self.changed.insert(id.clone());
            }
        }
    }

    /// The gates to save.
    pub fn take_changes(&mut self) -> Vec<GateState> {
        let changed = std::mem::take(&mut self.changed);
        let gates = changed.iter().filter_map(|id| self.by_id.get(id));
        gates.cloned().collect()
    }
}

fn is_open(gate: &GateState) -> bool {
    gate.status == GateStatus::Open
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::run::wait::gate::GateKind;

    fn of_run(id: &str) -> GateState {
        GateState::open(id.into(), GateKind::WorkflowTimeout, Value::Null, Vec::new(), 0)
    }

    fn of_token(id: &str, token: u64) -> GateState {
        GateState {
            token_id: Some(TokenId(token).to_string()),
            timeout_at: Some(100),
            kind: GateKind::Node,
            ..of_run(id)
        }
    }

    fn closed(gate: GateState) -> GateState {
        GateState {
            status: GateStatus::Decided,
            ..gate
        }
    }

    fn changed(gates: &mut Gates) -> Vec<String> {
        let changed = gates.take_changes();
        changed.into_iter().map(|gate| gate.id).collect()
    }

    #[test]
    fn the_gate_of_the_run_is_the_open_one_without_a_token() {
        let cases = [
            ("none", vec![], None),
            ("of a token", vec![of_token("g1", 1)], None),
            ("closed", vec![closed(of_run("run1"))], None),
            (
                "the second",
                vec![of_token("g1", 1), closed(of_run("run1")), of_run("run2")],
                Some("run2"),
            ),
        ];
        for (case, stored, expected) in cases {
            let mut gates = Gates::restore(stored);
            assert_eq!(gates.run_gate().map(|gate| gate.id.as_str()), expected, "{case}");
            assert!(
                gates.take_changes().is_empty(),
                "{case}: restored as it was saved"
            );
        }
    }

    #[test]
    fn the_gate_of_the_run_is_closed_once() {
        let mut gates = Gates::default();
        gates.open(of_run("run1"));
        assert!(gates.run_gate().is_some());
        assert_eq!(changed(&mut gates), ["run1"]);
        gates.close("run1", GateStatus::TimedOut, None);
        assert!(gates.run_gate().is_none());
        assert_eq!(changed(&mut gates), ["run1"]);
        gates.withdraw("run1");
        assert_eq!(changed(&mut gates), [] as [&str; 0], "none was open");
        let status = gates.get("run1").map(|gate| gate.status);
        assert_eq!(status, Some(GateStatus::TimedOut), "a closed gate is kept");
    }

    #[test]
    fn only_an_open_gate_is_withdrawn() {
        let mut gates = Gates::restore(vec![of_token("g1", 1), closed(of_token("g2", 2))]);
        for id in ["g1", "g2", "g3"] {
            gates.withdraw(id);
        }
        assert_eq!(changed(&mut gates), ["g1"]);
        let status = |id: &str| gates.get(id).map(|gate| gate.status);
        assert_eq!(status("g1"), Some(GateStatus::Cancelled));
        assert_eq!(status("g2"), Some(GateStatus::Decided));
        assert_eq!(status("g3"), None);
    }

    #[test]
    fn each_escalation_of_a_token_has_a_gate_of_its_own() {
        let mut gates = Gates::default();
        // Neither the gate of its node counts, nor the gates of a token whose id has the same prefix.
        gates.open(of_token("g1", 1));
        gates.open(of_token("g10.1", 10));
        for expected in ["g1.1", "g1.2", "g1.3"] {
            let id = gates.next_escalation_id(TokenId(1));
            assert_eq!(id, expected);
            gates.open(of_token(&id, 1));
        }
        assert_eq!(gates.next_escalation_id(TokenId(10)), "g10.2");
    }

    #[test]
    fn a_pause_moves_the_deadlines_of_open_token_gates() {
        let run_gate = GateState {
            timeout_at: Some(100),
            ..of_run("run1")
        };
        let without_deadline = GateState {
            timeout_at: None,
            ..of_token("g3", 3)
        };
        let stored = vec![
            of_token("g1", 1),
            closed(of_token("g2", 2)),
            without_deadline,
            run_gate,
        ];
        let mut gates = Gates::restore(stored);
        gates.shift_deadlines(50);
        assert_eq!(changed(&mut gates), ["g1"]);
        let deadline = |id: &str| gates.get(id).and_then(|gate| gate.timeout_at);
        let deadlines = ["g1", "g2", "g3", "run1"].map(deadline);
        assert_eq!(deadlines, [Some(150), Some(100), None, Some(100)]);
    }

    #[test]
    fn reminders_and_warnings_are_saved() {
        let mut gates = Gates::restore(vec![of_token("g1", 1), of_run("run1")]);
        gates.mark_reminded("g1", 7);
        gates.mark_warned("run1");
        let changed = gates.take_changes();
        assert_eq!(changed[0].reminded_at, Some(7));
        assert!(changed[1].warned);
        assert!(gates.take_changes().is_empty(), "each change is saved once");
    }
}
