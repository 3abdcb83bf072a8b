//! The tasks of the recorded run. A recording answers for a task as it was: another one may have answered something else.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::base::time::parse_duration;
use crate::definition::snapshot::Snapshot;
use crate::protocol::task::{StepReport, StepStatus};
use crate::replay::export::node_key;
use crate::replay::outcome::AttemptEnd;
use crate::replay::recorded_calls::RecordedAttempt;

/// What a change of a task or of its duration does to its recorded answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskChange {
    None,
    /// The answer is not known, and why.
    Unknown {
        why: String,
        /// The time from its order until it goes another way than in the recording, where that is known.
        after_ms: Option<u64>,
    },
}

impl TaskChange {
    fn unknown(why: impl Into<String>) -> TaskChange {
        TaskChange::Unknown {
            why: why.into(),
            after_ms: None,
        }
    }
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
    pub fn change(&self, node: &str, task: &str, attempt: &RecordedAttempt) -> TaskChange {
        let recorded = self.by_node.get(node).map(Vec::as_slice).unwrap_or_default();
        let task: Value = serde_json::from_str(task).unwrap_or_default();
        let is_same = recorded.contains(&task);
        if is_same && !attempt.is_longer {
            return TaskChange::None;
        }
        let without_limits = without_limits(&task);
        let mut recorded = recorded.iter().map(self::without_limits);
        if !is_same && !recorded.any(|recorded| recorded == without_limits) {
            return TaskChange::unknown("its task is another one than in the recording");
        }
        match &attempt.end {
            AttemptEnd::Completed { steps, .. } => holds(&task, steps, is_same),
            AttemptEnd::Failed { steps, .. } if is_same => holds(&task, steps, is_same),
            AttemptEnd::Failed { .. }
            | AttemptEnd::TimedOut { .. }
            | AttemptEnd::Lost
            | AttemptEnd::Open { .. } => {
                let why = "the task failed, and its limits or retries are others than in the recording";
                TaskChange::unknown(why)
            }
        }
    }
}

/// Whether a task would end in the same way under its limits: if each step made one call, which was short enough.
///
/// `is_same`: the limits are the recorded ones, and only the durations are others.
fn holds(task: &Value, steps: &[StepReport], is_same: bool) -> TaskChange {
    let defined = task["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut elapsed_ms: u64 = 0;
    for step in steps.iter().filter(|step| step.status != StepStatus::Skipped) {
        let named = |defined: &&Value| defined["ref"] == step.reference.as_str();
        let limit_ms = defined.iter().find(named).or(defined.first()).and_then(limit_of);
        if step.attempts > 1 && (limit_ms.is_some() || !is_same) {
            return TaskChange::unknown(format!(
                "step \"{}\" made {} calls, and how long each took is not recorded",
                step.reference, step.attempts
            ));
        }
        if let Some(limit_ms) = limit_ms.filter(|limit| *limit <= step.duration_ms) {
            let why = format!(
                "step \"{}\" took {} ms: its call would be cut, and what follows from that is not recorded",
                step.reference, step.duration_ms
            );
            return TaskChange::Unknown {
                why,
                after_ms: Some(elapsed_ms.saturating_add(limit_ms)),
            };
        }
        elapsed_ms = elapsed_ms.saturating_add(step.duration_ms);
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
