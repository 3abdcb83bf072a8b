//! The `runs` and `run_tags` tables in D1: saving, listing and removing runs.

use serde_json::{Value, json};
use wasm_bindgen::JsValue;
use worker::{D1Database, Result};

use crate::api::run_filter::RunList;
use crate::base::time::Millis;
use crate::index::run_query::{Binding, Row};
use crate::worker::index::metrics::{self, Unknown};
use crate::worker::index::page::{self, Page};

/// Messages may be repeated and reordered: of two runs with the same id the one that started later wins, of two summaries of a
/// run the one with the higher revision, then the later one.
const SAVE: &str = "INSERT INTO runs (id, workflow_id, version, status, tags, started_at, ended_at, timeout_at, revision, \
        summary, due_at, updated_at, parked_since, metrics) \
    SELECT value ->> '$.summary.id', value ->> '$.summary.workflow_id', value ->> '$.summary.version', \
        value ->> '$.summary.status', value -> '$.summary.tags', value ->> '$.summary.started_at', \
        value ->> '$.summary.ended_at', value ->> '$.summary.timeout_at', value ->> '$.revision', value -> '$.summary', \
        value ->> '$.due_at', value ->> '$.at', value ->> '$.parked_since', value -> '$.metrics' \
    FROM json_each(?1) WHERE true \
    ON CONFLICT (id) DO UPDATE SET workflow_id = excluded.workflow_id, status = excluded.status, \
        ended_at = excluded.ended_at, timeout_at = excluded.timeout_at, revision = excluded.revision, \
        summary = excluded.summary, started_at = excluded.started_at, version = excluded.version, tags = excluded.tags, \
        due_at = excluded.due_at, updated_at = excluded.updated_at, parked_since = excluded.parked_since, \
        metrics = ifnull(excluded.metrics, iif(excluded.started_at = runs.started_at, runs.metrics, NULL)) \
    WHERE (excluded.started_at, excluded.revision, excluded.updated_at) > (runs.started_at, runs.revision, runs.updated_at)";

/// Runs before `SAVE` and deletes the tags of rows that change; `ADD_TAGS` runs after it.
const DELETE_TAGS: &str = "DELETE FROM run_tags WHERE (tag, started_at, run_id) IN ( \
    SELECT tag.value, runs.started_at, runs.id FROM json_each(?1) AS told \
        CROSS JOIN runs ON runs.id = told.value ->> '$.summary.id' CROSS JOIN json_each(runs.tags) AS tag \
    WHERE runs.started_at <> told.value ->> '$.summary.started_at' OR runs.tags <> told.value -> '$.summary.tags')";

const ADD_TAGS: &str = "INSERT INTO run_tags (tag, started_at, run_id) \
    SELECT tag.value, runs.started_at, runs.id FROM json_each(?1) AS told \
        CROSS JOIN runs ON runs.id = told.value ->> '$.summary.id' CROSS JOIN json_each(runs.tags) AS tag \
    WHERE true ON CONFLICT DO NOTHING";

/// A row that started after the removed run had ended belongs to another run that reuses the id.
const REMOVE_TAGS: &str = "DELETE FROM run_tags WHERE (tag, started_at, run_id) IN ( \
    SELECT tag.value, runs.started_at, runs.id FROM json_each(?1) AS gone \
        CROSS JOIN runs ON runs.id = gone.value ->> '$.run_id' CROSS JOIN json_each(runs.tags) AS tag \
    WHERE runs.started_at <= gone.value ->> '$.ended_at')";
const REMOVE: &str = "DELETE FROM runs WHERE id IN ( \
    SELECT runs.id FROM json_each(?1) AS gone CROSS JOIN runs ON runs.id = gone.value ->> '$.run_id' \
    WHERE runs.started_at <= gone.value ->> '$.ended_at')";
const REMOVE_GATES: &str = "DELETE FROM gates WHERE (run_id, id) IN ( \
    SELECT gates.run_id, gates.id FROM json_each(?1) AS gone CROSS JOIN gates ON gates.run_id = gone.value ->> '$.run_id' \
    WHERE gates.opened_at <= gone.value ->> '$.ended_at')";

