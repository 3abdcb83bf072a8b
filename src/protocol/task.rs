//! What travels between the coordinator and an executor. Both are deployed apart, so this is a promise:
//! pinned by golden files, read leniently, extended only by optional fields.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::base::failure::{Failure, FailureClass};
use crate::base::time::Millis;

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
    /// The attempt's own. The executor stops at it.
    pub deadline_at: Option<Millis>,
    /// When the run ends if nothing changes. The coordinator ends the call then, so the executor does not: the run may
    /// be extended meanwhile. But no call is made again that would begin later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_ends_at: Option<Millis>,
    /// The same for every attempt of the token: what a peer needs to do the work once.
    pub idempotency_key: &'a str,
    /// A `Checkpoint` of an earlier attempt, to go on from. Text: the coordinator stores it and hands it on unread.
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    pub resume_from: Option<&'a RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_timeouts: Option<ActionTimeouts>,
    /// Where the result of an async action is to be brought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_url: Option<&'a str>,
}

impl TaskOrder<'_> {
    /// Where to go on. One that does not parse counts as none: doing the work again is better than not doing it.
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        self.resume_from
            .and_then(|text| serde_json::from_str(text.get()).ok())
    }
}

/// Limits of single actions inside a task, for those whose document says nothing about their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionTimeouts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llm_call_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_ms: Option<u64>,
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
    /// What an attempt that did not complete has to show.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partial: Vec<Artifact>,
    /// Where another attempt may go on, if this one finished a step but not the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Box<Checkpoint>>,
    /// What a task that completed has emitted, in the order of its steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Emitted>,
    /// The `run_ends_at` of the order, where another call or another round was due and not made because it would have
    /// begun after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gave_up_before: Option<Millis>,
}

/// An event on its way to the workflows that it triggers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Emitted {
    pub name: String,
    #[serde(default)]
    pub payload: Value,
}

/// The result of a finished step, or what had arrived of one that was stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// The `ref` of the step.
    pub name: String,
    /// False if the step was stopped, and also if `text` was cut.
    pub complete: bool,
    /// The size before any cut.
    pub bytes: u64,
    /// A string as it is, anything else as JSON.
    pub text: String,
}

/// The context of a task before the step that did not finish.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The `ref` of the step to go on with.
    pub next: String,
    pub state: Value,
    pub output: Value,
    pub wrote_output: bool,
    pub last_result: Value,
    /// The steps before `next`, for the report of the attempt that goes on.
    pub steps: Vec<StepReport>,
    /// What those steps have emitted: it leaves when the task completes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Emitted>,
    /// Business retries of the task before this pass: each has idempotency keys of its own.
    #[serde(default, skip_serializing_if = "is_first_round")]
    pub rounds_before: u32,
}

fn is_first_round(rounds_before: &u32) -> bool {
    *rounds_before == 0
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportStatus {
    Completed,
    Failed,
    TimedOut,
    /// The call was understood; its result comes by the callback.
    Suspended,
}

impl ReportStatus {
    pub fn name(self) -> &'static str {
        match self {
            ReportStatus::Completed => "completed",
            ReportStatus::Failed => "failed",
            ReportStatus::TimedOut => "timed_out",
            ReportStatus::Suspended => "suspended",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepReport {
    #[serde(rename = "ref")]
    pub reference: String,
    pub status: StepStatus,
    pub attempts: u32,
    pub duration_ms: u64,
    /// What each attempt but the last one failed with, and how long the next one waited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retries: Vec<RetryReport>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryReport {
    pub class: FailureClass,
    pub code: String,
    pub delay_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    Completed,
    Skipped,
    Failed,
    TimedOut,
}
