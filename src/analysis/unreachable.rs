//! Nodes to which transitions lead that never fire. That no transition leads to a node is found when the document is read.

use crate::analysis::graph::Graph;
use crate::analysis::lint::Lint;
use crate::definition::fan::Spawn;
use crate::definition::node::{NoMatchPolicy, NodeKind};
use crate::definition::transition::{Transition, TransitionOn};
use crate::definition::wait::Wait;

pub fn check(lint: &Lint) {
    let graph = lint.graph;
    let transitions = &graph.workflow.transitions;
    let mut reasons: Vec<Option<String>> = vec![None; transitions.len()];
    for node in (0..graph.node_count).filter(|node| graph.reachable[*node]) {
        find_idle_transitions(graph, node, &mut reasons);
    }
    if reasons.iter().all(Option::is_none) {
        return;
    }
    let reached = graph.reach([graph.workflow.initial_node], |index| reasons[index].is_none());
    let mut reported = vec![false; graph.node_count];
    for (transition, reason) in transitions.iter().zip(&reasons) {
        let node = transition.to;
        let Some(reason) = reason
            .as_ref()
            .filter(|_| !reached[node] && reached[transition.from])
        else {
            continue;
        };
        if !std::mem::replace(&mut reported[node], true) {
            lint.warn(
                &format!("/nodes/{node}"),
                "unreachable_node",
                format!(
                    "no token comes to node \"{}\": transition \"{}\" never fires, because {reason}",
                    lint.node_id(node),
                    transition.id
                ),
            );
        }
    }
}

/// Transitions of a node that never fire, with the reason.
fn find_idle_transitions(graph: &Graph, node: usize, reasons: &mut [Option<String>]) {
    let routes = &graph.routes[node];
    let transitions = &graph.workflow.transitions;
    graph.steps.add(3 * routes.len());
    let always = |on: TransitionOn| {
        let always = routes.iter().map(|&index| &transitions[index]);
        let always = always.filter(|it| it.on == on && it.always_matches());
        always.min_by_key(|it| it.priority)
    };
    let first = [
        TransitionOn::Success,
        TransitionOn::Failure,
        TransitionOn::Timeout,
    ]
    .map(always);
    let [success, failure, timeout] = first;
    let (may_fail, may_time_out) = (may_fail(graph, node), may_time_out(graph, node));
    for &index in routes {
        let transition = &transitions[index];
        let (before, may_come) = match transition.on {
            TransitionOn::Success => (success, true),
            TransitionOn::Failure => (failure, may_fail),
            TransitionOn::Timeout => (timeout, may_time_out),
        };
        let is_false = transition
            .condition
            .as_ref()
            .is_some_and(|condition| condition.is_false());
        reasons[index] = match before.filter(|before| before.priority < transition.priority) {
            _any if is_false => Some("its condition is false".into()),
            _any if !may_come => Some(match transition.on {
                TransitionOn::Timeout => "its node has no work with a deadline".into(),
                TransitionOn::Success | TransitionOn::Failure => "its node has no work that can fail".into(),
            }),
            Some(before) => Some(format!(
                "transition \"{}\" always fires before it; give that one a condition or a higher priority number",
                before.id
            )),
            None => None,
        };
    }
}

/// Whether a token at the node can fail. What its transitions need may fail, too.
fn may_fail(graph: &Graph, node: usize) -> bool {
    let workflow = graph.workflow;
    if !workflow.nodes[node].never_fails() {
        return true;
    }
    let routes = graph.routes[node]
        .iter()
        .map(|&index| &workflow.transitions[index]);
    let success: Vec<&Transition> = routes.filter(|it| it.on == TransitionOn::Success).collect();
    let is_simple = |transition: &&Transition| {
        transition.condition.is_none()
            && transition.synchronization.is_none()
            && transition.spawn == Spawn::One
    };
    let policy = workflow.nodes[node].on_no_match.unwrap_or(workflow.on_no_match);
    let always_goes_on =
        success.is_empty() || policy == NoMatchPolicy::End || success.iter().any(|it| it.always_matches());
    !(success.iter().all(is_simple) && always_goes_on)
}

fn may_time_out(graph: &Graph, node: usize) -> bool {
    let workflow = graph.workflow;
    let has_deadline = match &workflow.nodes[node].kind {
        NodeKind::PassThrough => false,
        NodeKind::Wait(wait) => matches!(**wait, Wait::Signal { .. }),
        NodeKind::Task { .. } | NodeKind::Action { .. } | NodeKind::Workflow { .. } | NodeKind::Gate(_) => {
            true
        }
    };
    // A token that waits at a join may time out there.
    let mut routes = graph.routes[node].iter();
    has_deadline || routes.any(|&index| workflow.transitions[index].synchronization.is_some())
}
