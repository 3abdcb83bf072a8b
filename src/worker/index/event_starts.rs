//! The `event_starts` table in D1: limits how many runs one event may lead to, through events that the started runs emit. A run is
//! counted by its id, so that a repeated start counts once.

use serde::Deserialize;
use serde_json::json;
use wasm_bindgen::JsValue;
use worker::{D1Database, Result};

use crate::base::limits::RUNS_PER_EVENT;
use crate::base::time::{DAY, Millis};
use crate::run::EventRef;

/// How long a start counts: the default retention of ended runs.
const RETENTION_MS: u64 = 30 * DAY;
/// Rows removed in one pass of the sweep.
const REMOVED_MAX: u32 = 1_000;

/// Adds as many of the runs as the limit allows, in their order. The runs that the first event starts itself have no rows: the
/// number of workflows that it triggers counts for them.
const ADMIT: &str = "INSERT INTO event_starts (root, run_id, at) SELECT ?1, value, ?4 FROM ( \
    SELECT value, row_number() OVER (ORDER BY key) AS place FROM json_each(?2) \
    WHERE NOT EXISTS (SELECT 1 FROM event_starts WHERE root = ?1 AND run_id = value)) \
    WHERE place <= ?5 - (SELECT count(*) FROM triggers WHERE event = ?3) \
        - (SELECT count(*) FROM event_starts WHERE root = ?1) \
    ON CONFLICT DO NOTHING";
const ADMITTED: &str = "SELECT run_id FROM event_starts \
    WHERE root = ?1 AND run_id IN (SELECT value FROM json_each(?2))";

const REMOVE_OLD: &str = "DELETE FROM event_starts WHERE (root, run_id) IN ( \
    SELECT root, run_id FROM event_starts WHERE at < ?1 LIMIT ?2)";

#[derive(Deserialize)]
struct Row {
    run_id: String,
}

/// Returns the runs that may be started. A run that was admitted before is admitted again.
pub async fn admit(
    database: &D1Database,
    root: &EventRef,
    runs: &[String],
    now: Millis,
) -> Result<Vec<String>> {
    let key = JsValue::from(format!("{}|{}", root.event, root.key));
    let ids = JsValue::from(json!(runs).to_string());
    let admit = database.prepare(ADMIT).bind(&[
        key.clone(),
        ids.clone(),
        root.event.as_str().into(),
        JsValue::from_f64(now as f64),
        JsValue::from_f64(RUNS_PER_EVENT as f64),
    ])?;
    let admitted = database.prepare(ADMITTED).bind(&[key, ids])?;
    // One transaction, so that the select sees exactly the runs that the insert admitted.
    let results = database.batch(vec![admit, admitted]).await?;
    let rows: Vec<Row> = match results.get(1) {
        Some(result) => result.results()?,
        None => Vec::new(),
    };
    Ok(rows.into_iter().map(|row| row.run_id).collect())
}

pub async fn remove_old(database: &D1Database, now: Millis) -> Result<()> {
    let before = JsValue::from_f64(now.saturating_sub(RETENTION_MS) as f64);
    let remove = database.prepare(REMOVE_OLD).bind(&[before, REMOVED_MAX.into()])?;
    remove.run().await?;
    Ok(())
}
