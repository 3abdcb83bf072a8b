//! A page of a list in D1, as every list of the API is answered.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wasm_bindgen::JsValue;
use worker::{D1PreparedStatement, Result};

/// What a statement is to take at most: one row more than is shown, to see whether there is another page.
pub fn rows_of(limit: u64) -> JsValue {
    JsValue::from_f64((limit + 1) as f64)
}

/// `cursor` is where the next page begins behind a row, `item` what is shown of it.
pub async fn page<Row: DeserializeOwned>(
    statement: D1PreparedStatement,
    limit: u64,
    cursor: impl FnOnce(&Row) -> String,
    item: impl FnMut(Row) -> Result<Value>,
) -> Result<Value> {
    let mut rows: Vec<Row> = statement.all().await?.results()?;
    let more = rows.len() as u64 > limit;
    rows.truncate(limit as usize);
    let next = rows.last().filter(|_| more).map(cursor);
    let items = rows.into_iter().map(item).collect::<Result<Vec<Value>>>()?;
    Ok(json!({"items": items, "next_cursor": next}))
}
