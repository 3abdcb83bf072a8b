//! The header of a run, and the settings of the deployment.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::base::failure::Failure;
use crate::base::limits::TIMEOUT_MAX_MS;
use crate::base::time::{DAY, Millis, SECOND};
use crate::base::trace::{RunSpans, TraceId, TraceParent};
use crate::run::notification::NotifySettings;
use crate::run::recovery::compensate::CompensationResult;
use crate::run::recovery::ending::{EndPhase, Ending, HandlerResult};
use crate::run::time::row_events::RowEvent;
use crate::run::token::unroutable::Routes;
use crate::run::wait::capability::CallbackSecret;

pub use crate::protocol::child::RunStatus;
pub use crate::protocol::start::{EventRef, ParentLink, StartRequest, TriggeredBy};

/// The state of the run as a whole. Saved when the run starts, changes status, and ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    pub id: String,
    pub workflow_id: String,
    pub version: u64,
    pub status: RunStatus,
    pub started_at: Millis,
    pub ended_at: Option<Millis>,
    pub timeout_at: Option<Millis>,
    pub timeout_ms: Option<u64>,
    pub attempt: u64,
    pub output: Option<Value>,
    pub error: Option<Failure>,
    pub reason: Option<String>,
    pub tags: Vec<String>,
    pub request: StartRequest,
    pub parent: Option<ParentLink>,
    pub root_run_id: String,
    pub depth: u32,
    /// The event that started it.
    pub triggered_by: Option<TriggeredBy>,
    /// The name of the caller that started it, published its event, or started the topmost run.
    pub started_by: Option<String>,
    /// Length of the chain of events that led to this run.
    pub hops: u32,
    /// The first event of that chain.
    pub root_event: Option<EventRef>,
    /// When the run was paused. Its deadlines do not advance while it is paused.
    pub paused_at: Option<Millis>,
    /// Since when the clock of the run's limit stands still at gates. Unset while the run is paused, which stops every clock.
    pub stopped_at: Option<Millis>,
    /// Why the run is paused. It resumes when the last reason is removed.
    pub pause_reasons: BTreeSet<PauseReason>,
    /// Sequence numbers of the last pause message received from the parent, and of the last one sent to children. Messages
    /// may arrive out of order.
    pub hold_seq_received: u64,
    pub hold_seq_sent: u64,
    /// The run's limit is the remaining time of its parent.
    pub on_budget: bool,
    /// The warning for the run's own deadline was sent.
    pub warned: bool,
    /// Gates opened so far for the run as a whole.
    pub gates_opened: u64,
    /// For the capabilities of async actions. Only set if the workflow, or one that it calls, has any.
    pub callback_secret: Option<CallbackSecret>,
    /// How often the run has ended. Tokens that an end interrupted carry its number.
    pub ends: u64,
    /// Tokens created in earlier attempts of the run. Limits apply to each attempt separately.
    pub tokens_before: u64,
    /// Incremented with every saved header, so that the index can ignore messages that arrive out of order.
    pub revision: u64,
    pub child_ids: ChildIds,
    /// The run is ending.
    pub ending: Option<Box<Ending>>,
    /// What the last end compensated.
    pub compensation: Option<CompensationResult>,
    /// Results of the end handlers of the last end.
    pub on_end: Vec<HandlerResult>,
    /// Work that was done up to this number (`Token::exit_order`) is final: the run had completed, or the work was compensated.
    pub settled_order: u64,
    /// Its start and its end, as part of the run's history.
    pub events: Vec<RowEvent>,
    /// The last bulk operation that extended the run.
    pub extended_by_operation: Option<String>,
    /// Rows that the object has written for the run, this header included. Those after the last saved header are not counted if
    /// the object leaves memory.
    pub rows_written: u64,
    /// The span of the caller, of the parent's token or of the emitting token.
    pub traceparent: Option<TraceParent>,
}

/// The format of the ids of a run's children. A run keeps the format it started with, so that it still finds children
/// started by an older build.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildIds {
    /// `run.t3`: a caller may already have used that id.
    #[default]
    Dotted,
    /// `run~t3`: callers may not use `~` in an id.
    Reserved,
}

