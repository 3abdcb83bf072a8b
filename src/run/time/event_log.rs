//! The run's log of events. Exceptional ones are rows of their own; ordinary ones are stored on the row of what they happened to
//! (`row_events`) and cost no extra row. All share one sequence of numbers.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::base::ordered::set_of;
use crate::base::time::Millis;
use crate::run::header::RunStatus;
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
    RunStarted,
    RunCompleted,
    RunCompensating,
    RunFailed,
    RunTimedOut,
    RunCancelled,
    RunPaused,
    RunResumed,
    RunExtended,
    RunRetried,
    RunRestarted,
    TokenCreated,
    TokenDispatched,
    TokenCompleted,
    TokenFailed,
    TokenTimedOut,
    TokenCancelled,
    TokenRetried,
    FanOutStarted,
    FanInStarted,
    FanInCompleted,
    SyncTimedOut,
    GateOpened,
    GateReminded,
    GateDecided,
    GateTimedOut,
    LateResultDiscarded,
    DeadlineWarning,
    SignalReceived,
    SubworkflowStarted,
    SubworkflowEnded,
    SubworkflowPaused,
    SubworkflowResumed,
    LimitExceeded,
    DispatchRungAgain,
    AttemptReaped,
}

/// The most late results that a run stores; further ones appear only in the log of the worker.
pub const LATE_NOTED: usize = 100;

impl RunEventKind {
    pub fn name(self) -> &'static str {
        match self {
            RunEventKind::RunStarted => "run_started",
            RunEventKind::RunCompleted => "run_completed",
            RunEventKind::RunCompensating => "run_compensating",
            RunEventKind::RunFailed => "run_failed",
            RunEventKind::RunTimedOut => "run_timed_out",
            RunEventKind::RunCancelled => "run_cancelled",
            RunEventKind::RunPaused => "run_paused",
            RunEventKind::RunResumed => "run_resumed",
            RunEventKind::RunExtended => "run_extended",
            RunEventKind::RunRetried => "run_retried",
            RunEventKind::RunRestarted => "run_restarted",
            RunEventKind::TokenCreated => "token_created",
            RunEventKind::TokenDispatched => "token_dispatched",
            RunEventKind::TokenCompleted => "token_completed",
            RunEventKind::TokenFailed => "token_failed",
            RunEventKind::TokenTimedOut => "token_timed_out",
            RunEventKind::TokenCancelled => "token_cancelled",
            RunEventKind::TokenRetried => "token_retried",
            RunEventKind::FanOutStarted => "fan_out_started",
            RunEventKind::FanInStarted => "fan_in_started",
            RunEventKind::FanInCompleted => "fan_in_completed",
            RunEventKind::SyncTimedOut => "sync_timed_out",
            RunEventKind::GateOpened => "gate_opened",
            RunEventKind::GateReminded => "gate_reminded",
            RunEventKind::GateDecided => "gate_decided",
            RunEventKind::GateTimedOut => "gate_timed_out",
            RunEventKind::LateResultDiscarded => "late_result_discarded",
            RunEventKind::DeadlineWarning => "deadline_warning",
            RunEventKind::SignalReceived => "signal_received",
            RunEventKind::SubworkflowStarted => "subworkflow_started",
            RunEventKind::SubworkflowEnded => "subworkflow_ended",
            RunEventKind::SubworkflowPaused => "subworkflow_paused",
            RunEventKind::SubworkflowResumed => "subworkflow_resumed",
            RunEventKind::LimitExceeded => "limit_exceeded",
            RunEventKind::DispatchRungAgain => "dispatch_rung_again",
            RunEventKind::AttemptReaped => "attempt_reaped",
        }
    }

    /// How the run has ended with this event, if it has.
    pub fn end_status(self) -> Option<RunStatus> {
        let ends = [
            (RunEventKind::RunCompleted, RunStatus::Completed),
            (RunEventKind::RunFailed, RunStatus::Failed),
            (RunEventKind::RunTimedOut, RunStatus::TimedOut),
            (RunEventKind::RunCancelled, RunStatus::Cancelled),
        ];
        let end = ends.into_iter().find(|(kind, _)| *kind == self);
        end.map(|(_, status)| status)
    }

    pub fn is_end(self) -> bool {
        self.end_status().is_some()
    }
}

/// The number of the run's last event, and the rows that the current decision adds.
#[derive(Debug, Default)]
pub(in crate::run) struct EventLog {
    last_seq: u64,
    /// The run has rows of events.
    has_rows: bool,
    /// Attempts whose late result is logged already.
    late_attempts: BTreeSet<(String, u64)>,
    new: Vec<RunEvent>,
}

impl EventLog {
    pub fn restored(last_seq: u64, has_rows: bool, late_attempts: Vec<(String, u64)>) -> EventLog {
        EventLog {
            last_seq,
            has_rows,
            late_attempts: set_of(late_attempts),
            new: Vec::new(),
        }
    }

    pub fn has_rows(&self) -> bool {
        self.has_rows
    }

    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// The number of the next event.
    pub fn next_seq(&mut self) -> u64 {
        self.last_seq += 1;
        self.last_seq
    }

    /// The current decision has logged the end of the run.
    pub fn has_noted_end(&self) -> bool {
        self.new.iter().any(|event| event.kind.is_end())
    }

    /// `fields` is an object.
    pub fn note(&mut self, at: Millis, kind: RunEventKind, fields: Value, record: Option<TimeoutRecord>) {
        let Value::Object(fields) = fields else {
            unreachable!("the fields of {kind:?} are an object");
        };
        self.has_rows = true;
        let seq = self.next_seq();
        self.new.push(RunEvent {
            seq,
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
        self.event_log.has_rows()
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
        let mut log = EventLog::restored(2, true, Vec::new());
        log.note(100, RunEventKind::RunPaused, json!({"cause": "person"}), None);
        log.note(200, RunEventKind::RunResumed, json!({}), None);
        let numbers: Vec<(u64, Millis)> = log.take_new().iter().map(|event| (event.seq, event.at)).collect();
        assert_eq!(numbers, [(3, 100), (4, 200)]);
        assert!(log.take_new().is_empty());
        assert!(log.has_rows());
        assert!(!EventLog::default().has_rows());
    }

    #[test]
    fn a_late_result_is_noted_once_and_so_many_in_all() {
        let mut log = EventLog::restored(1, true, vec![("t1".into(), 1)]);
        log.note_late(100, "t1", 1, "completed");
        assert!(log.take_new().is_empty(), "it is in the store already");
        for epoch in 0..200 {
            log.note_late(100, "t2", epoch, "failed");
            log.note_late(100, "t2", epoch, "failed");
        }
        assert_eq!(log.take_new().len(), LATE_NOTED - 1);
    }
}
