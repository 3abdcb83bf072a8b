//! Workflows: graphs of nodes and transitions, read from documents into types that hold no nonsense.

use serde_json::Value;

use crate::base::failure::FailureClass;
use crate::base::limits::{self, RunLimits};
use crate::base::time::Limit;
use crate::cel::{Expression, Template};
use crate::definition::action::{EXECUTION_POLICIES, ExecutionTimeoutPolicy};
use crate::definition::escalate::read_escalate_on;
use crate::definition::event::Trigger;
use crate::definition::fan::{Spawn, Synchronization, read_spawn, read_synchronization};
use crate::definition::graph;
use crate::definition::path::Path;
use crate::definition::problem::{Problems, pointer_to};
use crate::definition::reader::{Element, Reader};
use crate::definition::task::{Dispatch, read_dispatch, read_mapping, warn_of_long_queue};
use crate::definition::timeouts::{TimeoutGate, Timeouts, read_timeout_gate, read_timeouts};
use crate::definition::wait::{Gate, Wait, read_gate, read_wait};
use crate::json_schema::Schema;

#[derive(Clone, Debug)]
pub struct Workflow {
    pub id: String,
    pub tags: Vec<String>,
    pub timeout: Limit,
    pub on_timeout: WorkflowTimeoutPolicy,
    pub input_schema: Option<Schema>,
    pub output_schema: Option<Schema>,
    pub initial_node: usize,
    pub nodes: Vec<Node>,
    pub transitions: Vec<Transition>,
    pub output_mapping: Option<Template>,
    pub limits: RunLimits,
    pub timeouts: Timeouts,
    /// How the gate ends that `HumanGate` opens.
    pub gate: TimeoutGate,
    /// Lets the workflow's own limits pass the hard limit of the preset.
    pub allow_exceed_hard: bool,
    /// What starts its runs beside whoever asks for them.
    pub trigger: Option<Trigger>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkflowTimeoutPolicy {
    /// The run stands still until a person decides, or until the gate's own deadline.
    HumanGate,
    CancelAll,
    Fail,
}

const WORKFLOW_POLICIES: &[(&str, WorkflowTimeoutPolicy)] = &[
    ("human_gate", WorkflowTimeoutPolicy::HumanGate),
    ("cancel_all", WorkflowTimeoutPolicy::CancelAll),
    ("fail", WorkflowTimeoutPolicy::Fail),
];

#[derive(Clone, Debug)]
pub struct Node {
    pub id: String,
    pub kind: NodeKind,
    pub input_mapping: Option<Template>,
    pub output_mapping: Option<Vec<(Path, Template)>>,
    pub timeout: Limit,
    /// The limit follows what the node's last runs took; `timeout` is not set then.
    pub adaptive: bool,
    /// Lets this node and what it runs pass the hard limit of the preset.
    pub allow_exceed_hard: bool,
    pub on_timeout: Option<ExecutionTimeoutPolicy>,
    pub max_retries: u32,
    pub dispatch: Option<Dispatch>,
    /// Failures a person is asked about; none: the preset says which.
    pub escalate_on: Option<Vec<FailureClass>>,
}

/// What a node does when a token arrives.
#[derive(Clone, Debug)]
pub enum NodeKind {
    Task {
        id: String,
        version: Option<u64>,
    },
    Action {
        id: String,
        version: Option<u64>,
    },
    Workflow {
        id: String,
        version: Option<u64>,
        on_failure: ChildFailurePolicy,
    },
    Gate(Box<Gate>),
    Wait(Box<Wait>),
    PassThrough,
}

impl NodeKind {
    /// Something runs: here, on an executor or in a child.
    pub fn is_executed(&self) -> bool {
        match self {
            NodeKind::Task { .. } | NodeKind::Action { .. } | NodeKind::Workflow { .. } => true,
            NodeKind::Gate(_) | NodeKind::Wait(_) | NodeKind::PassThrough => false,
        }
    }
}

/// What a child that failed means to its parent's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildFailurePolicy {
    Propagate,
    Catch,
}

pub const CHILD_FAILURE_POLICIES: &[(&str, ChildFailurePolicy)] = &[
    ("propagate", ChildFailurePolicy::Propagate),
    ("catch", ChildFailurePolicy::Catch),
];

