//! The run's log of exceptional events, one row each. Ordinary progress is recorded on the tokens and costs no extra row.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::base::time::Millis;
use crate::run::state::Run;
use crate::run::time::timeout_record::TimeoutRecord;

/// One event of a run, as it is stored and shown. `seq` is the key of its row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEvent {
    #[serde(skip)]
    pub seq: u64,
    pub at: Millis,
    pub kind: RunEventKind,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Value>,
    /// The record of a timeout, stored with its event to save a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<Box<TimeoutRecord>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEventKind {
    RunCompensating,
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

/// The most late results that a run stores; further ones appear only in the log of the worker.
pub const LATE_NOTED: usize = 100;

/// The number of events of the run, and the events that the current decision adds.
#[derive(Debug, Default)]
pub(in crate::run) struct EventLog {
    count: u64,
    /// Attempts whose late result is logged already.
    late_attempts: BTreeSet<(String, u64)>,
    new: Vec<RunEvent>,
}

impl EventLog {
    pub fn restored(count: u64, late_attempts: Vec<(String, u64)>) -> EventLog {
        EventLog {
            count,
            late_attempts: late_attempts.into_iter().collect(),
            new: Vec::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// `fields` is an object.
    pub fn note(&mut self, at: Millis, kind: RunEventKind, fields: Value, record: Option<TimeoutRecord>) {
        let Value::Object(fields) = fields else {
            unreachable!("the fields of {kind:?} are an object");
        };
        self.count += 1;
        self.new.push(RunEvent {
            seq: self.count,
            at,
            kind,
            fields,
            record: record.map(Box::new),
        });
    }

    /// Logs a result that is not of the current attempt. Each attempt is logged once and their number is bounded, so that
    /// an executor that reports again and again cannot fill the storage.
    pub fn note_late(&mut self, at: Millis, token_id: &str, epoch: u64, status: &str) {
        let is_full = self.late_attempts.len() >= LATE_NOTED;
        if is_full || !self.late_attempts.insert((token_id.to_string(), epoch)) {
            return;
        }
        let fields = json!({"token_id": token_id, "epoch": epoch, "status": status});
        self.note(at, RunEventKind::LateResultDiscarded, fields, None);
    }

    pub fn take_new(&mut self) -> Vec<RunEvent> {
        std::mem::take(&mut self.new)
    }
}

/// Adds the caller's name to the fields of an event.
pub(in crate::run) fn with_name(by: Option<&str>, mut fields: Value) -> Value {
    if let Some(name) = by {
        fields["by"] = json!(name);
    }
    fields
}

impl Run {
    pub fn has_events(&self) -> bool {
        !self.event_log.is_empty()
    }

    /// Logs an event; `fields` is an object.
    pub(in crate::run) fn note(&mut self, kind: RunEventKind, fields: Value) {
        self.note_with(kind, fields, None);
    }

    /// As `note`, for what a caller has asked for.
    pub(in crate::run) fn note_by(&mut self, by: Option<&str>, kind: RunEventKind, fields: Value) {
        self.note(kind, with_name(by, fields));
    }

    pub(in crate::run) fn note_with(
        &mut self,
        kind: RunEventKind,
        fields: Value,
        record: Option<TimeoutRecord>,
    ) {
        self.event_log.note(self.changes.now, kind, fields, record);
    }

    pub(in crate::run) fn note_late(&mut self, token_id: &str, epoch: u64, status: &str) {
        self.event_log
            .note_late(self.changes.now, token_id, epoch, status);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_numbered_on_from_those_in_the_store() {
        let mut log = EventLog::restored(2, Vec::new());
        log.note(100, RunEventKind::RunPaused, json!({"cause": "person"}), None);
        log.note(200, RunEventKind::RunResumed, json!({}), None);
        let numbers: Vec<(u64, Millis)> = log.take_new().iter().map(|event| (event.seq, event.at)).collect();
        assert_eq!(numbers, [(3, 100), (4, 200)]);
        assert!(log.take_new().is_empty());
        assert!(!log.is_empty());
        assert!(EventLog::default().is_empty());
    }

    #[test]
    fn a_late_result_is_noted_once_and_so_many_in_all() {
        let mut log = EventLog::restored(1, vec![("t1".into(), 1)]);
        log.note_late(100, "t1", 1, "completed");
        assert!(log.take_new().is_empty(), "it is in the store already");
        for epoch in 0..200 {
            log.note_late(100, "t2", epoch, "failed");
            log.note_late(100, "t2", epoch, "failed");
        }
        assert_eq!(log.take_new().len(), LATE_NOTED - 1);
    }
}
