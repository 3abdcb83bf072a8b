//! The index of runs in D1, written from a queue in batches so that it is never in a run's way.

use serde::Deserialize;
use serde_json::{Value, json};
use wasm_bindgen::JsValue;
use worker::{D1Database, MessageBatch, Result};

use super::letters::{Announcement, read};
use super::page::{page, rows_of};
use super::standing::{Standing, newest};
use super::{breakers, latencies};
use crate::api::query::RunFilter;
use crate::platform;

/// Messages may come twice and in any order: the higher revision stays, and of two that are the same the later.
const SAVE: &str = "INSERT INTO runs (id, workflow_id, version, status, tags, started_at, ended_at, timeout_at, revision, \
        summary, due_at, updated_at) \
    SELECT value ->> '$.summary.id', value ->> '$.summary.workflow_id', value ->> '$.summary.version', \
        value ->> '$.summary.status', value -> '$.summary.tags', value ->> '$.summary.started_at', \
        value ->> '$.summary.ended_at', value ->> '$.summary.timeout_at', value ->> '$.revision', value -> '$.summary', \
        value ->> '$.due_at', value ->> '$.at' \
    FROM json_each(?1) WHERE true \
    ON CONFLICT (id) DO UPDATE SET status = excluded.status, ended_at = excluded.ended_at, \
        timeout_at = excluded.timeout_at, revision = excluded.revision, summary = excluded.summary, \
        started_at = excluded.started_at, version = excluded.version, tags = excluded.tags, \
        due_at = excluded.due_at, updated_at = excluded.updated_at \
    WHERE (excluded.revision, excluded.updated_at) > (runs.revision, runs.updated_at)";

const LIST: &str = "SELECT id, started_at, summary FROM runs \
    WHERE (?1 IS NULL OR status = ?1) AND (?2 IS NULL OR workflow_id = ?2) \
        AND (?3 IS NULL OR EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?3)) \
        AND (?4 IS NULL OR started_at < ?4 OR (started_at = ?4 AND id > ?5)) \
    ORDER BY started_at DESC, id LIMIT ?6";

const SAVE_GATES: &str = "INSERT INTO gates (run_id, id, status, opened_at, view) \
    SELECT value ->> '$.run_id', value ->> '$.id', value ->> '$.status', value ->> '$.opened_at', value \
    FROM json_each(?1) WHERE true \
    ON CONFLICT (run_id, id) DO UPDATE SET status = excluded.status, view = excluded.view \
    WHERE gates.status = 'open'";

/// Oldest first: who has waited longest comes first.
const LIST_GATES: &str = "SELECT run_id, id, opened_at, view FROM gates \
    WHERE status = 'open' AND opened_at || '_' || run_id || '_' || id > ?1 \
    ORDER BY opened_at || '_' || run_id || '_' || id LIMIT ?2";

/// Saves a batch. A database that is down brings the messages back later; one that cannot be read never will be.
pub async fn save(batch: MessageBatch<()>, database: &D1Database) {
    let (mut runs, mut gates, mut samples) = (Vec::new(), Vec::new(), Vec::new());
    let mut breaker_news = Vec::new();
    for message in batch.raw_iter() {
        let text = message.body().as_string().unwrap_or_default();
        let read = read(&text).unwrap_or_else(|error| {
            platform::log(json!({
                "level": "error", "event": "announcement_unreadable", "message": error.to_string(),
            }));
            Vec::new()
        });
        for announcement in read {
            match announcement {
                Announcement::Run(standing) => runs.push(standing),
                Announcement::Gate { gate } => gates.push(gate),
                Announcement::Latency { latency } => samples.push(latency),
                Announcement::Breaker { breaker, revision } => {
                    breaker_news.push(breakers::News { breaker, revision });
                }
            }
        }
    }
    let saved = async {
        write(runs, database).await?;
        write_gates(gates, database).await?;
        breakers::save(breaker_news, database).await?;
        latencies::save(samples, database).await
    };
    match saved.await {
        Ok(()) => batch.ack_all(),
        Err(error) => {
            platform::log(json!({
                "level": "error", "event": "index_write_failed", "message": error.to_string(),
            }));
            batch.retry_all();
        }
    }
}

pub(super) async fn write(told: Vec<Standing>, database: &D1Database) -> Result<()> {
    let newest = newest(told);
    if newest.is_empty() {
        return Ok(());
    }
    let rows = serde_json::to_string(&newest)?;
    database.prepare(SAVE).bind(&[rows.into()])?.run().await?;
    Ok(())
}

/// A gate that was closed stays closed, in whatever order the messages come.
pub(super) async fn write_gates(gates: Vec<Value>, database: &D1Database) -> Result<()> {
    let (open, closed): (Vec<Value>, Vec<Value>) =
        gates.into_iter().partition(|gate| gate["status"] == "open");
    for gates in [open, closed] {
        if !gates.is_empty() {
            let rows = serde_json::to_string(&gates)?;
            database.prepare(SAVE_GATES).bind(&[rows.into()])?.run().await?;
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct GateRow {
    run_id: String,
    id: String,
    opened_at: u64,
    view: String,
}

pub async fn list_gates(database: &D1Database, cursor: &str, limit: u64) -> Result<Value> {
    let statement = database
        .prepare(LIST_GATES)
        .bind(&[cursor.into(), rows_of(limit)])?;
    let behind = |row: &GateRow| format!("{}_{}_{}", row.opened_at, row.run_id, row.id);
    page(statement, limit, behind, |row| {
        Ok(serde_json::from_str(&row.view)?)
    })
    .await
}

#[derive(Deserialize)]
struct Row {
    id: String,
    started_at: u64,
    summary: String,
}

pub async fn list(database: &D1Database, filter: RunFilter) -> Result<Value> {
    let optional = |text: Option<String>| text.map_or(JsValue::NULL, JsValue::from);
    let (cursor_at, cursor_id) = match filter.cursor {
        Some((at, id)) => (JsValue::from_f64(at as f64), JsValue::from(id)),
        None => (JsValue::NULL, JsValue::NULL),
    };
    let statement = database.prepare(LIST).bind(&[
        optional(filter.status),
        optional(filter.workflow),
        optional(filter.tag),
        cursor_at,
        cursor_id,
        rows_of(filter.limit),
    ])?;
    let behind = |row: &Row| format!("{}_{}", row.started_at, row.id);
    page(statement, filter.limit, behind, |row| {
        Ok(serde_json::from_str(&row.summary)?)
    })
    .await
}
