//! Events that are stored on the row of what they happened to: a token, an instance, a gate or the run itself. Such a row is
//! written in the same commit anyway, so the whole history of a run that goes well costs no extra row.

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::base::time::Millis;
use crate::run::fan::InstanceId;
use crate::run::header::RunStatus;
use crate::run::metrics::MeasuredEvent;
use crate::run::state::Run;
use crate::run::time::event_log::RunEventKind;
use crate::run::time::timeout_gate::WORKFLOW_TIMEOUT;
use crate::run::token::{Token, TokenId, TokenStatus};

/// The most events on one row. Further ones are rows of their own, so that a row stays small.
const EVENTS_ON_ROW: usize = 32;

/// On the row a list of number, time, kind and, if there are any, fields: most tokens have three of them.
#[derive(Clone, Debug, PartialEq)]
pub struct RowEvent {
    pub seq: u64,
    pub at: Millis,
    pub kind: RunEventKind,
    /// Besides what the row itself has. Boxed, because most events have none.
    pub fields: Option<Box<Map<String, Value>>>,
}

impl Serialize for RowEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.fields {
            None => (self.seq, self.at, self.kind).serialize(serializer),
            Some(fields) => (self.seq, self.at, self.kind, fields).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for RowEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RowEvent, D::Error> {
        struct Parts;
        impl<'de> Visitor<'de> for Parts {
            type Value = RowEvent;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("number, time and kind of an event, and its fields")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<RowEvent, A::Error> {
                let missing = |count| A::Error::invalid_length(count, &self);
                Ok(RowEvent {
                    seq: parts.next_element()?.ok_or_else(|| missing(0))?,
                    at: parts.next_element()?.ok_or_else(|| missing(1))?,
                    kind: parts.next_element()?.ok_or_else(|| missing(2))?,
                    fields: parts.next_element()?,
                })
            }
        }
        deserializer.deserialize_seq(Parts)
    }
}

/// Why a timeout of the run or of a join ends tokens.
#[derive(Clone, Copy, Debug)]
pub(in crate::run) struct TokenTimeout {
    pub timeout_type: &'static str,
    pub timeout_ms: Option<u64>,
    pub policy: &'static str,
}

/// The number of the last event on a row.
pub fn last_seq(events: &[RowEvent]) -> u64 {
    events.last().map_or(0, |event| event.seq)
}

/// What an event of the history must know of a token before it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::run) struct Before {
    status: TokenStatus,
    epoch: u64,
}

impl Before {
    pub fn of(token: &Token) -> Before {
        Before {
            status: token.status,
            epoch: token.epoch,
        }
    }
}

