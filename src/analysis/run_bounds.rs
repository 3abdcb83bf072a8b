//! The most that one run of a workflow can take.
//!
//! Covered is one attempt of the run that nobody pauses, extends, retries or restarts, with executors that report on time or are
//! silent until the grace after their deadline, and messages that arrive. Crashes and lost calls are not covered: they repeat work.

use crate::analysis::bounds::{Assume, Bounds, Cost, UNBOUNDED};
use crate::analysis::called::{Around, Called};
use crate::analysis::ending::{self, EndingBounds};
use crate::analysis::graph::{Graph, Steps};
use crate::analysis::node_bounds::{NodeBound, NodeBounds};
use crate::analysis::span::Span;
use crate::base::time::SECOND;
use crate::definition::snapshot::Snapshot;
use crate::definition::timeouts::TimeoutLayer;
use crate::definition::workflow::{RunClock, WorkflowTimeoutPolicy};
use crate::run::Settings;

#[derive(Clone, Debug)]
pub struct RunBounds {
    /// From the start until no token is left, whatever the run's own limit is.
    pub path: Span,
    /// The longest wait for one thing.
    pub wait_ms: u64,
    pub ending: EndingBounds,
    /// The run, or one that it calls, may compensate or handle its end.
    pub has_ending: bool,
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
    /// The longest that this run or one that it calls takes: a called run may outlive its caller.
    pub longest_run_ms: u64,
}

/// Rows of a run beside its tokens: its table, header, snapshot, input, warnings of its limit, its gate, its end, alarms.
const RUN_ROWS: u64 = 22;
const HAPPY_RUN_ROWS: u64 = 7;
/// Events of a run that may be posted, beside those of its tokens.
const RUN_EVENTS: u64 = 12;
const NOTIFICATION_ROWS: u64 = 5;
/// Times that the index of runs learns of a run beside its tokens.
const RUN_PUBLICATIONS: u64 = 6;

impl RunBounds {
    pub fn of(
        snapshot: &Snapshot,
        settings: &Settings,
        called: &Called,
        around: Around,
        steps: &Steps,
    ) -> RunBounds {
        let input_schema = snapshot.stored.workflow.get("input_schema");
        let graph = Graph::new(&snapshot.workflow, input_schema, steps);
        RunBounds::in_graph(snapshot, settings, called, around, &Bounds::new(&graph)).0
    }

    /// As above, with the bounds of each node.
    pub fn in_graph(
        snapshot: &Snapshot,
        settings: &Settings,
        called: &Called,
        around: Around,
        bounds: &Bounds,
    ) -> (RunBounds, Vec<NodeBounds>) {
        let workflow = &snapshot.workflow;
        let targets = (workflow.notify.len() + settings.notify.targets.len()) as u64;
        let graph = bounds.graph;
        let of_nodes = |run_ms: u64, watched_ms: u64| -> Vec<NodeBounds> {
            let bound = NodeBound {
                snapshot,
                settings,
                called,
                targets,
                run_ms,
                watched_ms,
            };
            graph.steps.add(workflow.nodes.len());
            (0..workflow.nodes.len()).map(|node| bound.of(node)).collect()
        };
        let nodes = of_nodes(UNBOUNDED, UNBOUNDED);
        let spans: Vec<Span> = nodes[..graph.node_count].iter().map(NodeBounds::span).collect();
        let reached = (0..graph.node_count).filter(|node| graph.reachable[*node]);
        let limit = workflow.timeout.or(snapshot.default_limit(TimeoutLayer::Flow));
        let mut found = RunBounds {
            path: bounds.longest(&spans),
            wait_ms: reached.map(|node| nodes[node].wait_ms).max().unwrap_or(0),
            ending: EndingBounds::of(snapshot, called, bounds, &nodes),
            has_ending: ending::has_ending(snapshot, called),
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
            longest_run_ms: 0,
        };
        let called_runs = (0..workflow.nodes.len()).filter(|node| snapshot.call_of(*node).is_some());
        let longest_called = called_runs.map(|node| called.of_node(node).longest_run_ms);
        // Now that its length is known, so is how long an attempt without a limit can be open.
        let mut run_ms = found.duration_ms();
        let mut watched_ms = found.run(None, false).unpaused_ms;
        if around.limit_ms.is_some() {
            let called = found.run(around.limit_ms, true);
            run_ms = run_ms.max(called.time_ms);
            watched_ms = watched_ms.max(called.unpaused_ms);
        }
        run_ms = run_ms.saturating_add(around.paused_ms);
        found.longest_run_ms = longest_called.max().unwrap_or(0).max(run_ms);
        let nodes = of_nodes(run_ms, watched_ms);
        let total = |of: fn(&NodeBounds) -> Cost, assume: Assume| {
            let costs: Vec<Cost> = nodes[..graph.node_count].iter().map(of).collect();
            bounds.total(&costs, assume)
        };
        let worst = total(|node| node.cost, Assume::Worst);
        let happy = total(|node| node.happy, Assume::Happy);
        let ending = ending::cost(snapshot, bounds, &nodes);
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
        let counted_ms = match self.stops_at_gates {
            true => self.path.working_ms,
            false => self.path.time_ms,
        };
        limit_ms.is_some_and(|limit_ms| counted_ms >= limit_ms)
    }

    /// When the limit passes at the latest: its clock may stand still in front of people.
    pub fn at_limit_ms(&self, limit_ms: u64) -> u64 {
        let stopped_ms = match self.stops_at_gates {
            true => self.path.person_ms,
            false => 0,
        };
        limit_ms.saturating_add(stopped_ms).saturating_add(SECOND)
    }

    /// The longest a run may take, as a run of its own.
    pub fn duration_ms(&self) -> u64 {
        self.run(None, false).time_ms
    }
}
