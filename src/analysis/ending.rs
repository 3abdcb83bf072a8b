//! What follows the decision to end a run: work in flight reports, then compensations run one after the other, then end handlers.

use crate::analysis::bounds::{Assume, Bounds, Cost};
use crate::analysis::called::Called;
use crate::analysis::node_bounds::{MESSAGE_MS, NodeBounds};
use crate::base::time::SECOND;
use crate::definition::ending::EndStatus;
use crate::definition::snapshot::Snapshot;

/// The bounds of the end of a run.
#[derive(Clone, Debug, Default)]
pub struct EndingBounds {
    /// How long work in flight may go on that a limit of the run does not stop.
    pub settling_ms: u64,
    /// The node of that work.
    pub settling_node: Option<usize>,
    /// Of that, what no way through the graph has counted: a called run that ends beyond the limit of its node.
    pub uncounted_ms: u64,
    /// Compensations, then end handlers.
    pub phases_ms: u64,
    /// The longest wait for one thing, and where it is written.
    pub wait_ms: u64,
    pub pointer: Option<String>,
}

/// How late the end of a phase is noticed at most.
const PHASE_SLACK_MS: u64 = SECOND;

const STATUSES: &[EndStatus] = &[
    EndStatus::Completed,
    EndStatus::Failed,
    EndStatus::TimedOut,
    EndStatus::Cancelled,
];

impl EndingBounds {
    pub fn of(snapshot: &Snapshot, called: &Called, bounds: &Bounds, nodes: &[NodeBounds]) -> EndingBounds {
        let workflow = &snapshot.workflow;
        let phase_ms = workflow.compensation.timeout_ms.saturating_add(PHASE_SLACK_MS);
        let mut found = EndingBounds::default();
        let mut compensations = vec![Cost::default(); bounds.graph.node_count];
        let compensates = compensates(snapshot);
        for node in (0..bounds.graph.node_count).filter(|node| bounds.graph.reachable[*node]) {
            found.settle(snapshot, called, nodes, node);
            let compensation = workflow.nodes[node].compensate.filter(|_| compensates);
            if let Some(compensation) = compensation {
                // A sum over all tokens, as of what they cost.
                compensations[node].open_ms = nodes[compensation].time_ms;
                let pointer = || format!("/nodes/{node}/compensate");
                found.wait(nodes[compensation].wait_ms.min(phase_ms), pointer);
            }
        }
        found.settling_ms = found.settling_ms.min(phase_ms);
        found.uncounted_ms = found.uncounted_ms.min(phase_ms);
        let compensating_ms = match compensates {
            true => bounds.total(&compensations, Assume::Worst).open_ms.min(phase_ms),
            false => 0,
        };
        for (index, handler) in workflow.end_handlers.iter().enumerate() {
            let pointer = || format!("/on_end/{index}");
            found.wait(nodes[handler.node].wait_ms.min(phase_ms), pointer);
        }
        let phases = STATUSES.iter().map(|status| {
            let compensating_ms = match workflow.compensation.on.contains(status) {
                true => compensating_ms,
                false => 0,
            };
            let handlers = workflow.end_handlers.iter();
            let handlers = handlers.filter(|handler| handler.on.contains(status));
            let handling = handlers.map(|handler| nodes[handler.node].time_ms);
            let handling_ms = handling.fold(0, u64::saturating_add).min(phase_ms);
            compensating_ms.saturating_add(handling_ms)
        });
        found.phases_ms = phases.max().unwrap_or(0);
        found
    }

    /// Takes the work of a node into account that must report before anything is compensated.
    fn settle(&mut self, snapshot: &Snapshot, called: &Called, nodes: &[NodeBounds], node: usize) {
        let is_undone = compensates(snapshot) && snapshot.workflow.nodes[node].compensate.is_some();
        let ends_itself = snapshot.child_has_ending(node) || called.of_node(node).has_ending;
        if snapshot.call_of(node).is_none() {
            if is_undone {
                self.settles(node, nodes[node].wait_ms);
            }
            return;
        }
        if !is_undone && !ends_itself {
            return;
        }
        // The called run is cancelled.
        let ending = &called.of_node(node).ending;
        let ends_ms = ending.settling_ms.saturating_add(ending.phases_ms);
        let ends_ms = ends_ms.saturating_add(2 * MESSAGE_MS);
        self.settles(node, ends_ms);
        if snapshot.execution_limit(node).limit.millis().is_some() {
            self.uncounted_ms = self.uncounted_ms.max(ends_ms);
        }
    }

    fn settles(&mut self, node: usize, millis: u64) {
        if millis > self.settling_ms {
            self.settling_ms = millis;
            self.settling_node = Some(node);
        }
    }

    fn wait(&mut self, wait_ms: u64, pointer: impl Fn() -> String) {
        if wait_ms > self.wait_ms {
            self.wait_ms = wait_ms;
            self.pointer = Some(pointer());
        }
    }

    /// Of a run of which nothing is known.
    pub fn unknown() -> EndingBounds {
        EndingBounds {
            settling_ms: u64::MAX,
            settling_node: None,
            uncounted_ms: u64::MAX,
            phases_ms: u64::MAX,
            wait_ms: u64::MAX,
            pointer: None,
        }
    }
}

/// Whether a run of the workflow, or one that it calls, may compensate or handle its end. The snapshot of a called workflow does not
/// have those that it calls itself.
pub fn has_ending(snapshot: &Snapshot, called: &Called) -> bool {
    let workflow = &snapshot.workflow;
    let is_undone = workflow.nodes.iter().any(|node| node.compensate.is_some());
    let has_handler = !workflow.end_handlers.is_empty();
    is_undone || has_handler || (0..workflow.nodes.len()).any(|node| called.of_node(node).has_ending)
}

fn compensates(snapshot: &Snapshot) -> bool {
    let workflow = &snapshot.workflow;
    let mut nodes = workflow.nodes.iter();
    !workflow.compensation.on.is_empty() && nodes.any(|node| node.compensate.is_some())
}

/// The cost of compensations and end handlers, in the worst case and if all goes well.
pub fn cost(snapshot: &Snapshot, bounds: &Bounds, nodes: &[NodeBounds]) -> (Cost, Cost) {
    let workflow = &snapshot.workflow;
    let (mut worst, mut happy) = (Cost::default(), Cost::default());
    if compensates(snapshot) {
        let declared = workflow.nodes[..bounds.graph.node_count].iter();
        let of_node = |compensation: Option<usize>| compensation.map(|node| nodes[node].cost);
        let costs: Vec<Cost> = declared
            .map(|node| of_node(node.compensate).unwrap_or_default())
            .collect();
        worst = bounds.total(&costs, Assume::Worst);
    }
    for handler in &workflow.end_handlers {
        worst = worst.plus(nodes[handler.node].cost);
        if handler.on.contains(&EndStatus::Completed) {
            happy = happy.plus(nodes[handler.node].happy);
        }
    }
    (worst, happy)
}
