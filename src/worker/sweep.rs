//! The sweep: a backstop for lost alarms and lost index messages. Once a minute it probes the objects of overdue runs and of some
//! runs without recent updates. The object handles what is due by itself; its response is saved in the index.

use std::cell::RefCell;

use futures_util::FutureExt;
use serde::Deserialize;
use serde_json::{Value, json};
use wasm_bindgen::JsValue;
use worker::{D1Database, Env, Result};

use crate::base::from_json::from_json;
use crate::base::time::Millis;
use crate::index::metrics::samples::SweepPass;
use crate::index::run_summary::{ProbeResponse, RunSummary};
use crate::protocol::run::{RunRequest, RunResponse};
use crate::run::Settings;
use crate::worker::index::{consumer, event_starts, metrics, operations, runs};
use crate::worker::platform::concurrent::run_all;
use crate::worker::platform::{self, log_error};
use crate::worker::run_client::RunClient;

/// How overdue a run must be: its alarm comes first, and may be a minute late.
const OVERDUE_MS: u64 = 60_000;
/// How long a run that has not ended may be without an update.
const QUIET_MS: u64 = 3_600_000;

/// Probes of one pass, limited so that a pass ends before the next one begins.
const OVERDUE_MAX: u32 = 100;
const QUIET_MAX: u32 = 20;
const EXPIRED_MAX: u32 = 50;
/// Rows examined to find expired runs, in each of two ranges.
const EXPIRED_EXAMINED: u32 = 100;
/// How long after its retention a run's row may remain: the object deletes itself by an alarm, and its message takes a while.
const REMOVAL_MS: u64 = 3_600_000;
const PROBE_TIMEOUT_MS: u64 = 5_000;
/// No probe starts later than this after the pass began.
const PASS_MS: u64 = 40_000;

const OVERDUE: &str = "SELECT id, count(*) OVER () AS total FROM runs \
    WHERE ended_at IS NULL AND due_at <= ?1 ORDER BY due_at LIMIT ?2";

/// Not counted: most of these runs are healthy and only wait.
const QUIET: &str = "SELECT id, 0 AS total FROM runs \
    WHERE ended_at IS NULL AND updated_at <= ?1 AND (due_at IS NULL OR due_at > ?2) ORDER BY updated_at LIMIT ?3";

/// Moves runs to the end of the order: runs that do not respond must not displace the others.
const POSTPONE: &str = "UPDATE runs SET updated_at = ?2, due_at = CASE WHEN due_at < ?2 THEN ?2 ELSE due_at END \
    WHERE id IN (SELECT value FROM json_each(?1))";

/// Runs whose retention is over: the message of their removal was lost. Examines the oldest rows, and rows from a random start on,
/// so that old runs that have not ended cannot hide the others forever.
const EXPIRED: &str = "WITH oldest AS (SELECT min(started_at) AS at FROM runs) \
    SELECT id, 0 AS total FROM ( \
        SELECT * FROM (SELECT id, ended_at, updated_at FROM runs INDEXED BY runs_by_started \
            WHERE started_at <= ?1 ORDER BY started_at, id LIMIT ?4) \
        UNION SELECT * FROM (SELECT id, ended_at, updated_at FROM runs INDEXED BY runs_by_started \
            WHERE started_at <= ?1 AND started_at >= (SELECT at + ?3 * (?1 - at) FROM oldest) \
            ORDER BY started_at, id LIMIT ?4) \
    ) WHERE ended_at <= ?1 AND updated_at <= ?2 LIMIT ?5";

#[derive(Deserialize)]
struct Row {
    id: String,
    total: usize,
}

#[derive(Default)]
struct ProbeResults {
    summaries: Vec<RunSummary>,
    gates: Vec<Value>,
    /// Ids whose objects have no run.
    gone: Vec<String>,
    /// Ids whose objects did not respond.
    failed: Vec<String>,
}

/// One pass. Errors and results are logged.
pub async fn sweep(env: &Env) {
    let began_at = platform::now();
    let duration_ms = || platform::now().saturating_sub(began_at);
    match pass(env, began_at).await {
        Ok(found) => {
            platform::log(json!({
                "level": "info", "event": "sweep", "found": found.total, "rung": found.probed, "gone": found.gone,
                "left": found.total.saturating_sub(found.probed + found.gone), "duration_ms": duration_ms(),
            }));
            if let Err(error) = measure(env, &found, duration_ms()).await {
                log_error("sweep_not_measured", &error.to_string());
            }
        }
        Err(error) => platform::log(json!({
            "level": "error", "event": "sweep_failed", "message": error.to_string(), "duration_ms": duration_ms(),
        })),
    }
}

/// What a pass found and did.
struct PassResult {
    overdue: usize,
    total: usize,
    probed: usize,
    gone: usize,
}

