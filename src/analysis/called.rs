//! The workflows that a workflow calls: what a run of each takes at most, under its own limit or the one of the node that calls it.

use crate::analysis::bounds::{Cost, UNBOUNDED};
use crate::analysis::ending::EndingBounds;
use crate::analysis::run_bounds::RunBounds;
use crate::analysis::span::Span;
use crate::definition::snapshot::{Snapshot, StoredSnapshot};
use crate::definition::workflow::WorkflowTimeoutPolicy;
use crate::run::Settings;

/// The bounds of the workflows that one workflow calls.
pub struct Called {
    /// By node: the index of the called workflow.
    node_children: Vec<Option<usize>>,
    bounds: Vec<Option<RunBounds>>,
    unknown: RunBounds,
}

/// A called run, as its caller sees it.
pub struct CalledRun {
    pub time_ms: u64,
    /// The part of it in which it is not paused at the gate of its limit.
    pub unpaused_ms: u64,
    /// How long it may wait for a person.
    pub person_ms: u64,
    /// The part of the time in which its clock runs.
    pub working_ms: u64,
    /// How often it comes to a person.
    pub stops: u64,
    pub wait_ms: u64,
    pub cost: Cost,
    pub happy: Cost,
}

/// What a caller means for a run that it calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct Around {
    /// The longest limit of a node that calls the workflow: it takes the place of the workflow's own.
    pub limit_ms: Option<u64>,
    /// How long the runs above may be paused at the gates of their limits, and the called run with them.
    pub paused_ms: u64,
}

impl Called {
    /// The bounds of every workflow that is called from `snapshot`, directly or not. Workflows that call each other have none.
    pub fn of(snapshot: &Snapshot, settings: &Settings) -> Called {
        let stored = &snapshot.stored.children;
        // A workflow was checked when it was stored; one that cannot be read has no bounds.
        let children: Vec<Option<Snapshot>> = stored
            .iter()
            .map(|child| Snapshot::read(child.clone()).ok())
            .collect();
        let order = callees_first(stored);
        let around = around_each(snapshot, &children, &order);
        let mut bounds: Vec<Option<RunBounds>> = vec![None; stored.len()];
        for &index in &order {
            let called = Called::known(stored[index].node_children.clone(), bounds.clone());
            bounds[index] = Some(match &children[index] {
                Some(child) => RunBounds::of(child, settings, &called, around[index], &Default::default()),
                None => RunBounds::unknown(),
            });
        }
        Called::known(snapshot.stored.node_children.clone(), bounds)
    }

    fn known(node_children: Vec<Option<usize>>, bounds: Vec<Option<RunBounds>>) -> Called {
        Called {
            node_children,
            bounds,
            unknown: RunBounds::unknown(),
        }
    }

    pub fn of_node(&self, node: usize) -> &RunBounds {
        let index = self.node_children.get(node).copied().flatten();
        let known = index.and_then(|index| self.bounds.get(index)?.as_ref());
        known.unwrap_or(&self.unknown)
    }

    /// Whether the node calls a workflow that may call itself.
    pub fn is_recursive(&self, node: usize) -> bool {
        let index = self.node_children.get(node).copied().flatten();
        index.is_some_and(|index| self.bounds.get(index).is_none_or(Option::is_none))
    }
}

/// The workflows of which all that they call come before them: those that cannot call themselves.
fn callees_first(stored: &[StoredSnapshot]) -> Vec<usize> {
    let mut order = Vec::new();
    let mut is_ordered = vec![false; stored.len()];
    loop {
        let is_ready = |index: &usize| {
            let mut calls = stored[*index].node_children.iter().flatten();
            !is_ordered[*index] && calls.all(|called| is_ordered.get(*called) == Some(&true))
        };
        let ready: Vec<usize> = (0..stored.len()).filter(is_ready).collect();
        if ready.is_empty() {
            return order;
        }
        for index in ready {
            is_ordered[index] = true;
            order.push(index);
        }
    }
}

/// What the callers of each workflow mean for its runs.
fn around_each(root: &Snapshot, children: &[Option<Snapshot>], order: &[usize]) -> Vec<Around> {
    let mut around = vec![Around::default(); children.len()];
    let callers_first = order.iter().rev().copied();
    for caller in std::iter::once(None).chain(callers_first.map(Some)) {
        let (snapshot, paused_ms) = match caller {
            None => (Some(root), 0),
            Some(index) => (children[index].as_ref(), around[index].paused_ms),
        };
        let Some(snapshot) = snapshot else {
            continue;
        };
        let own_ms = match snapshot.workflow.on_timeout {
            WorkflowTimeoutPolicy::HumanGate => snapshot.workflow.gate.timeout_ms,
            WorkflowTimeoutPolicy::CancelAll | WorkflowTimeoutPolicy::Fail => 0,
        };
        let paused_ms = paused_ms.saturating_add(own_ms);
        for node in 0..snapshot.workflow.nodes.len() {
            let called = snapshot.stored.node_children.get(node).copied().flatten();
            let Some(found) = called.and_then(|index| around.get_mut(index)) else {
                continue;
            };
            found.limit_ms = found.limit_ms.max(snapshot.execution_limit(node).limit.millis());
            found.paused_ms = found.paused_ms.max(paused_ms);
        }
    }
    around
}

impl RunBounds {
    /// A run under the limit of the node that calls it, or under its own.
    pub fn run(&self, limit_ms: Option<u64>, inherits_budget: bool) -> CalledRun {
        let (limit_ms, opens_gate) = match limit_ms {
            // The node decides what follows, unless the rest of its run's time is the shorter limit.
            Some(_) => (limit_ms, self.opens_gate && inherits_budget),
            None => (self.limit_ms, self.opens_gate),
        };
        let is_cut = inherits_budget || self.may_pass(limit_ms);
        let gate_ms = match opens_gate && is_cut {
            true => self.gate_ms,
            false => 0,
        };
        let path = self.path;
        let until_limit_ms = match limit_ms {
            Some(limit_ms) => path.time_ms.min(self.at_limit_ms(limit_ms)),
            None => path.time_ms,
        };
        // Otherwise the longest way has counted the work that is in flight when the run ends.
        let settling_ms = match is_cut {
            true => self.ending.settling_ms,
            false => self.ending.uncounted_ms,
        };
        let ending_ms = settling_ms.saturating_add(self.ending.phases_ms);
        let wait_ms = match limit_ms {
            Some(limit_ms) => self.wait_ms.min(self.at_limit_ms(limit_ms)),
            None => self.wait_ms,
        };
        let unpaused_ms = until_limit_ms.saturating_add(ending_ms);
        CalledRun {
            time_ms: unpaused_ms.saturating_add(gate_ms),
            unpaused_ms,
            person_ms: path.person_ms.saturating_add(gate_ms),
            working_ms: path.working_ms.min(until_limit_ms).saturating_add(ending_ms),
            stops: path.stops.saturating_add(1),
            wait_ms: wait_ms.max(gate_ms).max(settling_ms).max(self.ending.wait_ms),
            cost: self.cost,
            happy: self.happy,
        }
    }

    fn unknown() -> RunBounds {
        RunBounds {
            path: Span::UNBOUNDED,
            wait_ms: UNBOUNDED,
            ending: EndingBounds::unknown(),
            has_ending: false,
            limit_ms: None,
            gate_ms: 0,
            opens_gate: false,
            stops_at_gates: true,
            width: UNBOUNDED,
            cost: Cost::UNBOUNDED,
            happy: Cost::UNBOUNDED,
            longest_run_ms: UNBOUNDED,
        }
    }
}
