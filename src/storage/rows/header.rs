//! Row `header`: identity and state of the run. Field names on disk never change; a new field is optional.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{is_false, is_zero};
use crate::base::failure::Failure;
use crate::base::time::Millis;
use crate::base::trace::TraceParent;
use crate::run::{
    CallbackSecret, ChildIds, CompensationResult, Ending, HandlerResult, Header, ParentLink, PauseReason,
    RowEvent, RunStatus, StartRequest, TriggeredBy, hops_of, root_event_of,
};
use crate::storage::schema;

#[derive(Debug, Serialize, Deserialize)]
pub struct HeaderRow {
    pub schema: u32,
    pub id: String,
    pub workflow_id: String,
    pub version: u64,
    pub status: RunStatus,
    pub started_at: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    pub attempt: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    pub request: StartRequest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentLink>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggered_by: Option<TriggeredBy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<Millis>,
    #[serde(default, rename = "held_by", skip_serializing_if = "BTreeSet::is_empty")]
    pub pause_reasons: BTreeSet<PauseReason>,
    #[serde(default, rename = "parent_word", skip_serializing_if = "is_zero")]
    pub hold_seq_received: u64,
    #[serde(default, rename = "words_said", skip_serializing_if = "is_zero")]
    pub hold_seq_sent: u64,
    #[serde(default, skip_serializing_if = "is_false")]
    pub on_budget: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub warned: bool,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gates_opened: u64,
    /// A random secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub derived_secret: Option<String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ends: u64,
    #[serde(default)]
    pub tokens_before: u64,
    pub revision: u64,
    #[serde(default, skip_serializing_if = "is_dotted")]
    pub child_ids: ChildIds,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Box<Ending>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compensation: Option<CompensationResult>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_end: Vec<HandlerResult>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub settled_order: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<RowEvent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extended_by_operation: Option<String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rows_written: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<TraceParent>,
}

/// Rows of older builds do not have the field.
fn is_dotted(form: &ChildIds) -> bool {
    *form == ChildIds::Dotted
}

impl HeaderRow {
    pub fn of(header: &Header) -> HeaderRow {
        let header = header.clone();
        let (secret, derived_secret) = match header.callback_secret {
            Some(CallbackSecret::Random(secret)) => (Some(secret), None),
            Some(CallbackSecret::Derived(secret)) => (None, Some(secret)),
            None => (None, None),
        };
        HeaderRow {
            schema: schema::VERSION,
            id: header.id,
            workflow_id: header.workflow_id,
            version: header.version,
            status: header.status,
            started_at: header.started_at,
            ended_at: header.ended_at,
            timeout_at: header.timeout_at,
            timeout_ms: header.timeout_ms,
            attempt: header.attempt,
            output: header.output,
            error: header.error,
            reason: header.reason,
            tags: header.tags,
            request: header.request,
            parent: header.parent,
            triggered_by: header.triggered_by,
            started_by: header.started_by,
            paused_at: header.paused_at,
            stopped_at: header.stopped_at,
            pause_reasons: header.pause_reasons,
            hold_seq_received: header.hold_seq_received,
            hold_seq_sent: header.hold_seq_sent,
            on_budget: header.on_budget,
            warned: header.warned,
            gates_opened: header.gates_opened,
            secret,
            derived_secret,
            ends: header.ends,
            tokens_before: header.tokens_before,
            revision: header.revision,
            child_ids: header.child_ids,
            ending: header.ending,
            compensation: header.compensation,
            on_end: header.on_end,
            settled_order: header.settled_order,
            events: header.events,
            extended_by_operation: header.extended_by_operation,
            rows_written: header.rows_written,
            traceparent: header.traceparent,
        }
    }

    pub fn into_header(mut self) -> Header {
        // Older builds stored no reason: only a person could pause a run.
        if self.paused_at.is_some() && self.pause_reasons.is_empty() {
            self.pause_reasons.insert(PauseReason::Person);
        }
        Header {
            root_run_id: self
                .parent
                .as_ref()
                .map_or_else(|| self.id.clone(), |parent| parent.root_run_id.clone()),
            depth: self.parent.as_ref().map_or(0, |parent| parent.depth),
            hops: hops_of(self.parent.as_ref(), self.triggered_by.as_ref()),
            root_event: root_event_of(self.parent.as_ref(), self.triggered_by.as_ref()),
            triggered_by: self.triggered_by,
            started_by: self.started_by,
            parent: self.parent,
            paused_at: self.paused_at,
            stopped_at: self.stopped_at,
            pause_reasons: self.pause_reasons,
            hold_seq_received: self.hold_seq_received,
            hold_seq_sent: self.hold_seq_sent,
            on_budget: self.on_budget,
            warned: self.warned,
            gates_opened: self.gates_opened,
            callback_secret: match self.derived_secret {
                Some(secret) => Some(CallbackSecret::Derived(secret)),
                None => self.secret.map(CallbackSecret::Random),
            },
            ends: self.ends,
            tokens_before: self.tokens_before,
            id: self.id,
            workflow_id: self.workflow_id,
            version: self.version,
            status: self.status,
            started_at: self.started_at,
            ended_at: self.ended_at,
            timeout_at: self.timeout_at,
            timeout_ms: self.timeout_ms,
            attempt: self.attempt,
            output: self.output,
            error: self.error,
            reason: self.reason,
            tags: self.tags,
            request: self.request,
            revision: self.revision,
            child_ids: self.child_ids,
            ending: self.ending,
            compensation: self.compensation,
            on_end: self.on_end,
            settled_order: self.settled_order,
            events: self.events,
            extended_by_operation: self.extended_by_operation,
            rows_written: self.rows_written,
            traceparent: self.traceparent,
        }
    }
}
