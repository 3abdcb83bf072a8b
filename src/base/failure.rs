//! Failures as data: a stable code, a class that decides about retries and routes, a message for people.

use serde::{Deserialize, Deserializer, Serialize};

use crate::base::limits::{FAILURE_BYTES, FAILURE_CODE_BYTES, TooLarge};
use crate::base::text::truncate;

/// Stored on tokens, in events and in messages, and passed along routes. Its texts are therefore truncated both when it is
/// created and when it is deserialized.
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
    /// The delay that the peer requested with `Retry-After`. Only the executor that received the response uses it.
    #[serde(skip)]
    pub retry_after_ms: Option<u64>,
}

/// Declares each class once, with the name that documents and reports use.
macro_rules! failure_classes {
    ($($(#[$doc:meta])* $class:ident = $name:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum FailureClass {
            $($(#[$doc])* #[serde(rename = $name)] $class,)*
        }

        impl FailureClass {
            pub const NAMES: &[&str] = &[$($name),*];
            pub const ALL: &[FailureClass] = &[$(FailureClass::$class),*];

            pub fn name(self) -> &'static str {
                match self {
                    $(FailureClass::$class => $name,)*
                }
            }

            pub fn parse(name: &str) -> Option<FailureClass> {
                match name {
                    $($name => Some(FailureClass::$class),)*
                    _ => None,
                }
            }
        }
    };
}

failure_classes! {
    /// No response: connection refused or reset, name not found.
    Network = "network",
    /// 500-599.
    ServerError = "server_error",
    /// 529: the provider reports that it is overloaded.
    ProviderTransient = "provider_transient",
    /// 429.
    RateLimited = "rate_limited",
    /// A deadline passed.
    Timeout = "timeout",
    /// 400 and other statuses that reject the request itself.
    BadRequest = "bad_request",
    /// 401, 403.
    Auth = "auth",
    /// 404.
    NotFound = "not_found",
    /// Data violates a schema, a mapping or a limit.
    Validation = "validation",
    /// The condition of an `assert` action was false.
    Assertion = "assertion",
    /// A retry cannot succeed.
    Permanent = "permanent",
    /// The circuit breaker of the dependency is open.
    BreakerOpen = "breaker_open",
    Unknown = "unknown",
}

impl Failure {
    pub fn new(code: &str, class: FailureClass, message: impl Into<String>) -> Failure {
        Failure {
            code: truncate(code.to_string(), FAILURE_CODE_BYTES),
            class,
            message: truncate(message.into(), FAILURE_BYTES),
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
    Ok(truncate(String::deserialize(deserializer)?, FAILURE_CODE_BYTES))
}

fn bounded_message<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(truncate(String::deserialize(deserializer)?, FAILURE_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_truncated_on_creation_and_on_deserialization() {
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
        assert_eq!(FailureClass::NAMES.len(), 13);
        for name in FailureClass::NAMES {
            assert_eq!(serde_json::json!(FailureClass::parse(name)), *name);
        }
        assert_eq!(FailureClass::parse("Network"), None);
    }

    #[test]
    fn retry_after_is_not_serialized() {
        let mut failure = Failure::new("http_429", FailureClass::RateLimited, "slow down");
        failure.retry_after_ms = Some(5_000);
        let text = serde_json::json!(failure).to_string();
        assert_eq!(
            text,
            r#"{"class":"rate_limited","code":"http_429","message":"slow down"}"#
        );
    }
}
