//! How long nodes took whose limit is learnt from it, in D1.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;
use wasm_bindgen::JsValue;
use worker::{D1Database, Result};

use crate::definition::snapshot::{Latency, StoredSnapshot, adaptive_nodes};
use crate::worker::index::page::all_of;

/// The last runs of a node that a limit is learnt from.
const LOOKED_AT: u32 = 200;
/// Kept in the table; more than is looked at, so that it need not be tidied to the row.
const KEPT: u32 = 400;

/// A message that comes twice is one sample.
const SAVE: &str = "INSERT INTO latencies (workflow_id, node_id, at, run_id, token_id, ms) \
    SELECT value ->> '$.workflow_id', value ->> '$.node_id', value ->> '$.at', value ->> '$.run_id', \
        value ->> '$.token_id', value ->> '$.ms' \
    FROM json_each(?1) WHERE true ON CONFLICT DO NOTHING";

const TIDY: &str = "DELETE FROM latencies WHERE (workflow_id, node_id, at, run_id, token_id) IN ( \
    SELECT workflow_id, node_id, at, run_id, token_id FROM ( \
        SELECT *, row_number() OVER (PARTITION BY workflow_id, node_id ORDER BY at DESC) AS place FROM latencies \
        WHERE (workflow_id, node_id) IN (SELECT value ->> '$.workflow_id', value ->> '$.node_id' FROM json_each(?1)) \
    ) WHERE place > ?2)";

const LOAD: &str = "SELECT workflow_id, node_id, ms FROM ( \
    SELECT *, row_number() OVER (PARTITION BY workflow_id, node_id ORDER BY at DESC) AS place FROM latencies \
    WHERE (workflow_id, node_id) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?1)) \
    ) WHERE place <= ?2";

/// Samples, as a JSON array.
pub(in crate::worker) async fn save(samples: &str, database: &D1Database) -> Result<usize> {
    let samples = JsValue::from(samples);
    let saved = all_of(&[SAVE], std::slice::from_ref(&samples), database).await?;
    let tidied = all_of(&[TIDY], &[samples, JsValue::from_f64(KEPT.into())], database).await?;
    Ok(saved + tidied)
}

#[derive(Deserialize)]
struct Row {
    workflow_id: String,
    node_id: String,
    ms: u64,
}

/// Writes into the snapshot what is known of its nodes. Asks nothing where no limit is learnt.
pub async fn look_up(stored: &mut StoredSnapshot, database: &D1Database) -> Result<()> {
    let nodes = adaptive_nodes(stored);
    if nodes.is_empty() {
        return Ok(());
    }
    let looked_at = JsValue::from_f64(LOOKED_AT.into());
    let rows: Vec<Row> = database
        .prepare(LOAD)
        .bind(&[json!(nodes).to_string().into(), looked_at])?
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
