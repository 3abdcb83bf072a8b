//! The rows of gates in D1: everything that waits for a person, and what was decided.

use serde::Deserialize;
use wasm_bindgen::JsValue;
use worker::{D1Database, Result};

use crate::api::cursor::GatePosition;
use crate::worker::index::page::{Page, all_of, page, rows_of};

/// Messages may come twice and in any order: a gate that was closed stays closed, and a reminder is not taken back. A gate that
/// opened later under the same name is another run's, which uses an id again.
const SAVE: &str = "INSERT INTO gates (run_id, id, status, opened_at, view) \
    SELECT value ->> '$.run_id', value ->> '$.id', value ->> '$.status', value ->> '$.opened_at', value \
    FROM json_each(?1) WHERE true \
    ON CONFLICT (run_id, id) DO UPDATE SET status = excluded.status, opened_at = excluded.opened_at, view = excluded.view \
    WHERE excluded.opened_at > gates.opened_at OR (excluded.opened_at = gates.opened_at AND gates.status = 'open' \
        AND (excluded.status <> 'open' \
            OR ifnull(excluded.view ->> '$.reminded_at', 0) > ifnull(gates.view ->> '$.reminded_at', 0)))";

/// Oldest first: who has waited longest comes first.
const LIST: &str = "SELECT run_id, id, opened_at, view FROM gates INDEXED BY gates_open \
    WHERE status = 'open' AND (opened_at, run_id, id) > (?1, ?2, ?3) ORDER BY opened_at, run_id, id LIMIT ?4";

/// Views of gates, as a JSON array.
pub(in crate::worker) async fn save(gates: &str, database: &D1Database) -> Result<usize> {
    all_of(&[SAVE], &[gates.into()], database).await
}

#[derive(Deserialize)]
struct Row {
    run_id: String,
    id: String,
    opened_at: u64,
    view: String,
}

pub async fn list(database: &D1Database, after: &GatePosition, limit: u64) -> Result<Page> {
    let statement = database.prepare(LIST).bind(&[
        JsValue::from_f64(after.opened_at as f64),
        after.run_id.as_str().into(),
        after.gate_id.as_str().into(),
        rows_of(limit),
    ])?;
    let behind = |row: &Row| {
        let position = GatePosition {
            opened_at: row.opened_at,
            run_id: row.run_id.clone(),
            gate_id: row.id.clone(),
        };
        position.write()
    };
    page(statement, limit, behind, |row| {
        Ok(serde_json::from_str(&row.view)?)
    })
    .await
}
