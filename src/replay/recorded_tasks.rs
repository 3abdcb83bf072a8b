//! The tasks of the recorded run. A recording answers for a task as it was: another one may have answered something else.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::definition::snapshot::Snapshot;
use crate::definition::timeouts::TimeoutLayer;
use crate::protocol::task::ActionTimeouts;
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
    pub difference: Difference,
    /// The recorded task may have begun again.
    pub repeats: bool,
}

impl ComparedTask<'_> {
    pub fn steps(&self) -> &[Value] {
        steps_of(self.task)
    }

    /// A call, all calls of a step or a retry of the task has a limit.
    pub fn has_limits(&self) -> bool {
        *self.task != without_limits(self.task)
    }
}

fn steps_of(task: &Value) -> &[Value] {
    task["steps"].as_array().map(Vec::as_slice).unwrap_or_default()
}

#[derive(Default)]
pub struct RecordedTasks {
    /// By `node_key`. End handlers share one.
    by_node: BTreeMap<String, Vec<Value>>,
    /// The limits of calls that have none of their own, in the versions that the run had.
    actions: Vec<ActionTimeouts>,
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
                let key = node_key(node.shown_id(), node.id.contains('~'));
                self.by_node.entry(key).or_default().push(task.clone());
            }
        }
    }

    /// The node's only action gets its result by a callback.
    pub fn is_async(&self, node: &str) -> bool {
        let mut tasks = self.by_node.get(node).into_iter().flatten();
        tasks.any(|task| matches!(steps_of(task), [step] if step["action"]["execution"]["mode"] == "async"))
    }

    /// `task` and `actions` are those of an order.
    pub fn compare<'a>(&self, node: &str, task: &'a Value, actions: ActionTimeouts) -> ComparedTask<'a> {
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
            difference,
            repeats: recorded.iter().any(repeats),
        }
    }
}

/// Whether a failure of a step may have begun the task again.
fn repeats(task: &Value) -> bool {
    let is_repeated = task["retry"].is_object() && task["retry"]["max_attempts"] != 1;
    is_repeated && steps_of(task).iter().any(|step| step["on_failure"] == "retry")
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
