//! The messages between the coordinator and an executor. They are deployed separately, so these shapes are pinned by golden files:
//! unknown fields are ignored, and new fields are optional.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::base::failure::{Failure, FailureClass};
use crate::base::from_json::from_json;
use crate::base::time::Millis;
use crate::base::trace::SpanId;

/// One attempt of a token, as the executor gets it.
#[derive(Debug, Serialize, Deserialize)]
pub struct TaskOrder<'a> {
    pub run_id: &'a str,
    pub token_id: &'a str,
    pub epoch: u64,
    /// Unparsed, because the executor caches parsed tasks by their text.
    #[serde(borrow)]
    pub task: &'a RawValue,
    #[serde(borrow)]
    pub input: &'a RawValue,
    /// The deadline of the attempt, which the executor enforces.
    pub deadline_at: Option<Millis>,
    /// When the run ends. The coordinator ends the call then, not the executor, because the run may be extended. But the executor
    /// starts no retry after this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_ends_at: Option<Millis>,
    /// The same for every attempt of the token, so that a peer can do the work once.
    pub idempotency_key: &'a str,
    /// The `Checkpoint` of an earlier attempt. Unparsed, because the coordinator only stores and sends it.
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    pub resume_from: Option<&'a RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_timeouts: Option<ActionTimeouts>,
    /// Where the result of an async action is to be posted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_url: Option<&'a str>,
    /// The trace context of the attempt's calls, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<&'a str>,
    /// The span in `traceparent` is the attempt's, and each step has its own. Otherwise the header is passed on as it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub records_spans: bool,
}

impl TaskOrder<'_> {
    /// An invalid checkpoint counts as none: doing the work again is better than not doing it.
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        self.resume_from.and_then(|text| from_json(text.get()).ok())
    }
}

/// Limits of the actions of a task that have none of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionTimeouts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llm_call_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_ms: Option<u64>,
}

/// A message of the task queue: a consumer claims the attempt from its run's object, which has everything else about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskMessage {
    pub run_id: String,
    pub token_id: String,
    pub epoch: u64,
}

/// In the message of a failure: it would be tried again if there was more time. What is missing follows.
pub const NOT_TRIED_AGAIN: &str = "; not tried again: ";

/// The result of an attempt.
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
    /// The artifacts of an attempt that did not complete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partial: Vec<Artifact>,
    /// Where another attempt may resume, if this one finished a step but not the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Box<Checkpoint>>,
    /// The events of a task that completed, in the order of its steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Emitted>,
    /// The `run_ends_at` of the order, if a retry was due but would have begun after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gave_up_before: Option<Millis>,
}

/// An event for the workflows that it triggers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Emitted {
    pub name: String,
    #[serde(default)]
    pub payload: Value,
}

/// The result of a finished step, or the text that had arrived of a stopped one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// The `ref` of the step.
    pub name: String,
    /// False if the step was stopped, and also if `text` was cut.
    pub complete: bool,
    /// The size before any cut.
    pub bytes: u64,
    /// A string verbatim, any other value as JSON.
    pub text: String,
}

/// How far an attempt has come, while it runs. The executor of a connection sends it as a line that begins with
/// `PROGRESS_LINE`, if the coordinator asked for progress; a queue consumer sends it with its heartbeats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskProgress {
    pub token_id: String,
    pub epoch: u64,
    pub progress: StepProgress,
}

/// What precedes the JSON of a `TaskProgress` in its line. A report begins with `{`.
pub const PROGRESS_LINE: &str = "progress ";

/// The step under way, and the output so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepProgress {
    pub step_ref: String,
    /// From 0.
    pub step_index: u32,
    pub steps_total: u32,
    /// The call of the step that is under way, from 1: each retry of a call counts.
    pub attempt: u32,
    /// So many artifacts of the progress before this one are unchanged, and `partial` follows them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub keep: usize,
    /// The results of finished steps, and the text that has arrived of the step under way, in the order of the steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partial: Vec<Artifact>,
}

impl StepProgress {
    /// The whole progress, after the one before it.
    pub fn after(mut self, mut before: Vec<Artifact>) -> StepProgress {
        before.truncate(std::mem::take(&mut self.keep));
        before.append(&mut self.partial);
        self.partial = before;
        self
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The context of a task before its unfinished step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The `ref` of the step to resume with.
    pub next: String,
    pub state: Value,
    pub output: Value,
    pub wrote_output: bool,
    pub last_result: Value,
    /// The steps before `next`, for the report of the attempt that resumes.
    pub steps: Vec<StepReport>,
    /// The events of those steps, which are sent when the task completes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Emitted>,
    /// Business retries of the task before this pass. Each has its own idempotency keys.
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
    /// The call was accepted; its result comes with the callback.
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
    /// The failure of each attempt but the last one, and the delay after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retries: Vec<RetryReport>,
    /// When it began, and the span that its calls carried. Only of an order that records spans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_id: Option<SpanId>,
    /// Of a step that calls a model or a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gen_ai: Option<Box<GenAi>>,
}

impl StepReport {
    /// How long the last call took. `None`: the report does not say.
    pub fn last_call_ms(&self) -> Option<u64> {
        let is_complete = self.retries.len() + 1 == self.attempts.max(1) as usize;
        let began_ms = match self.retries.last() {
            Some(retry) => retry.after_ms?.checked_add(retry.delay_ms)?,
            None => 0,
        };
        is_complete.then(|| self.duration_ms.saturating_sub(began_ms))
    }
}

/// The last call of a model or a tool. Texts have at most `GEN_AI_CHARACTERS` characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GenAi {
    pub operation: GenAiOperation,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

pub const GEN_AI_CHARACTERS: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GenAiOperation {
    Chat,
    ExecuteTool,
}

impl GenAiOperation {
    pub fn name(self) -> &'static str {
        match self {
            GenAiOperation::Chat => "chat",
            GenAiOperation::ExecuteTool => "execute_tool",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryReport {
    pub class: FailureClass,
    pub code: String,
    pub delay_ms: u64,
    /// When the call failed, counted from the beginning of its step. Absent in reports of earlier builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    Completed,
    Skipped,
    Failed,
    TimedOut,
}
