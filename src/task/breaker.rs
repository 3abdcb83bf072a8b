//! The executor's side of breakers: which key a call goes by, what its end says about the dependency, and what is
//! remembered so that a healthy dependency costs no request. Pure; `breaker_door` does the asking.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::base::failure::{Failure, FailureClass};
use crate::base::ids;
use crate::base::time::{Millis, SECOND, format_duration};
use crate::breaker::machine::Outcome;
use crate::cel::Scope;
use crate::definition::action::Action;
use crate::protocol::breaker::AdmissionResponse;
use crate::task::steps::Stopped;

/// How long `closed` is believed. Another isolate may have seen failures since.
pub const BELIEVED_MS: u64 = 30 * SECOND;
/// Keys remembered at once; keys made of inputs could be any number.
const KEYS: usize = 1_000;

/// What a call has behind it when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    /// Closed, and nothing failed lately.
    Healthy,
    /// Closed after failures: a success is news.
    Watched,
    Trial(u64),
    /// Nobody could be asked. The call is made: a breaker that is down must not be the outage.
    Blind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    Call(Permit),
    Refused { retry_after_ms: u64, escalated: bool },
}

impl From<AdmissionResponse> for Admission {
    fn from(said: AdmissionResponse) -> Admission {
        match said {
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

/// The key of the breaker that calls of `action` go through, if they do.
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

/// The failure of a call that was not made.
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

/// What the end of a call says about the dependency. An answer, be it a 4xx, is a sign of life; what never left the
/// executor, or came back and could not be used, says nothing.
pub fn word_of(result: &Result<Value, Stopped>) -> Outcome {
    let failure = match result {
        Ok(_) => return Outcome::Alive,
        Err(Stopped::Deadline { .. }) => return Outcome::Failed,
        Err(Stopped::Failed(failure) | Stopped::FailedMidway { failure, .. }) => failure,
    };
    let answered = failure.code.strip_prefix("http_");
    if answered.is_some_and(|status| status.starts_with(['2', '4'])) {
        return Outcome::Alive;
    }
    match failure.class {
        FailureClass::Network
        | FailureClass::ServerError
        | FailureClass::ProviderTransient
        | FailureClass::Timeout
        | FailureClass::Unknown => Outcome::Failed,
        FailureClass::RateLimited
        | FailureClass::BadRequest
        | FailureClass::Auth
        | FailureClass::NotFound
        | FailureClass::Validation
        | FailureClass::Assertion
        | FailureClass::Permanent
        | FailureClass::BreakerOpen => Outcome::Unknown,
    }
}

/// What an isolate knows of breakers: which were closed, and since when.
#[derive(Debug, Default)]
pub struct Memory(BTreeMap<String, Millis>);

impl Memory {
    /// Nobody need be asked.
    pub fn is_healthy(&self, key: &str, now: Millis) -> bool {
        let heard_at = self.0.get(key);
        heard_at.is_some_and(|at| now.saturating_sub(*at) < BELIEVED_MS)
    }

    pub fn hear(&mut self, key: &str, said: AdmissionResponse, now: Millis) {
        match said {
            AdmissionResponse::Closed { failures: 0 } => {
                if self.0.len() >= KEYS {
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

    /// Whether the object must hear how a call went. The first failure ends the belief: whoever comes next asks.
    pub fn is_news(&mut self, key: &str, pass: Permit, word: Outcome) -> bool {
        match (word, pass) {
            (Outcome::Failed, Permit::Healthy | Permit::Watched | Permit::Trial(_) | Permit::Blind) => {
                self.0.remove(key);
                true
            }
            (Outcome::Alive, Permit::Watched | Permit::Trial(_)) => true,
            // Somebody's failure was reported since: they are not in a row any more.
            (Outcome::Alive, Permit::Healthy) => !self.0.contains_key(key),
            (Outcome::Unknown, Permit::Trial(_)) => true,
            (Outcome::Alive, Permit::Blind)
            | (Outcome::Unknown, Permit::Healthy | Permit::Watched | Permit::Blind) => false,
        }
    }
}
