//! Branches that write the same path of `state` or `output`: the last one wins, and the order of branches is not known.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::analysis::graph::Group;
use crate::analysis::lint::{Lint, WALKS_MAX};
use crate::definition::fan::Spawn;
use crate::definition::path::{Path, Root};
use crate::definition::problem::pointer_to;

/// A path outside of the branch that a node writes.
struct Target<'a> {
    /// As the document writes it.
    text: &'a str,
    path: &'a Path,
    /// What it always writes.
    constant: Option<&'a Value>,
}

/// Who writes a path.
#[derive(Default)]
struct Writers<'a> {
    /// The last node, with its text of the path.
    last: Option<(usize, &'a str)>,
    /// The transitions that spawn the branches of its writers.
    spawns: BTreeSet<usize>,
    constants: Vec<&'a Value>,
    has_computed: bool,
}

pub fn check(lint: &Lint) {
    let targets: Vec<Vec<Target>> = (0..lint.graph.node_count)
        .map(|node| targets_of(lint, node))
        .collect();
    let mut walks = 0;
    for group in lint.graph.groups.values() {
        walks += group.spawns.len();
        if walks > WALKS_MAX {
            return;
        }
        check_group(lint, group, &targets);
    }
}

fn check_group(lint: &Lint, group: &Group, targets: &[Vec<Target>]) {
    let transitions = &lint.graph.workflow.transitions;
    let mut written: BTreeMap<(Root, &[String]), Writers> = BTreeMap::new();
    for &spawn in &group.spawns {
        let is_own_join = |next: usize| group.joins.contains(&next);
        let branch = lint
            .graph
            .reach([transitions[spawn].to], |next| !is_own_join(next));
        for node in (0..lint.graph.node_count).filter(|node| branch[*node]) {
            lint.graph.steps.add(targets[node].len());
            for target in &targets[node] {
                let writers = written
                    .entry((target.path.root, target.path.segments.as_slice()))
                    .or_default();
                // The first node in the document.
                if writers.last.is_none_or(|(other, _)| node < other) {
                    writers.last = Some((node, target.text));
                }
                writers.spawns.insert(spawn);
                writers.constants.extend(target.constant);
                writers.has_computed |= target.constant.is_none();
            }
        }
    }
    let branches = |spawns: &BTreeSet<usize>| {
        let counts = spawns.iter().map(|&spawn| match transitions[spawn].spawn {
            Spawn::One => 1,
            Spawn::Count(count) => u64::from(count),
            Spawn::ForEach { .. } => 2,
        });
        counts.sum::<u64>()
    };
    for ((root, path), writers) in &written {
        let Some((node, text)) = writers.last else {
            continue;
        };
        let pointer = pointer_to(&format!("/nodes/{node}/output_mapping"), text);
        let differs = writers.has_computed || writers.constants.windows(2).any(|pair| pair[0] != pair[1]);
        if branches(&writers.spawns) > 1 && differs {
            lint.warn(
                &pointer,
                "shared_write",
                format!(
                    "several branches write \"{text}\", and the last one wins, in an order that is not known; write to \
                     \"_branch.output\" and merge it at the join"
                ),
            );
            continue;
        }
        // What another branch writes around it replaces it.
        let mut around = (0..path.len()).filter_map(|length| written.get(&(*root, &path[..length])));
        let is_replaced = |other: &Writers| {
            let both: BTreeSet<usize> = writers.spawns.union(&other.spawns).copied().collect();
            branches(&both) > 1
        };
        if let Some((_, other)) = around.find(|other| is_replaced(other)).and_then(|it| it.last) {
            lint.warn(
                &pointer,
                "shared_write",
                format!(
                    "one branch writes \"{text}\" and another one \"{other}\", which replaces it or not, in an order that is not \
                     known; write to \"_branch.output\" and merge it at the join"
                ),
            );
        }
    }
}

fn targets_of<'a>(lint: &'a Lint, node: usize) -> Vec<Target<'a>> {
    let Some(mapping) = &lint.snapshot.workflow.nodes[node].output_mapping else {
        return Vec::new();
    };
    let written = lint.document["nodes"][node]["output_mapping"].as_object();
    lint.graph.steps.add(mapping.len());
    written
        .into_iter()
        .flatten()
        .zip(mapping)
        .filter(|(_, (path, _))| path.root != Root::Branch)
        .map(|((text, value), (path, template))| Target {
            text,
            path,
            constant: template.is_constant().then_some(value),
        })
        .collect()
}
