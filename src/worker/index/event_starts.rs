//! How many runs an event has led to, in D1: those that runs started by it have started by events of their own. A run is
//! counted by its id, so that a start that is made again counts once.

use serde::Deserialize;
use serde_json::json;
use wasm_bindgen::JsValue;
use worker::{D1Database, Result};

use crate::base::limits::RUNS_PER_EVENT;
use crate::base::time::{DAY, Millis};
use crate::run::EventRef;

/// How long a start counts: as long as an ended run is kept by default.
const KEPT_MS: u64 = 30 * DAY;
/// Removed in one pass of the sweep.
const REMOVED_MOST: u32 = 1_000;

/// As many of the runs as the limit leaves room for, in their order. Runs that the first event starts itself have no rows;
/// there are as many as it triggers.
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

/// Which of the runs may be started. One that was admitted before is admitted again.
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
    // One transaction: what was admitted is what is seen.
    let results = database.batch(vec![admit, admitted]).await?;
    let rows: Vec<Row> = match results.get(1) {
        Some(result) => result.results()?,
        None => Vec::new(),
    };
    Ok(rows.into_iter().map(|row| row.run_id).collect())
}

/// Removes starts that no longer count.
pub async fn remove_old(database: &D1Database, now: Millis) -> Result<()> {
    let before = JsValue::from_f64(now.saturating_sub(KEPT_MS) as f64);
    let remove = database
        .prepare(REMOVE_OLD)
        .bind(&[before, REMOVED_MOST.into()])?;
    remove.run().await?;
    Ok(())
}
