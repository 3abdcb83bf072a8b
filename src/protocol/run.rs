//! Requests to a run's object, and its responses. API Worker, queue consumer, sweep and other runs' objects send them; they are
//! of the same deployment but not always of the same build, so the JSON is pinned by golden files and extended only by optional
//! fields. `PROTOCOL` changes with everything else.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::time::Millis;
use crate::protocol::caller::Caller;
use crate::protocol::child::{ChildReport, ChildStatusUpdate, ParentSender};
use crate::protocol::start::{ResolvedVersion, StartRun};
use crate::protocol::task::{StepProgress, TaskReport};
use crate::protocol::trace::TraceCursor;

/// Part of the URL of every request and a header of every response. A build that speaks another protocol refuses the
/// request, and its response is not taken for an answer: both would be misread.
pub const PROTOCOL: &str = "2";

/// Where every request is sent. Only the object reads it, and its host name is part of no address.
pub const REQUEST_URL: &str = "http://run/requests/2";

/// A request as it is sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunCall<Request = RunRequest> {
    /// The caller of the API. `None`: the request comes from inside (the sweep, a consumer, another run).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Caller>,
    /// The bulk operation that sends it. It may send it again, and an extension must count once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    pub request: Request,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunRequest {
    /// Starting a run again with the same command has no effect.
    Start {
        command: StartRun,
        /// How long to wait for the end of the run before its view is sent. `None`: the sender needs no view.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait_ms: Option<u64>,
    },
    Read {
        /// How long to wait for the end of the run.
        wait_ms: u64,
    },
    /// The workflow of the run, for a sender that has to resolve another version of it.
    ReadWorkflow,
    ListTokens(PageRequest),
    ListEvents(PageRequest),
    /// The history after number `after`, for a client that watches the run. The response is a `LivePage` and the events.
    ReadLive {
        after: u64,
    },
    ListTimeouts(PageRequest),
    ListNotifications(PageRequest),
    /// Every timeout of the run as a line of its log.
    ReadTimeoutLines,
    ReadTimeout {
        id: u64,
    },
    /// The ways in which an ended run can go on.
    ReadResumeOptions,
    ReadDeliverable,
    /// What an export has besides the lists of the run: the run, how it was started, its snapshot, the settings, gates and signals.
    ReadRecording,
    /// A page of what the trace of an ended run is made of.
    ReadTrace {
        /// The number of the end. `None`: the last one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        end: Option<u64>,
        cursor: TraceCursor,
    },
    Cancel {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Pause,
    Resume,
    Extend(Extension),
    Retry {
        mode: RetryMode,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token_id: Option<String>,
        /// The version to go on with; without it the run keeps its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<ResolvedVersion>,
    },
    Restart {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from_node_id: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<ResolvedVersion>,
    },
    Signal {
        name: String,
        payload: Value,
    },
    DecideGate {
        gate_id: String,
        decision: GateDecision,
    },
    /// The result of an async action.
    Callback {
        capability: String,
        body: Value,
    },
    /// The parent cancels its child.
    CancelChild {
        sender: ParentSender,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The parent pauses its child, or lets it go on.
    HoldChild {
        sender: ParentSender,
        number: u64,
        held: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget_ms: Option<u64>,
    },
    #[serde(rename = "child_news")]
    ChildStatusUpdate(ChildStatusUpdate),
    ChildEnded(ChildReport),
    /// A queue consumer asks for the order of an attempt.
    Claim {
        token_id: String,
        epoch: u64,
        /// The id of the queue's message. The same claimant may ask again, because the response may have been lost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        claimant: Option<String>,
    },
    /// The consumer of a claimed attempt still works on it.
    Heartbeat {
        token_id: String,
        epoch: u64,
        /// The whole progress, if it has changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        progress: Option<StepProgress>,
    },
    Report(TaskReport),
    /// A claimed attempt ended without a report.
    ReportLost {
        token_id: String,
        epoch: u64,
        message: String,
    },
    /// The sweep makes sure that the run's alarm is set, and reads its summary.
    Probe,
    /// The run cannot be woken without a panic and is given up.
    Abandon,
}

impl RunRequest {
    /// How long the response may be delayed at the sender's wish.
    pub fn wait_ms(&self) -> u64 {
        match self {
            RunRequest::Start { wait_ms, .. } => wait_ms.unwrap_or(0),
            RunRequest::Read { wait_ms } => *wait_ms,
            RunRequest::ReadWorkflow
            | RunRequest::ListTokens(_)
            | RunRequest::ListEvents(_)
            | RunRequest::ReadLive { .. }
            | RunRequest::ListTimeouts(_)
            | RunRequest::ListNotifications(_)
            | RunRequest::ReadTimeoutLines
            | RunRequest::ReadTimeout { .. }
            | RunRequest::ReadResumeOptions
            | RunRequest::ReadDeliverable
            | RunRequest::ReadTrace { .. }
            | RunRequest::Cancel { .. }
            | RunRequest::Pause
            | RunRequest::Resume
            | RunRequest::Extend(_)
            | RunRequest::Retry { .. }
            | RunRequest::Restart { .. }
            | RunRequest::Signal { .. }
            | RunRequest::DecideGate { .. }
            | RunRequest::Callback { .. }
            | RunRequest::CancelChild { .. }
            | RunRequest::HoldChild { .. }
            | RunRequest::ChildStatusUpdate(_)
            | RunRequest::ChildEnded(_)
            | RunRequest::Claim { .. }
            | RunRequest::Heartbeat { .. }
            | RunRequest::Report(_)
            | RunRequest::ReportLost { .. }
            | RunRequest::Probe
            | RunRequest::ReadRecording
            | RunRequest::Abandon => 0,
        }
    }
}

impl RunRequest {
    /// A retry or restart that goes on with this version. Other requests have none.
    pub fn on_version(mut self, resolved: ResolvedVersion) -> RunRequest {
        if let RunRequest::Retry { version, .. } | RunRequest::Restart { version, .. } = &mut self {
            *version = Some(resolved);
        }
        self
    }

    /// The name in the audit log of what a caller of the API asks for. `None`: it changes nothing, or only comes from inside.
    pub fn audited_action(&self) -> Option<&'static str> {
        match self {
            RunRequest::Start { .. } => Some("start"),
            RunRequest::Cancel { .. } => Some("cancel"),
            RunRequest::Pause => Some("pause"),
            RunRequest::Resume => Some("resume"),
            RunRequest::Extend(_) => Some("extend"),
            RunRequest::Retry { .. } => Some("retry"),
            RunRequest::Restart { .. } => Some("restart"),
            RunRequest::Signal { .. } => Some("signal"),
            RunRequest::DecideGate { .. } => Some("decide_gate"),
            RunRequest::Read { .. }
            | RunRequest::ReadWorkflow
            | RunRequest::ListTokens(_)
            | RunRequest::ListEvents(_)
            | RunRequest::ReadLive { .. }
            | RunRequest::ListTimeouts(_)
            | RunRequest::ListNotifications(_)
            | RunRequest::ReadTimeoutLines
            | RunRequest::ReadTimeout { .. }
            | RunRequest::ReadResumeOptions
            | RunRequest::ReadDeliverable
            | RunRequest::ReadRecording
            | RunRequest::ReadTrace { .. }
            | RunRequest::Callback { .. }
            | RunRequest::CancelChild { .. }
            | RunRequest::HoldChild { .. }
            | RunRequest::ChildStatusUpdate(_)
            | RunRequest::ChildEnded(_)
            | RunRequest::Claim { .. }
            | RunRequest::Heartbeat { .. }
            | RunRequest::Report(_)
            | RunRequest::ReportLost { .. }
            | RunRequest::Probe
            | RunRequest::Abandon => None,
        }
    }
}

