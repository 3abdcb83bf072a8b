//! The messages between an executor and a breaker's object, and the view of a breaker. Both sides belong to one deployment but
//! may be different builds: unknown fields are ignored, and new fields are optional.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::base::time::Millis;
use crate::breaker::machine::{AdmissionDecision, Breaker, CallOutcome};

/// Body of `/ask`.
#[derive(Debug, Serialize, Deserialize)]
pub struct AdmissionRequest {
    pub key: String,
    #[serde(default)]
    pub deadline_at: Option<Millis>,
}

/// Body of `/report`.
#[derive(Debug, Serialize, Deserialize)]
pub struct OutcomeReport {
    pub key: String,
    pub outcome: CallOutcome,
    #[serde(default)]
    pub trial: Option<u64>,
}

/// The response to both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum AdmissionResponse {
    Closed { failures: u32 },
    Trial { trial: u64 },
    Open { retry_after_ms: u64, escalated: bool },
}

impl From<AdmissionDecision> for AdmissionResponse {
    fn from(decision: AdmissionDecision) -> AdmissionResponse {
        match decision {
            AdmissionDecision::Closed { failures } => AdmissionResponse::Closed { failures },
            AdmissionDecision::Trial { number } => AdmissionResponse::Trial { trial: number },
            AdmissionDecision::Open {
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
        "state": breaker.state(),
        "failures": breaker.failures,
        "opened_at": opening.map(|it| it.opened_at),
        "trial_at": opening.map(|it| it.trial_at),
        "escalated_at": opening.and_then(|it| it.escalated_at),
        "updated_at": breaker.updated_at,
    })
}
