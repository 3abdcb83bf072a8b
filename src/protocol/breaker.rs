//! What an executor and a breaker's object say to each other, and what the index and the API hear. Both sides are the
//! same deployment's, but not always the same build: read leniently, extended only by optional fields.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::base::time::Millis;
use crate::breaker::machine::{Answer, Breaker, Outcome};

/// Body of `/ask`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ask {
    pub key: String,
    #[serde(default)]
    pub deadline_at: Option<Millis>,
}

/// Body of `/report`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    pub key: String,
    pub outcome: Outcome,
    #[serde(default)]
    pub trial: Option<u64>,
}

/// The answer of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum AdmissionResponse {
    Closed { failures: u32 },
    Trial { trial: u64 },
    Open { retry_after_ms: u64, escalated: bool },
}

impl From<Answer> for AdmissionResponse {
    fn from(answer: Answer) -> AdmissionResponse {
        match answer {
            Answer::Closed { failures } => AdmissionResponse::Closed { failures },
            Answer::Trial { number } => AdmissionResponse::Trial { trial: number },
            Answer::Open {
                retry_after_ms,
                escalated,
            } => AdmissionResponse::Open {
                retry_after_ms,
                escalated,
            },
        }
    }
}

/// A breaker as the API shows it.
pub fn view(key: &str, breaker: &Breaker) -> Value {
    let opening = breaker.opening.as_ref();
    json!({
        "key": key,
        "state": breaker.standing(),
        "failures": breaker.failures,
        "opened_at": opening.map(|it| it.opened_at),
        "trial_at": opening.map(|it| it.trial_at),
        "escalated_at": opening.and_then(|it| it.escalated_at),
        "updated_at": breaker.updated_at,
    })
}
