//! The most that one run of a workflow can take.
//!
//! Covered is one attempt of the run that nobody pauses, extends, retries or restarts, with executors that report on time or are
//! silent until the grace after their deadline, and messages that arrive. Crashes and lost calls are not covered: they repeat work.

use crate::analysis::bounds::{Assume, Bounds, Cost, UNBOUNDED};
use crate::analysis::called::Called;
use crate::analysis::graph::{Graph, Steps};
use crate::analysis::node_bounds::{NodeBound, NodeBounds};
use crate::base::time::SECOND;
use crate::definition::ending::EndStatus;
use crate::definition::node::NodeRole;
use crate::definition::snapshot::Snapshot;
use crate::definition::timeouts::TimeoutLayer;
use crate::definition::workflow::{RunClock, WorkflowTimeoutPolicy};
use crate::run::Settings;

#[derive(Clone, Debug)]
pub struct RunBounds {
    /// From the start until no token is left, whatever the run's own limit is.
    pub path_ms: u64,
    /// The part of it that stands in front of people.
    pub person_ms: u64,
    /// The longest wait for one thing.
    pub wait_ms: u64,
    /// Compensations and end handlers.
    pub ending_ms: u64,
    /// The run's own limit.
    pub limit_ms: Option<u64>,
    /// How long the gate waits that opens at the limit, and whether one opens.
    pub gate_ms: u64,
    pub opens_gate: bool,
    pub stops_at_gates: bool,
    /// Tokens that live at once.
    pub width: u64,
    pub cost: Cost,
    pub happy: Cost,
}

/// Rows of a run beside its tokens: its table, header, snapshot, input, warnings of its limit, its gate, its end, alarms.
const RUN_ROWS: u64 = 22;
const HAPPY_RUN_ROWS: u64 = 7;
/// Events of a run that may be posted, beside those of its tokens.
const RUN_EVENTS: u64 = 12;
const NOTIFICATION_ROWS: u64 = 5;
/// Times that the index of runs learns of a run beside its tokens.
const RUN_PUBLICATIONS: u64 = 6;
/// How late the end of a phase of the end is noticed at most.
const PHASE_SLACK_MS: u64 = SECOND;

impl RunBounds {
    pub fn of(snapshot: &Snapshot, settings: &Settings, called: &Called, steps: &Steps) -> RunBounds {
        let input_schema = snapshot.stored.workflow.get("input_schema");
        let graph = Graph::new(&snapshot.workflow, input_schema, steps);
        RunBounds::in_graph(snapshot, settings, called, &Bounds::new(&graph)).0
    }

    /// As above, with the bounds of each node.
    pub fn in_graph(
        snapshot: &Snapshot,
        settings: &Settings,
        called: &Called,
        bounds: &Bounds,
    ) -> (RunBounds, Vec<NodeBounds>) {
        let workflow = &snapshot.workflow;
        let targets = (workflow.notify.len() + settings.notify.targets.len()) as u64;
        let graph = bounds.graph;
        let of_nodes = |run_ms: u64| -> Vec<NodeBounds> {
            let bound = NodeBound {
                snapshot,
                settings,
                called,
                targets,
                run_ms,
            };
            graph.steps.add(workflow.nodes.len());
            (0..workflow.nodes.len()).map(|node| bound.of(node)).collect()
        };
        let longest = |nodes: &[NodeBounds], of: fn(&NodeBounds) -> u64| {
            let weights: Vec<u64> = nodes[..graph.node_count].iter().map(of).collect();
            bounds.longest(&weights)
        };
        let nodes = of_nodes(UNBOUNDED);
        let reached = (0..graph.node_count).filter(|node| graph.reachable[*node]);
        let limit = workflow.timeout.or(snapshot.default_limit(TimeoutLayer::Flow));
        let mut found = RunBounds {
            path_ms: longest(&nodes, |node| node.time_ms),
            person_ms: longest(&nodes, |node| node.person_ms),
            wait_ms: reached.map(|node| nodes[node].wait_ms).max().unwrap_or(0),
            ending_ms: ending_ms(snapshot, &nodes),
            limit_ms: limit.millis(),
            gate_ms: workflow.gate.timeout_ms,
            opens_gate: match workflow.on_timeout {
                WorkflowTimeoutPolicy::HumanGate => true,
                WorkflowTimeoutPolicy::CancelAll | WorkflowTimeoutPolicy::Fail => false,
            },
            stops_at_gates: match workflow.clock {
                RunClock::StopsAtGates => true,
                RunClock::Runs => false,
            },
            width: UNBOUNDED,
            cost: Cost::default(),
            happy: Cost::default(),
        };
        // Now that its length is known, so is how long an attempt without a limit can be open.
        let nodes = of_nodes(found.duration_ms());
        let total = |of: fn(&NodeBounds) -> Cost, assume: Assume| {
            let costs: Vec<Cost> = nodes[..graph.node_count].iter().map(of).collect();
            bounds.total(&costs, assume)
        };
        let worst = total(|node| node.cost, Assume::Worst);
        let happy = total(|node| node.happy, Assume::Happy);
        let ending = ending_cost(snapshot, &nodes, worst.tokens);
        found.width = bounds.width(worst.tokens);
        found.cost = worst.plus(ending.0).plus(Cost {
            rows: RUN_ROWS + RUN_EVENTS * NOTIFICATION_ROWS * targets,
            publications: RUN_PUBLICATIONS,
            runs: 1,
            ..Cost::default()
        });
        found.happy = happy.plus(ending.1).plus(Cost {
            rows: HAPPY_RUN_ROWS,
            publications: 1,
            runs: 1,
            ..Cost::default()
        });
        (found, nodes)
    }

