//! What a run does between the decision to end and its end: `compensate` of nodes, `compensation` and `on_end` of the workflow.
//! Both kinds of work become nodes without transitions, so that their tokens are dispatched, retried and timed out like others.

use serde_json::Value;

use crate::base::limits;
use crate::base::time::{Limit, MINUTE};
use crate::definition::NOW;
use crate::definition::node::{Node, NodeRole, read_work};
use crate::definition::problem::Problems;
use crate::definition::reader::{Element, Reader};

const COMPENSATION_TIMEOUT_MS: u64 = 10 * MINUTE;

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndStatus {
    Completed,
    Failed,
    TimedOut,
    Cancelled,
}

const END_STATUSES: &[(&str, EndStatus)] = &[
    ("completed", EndStatus::Completed),
    ("failed", EndStatus::Failed),
    ("timed_out", EndStatus::TimedOut),
    ("cancelled", EndStatus::Cancelled),
];

/// Completed work is not undone.
const COMPENSATED_STATUSES: &[(&str, EndStatus)] = &[
    ("failed", EndStatus::Failed),
    ("timed_out", EndStatus::TimedOut),
    ("cancelled", EndStatus::Cancelled),
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompensationRules {
    /// The ends that compensate.
    pub on: Vec<EndStatus>,
    /// How long work in flight may take to report, then all compensations together, then all end handlers together.
    pub timeout_ms: u64,
}

impl Default for CompensationRules {
    fn default() -> Self {
        CompensationRules {
            on: COMPENSATED_STATUSES.iter().map(|(_, status)| *status).collect(),
            timeout_ms: COMPENSATION_TIMEOUT_MS,
        }
    }
}

/// Work that runs when the run is about to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndHandler {
    pub on: Vec<EndStatus>,
    /// The node that stands for it.
    pub node: usize,
}

pub(super) fn read_compensation(reader: Reader) -> CompensationRules {
    let default = CompensationRules::default();
    let on = read_statuses(&reader, COMPENSATED_STATUSES);
    let timeout = reader.limit("timeout", "timeout_ms");
    if timeout == Limit::Never {
        let message = "compensations must end; write a duration";
        reader.report("timeout", "wrong_type", message);
    }
    reader.finish();
    CompensationRules {
        on: on.unwrap_or(default.on),
        timeout_ms: timeout.millis().unwrap_or(default.timeout_ms),
    }
}

fn read_statuses(reader: &Reader, known: &[(&str, EndStatus)]) -> Option<Vec<EndStatus>> {
    if !reader.has("on") {
        return None;
    }
    let elements = reader.array("on");
    // Earlier builds took an empty list for never.
    let is_empty_list = elements.is_empty() && reader.value("on").is_some_and(Value::is_array);
    if is_empty_list && !reader.problems().is_prechecked() {
        let message = "no end is named; name at least one, or leave \"on\" out for all of them";
        reader.report("on", "empty_list", message);
    }
    let mut statuses = Vec::new();
    for element in elements {
        let named = known
            .iter()
            .find(|(name, _)| element.value.as_str() == Some(name));
        match named {
            Some((_, status)) => statuses.push(*status),
            None => {
                let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
                let message = format!("expected one of {}", names.join(", "));
                reader
                    .problems()
                    .report(&element.pointer, "unknown_value", message);
            }
        }
    }
    Some(statuses)
}

/// Appends the node of every `compensate`. `elements` are the documents of `nodes`, in the same order or with invalid ones between.
pub(super) fn add_compensations(elements: &[Element], nodes: &mut Vec<Node>, problems: &Problems) {
    let mut declared = 0..nodes.len();
    for element in elements {
        // Not by the id alone, which several nodes of a wrong document may have.
        let id = element.value["id"].as_str();
        let is_read = nodes
            .get(declared.start)
            .is_some_and(|node| Some(node.id.as_str()) == id);
        let Some(index) = is_read.then(|| declared.next()).flatten() else {
            continue;
        };
        let document = &element.value["compensate"];
        if document.is_null() || nodes[index].compensate.is_some() {
            continue;
        }
        let pointer = format!("{}/compensate", element.pointer);
        let Some(reader) = Reader::new(document, pointer.as_str(), problems) else {
            continue;
        };
        let timeout = reader.limit("timeout", "timeout_ms");
        let node = read_work(reader, COMPENSATION_NAMES);
        if !nodes[index].kind.is_executed() {
            let message = "only a node with a \"task_id\", an \"action_id\" or a \"workflow_id\" has work to compensate";
            problems.report(&pointer, "compensate_without_work", message);
            continue;
        }
        let Some(mut node) = node else {
            continue;
        };
        node.id = format!("{}~compensate", nodes[index].id);
        node.role = NodeRole::Compensation { of: index };
        node.timeout = timeout;
        node.allow_exceed_hard = nodes[index].allow_exceed_hard;
        nodes[index].compensate = Some(nodes.len());
        nodes.push(node);
    }
}

/// Names in the `input_mapping` of a compensation.
const COMPENSATION_NAMES: &[&str] = &["result", "input", "state", "run", NOW];
/// Names in the `input_mapping` of an end handler.
const END_NAMES: &[&str] = &["input", "state", "output", "run", NOW];

/// Reads `on_end` and appends a node for each handler.
pub(super) fn read_end_handlers(reader: &Reader, nodes: &mut Vec<Node>) -> Vec<EndHandler> {
    let elements = reader.array("on_end");
    if elements.len() > limits::END_HANDLERS {
        let message = format!(
            "{} end handlers; the limit is {}",
            elements.len(),
            limits::END_HANDLERS
        );
        reader.report("on_end", "limit_exceeded", message);
        return Vec::new();
    }
    let mut handlers = Vec::new();
    for (index, element) in elements.iter().enumerate() {
        let Some(reader) = Reader::new(element.value, element.pointer.as_str(), reader.problems()) else {
            continue;
        };
        let on = read_statuses(&reader, END_STATUSES);
        let Some(mut node) = read_work(reader, END_NAMES) else {
            continue;
        };
        node.id = format!("on_end~{}", index + 1);
        node.role = NodeRole::EndHandler;
        handlers.push(EndHandler {
            on: on.unwrap_or_else(|| END_STATUSES.iter().map(|(_, status)| *status).collect()),
            node: nodes.len(),
        });
        nodes.push(node);
    }
    handlers
}

/// The pointer of the work behind a node that the document does not list as a node.
pub(super) fn pointer_of(id: &str, pointer_of_node: impl Fn(&str) -> String) -> Option<String> {
    match id.split_once('~')? {
        ("on_end", number) => {
            let index = number.parse::<usize>().ok()?.checked_sub(1)?;
            Some(format!("/on_end/{index}"))
        }
        (node, _compensate) => Some(format!("{}/compensate", pointer_of_node(node))),
    }
}
