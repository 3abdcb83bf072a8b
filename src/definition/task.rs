//! Tasks: linear sequences of steps that one executor runs from start to end.

use serde_json::Value;

use crate::base::limits;
use crate::base::time::{Limit, format_duration};
use crate::cel::{Expression, Template};
use crate::definition::action::{Action, ActionKind};
use crate::definition::path::Path;
use crate::definition::problem::Problems;
use crate::definition::reader::{Element, Reader, read_template};
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

/// The lane a user asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dispatch {
    #[default]
    Auto,
    /// Inside the coordinator: only for tasks that touch nothing but their own context.
    Inline,
    Direct,
    /// Through a queue, where there is one: the object need not stay awake meanwhile.
    Queue,
}

pub const DISPATCHES: &[(&str, Dispatch)] = &[
    ("auto", Dispatch::Auto),
    ("inline", Dispatch::Inline),
    ("direct", Dispatch::Direct),
    ("queue", Dispatch::Queue),
];

/// Business retry: the whole task again, from step 0, with a fresh context.
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
    /// How long to wait before attempt `attempt` (the first retry is attempt 2).
    pub fn delay_ms(&self, attempt: u32) -> u64 {
        let delay = self
            .backoff
            .delay_ms(attempt.saturating_sub(1), self.initial_delay_ms);
        delay.min(self.max_delay_ms)
    }
}

#[derive(Clone, Debug)]
pub struct Step {
    pub reference: String,
    pub action: StepAction,
    pub input_mapping: Option<Template>,
    pub output_mapping: Option<Vec<(Path, Template)>>,
    pub condition: Option<StepCondition>,
    pub on_failure: StepFailurePolicy,
    pub timeout_override: Limit,
    /// Lets this step and its action pass the hard limit of the preset.
    pub allow_exceed_hard: bool,
}

/// In the catalogue a step may point at an action; what an executor gets is always resolved.
#[derive(Clone, Debug)]
pub enum StepAction {
    Inline(Box<Action>),
    Reference { id: String, version: Option<u64> },
}

