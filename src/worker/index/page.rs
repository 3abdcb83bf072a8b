//! D1 statements with the rows they are billed for, and pages of lists.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wasm_bindgen::JsValue;
use worker::{D1Database, D1PreparedStatement, D1Result, Result};

pub struct Page {
    pub body: Value,
    /// As D1 bills them.
    pub rows_read: usize,
}

/// The limit of a statement: one row more than the page, to see whether there is another page.
pub fn rows_limit(limit: u64) -> JsValue {
    JsValue::from_f64((limit + 1) as f64)
}

pub fn rows_read(result: &D1Result) -> Result<usize> {
    Ok(result.meta()?.and_then(|meta| meta.rows_read).unwrap_or(0))
}

/// Runs the statements in one transaction, all with the same bindings. Returns the rows written, as D1 bills them.
pub(in crate::worker) async fn write_all(
    statements: &[&str],
    bindings: &[JsValue],
    database: &D1Database,
) -> Result<usize> {
    let bound = statements.iter().map(|sql| database.prepare(*sql).bind(bindings));
    run_all(bound.collect::<Result<_>>()?, database).await
}

/// Runs the statements in one transaction. Returns the rows written, as D1 bills them.
pub(in crate::worker) async fn run_all(
    statements: Vec<D1PreparedStatement>,
    database: &D1Database,
) -> Result<usize> {
    let results = database.batch(statements).await?;
    let mut written = 0;
    for result in results {
        written += result.meta()?.and_then(|meta| meta.rows_written).unwrap_or(0);
    }
    Ok(written)
}

/// `cursor` makes the cursor that points behind a row, `item` the row's entry on the page.
pub async fn page<Row: DeserializeOwned>(
    statement: D1PreparedStatement,
    limit: u64,
    cursor: impl Fn(&Row) -> String,
    mut item: impl FnMut(Row) -> Result<Value>,
) -> Result<Page> {
    page_of_some(statement, limit, limit + 1, cursor, |row| item(row).map(Some)).await
}

/// As `page`, of a statement that examines at most `rows_max` rows: those without an item are left out, and the page may be short.
pub async fn page_of_some<Row: DeserializeOwned>(
    statement: D1PreparedStatement,
    limit: u64,
    rows_max: u64,
    cursor: impl Fn(&Row) -> String,
    mut item: impl FnMut(Row) -> Result<Option<Value>>,
) -> Result<Page> {
    let result = statement.all().await?;
    let rows: Vec<Row> = result.results()?;
    let found = rows.len() as u64;
    let (mut items, mut seen, mut last) = (Vec::new(), 0, None);
    for row in rows {
        if items.len() as u64 == limit {
            break;
        }
        seen += 1;
        last = Some(cursor(&row));
        items.extend(item(row)?);
    }
    let has_more = seen < found || found == rows_max;
    Ok(Page {
        body: json!({"items": items, "next_cursor": last.filter(|_| has_more)}),
        rows_read: rows_read(&result)?,
    })
}
