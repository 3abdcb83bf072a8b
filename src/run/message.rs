//! Messages between run objects. The outbox persists them until they are delivered, so their JSON is pinned.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::protocol::start::EventRef;

pub use crate::protocol::child::{ChildReport, ChildStatusUpdate};

/// A message to another run's object, re-sent until it is delivered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Message {
    StartChild {
        run_id: String,
        node_id: String,
        token_id: String,
        epoch: u64,
        input: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
        /// The remaining time of the parent, if it bounds the child.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget_ms: Option<u64>,
        /// The limit was set by the calling node: the child ends when it passes.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        node_decides: bool,
    },
    /// Pauses or resumes the child. The child ignores a message with a lower number than one it has received.
    HoldChild {
        run_id: String,
        number: u64,
        held: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget_ms: Option<u64>,
        /// The token that waits for the child.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token_id: Option<String>,
    },
    CancelChild {
        run_id: String,
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token_id: Option<String>,
    },
    NotifyParent {
        run_id: String,
        report: ChildReport,
    },
    TellParent {
        run_id: String,
        news: ChildStatusUpdate,
    },
    /// An event for every workflow that it triggers. Receivers ignore a key that they have already seen.
    Emit {
        key: String,
        name: String,
        payload: Value,
        /// Length of the chain of events that leads to the runs it starts.
        hops: u32,
        /// Workflows up to this one have received it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
        /// The first event of that chain, if it is not this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        root: Option<EventRef>,
    },
}
