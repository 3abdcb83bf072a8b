//! Runs one task: steps in order over a context that lives as long as the task. Knows no platform: what touches
//! the world is behind `World`, so that these rules are tested natively.

use std::rc::Rc;

use serde_json::Value;

use super::context::{Context, check, expression_failure, plain};
use super::partial::Partial;
use crate::model::action::{Action, Kind};
use crate::model::expression::Scope;
use crate::model::failure::{Failure, FailureClass};
use crate::model::task::{OnFailure, Outcome, Step, StepAction, Task};
use crate::model::time::{Limit, Millis};
use crate::wire::{ActionTimeouts, Artifact, Checkpoint, ReportStatus, StepReport, StepStatus};

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
    /// The text that had arrived; none if no answer had begun.
    Deadline {
        partial: Option<String>,
    },
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Stopped {
        Stopped::Failed(failure)
    }
}

/// What an executor is to do.
#[derive(Debug)]
pub struct Assignment<'a> {
    pub task: &'a Task,
    pub input: &'a Value,
    pub deadline_at: Option<Millis>,
    /// Where an earlier attempt stopped.
    pub resume_from: Option<Checkpoint>,
    pub action_timeouts: ActionTimeouts,
}

/// What came of a task.
#[derive(Debug)]
pub struct Done {
    pub status: ReportStatus,
    pub output: Option<Value>,
    pub error: Option<Failure>,
    pub steps: Vec<StepReport>,
    pub partial: Vec<Artifact>,
    pub checkpoint: Option<Box<Checkpoint>>,
}