#[derive(Clone, Debug)]
pub struct Transition {
    pub id: String,
    pub from: usize,
    pub to: usize,
    pub on: TransitionOn,
    pub priority: i64,
    pub condition: Option<Expression>,
    pub spawn: Spawn,
    /// The sibling group this transition spawns into, if it spawns: a named one, or its own id.
    pub group: Option<String>,
    pub synchronization: Option<Synchronization>,
    /// Times this transition may fire on one path; only set on transitions of a cycle.
    pub iterations_max: Option<u64>,
    /// Part of a cycle: firings are counted along the path.
    pub in_cycle: bool,
}

/// The end of a token that a transition waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransitionOn {
    Success,
    Failure,
    Timeout,
}

pub const TRANSITION_ONS: &[(&str, TransitionOn)] = &[
    ("success", TransitionOn::Success),
    ("failure", TransitionOn::Failure),
    ("timeout", TransitionOn::Timeout),
];

const NAMES: &[&str] = &["input", "state", "output", "run"];
/// In a branch there is more; which nodes are in one is a question of the path, so the names are known everywhere.
const NAMES_OF_PATH: &[&str] = &["input", "state", "output", "run", "error", "_branch"];

impl Workflow {
    /// Reads the graph. References to tasks and actions outside it are `snapshot`'s business.
    pub fn read(value: &Value, problems: &Problems) -> Option<Workflow> {
        let reader = Reader::new(value, "", problems)?;
        let id = reader.required_id("id");
        reader.string("name");
        reader.string("description");
        let tags = read_tags(&reader);
        let timeout = reader.limit("timeout", "timeout_ms");
        let on_timeout = reader.choice("on_timeout", WORKFLOW_POLICIES);
        let input_schema = reader.schema("input_schema");
        let output_schema = reader.schema("output_schema");
        let output_mapping = reader.template("output_mapping", NAMES);
        let limits = reader.object("limits").map(read_limits).unwrap_or_default();
        let names = names_of_path(&reader);
        let nodes = read_nodes(&reader, &names);
        let mut transitions = read_transitions(&reader, &nodes, &names);
        let initial_node = read_initial_node(&reader, &nodes);
        reader.any("tasks");
        reader.any("actions");
        let timeouts = reader.object("timeouts").map(read_timeouts).unwrap_or_default();
        let gate = reader.object("gate").map(read_timeout_gate).unwrap_or_default();
        let allow_exceed_hard = reader.boolean("allow_exceed_hard").unwrap_or(false);
        let trigger = reader.object("trigger").and_then(Trigger::read);
        graph::mark_cycles(nodes.len(), &mut transitions);
        graph::check(&reader, initial_node, &nodes, &transitions);
        check_queue(&reader, timeout, &nodes);
        graph::check_joins(&reader, &nodes, &transitions);
        reader.finish();
        Some(Workflow {
            id: id?,
            tags,
            timeout,
            on_timeout: on_timeout.unwrap_or(match problems.is_prechecked() {
                // A snapshot of the first builds, which ended such runs; later ones always say it.
                true => WorkflowTimeoutPolicy::CancelAll,
                false => WorkflowTimeoutPolicy::HumanGate,
            }),
            input_schema,
            output_schema,
            initial_node,
            nodes,
            transitions,
            output_mapping,
            limits,
            timeouts,
            gate,
            allow_exceed_hard,
            trigger,
        })
    }

    pub fn node_index(&self, id: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.id == id)
    }
}

/// The names every node and transition may use: the fixed ones and every `item_var` of the workflow.
fn names_of_path<'a>(reader: &Reader<'a>) -> Vec<&'a str> {
    let mut names = NAMES_OF_PATH.to_vec();
    for element in reader.array("transitions") {
        if let Some(each) = element.value.get("foreach").filter(|each| each.is_object()) {
            names.push(each.get("item_var").and_then(Value::as_str).unwrap_or("item"));
        }
    }
    names
}

fn read_tags(reader: &Reader) -> Vec<String> {
    let elements = reader.array("tags");
    if elements.len() > limits::TAGS {
        reader.report(
            "tags",
            "limit_exceeded",
            format!("the limit is {} tags", limits::TAGS),
        );
    }
    let mut tags = Vec::new();
    for element in elements {
        match element.value.as_str() {
            Some(tag) if (1..=64).contains(&tag.len()) => tags.push(tag.to_string()),
            Some(_) | None => {
                reader
                    .problems()
                    .report(&element.pointer, "wrong_type", "a tag is a string of 1-64 bytes")
            }
        }
    }
    tags
}

