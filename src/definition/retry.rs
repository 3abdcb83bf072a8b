//! Retries of a single call: an action's `execution.retry_policy` and its defaults.
//!
//! This file only has the numbers. `task::retry` decides whether a failed call is retried.

use serde_json::Value;

use crate::base::failure::FailureClass;
use crate::base::text::{json_type, shorten};
use crate::base::time::{Limit, MINUTE, SECOND};
use crate::definition::reader::{Element, Reader};
use crate::definition::task::{BACKOFFS, Backoff};

/// Retries, not attempts, without a policy.
const RETRIES: u32 = 3;
const RATE_LIMIT_RETRIES: u32 = 5;

/// The default is the policy of an action without a `retry_policy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Counts the first attempt too. Absent: a number for each failure class.
    pub attempts_max: Option<u32>,
    pub backoff: Backoff,
    /// Absent: 1 s, or one minute for a rate limit without `Retry-After`.
    pub initial_delay_ms: Option<u64>,
    pub max_delay_ms: u64,
    /// Adds up to half of the delay, so that calls which failed together are not retried together.
    pub jitter: bool,
    /// Absent: the classes for which a retry may succeed.
    pub retry_on: Option<RetryOn>,
    /// Bounds all attempts of the step and the delays between them.
    pub total_timeout: Limit,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RetryOn {
    /// `"*"`: every class except timeouts, which `on_timeout` covers, and permanent failures.
    Anything,
    Classes(Vec<FailureClass>),
}

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        RetryPolicy {
            attempts_max: None,
            backoff: Backoff::Exponential,
            initial_delay_ms: None,
            max_delay_ms: MINUTE,
            jitter: true,
            retry_on: None,
            total_timeout: Limit::Unset,
        }
    }
}

impl RetryPolicy {
    /// The delay before retry `retry` (the first is 1). `random` is in 0..1.
    pub fn delay_ms(&self, retry: u32, random: f64) -> u64 {
        let delay = self
            .backoff
            .delay_ms(retry, self.initial_delay_ms.unwrap_or(SECOND))
            .min(self.max_delay_ms);
        let jitter = match self.jitter {
            true => (delay as f64 / 2.0 * random.clamp(0.0, 1.0)) as u64,
            false => 0,
        };
        delay.saturating_add(jitter).min(self.max_delay_ms)
    }

    /// Retries after failures of a class that is retried.
    pub fn retries_max(&self, class: FailureClass) -> u32 {
        match self.attempts_max {
            Some(attempts) => attempts.saturating_sub(1),
            None if class == FailureClass::RateLimited => RATE_LIMIT_RETRIES,
            None => RETRIES,
        }
    }

    /// Whether `retry_on` lists the class; none without `retry_on`.
    pub fn lists(&self, class: FailureClass) -> Option<bool> {
        self.retry_on.as_ref().map(|retry_on| match retry_on {
            RetryOn::Anything => true,
            RetryOn::Classes(classes) => classes.contains(&class),
        })
    }

    pub(super) fn read(reader: Reader, retries_timeouts: bool) -> RetryPolicy {
        let default = RetryPolicy::default();
        let attempts_max = reader.integer("max_attempts", 1, 100);
        let backoff = reader.choice("backoff", BACKOFFS);
        let initial = reader.limit("initial_delay", "initial_delay_ms").millis();
        let max = reader.limit("max_delay", "max_delay_ms").millis();
        let jitter = reader.boolean("jitter");
        let retry_on = read_retry_on(&reader, retries_timeouts);
        let total_timeout = reader.limit("total_timeout", "total_timeout_ms");
        reader.finish();
        RetryPolicy {
            attempts_max: attempts_max.map(|attempts| attempts as u32),
            backoff: backoff.unwrap_or(default.backoff),
            initial_delay_ms: initial,
            max_delay_ms: max.unwrap_or(default.max_delay_ms),
            jitter: jitter.unwrap_or(default.jitter),
            retry_on,
            total_timeout,
        }
    }
}

