//! The least that a run sleeps on any way to an end: where it is longer than the limit of the run, every run meets the limit.

use crate::analysis::bounds::Bounds;
use crate::analysis::graph::Graph;
use crate::analysis::loops::Part;
use crate::definition::node::{NoMatchPolicy, NodeKind};
use crate::definition::transition::{Transition, TransitionOn};
use crate::definition::wait::{SleepLength, Wait};

/// Passes over a part with a cycle. What is found is never too much, and after a few passes seldom too little.
const PASSES: usize = 3;

/// The least time that a run needs until it has ended well.
pub fn least_ms(bounds: &Bounds) -> u64 {
    let graph = bounds.graph;
    let mut least = vec![0u64; graph.node_count];
    for part in &bounds.loops.parts {
        let passes = if part.is_loop() { PASSES } else { 1 };
        let sure_rounds_ms = sure_rounds_ms(graph, part);
        for _ in 0..passes {
            for &node in &part.finished {
                graph.steps.add(1 + graph.routes[node].len());
                least[node] = sleep_ms(graph, node).saturating_add(least_after(graph, node, &least));
            }
        }
        if let Some((node, rounds_ms)) = sure_rounds_ms {
            // A token that comes into the loop goes through all of its rounds, wherever it enters.
            let once = least[node].saturating_add(rounds_ms);
            for &node in &part.nodes {
                least[node] = least[node].max(once);
            }
        }
    }
    least[graph.workflow.initial_node]
}

pub fn sleep_ms(graph: &Graph, node: usize) -> u64 {
    match &graph.workflow.nodes[node].kind {
        NodeKind::Wait(wait) => match **wait {
            Wait::Sleep(SleepLength::Millis(millis)) => millis,
            Wait::Sleep(SleepLength::Computed(_)) | Wait::Until(_) | Wait::Signal { .. } => 0,
        },
        NodeKind::Task { .. }
        | NodeKind::Action { .. }
        | NodeKind::Workflow { .. }
        | NodeKind::Gate(_)
        | NodeKind::PassThrough => 0,
    }
}

/// The least time that follows a node. A join may be passed by, so what comes after it is not counted.
fn least_after(graph: &Graph, node: usize, least: &[u64]) -> u64 {
    let workflow = graph.workflow;
    let routes = || {
        graph.routes[node]
            .iter()
            .map(|&index| &workflow.transitions[index])
    };
    let may_end = match workflow.nodes[node].on_no_match.unwrap_or(workflow.on_no_match) {
        NoMatchPolicy::End => true,
        NoMatchPolicy::Fail => false,
    };
    let mut success = routes().filter(|it| it.on == TransitionOn::Success).peekable();
    if success.peek().is_none() {
        return 0;
    }
    let mut after = match success.clone().any(Transition::always_matches) {
        true => u64::MAX,
        false if may_end => 0,
        // Otherwise the run fails.
        false => u64::MAX,
    };
    for transition in routes() {
        let leads_on = transition.group.is_none() && transition.synchronization.is_none();
        after = after.min(match leads_on {
            true => least[transition.to],
            false => 0,
        });
    }
    match after {
        u64::MAX => 0,
        after => after,
    }
}

/// A loop whose first transition fires until its `max_iterations` are used up, and leads back without a choice: its node, and how
/// long the rounds take that surely come before anything else.
fn sure_rounds_ms(graph: &Graph, part: &Part) -> Option<(usize, u64)> {
    let workflow = graph.workflow;
    let first = |node: usize| {
        let routes = graph.routes[node]
            .iter()
            .map(|&index| &workflow.transitions[index]);
        let success = || routes.clone().filter(|it| it.on == TransitionOn::Success);
        let first = success().min_by_key(|it| it.priority)?;
        let is_alone = success().filter(|it| it.priority == first.priority).count() == 1;
        let is_plain = first.condition.is_none() && first.group.is_none() && first.synchronization.is_none();
        (is_alone && is_plain).then_some(first)
    };
    let decides = |node: &usize| first(*node).is_some_and(|it| it.iterations_max.is_some());
    let start = part
        .nodes
        .iter()
        .copied()
        .filter(|_| part.is_loop())
        .find(decides)?;
    let rounds = first(start)?.iterations_max?;
    // A run with more rounds than its own limit allows fails before.
    if rounds >= workflow.limits.loop_iterations {
        return None;
    }
    let mut node = start;
    let mut round_ms = 0u64;
    for turn in 1..=part.nodes.len() {
        graph.steps.add(graph.routes[node].len());
        let transition = first(node).filter(|it| node == start || it.iterations_max.is_none())?;
        if !workflow.nodes[node].never_fails() {
            return None;
        }
        round_ms = round_ms.saturating_add(sleep_ms(graph, node));
        node = transition.to;
        if node == start {
            // No other way leads around in the part.
            return (turn == part.nodes.len()).then_some((start, round_ms.saturating_mul(rounds)));
        }
    }
    None
}