fn read_limits(reader: Reader) -> RunLimits {
    let default = RunLimits::default();
    let bound = |field, default| {
        reader
            .integer(field, 1, 1_000_000)
            .map_or(default, |number| number as u64)
    };
    let limits = RunLimits {
        tokens_total: bound("tokens_total", default.tokens_total),
        tokens_active: bound("tokens_active", default.tokens_active),
        loop_iterations: bound("loop_iterations", default.loop_iterations),
    };
    reader.finish();
    limits
}

/// Warns of nodes that ask for the queue and may take longer than its consumers live, unless their run ends before.
fn check_queue(reader: &Reader, run_timeout: Limit, nodes: &[Node]) {
    if run_timeout
        .millis()
        .is_some_and(|millis| millis <= limits::QUEUE_MAX_MS)
    {
        return;
    }
    for node in nodes {
        if node.dispatch == Some(Dispatch::Queue) {
            let pointer = pointer_to(&graph::node_pointer(reader, &node.id), "dispatch");
            warn_of_long_queue(node.timeout, &pointer, reader.problems());
        }
    }
}

fn read_nodes(reader: &Reader, names: &[&str]) -> Vec<Node> {
    let elements = reader.array("nodes");
    if elements.is_empty() {
        reader.report("nodes", "missing_field", "a workflow needs at least one node");
    }
    if elements.len() > limits::NODES {
        reader.report(
            "nodes",
            "limit_exceeded",
            format!("{} nodes; the limit is {}", elements.len(), limits::NODES),
        );
        return Vec::new();
    }
    let mut nodes: Vec<Node> = Vec::new();
    for element in &elements {
        let Some(node) = read_node(element, names, reader.problems()) else {
            continue;
        };
        if nodes.iter().any(|other| other.id == node.id) {
            reader.problems().report(
                &format!("{}/id", element.pointer),
                "duplicate_id",
                format!("another node is named \"{}\"", node.id),
            );
            continue;
        }
        nodes.push(node);
    }
    nodes
}

fn read_node(element: &Element, names: &[&str], problems: &Problems) -> Option<Node> {
    let reader = Reader::new(element.value, element.pointer.as_str(), problems)?;
    let id = reader.required_id("id");
    reader.string("name");
    reader.string("description");
    let kind = read_kind(&reader, names);
    let input_mapping = reader.template("input_mapping", names);
    let names_with_result: Vec<&str> = names.iter().copied().chain(["result"]).collect();
    let output_mapping = read_mapping(&reader, "output_mapping", &names_with_result, Path::parse);
    let (timeout, adaptive) = reader.limit_or_adaptive("timeout", "timeout_ms");
    if adaptive && !kind.as_ref().is_none_or(NodeKind::is_executed) {
        reader.report(
            "timeout",
            "adaptive_without_work",
            "only a node with a \"task_id\", an \"action_id\" or a \"workflow_id\" has runs to learn from",
        );
    }
    let allow_exceed_hard = reader.boolean("allow_exceed_hard").unwrap_or(false);
    let on_timeout = reader.choice("on_timeout", EXECUTION_POLICIES);
    let max_retries = reader.integer("max_retries", 0, 100).unwrap_or(3) as u32;
    let dispatch = read_dispatch(&reader);
    let escalate_on = read_escalate_on(&reader, kind.as_ref().is_none_or(NodeKind::is_executed));
    reader.finish();
    Some(Node {
        id: id?,
        kind: kind?,
        input_mapping,
        output_mapping,
        timeout,
        adaptive,
        allow_exceed_hard,
        on_timeout,
        max_retries,
        dispatch,
        escalate_on,
    })
}

