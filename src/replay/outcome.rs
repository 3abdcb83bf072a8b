//! How a recorded attempt or child ended, as far as the recording says.

use std::rc::Rc;

use serde_json::Value;

use crate::base::failure::{Failure, FailureClass};
use crate::protocol::task::{ReportStatus, StepReport, StepStatus, TaskReport};
use crate::run::RunStatus;

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub enum AttemptEnd {
    Completed {
        output: Rc<Value>,
        steps: Rc<[StepReport]>,
    },
    Failed {
        error: Failure,
        steps: Rc<[StepReport]>,
    },
    /// A limit cut it. `is_reported`: its executor said so; otherwise the run's alarm found it.
    TimedOut {
        step_ref: Option<String>,
        is_reported: bool,
        steps: Rc<[StepReport]>,
        /// The limit of a step that passed, where its steps are not recorded. 0: none, but that of its task or its own.
        step_limit_ms: Option<u64>,
    },
    /// It ended without a report, and the next attempt began.
    Lost,
    /// What it would have answered is not known: something else ended it, or it is under way where the recording ends.
    Open {
        is_under_way: bool,
    },
}

impl AttemptEnd {
    pub fn empty_report(&self, token_id: &str, epoch: u64) -> TaskReport {
        TaskReport {
            token_id: token_id.to_string(),
            epoch,
            status: ReportStatus::Failed,
            output: None,
            error: None,
            steps: Vec::new(),
            partial: Vec::new(),
            checkpoint: None,
            events: Vec::new(),
            gave_up_before: None,
        }
    }

    /// The report of the executor. `None`: none came.
    pub fn report(&self, token_id: &str, epoch: u64) -> Option<TaskReport> {
        let empty = self.empty_report(token_id, epoch);
        match self {
            AttemptEnd::Completed { output, steps } => Some(TaskReport {
                status: ReportStatus::Completed,
                output: Some(Value::clone(output)),
                steps: steps.to_vec(),
                ..empty
            }),
            AttemptEnd::Failed { error, steps } => Some(TaskReport {
                error: Some(error.clone()),
                steps: steps.to_vec(),
                ..empty
            }),
            AttemptEnd::TimedOut {
                step_ref,
                is_reported: true,
                steps,
                step_limit_ms,
            } => Some(TaskReport {
                status: ReportStatus::TimedOut,
                steps: match (step_ref, step_limit_ms) {
                    (Some(step_ref), Some(limit_ms)) => vec![only_call(step_ref, *limit_ms)],
                    (_, _) => steps.to_vec(),
                },
                error: Some(Failure {
                    step_ref: step_ref.clone(),
                    ..Failure::new("execution_timeout", FailureClass::Timeout, "the call was cut")
                }),
                ..empty
            }),
            AttemptEnd::TimedOut {
                is_reported: false, ..
            }
            | AttemptEnd::Lost
            | AttemptEnd::Open { .. } => None,
        }
    }

    /// What is recorded of its steps.
    pub fn steps(&self) -> &[StepReport] {
        match self {
            AttemptEnd::Completed { steps, .. }
            | AttemptEnd::Failed { steps, .. }
            | AttemptEnd::TimedOut { steps, .. } => steps,
            AttemptEnd::Lost | AttemptEnd::Open { .. } => &[],
        }
    }

    /// The body of the callback of an async action.
    pub fn callback(&self) -> Option<Value> {
        match self {
            AttemptEnd::Completed { output, .. } => Some(serde_json::json!({"output": output})),
            AttemptEnd::Failed { error, .. } => {
                Some(serde_json::json!({"error": {"code": error.code, "message": error.message}}))
            }
            AttemptEnd::TimedOut { .. } | AttemptEnd::Lost | AttemptEnd::Open { .. } => None,
        }
    }
}

/// From it the engine sees which limit passed.
pub fn only_call(step_ref: &str, duration_ms: u64) -> StepReport {
    StepReport {
        reference: step_ref.to_string(),
        status: StepStatus::TimedOut,
        attempts: 1,
        duration_ms,
        retries: Vec::new(),
        started_at: None,
        span_id: None,
        gen_ai: None,
    }
}

/// How a called workflow ended.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildEnd {
    pub status: RunStatus,
    pub output: Option<Rc<Value>>,
    pub error: Option<Rc<Failure>>,
}