async fn measure(env: &Env, found: &PassResult, duration_ms: u64) -> Result<()> {
    let pass = SweepPass {
        ended_at: platform::now(),
        duration_ms,
        overdue: found.overdue as u64,
        others: (found.total - found.overdue) as u64,
        woken: found.probed as u64,
    };
    metrics::add_sweep(pass, &env.d1("DB")?).await
}

async fn pass(env: &Env, began_at: Millis) -> Result<PassResult> {
    let database = env.d1("DB")?;
    let setting = |name: &str, default: u64| platform::number(env, name).unwrap_or(default);
    let late_ms = setting("CURFEW_SWEEP_LATE_MS", OVERDUE_MS);
    let overdue_at = began_at.saturating_sub(late_ms);
    let quiet_at = began_at.saturating_sub(setting("CURFEW_SWEEP_QUIET_MS", QUIET_MS));
    let retention_ms = setting("CURFEW_RETENTION_MS", Settings::default().retention_ms);
    let expired_at = timestamp(began_at.saturating_sub(retention_ms.saturating_add(REMOVAL_MS)));
    let (overdue_at, quiet_at) = (timestamp(overdue_at), timestamp(quiet_at));
    let overdue = rows(&database, OVERDUE, &[overdue_at.clone(), OVERDUE_MAX.into()]).await?;
    let bindings = [quiet_at.clone(), overdue_at, QUIET_MAX.into()];
    let quiet = rows(&database, QUIET, &bindings).await?;
    let bindings = [
        expired_at,
        quiet_at,
        JsValue::from_f64(platform::random()),
        EXPIRED_EXAMINED.into(),
        EXPIRED_MAX.into(),
    ];
    let expired = rows(&database, EXPIRED, &bindings).await?;
    let overdue_total = overdue.first().map_or(0, |row| row.total);
    let total = overdue_total + quiet.len() + expired.len();
    let all = overdue.into_iter().chain(quiet).chain(expired);
    let ids: Vec<String> = all.map(|row| row.id).collect();
    let results = probe_all(env, ids, began_at).await;
    let (probed, gone) = (results.summaries.len(), results.gone.len());
    save(&database, results, began_at).await?;
    event_starts::remove_old(&database, began_at).await?;
    let stalled_at = began_at.saturating_sub(late_ms);
    operations::sweep(env, began_at, stalled_at, began_at.saturating_sub(retention_ms)).await?;
    Ok(PassResult {
        overdue: overdue_total,
        total,
        probed,
        gone,
    })
}

async fn rows(database: &D1Database, statement: &str, bindings: &[JsValue]) -> Result<Vec<Row>> {
    database.prepare(statement).bind(bindings)?.all().await?.results()
}

fn timestamp(at: Millis) -> JsValue {
    JsValue::from_f64(at as f64)
}

async fn probe_all(env: &Env, ids: Vec<String>, began_at: Millis) -> ProbeResults {
    let results = RefCell::new(ProbeResults::default());
    let probe_one = |id: String| {
        let results = &results;
        async move {
            // The time of the pass is over. Runs that were not probed keep their place for the next pass.
            if platform::now().saturating_sub(began_at) >= PASS_MS {
                return;
            }
            let response = probe(env, &id).await;
            let mut results = results.borrow_mut();
            match response {
                Ok(ProbeResponse {
                    summary: Some(summary),
                    gates,
                }) => {
                    results.summaries.push(summary);
                    results.gates.extend(gates);
                }
                Ok(ProbeResponse { summary: None, .. }) => {
                    platform::log(json!({"level": "warn", "event": "index_row_without_run", "run_id": id}));
                    results.gone.push(id);
                }
                Err(message) => {
                    platform::log(json!({
                        "level": "warn", "event": "ring_failed", "run_id": id, "message": message,
                    }));
                    results.failed.push(id);
                }
            }
        }
        .boxed_local()
    };
    run_all(ids.into_iter().map(probe_one).collect()).await;
    results.into_inner()
}

async fn probe(env: &Env, id: &str) -> std::result::Result<ProbeResponse, String> {
    match RunClient::new(env, id, PROBE_TIMEOUT_MS)
        .send(&RunRequest::Probe)
        .await?
    {
        RunResponse::Done(text) => {
            from_json(&text).map_err(|error| format!("the run's object answered what is no summary: {error}"))
        }
        other => {
            let (status, _) = other.into_parts();
            Err(format!("the run's object answered with status {status}"))
        }
    }
}

async fn save(database: &D1Database, results: ProbeResults, began_at: Millis) -> Result<()> {
    let saved = consumer::save_probed(results.summaries, results.gates, database).await;
    if !results.gone.is_empty() {
        runs::forget(&results.gone, began_at, database).await?;
    }
    if !results.failed.is_empty() {
        let ids = JsValue::from(json!(results.failed).to_string());
        database
            .prepare(POSTPONE)
            .bind(&[ids, timestamp(began_at)])?
            .run()
            .await?;
    }
    saved
}
