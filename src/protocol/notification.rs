//! A notification between a run's object and an executor, which fills in the secrets, signs and posts it. Both sides are deployed
//! apart: unknown fields are ignored, and new fields are optional.

use serde::{Deserialize, Serialize};

/// Where a notification goes. In its texts stands `${secret.NAME}`, never a secret. Also part of a run's rows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NotificationTarget {
    pub url: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The name of the secret that signs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// The body of a request to the executor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotificationOrder {
    pub run_id: String,
    /// The same when it is sent again.
    pub id: String,
    pub target: NotificationTarget,
    /// The text to post.
    pub body: String,
    /// For the whole exchange with the target.
    pub timeout_ms: u64,
}

/// The response of the executor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum NotificationReport {
    Delivered,
    /// The target wants no more of them: it answered 410.
    Gone,
    /// It was not sent, and would not be sent another time.
    Refused {
        message: String,
    },
    /// It was not delivered. Another attempt may succeed.
    Failed {
        message: String,
        /// How long the target asks to wait.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
    },
}

impl NotificationReport {
    pub fn failed(message: impl Into<String>) -> NotificationReport {
        NotificationReport::Failed {
            message: message.into(),
            retry_after_ms: None,
        }
    }
}
