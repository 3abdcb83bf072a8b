//! Static checks of a graph: cycles, unreachable nodes, loops without work, joins that can never fire.

use serde_json::Value;

use crate::base::ids::is_id;
use crate::definition::fan::{EarlyCompletePolicy, Spawn, Strategy};
use crate::definition::node::{Node, NodeKind};
use crate::definition::path::Root;
use crate::definition::reader::Reader;
use crate::definition::transition::Transition;

/// Marks the transitions that are part of a cycle.
pub fn mark_cycles(node_count: usize, transitions: &mut [Transition]) {
    let component = components(node_count, transitions.iter().map(|t| (t.from, t.to)));
    for transition in transitions {
        let within = component[transition.from] == component[transition.to];
        transition.in_cycle = within;
        if !within {
            // Outside a cycle a transition fires at most once on a path.
            transition.iterations_max = None;
        }
    }
}

/// Reports nodes that no path leads to.
pub fn warn_of_unreachable(reader: &Reader, initial: usize, nodes: &[Node], transitions: &[Transition]) {
    if nodes.is_empty() {
        return;
    }
    let mut leads_to = vec![Vec::new(); nodes.len()];
    for transition in transitions {
        leads_to[transition.from].push(transition.to);
    }
    let mut reached = vec![false; nodes.len()];
    let mut stack = vec![initial];
    while let Some(node) = stack.pop() {
        if std::mem::replace(&mut reached[node], true) {
            continue;
        }
        stack.extend(&leads_to[node]);
    }
    // Every node was read, so their places in the document are known.
    let elements = reader.array("nodes");
    for (index, node) in nodes.iter().enumerate() {
        if !reached[index] {
            let place = elements.get(index).map(|element| element.pointer.as_str());
            reader.problems().warn(
                place.unwrap_or_default(),
                "unreachable_node",
                format!(
                    "no path leads to node \"{}\" from \"{}\"; add a transition to it or remove it",
                    node.id, nodes[initial].id
                ),
            );
        }
    }
}

/// Reports loops that never end and do nothing.
pub fn check_loops(reader: &Reader, nodes: &[Node], transitions: &[Transition]) {
    // A cycle of pass-through nodes without a condition or a bound on any transition never ends and never waits.
    let idle = |t: &&Transition| {
        matches!(nodes[t.from].kind, NodeKind::PassThrough)
            && matches!(nodes[t.to].kind, NodeKind::PassThrough)
            && t.condition.is_none()
            && t.iterations_max.is_none()
            && t.synchronization.is_none()
    };
    let edges: Vec<_> = transitions.iter().filter(idle).map(|t| (t.from, t.to)).collect();
    let component = components(nodes.len(), edges.iter().copied());
    for (from, to) in edges {
        if component[from] == component[to] {
            reader.problems().report(
                &node_pointer(reader, &nodes[from].id),
                "empty_loop",
                format!(
                    "node \"{}\" is part of a loop that does nothing and never ends; give it work, a condition or loop_config",
                    nodes[from].id
                ),
            );
        }
    }
}

