//! The executor's side of circuit breakers: the key of a call, what its end says about the dependency, and a cache that saves
//! the request for a healthy dependency. Pure; `breaker_client` sends the requests.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::base::failure::{Failure, FailureClass};
use crate::base::ids;
use crate::base::time::{Millis, SECOND, format_duration};
use crate::breaker::machine::CallOutcome;
use crate::cel::Scope;
use crate::definition::action::Action;
use crate::protocol::breaker::AdmissionResponse;
use crate::task::runtime::Stopped;

/// How long `closed` is cached. Another isolate may have seen failures since.
pub const CACHED_MS: u64 = 30 * SECOND;
/// The most keys in the cache: keys that are made of inputs are unbounded.
const KEYS_MAX: usize = 1_000;

/// Why a call is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    /// The breaker is closed and has seen no failure.
    Healthy,
    /// The breaker is closed and counts failures, so that a success must be reported.
    Watched,
    Trial(u64),
    /// The breaker is unreachable. The call is made, because a breaker that is down must not be the outage.
    Blind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    Call(Permit),
    Refused { retry_after_ms: u64, escalated: bool },
}

impl From<AdmissionResponse> for Admission {
    fn from(response: AdmissionResponse) -> Admission {
        match response {
            AdmissionResponse::Closed { failures: 0 } => Admission::Call(Permit::Healthy),
            AdmissionResponse::Closed { .. } => Admission::Call(Permit::Watched),
            AdmissionResponse::Trial { trial } => Admission::Call(Permit::Trial(trial)),
            AdmissionResponse::Open {
                retry_after_ms,
                escalated,
            } => Admission::Refused {
                retry_after_ms,
                escalated,
            },
        }
    }
}

/// The key of the breaker of `action`, if it has one.
pub fn key_of(action: &Action, scope: &Scope<'_>) -> Result<Option<String>, Failure> {
    let Some(template) = &action.breaker else {
        return Ok(None);
    };
    let rendered = template
        .render(scope)
        .map_err(|wrong| Failure::validation("expression_failed", format!("breaker: {wrong}")))?;
    match rendered {
        Value::String(key) if ids::is_breaker_key(&key) => Ok(Some(key)),
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => Err(Failure::validation("invalid_breaker", ids::BREAKER_KEY_RULE)),
    }
}

/// The failure of a call that its breaker refused.
pub fn open(key: &str, retry_after_ms: u64, escalated: bool) -> Failure {
    let wait = format_duration(retry_after_ms);
    let what = match escalated {
        true => "is open until a person resets it or a trial succeeds",
        false => "is open",
    };
    let message = format!("breaker \"{key}\" {what}: the call was not made; the next trial is in {wait}");
    let mut failure = Failure::new("breaker_open", FailureClass::BreakerOpen, message);
    failure.retry_after_ms = Some(retry_after_ms);
    failure
}

/// What the end of a call says about the dependency. Any response shows that it is alive, even a 4xx. A request that was never
/// sent, or a response that could not be used, says nothing.
pub fn outcome_of(result: &Result<Value, Stopped>) -> CallOutcome {
    let failure = match result {
        Ok(_) => return CallOutcome::Alive,
        Err(Stopped::Deadline { .. }) => return CallOutcome::Failed,
        Err(Stopped::Failed(failure) | Stopped::FailedMidway { failure, .. }) => failure,
    };
    let answered = failure.code.strip_prefix("http_");
    if answered.is_some_and(|status| status.starts_with(['2', '4'])) {
        return CallOutcome::Alive;
    }
    match failure.class {
        FailureClass::Network
        | FailureClass::ServerError
        | FailureClass::ProviderTransient
        | FailureClass::Timeout
        | FailureClass::Unknown => CallOutcome::Failed,
        FailureClass::RateLimited
        | FailureClass::BadRequest
        | FailureClass::Auth
        | FailureClass::NotFound
        | FailureClass::Validation
        | FailureClass::Assertion
        | FailureClass::Permanent
        | FailureClass::BreakerOpen => CallOutcome::Unknown,
    }
}

/// The breakers that an isolate has found closed, and when.
#[derive(Debug, Default)]
pub struct AdmissionCache(BTreeMap<String, Millis>);

impl AdmissionCache {
    /// Whether a call is admitted without asking the breaker.
    pub fn is_healthy(&self, key: &str, now: Millis) -> bool {
        let cached_at = self.0.get(key);
        cached_at.is_some_and(|at| now.saturating_sub(*at) < CACHED_MS)
    }

    pub fn store(&mut self, key: &str, response: AdmissionResponse, now: Millis) {
        match response {
            AdmissionResponse::Closed { failures: 0 } => {
                if self.0.len() >= KEYS_MAX {
                    self.0.clear();
                }
                self.0.insert(key.to_string(), now);
            }
            AdmissionResponse::Closed { .. }
            | AdmissionResponse::Trial { .. }
            | AdmissionResponse::Open { .. } => {
                self.0.remove(key);
            }
        }
    }

    /// Whether the breaker needs the outcome of a call. A failure drops the key, so that the next call asks the breaker.
    pub fn must_report(&mut self, key: &str, permit: Permit, outcome: CallOutcome) -> bool {
        match (outcome, permit) {
            (CallOutcome::Failed, Permit::Healthy | Permit::Watched | Permit::Trial(_) | Permit::Blind) => {
                self.0.remove(key);
                true
            }
            (CallOutcome::Alive, Permit::Watched | Permit::Trial(_)) => true,
            // Another call has failed since. The success has to reset the count of consecutive failures.
            (CallOutcome::Alive, Permit::Healthy) => !self.0.contains_key(key),
            (CallOutcome::Unknown, Permit::Trial(_)) => true,
            (CallOutcome::Alive, Permit::Blind)
            | (CallOutcome::Unknown, Permit::Healthy | Permit::Watched | Permit::Blind) => false,
        }
    }
}
