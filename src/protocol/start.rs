//! The start of a run, as its object receives it from the API, from an event or from a parent run.

use std::rc::Rc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::base::trace::TraceParent;

/// Everything a run begins with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StartRun {
    pub run_id: String,
    /// The resolved workflow (`definition::snapshot::Stored`) as text: only the run's object parses it.
    pub stored: Rc<RawValue>,
    pub input: Value,
    pub request: StartRequest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentLink>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggered_by: Option<TriggeredBy>,
    /// For the capabilities of callbacks; see `run::CallbackKey`. Absent where the run needs none and in starts of earlier
    /// builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_secret: Option<String>,
    /// The name of the caller that led to this start. Not part of the request: another caller may repeat a start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_by: Option<String>,
    /// The trace that the run continues. Not part of the request either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<TraceParent>,
}

/// Another version of a run's workflow, resolved as for a start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResolvedVersion {
    /// As in `StartRun`.
    pub stored: Rc<RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_secret: Option<String>,
}

/// The options of a start. A second start with the same options and input is the same run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What is left of the parent's time. The run's own limit is reduced to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_ms: Option<u64>,
    /// The limit is the one of the parent's node: the run ends when it passes, and the node decides what follows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub node_decides: bool,
}

/// The token that waits for this run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentLink {
    pub run_id: String,
    pub token_id: String,
    pub epoch: u64,
    pub root_run_id: String,
    pub depth: u32,
    /// The number of events that led to the parent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hops: u32,
    /// The first of those events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_event: Option<EventRef>,
}

fn is_zero(hops: &u32) -> bool {
    *hops == 0
}

/// The event that started a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggeredBy {
    pub event: String,
    /// Identifies this one occurrence of the event.
    pub key: String,
    pub hops: u32,
    /// The first event of the chain, if this event is not the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<EventRef>,
}

/// One occurrence of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRef {
    pub event: String,
    pub key: String,
}
