//! Failures are data: a stable code, a class that decides what may be done about it, a sentence for a person.

use serde::{Deserialize, Deserializer, Serialize};

use crate::base::limits::{FAILURE_BYTES, FAILURE_CODE_BYTES, TooLarge};
use crate::base::text::cut;

/// Its texts are bounded wherever it comes from: it stands on tokens, in events and messages, and travels along routes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    #[serde(deserialize_with = "bounded_code")]
    pub code: String,
    pub class: FailureClass,
    #[serde(deserialize_with = "bounded_message")]
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_ref: Option<String>,
    /// How long the peer asks to be left alone. Of use to the executor that heard it, and to nobody after it.
    #[serde(skip)]
    pub retry_after_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// No answer: connection refused, reset, name not found.
    Network,
    /// 500-599.
    ServerError,
    /// A provider that is overloaded and says so: 529.
    ProviderTransient,
    /// 429.
    RateLimited,
    /// A deadline passed.
    Timeout,
    /// 400 and the other statuses that mean the request is wrong.
    BadRequest,
    /// 401, 403.
    Auth,
    /// 404.
    NotFound,
    /// Data that does not fit: a schema, a mapping, a limit.
    Validation,
    /// An `assert` that did not hold.
    Assertion,
    /// Trying again cannot help.
    Permanent,
    /// A dependency that failed too often is not asked for a while.
    BreakerOpen,
    Unknown,
}

/// Every class by the word that documents and reports use for it.
pub const FAILURE_CLASSES: &[(&str, FailureClass)] = &[
    ("network", FailureClass::Network),
    ("server_error", FailureClass::ServerError),
    ("provider_transient", FailureClass::ProviderTransient),
    ("rate_limited", FailureClass::RateLimited),
    ("timeout", FailureClass::Timeout),
    ("bad_request", FailureClass::BadRequest),
    ("auth", FailureClass::Auth),
    ("not_found", FailureClass::NotFound),
    ("validation", FailureClass::Validation),
    ("assertion", FailureClass::Assertion),
    ("permanent", FailureClass::Permanent),
    ("breaker_open", FailureClass::BreakerOpen),
    ("unknown", FailureClass::Unknown),
];

impl Failure {
    pub fn new(code: &str, class: FailureClass, message: impl Into<String>) -> Failure {
        Failure {
            code: cut(code.to_string(), FAILURE_CODE_BYTES),
            class,
            message: cut(message.into(), FAILURE_BYTES),
            node_id: None,
            token_id: None,
            step_ref: None,
            retry_after_ms: None,
        }
    }

    pub fn validation(code: &str, message: impl Into<String>) -> Failure {
        Failure::new(code, FailureClass::Validation, message)
    }

    pub fn permanent(code: &str, message: impl Into<String>) -> Failure {
        Failure::new(code, FailureClass::Permanent, message)
    }
}

impl From<TooLarge> for Failure {
    fn from(too_large: TooLarge) -> Failure {
        Failure::validation("limit_exceeded", too_large.to_string())
    }
}

fn bounded_code<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(cut(String::deserialize(deserializer)?, FAILURE_CODE_BYTES))
}

fn bounded_message<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(cut(String::deserialize(deserializer)?, FAILURE_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_texts_are_bounded_wherever_it_comes_from() {
        let long = "x".repeat(100_000);
        let made = Failure::permanent(&long, long.as_str());
        let text = format!(r#"{{"code":"{long}","class":"unknown","message":"{long}"}}"#);
        let read: Failure = serde_json::from_str(&text).expect("a failure");
        for failure in [made, read] {
            assert_eq!((failure.code.len(), failure.message.len()), (128, 4_096));
            assert!(failure.message.ends_with("[cut, 100000 bytes in all]"));
        }
    }

    #[test]
    fn every_class_goes_by_its_wire_name() {
        for (word, class) in FAILURE_CLASSES {
            assert_eq!(serde_json::json!(class), *word);
        }
    }

    #[test]
    fn what_a_peer_asks_for_stays_with_the_executor() {
        let mut failure = Failure::new("http_429", FailureClass::RateLimited, "slow down");
        failure.retry_after_ms = Some(5_000);
        let text = serde_json::json!(failure).to_string();
        assert_eq!(
            text,
            r#"{"class":"rate_limited","code":"http_429","message":"slow down"}"#
        );
    }
}
