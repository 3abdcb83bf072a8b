//! Messages between run objects. They are persisted in the outbox until they have arrived, so their JSON is pinned.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::protocol::start::EventRef;

pub use crate::protocol::child::{ChildNews, ChildReport};

/// What must reach another run's object, however often it takes. Persisted until it did.
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
        /// What is left of the parent, if the child may not have more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget_ms: Option<u64>,
        /// The limit is the node's: the child ends when it passes.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        node_decides: bool,
    },
    /// Stand still, or go on. A word with a lower number than one that was heard means nothing any more.
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
        news: ChildNews,
    },
    /// An event for every workflow that it triggers. Whoever hears the key again has heard it before.
    Emit {
        key: String,
        name: String,
        payload: Value,
        /// How many events lead to the runs it starts.
        hops: u32,
        /// Workflows up to this one have heard it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
        /// The first of the events that lead to the runs it starts, where this one is not it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        root: Option<EventRef>,
    },
}