impl Header {
    /// The ids of the run's spans.
    pub fn spans(&self) -> RunSpans<'_> {
        RunSpans {
            run_id: &self.id,
            started_at: self.started_at,
        }
    }

    /// The same for all attempts of the run.
    pub fn trace_id(&self) -> TraceId {
        let continued = self.traceparent.map(|parent| parent.trace_id);
        continued.unwrap_or_else(|| self.spans().trace_id())
    }

    /// Whether the run's spans may be exported: unless it continues a trace that is not recorded.
    pub fn is_sampled(&self) -> bool {
        self.traceparent.is_none_or(|parent| parent.sampled)
    }

    /// What a child that this run starts knows of it.
    pub fn link_to_child(&self, token_id: String, epoch: u64) -> ParentLink {
        ParentLink {
            run_id: self.id.clone(),
            token_id,
            epoch,
            root_run_id: self.root_run_id.clone(),
            depth: self.depth + 1,
            hops: self.hops,
            root_event: self.root_event.clone(),
        }
    }

    /// The secret for the start of a child.
    pub fn callback_secret_of(&self, child_id: &str) -> Option<String> {
        self.callback_secret.as_ref()?.of_child(child_id)
    }

    /// When the run's limit passes. None while its clock stands still at gates.
    pub fn limit_due_at(&self) -> Option<Millis> {
        self.timeout_at.filter(|_| self.stopped_at.is_none())
    }

    /// The run ended because it exceeded one of its limits. A path was cut, and no token records where.
    pub fn reached_a_limit(&self) -> bool {
        let error = self.error.as_ref();
        error.is_some_and(|error| error.code == LIMIT_EXCEEDED && error.token_id.is_none())
    }
}

/// The error code for exceeding one of the run's limits.
pub(in crate::run) const LIMIT_EXCEEDED: &str = "limit_exceeded";

/// Why a run is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// A user paused the run.
    Person,
    /// The run's limit passed, and a person is to extend, abort or fail it.
    WorkflowTimeout,
    /// The run was resumed after its end and waits for a person's decision.
    Escalation,
    /// The parent run is paused.
    Parent,
}

impl PauseReason {
    pub fn name(self) -> &'static str {
        match self {
            PauseReason::Person => "person",
            PauseReason::WorkflowTimeout => "workflow_timeout",
            PauseReason::Escalation => "escalation",
            PauseReason::Parent => "parent",
        }
    }
}

/// The first of the events that led to a run. Runs of older builds did not record it; for them it is the event that started
/// the run.
pub fn root_event_of(parent: Option<&ParentLink>, triggered_by: Option<&TriggeredBy>) -> Option<EventRef> {
    match triggered_by {
        Some(event) => Some(event.root.clone().unwrap_or_else(|| EventRef {
            event: event.event.clone(),
            key: event.key.clone(),
        })),
        None => parent.and_then(|parent| parent.root_event.clone()),
    }
}

/// How many events led to a run.
pub fn hops_of(parent: Option<&ParentLink>, triggered_by: Option<&TriggeredBy>) -> u32 {
    let inherited = parent.map(|parent| parent.hops);
    triggered_by.map(|event| event.hops).or(inherited).unwrap_or(0)
}

/// Settings of the deployment. Those of time are part of an export, so that a replay has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// How long after an attempt's deadline its report is still accepted.
    pub grace_ms: u64,
    /// How often an attempt without a report is checked.
    pub watch_ms: u64,
    /// The delay before the first retry after a timeout. It doubles with each further retry.
    pub retry_delay_ms: u64,
    /// Whether long tasks are dispatched through the queue.
    pub queue: bool,
    /// The bindings available for dispatch.
    pub routes: Routes,
    /// How often an unroutable token retries its dispatch, and after how long it fails.
    pub pending_ms: u64,
    pub no_route_ms: u64,
    /// How long an attempt may be unclaimed before its queue message is re-sent, and before the attempt is recreated.
    pub resend_ms: u64,
    pub claim_ms: u64,
    /// How long a claimed attempt may go without a heartbeat.
    pub heartbeat_ms: u64,
    /// How often the progress of a claimed attempt is saved at most.
    pub progress_save_ms: u64,
    /// The minimum time an async action has for its callback.
    pub suspend_ms: u64,
    /// How many attempts of a token may be lost before the token fails.
    pub lost_max: u32,
    /// How long an ended run is kept.
    pub retention_ms: u64,
    /// The longest computed sleep.
    pub timeout_max_ms: u64,
    /// Has the addresses and secrets of the deployment's targets.
    #[serde(skip)]
    pub notify: NotifySettings,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            grace_ms: 500,
            watch_ms: 30 * SECOND,
            retry_delay_ms: SECOND,
            queue: false,
            routes: Routes::ALL,
            pending_ms: 5 * SECOND,
            no_route_ms: 300 * SECOND,
            resend_ms: 10 * SECOND,
            claim_ms: 30 * SECOND,
            heartbeat_ms: 300 * SECOND,
            progress_save_ms: 30 * SECOND,
            suspend_ms: 30 * SECOND,
            lost_max: 5,
            retention_ms: 30 * DAY,
            timeout_max_ms: TIMEOUT_MAX_MS,
            notify: NotifySettings::DEFAULT,
        }
    }
}

/// `run` in expressions. End handlers also get how the run ends.
pub(in crate::run) fn facts_of(header: &Header) -> Value {
    let mut facts = json!({
        "id": header.id,
        "started_at": header.started_at,
        "attempt": header.attempt,
    });
    let ending = header.ending.as_deref();
    if let Some(ending) = ending.filter(|ending| matches!(ending.phase, EndPhase::Handling { .. })) {
        facts["status"] = json!(ending.status);
        facts["error"] = json!(ending.error);
        facts["output"] = json!(ending.output);
    }
    facts
}
