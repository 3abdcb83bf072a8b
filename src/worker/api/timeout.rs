//! One record of a timeout. The run's object knows everything but what the node usually takes, which the index knows.

use serde_json::{Value, json};
use worker::{Env, Result};

use crate::why::{self, Percentiles};
use crate::worker::index::latencies;
use crate::worker::platform::{self, deadline};

/// How long the index may take. The record is of use without it.
const INDEX_MS: u64 = 2_000;

/// Adds to a record what its node usually takes. A failure of the index is said in the record and breaks nothing.
pub async fn add_usual(env: &Env, mut view: Value) -> Value {
    // The timeout of a run without tokens is of no node, and an object of an earlier build does not say why.
    let Some((workflow_id, node_id)) = why::subject(&view) else {
        return view;
    };
    let found = match deadline::within(INDEX_MS, usual(env, &workflow_id, &node_id)).await {
        Some(Ok(found)) => Ok(found),
        Some(Err(error)) => {
            let message = error.to_string();
            platform::log(json!({"level": "error", "event": "index_failed", "message": message}));
            Err(())
        }
        None => Err(()),
    };
    why::add_usual(&mut view, found);
    view
}

async fn usual(env: &Env, workflow_id: &str, node_id: &str) -> Result<Option<Percentiles>> {
    latencies::usual(workflow_id, node_id, &env.d1("DB")?).await
}