/// Rows that were updated after the probe are kept: the id may have been reused.
const FORGET_TAGS: &str = "DELETE FROM run_tags WHERE (tag, started_at, run_id) IN ( \
    SELECT tag.value, runs.started_at, runs.id FROM json_each(?1) AS gone \
        CROSS JOIN runs ON runs.id = gone.value CROSS JOIN json_each(runs.tags) AS tag \
    WHERE runs.updated_at < ?2)";
const FORGET: &str = "DELETE FROM runs WHERE id IN (SELECT value FROM json_each(?1)) AND updated_at < ?2";
const FORGET_GATES: &str = "DELETE FROM gates WHERE run_id IN (SELECT value FROM json_each(?1)) \
    AND run_id NOT IN (SELECT id FROM runs WHERE id IN (SELECT value FROM json_each(?1)))";

/// `summaries` is a JSON array of rows, see `metrics::samples::row`. One transaction: readers never see a row without its tags, and
/// what a run adds to the metrics is remembered with it.
pub(in crate::worker) async fn save(summaries: &str, database: &D1Database) -> Result<usize> {
    let mut statements = vec![metrics::fold(summaries, Unknown::Counted, database)?];
    for sql in [DELETE_TAGS, SAVE, ADD_TAGS] {
        statements.push(database.prepare(sql).bind(&[summaries.into()])?);
    }
    page::run_all(statements, database).await
}

/// `removed` is a JSON array of `RemovedRun`, with their last summaries as rows.
pub(in crate::worker) async fn remove(removed: &str, database: &D1Database) -> Result<usize> {
    let fold = metrics::fold(removed, Unknown::Ignored, database)?;
    let mut statements = vec![fold];
    for sql in [REMOVE_TAGS, REMOVE, REMOVE_GATES] {
        statements.push(database.prepare(sql).bind(&[removed.into()])?);
    }
    page::run_all(statements, database).await
}

/// Removes rows whose objects, probed after `probed_at`, have no run.
pub(in crate::worker) async fn forget(
    ids: &[String],
    probed_at: Millis,
    database: &D1Database,
) -> Result<()> {
    let ids = JsValue::from(json!(ids).to_string());
    let probed_at = JsValue::from_f64(probed_at as f64);
    let forget_gates = database.prepare(FORGET_GATES).bind(std::slice::from_ref(&ids))?;
    let ids_and_time = [ids, probed_at];
    let statements = vec![
        database.prepare(FORGET_TAGS).bind(&ids_and_time)?,
        database.prepare(FORGET).bind(&ids_and_time)?,
        forget_gates,
    ];
    database.batch(statements).await?;
    Ok(())
}

pub async fn list(database: &D1Database, list: &RunList) -> Result<Page> {
    let query = list.query();
    let statements = query.statements.iter().map(|statement| {
        let bindings: Vec<JsValue> = statement.bindings.iter().map(js_value).collect();
        database.prepare(&statement.sql).bind(&bindings)
    });
    // One transaction, so that a run whose status changes meanwhile is listed once.
    let results = database.batch(statements.collect::<Result<_>>()?).await?;
    let (mut rows, mut rows_read) = (Vec::new(), 0);
    for result in results {
        rows.extend(result.results::<Row>()?);
        rows_read += page::rows_read(&result)?;
    }
    let (summaries, next_cursor) = list.page(rows, query.rows);
    let items = summaries.iter().map(|summary| serde_json::from_str(summary));
    let items = items.collect::<serde_json::Result<Vec<Value>>>()?;
    Ok(Page {
        body: json!({"items": items, "next_cursor": next_cursor}),
        rows_read,
    })
}

/// The ids of a page, and the cursor of the next one.
pub async fn ids(database: &D1Database, run_list: &RunList) -> Result<(Vec<String>, Option<String>)> {
    let page = list(database, run_list).await?.body;
    let items = page["items"].as_array().into_iter().flatten();
    let ids = items.filter_map(|item| item["id"].as_str());
    let next_cursor = page["next_cursor"].as_str();
    Ok((ids.map(str::to_string).collect(), next_cursor.map(str::to_string)))
}

fn js_value(binding: &Binding) -> JsValue {
    match binding {
        Binding::Text(text) => JsValue::from(text.as_str()),
        Binding::Number(number) => JsValue::from_f64(*number as f64),
    }
}