/// A part of a list, in the order of the rows' numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRequest {
    pub after: u64,
    pub limit: u64,
}

/// How much more time a run gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Extension {
    #[serde(rename = "by_ms")]
    By(u64),
    #[serde(rename = "until")]
    Until(Millis),
}

/// How an ended run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryMode {
    /// From the failed tokens, with the state as it is and the results of their finished steps.
    RetryStep,
    /// From the failed tokens, without those results.
    DiscardAndRetry,
    /// From the failed tokens, after a decision at a gate.
    Escalate,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateDecision {
    pub choice: String,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub input: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(default)]
    pub at: Millis,
}

/// The response to a `RunRequest`: an HTTP status and a JSON body, because the API forwards both to its caller unread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunResponse {
    /// The run did not exist before.
    Created(String),
    Done(String),
    /// There is no such run, or no such part of it.
    NotFound(String),
    /// The run's state does not allow it; nothing changed.
    Conflict(String),
    /// Too large to be kept.
    TooLarge(String),
    /// Refused for another reason, or failed.
    Refused {
        status: u16,
        body: String,
    },
}

impl RunResponse {
    pub fn from_parts(status: u16, body: String) -> RunResponse {
        match status {
            200 => RunResponse::Done(body),
            201 => RunResponse::Created(body),
            404 => RunResponse::NotFound(body),
            409 => RunResponse::Conflict(body),
            413 => RunResponse::TooLarge(body),
            status => RunResponse::Refused { status, body },
        }
    }

    pub fn into_parts(self) -> (u16, String) {
        match self {
            RunResponse::Done(body) => (200, body),
            RunResponse::Created(body) => (201, body),
            RunResponse::NotFound(body) => (404, body),
            RunResponse::Conflict(body) => (409, body),
            RunResponse::TooLarge(body) => (413, body),
            RunResponse::Refused { status, body } => (status, body),
        }
    }
}

/// The body of the response to `RunRequest::Heartbeat`. Orders have the same field: a consumer reads it of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeartbeatResponse {
    /// When the run ends if it is not extended. The consumer sends its next heartbeat then at the latest.
    #[serde(default)]
    pub run_ends_at: Option<Millis>,
}

/// The body of the response to `RunRequest::ReadWorkflow`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowResponse {
    pub workflow_id: String,
}

/// The first line of the response to `RunRequest::ReadLive`; each further line is an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LivePage {
    /// The number of the last event of the page. It is that of the run if the page is the last.
    pub last: u64,
    pub last_of_run: u64,
    /// The run has ended.
    pub ended: bool,
}

/// The body of the response to `RunRequest::Abandon`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbandonResponse {
    pub abandoned: bool,
}