fn read_retry_on(reader: &Reader, retries_timeouts: bool) -> Option<RetryOn> {
    reader.value("retry_on")?;
    let elements = reader.array("retry_on");
    if elements.iter().any(|element| element.value == "*") {
        return Some(RetryOn::Anything);
    }
    let classes = elements.iter();
    let classes = classes.filter_map(|element| read_retried_class(element, retries_timeouts, reader));
    Some(RetryOn::Classes(classes.collect()))
}

fn read_retried_class(element: &Element, retries_timeouts: bool, reader: &Reader) -> Option<FailureClass> {
    let class = read_class(element, "*, ", reader)?;
    let message = if class == FailureClass::Timeout && !retries_timeouts {
        // Only `on_timeout` decides about timeouts, so that no two fields can contradict each other.
        "a timeout is tried again by \"on_timeout\": \"retry\" of the execution"
    } else if class == FailureClass::Permanent {
        "what is permanent is never tried again"
    } else {
        return Some(class);
    };
    reader
        .problems()
        .report(&element.pointer, "invalid_choice", message);
    None
}

/// Reads the name of a failure class. `others` lists what else is accepted there, for the message.
pub(super) fn read_class(element: &Element, others: &str, reader: &Reader) -> Option<FailureClass> {
    let (code, message) = match element.value {
        Value::String(name) => match FailureClass::parse(name) {
            Some(class) => return Some(class),
            None => {
                let known = FailureClass::NAMES.join(", ");
                let name = shorten(name);
                ("invalid_choice", format!("\"{name}\" is none of {others}{known}"))
            }
        },
        other => {
            let found = json_type(other);
            ("wrong_type", format!("expected an error class, found {found}"))
        }
    };
    reader.problems().report(&element.pointer, code, message);
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_follow_the_backoff_and_jitter_adds_up_to_half() {
        let policy = RetryPolicy::default();
        let delays = |policy: &RetryPolicy, random| [1, 2, 3].map(|retry| policy.delay_ms(retry, random));
        assert_eq!(delays(&policy, 0.0), [1_000, 2_000, 4_000]);
        assert_eq!(delays(&policy, 0.5), [1_250, 2_500, 5_000]);
        let steady = RetryPolicy {
            jitter: false,
            initial_delay_ms: Some(200),
            ..policy
        };
        assert_eq!(delays(&steady, 0.9), [200, 400, 800]);
        let linear = RetryPolicy {
            backoff: Backoff::Linear,
            max_delay_ms: 500,
            ..steady.clone()
        };
        assert_eq!(delays(&linear, 0.9), [200, 400, 500]);
        let none = RetryPolicy {
            backoff: Backoff::None,
            ..linear
        };
        assert_eq!(delays(&none, 0.9), [0, 0, 0]);
    }

    #[test]
    fn max_delay_includes_jitter_and_nothing_overflows() {
        let policy = RetryPolicy {
            max_delay_ms: 1_100,
            ..RetryPolicy::default()
        };
        assert_eq!(policy.delay_ms(1, 0.99), 1_100);
        let huge = RetryPolicy {
            initial_delay_ms: Some(u64::MAX),
            max_delay_ms: u64::MAX,
            attempts_max: Some(100),
            ..policy
        };
        assert_eq!(huge.delay_ms(99, 1.0), u64::MAX);
    }

    #[test]
    fn max_attempts_counts_the_first_call() {
        let policy = RetryPolicy {
            attempts_max: Some(3),
            ..RetryPolicy::default()
        };
        let retries = |policy: &RetryPolicy| {
            [FailureClass::Network, FailureClass::RateLimited].map(|class| policy.retries_max(class))
        };
        assert_eq!(retries(&policy), [2, 2]);
        assert_eq!(retries(&RetryPolicy::default()), [3, 5]);
    }
}
