//! How long the calls of a task with one step may take together: every retry, and the longest wait before it.
//!
//! An action's `timeout` bounds one call. Where nothing else limits the attempt, its deadline leaves room for all of them.

use crate::base::failure::FailureClass;
use crate::base::limits::TIMEOUT_CEILING_MS;
use crate::base::time::{MINUTE, SECOND, format_duration};
use crate::definition::action::Action;
use crate::definition::step::{Step, StepFailurePolicy};
use crate::definition::task::Task;

/// The longest wait that a `Retry-After` may ask for.
pub const RATE_LIMIT_DELAY_MAX_MS: u64 = 5 * MINUTE;

/// The wait for the trial of a breaker that has escalated.
const BREAKER_DELAY_MAX_MS: u64 = 5 * MINUTE;

/// Time for an order to reach the executor, so that the deadline leaves the last call its whole limit.
const TRANSIT_MS: u64 = SECOND;

/// The most calls, and the longest waits between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTime {
    pub calls: u32,
    /// The limit of one call.
    pub call_ms: u64,
    pub waits_ms: u64,
}

impl CallTime {
    pub fn total_ms(self) -> u64 {
        if self.calls <= 1 {
            return self.call_ms;
        }
        let calls_ms = self.call_ms.saturating_mul(u64::from(self.calls));
        let total = calls_ms.saturating_add(self.waits_ms).saturating_add(TRANSIT_MS);
        total.min(TIMEOUT_CEILING_MS).max(self.call_ms)
    }

    /// Why the limit of an attempt is longer than that of a call.
    pub fn reason(self) -> Option<String> {
        let waits = format_duration(self.waits_ms);
        let call = format_duration(self.call_ms);
        (self.calls > 1).then(|| format!("{} calls of {call}, and waits of up to {waits}", self.calls))
    }

    /// The same again in each round of the task.
    fn in_rounds(self, rounds: Rounds) -> CallTime {
        let count = u64::from(rounds.count);
        CallTime {
            calls: self.calls.saturating_mul(rounds.count),
            call_ms: self.call_ms,
            waits_ms: self
                .waits_ms
                .saturating_mul(count)
                .saturating_add(rounds.waits_ms),
        }
    }
}

/// How often a task may run its step, and the waits between the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rounds {
    count: u32,
    waits_ms: u64,
}

impl Action {
    /// The time of one step, if each of its calls may take `call_ms`.
    pub fn call_time(&self, call_ms: u64) -> CallTime {
        let mut time = CallTime {
            calls: 1,
            call_ms,
            waits_ms: 0,
        };
        // Failures of several classes share one count of retries, so each retry may have the longest wait of any class.
        while let Some(wait_ms) = self.longest_wait_ms(time.calls) {
            time.calls += 1;
            time.waits_ms = time.waits_ms.saturating_add(wait_ms);
        }
        time
    }

    /// The longest wait before retry `retry` (the first is 1). `None` if no failure is retried so often.
    fn longest_wait_ms(&self, retry: u32) -> Option<u64> {
        let backoff_ms = self.retry.delay_ms(retry, 1.0);
        let wait_ms = |class: FailureClass| match class {
            FailureClass::RateLimited => RATE_LIMIT_DELAY_MAX_MS.max(backoff_ms),
            FailureClass::BreakerOpen => BREAKER_DELAY_MAX_MS.max(backoff_ms),
            FailureClass::Network
            | FailureClass::ServerError
            | FailureClass::ProviderTransient
            | FailureClass::Timeout
            | FailureClass::BadRequest
            | FailureClass::Auth
            | FailureClass::NotFound
            | FailureClass::Validation
            | FailureClass::Assertion
            | FailureClass::Permanent
            | FailureClass::Unknown => backoff_ms,
        };
        let may_occur = |class: FailureClass| class != FailureClass::BreakerOpen || self.breaker.is_some();
        let classes = FailureClass::ALL.iter().copied();
        classes
            .filter(|class| may_occur(*class) && self.retries(*class) >= retry)
            .map(wait_ms)
            .max()
    }
}

impl Task {
    /// The time of all calls of a task whose only step is `step`, if each of them may take `call_ms`.
    pub fn call_time(&self, step: &Step, action: &Action, call_ms: u64) -> CallTime {
        action.call_time(call_ms).in_rounds(self.rounds(step))
    }

    /// The time of all rounds of a task whose only step may take `step_ms`, with its retries.
    pub fn rounds_ms(&self, step: &Step, step_ms: u64) -> u64 {
        let rounds = self.rounds(step);
        let total = step_ms.saturating_mul(u64::from(rounds.count));
        total.saturating_add(rounds.waits_ms)
    }

