//! Runs one task: steps in order over a context that lives as long as the task. Knows no platform: what touches
//! the world is behind `World`, so that these rules are tested natively.

use std::rc::Rc;

use serde_json::{Map, Value, json};

use crate::model::action::{Action, Kind};
use crate::model::expression::{Error, Scope};
use crate::model::failure::{Failure, FailureClass};
use crate::model::limits::RESULT_BYTES;
use crate::model::path::{Path, Root};
use crate::model::schema::Schema;
use crate::model::task::{OnFailure, Outcome, Step, StepAction, Task};
use crate::model::time::Millis;
use crate::wire::{ReportStatus, StepReport, StepStatus};

/// What a task needs of the world. One thread, no `Send`: the platform has no other.
#[allow(async_fn_in_trait)]
pub trait World {
    fn now(&self) -> Millis;
    async fn sleep(&self, millis: u64);
    /// Performs an action that is not pure. Must give up at `deadline_at` with `Stopped::Deadline`.
    async fn perform(&self, call: ActionCall<'_>) -> Result<Value, Stopped>;
}

pub struct ActionCall<'a> {
    pub action: &'a Action,
    pub scope: &'a Scope<'a>,
    pub input: &'a Value,
    pub deadline_at: Option<Millis>,
    pub step_ref: &'a str,
}

/// Why an action has no result.
#[derive(Debug)]
pub enum Stopped {
    Failed(Failure),
    Deadline,
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Stopped {
        Stopped::Failed(failure)
    }
}

/// What came of a task.
#[derive(Debug)]
pub struct Done {
    pub status: ReportStatus,
    pub output: Option<Value>,
    pub error: Option<Failure>,
    pub steps: Vec<StepReport>,
}

struct Attempt {
    state: Value,
    output: Value,
    last_result: Value,
    wrote_output: bool,
    steps: Vec<StepReport>,
}

/// How one pass over the steps ended.
enum End {
    Succeeded,
    Failed {
        failure: Failure,
        retry: bool,
        timed_out: bool,
    },
}

pub async fn run_task(world: &impl World, task: &Task, input: &Value, deadline_at: Option<Millis>) -> Done {
    let mut number = 1;
    loop {
        let mut attempt = Attempt {
            state: json!({}),
            output: json!({}),
            last_result: Value::Null,
            wrote_output: false,
            steps: Vec::new(),
        };
        let end = match check(task.input_schema.as_ref(), input, "input_schema of the task") {
            Ok(()) => attempt.run(world, task, input, deadline_at).await,
            Err(failure) => End::Failed {
                failure,
                retry: false,
                timed_out: false,
            },
        };
        let (mut failure, retry, timed_out) = match end {
            End::Succeeded => match attempt.deliver(task) {
                Ok(output) => return attempt.done(ReportStatus::Completed, Some(output), None),
                Err(failure) => (failure, false, false),
            },
            End::Failed {
                failure,
                retry,
                timed_out,
            } => (failure, retry, timed_out),
        };
        if let Some(policy) = task.retry.filter(|policy| retry && number < policy.attempts_max) {
            number += 1;
            let delay = policy.delay_ms(number);
            let starts_at = world.now().saturating_add(delay);
            if deadline_at.is_none_or(|deadline| starts_at < deadline) {
                if delay > 0 {
                    world.sleep(delay).await;
                }
                continue;
            }
            failure.message += "; not tried again: no time is left before the deadline";
        }
        let status = match timed_out {
            true => ReportStatus::TimedOut,
            false => ReportStatus::Failed,
        };
        return attempt.done(status, None, Some(failure));
    }
}

