//! Tasks: linear sequences of steps that one executor runs from start to end.

use serde_json::Value;

use crate::base::limits;
use crate::base::time::{Limit, format_duration};
use crate::definition::SCHEMA;
use crate::definition::action::{Action, ActionKind};
use crate::definition::problem::Problems;
use crate::definition::reader::Reader;
use crate::definition::step::{Step, StepAction, read_steps};
use crate::json_schema::Schema;

#[derive(Clone, Debug)]
pub struct Task {
    pub id: String,
    pub steps: Vec<Step>,
    pub timeout: Limit,
    pub dispatch: Dispatch,
    pub retry: Option<TaskRetry>,
    pub input_schema: Option<Schema>,
    pub output_schema: Option<Schema>,
}

/// The requested way to run a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dispatch {
    #[default]
    Auto,
    /// Inside the coordinator: only for tasks that use nothing but their own context.
    Inline,
    Direct,
    /// Through a queue, if one is bound, so that the run's object need not stay in memory.
    Queue,
}

pub const DISPATCHES: &[(&str, Dispatch)] = &[
    ("auto", Dispatch::Auto),
    ("inline", Dispatch::Inline),
    ("direct", Dispatch::Direct),
    ("queue", Dispatch::Queue),
];

/// Retries the whole task from its first step, with a fresh context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskRetry {
    pub attempts_max: u32,
    pub backoff: Backoff,
    pub initial_delay_ms: u64,
    pub max_delay_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backoff {
    None,
    Linear,
    Exponential,
}

pub const BACKOFFS: &[(&str, Backoff)] = &[
    ("none", Backoff::None),
    ("linear", Backoff::Linear),
    ("exponential", Backoff::Exponential),
];

impl Backoff {
    /// The delay before retry `retry` (the first is 1), not yet capped.
    pub fn delay_ms(self, retry: u32, initial_ms: u64) -> u64 {
        let retry = retry.max(1);
        match self {
            Backoff::None => 0,
            Backoff::Linear => initial_ms.saturating_mul(u64::from(retry)),
            Backoff::Exponential => initial_ms.saturating_mul(1 << (retry - 1).min(40)),
        }
    }
}

impl TaskRetry {
    /// The delay before attempt `attempt` (the first retry is attempt 2).
    pub fn delay_ms(&self, attempt: u32) -> u64 {
        let delay = self
            .backoff
            .delay_ms(attempt.saturating_sub(1), self.initial_delay_ms);
        delay.min(self.max_delay_ms)
    }
}

impl Task {
    pub fn read(value: &Value, pointer: &str, problems: &Problems) -> Option<Task> {
        let reader = Reader::new(value, pointer, problems)?;
        let id = reader.required_id("id");
        reader.value(SCHEMA);
        reader.string("name");
        reader.string("description");
        let steps = read_steps(&reader);
        let timeout = reader.limit("timeout", "timeout_ms");
        let dispatch = read_dispatch(&reader).unwrap_or_default();
        if dispatch == Dispatch::Queue {
            warn_of_long_queue(timeout, &reader.pointer_of("dispatch"), problems);
        }
        let retry = reader.object("retry").map(read_retry);
        let input_schema = reader.schema("input_schema");
        let output_schema = reader.schema("output_schema");
        reader.finish();
        Some(Task {
            id: id?,
            steps,
            timeout,
            dispatch,
            retry,
            input_schema,
            output_schema,
        })
    }

    /// Uses nothing but its own context and never waits, so it can run inside the coordinator.
    pub fn is_pure(&self) -> bool {
        let waits = self.retry.is_some_and(|retry| retry.delay_ms(2) > 0);
        let pure = |step: &Step| match &step.action {
            // Only executors have access to secrets.
            StepAction::Inline(action) => action.is_pure() && action.secrets.is_empty(),
            StepAction::Reference { .. } => false,
        };
        !waits && self.steps.iter().all(pure)
    }

    /// The secrets that steps write into the context of the task. Only documents of earlier builds have such steps.
    pub fn context_secrets(&self) -> impl Iterator<Item = &String> {
        let actions = self.steps.iter().filter_map(|step| match &step.action {
            StepAction::Inline(action) => Some(action),
            StepAction::Reference { .. } => None,
        });
        actions
            .filter(|action| action.is_pure())
            .flat_map(|action| &action.secrets)
    }

    /// The number of steps that call a service.
    pub fn calls(&self) -> usize {
        let calls = |step: &&Step| !matches!(&step.action, StepAction::Inline(action) if action.is_pure());
        self.steps.iter().filter(calls).count()
    }

    /// A step emits an event.
    pub fn emits(&self) -> bool {
        let emits = |step: &Step| match &step.action {
            StepAction::Inline(action) => matches!(action.kind, ActionKind::EmitEvent(_)),
            StepAction::Reference { .. } => false,
        };
        self.steps.iter().any(emits)
    }

    /// A step brings its output bit by bit.
    pub fn streams(&self) -> bool {
        let streams = |step: &Step| match &step.action {
            StepAction::Inline(action) => matches!(action.kind, ActionKind::LlmCall(_)),
            StepAction::Reference { .. } => false,
        };
        self.steps.iter().any(streams)
    }

    /// The step of a task with one step, and its action. Their limits apply to the task.
    pub fn only_step(&self) -> Option<(&Step, &Action)> {
        match self.steps.as_slice() {
            [step] => match &step.action {
                StepAction::Inline(action) => Some((step, action)),
                StepAction::Reference { .. } => None,
            },
            [] | [_, _, ..] => None,
        }
    }

    pub fn only_action(&self) -> Option<&Action> {
        self.only_step().map(|(_, action)| action)
    }
}

/// Warns if a task requests the queue but its timeout is too long for it.
pub fn warn_of_long_queue(timeout: Limit, pointer: &str, problems: &Problems) {
    let is_too_long = match timeout {
        Limit::Unset => false,
        Limit::Never => true,
        Limit::After(millis) => millis > limits::QUEUE_MAX_MS,
    };
    if is_too_long {
        let max = format_duration(limits::QUEUE_MAX_MS);
        problems.warn(
            pointer,
            "queue_too_long",
            format!("a task that may take longer than {max} is called directly; give it a shorter timeout, or leave \"dispatch\" out"),
        );
    }
}

pub fn read_dispatch(reader: &Reader) -> Option<Dispatch> {
    reader.choice("dispatch", DISPATCHES)
}

fn read_retry(reader: Reader) -> TaskRetry {
    let attempts_max = reader.integer("max_attempts", 1, 100).unwrap_or(3) as u32;
    let backoff = reader.choice("backoff", BACKOFFS);
    let initial = reader.limit("initial_delay", "initial_delay_ms").millis();
    let max = reader.limit("max_delay", "max_delay_ms").millis();
    reader.finish();
    TaskRetry {
        attempts_max,
        backoff: backoff.unwrap_or(Backoff::None),
        initial_delay_ms: initial.unwrap_or(1_000),
        max_delay_ms: max.unwrap_or(60_000),
    }
}
