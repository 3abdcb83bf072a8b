//! The tasks of the recorded run. A recording answers for a task as it was: another one may have answered something else.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::base::time::parse_duration;
use crate::definition::snapshot::Snapshot;
use crate::protocol::task::{StepReport, StepStatus};
use crate::replay::export::node_key;
use crate::replay::outcome::AttemptEnd;

/// What a change of a task does to its recorded answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskChange {
    None,
    /// The answer to the changed task is not known, and why.
    Unknown(String),
}

#[derive(Default)]
pub struct RecordedTasks {
    /// By `node_key`. End handlers share one.
    by_node: BTreeMap<String, Vec<Value>>,
}

impl RecordedTasks {
    pub fn add(&mut self, snapshot: &Snapshot) {
        for (number, node) in snapshot.workflow.nodes.iter().enumerate() {
            let index = snapshot.node_tasks.get(number).copied().flatten();
            if let Some(task) = index.and_then(|index| snapshot.stored.tasks.get(index)) {
                let key = node_key(node.shown_id(), node.id.contains('~'));
                self.by_node.entry(key).or_default().push(task.clone());
            }
        }
    }

    /// The node's only action gets its result by a callback.
    pub fn is_async(&self, node: &str) -> bool {
        let mut tasks = self.by_node.get(node).into_iter().flatten();
        tasks.any(|task| {
            let steps = task["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
            matches!(steps, [step] if step["action"]["execution"]["mode"] == "async")
        })
    }

    /// `task` is that of an order.
    pub fn change(&self, node: &str, task: &str, end: &AttemptEnd) -> TaskChange {
        let recorded = self.by_node.get(node).map(Vec::as_slice).unwrap_or_default();
        let task: Value = serde_json::from_str(task).unwrap_or_default();
        if recorded.contains(&task) {
            return TaskChange::None;
        }
        let without_limits = without_limits(&task);
        if !recorded
            .iter()
            .any(|recorded| self::without_limits(recorded) == without_limits)
        {
            return TaskChange::Unknown("its task is another one than in the recording".into());
        }
        match end {
            AttemptEnd::Completed { steps, .. } => holds(&task, steps),
            AttemptEnd::Failed { .. } | AttemptEnd::TimedOut { .. } | AttemptEnd::Lost | AttemptEnd::Open => {
                let why = "the task failed, and its limits or retries are others than in the recording";
                TaskChange::Unknown(why.into())
            }
        }
    }
}

/// Whether a task that completed would complete under its new limits: if each step made one call, which was short enough.
fn holds(task: &Value, steps: &[StepReport]) -> TaskChange {
    let defined = task["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
    for step in steps.iter().filter(|step| step.status != StepStatus::Skipped) {
        if step.attempts > 1 {
            let why = format!(
                "step \"{}\" made {} calls, and how long each took is not recorded",
                step.reference, step.attempts
            );
            return TaskChange::Unknown(why);
        }
        let named = |defined: &&Value| defined["ref"] == step.reference.as_str();
        let limit_ms = defined.iter().find(named).or(defined.first()).and_then(limit_of);
        if limit_ms.is_some_and(|limit| limit <= step.duration_ms) {
            let why = format!(
                "step \"{}\" took {} ms: its call would be cut, and what follows from that is not recorded",
                step.reference, step.duration_ms
            );
            return TaskChange::Unknown(why);
        }
    }
    TaskChange::None
}

/// The shortest limit of a step's calls.
fn limit_of(step: &Value) -> Option<u64> {
    let millis = |fields: &Value, name: &str| {
        let text = fields[name].as_str().and_then(|text| parse_duration(text).ok());
        fields[format!("{name}_ms")].as_u64().or(text)
    };
    let own = millis(step, "timeout_override");
    own.into_iter()
        .chain(millis(&step["action"]["execution"], "timeout"))
        .min()
}

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
