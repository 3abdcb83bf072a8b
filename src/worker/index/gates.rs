//! The `gates` table in D1: open gates, and decided ones until their run is removed.

use serde::Deserialize;
use wasm_bindgen::JsValue;
use worker::{D1Database, Result};

use crate::api::cursor::GatePosition;
use crate::api::query::GateList;
use crate::protocol::caller::WorkflowScope;
use crate::worker::index::page::{Page, page_of_some, write_all};

/// Messages may be repeated and reordered: a closed gate stays closed, and a reminder is not undone. A gate that opened later with
/// the same id belongs to another run that reuses the run's id.
const SAVE: &str = "INSERT INTO gates (run_id, id, status, opened_at, view) \
    SELECT value ->> '$.run_id', value ->> '$.id', value ->> '$.status', value ->> '$.opened_at', value \
    FROM json_each(?1) WHERE true \
    ON CONFLICT (run_id, id) DO UPDATE SET status = excluded.status, opened_at = excluded.opened_at, view = excluded.view \
    WHERE excluded.opened_at > gates.opened_at OR (excluded.opened_at = gates.opened_at AND gates.status = 'open' \
        AND (excluded.status <> 'open' \
            OR ifnull(excluded.view ->> '$.reminded_at', 0) > ifnull(gates.view ->> '$.reminded_at', 0)))";

/// Gates that a list examines for a caller that does not reach all workflows. D1 reads three rows for each: in the index and in both tables.
const EXAMINED_ROWS: u64 = 300;

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
    #[serde(default)]
    workflow_id: Option<String>,
}

/// Oldest first. `with_workflows` is for callers that do not reach all workflows; a gate whose run is not in the index yet is not shown to
/// them.
fn select(of_one_run: bool, with_workflows: bool) -> String {
    let (gates, filter) = match of_one_run {
        false => ("gates INDEXED BY gates_open", "gates.status = 'open'"),
        // By the primary key. With the `+` the index of open gates, which has those of all runs, is of no use.
        true => ("gates", "gates.run_id = ?5 AND +gates.status = 'open'"),
    };
    let (workflow, runs) = match with_workflows {
        false => ("", ""),
        true => (
            ", runs.workflow_id AS workflow_id",
            " LEFT JOIN runs ON runs.id = gates.run_id",
        ),
    };
    format!(
        "SELECT gates.run_id AS run_id, gates.id AS id, gates.opened_at AS opened_at, gates.view AS view{workflow} \
        FROM {gates}{runs} \
        WHERE {filter} AND (gates.opened_at, gates.run_id, gates.id) > (?1, ?2, ?3) \
        ORDER BY gates.opened_at, gates.run_id, gates.id LIMIT ?4"
    )
}

pub async fn list(database: &D1Database, reached: &WorkflowScope, list: &GateList) -> Result<Page> {
    let GateList { run, after, limit } = list;
    let rows_max = match reached.is_unlimited() {
        true => limit + 1,
        false => EXAMINED_ROWS,
    };
    let mut bindings = vec![
        JsValue::from_f64(after.opened_at as f64),
        after.run_id.as_str().into(),
        after.gate_id.as_str().into(),
        JsValue::from_f64(rows_max as f64),
    ];
    bindings.extend(run.as_deref().map(JsValue::from));
    let sql = select(run.is_some(), !reached.is_unlimited());
    let statement = database.prepare(sql).bind(&bindings)?;
    let cursor = |row: &Row| {
        let position = GatePosition {
            opened_at: row.opened_at,
            run_id: row.run_id.clone(),
            gate_id: row.id.clone(),
        };
        position.write()
    };
    page_of_some(statement, *limit, rows_max, cursor, |row| {
        let is_reached = reached.is_unlimited()
            || row
                .workflow_id
                .as_ref()
                .is_some_and(|workflow| reached.contains(workflow));
        match is_reached {
            true => Ok(Some(serde_json::from_str(&row.view)?)),
            false => Ok(None),
        }
    })
    .await
}
