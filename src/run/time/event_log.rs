//! What is worth a row of its own: the exceptions of a run. A happy node's history is read from its token, so that it
//! costs nothing.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::base::time::Millis;
use crate::run::state::Run;
use crate::run::time::timeout_record::TimeoutRecord;

/// One event of a run, as it is kept and shown. Its number is the key it is kept under.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEvent {
    #[serde(skip)]
    pub seq: u64,
    pub at: Millis,
    pub kind: RunEventKind,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Value>,
    /// What a timeout left behind. Kept with the event that tells of it: one row, not two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<Box<TimeoutRecord>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEventKind {
    RunFailed,
    RunTimedOut,
    RunCancelled,
    RunPaused,
    RunResumed,
    RunExtended,
    RunRetried,
    RunRestarted,
    TokenTimedOut,
    TokenRetried,
    SyncTimedOut,
    GateOpened,
    GateDecided,
    GateTimedOut,
    LateResultDiscarded,
    DeadlineWarning,
    SubworkflowPaused,
    SubworkflowResumed,
    LimitExceeded,
    DispatchRungAgain,
    AttemptReaped,
}

/// Late results that a run has rows for; of others only the log tells.
pub const LATE_NOTED: usize = 100;

impl Run {
    /// Something exceptional has happened to it.
    pub fn has_events(&self) -> bool {
        self.noted > 0
    }

    /// Notes an event; `fields` is an object.
    pub(in crate::run) fn note(&mut self, kind: RunEventKind, fields: Value) {
        self.note_with(kind, fields, None);
    }

    pub(in crate::run) fn note_with(
        &mut self,
        kind: RunEventKind,
        fields: Value,
        record: Option<TimeoutRecord>,
    ) {
        self.noted += 1;
        let fields = match fields {
            Value::Object(fields) => fields,
            other => Map::from_iter([("value".to_string(), other)]),
        };
        self.changes.entries.push(RunEvent {
            seq: self.noted,
            at: self.changes.now,
            kind,
            fields,
            record: record.map(Box::new),
        });
    }

    /// A result that is not of the current attempt: it changes nothing, and is not forgotten. An attempt is noted once,
    /// and a run notes so many: whoever reports without end must not fill its storage.
    pub(in crate::run) fn note_late(&mut self, token_id: &str, epoch: u64, status: &str) {
        if self.late.len() >= LATE_NOTED || !self.late.insert((token_id.to_string(), epoch)) {
            return;
        }
        self.note(
            RunEventKind::LateResultDiscarded,
            json!({"token_id": token_id, "epoch": epoch, "status": status}),
        );
    }
}
