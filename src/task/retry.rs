//! Infrastructure retry: whether and when a failed call is retried. Pure: the failure, the time and the random number are
//! arguments.

use std::time::UNIX_EPOCH;

use crate::base::failure::FailureClass;
use crate::base::time::{MINUTE, Millis, SECOND, format_duration};
use crate::definition::action::Action;
use crate::definition::call_time::RATE_LIMIT_DELAY_MAX_MS;
use crate::definition::retry::RetryPolicy;
use crate::protocol::task::NOT_TRIED_AGAIN;

/// The wait after a 429 without `Retry-After`.
const RATE_LIMIT_DELAY_MS: u64 = MINUTE;

/// The shortest wait for a breaker's trial: another caller may take the trial first.
const BREAKER_DELAY_MIN_MS: u64 = 100;

/// The state of a step after one of its calls has failed.
pub struct Situation {
    pub class: FailureClass,
    pub retry_after_ms: Option<u64>,
    /// Calls that failed before this one.
    pub retries: u32,
    pub now: Millis,
    pub ends: Ends,
    /// In 0..1.
    pub random: f64,
}

/// The moments after which no call of a step begins. A call that has begun is cut at the first two of them; the end of the run
/// is the coordinator's, because a run may be extended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ends {
    /// Of the step's `total_timeout`.
    pub total_at: Option<Millis>,
    /// Of the attempt, by the node, the task or the preset.
    pub attempt_at: Option<Millis>,
    pub run_at: Option<Millis>,
}

/// What a call would begin after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Total,
    Attempt,
    Run,
}

impl Ends {
    /// The end of a call that is under way.
    pub fn cut_at(self) -> Option<Millis> {
        self.total_at.into_iter().chain(self.attempt_at).min()
    }

    /// The first end that a call which begins at `moment` would miss. The run's comes last: a longer run would not help where
    /// another end is in the way.
    fn missed_by(self, moment: Millis) -> Option<End> {
        let ends = [
            (End::Total, self.total_at),
            (End::Attempt, self.attempt_at),
            (End::Run, self.run_at),
        ];
        let missed = |at: Option<Millis>| at.is_some_and(|at| moment >= at);
        ends.into_iter().find(|(_, at)| missed(*at)).map(|(end, _)| end)
    }
}

/// A retry was due but would begin too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotRetried {
    pub delay_ms: u64,
    pub end: End,
}

impl NotRetried {
    /// Added to the message of the last error.
    pub fn text(self) -> String {
        let (end, advice) = match self.end {
            End::Total => (
                "its \"total_timeout\"",
                "write a longer one in the action's \"retry_policy\"",
            ),
            End::Attempt => (
                "the attempt's deadline",
                "write a longer \"timeout\" on the node or the task",
            ),
            End::Run => (
                "the end of the run",
                "write a longer \"timeout\" on the workflow, or extend the run",
            ),
        };
        let after = match self.delay_ms {
            0 => String::new(),
            millis => format!("in {}, ", format_duration(millis)),
        };
        format!("{NOT_TRIED_AGAIN}the next call would begin {after}after {end}; {advice}")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryDecision {
    /// Call again after this delay.
    Retry { delay_ms: u64 },
    /// A retry is due but would begin too late.
    NoTime(NotRetried),
    /// The call is not retried.
    Final,
}

/// Decides what follows the failure of a call of `action`.
pub fn after(action: &Action, situation: &Situation) -> RetryDecision {
    let policy = &action.retry;
    if situation.retries >= action.retries(situation.class) {
        return RetryDecision::Final;
    }
    let delay_ms = delay_ms(policy, situation);
    let begins_at = situation.now.saturating_add(delay_ms);
    match situation.ends.missed_by(begins_at) {
        None => RetryDecision::Retry { delay_ms },
        Some(end) => RetryDecision::NoTime(NotRetried { delay_ms, end }),
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
