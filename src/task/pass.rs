//! One pass over the steps of a task, in order, over a context that is kept until the pass ends.

use serde_json::Value;

use crate::base::compute::Meter;
use crate::base::failure::{Failure, FailureClass};
use crate::base::time::Millis;
use crate::definition::step::{ConditionOutcome, Step, StepFailurePolicy};
use crate::definition::task::Task;
use crate::protocol::task::{Checkpoint, ReportStatus, StepReport, StepStatus};
use crate::task::call::CallHistory;
use crate::task::context::{TaskContext, expression_failure};
use crate::task::partial::Partial;
use crate::task::run_task::Assignment;
use crate::task::runtime::{Runtime, Stopped};
use crate::task::secrets::SecretStore;
use crate::task::task_result::TaskResult;

pub(super) struct Pass<'a> {
    pub(super) secrets: &'a SecretStore,
    /// Of the step under way.
    pub(super) calls: CallHistory,
    /// The index of the step it begins with, and of the one under way.
    first: usize,
    pub(super) current: usize,
    /// Business retries before this pass.
    pub(super) rounds_before: u32,
    /// The end of the run, if it is why the failed step was not called again.
    pub(super) gave_up_before: Option<Millis>,
    pub(super) context: TaskContext,
    steps: Vec<StepReport>,
    pub(super) partial: Partial,
    /// The step whose result is the context's last one. It becomes an artifact only when it is needed: most tasks complete, and
    /// many have a single step.
    pub(super) last_finished: Option<String>,
}

/// Why a pass did not succeed.
pub(super) struct FailedPass {
    pub(super) failure: Failure,
    /// Whether the step asks for a business retry.
    pub(super) retry: bool,
    pub(super) timed_out: bool,
}

impl FailedPass {
    pub(super) fn without_retry(failure: Failure) -> FailedPass {
        FailedPass {
            failure,
            retry: false,
            timed_out: false,
        }
    }
}

