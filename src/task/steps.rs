//! Runs one task: steps in order over a context that lives as long as the task. Knows no platform: what touches
//! the world is behind `Runtime`, so that these rules are tested natively.

use serde_json::Value;

use crate::base::compute::Meter;
use crate::base::failure::{Failure, FailureClass};
use crate::base::time::{Limit, Millis};
use crate::breaker::machine::Outcome as Word;
use crate::cel::Scope;
use crate::definition::action::{Action, ActionKind};
use crate::definition::task::{ConditionOutcome, Step, StepAction, StepFailurePolicy, Task};
use crate::protocol::task::{
    ActionTimeouts, Artifact, Checkpoint, Emitted, ReportStatus, RetryReport, StepReport, StepStatus,
};
use crate::task::breaker::{Admission, Permit};
use crate::task::call::{Bounds, Calls, until_final};
use crate::task::context::{Context, check, expression_failure, pay_copies, plain};
use crate::task::emit::emit;
use crate::task::partial::Partial;
use crate::task::redact::Redactor;
use crate::task::retry::NO_TIME;
use crate::task::secrets::{Missing, Secrets};

/// What a task needs of the world. One thread, no `Send`: the platform has no other.
#[allow(async_fn_in_trait)]
pub trait Runtime {
    fn now(&self) -> Millis;
    async fn sleep(&self, millis: u64);
    /// Performs an action that is not pure. Must give up at `deadline_at` with `Stopped::Deadline`.
    async fn perform(&self, call: ActionCall<'_>) -> Result<Value, Stopped>;
    /// In 0..1, evenly.
    fn random(&self) -> f64;
    /// The value of a secret, if this executor may read it.
    fn secret(&self, name: &str) -> Result<String, Missing>;
    /// A call failed and is made again: for the log.
    fn note_retry(&self, step_ref: &str, retry: &RetryReport);
    /// On whose account the task computes, where that is counted: inside a decision of a run.
    fn meter(&self) -> Option<&Meter> {
        None
    }
    /// Whether the breaker of this key lets a call through that ends at `deadline_at`. A world without breakers does.
    async fn admit(&self, _key: &str, _deadline_at: Option<Millis>) -> Admission {
        Admission::Call(Permit::Blind)
    }
    /// How a call went that was let through.
    async fn tell_breaker(&self, _key: &str, _pass: Permit, _word: Word) {}
}

#[derive(Clone, Copy)]
pub struct ActionCall<'a> {
    pub action: &'a Action,
    pub scope: &'a Scope<'a>,
    pub input: &'a Value,
    pub deadline_at: Option<Millis>,
    pub step_ref: &'a str,
    /// Business retries of the task before this pass.
    pub rounds_before: u32,
    /// Where the result of an async action is to be brought.
    pub callback_url: Option<&'a str>,
    /// For text that is cut before it leaves: half a secret is not found any more.
    pub redactor: &'a Redactor,
}

impl ActionCall<'_> {
    /// The idempotency key of this call, where `work` is that of the order. A task may make several calls, and each is a piece
    /// of work of its own. The same when a call is made again and when an attempt is, and another one for every business
    /// retry: a peer that honours it would give the answer again that was not good enough.
    pub fn idempotency_key(&self, work: &str) -> String {
        match self.rounds_before {
            0 => format!("{work}:{}", self.step_ref),
            rounds => format!("{work}:{}:{}", self.step_ref, u64::from(rounds) + 1),
        }
    }
}

/// Why an action has no result.
#[derive(Debug)]
pub enum Stopped {
    Failed(Failure),
    /// It failed, and this text of its answer had arrived.
    FailedMidway {
        failure: Failure,
        partial: String,
    },
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
    /// Nothing is tried again after this moment; what is under way goes on.
    pub run_ends_at: Option<Millis>,
    /// Where an earlier attempt stopped.
    pub resume_from: Option<Checkpoint>,
    pub action_timeouts: ActionTimeouts,
    /// `callback` in the implementation of an async action.
    pub callback: Value,
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
    /// Of a task that completed.
    pub events: Vec<Emitted>,
    /// `run_ends_at`, where that is why something was not tried again.
    pub gave_up_before: Option<Millis>,
}

/// One pass over the steps.
struct Attempt<'a> {
    secrets: &'a Secrets,
    /// Of the step under way.
    calls: Calls,
    /// The index of the step it begins with.
    first: usize,
    /// Business retries before this pass.
    rounds_before: u32,
    /// Why the step that failed was not called again, where that was the end of the run.
    gave_up_before: Option<Millis>,
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