    /// Whether the run may still go on when its limit passes.
    pub fn may_pass(&self, limit_ms: Option<u64>) -> bool {
        limit_ms.is_some_and(|limit_ms| self.path_ms >= limit_ms)
    }

    /// When the limit passes at the latest: its clock may stand still in front of people.
    pub fn at_limit_ms(&self, limit_ms: u64) -> u64 {
        let stopped_ms = match self.stops_at_gates {
            true => self.person_ms,
            false => 0,
        };
        limit_ms.saturating_add(stopped_ms).saturating_add(SECOND)
    }

    /// The longest a run may take, as a run of its own.
    pub fn duration_ms(&self) -> u64 {
        self.run(None, false).time_ms
    }
}

fn compensates(snapshot: &Snapshot) -> bool {
    let workflow = &snapshot.workflow;
    let mut nodes = workflow.nodes.iter();
    !workflow.compensation.on.is_empty() && nodes.any(|node| node.compensate.is_some())
}

/// The phases that follow the decision to end: work in flight reports, then compensations, then end handlers.
fn ending_ms(snapshot: &Snapshot, nodes: &[NodeBounds]) -> u64 {
    let workflow = &snapshot.workflow;
    let phase_ms = workflow.compensation.timeout_ms.saturating_add(PHASE_SLACK_MS);
    let calls_ending = (0..workflow.nodes.len()).any(|node| snapshot.child_has_ending(node));
    let mut phases = 0u64;
    if compensates(snapshot) || calls_ending {
        phases = phases.saturating_add(phase_ms);
    }
    if compensates(snapshot) {
        phases = phases.saturating_add(phase_ms);
    }
    if !workflow.end_handlers.is_empty() {
        let handlers = workflow
            .end_handlers
            .iter()
            .map(|handler| nodes[handler.node].time_ms);
        let all_ms = handlers.fold(PHASE_SLACK_MS, u64::saturating_add);
        phases = phases.saturating_add(phase_ms.min(all_ms));
    }
    phases
}

/// The cost of compensations and end handlers, in the worst case and if all goes well.
fn ending_cost(snapshot: &Snapshot, nodes: &[NodeBounds], tokens: u64) -> (Cost, Cost) {
    let workflow = &snapshot.workflow;
    let (mut worst, mut happy) = (Cost::default(), Cost::default());
    if compensates(snapshot) {
        let is_compensation = |role: NodeRole| matches!(role, NodeRole::Compensation { .. });
        let dearest = workflow
            .nodes
            .iter()
            .zip(nodes)
            .filter(|(node, _)| is_compensation(node.role))
            .map(|(_, bounds)| bounds.cost)
            .fold(Cost::default(), Cost::max);
        worst = worst.plus(dearest.times(tokens));
    }
    for handler in &workflow.end_handlers {
        worst = worst.plus(nodes[handler.node].cost);
        if handler.on.contains(&EndStatus::Completed) {
            happy = happy.plus(nodes[handler.node].happy);
        }
    }
    (worst, happy)
}