impl<'a> Pass<'a> {
    pub(super) fn begin(
        task: &Task,
        resume_from: Option<Checkpoint>,
        secrets: &'a SecretStore,
        rounds_before: u32,
    ) -> Pass<'a> {
        let (first, context, steps) = resume_from
            .and_then(|checkpoint| resume(task, checkpoint))
            .unwrap_or_else(|| (0, TaskContext::empty(), Vec::new()));
        Pass {
            secrets,
            calls: CallHistory::default(),
            first,
            current: first,
            rounds_before,
            gave_up_before: None,
            context,
            steps,
            partial: Partial::default(),
            last_finished: None,
        }
    }

    pub(super) async fn run(
        &mut self,
        runtime: &impl Runtime,
        assignment: &Assignment<'_>,
    ) -> Result<(), FailedPass> {
        for (index, step) in assignment.task.steps.iter().enumerate().skip(self.first) {
            self.current = index;
            let began = runtime.now();
            self.context.now = began;
            self.calls = CallHistory::beginning_at(began);
            let ended = match self.condition_outcome(step, assignment.input, runtime.meter()) {
                Ok(ConditionOutcome::Skip) => {
                    self.report(step, assignment, StepStatus::Skipped, 0);
                    continue;
                }
                Ok(ConditionOutcome::Succeed) => return Ok(()),
                Ok(ConditionOutcome::Fail) => Err(Stopped::Failed(Failure::new(
                    "condition_failed",
                    FailureClass::Assertion,
                    format!("the condition of step {} says fail", step.reference),
                ))),
                Ok(ConditionOutcome::Continue) => self.run_step(runtime, step, assignment).await,
                Err(failure) => Err(Stopped::Failed(failure)),
            };
            let duration_ms = runtime.now().saturating_sub(began);
            match ended {
                Ok(()) => self.report(step, assignment, StepStatus::Completed, duration_ms),
                Err(stopped) => self.step_failed(runtime, step, assignment, stopped, duration_ms)?,
            }
        }
        Ok(())
    }

    /// Records the failure of a step. It is `Ok` if the pass goes on with the next step.
    fn step_failed(
        &mut self,
        runtime: &impl Runtime,
        step: &Step,
        assignment: &Assignment<'_>,
        stopped: Stopped,
        duration_ms: u64,
    ) -> Result<(), FailedPass> {
        let (mut failure, timed_out) = match stopped {
            Stopped::Failed(failure) => (failure, false),
            Stopped::FailedMidway { failure, partial } => {
                self.note_stopped(step, partial);
                (failure, false)
            }
            Stopped::Deadline { partial } => {
                self.note_stopped(step, partial.unwrap_or_default());
                let message = format!("step {} timed out: context deadline exceeded", step.reference);
                let failure = Failure::new("tool_timeout", FailureClass::Timeout, message);
                (failure, true)
            }
        };
        failure.step_ref = Some(step.reference.clone());
        self.secrets.redact_failure(&mut failure);
        let no_time = assignment
            .deadline_at
            .is_some_and(|deadline| runtime.now() >= deadline);
        let is_task_out_of_time = timed_out && no_time;
        // The message of a task that is out of time already contains it.
        if let Some(not_retried) = self.calls.not_retried.filter(|_| !is_task_out_of_time) {
            failure.message += &not_retried.text();
        }
        self.gave_up_before = assignment.run_ends_at.filter(|_| self.calls.gave_up_for_run());
        let status = match timed_out {
            true => StepStatus::TimedOut,
            false => StepStatus::Failed,
        };
        self.report(step, assignment, status, duration_ms);
        let retry = match step.on_failure {
            StepFailurePolicy::Continue if !is_task_out_of_time => {
                self.gave_up_before = None;
                self.context.note_error(step, &failure);
                return Ok(());
            }
            StepFailurePolicy::Continue | StepFailurePolicy::Abort => false,
            StepFailurePolicy::Retry => true,
        };
        Err(FailedPass {
            failure,
            retry,
            timed_out,
        })
    }

    fn condition_outcome(
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
        Ok(match holds {
            true => condition.then,
            false => condition.otherwise,
        })
    }

    /// Makes an artifact of the last finished step.
    pub(super) fn note_finished(&mut self) {
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

    /// Makes an artifact of the text that had arrived of a step that did not finish.
    fn note_stopped(&mut self, step: &Step, text: String) {
        self.note_finished();
        let text = self.secrets.redactor().cut_text(text);
        self.partial.stopped(&step.reference, &text);
    }

    fn report(&mut self, step: &Step, assignment: &Assignment<'_>, status: StepStatus, duration_ms: u64) {
        let calls = std::mem::take(&mut self.calls);
        let trace = assignment.trace.filter(|_| status != StepStatus::Skipped);
        let span_id = trace.and_then(|trace| trace.span_of(&step.reference, self.rounds_before));
        self.steps.push(StepReport {
            reference: step.reference.clone(),
            status,
            attempts: u32::from(status != StepStatus::Skipped) + calls.retries.len() as u32,
            duration_ms,
            retries: calls.retries,
            started_at: span_id.map(|_| calls.began_at),
            span_id,
            gen_ai: calls.gen_ai,
        });
    }

    pub(super) fn deliver(&mut self, task: &Task, meter: Option<&Meter>) -> Result<Value, FailedPass> {
        let delivered = self.context.deliver(task, meter);
        delivered.map_err(FailedPass::without_retry)
    }

    pub(super) fn suspended(self) -> TaskResult {
        let response = self.context.last_result.clone();
        TaskResult {
            status: ReportStatus::Suspended,
            ..self.completed(response)
        }
    }

    pub(super) fn completed(self, output: Value) -> TaskResult {
        TaskResult {
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

    /// The task ends without its output. After a failure that belongs to no step there is no step to resume from.
    pub(super) fn stopped(mut self, failed: FailedPass) -> TaskResult {
        self.note_finished();
        let mut failure = failed.failure;
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
        TaskResult {
            status: match failed.timed_out {
                true => ReportStatus::TimedOut,
                false => ReportStatus::Failed,
            },
            output: None,
            error: Some(failure),
            steps: self.steps,
            partial: self.partial.into_artifacts(),
            checkpoint,
            events: Vec::new(),
            gave_up_before: self.gave_up_before,
        }
    }
}

/// The step, the context and the reports to go on with. None if the checkpoint does not fit the task, which then starts over.
fn resume(task: &Task, checkpoint: Checkpoint) -> Option<(usize, TaskContext, Vec<StepReport>)> {
    let mut steps = task.steps.iter();
    let first = steps.position(|step| step.reference == checkpoint.next)?;
    let context = TaskContext::resumed(
        checkpoint.state,
        checkpoint.output,
        checkpoint.last_result,
        checkpoint.wrote_output,
        checkpoint.events,
    )?;
    Some((first, context, checkpoint.steps))
}
