//! The tasks of the recorded run. A recording answers for a task as it was: another one may have answered something else.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::Value;

use crate::api::error::Error;
use crate::base::time::parse_duration;
use crate::definition::node::Node;
use crate::definition::snapshot::{Snapshot, StoredSnapshot};
use crate::definition::timeouts::TimeoutLayer;
use crate::protocol::task::ActionTimeouts;
use crate::replay::documents::self_contained;
use crate::replay::export::node_key;

/// How the task of an order differs from the recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    None,
    /// Only in how long something may take, and how often it is tried.
    Limits,
    Task,
}

/// The task of an order beside the recorded one.
pub struct ComparedTask<'a> {
    task: &'a Value,
    /// In the versions that the run had.
    recorded: &'a [Value],
    pub difference: Difference,
}

impl ComparedTask<'_> {
    pub fn steps(&self) -> &[Value] {
        steps_of(self.task)
    }

    /// Its own limit, which counts beside that of its node.
    pub fn limit_ms(&self) -> Option<u64> {
        millis(self.task, "timeout")
    }

    /// The recorded task may have begun again.
    pub fn repeats(&self) -> bool {
        self.recorded.iter().any(repeats)
    }

    /// The recorded task made one call a step, whatever came of it.
    pub fn never_retries(&self) -> bool {
        let is_retried = |step: &Value| {
            let execution = &step["action"]["execution"];
            execution["on_timeout"] == "retry" || execution["retry_policy"]["max_attempts"] != 1
        };
        !self.repeats()
            && !self
                .recorded
                .iter()
                .any(|task| steps_of(task).iter().any(is_retried))
    }

    /// When the step is tried again, and how often, is as recorded.
    pub fn retries_as_recorded(&self, reference: &str) -> bool {
        let policy = |task: &Value| {
            let execution = &step_of(task, reference)?["action"]["execution"];
            let mut policy = execution["retry_policy"].clone();
            // Limits are looked at call by call.
            if let Value::Object(fields) = &mut policy {
                fields.retain(|name, _| !name.starts_with("total_timeout"));
            }
            let is_none = policy.as_object().is_some_and(serde_json::Map::is_empty);
            Some((
                if is_none { Value::Null } else { policy },
                execution["on_timeout"].clone(),
            ))
        };
        let wanted = policy(self.task);
        self.recorded.iter().any(|task| policy(task) == wanted)
    }

    pub fn step_limit(&self, reference: &str, actions: ActionTimeouts) -> StepLimits {
        let step = step_of(self.task, reference);
        step.map_or(StepLimits::default(), |step| StepLimits::of(step, actions))
    }

    /// Not all of its result is the answer of a call.
    pub fn computes(&self) -> bool {
        let is_written = |step: &Value, field: &str| !step[field].is_null();
        let is_pure = |step: &Value| PURE_KINDS.iter().any(|kind| step["action"]["kind"] == *kind);
        self.steps()
            .iter()
            .any(|step| is_pure(step) || is_written(step, "condition") || is_written(step, "output_mapping"))
    }

    /// A call, all calls of a step or a retry of the task has a limit.
    pub fn has_limits(&self) -> bool {
        *self.task != without_limits(self.task)
    }
}

/// The limits of a step.
#[derive(Clone, Copy, Default)]
pub struct StepLimits {
    /// Of each call.
    pub call_ms: Option<u64>,
    /// Of all calls together.
    pub total_ms: Option<u64>,
}

impl StepLimits {
    fn of(step: &Value, actions: ActionTimeouts) -> StepLimits {
        let action = &step["action"];
        let own = millis(step, "timeout_override").into_iter();
        let own = own.chain(millis(&action["execution"], "timeout")).min();
        let default = match action["kind"].as_str() {
            Some("llm_call") => actions.llm_call_ms,
            Some("http_request" | "mcp_tool" | "service_call" | "shell") => actions.tool_ms,
            Some(_) | None => None,
        };
        StepLimits {
            call_ms: own.or(default),
            total_ms: millis(&action["execution"]["retry_policy"], "total_timeout"),
        }
    }
}

