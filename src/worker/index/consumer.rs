//! Consumer of the index queue: writes batches of updates to D1. Runs never wait for the index.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use worker::{D1Database, Env, MessageBatch, MessageExt, QueueRetryOptionsBuilder, Result};

use super::{breakers, gates, latencies, operations, runs, traces};
use crate::index::batch::{DecodedMessage, IndexUpdate, RemovedRun, decode};
use crate::index::chunks::{Chunks, Row, json_array};
use crate::index::metrics::samples;
use crate::index::run_summary::{EndedRun, RunSummary, newest};
use crate::worker::platform;

/// The delay before a failed message is delivered again. With the queue's `max_retries`, messages survive a database that is down
/// for a quarter of an hour.
const RETRY_DELAY_SECONDS: u32 = 10;

/// Written in this order, so that a run that is updated and removed in one batch ends up removed.
#[derive(Clone, Copy)]
enum Kind {
    Run,
    Gate,
    Removed,
    Breaker,
    Latency,
}

/// The updates of a batch, by kind.
#[derive(Default)]
struct Rows {
    runs: Vec<(usize, RunSummary)>,
    gates: Vec<Row>,
    removed: Vec<Row>,
    breakers: Vec<Row>,
    latencies: Vec<Row>,
    /// Ids of operations to continue.
    operations: Vec<String>,
}

/// Saves a batch. Only messages with a row that D1 refused are retried. Unreadable messages are logged and acknowledged: a retry
/// would not help.
pub async fn save(batch: MessageBatch<()>, env: &Env, database: &D1Database) {
    let messages: Vec<_> = batch.raw_iter().collect();
    let mut rows = Rows::default();
    for (message, raw) in messages.iter().enumerate() {
        let text = raw.body().as_string().unwrap_or_default();
        match decode(&text) {
            Ok(DecodedMessage { updates, unreadable }) => {
                if unreadable > 0 {
                    report_unreadable(&format!("{unreadable} pieces of a message are of no known kind"));
                }
                rows.add(message, updates);
            }
            Err(error) => report_unreadable(&error.to_string()),
        }
    }
    let operations = std::mem::take(&mut rows.operations);
    let ended = match traces::is_configured(env) {
        true => rows.ended(),
        false => Vec::new(),
    };
    let Saved { rows_written, failed } = rows.save(database).await;
    platform::log(json!({
        "level": "info", "event": "index_saved", "messages": messages.len(), "again": failed.len(),
        "rows_written": rows_written,
    }));
    let retry = QueueRetryOptionsBuilder::new()
        .with_delay_seconds(RETRY_DELAY_SECONDS)
        .build();
    let traced: BTreeSet<usize> = ended.iter().map(|(message, _)| *message).collect();
    for (message, raw) in messages.iter().enumerate() {
        match failed.contains(&message) {
            true => raw.retry_with_options(&retry),
            false if traced.contains(&message) => {}
            false => raw.ack(),
        }
    }
    // After the updates, which do not wait for it. What is not done is continued by the sweep.
    for id in operations {
        if let Err(error) = operations::work(env, &id).await {
            platform::log(json!({
                "level": "error", "event": "operation_failed", "operation_id": id, "message": error.to_string(),
            }));
        }
    }
    let unsent = traces::export(env, ended).await;
    for message in traced.difference(&failed) {
        let raw = &messages[*message];
        let age_ms = platform::now().saturating_sub(raw.timestamp().as_millis());
        let delay = match unsent.get(message) {
            None => None,
            Some(asked_ms) => {
                let delay = traces::retry_delay_seconds(env, age_ms, *asked_ms);
                if delay.is_none() {
                    platform::log(json!({"level": "error", "event": "traces_dropped", "age_ms": age_ms}));
                }
                delay
            }
        };
        match delay {
            None => raw.ack(),
            Some(seconds) => {
                let retry = QueueRetryOptionsBuilder::new()
                    .with_delay_seconds(seconds)
                    .build();
                raw.retry_with_options(&retry);
            }
        }
    }
}

fn report_unreadable(message: &str) {
    platform::log(json!({"level": "error", "event": "announcement_unreadable", "message": message}));
}

