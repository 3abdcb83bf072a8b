//! Nodes of a workflow: what happens when a token arrives at one.

use crate::base::failure::FailureClass;
use crate::base::ids::is_id;
use crate::base::limits;
use crate::base::time::Limit;
use crate::cel::Template;
use crate::definition::action::{EXECUTION_POLICIES, ExecutionTimeoutPolicy};
use crate::definition::escalate::read_escalate_on;
use crate::definition::mapping::{Mapping, read_mapping};
use crate::definition::path::Path;
use crate::definition::problem::{Problems, UNKNOWN_FIELD};
use crate::definition::reader::{Element, Reader};
use crate::definition::task::{Dispatch, read_dispatch};
use crate::definition::wait::{Gate, Wait, read_gate, read_wait};

#[derive(Clone, Debug)]
pub struct Node {
    pub id: String,
    pub kind: NodeKind,
    pub input_mapping: Option<Template>,
    pub output_mapping: Option<Mapping>,
    pub timeout: Limit,
    /// The limit follows the durations of the node's last runs. `timeout` is unset then.
    pub adaptive: bool,
    /// The limits of this node and of what it runs may exceed the hard limits of the preset.
    pub allow_exceed_hard: bool,
    pub on_timeout: Option<ExecutionTimeoutPolicy>,
    pub max_retries: u32,
    pub dispatch: Option<Dispatch>,
    /// Failure classes that a person decides about. Absent: the preset's classes.
    pub escalate_on: Option<Vec<FailureClass>>,
    /// Absent: the workflow's.
    pub on_no_match: Option<NoMatchPolicy>,
    /// The node that undoes this one's work.
    pub compensate: Option<usize>,
    pub role: NodeRole,
}

/// What a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeRole {
    /// A node of the document.
    Declared,
    /// The `compensate` of another node. It has no transitions.
    Compensation { of: usize },
    /// An entry of `on_end`. It has no transitions.
    EndHandler,
}

impl Node {
    /// The id without what marks a compensation or an end handler.
    pub fn shown_id(&self) -> &str {
        self.id.split('~').next().unwrap_or_default()
    }
}

/// What happens to a completed token whose node has success transitions, none of which matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoMatchPolicy {
    /// The token fails.
    Fail,
    /// Its path ends, as after a node without transitions.
    End,
}

pub(super) const NO_MATCH_POLICIES: &[(&str, NoMatchPolicy)] =
    &[("fail", NoMatchPolicy::Fail), ("end", NoMatchPolicy::End)];

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
    /// Executes a task, an action or a child run.
    pub fn is_executed(&self) -> bool {
        match self {
            NodeKind::Task { .. } | NodeKind::Action { .. } | NodeKind::Workflow { .. } => true,
            NodeKind::Gate(_) | NodeKind::Wait(_) | NodeKind::PassThrough => false,
        }
    }
}

/// How a failed child run affects its parent's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildFailurePolicy {
    Propagate,
    Catch,
}

pub const CHILD_FAILURE_POLICIES: &[(&str, ChildFailurePolicy)] = &[
    ("propagate", ChildFailurePolicy::Propagate),
    ("catch", ChildFailurePolicy::Catch),
];

/// The elements of `nodes` that have problems and were not read. A reference to one of them is no mistake of its own.
#[derive(Default)]
pub(super) struct UnreadNodes {
    ids: Vec<String>,
    /// One of them has no valid id, so any unknown one may be meant.
    has_nameless: bool,
}

impl UnreadNodes {
    pub(super) fn may_be(&self, id: &str) -> bool {
        self.has_nameless || self.ids.iter().any(|unread| unread == id)
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.has_nameless && self.ids.is_empty()
    }

    fn add(&mut self, element: &Element) {
        match element.value["id"].as_str().filter(|id| is_id(id)) {
            Some(id) => self.ids.push(id.to_string()),
            None => self.has_nameless = true,
        }
    }
}

pub(super) fn read_nodes(reader: &Reader, names: &[&str]) -> (Vec<Node>, UnreadNodes) {
    let mut unread = UnreadNodes::default();
    let elements = reader.array("nodes");
    if elements.is_empty() && !reader.problems().has_errors_in(&reader.pointer_of("nodes")) {
        reader.report("nodes", "missing_field", "a workflow needs at least one node");
    }
    if elements.len() > limits::NODES {
        reader.report(
            "nodes",
            "limit_exceeded",
            format!("{} nodes; the limit is {}", elements.len(), limits::NODES),
        );
        unread.has_nameless = true;
        return (Vec::new(), unread);
    }
    let mut nodes: Vec<Node> = Vec::new();
    for element in &elements {
        let Some(node) = read_node(element, names, reader.problems()) else {
            unread.add(element);
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
    (nodes, unread)
}

fn read_node(element: &Element, names: &[&str], problems: &Problems) -> Option<Node> {
    let reader = Reader::new(element.value, element.pointer.as_str(), problems)?;
    let id = reader.required_id("id");
    reader.string("name");
    reader.string("description");
    let kind = read_kind(&reader, FORMS, names);
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
    let on_no_match = reader.choice("on_no_match", NO_MATCH_POLICIES);
    // Read by `ending::add_compensations`, once all nodes are known.
    reader.value("compensate");
    if let Some(kind) = kind.as_ref().filter(|_| !problems.is_prechecked()) {
        report_meaningless_fields(&reader, kind, adaptive);
    }
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
        on_no_match,
        compensate: None,
        role: NodeRole::Declared,
    })
}

