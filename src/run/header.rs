//! What is true of a run as a whole, what was asked of it, and what an operator may set.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::base::failure::Failure;
use crate::base::time::{DAY, Millis, SECOND};
use crate::run::token::unroutable::Routes;

pub use crate::protocol::child::RunStatus;
pub use crate::protocol::start::{EventRef, ParentLink, StartRequest, TriggeredBy};

/// What is true of the run as a whole. Saved when the run starts, changes status, and ends.
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
    /// How many events led here, one after the other.
    pub hops: u32,
    /// The first of them.
    pub root_event: Option<EventRef>,
    /// Since when the clocks stand still.
    pub paused_at: Option<Millis>,
    /// Who keeps them from going: they go on when the last one lets go.
    pub pause_reasons: BTreeSet<PauseReason>,
    /// The number of the last word heard from the parent about holding, and of the last one said to children: words
    /// may overtake each other.
    pub hold_seq_received: u64,
    pub hold_seq_sent: u64,
    /// The limit is the rest of the parent's.
    pub on_budget: bool,
    /// The run's own deadline was warned of.
    pub warned: bool,
    /// Gates of the run as a whole, opened so far.
    pub gates_opened: u64,
    /// What the capabilities of its async actions are made of; only where there are any.
    pub secret: Option<String>,
    /// How often the run has ended. What an end cut off carries its number.
    pub ends: u64,
    /// Tokens born in earlier attempts: limits count within one.
    pub tokens_before: u64,
    /// Grows with every announcement, so that the index can tell an old message from a new one.
    pub revision: u64,
    pub child_ids: ChildIds,
}

/// How the ids of a run's children are written. A run keeps the form it began with, so that it goes on finding the
/// children an older build has started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildIds {
    /// `run.t3`: any caller may have chosen that id before.
    #[default]
    Dotted,
    /// `run~t3`: no caller may write a `~` in an id.
    Reserved,
}

impl Header {
    /// The run ended because it met one of its bounds: a path was cut where it would have gone on, and no token
    /// remembers where.
    pub fn met_a_bound(&self) -> bool {
        let error = self.error.as_ref();
        error.is_some_and(|error| error.code == LIMIT_EXCEEDED && error.token_id.is_none())
    }
}

/// The code of a failure by one of the run's bounds.
pub(in crate::run) const LIMIT_EXCEEDED: &str = "limit_exceeded";

/// Who keeps the clocks from going.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// Somebody paused the run.
    Person,
    /// The run's limit passed: a person extends, aborts or fails it.
    WorkflowTimeout,
    /// The run was brought back from its end, in front of a person.
    Escalation,
    /// The run that called this one stands still.
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

/// The first of the events that led to a run. A run that an older build started does not know it where there were several:
/// there the count begins anew with the event that started the run.
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

/// What an operator may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long after its deadline an executor may still report before it counts as gone.
    pub grace_ms: u64,
    /// How often an attempt without news is looked after.
    pub watch_ms: u64,
    /// How long after a timeout the next attempt is made; twice as long after each further one.
    pub retry_delay_ms: u64,
    /// Whether tasks that take long go by the queue.
    pub queue: bool,
    /// What there is to dispatch by.
    pub routes: Routes,
    /// How often a token without a route looks for one, and how long before it fails.
    pub pending_ms: u64,
    pub no_route_ms: u64,
    /// How long an attempt may lie in the queue before it is rung for again, and before it is made anew.
    pub ring_ms: u64,
    pub claim_ms: u64,
    /// How long an attempt out of the queue may be silent.
    pub heartbeat_ms: u64,
    /// The least an async action has for its result.
    pub suspend_ms: u64,
    /// How often an attempt may vanish before its token fails.
    pub lost_max: u32,
    /// How long an ended run is kept.
    pub retention_ms: u64,
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
            ring_ms: 10 * SECOND,
            claim_ms: 30 * SECOND,
            heartbeat_ms: 300 * SECOND,
            suspend_ms: 30 * SECOND,
            lost_max: 5,
            retention_ms: 30 * DAY,
        }
    }
}

/// `run` in expressions.
pub(in crate::run) fn facts_of(header: &Header) -> Value {
    json!({
        "id": header.id,
        "started_at": header.started_at,
        "attempt": header.attempt,
    })
}
