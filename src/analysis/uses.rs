//! Every expression of a workflow that reads its context, with its place in the document and the moment at which it is evaluated.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::cel::{Expression, Read, ReadKind, Template};
use crate::definition::fan::Spawn;
use crate::definition::node::NodeKind;
use crate::definition::path::Path;
use crate::definition::problem::pointer_to;
use crate::definition::snapshot::Snapshot;
use crate::definition::transition::TransitionOn;
use crate::definition::wait::{SleepLength, Wait};

/// Expressions that are looked at. Documents that people write have fewer.
const USES_MAX: usize = 20_000;

/// When an expression is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// When a token comes to the node, or fails there.
    At(usize),
    /// When a token of the node has completed and its result is written.
    After(usize),
    /// At the end of the run.
    End,
}

#[derive(Debug)]
pub struct Use {
    pub pointer: String,
    pub moment: Moment,
    pub read: Read,
    /// Another part of the same expression asks whether it is there.
    pub is_guarded: bool,
}

pub struct Uses {
    found: Vec<Use>,
}

impl Uses {
    pub fn of(snapshot: &Snapshot, node_count: usize) -> Vec<Use> {
        let mut uses = Uses { found: Vec::new() };
        let workflow = &snapshot.workflow;
        for (index, node) in workflow.nodes[..node_count].iter().enumerate() {
            let pointer = format!("/nodes/{index}");
            let moment = Moment::At(index);
            uses.template(
                node.input_mapping.as_ref(),
                &format!("{pointer}/input_mapping"),
                moment,
            );
            for (path, template) in node.output_mapping.iter().flatten() {
                let target = pointer_to(&format!("{pointer}/output_mapping"), &text_of(path));
                uses.template(Some(template), &target, moment);
            }
            match &node.kind {
                NodeKind::Gate(gate) => {
                    uses.template(gate.prompt.as_ref(), &format!("{pointer}/gate/prompt"), moment);
                }
                NodeKind::Wait(wait) => match &**wait {
                    Wait::Sleep(SleepLength::Computed(template)) => {
                        let written = &snapshot.stored.workflow["nodes"][index]["wait"];
                        let field = if written["sleep"].is_null() {
                            "sleep_ms"
                        } else {
                            "sleep"
                        };
                        uses.template(Some(template), &format!("{pointer}/wait/{field}"), moment);
                    }
                    Wait::Until(template) => {
                        uses.template(Some(template), &format!("{pointer}/wait/until"), moment);
                    }
                    Wait::Sleep(SleepLength::Millis(_)) | Wait::Signal { .. } => {}
                },
                NodeKind::Task { .. }
                | NodeKind::Action { .. }
                | NodeKind::Workflow { .. }
                | NodeKind::PassThrough => {}
            }
            if let Some(compensation) = node.compensate {
                let mapping = workflow.nodes[compensation].input_mapping.as_ref();
                uses.template(
                    mapping,
                    &format!("{pointer}/compensate/input_mapping"),
                    Moment::End,
                );
            }
        }
        for (index, transition) in workflow.transitions.iter().enumerate() {
            let pointer = format!("/transitions/{index}");
            let moment = match transition.on {
                TransitionOn::Success => Moment::After(transition.from),
                TransitionOn::Failure | TransitionOn::Timeout => Moment::At(transition.from),
            };
            if let Some(condition) = &transition.condition {
                uses.expression(condition, &format!("{pointer}/condition"), moment);
            }
            if let Spawn::ForEach { collection, .. } = &transition.spawn {
                uses.expression(collection, &format!("{pointer}/foreach/collection"), moment);
            }
        }
        uses.template(workflow.output_mapping.as_ref(), "/output_mapping", Moment::End);
        for (index, handler) in workflow.end_handlers.iter().enumerate() {
            let mapping = workflow.nodes[handler.node].input_mapping.as_ref();
            uses.template(mapping, &format!("/on_end/{index}/input_mapping"), Moment::End);
        }
        uses.found
    }

    /// The reads of a template, for documents that are no workflows.
    pub fn of_template(template: &Template, pointer: &str) -> Vec<Use> {
        let mut uses = Uses { found: Vec::new() };
        uses.template(Some(template), pointer, Moment::End);
        uses.found
    }

    pub fn of_expression(expression: &Expression, pointer: &str) -> Vec<Use> {
        let mut uses = Uses { found: Vec::new() };
        uses.expression(expression, pointer, Moment::End);
        uses.found
    }

    fn template(&mut self, template: Option<&Template>, pointer: &str, moment: Moment) {
        if let Some(template) = template {
            template.visit(&mut |expression, below| {
                self.expression(expression, &format!("{pointer}{below}"), moment);
            });
        }
    }

    fn expression(&mut self, expression: &Expression, pointer: &str, moment: Moment) {
        if self.found.len() >= USES_MAX {
            return;
        }
        let reads = expression.reads();
        let asked: Vec<Vec<String>> = reads
            .iter()
            .filter(|read| read.kind == ReadKind::Lenient)
            .map(|read| read.path.clone())
            .collect();
        for read in reads {
            let is_asked = |path: &Vec<String>| read.path.starts_with(path) || path.starts_with(&read.path);
            let is_guarded = read.kind == ReadKind::Lenient || asked.iter().any(is_asked);
            self.found.push(Use {
                pointer: pointer.to_string(),
                moment,
                read,
                is_guarded,
            });
        }
    }
}

/// A target as documents write it.
pub fn text_of(path: &Path) -> String {
    let mut text = path.root.name().to_string();
    for segment in &path.segments {
        text.push('.');
        text.push_str(segment);
    }
    text
}

/// The `item_var` of every `foreach`.
pub fn item_vars(workflow: &Value) -> BTreeSet<String> {
    let transitions = workflow["transitions"].as_array().into_iter().flatten();
    let named = transitions.filter_map(|transition| {
        let each = transition.get("foreach")?.as_object()?;
        let name = each.get("item_var").and_then(Value::as_str).unwrap_or("item");
        Some(name.to_string())
    });
    named.collect()
}