/// The work of a compensation or an end handler: `task_id`, `action_id` or `workflow_id`, and `input_mapping`. Its id, role and
/// timeout are the caller's.
pub(super) fn read_work(reader: Reader, names: &[&str]) -> Option<Node> {
    let kind = read_kind(&reader, WORK_FORMS, names);
    if kind.as_ref().is_some_and(|kind| !kind.is_executed()) {
        let message = "name the work: \"task_id\", \"action_id\" or \"workflow_id\"";
        reader.report("action_id", "missing_field", message);
    }
    let input_mapping = reader.template("input_mapping", names);
    reader.finish();
    Some(Node {
        id: String::new(),
        kind: kind.filter(NodeKind::is_executed)?,
        input_mapping,
        // Its result is on the token only.
        output_mapping: Some(Vec::new()),
        timeout: Limit::Unset,
        adaptive: false,
        allow_exceed_hard: false,
        on_timeout: None,
        max_retries: 3,
        dispatch: None,
        // Ending goes on without a person.
        escalate_on: Some(Vec::new()),
        on_no_match: None,
        compensate: None,
        role: NodeRole::Declared,
    })
}

/// What a node may do; the first three run something.
const FORMS: &[&str] = &["task_id", "action_id", "workflow_id", "gate", "wait"];
const WORK_FORMS: &[&str] = &["task_id", "action_id", "workflow_id"];

/// Reports fields that cannot mean anything on a node of this kind. Stored snapshots may have them.
fn report_meaningless_fields(reader: &Reader, kind: &NodeKind, adaptive: bool) {
    const WORK: &str = "only a node with a \"task_id\", an \"action_id\" or a \"workflow_id\" has it";
    const TASK: &str = "only a node with a \"task_id\" or an \"action_id\" has it";
    let (has_task, has_work) = match kind {
        NodeKind::Task { .. } | NodeKind::Action { .. } => (true, true),
        NodeKind::Workflow { .. } => (false, true),
        NodeKind::Gate(_) | NodeKind::Wait(_) | NodeKind::PassThrough => (false, false),
    };
    let (timeout, on_timeout) = match kind {
        NodeKind::Task { .. } | NodeKind::Action { .. } | NodeKind::Workflow { .. } => (None, None),
        NodeKind::Gate(_) => (
            has_gate_limit(reader).then_some("the gate has a \"timeout\" of its own; leave one of both out"),
            Some("what follows a gate's timeout is \"on_timeout\" inside \"gate\""),
        ),
        NodeKind::Wait(wait) => match **wait {
            Wait::Signal { .. } => {
                let inside = Some("a wait for a signal has it inside \"wait\"");
                (inside, inside)
            }
            Wait::Sleep(_) | Wait::Until(_) => {
                let none = Some("a wait for a moment ends at it; only a wait for a signal can time out");
                (none, none)
            }
        },
        NodeKind::PassThrough => (Some(WORK), Some(WORK)),
    };
    // An adaptive limit without work has a problem of its own.
    let timeout = timeout.filter(|_| !adaptive);
    let only_with = |id: &'static str, message: &'static str| (!reader.has(id)).then_some(message);
    let fields: [(&'static str, Option<&str>); 9] = [
        ("input_mapping", (!has_work).then_some(WORK)),
        ("timeout", timeout),
        ("timeout_ms", timeout),
        ("on_timeout", on_timeout),
        ("max_retries", (!has_work).then_some(WORK)),
        ("dispatch", (!has_task).then_some(TASK)),
        (
            "task_version",
            only_with("task_id", "it is the version of a \"task_id\""),
        ),
        (
            "action_version",
            only_with("action_id", "it is the version of an \"action_id\""),
        ),
        (
            "workflow_version",
            only_with("workflow_id", "it is the version of a \"workflow_id\""),
        ),
    ];
    for (field, meaningless) in fields {
        if let Some(message) = meaningless.filter(|_| reader.has(field)) {
            reader.report(
                field,
                UNKNOWN_FIELD,
                format!("\"{field}\" means nothing here: {message}"),
            );
        }
    }
}

/// The gate says itself how long it waits, also with `null`.
fn has_gate_limit(reader: &Reader) -> bool {
    let gate = reader.value("gate");
    ["timeout", "timeout_ms"]
        .iter()
        .any(|field| gate.is_some_and(|gate| gate.get(field).is_some()))
}

fn read_kind(reader: &Reader, forms: &[&'static str], names: &[&str]) -> Option<NodeKind> {
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
    let present = forms.iter().copied().filter(|form| reader.has(form));
    let present: Vec<&'static str> = present.collect();
    match present.as_slice() {
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
                format!("write exactly one of {}", forms.join(", ")),
            );
            None
        }
        [_] => unreachable!("every form has its arm"),
    }
}
