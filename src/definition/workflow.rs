//! Workflows: graphs of nodes and transitions. Reading a document reports every problem in it, so a `Workflow` that was read
//! without errors is consistent in itself.

use serde_json::Value;

use crate::base::limits::{self, RunLimits};
use crate::base::time::Limit;
use crate::cel::Template;
use crate::definition::ending::{
    CompensationRules, EndHandler, add_compensations, read_compensation, read_end_handlers,
};
use crate::definition::event::Trigger;
use crate::definition::graph;
use crate::definition::node::{NO_MATCH_POLICIES, NoMatchPolicy, Node, NodeRole, read_nodes};
use crate::definition::notify::{NotifyTarget, read_targets};
use crate::definition::problem::{Problems, pointer_to};
use crate::definition::reader::Reader;
use crate::definition::task::{Dispatch, warn_of_long_queue};
use crate::definition::timeouts::{TimeoutGate, Timeouts, read_timeout_gate, read_timeouts};
use crate::definition::transition::{NodeIndex, Transition, read_node_reference, read_transitions};
use crate::definition::{NOW, SCHEMA};
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
    /// The deadline of the gate that `WorkflowTimeoutPolicy::HumanGate` opens.
    pub gate: TimeoutGate,
    /// The workflow's own limits may exceed the hard limits of the preset.
    pub allow_exceed_hard: bool,
    /// Starts runs in addition to the API.
    pub trigger: Option<Trigger>,
    /// For nodes that do not say it themselves.
    pub on_no_match: NoMatchPolicy,
    pub clock: RunClock,
    pub compensation: CompensationRules,
    pub end_handlers: Vec<EndHandler>,
    /// Where events of its runs are posted.
    pub notify: Vec<NotifyTarget>,
}

/// Whether the run's own limit counts the time in front of a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunClock {
    /// Not while every live token stands at a gate.
    StopsAtGates,
    Runs,
}

const RUN_CLOCKS: &[(&str, RunClock)] = &[
    ("stops_at_gates", RunClock::StopsAtGates),
    ("runs", RunClock::Runs),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkflowTimeoutPolicy {
    /// The run pauses until a person decides, or until the gate's own deadline.
    HumanGate,
    CancelAll,
    Fail,
}

const WORKFLOW_POLICIES: &[(&str, WorkflowTimeoutPolicy)] = &[
    ("human_gate", WorkflowTimeoutPolicy::HumanGate),
    ("cancel_all", WorkflowTimeoutPolicy::CancelAll),
    ("fail", WorkflowTimeoutPolicy::Fail),
];

const OUTPUT_NAMES: &[&str] = &["input", "state", "output", "run", NOW];
/// `error` and `_branch` only have values on some paths. They are accepted everywhere, because a node can be on several.
const GRAPH_NAMES: &[&str] = &["input", "state", "output", "run", NOW, "error", "_branch"];

impl Workflow {
    /// Reads the graph. `resolve` looks up the tasks and actions that it refers to.
    pub fn read(value: &Value, problems: &Problems) -> Option<Workflow> {
        let reader = Reader::new(value, "", problems)?;
        let id = reader.required_id("id");
        reader.value(SCHEMA);
        reader.string("name");
        reader.string("description");
        let tags = read_tags(&reader);
        let timeout = reader.limit("timeout", "timeout_ms");
        let on_timeout = reader.choice("on_timeout", WORKFLOW_POLICIES);
        let input_schema = reader.schema("input_schema");
        let output_schema = reader.schema("output_schema");
        let output_mapping = reader.template("output_mapping", OUTPUT_NAMES);
        let limits = reader.object("limits").map(read_limits).unwrap_or_default();
        let names = graph_names(&reader);
        let (mut nodes, unread) = read_nodes(&reader, &names);
        let index = NodeIndex::new(&nodes, &unread);
        let mut transitions = read_transitions(&reader, &index, &names);
        let initial_node = read_initial_node(&reader, &index);
        reader.value("tasks");
        reader.value("actions");
        let timeouts = reader.object("timeouts").map(read_timeouts).unwrap_or_default();
        let gate = reader.object("gate").map(read_timeout_gate).unwrap_or_default();
        let allow_exceed_hard = reader.boolean("allow_exceed_hard").unwrap_or(false);
        let trigger = reader.object("trigger").and_then(Trigger::read);
        let on_no_match = reader.choice("on_no_match", NO_MATCH_POLICIES);
        let clock = reader.choice("clock", RUN_CLOCKS);
        graph::mark_cycles(nodes.len(), &mut transitions);
        // A node or a transition that could not be read leaves others without a way to them.
        if unread.is_empty() && reader.array("transitions").len() == transitions.len() {
            graph::warn_of_unreachable(&reader, initial_node, &nodes, &transitions);
        }
        graph::check_loops(&reader, &nodes, &transitions);
        check_queue(&reader, timeout, &nodes);
        graph::check_joins(&reader, &nodes, &transitions);
        // After the checks of the graph: these nodes are not part of it.
        let compensation = reader
            .object("compensation")
            .map(read_compensation)
            .unwrap_or_default();
        add_compensations(&reader.array("nodes"), &mut nodes, problems);
        let end_handlers = read_end_handlers(&reader, &mut nodes);
        let notify = read_targets(&reader);
        reader.finish();
        Some(Workflow {
            id: id?,
            tags,
            timeout,
            on_timeout: on_timeout.unwrap_or(match problems.is_prechecked() {
                // Only snapshots of the first builds lack the field. Those builds cancelled such runs.
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
            on_no_match: on_no_match.unwrap_or(match problems.is_prechecked() {
                // Only snapshots of earlier builds lack the field. Those builds ended the path.
                true => NoMatchPolicy::End,
                false => NoMatchPolicy::Fail,
            }),
            clock: clock.unwrap_or(match problems.is_prechecked() {
                // Only snapshots of earlier builds lack the field. Their clocks always ran.
                true => RunClock::Runs,
                false => RunClock::StopsAtGates,
            }),
            compensation,
            end_handlers,
            notify,
        })
    }

    /// Without compensations and end handlers.
    pub fn declared_node_index(&self, id: &str) -> Option<usize> {
        let index = self.node_index(id)?;
        (self.nodes[index].role == NodeRole::Declared).then_some(index)
    }

    pub fn node_index(&self, id: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.id == id)
    }
}

/// The names that every node and transition may use: the fixed ones and every `item_var` of the workflow.
fn graph_names<'a>(reader: &Reader<'a>) -> Vec<&'a str> {
    let mut names = GRAPH_NAMES.to_vec();
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

/// Warns about nodes that request the queue but may exceed its time limit, unless the run's own limit is shorter.
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

fn read_initial_node(reader: &Reader, nodes: &NodeIndex) -> usize {
    match reader.has("initial_node_id") {
        true => read_node_reference(reader, "initial_node_id", nodes).unwrap_or(0),
        false => 0,
    }
}
