//! The `metrics` table in D1: totals of the deployment.

use wasm_bindgen::JsValue;
use worker::{D1Database, D1PreparedStatement, Result};

use crate::index::metrics::samples::{SweepPass, of_sweep};
use crate::index::metrics::text::{self, Row};
use crate::index::metrics::{ADD_SWEEP, BREAKERS_MAX, FOLD, NODES_MAX, PARKED_MAX, SCRAPE, STEP_MS};
use crate::worker::index::page;
use crate::worker::platform;

/// Whether a run without a row in the index is counted. A removed run has no row any more: a repeated message of its removal
/// must not count it again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) enum Unknown {
    Counted,
    Ignored,
}

/// Adds what the runs have counted since their last summaries. Belongs before the statement that saves or removes them, in the
/// same transaction. `summaries` is a JSON array.
pub(in crate::worker) fn fold(
    summaries: &str,
    unknown: Unknown,
    database: &D1Database,
) -> Result<D1PreparedStatement> {
    let step = platform::now() / STEP_MS;
    database.prepare(FOLD).bind(&[
        summaries.into(),
        JsValue::from_f64(step as f64),
        JsValue::from_f64(f64::from(u8::from(unknown == Unknown::Counted))),
        JsValue::from_f64(NODES_MAX.into()),
    ])
}

pub async fn add_sweep(pass: SweepPass, database: &D1Database) -> Result<()> {
    let samples = JsValue::from(of_sweep(pass).to_string());
    database.prepare(ADD_SWEEP).bind(&[samples])?.run().await?;
    Ok(())
}

/// The text for Prometheus, and the rows that D1 bills for it.
pub async fn scrape(database: &D1Database) -> Result<(String, usize)> {
    // One more than is shown, to know whether there are others.
    let breakers = JsValue::from_f64((BREAKERS_MAX + 1) as f64);
    let parked = JsValue::from_f64(PARKED_MAX.into());
    let result = database.prepare(SCRAPE).bind(&[breakers, parked])?.all().await?;
    let rows: Vec<Row> = result.results()?;
    let rows_read = page::rows_read(&result)?;
    Ok((text::exposition(rows, platform::now()), rows_read))
}