impl Attempt {
    async fn run(
        &mut self,
        world: &impl World,
        task: &Task,
        input: &Value,
        deadline_at: Option<Millis>,
    ) -> End {
        for step in &task.steps {
            let began = world.now();
            let outcome = match self.outcome(step, input) {
                Ok(Outcome::Skip) => {
                    self.report(step, StepStatus::Skipped, 0);
                    continue;
                }
                Ok(Outcome::Succeed) => return End::Succeeded,
                Ok(Outcome::Fail) => Err(Stopped::Failed(Failure::new(
                    "condition_failed",
                    FailureClass::Assertion,
                    format!("the condition of step {} says fail", step.reference),
                ))),
                Ok(Outcome::Continue) => self.step(world, step, input, deadline_at).await,
                Err(failure) => Err(Stopped::Failed(failure)),
            };
            let duration = world.now().saturating_sub(began);
            let (mut failure, timed_out) = match outcome {
                Ok(()) => {
                    self.report(step, StepStatus::Completed, duration);
                    continue;
                }
                Err(Stopped::Failed(failure)) => (failure, false),
                Err(Stopped::Deadline) => (
                    Failure::new(
                        "tool_timeout",
                        FailureClass::Timeout,
                        format!("step {} timed out: context deadline exceeded", step.reference),
                    ),
                    true,
                ),
            };
            failure.step_ref = Some(step.reference.clone());
            self.report(
                step,
                if timed_out {
                    StepStatus::TimedOut
                } else {
                    StepStatus::Failed
                },
                duration,
            );
            // When the task's own time is up there is nothing to go on to.
            let no_time = deadline_at.is_some_and(|deadline| world.now() >= deadline);
            match step.on_failure {
                OnFailure::Continue if !(timed_out && no_time) => self.note_error(step, &failure),
                OnFailure::Continue | OnFailure::Abort => {
                    return End::Failed {
                        failure,
                        retry: false,
                        timed_out,
                    };
                }
                OnFailure::Retry => {
                    return End::Failed {
                        failure,
                        retry: true,
                        timed_out,
                    };
                }
            }
        }
        End::Succeeded
    }

    fn outcome(&self, step: &Step, input: &Value) -> Result<Outcome, Failure> {
        let Some(condition) = &step.condition else {
            return Ok(Outcome::Continue);
        };
        let holds = condition
            .when
            .evaluate_bool(&self.scope(input))
            .map_err(|wrong| expression_failure(step, "condition", &wrong))?;
        Ok(if holds {
            condition.then
        } else {
            condition.otherwise
        })
    }

    async fn step(
        &mut self,
        world: &impl World,
        step: &Step,
        task_input: &Value,
        deadline_at: Option<Millis>,
    ) -> Result<(), Stopped> {
        let StepAction::Inline(action) = &step.action else {
            return Err(Stopped::Failed(Failure::new(
                "unresolved_action",
                FailureClass::Permanent,
                format!("step {} came without its action", step.reference),
            )));
        };
        let input = match &step.input_mapping {
            None => task_input.clone(),
            Some(mapping) => mapping
                .render(&self.scope(task_input))
                .map_err(|wrong| expression_failure(step, "input_mapping", &wrong))?,
        };
        check(
            action.input_schema.as_ref(),
            &input,
            &format!("input_schema of step {}", step.reference),
        )?;
        let limit = step.timeout_override.or(action.timeout).millis();
        let own_deadline = limit.map(|millis| world.now().saturating_add(millis));
        let deadline_at = own_deadline.into_iter().chain(deadline_at).min();
        if deadline_at.is_some_and(|deadline| deadline <= world.now()) {
            return Err(Stopped::Deadline);
        }
        let result = match &action.kind {
            Kind::UpdateContext(writes) => {
                let mut values = Vec::with_capacity(writes.len());
                for (path, template) in writes {
                    let value = template
                        .render(&self.scope(&input))
                        .map_err(|wrong| expression_failure(step, "set", &wrong))?;
                    values.push((path, value));
                }
                self.write(values);
                self.output.clone()
            }
            Kind::Assert(assert) => {
                let scope = self.scope(&input);
                let holds = assert
                    .condition
                    .evaluate_bool(&scope)
                    .map_err(|wrong| expression_failure(step, "condition", &wrong))?;
                if !holds {
                    let message = match &assert.message {
                        None => format!("assertion failed: {}", assert.condition.source()),
                        Some(message) => plain(
                            message
                                .render(&scope)
                                .map_err(|wrong| expression_failure(step, "message", &wrong))?,
                        ),
                    };
                    let failure = Failure::new("assertion_failed", FailureClass::Assertion, message);
                    return Err(Stopped::Failed(failure));
                }
                Value::Bool(true)
            }
            Kind::WorkflowCall(_) => {
                let message = "a workflow_call never reaches an executor";
                return Err(Stopped::Failed(Failure::new(
                    "invalid_order",
                    FailureClass::Permanent,
                    message,
                )));
            }
            Kind::HttpRequest(_) | Kind::ServiceCall(_) => {
                let scope = self.scope(&input);
                world
                    .perform(ActionCall {
                        action,
                        scope: &scope,
                        input: &input,
                        deadline_at,
                        step_ref: &step.reference,
                    })
                    .await?
            }
        };
        check(
            action.output_schema.as_ref(),
            &result,
            &format!("output_schema of step {}", step.reference),
        )?;
        self.keep(step, action, task_input, result)?;
        Ok(())
    }

