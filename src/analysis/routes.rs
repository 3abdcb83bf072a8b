//! Warnings about transitions: nodes that run twice by accident, dead ends, loops without an end.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::analysis::bounds::Bounds;
use crate::analysis::input_schema::values_at;
use crate::analysis::lint::{Lint, WALKS_MAX};
use crate::cel::{Expression, SIZE, Values};
use crate::definition::fan::Spawn;
use crate::definition::node::{NoMatchPolicy, NodeKind};
use crate::definition::transition::{Transition, TransitionOn};

pub fn check(lint: &Lint, bounds: &Bounds) {
    warn_of_nodes_that_run_twice(lint);
    warn_of_conditions(lint);
    warn_of_no_end(lint);
    warn_of_cycles(lint, bounds);
}

/// Transitions of one node and one priority that always fire together create several tokens. Where their ways meet again without a
/// join, everything from there on runs once for each of them.
fn warn_of_nodes_that_run_twice(lint: &Lint) {
    let graph = lint.graph;
    let transitions = &graph.workflow.transitions;
    let mut walks = 0;
    for node in (0..graph.node_count).filter(|node| graph.reachable[*node]) {
        let mut together: BTreeMap<(u8, i64), Vec<usize>> = BTreeMap::new();
        for &index in &graph.routes[node] {
            let transition = &transitions[index];
            // A group that something joins is a fan-out that was asked for, and so is a number of branches.
            let joins = transition
                .group
                .as_ref()
                .map(|name| &graph.groups[name.as_str()].joins);
            let is_joined = joins.is_some_and(|joins| !joins.is_empty());
            let is_plain =
                !is_joined && transition.spawn == Spawn::One && transition.synchronization.is_none();
            if is_plain && transition.always_matches() {
                let key = (transition.on as u8, transition.priority);
                together.entry(key).or_default().push(index);
            }
        }
        for indices in together.into_values().filter(|indices| indices.len() > 1) {
            walks += indices.len();
            if walks > WALKS_MAX {
                return;
            }
            let mut visits = vec![0u32; graph.node_count];
            for &index in &indices {
                // A way back to the node is another round of a loop, and a join takes several tokens.
                let follows = |next: usize| {
                    let next = &transitions[next];
                    next.synchronization.is_none() && next.from != node && next.to != node
                };
                let reached = graph.reach([transitions[index].to], follows);
                for (count, is_reached) in visits.iter_mut().zip(reached) {
                    *count += u32::from(is_reached);
                }
            }
            let twice: Vec<usize> = (0..graph.node_count).filter(|at| visits[*at] > 1).collect();
            if twice.is_empty() {
                continue;
            }
            let names: Vec<String> = indices
                .iter()
                .take(3)
                .map(|&index| format!("\"{}\"", transitions[index].id))
                .collect();
            lint.warn(
                &format!("/transitions/{}", indices[1]),
                "runs_twice",
                format!(
                    "transitions {} always leave node \"{}\" together, so {} run once for each of them; give them conditions \
                     or different priorities, or a \"sibling_group\" that a \"synchronization\" joins",
                    names.join(" and "),
                    lint.node_id(node),
                    lint.names(twice)
                ),
            );
        }
    }
}

/// Whether a completed token of the node always has a transition to take, as far as the forms of the conditions show.
#[derive(Clone, Copy, PartialEq)]
enum Matching {
    Always,
    /// Until the iterations of a transition are used up.
    ForSomeRounds,
    Maybe,
}

fn matching(lint: &Lint, node: usize) -> Matching {
    let graph = lint.graph;
    let routes = graph.routes[node]
        .iter()
        .map(|&index| &graph.workflow.transitions[index]);
    let success: Vec<&Transition> = routes.filter(|it| it.on == TransitionOn::Success).collect();
    graph.steps.add(success.len());
    if success.is_empty() || success.iter().any(|it| it.always_matches()) {
        return Matching::Always;
    }
    let unlimited: Vec<&Transition> = success
        .iter()
        .copied()
        .filter(|it| it.iterations_max.is_none())
        .collect();
    if covers_everything(lint, node, &unlimited) {
        return Matching::Always;
    }
    let has_unconditional = success.iter().any(|it| it.condition.is_none());
    match has_unconditional || covers_everything(lint, node, &success) {
        true => Matching::ForSomeRounds,
        false => Matching::Maybe,
    }
}

/// Whether some of the conditions look at one path and accept every number, or every value that `input_schema` allows there.
fn accept_everything(lint: &Lint, conditions: &[&Expression]) -> bool {
    let mut by_path: BTreeMap<Vec<String>, Vec<Values>> = BTreeMap::new();
    for (path, values) in conditions.iter().filter_map(|it| it.accepted_values()) {
        by_path.entry(path).or_default().push(values);
    }
    by_path.into_iter().any(|(path, accepted)| {
        let known = match path.split_first() {
            Some((root, members)) if root == "input" => lint
                .document
                .get("input_schema")
                .and_then(|schema| values_at(schema, members)),
            Some(_) | None => None,
        };
        let is_accepted = |value: &Value| accepted.iter().any(|values| values.accepts(value));
        let cover_all = match path.first().map(String::as_str) {
            Some(SIZE) => Values::cover_all_sizes(&accepted),
            Some(_) | None => Values::cover_all_numbers(&accepted),
        };
        cover_all || known.is_some_and(|known| known.iter().all(is_accepted))
    })
}

