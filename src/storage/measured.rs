//! The rows that the metrics of a run are counted from, for runs that were loaded.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::base::failure::FailureClass;
use crate::base::from_json::from_json;
use crate::base::time::Millis;
use crate::run::{MeasuredEvent, MeasuredRows, MeasuredToken, RunEvent};
use crate::storage::rows::parse_status;

/// The measured part of a token's row.
#[derive(Deserialize)]
struct TokenPart {
    node_id: String,
    created_at: Millis,
    #[serde(default)]
    started_at: Option<Millis>,
    #[serde(default)]
    ended_at: Option<Millis>,
    #[serde(default)]
    retried: BTreeMap<FailureClass, u64>,
}

/// Adds the row of an event.
pub fn add_event(rows: &mut MeasuredRows, seq: u64, row: &str) -> Result<(), String> {
    let event: RunEvent = from_json(row).map_err(|error| format!("event {seq}: {error}"))?;
    rows.events.push(MeasuredEvent {
        seq,
        ..MeasuredEvent::of(&event)
    });
    Ok(())
}

/// Adds a token, from its row or from the fields that `schema::LOAD_MEASURED_TOKENS` reads of it. Live ones are in memory.
pub fn add_token(rows: &mut MeasuredRows, status: &str, row: &str) -> Result<(), String> {
    let status = parse_status(status)?;
    if !status.is_terminal() {
        return Ok(());
    }
    let part: TokenPart = from_json(row).map_err(|error| format!("a token: {error}"))?;
    rows.ended_tokens.push(MeasuredToken {
        node_id: part.node_id,
        status,
        created_at: part.created_at,
        started_at: part.started_at,
        ended_at: part.ended_at,
        retried: part.retried,
    });
    Ok(())
}
