//! Warnings about fan-outs and joins: results that are lost, branches that overwrite each other, work that nobody stops.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::analysis::graph::Group;
use crate::analysis::lint::{Lint, WALKS_MAX};
use crate::cel::{Template, TextPart};
use crate::definition::action::ActionKind;
use crate::definition::fan::{Spawn, Strategy, Synchronization};
use crate::definition::node::NodeKind;
use crate::definition::path::Root;
use crate::definition::problem::pointer_to;
use crate::definition::step::StepAction;
use crate::definition::wait::Wait;

pub fn check(lint: &Lint) {
    let mut walks = 0;
    let targets: Vec<Vec<(String, bool)>> = (0..lint.graph.node_count)
        .map(|node| shared_targets(lint, node))
        .collect();
    let with_effects: Vec<usize> = (0..lint.graph.node_count)
        .filter(|node| has_effects(lint, *node))
        .collect();
    for group in lint.graph.groups.values() {
        if group.is_exact {
            warn_of_lost_results(lint, group);
            warn_of_losers(lint, group, &with_effects);
        }
        warn_of_shared_writes(lint, group, &targets, &mut walks);
    }
}

/// The first transition of each join of a group, with the join.
fn joins<'a>(lint: &'a Lint, group: &Group) -> Vec<(usize, &'a Synchronization)> {
    let transitions = &lint.graph.workflow.transitions;
    let mut found: Vec<(usize, &Synchronization)> = Vec::new();
    for &index in &group.joins {
        lint.graph.steps.add(1 + found.len());
        let is_known = found
            .iter()
            .any(|(other, _)| transitions[*other].to == transitions[index].to);
        if let Some(join) = transitions[index].synchronization.as_ref().filter(|_| !is_known) {
            found.push((index, join));
        }
    }
    found
}

/// Whether a token of the node has a result.
pub fn has_result(kind: &NodeKind) -> bool {
    match kind {
        NodeKind::PassThrough => false,
        NodeKind::Wait(wait) => matches!(**wait, Wait::Signal { .. }),
        NodeKind::Task { .. } | NodeKind::Action { .. } | NodeKind::Workflow { .. } | NodeKind::Gate(_) => {
            true
        }
    }
}

fn warn_of_lost_results(lint: &Lint, group: &Group) {
    let workflow = lint.graph.workflow;
    for (index, join) in joins(lint, group) {
        let to = workflow.transitions[index].to;
        let arriving = group.joins.iter().map(|&other| &workflow.transitions[other]);
        let loses = |from: usize| {
            let node = &workflow.nodes[from];
            group.inside[from] && has_result(&node.kind) && node.output_mapping.is_none()
        };
        let lost: Vec<usize> = arriving
            .filter(|it| it.to == to && loses(it.from))
            .map(|it| it.from)
            .collect();
        lint.graph.steps.add(group.joins.len());
        if join.merge.is_none() && !lost.is_empty() {
            lint.warn(
                &format!("/transitions/{index}/synchronization"),
                "join_without_merge",
                format!(
                    "the results of {} are lost at this join; add \"merge\": {{\"target\": \"state.<name>\"}}, or \
                     \"output_mapping\": {{}} to the node if they are not needed",
                    lint.names(lost)
                ),
            );
        }
    }
}

fn warn_of_losers(lint: &Lint, group: &Group, effects: &[usize]) {
    for (index, join) in joins(lint, group) {
        let written = &lint.document["transitions"][index]["synchronization"]["on_early_complete"];
        // Written, it is what the author wants.
        if !written.is_null() || !may_have_losers(lint, group, join) {
            continue;
        }
        let with_effects: Vec<usize> = effects
            .iter()
            .copied()
            .filter(|node| group.inside[*node])
            .collect();
        lint.graph.steps.add(effects.len());
        if !with_effects.is_empty() {
            lint.warn(
                &format!("/transitions/{index}/synchronization"),
                "losers_not_cancelled",
                format!(
                    "when this join fires, the other branches go on, and {} may still have effects; write \
                     \"on_early_complete\": \"cancel\", or \"abandon\" if they may go on",
                    lint.names(with_effects)
                ),
            );
        }
    }
}

