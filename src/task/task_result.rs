//! What came of a task, and the report that is made of it.

use serde_json::Value;

use crate::base::failure::Failure;
use crate::base::time::Millis;
use crate::protocol::task::{Artifact, Checkpoint, Emitted, ReportStatus, StepReport, TaskReport};

#[derive(Debug)]
pub struct TaskResult {
    pub status: ReportStatus,
    pub output: Option<Value>,
    pub error: Option<Failure>,
    pub steps: Vec<StepReport>,
    pub partial: Vec<Artifact>,
    pub checkpoint: Option<Box<Checkpoint>>,
    /// Empty unless the task completed.
    pub events: Vec<Emitted>,
    /// `run_ends_at`, if that is why something was not retried.
    pub gave_up_before: Option<Millis>,
}

impl TaskResult {
    /// Of a task that could not be started.
    pub fn failed(failure: Failure) -> TaskResult {
        TaskResult {
            status: ReportStatus::Failed,
            output: None,
            error: Some(failure),
            steps: Vec::new(),
            partial: Vec::new(),
            checkpoint: None,
            events: Vec::new(),
            gave_up_before: None,
        }
    }

    pub fn into_report(self, token_id: String, epoch: u64) -> TaskReport {
        TaskReport {
            token_id,
            epoch,
            status: self.status,
            output: self.output,
            error: self.error,
            steps: self.steps,
            partial: self.partial,
            checkpoint: self.checkpoint,
            events: self.events,
            gave_up_before: self.gave_up_before,
        }
    }
}
