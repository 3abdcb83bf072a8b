//! What travels between the coordinator and an executor. Both are deployed apart, so this is a promise:
//! pinned by golden files, read leniently, extended only by optional fields.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::failure::Failure;
use crate::model::time::Millis;

/// One attempt of one token, as the executor gets it.
#[derive(Debug, Serialize, Deserialize)]
pub struct TaskOrder<'a> {
    pub run_id: &'a str,
    pub token_id: &'a str,
    pub epoch: u64,
    /// Text, so that an executor that saw this task before need not parse it again.
    #[serde(borrow)]
    pub task: &'a RawValue,
    #[serde(borrow)]
    pub input: &'a RawValue,
    pub deadline_at: Option<Millis>,
    /// The same for every attempt of the token: what a peer needs to do the work once.
    pub idempotency_key: &'a str,
}

/// What came of the attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskReport {
    pub token_id: String,
    pub epoch: u64,
    pub status: ReportStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    #[serde(default)]
    pub steps: Vec<StepReport>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportStatus {
    Completed,
    Failed,
    TimedOut,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepReport {
    #[serde(rename = "ref")]
    pub reference: String,
    pub status: StepStatus,
    pub attempts: u32,
    pub duration_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    Completed,
    Skipped,
    Failed,
    TimedOut,
}
