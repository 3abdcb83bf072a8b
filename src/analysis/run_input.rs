//! Data flow from the input of a run into tasks. Without an `input_mapping` of its node a task gets the run's input, so
//! `input_schema` of the workflow says which paths its steps can read.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::analysis::data_flow::unknown_input;
use crate::analysis::lint::Lint;
use crate::analysis::task_flow::uses_of_implementation;
use crate::analysis::uses::{Use, Uses};
use crate::base::text::shorten;
use crate::cel::{Expression, Template};
use crate::definition::node::NodeKind;

pub fn check(lint: &Lint) {
    if !lint.document.get("input_schema").is_some_and(Value::is_object) {
        return;
    }
    let mut checked = BTreeSet::new();
    let mut reported = BTreeSet::new();
    for (index, node) in lint.graph.workflow.nodes[..lint.graph.node_count]
        .iter()
        .enumerate()
    {
        let Some(task) = lint.snapshot.stored.node_tasks.get(index).copied().flatten() else {
            continue;
        };
        // Nodes that run the same task without a mapping give it the same input.
        let is_mapped = node.input_mapping.is_some();
        if is_mapped || !lint.graph.reachable[index] || !checked.insert(task) {
            continue;
        }
        let Some(document) = lint.snapshot.stored.tasks.get(task) else {
            continue;
        };
        let place = Place::of(lint.document, &node.kind, index);
        for found in place.uses_of(lint.document, document) {
            lint.graph.steps.add(1);
            let Some(message) = problem_of(lint, &found, &node.id) else {
                continue;
            };
            if reported.insert((found.pointer.clone(), message.clone())) {
                lint.warn(&found.pointer, "unwritten_path", message);
            }
        }
    }
}

fn problem_of(lint: &Lint, found: &Use, node: &str) -> Option<String> {
    let (first, members) = found.read.path.split_first()?;
    if found.is_guarded || first != "input" {
        return None;
    }
    let unknown = unknown_input(lint, &shorten(&found.read.path.join(".")), members)?;
    Some(format!(
        "{unknown}; without an \"input_mapping\" the node \"{node}\" gives its work the run's input"
    ))
}

/// Where the document shows what a node runs.
enum Place {
    /// A task of the document.
    Task(String),
    /// An action of the document, which a node names.
    Action(String),
    /// The reference to a document of the catalogue.
    Reference(String),
}

impl Place {
    fn of(document: &Value, kind: &NodeKind, node: usize) -> Place {
        match kind {
            NodeKind::Task { id, version } => match inline(document, "tasks", id, *version) {
                Some(pointer) => Place::Task(pointer),
                None => Place::Reference(format!("/nodes/{node}/task_id")),
            },
            NodeKind::Action { id, version } => match inline(document, "actions", id, *version) {
                Some(pointer) => Place::Action(pointer),
                None => Place::Reference(format!("/nodes/{node}/action_id")),
            },
            NodeKind::Workflow { .. } | NodeKind::Gate(_) | NodeKind::Wait(_) | NodeKind::PassThrough => {
                Place::Reference(format!("/nodes/{node}"))
            }
        }
    }

    /// What the steps of a task read. In `task` every action is inline.
    fn uses_of(&self, document: &Value, task: &Value) -> Vec<Use> {
        let mut uses = Vec::new();
        for (index, step) in task["steps"].as_array().into_iter().flatten().enumerate() {
            let (step_at, implementation_at) = match self {
                Place::Task(task) => {
                    let step_at = format!("{task}/steps/{index}");
                    let written = document.pointer(&step_at).unwrap_or(&Value::Null);
                    let action = match written["action_id"].as_str() {
                        None => format!("{step_at}/action/implementation"),
                        Some(id) => inline(document, "actions", id, written["action_version"].as_u64())
                            .map_or_else(
                                || format!("{step_at}/action_id"),
                                |action| format!("{action}/implementation"),
                            ),
                    };
                    (step_at, action)
                }
                Place::Action(action) => (action.clone(), format!("{action}/implementation")),
                Place::Reference(reference) => (reference.clone(), reference.clone()),
            };
            let first_of_step = uses.len();
            uses.extend(condition_of(step, &format!("{step_at}/condition")));
            let mapping = &step["input_mapping"];
            match (mapping.is_null(), Template::parse(mapping)) {
                (true, _) => uses.extend(uses_of_implementation(&step["action"], &implementation_at)),
                (false, Ok(mapping)) => {
                    uses.extend(Uses::of_template(&mapping, &format!("{step_at}/input_mapping")));
                }
                (false, Err(_)) => {}
            }
            // A document of the catalogue is not shown here, nor is an action of it.
            for found in &mut uses[first_of_step..] {
                if !has_place(document, &found.pointer) {
                    let shown = match self {
                        Place::Reference(reference) => reference,
                        Place::Task(_) | Place::Action(_) => &implementation_at,
                    };
                    found.pointer.clone_from(shown);
                }
            }
        }
        uses
    }
}

fn condition_of(step: &Value, pointer: &str) -> Vec<Use> {
    match &step["condition"] {
        Value::String(bare) => Uses::of_expression(&Expression::new(bare.as_str()), pointer),
        Value::Object(fields) => {
            let when = fields.get("if").and_then(Value::as_str);
            when.map_or_else(Vec::new, |when| {
                Uses::of_expression(&Expression::new(when), &format!("{pointer}/if"))
            })
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => Vec::new(),
    }
}

fn has_place(document: &Value, pointer: &str) -> bool {
    document.pointer(pointer).is_some()
}

/// The pointer of a document that stands in the workflow. A version names one of the catalogue.
fn inline(document: &Value, field: &str, id: &str, version: Option<u64>) -> Option<String> {
    let documents = document[field].as_array().filter(|_| version.is_none())?;
    let index = documents
        .iter()
        .position(|other| other["id"].as_str() == Some(id))?;
    Some(format!("/{field}/{index}"))
}
