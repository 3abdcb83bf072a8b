//! Statements in D1 and what they are billed as; a page of a list, as every list of the API is answered.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wasm_bindgen::JsValue;
use worker::{D1Database, D1PreparedStatement, D1Result, Result};

pub struct Page {
    pub body: Value,
    /// What the database counts and bills.
    pub rows_read: usize,
}

/// What a statement is to take at most: one row more than is shown, to see whether there is another page.
pub fn rows_of(limit: u64) -> JsValue {
    JsValue::from_f64((limit + 1) as f64)
}

pub fn read_of(result: &D1Result) -> Result<usize> {
    Ok(result.meta()?.and_then(|meta| meta.rows_read).unwrap_or(0))
}

/// In one transaction. Returns the rows written, as the database counts them.
pub(in crate::worker) async fn all_of(
    statements: &[&str],
    bindings: &[JsValue],
    database: &D1Database,
) -> Result<usize> {
    let bound = statements.iter().map(|sql| database.prepare(*sql).bind(bindings));
    let results = database.batch(bound.collect::<Result<_>>()?).await?;
    let mut written = 0;
    for result in results {
        written += result.meta()?.and_then(|meta| meta.rows_written).unwrap_or(0);
    }
    Ok(written)
}

/// `cursor` is where the next page begins behind a row, `item` what is shown of it.
pub async fn page<Row: DeserializeOwned>(
    statement: D1PreparedStatement,
    limit: u64,
    cursor: impl FnOnce(&Row) -> String,
    item: impl FnMut(Row) -> Result<Value>,
) -> Result<Page> {
    let result = statement.all().await?;
    let mut rows: Vec<Row> = result.results()?;
    let more = rows.len() as u64 > limit;
    rows.truncate(limit as usize);
    let next = rows.last().filter(|_| more).map(cursor);
    let items = rows.into_iter().map(item).collect::<Result<Vec<Value>>>()?;
    Ok(Page {
        body: json!({"items": items, "next_cursor": next}),
        rows_read: read_of(&result)?,
    })
}
