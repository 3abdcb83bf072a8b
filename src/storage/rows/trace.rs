//! The parts of rows that the trace of a run is made of. The rest, results above all, is skipped while the text is read.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::base::from_json::from_json;
use crate::base::time::Millis;
use crate::protocol::task::StepReport;
use crate::protocol::trace::{TracedBranch, TracedError, TracedEvent, TracedStep, TracedToken};
use crate::run::{Lane, RowEvent, RunEvent, RunEventKind, TokenId};

#[derive(Deserialize)]
struct TokenRow {
    node_id: String,
    epoch: u64,
    #[serde(default)]
    lane: Option<Lane>,
    created_at: Millis,
    #[serde(default)]
    started_at: Option<Millis>,
    #[serde(default)]
    ended_at: Option<Millis>,
    #[serde(default)]
    error: Option<TracedError>,
    #[serde(default)]
    steps: Vec<StepReport>,
    #[serde(default)]
    branch: Option<TracedBranch>,
    #[serde(default)]
    joins_at: Option<String>,
    #[serde(default)]
    compensates: Option<CompensatesPart>,
    #[serde(default)]
    events: Vec<RowEvent>,
}

#[derive(Deserialize)]
struct CompensatesPart {
    token: TokenId,
}

/// Kinds of actions, nodes and gates are added by the reader of the row: they are not on it.
pub fn traced_token(id: u64, status: &str, row: &str) -> serde_json::Result<TracedToken> {
    let row: TokenRow = from_json(row)?;
    let lane = row.lane.map(|lane| match lane {
        Lane::Inline => "inline",
        Lane::Direct => "direct",
        Lane::Queue => "queue",
    });
    Ok(TracedToken {
        id,
        node_id: row.node_id,
        kind: None,
        status: status.to_string(),
        epoch: row.epoch,
        created_at: row.created_at,
        started_at: row.started_at,
        ended_at: row.ended_at,
        lane: lane.map(str::to_string),
        error: row.error,
        steps: row
            .steps
            .into_iter()
            .map(|report| TracedStep { action: None, report })
            .collect(),
        only_step: None,
        events: row.events.iter().map(traced_row_event).collect(),
        gates: Vec::new(),
        joins_at: row.joins_at,
        compensates: row.compensates.map(|it| it.token.to_string()),
        branch: row.branch,
    })
}

pub fn traced_row_event(event: &RowEvent) -> TracedEvent {
    let empty = Map::new();
    let fields = event.fields.as_deref().unwrap_or(&empty);
    traced(event.seq, event.at, event.kind, fields)
}

/// An event that is a row.
pub fn traced_event(event: &RunEvent) -> TracedEvent {
    let record = event.record.as_deref();
    TracedEvent {
        step_ref: record.and_then(|record| record.last_known_state.step_ref.clone()),
        ..traced(event.seq, event.at, event.kind, &event.fields)
    }
}

fn traced(seq: u64, at: Millis, kind: RunEventKind, fields: &Map<String, Value>) -> TracedEvent {
    let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_string);
    let number = |name: &str| fields.get(name).and_then(Value::as_u64);
    TracedEvent {
        seq,
        at,
        kind: kind.name().to_string(),
        token_id: text("token_id"),
        epoch: number("epoch"),
        code: text("code"),
        timeout_type: text("timeout_type"),
        timeout_ms: number("timeout_duration_ms"),
        policy: text("policy_applied"),
        delay_ms: number("delay_ms"),
        child_run_id: text("child_run_id"),
        step_ref: None,
    }
}
