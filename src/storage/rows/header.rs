//! Row `header`: what the run is and how it stands.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{is_false, is_none_yet};
use crate::base::failure::Failure;
use crate::base::time::Millis;
use crate::run::{
    ChildIds, Header, ParentLink, PauseReason, RunStatus, StartRequest, TriggeredBy, hops_of, root_event_of,
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
    pub paused_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub held_by: BTreeSet<PauseReason>,
    #[serde(default, skip_serializing_if = "is_none_yet")]
    pub parent_word: u64,
    #[serde(default, skip_serializing_if = "is_none_yet")]
    pub words_said: u64,
    #[serde(default, skip_serializing_if = "is_false")]
    pub on_budget: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub warned: bool,
    #[serde(default, skip_serializing_if = "is_none_yet")]
    pub gates_opened: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    #[serde(default, skip_serializing_if = "is_none_yet")]
    pub ends: u64,
    #[serde(default)]
    pub tokens_before: u64,
    pub revision: u64,
    #[serde(default, skip_serializing_if = "is_dotted")]
    pub child_ids: ChildIds,
}

/// What a row without the field means: an older build wrote it.
fn is_dotted(form: &ChildIds) -> bool {
    *form == ChildIds::Dotted
}

impl HeaderRow {
    pub fn of(header: &Header) -> HeaderRow {
        let header = header.clone();
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
            paused_at: header.paused_at,
            held_by: header.pause_reasons,
            parent_word: header.hold_seq_received,
            words_said: header.hold_seq_sent,
            on_budget: header.on_budget,
            warned: header.warned,
            gates_opened: header.gates_opened,
            secret: header.secret,
            ends: header.ends,
            tokens_before: header.tokens_before,
            revision: header.revision,
            child_ids: header.child_ids,
        }
    }

    pub fn into_header(mut self) -> Header {
        // Before there were others, only a person could pause.
        if self.paused_at.is_some() && self.held_by.is_empty() {
            self.held_by.insert(PauseReason::Person);
        }
        Header {
            root_run_id: self
                .parent
                .as_ref()
                .map_or_else(|| self.id.clone(), |it| it.root_run_id.clone()),
            depth: self.parent.as_ref().map_or(0, |parent| parent.depth),
            hops: hops_of(self.parent.as_ref(), self.triggered_by.as_ref()),
            root_event: root_event_of(self.parent.as_ref(), self.triggered_by.as_ref()),
            triggered_by: self.triggered_by,
            parent: self.parent,
            paused_at: self.paused_at,
            pause_reasons: self.held_by,
            hold_seq_received: self.parent_word,
            hold_seq_sent: self.words_said,
            on_budget: self.on_budget,
            warned: self.warned,
            gates_opened: self.gates_opened,
            secret: self.secret,
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
        }
    }
}