impl Run {
    /// Makes an event for a row, or a row of its own where the row has no space. `fields` is an object or null.
    fn row_event(&mut self, on_row: usize, kind: RunEventKind, fields: Value) -> Result<RowEvent, Value> {
        if on_row >= EVENTS_ON_ROW {
            return Err(fields);
        }
        let fields = match fields {
            Value::Object(fields) => Some(Box::new(fields)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
        };
        Ok(RowEvent {
            seq: self.event_log.next_seq(),
            at: self.changes.now,
            kind,
            fields,
        })
    }

    pub(in crate::run) fn note_on_token(&mut self, id: TokenId, kind: RunEventKind, fields: Value) {
        let token = self.tokens.live(id);
        let (on_row, node) = (token.events.len(), token.node);
        match self.row_event(on_row, kind, fields) {
            Ok(event) => self.tokens.add_event(id, event),
            Err(fields) => {
                let node_id = self.snapshot.workflow.nodes[node].id.as_str();
                let subject = json!({"token_id": id.to_string(), "node_id": node_id});
                self.note(kind, with_subject(fields, subject));
            }
        }
    }

    pub(in crate::run) fn note_on_instance(&mut self, id: InstanceId, kind: RunEventKind, fields: Value) {
        let on_row = self.fans.get(id).map_or(EVENTS_ON_ROW, |it| it.events.len());
        match self.row_event(on_row, kind, fields) {
            Ok(event) => self.fans.add_event(id, event),
            Err(fields) => self.note(kind, with_subject(fields, json!({"instance": id.0}))),
        }
    }

    pub(in crate::run) fn note_on_gate(&mut self, id: &str, kind: RunEventKind, fields: Value) {
        let on_row = self.gates.get(id).map_or(EVENTS_ON_ROW, |gate| gate.events.len());
        match self.row_event(on_row, kind, fields) {
            Ok(event) => self.gates.add_event(id, event),
            Err(fields) => self.note(kind, with_subject(fields, json!({"gate_id": id}))),
        }
    }

    pub(in crate::run) fn note_on_header(&mut self, kind: RunEventKind, fields: Value) {
        match self.row_event(self.header.events.len(), kind, fields) {
            Ok(event) => {
                self.changes.on_header.push(MeasuredEvent::on_row(&event));
                self.header.events.push(event);
                self.changes.header_changed = true;
            }
            Err(fields) => self.note(kind, with_subject(fields, json!({}))),
        }
    }

    /// Logs what the change of a token means for the history.
    pub(in crate::run) fn note_change(&mut self, id: TokenId, before: Before) {
        let token = self.tokens.live(id);
        let after = Before::of(token);
        if before.status == after.status {
            return;
        }
        let (kind, fields) = match after.status {
            // A claim is not a second dispatch.
            TokenStatus::Executing if before.epoch == after.epoch => return,
            TokenStatus::Executing | TokenStatus::Dispatched => {
                (RunEventKind::TokenDispatched, dispatched_fields(token))
            }
            TokenStatus::Completed => (RunEventKind::TokenCompleted, Value::Null),
            TokenStatus::Failed => (RunEventKind::TokenFailed, failed_fields(token)),
            TokenStatus::Cancelled => {
                let reason = token.reason.as_ref();
                let fields = reason.map_or(Value::Null, |reason| json!({"reason": reason}));
                (RunEventKind::TokenCancelled, fields)
            }
            // The timeout of an attempt has a row with its record.
            TokenStatus::TimedOut if self.changes.timeouts_noted.contains(&id) => return,
            TokenStatus::TimedOut => (RunEventKind::TokenTimedOut, self.timed_out_fields(token)),
            TokenStatus::Pending
            | TokenStatus::WaitingForSiblings
            | TokenStatus::WaitingForSubworkflow
            | TokenStatus::AwaitingHuman
            | TokenStatus::Suspended => return,
        };
        self.note_on_token(id, kind, fields);
    }

    fn timed_out_fields(&self, token: &Token) -> Value {
        let timeout = self
            .changes
            .token_timeout
            .or_else(|| self.timeout_of_ending(token));
        let timeout = timeout.unwrap_or(TokenTimeout {
            timeout_type: "execution",
            timeout_ms: token.deadline.timeout_ms,
            policy: "fail",
        });
        json!({
            "workflow_run_id": self.header.id,
            "timeout_type": timeout.timeout_type,
            "timeout_duration_ms": timeout.timeout_ms,
            "policy_applied": timeout.policy,
        })
    }

    /// A token that the limit of the run ends while the run compensates.
    fn timeout_of_ending(&self, token: &Token) -> Option<TokenTimeout> {
        let ending = self.header.ending.as_deref()?;
        let is_of_limit = token.reason.as_deref() == Some(WORKFLOW_TIMEOUT);
        is_of_limit.then(|| self.workflow_token_timeout(ending.status))
    }

    /// Why the limit of the run, which ends as `status`, ends its tokens.
    pub(in crate::run) fn workflow_token_timeout(&self, status: RunStatus) -> TokenTimeout {
        TokenTimeout {
            timeout_type: "workflow",
            timeout_ms: self.header.timeout_ms,
            policy: match status {
                RunStatus::Failed => "fail",
                RunStatus::TimedOut
                | RunStatus::Completed
                | RunStatus::Cancelled
                | RunStatus::Running
                | RunStatus::Waiting
                | RunStatus::Paused
                | RunStatus::Compensating => "cancel_all",
            },
        }
    }

    /// Logs the end of the run, if the decision has not logged it with its cause.
    pub(in crate::run) fn note_end(&mut self, status: RunStatus) {
        if self.event_log.has_noted_end() {
            return;
        }
        self.note_on_header(kind_of_end(status), Value::Null);
    }
}

pub(in crate::run) fn kind_of_end(status: RunStatus) -> RunEventKind {
    match status {
        RunStatus::Completed => RunEventKind::RunCompleted,
        RunStatus::Failed => RunEventKind::RunFailed,
        RunStatus::TimedOut => RunEventKind::RunTimedOut,
        RunStatus::Cancelled => RunEventKind::RunCancelled,
        RunStatus::Running | RunStatus::Waiting | RunStatus::Paused | RunStatus::Compensating => {
            unreachable!("a run does not end as {status:?}")
        }
    }
}

fn with_subject(fields: Value, mut subject: Value) -> Value {
    if let (Value::Object(all), Value::Object(fields)) = (&mut subject, fields) {
        all.extend(fields);
    }
    subject
}

/// The first attempt has no field: the reader adds its number.
fn dispatched_fields(token: &Token) -> Value {
    match token.epoch {
        0 | 1 => Value::Null,
        epoch => json!({"epoch": epoch}),
    }
}

fn failed_fields(token: &Token) -> Value {
    let error = token.error.as_ref();
    error.map_or(
        Value::Null,
        |error| json!({"code": error.code, "class": error.class}),
    )
}
