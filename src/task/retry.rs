//! Infrastructure retry: whether and when a failed call is retried. Pure: the failure, the time and the random number are
//! arguments.

use std::time::UNIX_EPOCH;

use crate::base::failure::FailureClass;
use crate::base::time::{MINUTE, Millis, SECOND};
use crate::definition::action::{Action, ExecutionTimeoutPolicy};
use crate::definition::retry::{RetryOn, RetryPolicy};

/// Retries, not attempts, without a policy.
const RETRIES: u32 = 3;
const RATE_LIMIT_RETRIES: u32 = 5;

/// The wait after a 429 without `Retry-After`, and the longest wait that a `Retry-After` may ask for.
const RATE_LIMIT_DELAY_MS: u64 = MINUTE;
const RATE_LIMIT_DELAY_MAX_MS: u64 = 5 * MINUTE;

/// The shortest wait for a breaker's trial: another caller may take the trial first.
const BREAKER_DELAY_MIN_MS: u64 = 100;

/// Added to the last error if a retry was due but could not finish in time.
pub const NO_TIME: &str = "; not tried again: another attempt could not finish before the deadline";

/// The state of a step after one of its calls has failed.
pub struct Situation {
    pub class: FailureClass,
    pub retry_after_ms: Option<u64>,
    /// Calls that failed before this one.
    pub retries: u32,
    pub now: Millis,
    /// The earliest deadline around the call: of the step's total, the task, the token or the run.
    pub deadline_at: Option<Millis>,
    /// The limit of one call, if it has one.
    pub call_limit_ms: Option<u64>,
    /// In 0..1.
    pub random: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryDecision {
    /// Call again after this delay.
    Retry { delay_ms: u64 },
    /// A retry is due but could not finish in time.
    NoTime,
    /// The call is not retried.
    Final,
}

/// Decides what follows the failure of a call of `action`.
pub fn after(action: &Action, situation: &Situation) -> RetryDecision {
    let policy = &action.retry;
    if !is_retried(action, situation.class) || situation.retries >= retries_max(policy, situation.class) {
        return RetryDecision::Final;
    }
    let delay_ms = delay_ms(policy, situation);
    let starts_at = situation.now.saturating_add(delay_ms);
    let fits = match (situation.deadline_at, situation.call_limit_ms) {
        (None, _) => true,
        (Some(deadline_at), None) => starts_at < deadline_at,
        (Some(deadline_at), Some(limit_ms)) => starts_at.saturating_add(limit_ms) <= deadline_at,
    };
    match fits {
        true => RetryDecision::Retry { delay_ms },
        false => RetryDecision::NoTime,
    }
}

fn is_retried(action: &Action, class: FailureClass) -> bool {
    match class {
        FailureClass::Timeout => action.on_timeout == Some(ExecutionTimeoutPolicy::Retry),
        FailureClass::Permanent => false,
        FailureClass::Network
        | FailureClass::ServerError
        | FailureClass::ProviderTransient
        | FailureClass::RateLimited
        | FailureClass::BreakerOpen
        | FailureClass::Unknown => listed(&action.retry, class).unwrap_or(true),
        FailureClass::BadRequest
        | FailureClass::Auth
        | FailureClass::NotFound
        | FailureClass::Validation
        | FailureClass::Assertion => listed(&action.retry, class).unwrap_or(false),
    }
}

/// Whether `retry_on` lists the class; none without `retry_on`.
fn listed(policy: &RetryPolicy, class: FailureClass) -> Option<bool> {
    policy.retry_on.as_ref().map(|retry_on| match retry_on {
        RetryOn::Anything => true,
        RetryOn::Classes(classes) => classes.contains(&class),
    })
}

fn retries_max(policy: &RetryPolicy, class: FailureClass) -> u32 {
    match policy.attempts_max {
        Some(attempts) => attempts.saturating_sub(1),
        None if class == FailureClass::RateLimited => RATE_LIMIT_RETRIES,
        None => RETRIES,
    }
}

fn delay_ms(policy: &RetryPolicy, situation: &Situation) -> u64 {
    let backoff_ms = policy.delay_ms(situation.retries + 1, situation.random);
    let asked_ms = situation.retry_after_ms;
    if situation.class == FailureClass::RateLimited {
        if let Some(asked_ms) = asked_ms {
            // A call before the moment that the peer asks for would count against the limit.
            return asked_ms.min(RATE_LIMIT_DELAY_MAX_MS);
        }
        if policy.initial_delay_ms.is_none() {
            return RATE_LIMIT_DELAY_MS;
        }
    }
    if situation.class == FailureClass::BreakerOpen
        && let Some(asked_ms) = asked_ms
    {
        // A breaker refuses every call before its next trial.
        return asked_ms.max(backoff_ms.min(BREAKER_DELAY_MIN_MS));
    }
    backoff_ms
}

/// The wait that a `Retry-After` header asks for: seconds or a date. None if it is neither.
pub fn retry_after_ms(header: &str, now: Millis) -> Option<u64> {
    let header = header.trim();
    if !header.is_empty() && header.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that overflows is longer than any wait that is allowed.
        let seconds = header.parse::<u64>().unwrap_or(u64::MAX);
        return Some(seconds.saturating_mul(SECOND));
    }
    let at = httpdate::parse_http_date(header).ok()?;
    let at = at.duration_since(UNIX_EPOCH).ok()?;
    Some((at.as_secs() * SECOND).saturating_sub(now))
}