/// Reports joins that can never fire.
pub fn check_joins(reader: &Reader, nodes: &[Node], transitions: &[Transition]) {
    for (index, transition) in transitions.iter().enumerate() {
        let Some(join) = &transition.synchronization else {
            continue;
        };
        // Finding it takes a look at every transition, so only where there is a problem.
        let place = || transition_pointer(reader, &transition.id) + "/synchronization";
        let spawning = || {
            transitions
                .iter()
                .filter(|other| other.group.as_ref() == Some(&join.group))
        };
        if spawning().next().is_none() && is_meant_to_be_spawned(reader, transitions, &join.group) {
            continue;
        }
        if spawning().next().is_none() {
            reader.problems().report(
                &(place() + "/sibling_group"),
                "unknown_group",
                format!(
                    "nothing spawns a group \"{}\"; name a transition with spawn_count or foreach, or a sibling_group",
                    crate::base::text::shorten(&join.group)
                ),
            );
            continue;
        }
        let branches_max: Option<u32> = spawning()
            .map(|other| match other.spawn {
                Spawn::One => Some(1),
                Spawn::Count(count) => Some(count),
                Spawn::ForEach { .. } => None,
            })
            .sum();
        if let (Strategy::MOfN(wanted), Some(branches_max)) = (join.strategy, branches_max)
            && wanted > branches_max
        {
            reader.problems().report(
                &(place() + "/strategy/m_of_n"),
                "quorum_too_large",
                format!("{wanted} of {branches_max}: the group never has that many branches"),
            );
        }
        let merges_into_branch = join
            .merge
            .as_ref()
            .is_some_and(|merge| merge.target.root == Root::Branch);
        if merges_into_branch && join.on_early_complete == EarlyCompletePolicy::AllowLateMerge {
            reader.problems().report(
                &(place() + "/merge/target"),
                "invalid_target",
                "a late branch cannot be merged into a branch that has gone on; merge into state or output",
            );
        }
        let differs = transitions[..index].iter().any(|other| {
            other.to == transition.to
                && other
                    .synchronization
                    .as_ref()
                    .is_some_and(|it| it.group == join.group && it != join)
        });
        if differs {
            reader.problems().report(
                &place(),
                "different_joins",
                format!(
                    "another transition joins group \"{}\" at node \"{}\" in another way; they are one join and must be written alike",
                    join.group, nodes[transition.to].id
                ),
            );
        }
    }
}

/// Whether a transition with a problem of its own may spawn the group: then its problem is the only one.
fn is_meant_to_be_spawned(reader: &Reader, transitions: &[Transition], group: &str) -> bool {
    let elements = reader.array("transitions");
    elements.iter().enumerate().any(|(position, element)| {
        let id = match &element.value["id"] {
            Value::Null => Some(format!("t{}", position + 1)),
            explicit => explicit.as_str().filter(|id| is_id(id)).map(str::to_string),
        };
        let names_group = element.value["sibling_group"].as_str() == Some(group);
        // Without a valid id it may be any.
        let is_it = names_group || id.as_deref().is_none_or(|id| id == group);
        let was_read = id.is_some_and(|id| transitions.iter().any(|other| other.id == id));
        is_it && (!was_read || reader.problems().has_errors_in(&element.pointer))
    })
}

fn transition_pointer(reader: &Reader, id: &str) -> String {
    reader
        .array("transitions")
        .into_iter()
        .enumerate()
        .find(|(position, element)| match element.value["id"].as_str() {
            Some(explicit) => explicit == id,
            None => format!("t{}", position + 1) == id,
        })
        .map_or_else(
            || reader.pointer_of("transitions"),
            |(_, element)| element.pointer,
        )
}

/// The pointer of a node in the document. Invalid nodes were dropped, so the index in the workflow may differ.
pub(super) fn node_pointer(reader: &Reader, id: &str) -> String {
    reader
        .array("nodes")
        .into_iter()
        .find(|element| element.value["id"].as_str() == Some(id))
        .map_or_else(|| reader.pointer_of("nodes"), |element| element.pointer)
}

/// Strongly connected components (Kosaraju's algorithm, without recursion, because documents are untrusted).
pub fn components(node_count: usize, edges: impl Iterator<Item = (usize, usize)>) -> Vec<usize> {
    let mut forward = vec![Vec::new(); node_count];
    let mut backward = vec![Vec::new(); node_count];
    for (from, to) in edges {
        forward[from].push(to);
        backward[to].push(from);
    }
    let mut seen = vec![false; node_count];
    let mut finished = Vec::with_capacity(node_count);
    for start in 0..node_count {
        let mut stack = vec![(start, 0)];
        if std::mem::replace(&mut seen[start], true) {
            continue;
        }
        while let Some((node, next)) = stack.pop() {
            match forward[node].get(next) {
                Some(&to) => {
                    stack.push((node, next + 1));
                    if !std::mem::replace(&mut seen[to], true) {
                        stack.push((to, 0));
                    }
                }
                None => finished.push(node),
            }
        }
    }
    let mut component = vec![usize::MAX; node_count];
    for (number, &start) in finished.iter().rev().enumerate() {
        let mut stack = vec![start];
        while let Some(node) = stack.pop() {
            if component[node] == usize::MAX {
                component[node] = number;
                stack.extend(&backward[node]);
            }
        }
    }
    component
}