impl Rows {
    fn add(&mut self, message: usize, updates: Vec<IndexUpdate>) {
        let row = |text: String| Row { text, message };
        for update in updates {
            match update {
                IndexUpdate::Run(summary) => self.runs.push((message, summary)),
                IndexUpdate::Gate { gate } => self.gates.push(row(gate.to_string())),
                IndexUpdate::Removed { removed } => self.removed.push(row(removed_row(&removed).to_string())),
                IndexUpdate::Operation { operation } => self.operations.push(operation),
                IndexUpdate::Latency { latency } => self.latencies.push(row(latency.to_string())),
                IndexUpdate::Breaker { breaker, revision } => {
                    let state = json!({"breaker": breaker, "revision": revision});
                    self.breakers.push(row(state.to_string()));
                }
            }
        }
    }

    /// The ends that the batch tells of, each once.
    fn ended(&self) -> Vec<(usize, EndedRun)> {
        let mut known = BTreeSet::new();
        let ended = self.runs.iter().filter_map(|(message, summary)| {
            let run = summary.ended()?;
            known.insert(run.key()).then_some((*message, run))
        });
        ended.collect()
    }

    async fn save(self, database: &D1Database) -> Saved {
        let mut saved = Saved::default();
        for (kind, rows) in [
            (Kind::Run, run_rows(self.runs)),
            (Kind::Gate, self.gates),
            (Kind::Removed, self.removed),
            (Kind::Breaker, self.breakers),
            (Kind::Latency, self.latencies),
        ] {
            save_rows(kind, rows, database, &mut saved).await;
        }
        saved
    }
}

#[derive(Default)]
struct Saved {
    rows_written: usize,
    /// Messages with at least one row that was not saved.
    failed: BTreeSet<usize>,
}

fn run_rows(summaries: Vec<(usize, RunSummary)>) -> Vec<Row> {
    let rows = newest(summaries).into_iter().map(|(message, summary)| Row {
        text: samples::row(&summary).to_string(),
        message,
    });
    rows.collect()
}

/// The last summary, where the statement that counts its metrics looks for it, and what the removal needs.
fn removed_row(removed: &RemovedRun) -> Value {
    let mut row = removed.last.as_deref().map_or_else(|| json!({}), samples::row);
    row["run_id"] = json!(removed.run_id);
    row["ended_at"] = json!(removed.ended_at);
    row
}

async fn save_rows(kind: Kind, rows: Vec<Row>, database: &D1Database, saved: &mut Saved) {
    let mut chunks = Chunks::of(rows);
    while let Some(chunk) = chunks.take_next() {
        let rows = json_array(&chunk);
        let written = match kind {
            Kind::Run => runs::save(&rows, database).await,
            Kind::Gate => gates::save(&rows, database).await,
            Kind::Removed => runs::remove(&rows, database).await,
            Kind::Breaker => breakers::save(&rows, database).await,
            Kind::Latency => latencies::save(&rows, database).await,
        };
        match written {
            Ok(rows_written) => saved.rows_written += rows_written,
            Err(error) => {
                platform::log(json!({
                    "level": "error", "event": "index_write_failed", "rows": chunk.len(), "message": error.to_string(),
                }));
                chunks.mark_failed(chunk);
            }
        }
    }
    saved.failed.extend(chunks.into_failed_messages());
}

/// Saves the probe responses of a sweep. The next pass repeats what could not be saved.
pub(in crate::worker) async fn save_probed(
    summaries: Vec<RunSummary>,
    gates: Vec<Value>,
    database: &D1Database,
) -> Result<()> {
    let rows = Rows {
        runs: summaries.into_iter().map(|summary| (0, summary)).collect(),
        gates: gates
            .into_iter()
            .map(|gate| Row {
                text: gate.to_string(),
                message: 0,
            })
            .collect(),
        ..Rows::default()
    };
    match rows.save(database).await.failed.is_empty() {
        true => Ok(()),
        false => Err(worker::Error::RustError(
            "not everything that was answered could be saved".into(),
        )),
    }
}
