//! Steps of a task: an action with its mappings, its condition and its failure policy.

use serde_json::Value;

use crate::base::limits;
use crate::base::ordered::sort_by_key;
use crate::base::time::Limit;
use crate::cel::{Expression, Template};
use crate::definition::NOW;
use crate::definition::action::{Action, ActionKind};
use crate::definition::mapping::{Mapping, read_task_mapping};
use crate::definition::problem::{Problems, UNKNOWN_FIELD};
use crate::definition::reader::{Element, Reader};

#[derive(Clone, Debug)]
pub struct Step {
    pub reference: String,
    pub action: StepAction,
    pub input_mapping: Option<Template>,
    pub output_mapping: Option<Mapping>,
    pub condition: Option<StepCondition>,
    pub on_failure: StepFailurePolicy,
    pub timeout_override: Limit,
    /// The limits of this step and of its action may exceed the hard limits of the preset.
    pub allow_exceed_hard: bool,
}

impl Step {
    /// The limit of one call: the step's own, else the action's, else the default of its layer.
    pub fn call_limit(&self, action: &Action, default: Limit) -> Limit {
        self.timeout_override.or(action.timeout).or(default)
    }
}

/// A step in the catalogue may reference an action. In a snapshot every action is inline.
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

/// What the task does after evaluating a condition.
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

const NAMES: &[&str] = &["input", "state", "output", NOW];
const NAMES_WITH_RESULT: &[&str] = &["input", "state", "output", NOW, "result"];

pub(super) fn read_steps(reader: &Reader) -> Vec<Step> {
    let elements = reader.array("steps");
    if elements.is_empty() && !reader.problems().has_errors_in(&reader.pointer_of("steps")) {
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
        check_single_step(&step, element, elements.len(), reader.problems());
        if steps.iter().any(|(_, other)| other.reference == step.reference) {
            reader.problems().report(
                &format!("{}/ref", element.pointer),
                "duplicate_id",
                format!("another step of this task is named \"{}\"", step.reference),
            );
        }
        steps.push((ordinal, step));
    }
    sort_by_key(&mut steps, |(ordinal, _)| *ordinal);
    steps.into_iter().map(|(_, step)| step).collect()
}

/// The coordinator starts child runs and waits for callbacks, so a task with such an action consists only of it.
fn check_single_step(step: &Step, element: &Element, count: usize, problems: &Problems) {
    // A referenced action is checked when it is resolved.
    let StepAction::Inline(action) = &step.action else {
        return;
    };
    let is_bare = count == 1 && step.condition.is_none() && step.output_mapping.is_none();
    if matches!(action.kind, ActionKind::WorkflowCall(_)) && !is_bare {
        report_call_not_alone(&element.pointer, problems);
    }
    if action.is_async() && !is_bare {
        report_async_not_alone(&element.pointer, problems);
    }
}

pub(super) fn report_async_not_alone(pointer: &str, problems: &Problems) {
    problems.report(
        pointer,
        "async_not_alone",
        "an async action is the only step of its task, without condition and output_mapping; map its result in the node",
    );
}

pub(super) fn report_call_not_alone(pointer: &str, problems: &Problems) {
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
    let output_mapping = read_task_mapping(&reader, "output_mapping", NAMES_WITH_RESULT);
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
    match (reader.has("action_id"), reader.value("action")) {
        (true, None) => Some(StepAction::Reference {
            id: reader.id("action_id")?,
            version: version.map(|number| number as u64),
        }),
        (false, Some(action)) => {
            // Earlier builds ignored it.
            if reader.has("action_version") && !reader.problems().is_prechecked() {
                let message = "\"action_version\" means nothing here: it is the version of an \"action_id\"";
                reader.report("action_version", UNKNOWN_FIELD, message);
            }
            let action = Action::read(action, &reader.pointer_of("action"), false, reader.problems())?;
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
    match reader.value("condition")? {
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
