//! The index in D1, written from a queue in batches so that it is never in a run's way.

use std::collections::BTreeSet;

use serde_json::json;
use worker::{D1Database, MessageBatch, MessageExt, QueueRetryOptionsBuilder, Result};

use super::{breakers, gates, latencies, runs};
use crate::index::batch::{Announcement, Contents, read};
use crate::index::chunks::{Pieces, Row, array};
use crate::index::run_summary::{RunSummary, newest};
use crate::worker::platform;

/// When a message comes back that could not be saved. `max_retries` of the queue says how often: together they outlast a
/// database that is down for a quarter of an hour.
const AGAIN_SECONDS: u32 = 10;

/// What a row is of. In this order: a run that was announced and removed in one batch is gone at its end.
#[derive(Clone, Copy)]
enum Kind {
    Run,
    Gate,
    Removed,
    Breaker,
    Latency,
}

/// What a batch brings, by kind.
#[derive(Default)]
struct Rows {
    runs: Vec<(usize, RunSummary)>,
    gates: Vec<Row>,
    removed: Vec<Row>,
    breakers: Vec<Row>,
    latencies: Vec<Row>,
}

/// Saves a batch. What the database refuses comes back later, and nothing else with it; a message that cannot be read never
/// will be.
pub async fn save(batch: MessageBatch<()>, database: &D1Database) {
    let messages: Vec<_> = batch.raw_iter().collect();
    let mut rows = Rows::default();
    for (message, raw) in messages.iter().enumerate() {
        let text = raw.body().as_string().unwrap_or_default();
        match read(&text) {
            Ok(Contents {
                announcements,
                unreadable,
            }) => {
                if unreadable > 0 {
                    report_unreadable(&format!("{unreadable} pieces of a message are of no known kind"));
                }
                rows.add(message, announcements);
            }
            Err(error) => report_unreadable(&error.to_string()),
        }
    }
    let Saved { rows_written, failed } = rows.save(database).await;
    platform::log(json!({
        "level": "info", "event": "index_saved", "messages": messages.len(), "again": failed.len(),
        "rows_written": rows_written,
    }));
    let again = QueueRetryOptionsBuilder::new()
        .with_delay_seconds(AGAIN_SECONDS)
        .build();
    for (message, raw) in messages.iter().enumerate() {
        match failed.contains(&message) {
            true => raw.retry_with_options(&again),
            false => raw.ack(),
        }
    }
}

fn report_unreadable(message: &str) {
    platform::log(json!({"level": "error", "event": "announcement_unreadable", "message": message}));
}

impl Rows {
    fn add(&mut self, message: usize, announcements: Vec<Announcement>) {
        let row = |text: String| Row { text, message };
        for announcement in announcements {
            match announcement {
                Announcement::Run(summary) => self.runs.push((message, summary)),
                Announcement::Gate { gate } => self.gates.push(row(gate.to_string())),
                Announcement::Removed { removed } => self.removed.push(row(json!(removed).to_string())),
                Announcement::Latency { latency } => self.latencies.push(row(latency.to_string())),
                Announcement::Breaker { breaker, revision } => {
                    let news = json!({"breaker": breaker, "revision": revision});
                    self.breakers.push(row(news.to_string()));
                }
            }
        }
    }

    async fn save(self, database: &D1Database) -> Saved {
        let mut saved = Saved::default();
        for (kind, rows) in [
            (Kind::Run, of_runs(self.runs)),
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

/// What came of it.
#[derive(Default)]
struct Saved {
    rows_written: usize,
    /// Messages of which something could not be saved.
    failed: BTreeSet<usize>,
}

fn of_runs(told: Vec<(usize, RunSummary)>) -> Vec<Row> {
    let rows = newest(told).into_iter().map(|(message, summary)| Row {
        text: json!(summary).to_string(),
        message,
    });
    rows.collect()
}

async fn save_rows(kind: Kind, rows: Vec<Row>, database: &D1Database, saved: &mut Saved) {
    let mut pieces = Pieces::of(rows);
    while let Some(piece) = pieces.take() {
        let rows = array(&piece);
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
                    "level": "error", "event": "index_write_failed", "rows": piece.len(), "message": error.to_string(),
                }));
                pieces.failed(piece);
            }
        }
    }
    saved.failed.extend(pieces.into_failed());
}

/// What objects answered, rather than a queue: nobody brings it again but the next pass.
pub(in crate::worker) async fn save_answers(
    standings: Vec<RunSummary>,
    views: Vec<serde_json::Value>,
    database: &D1Database,
) -> Result<()> {
    let rows = Rows {
        runs: standings.into_iter().map(|summary| (0, summary)).collect(),
        gates: views
            .into_iter()
            .map(|view| Row {
                text: view.to_string(),
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
