//! One action that is not pure, called until it has a result, fails for good, or no time is left for another call.

use serde_json::Value;

use crate::base::failure::FailureClass;
use crate::base::time::Millis;
use crate::protocol::task::RetryReport;
use crate::task::breaker::{Admission, key_of, open, word_of};
use crate::task::retry::{self, Situation, Verdict};
use crate::task::steps::{ActionCall, Runtime, Stopped};

/// What limits the calls of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// One call.
    pub call_limit_ms: Option<u64>,
    /// All of them and the waits between.
    pub deadline_at: Option<Millis>,
    /// No call is made again after this moment, but one that is under way goes on.
    pub run_ends_at: Option<Millis>,
}

/// How the calls of a step went, whatever came of them.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub retries: Vec<RetryReport>,
    /// Another call was due, and no time for it.
    pub out_of_time: bool,
    /// It was the end of the run that left none.
    pub gave_up_for_run: bool,
}

/// `call.deadline_at` is set here, for each call anew.
pub(super) async fn until_final(
    world: &impl Runtime,
    call: ActionCall<'_>,
    bounds: Bounds,
    calls: &mut Calls,
) -> Result<Value, Stopped> {
    loop {
        let own_deadline = bounds
            .call_limit_ms
            .map(|millis| world.now().saturating_add(millis));
        let deadline_at = own_deadline.into_iter().chain(bounds.deadline_at).min();
        if deadline_at.is_some_and(|deadline| deadline <= world.now()) {
            return Err(Stopped::Deadline { partial: None });
        }
        let stopped = match attempt(world, ActionCall { deadline_at, ..call }).await {
            Ok(result) => return Ok(result),
            Err(stopped) => stopped,
        };
        let (class, code, retry_after_ms) = match &stopped {
            Stopped::Failed(failure) | Stopped::FailedMidway { failure, .. } => {
                (failure.class, failure.code.as_str(), failure.retry_after_ms)
            }
            Stopped::Deadline { .. } => (FailureClass::Timeout, "tool_timeout", None),
        };
        let situation = Situation {
            class,
            retry_after_ms,
            retries: calls.retries.len() as u32,
            now: world.now(),
            deadline_at: bounds.deadline_at.into_iter().chain(bounds.run_ends_at).min(),
            call_limit_ms: bounds.call_limit_ms,
            random: world.random(),
        };
        match retry::after(call.action, &situation) {
            Verdict::Final => return Err(stopped),
            Verdict::NoTime => {
                calls.out_of_time = true;
                let deadline_at = bounds.deadline_at;
                let without_run = Situation {
                    deadline_at,
                    ..situation
                };
                calls.gave_up_for_run = retry::after(call.action, &without_run) != Verdict::NoTime;
                return Err(stopped);
            }
            Verdict::Retry { delay_ms } => {
                let report = RetryReport {
                    class,
                    code: code.to_string(),
                    delay_ms,
                };
                world.note_retry(call.step_ref, &report);
                calls.retries.push(report);
                if delay_ms > 0 {
                    world.sleep(delay_ms).await;
                }
            }
        }
    }
}

/// One call, if its breaker lets it through; how it went is said before anything else follows.
async fn attempt(world: &impl Runtime, call: ActionCall<'_>) -> Result<Value, Stopped> {
    let Some(key) = key_of(call.action, call.scope)? else {
        return world.perform(call).await;
    };
    let pass = match world.admit(&key, call.deadline_at).await {
        Admission::Call(pass) => pass,
        Admission::Refused {
            retry_after_ms,
            escalated,
        } => return Err(Stopped::Failed(open(&key, retry_after_ms, escalated))),
    };
    let result = world.perform(call).await;
    world.tell_breaker(&key, pass, word_of(&result)).await;
    result
}
