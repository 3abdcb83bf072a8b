//! Warnings about fan-outs and joins: results that are lost, branches that overwrite each other, work that nobody stops.

use std::collections::{BTreeMap, BTreeSet};

use crate::analysis::graph::{Group, known_width};
use crate::analysis::lint::Lint;
use crate::cel::{Template, TextPart};
use crate::definition::action::ActionKind;
use crate::definition::fan::{Spawn, Strategy, Synchronization};
use crate::definition::node::NodeKind;
use crate::definition::step::StepAction;
use crate::definition::wait::Wait;

pub fn check(lint: &Lint) {
    let with_effects: Vec<usize> = (0..lint.graph.node_count)
        .filter(|node| has_effects(lint, *node))
        .collect();
    for group in lint.graph.groups.values() {
        let joins = joins(lint, group);
        let width = width_of(lint, group);
        if group.is_exact {
            warn_of_lost_results(lint, group, &joins);
            warn_of_losers(lint, group, &joins, width, &with_effects);
        }
        warn_of_quorum(lint, group, &joins, width);
    }
}

/// The first transition of each join of a group, with the join.
fn joins<'a>(lint: &'a Lint, group: &Group) -> Vec<(usize, &'a Synchronization)> {
    let transitions = &lint.graph.workflow.transitions;
    let mut known = BTreeSet::new();
    lint.graph.steps.add(group.joins.len());
    let first = group
        .joins
        .iter()
        .filter(|&&index| known.insert(transitions[index].to));
    first
        .filter_map(|&index| Some((index, transitions[index].synchronization.as_ref()?)))
        .collect()
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

fn warn_of_lost_results(lint: &Lint, group: &Group, joins: &[(usize, &Synchronization)]) {
    let workflow = lint.graph.workflow;
    let loses = |from: usize| {
        let node = &workflow.nodes[from];
        group.inside[from] && has_result(&node.kind) && node.output_mapping.is_none()
    };
    let mut lost: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    lint.graph.steps.add(group.joins.len());
    for arriving in group.joins.iter().map(|&index| &workflow.transitions[index]) {
        if loses(arriving.from) {
            lost.entry(arriving.to).or_default().push(arriving.from);
        }
    }
    for (index, join) in joins {
        let Some(lost) = lost
            .remove(&workflow.transitions[*index].to)
            .filter(|_| join.merge.is_none())
        else {
            continue;
        };
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

fn warn_of_losers(
    lint: &Lint,
    group: &Group,
    joins: &[(usize, &Synchronization)],
    width: Option<u64>,
    effects: &[usize],
) {
    let effects = effects.iter().copied();
    let with_effects: Vec<usize> = effects.filter(|node| group.inside[*node]).collect();
    lint.graph.steps.add(lint.graph.node_count);
    if with_effects.is_empty() {
        return;
    }
    for (index, join) in joins {
        let written = &lint.document["transitions"][index]["synchronization"]["on_early_complete"];
        // Written, it is what the author wants.
        if !written.is_null() || !may_have_losers(join, width) {
            continue;
        }
        lint.warn(
            &format!("/transitions/{index}/synchronization"),
            "losers_not_cancelled",
            format!(
                "when this join fires, the other branches go on, and {} may still have effects; write \
                 \"on_early_complete\": \"cancel\", or \"abandon\" if they may go on",
                lint.names(with_effects.iter().copied())
            ),
        );
    }
}

/// The most branches of a group, as far as they are known.
fn width_of(lint: &Lint, group: &Group) -> Option<u64> {
    lint.graph.steps.add(group.spawns.len());
    let input_schema = lint.document.get("input_schema");
    let spawns = group.spawns.iter();
    let widths =
        spawns.map(|&index| known_width(&lint.graph.workflow.transitions[index].spawn, input_schema));
    widths.sum()
}

/// Whether the join may fire before all branches have ended.
fn may_have_losers(join: &Synchronization, width: Option<u64>) -> bool {
    match join.strategy {
        Strategy::All => false,
        Strategy::Any => width.is_none_or(|width| width > 1),
        Strategy::MOfN(needed) => width.is_none_or(|width| width > u64::from(needed)),
    }
}

/// A quorum that the lists of a `foreach` never reach. Without one the document is refused when it is read.
fn warn_of_quorum(lint: &Lint, group: &Group, joins: &[(usize, &Synchronization)], width: Option<u64>) {
    let spawns = || {
        group
            .spawns
            .iter()
            .map(|&index| &lint.graph.workflow.transitions[index].spawn)
    };
    let has_list = spawns().any(|spawn| matches!(spawn, Spawn::ForEach { .. }));
    let Some(width) = width.filter(|_| has_list) else {
        return;
    };
    for (index, join) in joins {
        if let Strategy::MOfN(needed) = join.strategy
            && u64::from(needed) > width
        {
            lint.warn(
                &format!("/transitions/{index}/synchronization/strategy/m_of_n"),
                "quorum_too_large",
                format!("{needed} of {width}: the group never has that many branches"),
            );
        }
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