/// A length of a document, under either of its names.
fn millis(fields: &Value, name: &str) -> Option<u64> {
    let text = fields[name].as_str().and_then(|text| parse_duration(text).ok());
    fields[format!("{name}_ms")].as_u64().or(text)
}

/// The step by its `ref`. The only one may have none.
fn step_of<'a>(task: &'a Value, reference: &str) -> Option<&'a Value> {
    let steps = steps_of(task);
    steps
        .iter()
        .find(|step| step["ref"] == reference)
        .or(steps.first())
}

fn steps_of(task: &Value) -> &[Value] {
    task["steps"].as_array().map(Vec::as_slice).unwrap_or_default()
}

#[derive(Default)]
pub struct RecordedTasks {
    /// By `node_key`. End handlers share one.
    by_node: BTreeMap<String, Vec<Value>>,
    /// The workflows that nodes call, by `node_key`.
    called: BTreeMap<String, Vec<Rc<Value>>>,
    /// Nodes whose called workflow has compensations or end handlers, by `node_key`.
    with_ending: BTreeSet<String>,
    /// The limits of calls that have none of their own, in the versions that the run had.
    actions: Vec<ActionTimeouts>,
}

/// The workflows that the nodes of a replay call, by `node_key`.
#[derive(Default)]
pub struct CalledWorkflows {
    /// They were others in the recording.
    pub others: BTreeSet<String>,
    /// They have compensations or end handlers.
    pub with_ending: BTreeSet<String>,
}

pub fn read_snapshot(stored: &StoredSnapshot) -> Result<Snapshot, Error> {
    Snapshot::read(stored.clone()).map_err(|_| {
        let message = "the snapshot of the export cannot be read; export the run again";
        Error::invalid_request("/snapshot", message)
    })
}

/// The `node_key` of each node that calls a workflow, and its document without what the catalogue called its parts.
fn called_documents(snapshot: &Snapshot) -> Vec<(String, Rc<Value>)> {
    let stored = &snapshot.stored;
    // Many nodes may call the same workflow.
    let mut documents: BTreeMap<usize, Rc<Value>> = BTreeMap::new();
    let nodes = snapshot.workflow.nodes.iter().enumerate();
    let calls = nodes.filter_map(|(number, node)| {
        let index = stored.node_children.get(number).copied().flatten()?;
        let child = stored.children.get(index)?;
        let document = documents
            .entry(index)
            .or_insert_with(|| Rc::new(self_contained(child)));
        Some((key_of(node), Rc::clone(document)))
    });
    calls.collect()
}

/// The `node_key` of each node whose called workflow has compensations or end handlers.
fn calls_with_ending(snapshot: &Snapshot) -> impl Iterator<Item = String> {
    let nodes = snapshot.workflow.nodes.iter().enumerate();
    let calls = nodes.filter(|(number, _)| snapshot.child_has_ending(*number));
    calls.map(|(_, node)| key_of(node))
}

fn key_of(node: &Node) -> String {
    node_key(node.shown_id(), node.id.contains('~'))
}

impl RecordedTasks {
    pub fn add(&mut self, snapshot: &Snapshot) {
        self.actions.push(ActionTimeouts {
            llm_call_ms: snapshot.default_limit(TimeoutLayer::LlmCall).millis(),
            tool_ms: snapshot.default_limit(TimeoutLayer::Tool).millis(),
        });
        for (number, node) in snapshot.workflow.nodes.iter().enumerate() {
            let index = snapshot.node_tasks.get(number).copied().flatten();
            if let Some(task) = index.and_then(|index| snapshot.stored.tasks.get(index)) {
                self.by_node.entry(key_of(node)).or_default().push(task.clone());
            }
        }
        for (key, document) in called_documents(snapshot) {
            self.called.entry(key).or_default().push(document);
        }
        self.with_ending.extend(calls_with_ending(snapshot));
    }

