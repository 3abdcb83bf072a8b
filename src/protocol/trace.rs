//! What the trace of an ended run is made of. The run's object answers with pages of it; the index consumer makes spans of them.
//! Never an input, an output, a message of a failure or a name of a person.

use serde::{Deserialize, Serialize};

use crate::base::failure::FailureClass;
use crate::base::time::Millis;
use crate::base::trace::TraceParent;
use crate::protocol::child::RunStatus;
use crate::protocol::task::StepReport;

/// Where a page begins: after an event or a token. Events come first, because spans of tokens contain them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceCursor {
    Events(u64),
    Tokens(u64),
}

impl TraceCursor {
    pub const START: TraceCursor = TraceCursor::Events(0);
}

/// The body of the response to `RunRequest::ReadTrace`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TracePage {
    /// `None`: there is nothing to export.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<TracedRun>,
    /// Exceptional events, of tokens and of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<TracedEvent>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<TracedToken>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<TraceCursor>,
}

/// The run from its start, or from where it went on, to one of its ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TracedRun {
    pub run_id: String,
    /// Part of the ids of its spans.
    pub started_at: Millis,
    pub workflow_id: String,
    pub version: u64,
    pub attempt: u64,
    /// The number of the end.
    pub end: u64,
    pub status: RunStatus,
    pub began_at: Millis,
    pub ended_at: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TracedError>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<TraceParent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_run_id: Option<String>,
    /// The name of the event that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggered_by: Option<String>,
    /// Gates of the run as a whole. Only on the first page.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<TracedGate>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedError {
    pub code: String,
    pub class: FailureClass,
    /// The step that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_ref: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedEvent {
    pub seq: u64,
    pub at: Millis,
    /// As in `GET /v1/runs/{id}/events`.
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_run_id: Option<String>,
    /// The step that a timeout stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_ref: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TracedToken {
    /// Its number.
    pub id: u64,
    pub node_id: String,
    /// `None`: the run's version has no such node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<TracedKind>,
    pub status: String,
    pub epoch: u64,
    pub created_at: Millis,
    /// Of the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TracedError>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<TracedStep>,
    /// The only step of its task, and the kind of its action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_step: Option<(String, String)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<TracedEvent>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<TracedGate>,
    /// The node of the join that it waited at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joins_at: Option<String>,
    /// The token whose work it undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compensates: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<TracedBranch>,
}

/// What the node of a token does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TracedKind {
    Task,
    Workflow,
    Gate,
    Wait,
    PassThrough,
    Compensation,
    EndHandler,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedBranch {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    pub index: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedStep {
    /// The kind of its action. `None`: the run's version has no such step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    #[serde(flatten)]
    pub report: StepReport,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedGate {
    pub id: String,
    pub kind: String,
    pub opened_at: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Millis>,
    pub status: String,
}
