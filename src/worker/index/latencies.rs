//! The `latencies` table in D1: durations of nodes with an adaptive timeout.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;
use wasm_bindgen::JsValue;
use worker::{D1Database, Result};

use crate::definition::snapshot::{Latency, StoredSnapshot, adaptive_nodes};
use crate::why::Percentiles;
use crate::worker::index::page::write_all;

/// Samples of a node that an adaptive timeout is computed from.
const USED_SAMPLES: u32 = 200;
/// Samples of a node that the table keeps.
const KEPT_SAMPLES: u32 = 400;

/// A repeated message adds no sample.
const SAVE: &str = "INSERT INTO latencies (workflow_id, node_id, at, run_id, token_id, ms) \
    SELECT value ->> '$.workflow_id', value ->> '$.node_id', value ->> '$.at', value ->> '$.run_id', \
        value ->> '$.token_id', value ->> '$.ms' \
    FROM json_each(?1) WHERE true ON CONFLICT DO NOTHING";

const DELETE_OLD: &str = "DELETE FROM latencies WHERE (workflow_id, node_id, at, run_id, token_id) IN ( \
    SELECT workflow_id, node_id, at, run_id, token_id FROM ( \
        SELECT *, row_number() OVER (PARTITION BY workflow_id, node_id ORDER BY at DESC) AS place FROM latencies \
        WHERE (workflow_id, node_id) IN (SELECT value ->> '$.workflow_id', value ->> '$.node_id' FROM json_each(?1)) \
    ) WHERE place > ?2)";

const LOAD: &str = "SELECT workflow_id, node_id, ms FROM ( \
    SELECT *, row_number() OVER (PARTITION BY workflow_id, node_id ORDER BY at DESC) AS place FROM latencies \
    WHERE (workflow_id, node_id) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?1)) \
    ) WHERE place <= ?2";

/// `samples` is a JSON array.
pub(in crate::worker) async fn save(samples: &str, database: &D1Database) -> Result<usize> {
    let samples = JsValue::from(samples);
    let saved = write_all(&[SAVE], std::slice::from_ref(&samples), database).await?;
    let kept = JsValue::from_f64(KEPT_SAMPLES.into());
    let deleted = write_all(&[DELETE_OLD], &[samples, kept], database).await?;
    Ok(saved + deleted)
}

/// The last durations of a node, and what the metrics have counted of it.
const LOAD_USUAL: &str = "SELECT \
        (SELECT json_group_array(ms) FROM (SELECT ms FROM latencies WHERE workflow_id = ?1 AND node_id = ?2 \
            ORDER BY at DESC LIMIT ?3)) AS latencies, \
        (SELECT samples FROM metrics WHERE workflow = ?1 AND node = ?2) AS metrics";

#[derive(Deserialize)]
struct UsualRow {
    latencies: String,
    metrics: Option<String>,
}

/// What a node usually takes. Exact durations are preferred where there are enough of them.
pub async fn usual(workflow_id: &str, node_id: &str, database: &D1Database) -> Result<Option<Percentiles>> {
    let used = JsValue::from_f64(USED_SAMPLES.into());
    let row: Option<UsualRow> = database
        .prepare(LOAD_USUAL)
        .bind(&[workflow_id.into(), node_id.into(), used])?
        .first(None)
        .await?;
    let Some(row) = row else { return Ok(None) };
    let latencies = Percentiles::of_latencies(serde_json::from_str(&row.latencies)?);
    let metrics = match row.metrics {
        Some(samples) => Some(Percentiles::of_metrics(&serde_json::from_str(&samples)?)),
        None => None,
    };
    Ok(Percentiles::better(latencies, metrics))
}

#[derive(Deserialize)]
struct Row {
    workflow_id: String,
    node_id: String,
    ms: u64,
}

/// Adds the latencies of nodes with an adaptive timeout to the snapshot. Reads nothing if there are none.
pub async fn add_to(stored: &mut StoredSnapshot, database: &D1Database) -> Result<()> {
    let nodes = adaptive_nodes(stored);
    if nodes.is_empty() {
        return Ok(());
    }
    let used = JsValue::from_f64(USED_SAMPLES.into());
    let rows: Vec<Row> = database
        .prepare(LOAD)
        .bind(&[json!(nodes).to_string().into(), used])?
        .all()
        .await?
        .results()?;
    let mut samples: BTreeMap<(String, String), Vec<u64>> = BTreeMap::new();
    for row in rows {
        samples
            .entry((row.workflow_id, row.node_id))
            .or_default()
            .push(row.ms);
    }
    for ((workflow_id, node_id), millis) in samples {
        let latency = Latency::of(millis);
        if stored.workflow["id"] == workflow_id.as_str() {
            stored.latencies.insert(node_id.clone(), latency);
        }
        for child in &mut stored.children {
            if child.workflow["id"] == workflow_id.as_str() {
                child.latencies.insert(node_id.clone(), latency);
            }
        }
    }
    Ok(())
}
