//! Infrastructure retry: whether a call that failed is made again, and when. Pure: the failure, the time and the
//! dice come in.

use crate::base::failure::FailureClass;
use crate::base::time::{MINUTE, Millis, SECOND};
use crate::definition::action::{Action, ExecutionTimeoutPolicy};
use crate::definition::retry::{RetryOn, RetryPolicy};

/// Retries, not attempts, where no policy says how many.
const RETRIES: u32 = 3;
const RATE_LIMIT_RETRIES: u32 = 5;

/// The wait for a peer that says "too often" and not for how long, and the longest that is granted to one that does.
const RATE_LIMIT_DELAY_MS: u64 = MINUTE;
const RATE_LIMIT_DELAY_MAX_MS: u64 = 5 * MINUTE;

/// Two who wait for the same trial: the one who does not get it asks again no sooner than this.
const BREAKER_DELAY_MIN_MS: u64 = 100;

/// Added to the last error where a retry was due and its time was not.
pub const NO_TIME: &str = "; not tried again: another attempt could not finish before the deadline";

/// Where a step stands when one of its calls has failed.
pub struct Situation {
    pub class: FailureClass,
    pub retry_after_ms: Option<u64>,
    /// Calls that failed before this one.
    pub retries: u32,
    pub now: Millis,
    /// The end of everything around the call: the step's total, the task, the token, the run.
    pub deadline_at: Option<Millis>,
    /// How long one call may take, where it is limited by itself.
    pub call_limit_ms: Option<u64>,
    /// In 0..1.
    pub random: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Call again, this much later.
    Retry { delay_ms: u64 },
    /// It would be tried again, but could not finish in time.
    NoTime,
    /// It is not tried again.
    Final,
}

/// What follows the failure of a call of `action`.
pub fn after(action: &Action, situation: &Situation) -> Verdict {
    let policy = &action.retry;
    if !is_retried(action, situation.class) || situation.retries >= retries_max(policy, situation.class) {
        return Verdict::Final;
    }
    let delay_ms = delay_ms(policy, situation);
    let starts_at = situation.now.saturating_add(delay_ms);
    let fits = match (situation.deadline_at, situation.call_limit_ms) {
        (None, _) => true,
        (Some(deadline_at), None) => starts_at < deadline_at,
        (Some(deadline_at), Some(limit_ms)) => starts_at.saturating_add(limit_ms) <= deadline_at,
    };
    match fits {
        true => Verdict::Retry { delay_ms },
        false => Verdict::NoTime,
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

/// What `retry_on` says of a class; none if it is not written.
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
    match (situation.class, situation.retry_after_ms) {
        // Coming back sooner than the peer asks for would only be counted against us.
        (FailureClass::RateLimited, Some(asked_ms)) => asked_ms.min(RATE_LIMIT_DELAY_MAX_MS),
        (FailureClass::RateLimited, None) if policy.initial_delay_ms.is_none() => RATE_LIMIT_DELAY_MS,
        // Before its next trial a breaker has nothing else to say.
        (FailureClass::BreakerOpen, Some(asked_ms)) => asked_ms.max(backoff_ms.min(BREAKER_DELAY_MIN_MS)),
        (
            FailureClass::RateLimited
            | FailureClass::BreakerOpen
            | FailureClass::Network
            | FailureClass::ServerError
            | FailureClass::ProviderTransient
            | FailureClass::Timeout
            | FailureClass::BadRequest
            | FailureClass::Auth
            | FailureClass::NotFound
            | FailureClass::Validation
            | FailureClass::Assertion
            | FailureClass::Permanent
            | FailureClass::Unknown,
            _,
        ) => backoff_ms,
    }
}

/// What a `Retry-After` header asks for: seconds, or the moment to come back at. None if it is neither.
pub fn retry_after_ms(header: &str, now: Millis) -> Option<u64> {
    let header = header.trim();
    if !header.is_empty() && header.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a number holds is longer than any wait that is granted.
        let seconds = header.parse::<u64>().unwrap_or(u64::MAX);
        return Some(seconds.saturating_mul(SECOND));
    }
    crate::task::http_date::parse(header).map(|at| at.saturating_sub(now))
}