pub async fn run_task(world: &impl Runtime, mut assignment: Assignment<'_>) -> Done {
    // The token's deadline may be a node's, which is the longer one where a node gives a task more time than it takes.
    let own_limit = assignment.task.timeout.millis();
    let own_deadline = own_limit.map(|millis| world.now().saturating_add(millis));
    assignment.deadline_at = own_deadline.into_iter().chain(assignment.deadline_at).min();
    let Assignment {
        task,
        input,
        deadline_at,
        ..
    } = assignment;
    let secrets = Secrets::of(task, world);
    let mut number = 1;
    let resumed = assignment.resume_from.as_ref();
    let mut rounds_before = resumed.map_or(0, |checkpoint| checkpoint.rounds_before);
    loop {
        // Taken: a retry within the executor begins with the first step, whatever this pass began with.
        let mut attempt = Attempt::begin(task, assignment.resume_from.take(), &secrets, rounds_before);
        let end = match check(
            task.input_schema.as_ref(),
            input,
            "input_schema of the task",
            world.meter(),
        ) {
            Ok(()) => attempt.run(world, &assignment).await,
            Err(failure) => End::Failed {
                failure,
                retry: false,
                timed_out: false,
            },
        };
        let (mut failure, retry, timed_out) = match end {
            // The result, and what is to be checked of it, comes by the callback.
            End::Succeeded if task.only_action().is_some_and(Action::is_async) => return attempt.suspended(),
            End::Succeeded => match attempt.context.deliver(task, world.meter()) {
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
            let is_before = |moment: Option<Millis>| moment.is_none_or(|moment| starts_at < moment);
            if is_before(deadline_at) && is_before(assignment.run_ends_at) {
                if delay > 0 {
                    world.sleep(delay).await;
                }
                rounds_before = rounds_before.saturating_add(1);
                continue;
            }
            attempt.gave_up_before = assignment.run_ends_at.filter(|_| is_before(deadline_at));
            failure.message += "; not tried again: no time is left before the deadline";
        }
        let status = match timed_out {
            true => ReportStatus::TimedOut,
            false => ReportStatus::Failed,
        };
        return attempt.stopped(status, failure);
    }
}

impl<'a> Attempt<'a> {
    fn begin(
        task: &Task,
        resume_from: Option<Checkpoint>,
        secrets: &'a Secrets,
        rounds_before: u32,
    ) -> Attempt<'a> {
        let (first, context, steps) = resume_from
            .and_then(|checkpoint| resume(task, checkpoint))
            .unwrap_or_else(|| (0, Context::empty(), Vec::new()));
        Attempt {
            secrets,
            calls: Calls::default(),
            first,
            rounds_before,
            gave_up_before: None,
            context,
            steps,
            partial: Partial::default(),
            last_finished: None,
        }
    }

    async fn run(&mut self, world: &impl Runtime, assignment: &Assignment<'_>) -> End {
        let (input, deadline_at) = (assignment.input, assignment.deadline_at);
        for step in assignment.task.steps.iter().skip(self.first) {
            let began = world.now();
            let outcome = match self.outcome(step, input, world.meter()) {
                Ok(ConditionOutcome::Skip) => {
                    self.report(step, StepStatus::Skipped, 0);
                    continue;
                }
                Ok(ConditionOutcome::Succeed) => return End::Succeeded,
                Ok(ConditionOutcome::Fail) => Err(Stopped::Failed(Failure::new(
                    "condition_failed",
                    FailureClass::Assertion,
                    format!("the condition of step {} says fail", step.reference),
                ))),
                Ok(ConditionOutcome::Continue) => self.step(world, step, assignment).await,
                Err(failure) => Err(Stopped::Failed(failure)),
            };
            let duration = world.now().saturating_sub(began);
            let (mut failure, timed_out) = match outcome {
                Ok(()) => {
                    self.report(step, StepStatus::Completed, duration);
                    continue;
                }
                Err(Stopped::Failed(failure)) => (failure, false),
                Err(Stopped::FailedMidway { failure, partial }) => {
                    self.note_stopped(step, partial);
                    (failure, false)
                }
                Err(Stopped::Deadline { partial }) => {
                    self.note_stopped(step, partial.unwrap_or_default());
                    let failure = Failure::new(
                        "tool_timeout",
                        FailureClass::Timeout,
                        format!("step {} timed out: context deadline exceeded", step.reference),
                    );
                    (failure, true)
                }
            };
            failure.step_ref = Some(step.reference.clone());
            self.secrets.redact_failure(&mut failure);
            let no_time = deadline_at.is_some_and(|deadline| world.now() >= deadline);
            // Where the whole task's time is up the error says it already.
            if self.calls.out_of_time && !(timed_out && no_time) {
                failure.message += NO_TIME;
            }
            self.gave_up_before = assignment.run_ends_at.filter(|_| self.calls.gave_up_for_run);
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
            match step.on_failure {
                StepFailurePolicy::Continue if !(timed_out && no_time) => {
                    self.gave_up_before = None;
                    self.context.note_error(step, &failure);
                }
                StepFailurePolicy::Continue | StepFailurePolicy::Abort => {
                    return End::Failed {
                        failure,
                        retry: false,
                        timed_out,
                    };
                }
                StepFailurePolicy::Retry => {
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

    fn outcome(
        &self,
        step: &Step,
        input: &Value,
        meter: Option<&Meter>,
    ) -> Result<ConditionOutcome, Failure> {
        let Some(condition) = &step.condition else {
            return Ok(ConditionOutcome::Continue);
        };
        let holds = condition
            .when
            .evaluate_bool(&self.context.scope(input, meter))
            .map_err(|wrong| expression_failure(step, "condition", &wrong))?;
        Ok(if holds {
            condition.then
        } else {
            condition.otherwise
        })
    }

    async fn step(
        &mut self,
        world: &impl Runtime,
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
        let meter = world.meter();
        let input = match &step.input_mapping {
            None => {
                pay_copies(
                    meter,
                    format_args!("the input of step {}", step.reference),
                    [task_input],
                )?;
                task_input.clone()
            }
            Some(mapping) => mapping
                .render(&self.context.scope(task_input, meter))
                .map_err(|wrong| expression_failure(step, "input_mapping", &wrong))?,
        };
        check(
            action.input_schema.as_ref(),
            &input,
            &format!("input_schema of step {}", step.reference),
            meter,
        )?;
        let limit = step
            .timeout_override
            .or(action.timeout)
            .or(default_limit(&action.kind, assignment.action_timeouts));
        let total = action.retry.total_timeout.millis();
        let total_deadline = total.map(|millis| world.now().saturating_add(millis));
        let bounds = Bounds {
            call_limit_ms: limit.millis(),
            deadline_at: total_deadline.into_iter().chain(assignment.deadline_at).min(),
            run_ends_at: assignment.run_ends_at,
        };
        let no_time = bounds.deadline_at.is_some_and(|deadline| deadline <= world.now());
        if no_time || bounds.call_limit_ms == Some(0) {
            return Err(Stopped::Deadline { partial: None });
        }
        let secret = self.secrets.scope_of(action)?;
        let mut before = None;
        let mut emitted = None;
        let result = match &action.kind {
            ActionKind::UpdateContext(writes) => {
                let mut values = Vec::with_capacity(writes.len());
                for (path, template) in writes {
                    let value = template
                        .render(&self.context.scope_with(&input, secret.as_ref(), meter))
                        .map_err(|wrong| expression_failure(step, "set", &wrong))?;
                    values.push((path, value));
                }
                // Its writes precede the checks of its result. A step that fails leaves nothing behind, or a later
                // attempt that goes on with it would write twice.
                let what = format!("what step {} writes", step.reference);
                if action.output_schema.is_some() || step.output_mapping.is_some() {
                    pay_copies(meter, &what, self.context.values())?;
                    before = Some(self.context.clone());
                }
                pay_copies(
                    meter,
                    &what,
                    values
                        .iter()
                        .map(|(_, value)| value)
                        .chain([&self.context.output]),
                )?;
                self.context.write(values);
                self.context.output.clone()
            }
            ActionKind::Assert(assert) => {
                let scope = self.context.scope_with(&input, secret.as_ref(), meter);
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
            ActionKind::EmitEvent(event) => {
                let scope = self.context.scope_with(&input, secret.as_ref(), meter);
                let event = emit(event, step, &scope, self.secrets.redactor(), &self.context.events)?;
                let what = format!("what step {} emits", step.reference);
                let events = self.context.events.iter().chain([&event]);
                pay_copies(meter, &what, events.map(|event| &event.payload))?;
                let payload = event.payload.clone();
                emitted = Some(event);
                payload
            }
            ActionKind::WorkflowCall(_) => {
                let message = "a workflow_call never reaches an executor";
                return Err(Stopped::Failed(Failure::new(
                    "invalid_order",
                    FailureClass::Permanent,
                    message,
                )));
            }
            ActionKind::HttpRequest(_)
            | ActionKind::McpTool(_)
            | ActionKind::ServiceCall(_)
            | ActionKind::LlmCall(_)
            | ActionKind::Shell(_) => {
                let mut scope = self.context.scope_with(&input, secret.as_ref(), meter);
                scope.bind("callback", &assignment.callback);
                let call = ActionCall {
                    action,
                    scope: &scope,
                    input: &input,
                    deadline_at: None,
                    step_ref: &step.reference,
                    rounds_before: self.rounds_before,
                    callback_url: assignment.callback["url"].as_str().filter(|_| action.is_async()),
                    redactor: self.secrets.redactor(),
                };
                let result = until_final(world, call, bounds, &mut self.calls).await?;
                // Here and not only in the report: what no step sees no step can turn into something else.
                self.secrets.redactor().value(result)
            }
        };
        let place = format!("output_schema of step {}", step.reference);
        let schema = action.output_schema.as_ref().filter(|_| !action.is_async());
        let kept = check(schema, &result, &place, meter)
            .and_then(|()| self.context.keep(step, action, task_input, &result, meter));
        if let Err(failure) = kept {
            if let Some(before) = before {
                self.context = before;
            }
            return Err(Stopped::Failed(failure));
        }
        self.note_finished();
        // Only now: a step that fails has emitted nothing, and may be done again.
        self.context.events.extend(emitted);
        self.context.last_result = result;
        self.last_finished = Some(step.reference.clone());
        Ok(())
    }

    fn note_finished(&mut self) {
        let Some(step) = self.last_finished.take() else {
            return;
        };
        let redactor = self.secrets.redactor();
        let result = &self.context.last_result;
        match redactor.is_idle() {
            true => self.partial.finished(&step, result),
            false => self.partial.finished(&step, &redactor.value(result.clone())),
        }
    }

    fn suspended(self) -> Done {
        let answer = self.context.last_result.clone();
        Done {
            status: ReportStatus::Suspended,
            ..self.completed(answer)
        }
    }

    /// What had arrived of a step that did not finish.
    fn note_stopped(&mut self, step: &Step, text: String) {
        self.note_finished();
        let text = self.secrets.redactor().cut_text(text);
        self.partial.stopped(&step.reference, &text);
    }

    fn completed(self, output: Value) -> Done {
        Done {
            status: ReportStatus::Completed,
            output: Some(self.secrets.redactor().value(output)),
            error: None,
            steps: self.steps,
            partial: Vec::new(),
            checkpoint: None,
            events: self.context.events,
            gave_up_before: None,
        }
    }

    /// The task ends without its output. A failure that belongs to no step leaves no step to go on with.
    fn stopped(mut self, status: ReportStatus, mut failure: Failure) -> Done {
        self.note_finished();
        self.secrets.redact_failure(&mut failure);
        let mut checkpoint = if let Some(next) = &failure.step_ref
            && let Some((_, before)) = self.steps.split_last()
            && before.iter().any(|step| step.status == StepStatus::Completed)
        {
            self.context
                .into_checkpoint(next, before.to_vec(), self.rounds_before)
        } else {
            None
        };
        if let Some(checkpoint) = &mut checkpoint {
            self.secrets.redact_checkpoint(checkpoint);
        }
        Done {
            status,
            output: None,
            error: Some(failure),
            steps: self.steps,
            partial: self.partial.into_artifacts(),
            checkpoint,
            events: Vec::new(),
            gave_up_before: self.gave_up_before,
        }
    }

    fn report(&mut self, step: &Step, status: StepStatus, duration_ms: u64) {
        let retries = std::mem::take(&mut self.calls).retries;
        self.steps.push(StepReport {
            reference: step.reference.clone(),
            status,
            attempts: u32::from(status != StepStatus::Skipped) + retries.len() as u32,
            duration_ms,
            retries,
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
        checkpoint.events,
    )?;
    Some((first, context, checkpoint.steps))
}

/// What limits an action if neither its step nor its own document says so.
fn default_limit(kind: &ActionKind, timeouts: ActionTimeouts) -> Limit {
    let millis = match kind {
        ActionKind::HttpRequest(_)
        | ActionKind::McpTool(_)
        | ActionKind::ServiceCall(_)
        | ActionKind::Shell(_) => timeouts.tool_ms,
        ActionKind::LlmCall(_) => timeouts.llm_call_ms,
        ActionKind::UpdateContext(_)
        | ActionKind::Assert(_)
        | ActionKind::EmitEvent(_)
        | ActionKind::WorkflowCall(_) => None,
    };
    millis.map_or(Limit::Unset, Limit::After)
}
