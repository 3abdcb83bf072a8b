//! The index of runs in D1, written from a queue in batches so that it is never in a run's way.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wasm_bindgen::JsValue;
use worker::{D1Database, MessageBatch, Result};

use crate::platform;

/// Messages may come twice and in any order: the higher revision stays.
const SAVE: &str = "INSERT INTO runs (id, workflow_id, version, status, tags, started_at, ended_at, timeout_at, revision, summary) \
    SELECT value ->> '$.summary.id', value ->> '$.summary.workflow_id', value ->> '$.summary.version', \
        value ->> '$.summary.status', value -> '$.summary.tags', value ->> '$.summary.started_at', \
        value ->> '$.summary.ended_at', value ->> '$.summary.timeout_at', value ->> '$.revision', value -> '$.summary' \
    FROM json_each(?1) WHERE true \
    ON CONFLICT (id) DO UPDATE SET status = excluded.status, ended_at = excluded.ended_at, \
        timeout_at = excluded.timeout_at, revision = excluded.revision, summary = excluded.summary, \
        started_at = excluded.started_at, version = excluded.version, tags = excluded.tags \
    WHERE excluded.revision > runs.revision";

const LIST: &str = "SELECT id, started_at, summary FROM runs \
    WHERE (?1 IS NULL OR status = ?1) AND (?2 IS NULL OR workflow_id = ?2) \
        AND (?3 IS NULL OR EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?3)) \
        AND (?4 IS NULL OR started_at < ?4 OR (started_at = ?4 AND id > ?5)) \
    ORDER BY started_at DESC, id LIMIT ?6";

#[derive(Serialize, Deserialize)]
pub struct Announcement {
    pub revision: u64,
    pub summary: Value,
}

/// Saves a batch. A database that is down brings the messages back later; one that cannot be read never will be.
pub async fn save(batch: MessageBatch<()>, database: &D1Database) {
    let mut announcements = Vec::new();
    for message in batch.raw_iter() {
        let text = message.body().as_string().unwrap_or_default();
        match serde_json::from_str::<Announcement>(&text) {
            Ok(announcement) => announcements.push(announcement),
            Err(error) => platform::log(json!({
                "level": "error", "event": "announcement_unreadable", "message": error.to_string(),
            })),
        }
    }
    match write(announcements, database).await {
        Ok(()) => batch.ack_all(),
        Err(error) => {
            platform::log(json!({
                "level": "error", "event": "index_write_failed", "message": error.to_string(),
            }));
            batch.retry_all();
        }
    }
}

async fn write(mut announcements: Vec<Announcement>, database: &D1Database) -> Result<()> {
    // One statement sees each run once: of several messages about a run only the newest may go in.
    announcements.sort_by_key(|announcement| std::cmp::Reverse(announcement.revision));
    let mut newest: Vec<Announcement> = Vec::new();
    for announcement in announcements {
        if !newest
            .iter()
            .any(|other| other.summary["id"] == announcement.summary["id"])
        {
            newest.push(announcement);
        }
    }
    if newest.is_empty() {
        return Ok(());
    }
    database
        .prepare(SAVE)
        .bind(&[serde_json::to_string(&newest)?.into()])?
        .run()
        .await?;
    Ok(())
}

#[derive(Debug, Default)]
pub struct Filter {
    pub status: Option<String>,
    pub workflow: Option<String>,
    pub tag: Option<String>,
    pub cursor: Option<(u64, String)>,
    pub limit: u64,
}

#[derive(Deserialize)]
struct Row {
    id: String,
    started_at: u64,
    summary: String,
}

pub async fn list(database: &D1Database, filter: Filter) -> Result<Value> {
    let optional = |text: Option<String>| text.map_or(JsValue::NULL, JsValue::from);
    let (cursor_at, cursor_id) = match filter.cursor {
        Some((at, id)) => (JsValue::from_f64(at as f64), JsValue::from(id)),
        None => (JsValue::NULL, JsValue::NULL),
    };
    let mut rows: Vec<Row> = database
        .prepare(LIST)
        .bind(&[
            optional(filter.status),
            optional(filter.workflow),
            optional(filter.tag),
            cursor_at,
            cursor_id,
            JsValue::from_f64((filter.limit + 1) as f64),
        ])?
        .all()
        .await?
        .results()?;
    let more = rows.len() as u64 > filter.limit;
    rows.truncate(filter.limit as usize);
    let next = rows
        .last()
        .filter(|_| more)
        .map(|row| format!("{}_{}", row.started_at, row.id));
    let items: Vec<Value> = rows
        .into_iter()
        .map(|row| serde_json::from_str(&row.summary))
        .collect::<std::result::Result<_, _>>()?;
    Ok(json!({"items": items, "next_cursor": next}))
}