#[derive(Clone, Debug)]
pub struct StepCondition {
    pub when: Expression,
    pub then: ConditionOutcome,
    pub otherwise: ConditionOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionOutcome {
    Continue,
    Skip,
    Succeed,
    Fail,
}

const CONDITION_OUTCOMES: &[(&str, ConditionOutcome)] = &[
    ("continue", ConditionOutcome::Continue),
    ("skip", ConditionOutcome::Skip),
    ("succeed", ConditionOutcome::Succeed),
    ("fail", ConditionOutcome::Fail),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepFailurePolicy {
    Abort,
    Retry,
    Continue,
}

const STEP_FAILURE_POLICIES: &[(&str, StepFailurePolicy)] = &[
    ("abort", StepFailurePolicy::Abort),
    ("retry", StepFailurePolicy::Retry),
    ("continue", StepFailurePolicy::Continue),
];

const NAMES: &[&str] = &["input", "state", "output"];
const NAMES_WITH_RESULT: &[&str] = &["input", "state", "output", "result"];

impl Task {
    pub fn read(value: &Value, pointer: &str, problems: &Problems) -> Option<Task> {
        let reader = Reader::new(value, pointer, problems)?;
        let id = reader.required_id("id");
        reader.string("name");
        reader.string("description");
        let steps = read_steps(&reader);
        let timeout = reader.limit("timeout", "timeout_ms");
        let dispatch = read_dispatch(&reader).unwrap_or_default();
        if dispatch == Dispatch::Queue {
            warn_of_long_queue(timeout, &reader.at("dispatch"), problems);
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

    /// Touches nothing but its own context and never waits: it can run wherever its input is.
    pub fn is_pure(&self) -> bool {
        let waits = self.retry.is_some_and(|retry| retry.delay_ms(2) > 0);
        let pure = |step: &Step| match &step.action {
            // Secrets are the executor's alone.
            StepAction::Inline(action) => action.is_pure() && action.secrets.is_empty(),
            StepAction::Reference { .. } => false,
        };
        !waits && self.steps.iter().all(pure)
    }

    /// How many of its steps call somebody.
    pub fn calls(&self) -> usize {
        let calls = |step: &&Step| !matches!(&step.action, StepAction::Inline(action) if action.is_pure());
        self.steps.iter().filter(calls).count()
    }

    /// The action of a task of one step: its limits count as the task's own.
    pub fn only_action(&self) -> Option<&Action> {
        match self.steps.as_slice() {
            [step] => match &step.action {
                StepAction::Inline(action) => Some(action),
                StepAction::Reference { .. } => None,
            },
            [] | [_, _, ..] => None,
        }
    }
}

/// The queue is asked for, and `timeout` alone says that it will not be taken.
pub fn warn_of_long_queue(timeout: Limit, pointer: &str, problems: &Problems) {
    let is_too_long = match timeout {
        Limit::Unset => false,
        Limit::Never => true,
        Limit::After(millis) => millis > limits::QUEUE_MAX_MS,
    };
    if is_too_long {
        let most = format_duration(limits::QUEUE_MAX_MS);
        problems.warn(
            pointer,
            "queue_too_long",
            format!("a task that may take longer than {most} is called directly; give it a shorter timeout, or leave \"dispatch\" out"),
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

fn read_steps(reader: &Reader) -> Vec<Step> {
    let elements = reader.array("steps");
    if elements.is_empty() {
        reader.report("steps", "missing_field", "a task needs at least one step");
    }
    if elements.len() > limits::STEPS {
        reader.report(
            "steps",
            "limit_exceeded",
            format!("{} steps; the limit is {}", elements.len(), limits::STEPS),
        );
        return Vec::new();
    }
    let mut steps: Vec<(i64, Step)> = Vec::new();
    for (position, element) in elements.iter().enumerate() {
        let Some((ordinal, step)) = read_step(element, position, reader.problems()) else {
            continue;
        };
        check_workflow_call(&step, element, elements.len(), reader.problems());
        if steps.iter().any(|(_, other)| other.reference == step.reference) {
            reader.problems().report(
                &format!("{}/ref", element.pointer),
                "duplicate_id",
                format!("another step of this task is named \"{}\"", step.reference),
            );
        }
        steps.push((ordinal, step));
    }
    steps.sort_by_key(|(ordinal, _)| *ordinal);
    steps.into_iter().map(|(_, step)| step).collect()
}

/// A child run is the coordinator's business: a task that calls one is nothing but the call.
fn check_workflow_call(step: &Step, element: &Element, count: usize, problems: &Problems) {
    let StepAction::Inline(action) = &step.action else {
        return;
    };
    let is_bare = count == 1 && step.condition.is_none() && step.output_mapping.is_none();
    if matches!(action.kind, ActionKind::WorkflowCall(_)) && !is_bare {
        report_crowded_call(&element.pointer, problems);
    }
    if action.is_async() && !is_bare {
        report_crowded_async(&element.pointer, problems);
    }
}

pub(super) fn report_crowded_async(pointer: &str, problems: &Problems) {
    problems.report(
        pointer,
        "async_not_alone",
        "an async action is the only step of its task, without condition and output_mapping; map its result in the node",
    );
}

pub(super) fn report_crowded_call(pointer: &str, problems: &Problems) {
    problems.report(
        pointer,
        "workflow_call_not_alone",
        "a workflow_call is the only step of its task, without condition and output_mapping; use a node with \"workflow_id\"",
    );
}

fn read_step(element: &Element, position: usize, problems: &Problems) -> Option<(i64, Step)> {
    let reader = Reader::new(element.value, element.pointer.as_str(), problems)?;
    let ordinal = reader.integer("ordinal", 0, 1_000_000);
    let action = read_step_action(&reader);
    let reference = match reader.id("ref") {
        Some(reference) => reference,
        None => format!("step-{}", position + 1),
    };
    let input_mapping = reader.template("input_mapping", NAMES);
    let output_mapping = read_mapping(&reader, "output_mapping", NAMES_WITH_RESULT, Path::parse_in_task);
    let condition = read_condition(&reader);
    let on_failure = reader.choice("on_failure", STEP_FAILURE_POLICIES);
    let timeout_override = reader.limit("timeout_override", "timeout_override_ms");
    let allow_exceed_hard = reader.boolean("allow_exceed_hard").unwrap_or(false);
    reader.finish();
    Some((
        ordinal.unwrap_or(position as i64),
        Step {
            reference,
            action: action?,
            input_mapping,
            output_mapping,
            condition,
            on_failure: on_failure.unwrap_or(StepFailurePolicy::Abort),
            timeout_override,
            allow_exceed_hard,
        },
    ))
}

fn read_step_action(reader: &Reader) -> Option<StepAction> {
    let version = reader.integer("action_version", 1, i64::MAX);
    match (reader.has("action_id"), reader.any("action")) {
        (true, None) => Some(StepAction::Reference {
            id: reader.id("action_id")?,
            version: version.map(|number| number as u64),
        }),
        (false, Some(action)) => {
            let action = Action::read(action, &reader.at("action"), false, reader.problems())?;
            Some(StepAction::Inline(Box::new(action)))
        }
        (true, Some(_)) => {
            reader.report(
                "action",
                "both_forms",
                "a step has either an \"action_id\" or an \"action\"",
            );
            None
        }
        (false, None) => {
            reader.report(
                "action_id",
                "missing_field",
                "a step needs an \"action_id\" or an \"action\"",
            );
            None
        }
    }
}

fn read_condition(reader: &Reader) -> Option<StepCondition> {
    match reader.any("condition")? {
        Value::Object(_) => {
            let condition = reader.object("condition")?;
            condition.required_string("if");
            let when = condition.expression("if", NAMES);
            let then = condition.choice("then", CONDITION_OUTCOMES);
            let otherwise = condition.choice("else", CONDITION_OUTCOMES);
            condition.finish();
            Some(StepCondition {
                when: when?,
                then: then.unwrap_or(ConditionOutcome::Continue),
                otherwise: otherwise.unwrap_or(ConditionOutcome::Skip),
            })
        }
        _bare => Some(StepCondition {
            when: reader.expression("condition", NAMES)?,
            then: ConditionOutcome::Continue,
            otherwise: ConditionOutcome::Skip,
        }),
    }
}

/// A mapping whose keys are targets: `{"state.x": "${result.y}"}`.
pub fn read_mapping(
    reader: &Reader,
    field: &'static str,
    names: &[&str],
    parse: fn(&str) -> Result<Path, String>,
) -> Option<Vec<(Path, Template)>> {
    let mut mapping = Vec::new();
    for (target, element) in reader.entries(field)? {
        let template = read_template(element.value, &element.pointer, names, reader.problems());
        match parse(target) {
            Ok(path) => mapping.extend(template.map(|template| (path, template))),
            Err(message) => reader
                .problems()
                .report(&element.pointer, "invalid_target", message),
        }
    }
    Some(mapping)
}
