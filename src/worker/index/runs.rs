//! The rows of runs in D1: how they come in, are listed, and leave.

use serde_json::{Value, json};
use wasm_bindgen::JsValue;
use worker::{D1Database, Result};

use crate::api::run_filter::RunList;
use crate::base::time::Millis;
use crate::index::run_query::{Binding, Row};
use crate::worker::index::page::{Page, all_of, read_of};

/// Messages may come twice and in any order: of two runs that used an id the one that started later stays, of two words on
/// one run the one with the higher revision, and of two that are the same the later.
const SAVE: &str = "INSERT INTO runs (id, workflow_id, version, status, tags, started_at, ended_at, timeout_at, revision, \
        summary, due_at, updated_at) \
    SELECT value ->> '$.summary.id', value ->> '$.summary.workflow_id', value ->> '$.summary.version', \
        value ->> '$.summary.status', value -> '$.summary.tags', value ->> '$.summary.started_at', \
        value ->> '$.summary.ended_at', value ->> '$.summary.timeout_at', value ->> '$.revision', value -> '$.summary', \
        value ->> '$.due_at', value ->> '$.at' \
    FROM json_each(?1) WHERE true \
    ON CONFLICT (id) DO UPDATE SET workflow_id = excluded.workflow_id, status = excluded.status, \
        ended_at = excluded.ended_at, timeout_at = excluded.timeout_at, revision = excluded.revision, \
        summary = excluded.summary, started_at = excluded.started_at, version = excluded.version, tags = excluded.tags, \
        due_at = excluded.due_at, updated_at = excluded.updated_at \
    WHERE (excluded.started_at, excluded.revision, excluded.updated_at) > (runs.started_at, runs.revision, runs.updated_at)";

/// Before a row is saved: tags that it may have no longer. Those that it keeps come again behind it.
const DROP_TAGS: &str = "DELETE FROM run_tags WHERE (tag, started_at, run_id) IN ( \
    SELECT tag.value, runs.started_at, runs.id FROM json_each(?1) AS told \
        CROSS JOIN runs ON runs.id = told.value ->> '$.summary.id' CROSS JOIN json_each(runs.tags) AS tag \
    WHERE runs.started_at <> told.value ->> '$.summary.started_at' OR runs.tags <> told.value -> '$.summary.tags')";

const ADD_TAGS: &str = "INSERT INTO run_tags (tag, started_at, run_id) \
    SELECT tag.value, runs.started_at, runs.id FROM json_each(?1) AS told \
        CROSS JOIN runs ON runs.id = told.value ->> '$.summary.id' CROSS JOIN json_each(runs.tags) AS tag \
    WHERE true ON CONFLICT DO NOTHING";

/// What began before the run of that id had ended was its own; what began later is another run's.
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

/// Unless something was heard since: an id may be used again.
const FORGET_TAGS: &str = "DELETE FROM run_tags WHERE (tag, started_at, run_id) IN ( \
    SELECT tag.value, runs.started_at, runs.id FROM json_each(?1) AS gone \
        CROSS JOIN runs ON runs.id = gone.value CROSS JOIN json_each(runs.tags) AS tag \
    WHERE runs.updated_at < ?2)";
const FORGET: &str = "DELETE FROM runs WHERE id IN (SELECT value FROM json_each(?1)) AND updated_at < ?2";
const FORGET_GATES: &str = "DELETE FROM gates WHERE run_id IN (SELECT value FROM json_each(?1)) \
    AND run_id NOT IN (SELECT id FROM runs WHERE id IN (SELECT value FROM json_each(?1)))";

/// Standings, as a JSON array. A row and its tags are never seen apart.
pub(in crate::worker) async fn save(standings: &str, database: &D1Database) -> Result<usize> {
    all_of(&[DROP_TAGS, SAVE, ADD_TAGS], &[standings.into()], database).await
}

/// Runs that are kept no longer, as a JSON array.
pub(in crate::worker) async fn remove(removed: &str, database: &D1Database) -> Result<usize> {
    all_of(&[REMOVE_TAGS, REMOVE, REMOVE_GATES], &[removed.into()], database).await
}

/// Rows of which the objects said, after `asked_at`, that no run lives there.
pub(in crate::worker) async fn forget(ids: &[String], asked_at: Millis, database: &D1Database) -> Result<()> {
    let ids = JsValue::from(json!(ids).to_string());
    let asked_at = JsValue::from_f64(asked_at as f64);
    let forget_gates = database.prepare(FORGET_GATES).bind(std::slice::from_ref(&ids))?;
    let both = [ids, asked_at];
    let statements = vec![
        database.prepare(FORGET_TAGS).bind(&both)?,
        database.prepare(FORGET).bind(&both)?,
        forget_gates,
    ];
    database.batch(statements).await?;
    Ok(())
}

pub async fn list(database: &D1Database, list: &RunList) -> Result<Page> {
    let query = list.query();
    let statements = query.statements.iter().map(|statement| {
        let bindings: Vec<JsValue> = statement.bindings.iter().map(value_of).collect();
        database.prepare(&statement.sql).bind(&bindings)
    });
    // One transaction: what moves from one status to another is seen once.
    let results = database.batch(statements.collect::<Result<_>>()?).await?;
    let (mut rows, mut rows_read) = (Vec::new(), 0);
    for result in results {
        rows.extend(result.results::<Row>()?);
        rows_read += read_of(&result)?;
    }
    let (summaries, next_cursor) = list.page(rows, query.rows);
    let items = summaries.iter().map(|summary| serde_json::from_str(summary));
    let items = items.collect::<serde_json::Result<Vec<Value>>>()?;
    Ok(Page {
        body: json!({"items": items, "next_cursor": next_cursor}),
        rows_read,
    })
}

fn value_of(binding: &Binding) -> JsValue {
    match binding {
        Binding::Text(text) => JsValue::from(text.as_str()),
        Binding::Number(number) => JsValue::from_f64(*number as f64),
    }
}