fn read_kind(reader: &Reader, names: &[&str]) -> Option<NodeKind> {
    let version = |field| reader.integer(field, 1, i64::MAX).map(|number| number as u64);
    let task_version = version("task_version");
    let action_version = version("action_version");
    let workflow_version = version("workflow_version");
    let on_failure = reader.choice("on_failure", CHILD_FAILURE_POLICIES);
    if on_failure.is_some() && !reader.has("workflow_id") {
        reader.report(
            "on_failure",
            "unknown_field",
            "only a node with a \"workflow_id\" has \"on_failure\"",
        );
    }
    const FORMS: [&str; 5] = ["task_id", "action_id", "workflow_id", "gate", "wait"];
    let written: Vec<&'static str> = FORMS.into_iter().filter(|form| reader.has(form)).collect();
    match written.as_slice() {
        [] => Some(NodeKind::PassThrough),
        ["task_id"] => Some(NodeKind::Task {
            id: reader.id("task_id")?,
            version: task_version,
        }),
        ["action_id"] => Some(NodeKind::Action {
            id: reader.id("action_id")?,
            version: action_version,
        }),
        ["workflow_id"] => Some(NodeKind::Workflow {
            id: reader.id("workflow_id")?,
            version: workflow_version,
            on_failure: on_failure.unwrap_or(ChildFailurePolicy::Propagate),
        }),
        ["gate"] => Some(NodeKind::Gate(Box::new(read_gate(reader.object("gate")?, names)))),
        ["wait"] => Some(NodeKind::Wait(Box::new(read_wait(
            reader.object("wait")?,
            names,
        )?))),
        [_, second, ..] => {
            reader.report(
                second,
                "both_forms",
                format!("a node has exactly one of {}", FORMS.join(", ")),
            );
            None
        }
        [_] => unreachable!("every form has its arm"),
    }
}

fn read_transitions(reader: &Reader, nodes: &[Node], names: &[&str]) -> Vec<Transition> {
    let elements = reader.array("transitions");
    if elements.len() > limits::TRANSITIONS {
        reader.report(
            "transitions",
            "limit_exceeded",
            format!(
                "{} transitions; the limit is {}",
                elements.len(),
                limits::TRANSITIONS
            ),
        );
        return Vec::new();
    }
    let mut transitions: Vec<Transition> = Vec::new();
    for (position, element) in elements.iter().enumerate() {
        let Some(transition) = read_transition(element, position, nodes, names, reader.problems()) else {
            continue;
        };
        if transitions.iter().any(|other| other.id == transition.id) {
            reader.problems().report(
                &format!("{}/id", element.pointer),
                "duplicate_id",
                format!("another transition is named \"{}\"", transition.id),
            );
            continue;
        }
        transitions.push(transition);
    }
    transitions
}

fn read_transition(
    element: &Element,
    position: usize,
    nodes: &[Node],
    names: &[&str],
    problems: &Problems,
) -> Option<Transition> {
    let reader = Reader::new(element.value, element.pointer.as_str(), problems)?;
    let id = match reader.has("id") {
        true => reader.id("id"),
        false => Some(format!("t{}", position + 1)),
    };
    let from = read_end(&reader, "from_node_id", nodes);
    let to = read_end(&reader, "to_node_id", nodes);
    let on = reader
        .choice("on", TRANSITION_ONS)
        .unwrap_or(TransitionOn::Success);
    let priority = reader.integer("priority", -1_000_000, 1_000_000).unwrap_or(0);
    let condition = reader.expression("condition", names);
    let iterations_max = reader.object("loop_config").and_then(|config| {
        let most = config.integer("max_iterations", 1, 1_000_000);
        config.finish();
        most.map(|number| number as u64)
    });
    let spawn = read_spawn(&reader, names);
    let synchronization = read_synchronization(&reader);
    let named = reader.id("sibling_group");
    reader.finish();
    let id = id?;
    let group = match (&named, &spawn) {
        (Some(_), _) => named,
        (None, Spawn::Count(_) | Spawn::ForEach { .. }) => Some(id.clone()),
        (None, Spawn::One) => None,
    };
    Some(Transition {
        id,
        from: from?,
        to: to?,
        on,
        priority,
        condition,
        spawn,
        group,
        synchronization,
        iterations_max,
        in_cycle: false,
    })
}

fn read_end(reader: &Reader, field: &'static str, nodes: &[Node]) -> Option<usize> {
    let id = reader.required_string(field)?;
    let index = nodes.iter().position(|node| node.id == id);
    if index.is_none() {
        reader.report(
            field,
            "unknown_node",
            format!("no node is named \"{}\"", crate::definition::reader::shorten(id)),
        );
    }
    index
}

fn read_initial_node(reader: &Reader, nodes: &[Node]) -> usize {
    match reader.has("initial_node_id") {
        true => read_end(reader, "initial_node_id", nodes).unwrap_or(0),
        false => 0,
    }
}
