//! Static checks of a graph: cycles, unreachable nodes, loops without work, joins that can never fire.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::base::ids::is_id;
use crate::definition::fan::{EarlyCompletePolicy, Spawn, Strategy, Synchronization};
use crate::definition::node::{Node, NodeKind};
use crate::definition::path::Root;
use crate::definition::reader::{Element, Reader};
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
    let mut reported = vec![false; nodes.len()];
    let mut elements = None;
    for (from, to) in edges {
        if component[from] == component[to] && !std::mem::replace(&mut reported[from], true) {
            let elements = elements.get_or_insert_with(|| reader.array("nodes"));
            let is_it = |element: &&Element| element.value["id"].as_str() == Some(&nodes[from].id);
            let element = elements.iter().find(is_it);
            let pointer = element.map_or_else(|| reader.pointer_of("nodes"), |it| it.pointer.clone());
            reader.problems().report(
                &pointer,
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
    // Only looked for where there is a problem, and then once for all of them.
    let written = OnceCell::new();
    let written = || written.get_or_init(|| Written::of(reader));
    // The most branches of each group that is spawned, if that is known.
    let mut spawned: BTreeMap<&str, Option<u32>> = BTreeMap::new();
    for transition in transitions {
        let branches = match transition.spawn {
            Spawn::One => Some(1),
            Spawn::Count(count) => Some(count),
            Spawn::ForEach { .. } => None,
        };
        if let Some(group) = &transition.group {
            let sum = spawned.entry(group).or_insert(Some(0));
            *sum = sum.zip(branches).map(|(sum, branches)| sum + branches);
        }
    }
    // The different ways in which a group is joined at a node.
    let mut ways: BTreeMap<(usize, &str), Vec<&Synchronization>> = BTreeMap::new();
    for transition in transitions {
        let Some(join) = &transition.synchronization else {
            continue;
        };
        let place = || written().pointer(reader, &transition.id) + "/synchronization";
        let Some(branches_max) = spawned.get(join.group.as_str()).copied() else {
            if written().is_meant_to_be_spawned(reader, transitions, &join.group) {
                continue;
            }
            reader.problems().report(
                &(place() + "/sibling_group"),
                "unknown_group",
                format!(
                    "nothing spawns a group \"{}\"; name a transition with spawn_count or foreach, or a sibling_group",
                    crate::base::text::shorten(&join.group)
                ),
            );
            continue;
        };
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
        let ways = ways.entry((transition.to, &join.group)).or_default();
        let differs = ways.iter().any(|other| *other != join);
        if !ways.contains(&join) {
            ways.push(join);
        }
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

/// The transitions of a document as they are written. Invalid ones were dropped, so an index in the workflow may differ.
struct Written<'a> {
    elements: Vec<Element<'a>>,
    by_id: BTreeMap<String, Vec<usize>>,
    by_group: BTreeMap<&'a str, Vec<usize>>,
    without_valid_id: Vec<usize>,
}

impl<'a> Written<'a> {
    fn of(reader: &Reader<'a>) -> Written<'a> {
        let elements = reader.array("transitions");
        let mut by_id: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut by_group: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut without_valid_id = Vec::new();
        for (position, element) in elements.iter().enumerate() {
            let id = match &element.value["id"] {
                Value::Null => Some(format!("t{}", position + 1)),
                explicit => explicit.as_str().filter(|id| is_id(id)).map(str::to_string),
            };
            match id {
                Some(id) => by_id.entry(id).or_default().push(position),
                None => without_valid_id.push(position),
            }
            if let Some(group) = element.value["sibling_group"].as_str() {
                by_group.entry(group).or_default().push(position);
            }
        }
        Written {
            elements,
            by_id,
            by_group,
            without_valid_id,
        }
    }

    fn pointer(&self, reader: &Reader, id: &str) -> String {
        let first = self.by_id.get(id).and_then(|positions| positions.first());
        first.map_or_else(
            || reader.pointer_of("transitions"),
            |&position| self.elements[position].pointer.clone(),
        )
    }

    /// Whether a transition with a problem of its own may spawn the group: then its problem is the only one.
    fn is_meant_to_be_spawned(&self, reader: &Reader, transitions: &[Transition], group: &str) -> bool {
        // Without a valid id it may be any.
        if !self.without_valid_id.is_empty() {
            return true;
        }
        let named = self.by_id.get(group).into_iter().chain(self.by_group.get(group));
        named.flatten().any(|&position| {
            let element = &self.elements[position];
            let was_read = || {
                let id = element.value["id"].as_str().map(str::to_string);
                let id = id.unwrap_or_else(|| format!("t{}", position + 1));
                transitions.iter().any(|other| other.id == id)
            };
            !was_read() || reader.problems().has_errors_in(&element.pointer)
        })
    }
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
