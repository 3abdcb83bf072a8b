//! The `gates` table in D1: open gates, and decided ones until their run is removed.

use serde::Deserialize;
use wasm_bindgen::JsValue;
use worker::{D1Database, Result};

use crate::api::cursor::GatePosition;
use crate::worker::index::page::{Page, page, rows_limit, write_all};

/// Messages may be repeated and reordered: a closed gate stays closed, and a reminder is not undone. A gate that opened later with
/// the same id belongs to another run that reuses the run's id.
const SAVE: &str = "INSERT INTO gates (run_id, id, status, opened_at, view) \
    SELECT value ->> '$.run_id', value ->> '$.id', value ->> '$.status', value ->> '$.opened_at', value \
    FROM json_each(?1) WHERE true \
    ON CONFLICT (run_id, id) DO UPDATE SET status = excluded.status, opened_at = excluded.opened_at, view = excluded.view \
    WHERE excluded.opened_at > gates.opened_at OR (excluded.opened_at = gates.opened_at AND gates.status = 'open' \
        AND (excluded.status <> 'open' \
            OR ifnull(excluded.view ->> '$.reminded_at', 0) > ifnull(gates.view ->> '$.reminded_at', 0)))";

/// Oldest first.
const LIST: &str = "SELECT run_id, id, opened_at, view FROM gates INDEXED BY gates_open \
    WHERE status = 'open' AND (opened_at, run_id, id) > (?1, ?2, ?3) ORDER BY opened_at, run_id, id LIMIT ?4";

/// `gates` is a JSON array of gate views.
pub(in crate::worker) async fn save(gates: &str, database: &D1Database) -> Result<usize> {
    write_all(&[SAVE], &[gates.into()], database).await
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
        rows_limit(limit),
    ])?;
    let cursor = |row: &Row| {
        let position = GatePosition {
            opened_at: row.opened_at,
            run_id: row.run_id.clone(),
            gate_id: row.id.clone(),
        };
        position.write()
    };
    page(statement, limit, cursor, |row| {
        Ok(serde_json::from_str(&row.view)?)
    })
    .await
}
