//! Runs one task: passes over its steps until one pass succeeds, or no business retry is left. Pure: the platform is behind
//! `Runtime`, so that these rules are tested natively.

use serde_json::Value;

use crate::base::time::Millis;
use crate::definition::action::Action;
use crate::definition::task::Task;
use crate::protocol::task::{ActionTimeouts, Checkpoint, NOT_TRIED_AGAIN};
use crate::task::context::check;
use crate::task::pass::{FailedPass, Pass};
use crate::task::runtime::Runtime;
use crate::task::task_result::TaskResult;
use crate::task::trace::TaskTrace;

/// A task and what limits it.
#[derive(Debug)]
pub struct Assignment<'a> {
    pub task: &'a Task,
    pub input: &'a Value,
    pub deadline_at: Option<Millis>,
    /// No retry begins after this moment; a call that is under way goes on.
    pub run_ends_at: Option<Millis>,
    /// Where an earlier attempt of the token stopped.
    pub resume_from: Option<Checkpoint>,
    pub action_timeouts: ActionTimeouts,
    pub trace: Option<TaskTrace>,
    /// `callback` in the implementation of an async action.
    pub callback: Value,
}

pub async fn run_task(runtime: &impl Runtime, mut assignment: Assignment<'_>) -> TaskResult {
    // The token's deadline may be that of its node, which may allow more time than the task does.
    let own_limit = assignment.task.timeout.millis();
    let own_deadline = own_limit.map(|millis| runtime.now().saturating_add(millis));
    assignment.deadline_at = own_deadline.into_iter().chain(assignment.deadline_at).min();
    let Assignment {
        task,
        input,
        deadline_at,
        ..
    } = assignment;
    let secrets = runtime.secrets();
    let mut number = 1;
    let resumed = assignment.resume_from.as_ref();
    let mut rounds_before = resumed.map_or(0, |checkpoint| checkpoint.rounds_before);
    loop {
        // Taken: a business retry begins with the first step, wherever this pass began.
        let mut pass = Pass::begin(task, assignment.resume_from.take(), secrets, rounds_before);
        let place = "input_schema of the task";
        let ended = match check(task.input_schema.as_ref(), input, place, runtime.meter()) {
            Ok(()) => pass.run(runtime, &assignment).await,
            Err(failure) => Err(FailedPass::without_retry(failure)),
        };
        // The result of an async action, and the check of it, comes with the callback.
        let is_async = task.only_action().is_some_and(Action::is_async);
        let delivered = match ended {
            Ok(()) if is_async => return pass.suspended(),
            Ok(()) => pass.deliver(task, runtime.meter()),
            Err(failed) => Err(failed),
        };
        let mut failed = match delivered {
            Ok(output) => return pass.completed(output),
            Err(failed) => failed,
        };
        let policy = task
            .retry
            .filter(|policy| failed.retry && number < policy.attempts_max);
        if let Some(policy) = policy {
            number += 1;
            let delay = policy.delay_ms(number);
            let starts_at = runtime.now().saturating_add(delay);
            let is_before = |moment: Option<Millis>| moment.is_none_or(|moment| starts_at < moment);
            if is_before(deadline_at) && is_before(assignment.run_ends_at) {
                if delay > 0 {
                    runtime.sleep(delay).await;
                }
                rounds_before = rounds_before.saturating_add(1);
                continue;
            }
            pass.gave_up_before = assignment.run_ends_at.filter(|_| is_before(deadline_at));
            failed.failure.message += NOT_TRIED_AGAIN;
            failed.failure.message += "no time is left before the deadline";
        }
        return pass.stopped(failed);
    }
}