/// Two of the conditions are opposites, or all of them accept everything, or they name every choice of the node's gate.
fn covers_everything(lint: &Lint, node: usize, transitions: &[&Transition]) -> bool {
    /// Enough for conditions that people write.
    const COMPARED: usize = 16;
    let conditions: Vec<_> = transitions
        .iter()
        .take(COMPARED)
        .filter_map(|it| it.condition.as_ref())
        .collect();
    lint.graph.steps.add(conditions.len() * conditions.len());
    let are_opposite = conditions
        .iter()
        .enumerate()
        .any(|(at, one)| conditions[..at].iter().any(|other| one.is_opposite_of(other)));
    if are_opposite || accept_everything(lint, &conditions) {
        return true;
    }
    let NodeKind::Gate(gate) = &lint.snapshot.workflow.nodes[node].kind else {
        return false;
    };
    let named = |choice: &String| {
        conditions.iter().any(|condition| {
            let compared = condition.compared_text();
            compared.is_some_and(|(path, text)| {
                path.last().is_some_and(|last| last == "choice") && text == choice
            })
        })
    };
    gate.choices.iter().all(named)
}

fn warn_of_conditions(lint: &Lint) {
    let workflow = lint.graph.workflow;
    for node in (0..lint.graph.node_count).filter(|node| lint.graph.reachable[*node]) {
        let policy = workflow.nodes[node].on_no_match.unwrap_or(workflow.on_no_match);
        let routes = lint.graph.routes[node]
            .iter()
            .map(|&index| &workflow.transitions[index]);
        let mut failure = routes.filter(|it| it.on == TransitionOn::Failure);
        // The author has thought of a failure.
        let is_handled = failure.any(Transition::always_matches);
        if policy == NoMatchPolicy::End || is_handled {
            continue;
        }
        let when = match matching(lint, node) {
            Matching::Always => continue,
            Matching::ForSomeRounds => "when \"max_iterations\" is used up, no transition may match",
            Matching::Maybe => "its conditions may all be false",
        };
        lint.warn(
            &format!("/nodes/{node}"),
            "may_not_match",
            format!(
                "node \"{}\": {when}; then its token fails with \"no_transition\"; add a transition without a condition and \
                 with a higher priority number, or write \"on_no_match\": \"end\"",
                lint.node_id(node)
            ),
        );
    }
}

/// Nodes from which every way goes around in circles.
fn warn_of_no_end(lint: &Lint) {
    let graph = lint.graph;
    let mut into: Vec<Vec<usize>> = vec![Vec::new(); graph.node_count];
    for transition in &graph.workflow.transitions {
        into[transition.to].push(transition.from);
    }
    let is_end = |node: &usize| {
        let routes = graph.routes[*node]
            .iter()
            .map(|&index| &graph.workflow.transitions[index]);
        let mut success = routes.filter(|it| it.on == TransitionOn::Success).peekable();
        // An empty list of a `foreach` has no branch to go on with.
        success.peek().is_none() || !success.any(|it| it.always_matches() && it.group.is_none())
    };
    let mut leads_to_end = vec![false; graph.node_count];
    let mut stack: Vec<usize> = (0..graph.node_count).filter(is_end).collect();
    while let Some(node) = stack.pop() {
        graph.steps.add(1 + into[node].len());
        if !std::mem::replace(&mut leads_to_end[node], true) {
            stack.extend(into[node].iter().filter(|from| !leads_to_end[**from]));
        }
    }
    let stuck: Vec<usize> = (0..graph.node_count)
        .filter(|node| graph.reachable[*node] && !leads_to_end[*node])
        .collect();
    if let Some(&first) = stuck.first() {
        lint.warn(
            &format!("/nodes/{first}"),
            "no_way_to_end",
            format!(
                "no path leads from {} to an end, so only a failure or a limit ends the run; add a transition out of the loop, \
                 or \"loop_config\" to one of its transitions",
                lint.names(stuck)
            ),
        );
    }
}

/// Cycles that neither `max_iterations` nor the workflow's limit ends.
fn warn_of_cycles(lint: &Lint, bounds: &Bounds) {
    if lint.run.limit_ms.is_some() {
        return;
    }
    let parts = bounds
        .loops
        .parts
        .iter()
        .filter(|part| part.is_loop() && part.is_implicit);
    for part in parts {
        let is_unbounded = |index: &usize| {
            let transition = &lint.graph.workflow.transitions[*index];
            let is_in_part = |node: usize| bounds.loops.part_of[node] == bounds.loops.part_of[part.nodes[0]];
            transition.iterations_max.is_none() && is_in_part(transition.from) && is_in_part(transition.to)
        };
        let transitions = 0..lint.graph.workflow.transitions.len();
        lint.graph.steps.add(transitions.len());
        let mut unbounded = transitions.filter(is_unbounded);
        let Some(index) = unbounded.next() else {
            continue;
        };
        let mut nodes = part.nodes.clone();
        nodes.sort_unstable();
        lint.warn(
            &format!("/transitions/{index}"),
            "unbounded_cycle",
            format!(
                "the cycle through {} has neither \"loop_config\": {{\"max_iterations\": n}} nor does the workflow have a \
                 timeout; write one of them",
                lint.names(nodes)
            ),
        );
    }
}