/// One pass over the steps.
struct Attempt {
    /// The index of the step it begins with.
    first: usize,
    context: Context,
    steps: Vec<StepReport>,
    partial: Partial,
    /// The step whose result is the context's last one and is not among the artifacts yet. It is put there only when
    /// it must be: most tasks complete, and many have a single step.
    last_finished: Option<String>,
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

pub async fn run_task(world: &impl World, mut assignment: Assignment<'_>) -> Done {
    let Assignment {
        task,
        input,
        deadline_at,
        ..
    } = assignment;
    let mut number = 1;
    loop {
        // Taken: a retry within the executor begins with the first step, whatever this pass began with.
        let mut attempt = Attempt::begin(task, assignment.resume_from.take());
        let end = match check(task.input_schema.as_ref(), input, "input_schema of the task") {
            Ok(()) => attempt.run(world, &assignment).await,
            Err(failure) => End::Failed {
                failure,
                retry: false,
                timed_out: false,
            },
        };
        let (mut failure, retry, timed_out) = match end {
            End::Succeeded => match attempt.context.deliver(task) {
                Ok(output) => return attempt.completed(output),
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
        return attempt.stopped(status, failure);
    }
}

impl Attempt {
    fn begin(task: &Task, resume_from: Option<Checkpoint>) -> Attempt {
        let (first, context, steps) = resume_from
            .and_then(|checkpoint| resume(task, checkpoint))
            .unwrap_or_else(|| (0, Context::empty(), Vec::new()));
        Attempt {
            first,
            context,
            steps,
            partial: Partial::default(),
            last_finished: None,
        }
    }

    async fn run(&mut self, world: &impl World, assignment: &Assignment<'_>) -> End {
        let (input, deadline_at) = (assignment.input, assignment.deadline_at);
        for step in assignment.task.steps.iter().skip(self.first) {
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
                Ok(Outcome::Continue) => self.step(world, step, assignment).await,
                Err(failure) => Err(Stopped::Failed(failure)),
            };
            let duration = world.now().saturating_sub(began);
            let (mut failure, timed_out) = match outcome {
                Ok(()) => {
                    self.report(step, StepStatus::Completed, duration);
                    continue;
                }
                Err(Stopped::Failed(failure)) => (failure, false),
                Err(Stopped::Deadline { partial }) => {
                    self.note_finished();
                    self.partial
                        .stopped(&step.reference, &partial.unwrap_or_default());
                    let failure = Failure::new(
                        "tool_timeout",
                        FailureClass::Timeout,
                        format!("step {} timed out: context deadline exceeded", step.reference),
                    );
                    (failure, true)
                }
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
                OnFailure::Continue if !(timed_out && no_time) => self.context.note_error(step, &failure),
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
            .evaluate_bool(&self.context.scope(input))
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
        assignment: &Assignment<'_>,
    ) -> Result<(), Stopped> {
        let task_input = assignment.input;
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
                .render(&self.context.scope(task_input))
                .map_err(|wrong| expression_failure(step, "input_mapping", &wrong))?,
        };
        check(
            action.input_schema.as_ref(),
            &input,
            &format!("input_schema of step {}", step.reference),
        )?;
        let limit = step
            .timeout_override
            .or(action.timeout)
            .or(default_limit(&action.kind, assignment.action_timeouts));
        let own_deadline = limit.millis().map(|millis| world.now().saturating_add(millis));
        let deadline_at = own_deadline.into_iter().chain(assignment.deadline_at).min();
        if deadline_at.is_some_and(|deadline| deadline <= world.now()) {
            return Err(Stopped::Deadline { partial: None });
        }
        let mut before = None;
        let result = match &action.kind {
            Kind::UpdateContext(writes) => {
                let mut values = Vec::with_capacity(writes.len());
                for (path, template) in writes {
                    let value = template
                        .render(&self.context.scope(&input))
                        .map_err(|wrong| expression_failure(step, "set", &wrong))?;
                    values.push((path, value));
                }
                // Its writes precede the checks of its result. A step that fails leaves nothing behind, or a later
                // attempt that goes on with it would write twice.
                if action.output_schema.is_some() || step.output_mapping.is_some() {
                    before = Some(self.context.clone());
                }
                self.context.write(values);
                self.context.output.clone()
            }
            Kind::Assert(assert) => {
                let scope = self.context.scope(&input);
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
                let scope = self.context.scope(&input);
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
        let place = format!("output_schema of step {}", step.reference);
        let kept = check(action.output_schema.as_ref(), &result, &place)
            .and_then(|()| self.context.keep(step, action, task_input, &result));
        if let Err(failure) = kept {
            if let Some(before) = before {
                self.context = before;
            }
            return Err(Stopped::Failed(failure));
        }
        self.note_finished();
        self.context.last_result = result;
        self.last_finished = Some(step.reference.clone());
        Ok(())
    }

    fn note_finished(&mut self) {
        if let Some(step) = self.last_finished.take() {
            self.partial.finished(&step, &self.context.last_result);
        }
    }

    fn completed(self, output: Value) -> Done {
        Done {
            status: ReportStatus::Completed,
            output: Some(output),
            error: None,
            steps: self.steps,
            partial: Vec::new(),
            checkpoint: None,
        }
    }

    /// The task ends without its output. A failure that belongs to no step leaves no step to go on with.
    fn stopped(mut self, status: ReportStatus, failure: Failure) -> Done {
        self.note_finished();
        let checkpoint = if let Some(next) = &failure.step_ref
            && let Some((_, before)) = self.steps.split_last()
            && before.iter().any(|step| step.status == StepStatus::Completed)
        {
            self.context.into_checkpoint(next, before.to_vec())
        } else {
            None
        };
        Done {
            status,
            output: None,
            error: Some(failure),
            steps: self.steps,
            partial: self.partial.into_artifacts(),
            checkpoint,
        }
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

/// The place and the context to go on with. None if the checkpoint does not fit the task: then it starts over.
fn resume(task: &Task, checkpoint: Checkpoint) -> Option<(usize, Context, Vec<StepReport>)> {
    let mut steps = task.steps.iter();
    let first = steps.position(|step| step.reference == checkpoint.next)?;
    let context = Context::resumed(
        checkpoint.state,
        checkpoint.output,
        checkpoint.last_result,
        checkpoint.wrote_output,
    )?;
    Some((first, context, checkpoint.steps))
}

/// What limits an action if neither its step nor its own document says so.
fn default_limit(kind: &Kind, timeouts: ActionTimeouts) -> Limit {
    let millis = match kind {
        Kind::HttpRequest(_) | Kind::ServiceCall(_) => timeouts.tool_ms,
        Kind::UpdateContext(_) | Kind::Assert(_) | Kind::WorkflowCall(_) => None,
    };
    millis.map_or(Limit::Unset, Limit::After)
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
