//! Failures are data: a stable code, a class that decides what may be done about it, a sentence for a person.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub code: String,
    pub class: FailureClass,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_ref: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// No answer: connection refused, reset, name not found.
    Network,
    /// 500-599.
    ServerError,
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
    Unknown,
}

impl Failure {
    pub fn new(code: &str, class: FailureClass, message: impl Into<String>) -> Failure {
        Failure {
            code: code.to_string(),
            class,
            message: message.into(),
            node_id: None,
            token_id: None,
            step_ref: None,
        }
    }

    pub fn validation(code: &str, message: impl Into<String>) -> Failure {
        Failure::new(code, FailureClass::Validation, message)
    }
}