    /// Maps a result into the task's context; without a mapping it lands at `state.<ref>`.
    fn keep(&mut self, step: &Step, action: &Action, input: &Value, result: Value) -> Result<(), Failure> {
        match &step.output_mapping {
            Some(mapping) => {
                let mut scope = self.scope(input);
                scope.bind("result", &result);
                let mut values = Vec::with_capacity(mapping.len());
                for (path, template) in mapping {
                    let value = template
                        .render(&scope)
                        .map_err(|wrong| expression_failure(step, "output_mapping", &wrong))?;
                    values.push((path, value));
                }
                drop(scope);
                self.write(values);
            }
            // A pure action wrote what it wanted to write.
            None if action.is_pure() => {}
            None => {
                let target = Path {
                    root: Root::State,
                    segments: vec![step.reference.clone()],
                };
                self.write(vec![(&target, result.clone())]);
            }
        }
        self.last_result = result;
        Ok(())
    }

    fn write(&mut self, values: Vec<(&Path, Value)>) {
        for (path, value) in values {
            let root = match path.root {
                Root::State => &mut self.state,
                Root::Output => {
                    self.wrote_output = true;
                    &mut self.output
                }
                Root::Branch => unreachable!("a task's targets are parsed without branches"),
            };
            if let Value::Object(fields) = root {
                path.write(fields, value);
            }
        }
    }

    fn note_error(&mut self, step: &Step, failure: &Failure) {
        let error = json!({
            "ref": step.reference,
            "code": failure.code,
            "class": failure.class,
            "message": failure.message,
        });
        if let Value::Object(state) = &mut self.state {
            match state.entry("_errors").or_insert_with(|| json!([])) {
                Value::Array(errors) => errors.push(error),
                other => *other = json!([error]),
            }
        }
    }

    /// The task's output: what was written, else the last step's result.
    fn deliver(&mut self, task: &Task) -> Result<Value, Failure> {
        let output = match self.wrote_output {
            true => std::mem::replace(&mut self.output, Value::Object(Map::new())),
            false => std::mem::take(&mut self.last_result),
        };
        check(task.output_schema.as_ref(), &output, "output_schema of the task")?;
        let bytes = output.to_string().len();
        if bytes > RESULT_BYTES {
            return Err(Failure::validation(
                "limit_exceeded",
                format!("the task's output is {bytes} bytes; the limit is {RESULT_BYTES}"),
            ));
        }
        Ok(output)
    }

    fn done(self, status: ReportStatus, output: Option<Value>, error: Option<Failure>) -> Done {
        Done {
            status,
            output,
            error,
            steps: self.steps,
        }
    }

    fn scope<'a>(&'a self, input: &'a Value) -> Scope<'a> {
        let mut scope = Scope::new();
        scope
            .bind("input", input)
            .bind("state", &self.state)
            .bind("output", &self.output);
        scope
    }

    fn report(&mut self, step: &Step, status: StepStatus, duration_ms: u64) {
        self.steps.push(StepReport {
            reference: step.reference.clone(),
            status,
            attempts: u32::from(status != StepStatus::Skipped),
            duration_ms,
        });
    }
}

fn check(schema: Option<&Schema>, value: &Value, place: &str) -> Result<(), Failure> {
    let problems = schema.map(|schema| schema.validate(value)).unwrap_or_default();
    match problems.first() {
        None => Ok(()),
        Some(problem) => Err(Failure::validation(
            "schema_mismatch",
            format!("{place}, at \"{}\": {}", problem.pointer, problem.message),
        )),
    }
}

fn expression_failure(step: &Step, field: &str, wrong: &Error) -> Failure {
    Failure::validation(
        "expression_failed",
        format!("{field} of step {}: {wrong}", step.reference),
    )
}

/// Text for a person: a string as it is, anything else as JSON.
pub fn plain(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// Tasks seen before, by their text: an executor gets the same few tasks again and again.
#[derive(Default)]
pub struct TaskCache(Vec<(Box<str>, Rc<Task>)>);

impl TaskCache {
    const MOST: usize = 64;

    pub fn task(&mut self, text: &str) -> Result<Rc<Task>, String> {
        if let Some(index) = self.0.iter().position(|(known, _)| **known == *text) {
            return Ok(Rc::clone(&self.0[index].1));
        }
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let problems = crate::model::problem::Problems::trusting();
        let task = Task::read(&value, "", &problems).filter(|_| !problems.has_errors());
        let task = task.ok_or_else(|| {
            let first = problems.into_sorted().first().map(ToString::to_string);
            format!("the task cannot be read: {}", first.unwrap_or_default())
        })?;
        let task = Rc::new(task);
        if self.0.len() >= Self::MOST {
            self.0.remove(0);
        }
        self.0.push((text.into(), Rc::clone(&task)));
        Ok(task)
    }
}