    /// What the nodes of a workflow call, beside what they called in the recording.
    pub fn called_by(&self, workflow: &Snapshot) -> CalledWorkflows {
        let mut called = CalledWorkflows {
            others: BTreeSet::new(),
            with_ending: self.with_ending.clone(),
        };
        for (key, document) in called_documents(workflow) {
            let mut recorded = self.called.get(&key).into_iter().flatten();
            if !recorded.any(|it| *it == document) {
                called.others.insert(key);
            }
        }
        called.with_ending.extend(calls_with_ending(workflow));
        called
    }

    /// The node's only action gets its result by a callback.
    pub fn is_async(&self, node: &str) -> bool {
        let mut tasks = self.by_node.get(node).into_iter().flatten();
        tasks.any(|task| matches!(steps_of(task), [step] if step["action"]["execution"]["mode"] == "async"))
    }

    /// The node's task may have begun again.
    pub fn repeats(&self, node: &str) -> bool {
        self.by_node.get(node).into_iter().flatten().any(repeats)
    }

    /// A step of the node's task has this limit.
    pub fn is_limit_of_step(&self, node: &str, reference: &str, limit_ms: u64) -> bool {
        let tasks = self.by_node.get(node).into_iter().flatten();
        tasks
            .filter_map(|task| step_of(task, reference))
            .flat_map(|step| {
                self.actions
                    .iter()
                    .map(move |actions| StepLimits::of(step, *actions))
            })
            .any(|limits| limits.call_ms == Some(limit_ms) || limits.total_ms == Some(limit_ms))
    }

    /// `task` and `actions` are those of an order.
    pub fn compare<'a>(&'a self, node: &str, task: &'a Value, actions: ActionTimeouts) -> ComparedTask<'a> {
        let recorded = self.by_node.get(node).map(Vec::as_slice).unwrap_or_default();
        let is_same = recorded.contains(task) && self.actions.contains(&actions);
        let without_limits = self::without_limits(task);
        let difference = match is_same {
            true => Difference::None,
            false
                if recorded
                    .iter()
                    .any(|recorded| self::without_limits(recorded) == without_limits) =>
            {
                Difference::Limits
            }
            false => Difference::Task,
        };
        ComparedTask {
            task,
            recorded,
            difference,
        }
    }
}

/// Whether a failure of a step may have begun the task again.
fn repeats(task: &Value) -> bool {
    let is_repeated = task["retry"].is_object() && task["retry"]["max_attempts"] != 1;
    is_repeated && steps_of(task).iter().any(|step| step["on_failure"] == "retry")
}

/// Of actions that make no call.
const PURE_KINDS: [&str; 3] = ["update_context", "assert", "emit_event"];

/// Fields that only say how long something may take, and how often it is tried.
const LIMITS: [&str; 7] = [
    "timeout",
    "timeout_ms",
    "timeout_override",
    "timeout_override_ms",
    "on_timeout",
    "retry",
    "retry_policy",
];

fn without_limits(task: &Value) -> Value {
    let mut task = task.clone();
    let strip = |fields: &mut Value| {
        if let Value::Object(fields) = fields {
            fields.retain(|name, _| !LIMITS.contains(&name.as_str()));
        }
    };
    strip(&mut task);
    for step in task["steps"].as_array_mut().into_iter().flatten() {
        strip(step);
        let execution = step
            .get_mut("action")
            .and_then(|action| action.get_mut("execution"));
        if let Some(execution) = execution {
            strip(execution);
        }
        // An empty one is none.
        if let Some(action) = step.get_mut("action").and_then(Value::as_object_mut)
            && action
                .get("execution")
                .is_some_and(|it| it.as_object().is_some_and(serde_json::Map::is_empty))
        {
            action.remove("execution");
        }
    }
    task
}