    fn rounds(&self, step: &Step) -> Rounds {
        let retry = match step.on_failure {
            StepFailurePolicy::Retry => self.retry,
            StepFailurePolicy::Abort | StepFailurePolicy::Continue => None,
        };
        let count = retry.map_or(1, |retry| retry.attempts_max.max(1));
        let delays = retry
            .into_iter()
            .flat_map(|retry| (2..=count).map(move |attempt| retry.delay_ms(attempt)));
        Rounds {
            count,
            waits_ms: delays.fold(0, u64::saturating_add),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::definition::problem::Problems;

    fn task(execution: Value, more: Value) -> Task {
        let action = json!({"kind": "http_request", "implementation": {"url": "https://example.com"},
            "execution": execution});
        let mut document = json!({"id": "t", "steps": [{"ref": "s", "action": action}]});
        if let Some(on_failure) = more.get("on_failure") {
            document["steps"][0]["on_failure"] = on_failure.clone();
        }
        if let Some(retry) = more.get("retry") {
            document["retry"] = retry.clone();
        }
        let problems = Problems::default();
        let task = Task::read(&document, "", &problems).expect("the task is valid");
        assert!(!problems.has_errors(), "{document}");
        task
    }

    fn time(execution: Value) -> CallTime {
        let task = task(execution, json!({}));
        let (step, action) = task.only_step().expect("one step");
        task.call_time(step, action, 5_000)
    }

    #[test]
    fn every_call_and_the_longest_wait_before_each_counts() {
        let without_rate_limits = json!(["network", "server_error"]);
        for (execution, calls, waits_ms) in [
            // Five rate limits, each with the longest Retry-After.
            (json!({}), 6, 5 * 300_000),
            (json!({"retry_policy": {"max_attempts": 1}}), 1, 0),
            (json!({"retry_policy": {"max_attempts": 2}}), 2, 300_000),
            // 1 s, 2 s and 4 s, each with half of it.
            (
                json!({"retry_policy": {"retry_on": without_rate_limits}}),
                4,
                10_500,
            ),
            (
                json!({"retry_policy": {"retry_on": without_rate_limits, "jitter": false, "max_attempts": 3}}),
                3,
                3_000,
            ),
            (json!({"retry_policy": {"retry_on": []}}), 1, 0),
            // A call that timed out is made again, too.
            (
                json!({"on_timeout": "retry", "retry_policy": {"retry_on": []}}),
                4,
                10_500,
            ),
            (
                json!({"breaker": "peer", "retry_policy": {"retry_on": ["breaker_open"]}}),
                4,
                3 * 300_000,
            ),
            (json!({"retry_policy": {"retry_on": ["breaker_open"]}}), 1, 0),
            (
                json!({"retry_policy": {"initial_delay": "10m", "max_delay": "10m", "max_attempts": 2}}),
                2,
                600_000,
            ),
        ] {
            let found = time(execution.clone());
            assert_eq!((found.calls, found.waits_ms), (calls, waits_ms), "{execution}");
        }
    }

    #[test]
    fn a_single_call_needs_nothing_more() {
        let once = time(json!({"retry_policy": {"max_attempts": 1}}));
        assert_eq!((once.total_ms(), once.reason()), (5_000, None));
        let default = time(json!({}));
        assert_eq!(default.total_ms(), 6 * 5_000 + 1_500_000 + 1_000);
        assert_eq!(
            default.reason().as_deref(),
            Some("6 calls of 5s, and waits of up to 25m0s")
        );
    }

    #[test]
    fn business_retries_repeat_all_of_it() {
        let retry = json!({"max_attempts": 3, "backoff": "linear", "initial_delay_ms": 100});
        let execution =
            json!({"retry_policy": {"max_attempts": 2, "retry_on": ["network"], "jitter": false}});
        let rounds = |more: Value| {
            let task = task(execution.clone(), more);
            let (step, action) = task.only_step().expect("one step");
            let time = task.call_time(step, action, 5_000);
            (time.calls, time.waits_ms, task.rounds_ms(step, 9_000))
        };
        assert_eq!(
            rounds(json!({"on_failure": "retry", "retry": retry})),
            (6, 3 * 1_000 + 300, 27_300)
        );
        // The task's policy is only for steps that ask for it.
        assert_eq!(rounds(json!({"retry": retry})), (2, 1_000, 9_000));
        assert_eq!(rounds(json!({"on_failure": "retry"})), (2, 1_000, 9_000));
    }

    #[test]
    fn the_total_never_overflows() {
        let task = task(
            json!({"retry_policy": {"max_attempts": 100}}),
            json!({"on_failure": "retry", "retry": {"max_attempts": 100}}),
        );
        let (step, action) = task.only_step().expect("one step");
        let time = task.call_time(step, action, u64::MAX);
        assert_eq!(time.total_ms(), u64::MAX);
        let long = task.call_time(step, action, TIMEOUT_CEILING_MS / 2);
        assert_eq!(long.total_ms(), TIMEOUT_CEILING_MS);
        assert_eq!(task.rounds_ms(step, u64::MAX), u64::MAX);
    }
}
