//! Calls an action that is not pure until it has a result, fails for good, or no time is left for another call.

use serde_json::Value;

use crate::base::failure::FailureClass;
use crate::base::text::shorten_to;
use crate::base::time::Millis;
use crate::protocol::task::{GenAi, RetryReport};
use crate::task::breaker::{Admission, key_of, open, outcome_of};
use crate::task::redact::Redactor;
use crate::task::retry::{self, End, Ends, NotRetried, RetryDecision, Situation};
use crate::task::runtime::{ActionCall, Runtime, Stopped};

/// The most of an earlier error in the message of a later one.
const LAST_ERROR_CHARACTERS: usize = 500;

/// What limits the calls of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The limit of one call.
    pub call_limit_ms: Option<u64>,
    /// The ends of all calls and the waits between them.
    pub ends: Ends,
}

/// The retries of a step, whatever its last call came to.
#[derive(Debug, Default)]
pub(super) struct CallHistory {
    pub retries: Vec<RetryReport>,
    /// When the step began.
    pub began_at: Millis,
    pub gen_ai: Option<Box<GenAi>>,
    /// A retry was due, but there was no time for it.
    pub not_retried: Option<NotRetried>,
    /// How the last call that was made failed.
    last_error: Option<String>,
}

impl CallHistory {
    pub fn beginning_at(began_at: Millis) -> CallHistory {
        CallHistory {
            began_at,
            ..CallHistory::default()
        }
    }

    /// There was no time because of the end of the run, and for no other reason.
    pub fn gave_up_for_run(&self) -> bool {
        self.not_retried.is_some_and(|it| it.end == End::Run)
    }
}

impl CallHistory {
    /// An open breaker says why no call was made. The error that a person has to look at is the one before it.
    fn note_error(&mut self, stopped: &mut Stopped, redactor: &Redactor) {
        match stopped {
            Stopped::Failed(failure) if failure.class == FailureClass::BreakerOpen => {
                if let Some(last) = &self.last_error {
                    failure.message += &format!("; the last call failed: {last}");
                }
            }
            Stopped::Failed(failure) | Stopped::FailedMidway { failure, .. } => {
                // Before it is cut: half a secret would not be found.
                let message = redactor.text(failure.message.clone());
                self.last_error = Some(shorten_to(&message, LAST_ERROR_CHARACTERS));
            }
            Stopped::Deadline { .. } => self.last_error = Some("it timed out".into()),
        }
    }
}

/// Sets `call.deadline_at` for each call.
pub(super) async fn call_until_final(
    runtime: &impl Runtime,
    call: ActionCall<'_>,
    bounds: Bounds,
    history: &mut CallHistory,
) -> Result<Value, Stopped> {
    loop {
        let own_deadline = bounds
            .call_limit_ms
            .map(|millis| runtime.now().saturating_add(millis));
        let deadline_at = own_deadline.into_iter().chain(bounds.ends.cut_at()).min();
        if deadline_at.is_some_and(|deadline| deadline <= runtime.now()) {
            return Err(Stopped::Deadline { partial: None });
        }
        if let Some(progress) = runtime.progress().filter(|_| !history.retries.is_empty()) {
            progress.call_began(history.retries.len() as u32 + 1);
        }
        let mut stopped = match call_once(runtime, ActionCall { deadline_at, ..call }).await {
            Ok(result) => return Ok(result),
            Err(stopped) => stopped,
        };
        history.note_error(&mut stopped, call.secrets.redactor());
        let (class, code, retry_after_ms) = match &stopped {
            Stopped::Failed(failure) | Stopped::FailedMidway { failure, .. } => {
                (failure.class, failure.code.as_str(), failure.retry_after_ms)
            }
            Stopped::Deadline { .. } => (FailureClass::Timeout, "tool_timeout", None),
        };
        let situation = Situation {
            class,
            retry_after_ms,
            retries: history.retries.len() as u32,
            now: runtime.now(),
            ends: bounds.ends,
            random: runtime.random(),
        };
        match retry::after(call.action, &situation) {
            RetryDecision::Final => return Err(stopped),
            RetryDecision::NoTime(not_retried) => {
                history.not_retried = Some(not_retried);
                return Err(stopped);
            }
            RetryDecision::Retry { delay_ms } => {
                let report = RetryReport {
                    class,
                    code: code.to_string(),
                    delay_ms,
                    after_ms: Some(situation.now.saturating_sub(history.began_at)),
                };
                runtime.note_retry(call.step_ref, &report);
                history.retries.push(report);
                if delay_ms > 0 {
                    runtime.sleep(delay_ms).await;
                }
            }
        }
    }
}

/// Makes one call, if its breaker admits it. Its outcome is reported to the breaker before anything else happens.
async fn call_once(runtime: &impl Runtime, call: ActionCall<'_>) -> Result<Value, Stopped> {
    let Some(key) = key_of(call.action, call.scope)? else {
        return runtime.perform(call).await;
    };
    let permit = match runtime.admit(&key, call.deadline_at).await {
        Admission::Call(permit) => permit,
        Admission::Refused {
            retry_after_ms,
            escalated,
        } => return Err(Stopped::Failed(open(&key, retry_after_ms, escalated))),
    };
    let result = runtime.perform(call).await;
    runtime.report_to_breaker(&key, permit, outcome_of(&result)).await;
    result
}