/// Whether the join may fire before all branches have ended.
fn may_have_losers(lint: &Lint, group: &Group, join: &Synchronization) -> bool {
    let widths = group
        .spawns
        .iter()
        .map(|&index| match lint.graph.workflow.transitions[index].spawn {
            Spawn::One => Some(1),
            Spawn::Count(count) => Some(count),
            Spawn::ForEach { .. } => None,
        });
    let width: Option<u32> = widths.sum();
    match join.strategy {
        Strategy::All => false,
        Strategy::Any => width.is_none_or(|width| width > 1),
        Strategy::MOfN(needed) => width.is_none_or(|width| width > needed),
    }
}

/// Whether a call of the node may change something outside.
fn has_effects(lint: &Lint, node: usize) -> bool {
    if lint.snapshot.call_of(node).is_some() {
        return true;
    }
    let Some(task) = lint.snapshot.task_of(node) else {
        return false;
    };
    task.task.steps.iter().any(|step| match &step.action {
        StepAction::Inline(action) => match &action.kind {
            ActionKind::HttpRequest(request) => !is_reading(&request.method),
            ActionKind::ServiceCall(call) => !is_reading(&call.method),
            ActionKind::McpTool(_)
            | ActionKind::Shell(_)
            | ActionKind::EmitEvent(_)
            | ActionKind::WorkflowCall(_) => true,
            // A model answers and changes nothing.
            ActionKind::LlmCall(_) | ActionKind::UpdateContext(_) | ActionKind::Assert(_) => false,
        },
        StepAction::Reference { .. } => false,
    })
}

fn is_reading(method: &Template) -> bool {
    matches!(method.text_parts().as_slice(), [TextPart::Text("GET" | "HEAD")])
}

/// Branches that write the same path: the last one wins, and the order of branches is not known.
fn warn_of_shared_writes(lint: &Lint, group: &Group, of_nodes: &[Vec<(String, bool)>], walks: &mut usize) {
    let transitions = &lint.graph.workflow.transitions;
    let mut writers: BTreeMap<usize, u32> = BTreeMap::new();
    for &index in &group.spawns {
        *walks += 1;
        if *walks > WALKS_MAX {
            return;
        }
        let is_own_join = |next: usize| group.joins.contains(&next);
        let branch = lint
            .graph
            .reach([transitions[index].to], |next| !is_own_join(next));
        let branches = match transitions[index].spawn {
            Spawn::One => 1,
            Spawn::Count(count) => count,
            Spawn::ForEach { .. } => 2,
        };
        for node in (0..lint.graph.node_count).filter(|node| branch[*node]) {
            *writers.entry(node).or_default() += branches;
        }
    }
    let mut targets: BTreeMap<&str, (u32, usize)> = BTreeMap::new();
    for (&node, &branches) in &writers {
        for (target, is_constant) in &of_nodes[node] {
            // All branches write the same.
            if *is_constant {
                continue;
            }
            let (count, _) = targets.entry(target).or_insert((0, node));
            *count += branches;
        }
    }
    for (target, (_, node)) in targets.into_iter().filter(|(_, (count, _))| *count > 1) {
        let pointer = pointer_to(&format!("/nodes/{node}/output_mapping"), target);
        lint.warn(
            &pointer,
            "shared_write",
            format!(
                "several branches write \"{target}\", and the last one wins, in an order that is not known; write to \
                 \"_branch.output\" and merge it at the join"
            ),
        );
    }
}

/// The paths outside of the branch that a node writes, and whether it always writes the same.
fn shared_targets(lint: &Lint, node: usize) -> Vec<(String, bool)> {
    let Some(mapping) = &lint.snapshot.workflow.nodes[node].output_mapping else {
        return Vec::new();
    };
    let written = lint.document["nodes"][node]["output_mapping"].as_object();
    let texts = written
        .into_iter()
        .flatten()
        .map(|(target, _): (&String, &Value)| target.clone());
    lint.graph.steps.add(mapping.len());
    texts
        .zip(mapping)
        .filter(|(_, (path, _))| path.root != Root::Branch)
        .map(|(text, (_, template))| (text, template.is_constant()))
        .collect()
}
