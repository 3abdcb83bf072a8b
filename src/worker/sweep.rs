//! The backstop behind the alarms: once a minute the runs whose end is overdue, and some that nothing was heard of for long,
//! are rung. The object decides; what it answers is what the index keeps, so that a word that was lost is made good, too.

use std::cell::RefCell;

use futures_util::StreamExt;
use futures_util::stream::iter;
use serde::Deserialize;
use serde_json::{Value, json};
use wasm_bindgen::JsValue;
use worker::{D1Database, Env, Result};

use crate::base::time::Millis;
use crate::index::run_summary::{ProbeResponse, RunSummary};
use crate::run::Settings;
use crate::worker::index::event_starts;
use crate::worker::index::{consumer, runs};
use crate::worker::platform::http_client::{Peer, Request};
use crate::worker::platform::{self, deadline};

/// How late a deadline may be before its object is rung: the alarm has the first word, and may be a minute late itself.
const LATE_MS: u64 = 60_000;
/// How long nothing may be heard of a run that has not ended.
const QUIET_MS: u64 = 3_600_000;

/// Rung in one pass, so that it ends before the next one begins.
const DUE_MOST: u32 = 100;
const UNHEARD_MOST: u32 = 20;
const KEPT_TOO_LONG_MOST: u32 = 50;
/// Rows that are looked at for those, in each of two places.
const OLDEST: u32 = 100;
/// How long after its time a run's row may still be there: the object deletes itself by an alarm, and its word takes a while.
const REMOVAL_MS: u64 = 3_600_000;
const AT_ONCE: usize = 6;
/// How long one object may take to answer, and when a pass rings no more.
const RING_MS: u64 = 5_000;
const PASS_MS: u64 = 40_000;

const DUE: &str = "SELECT id, count(*) OVER () AS total FROM runs \
    WHERE ended_at IS NULL AND due_at <= ?1 ORDER BY due_at LIMIT ?2";

/// Not counted: most of them are well, and only wait.
const UNHEARD: &str = "SELECT id, 0 AS total FROM runs \
    WHERE ended_at IS NULL AND updated_at <= ?1 AND (due_at IS NULL OR due_at > ?2) ORDER BY updated_at LIMIT ?3";

/// To the end of the line: runs that cannot be rung must not keep the others from it.
const PUT_OFF: &str = "UPDATE runs SET updated_at = ?2, due_at = CASE WHEN due_at < ?2 THEN ?2 ELSE due_at END \
    WHERE id IN (SELECT value FROM json_each(?1))";

/// Rows of runs that ended longer ago than they are kept: their removal was lost. Looked for among the oldest and again from
/// somewhere between them and the rest, so that runs that are old and well cannot hide the others for ever.
const KEPT_TOO_LONG: &str = "WITH oldest AS (SELECT min(started_at) AS at FROM runs) \
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

/// What came of the rings.
#[derive(Default)]
struct Answers {
    standings: Vec<RunSummary>,
    gates: Vec<Value>,
    /// No run lives there.
    gone: Vec<String>,
    unanswered: Vec<String>,
}

/// One pass. It returns whatever happens, and says what it did.
pub async fn sweep(env: &Env) {
    let began_at = platform::now();
    let line = match pass(env, began_at).await {
        Ok(line) => line,
        Err(error) => json!({"level": "error", "event": "sweep_failed", "message": error.to_string()}),
    };
    let mut line = line;
    line["duration_ms"] = json!(platform::now().saturating_sub(began_at));
    platform::log(line);
}

async fn pass(env: &Env, began_at: Millis) -> Result<Value> {
    let database = env.d1("DB")?;
    let setting = |name: &str, default: u64| platform::number(env, name).unwrap_or(default);
    let late_at = began_at.saturating_sub(setting("CURFEW_SWEEP_LATE_MS", LATE_MS));
    let quiet_at = began_at.saturating_sub(setting("CURFEW_SWEEP_QUIET_MS", QUIET_MS));
    let kept_ms = setting("CURFEW_RETENTION_MS", Settings::default().retention_ms);
    let kept_since = moment(began_at.saturating_sub(kept_ms.saturating_add(REMOVAL_MS)));
    let (late_at, quiet_at) = (moment(late_at), moment(quiet_at));
    let due = rows(&database, DUE, &[late_at.clone(), DUE_MOST.into()]).await?;
    let unheard = rows(
        &database,
        UNHEARD,
        &[quiet_at.clone(), late_at, UNHEARD_MOST.into()],
    )
    .await?;
    let somewhere = JsValue::from_f64(platform::random());
    let bindings = [
        kept_since,
        quiet_at,
        somewhere,
        OLDEST.into(),
        KEPT_TOO_LONG_MOST.into(),
    ];
    let kept_too_long = rows(&database, KEPT_TOO_LONG, &bindings).await?;
    let found = due.first().map_or(0, |row| row.total) + unheard.len() + kept_too_long.len();
    let all = due.into_iter().chain(unheard).chain(kept_too_long);
    let ids: Vec<String> = all.map(|row| row.id).collect();
    let answers = ring_all(env, ids, began_at).await;
    let (rung, gone) = (answers.standings.len(), answers.gone.len());
    keep(&database, answers, began_at).await?;
    event_starts::remove_old(&database, began_at).await?;
    Ok(json!({
        "level": "info", "event": "sweep", "found": found, "rung": rung, "gone": gone,
        "left": found.saturating_sub(rung + gone),
    }))
}

async fn rows(database: &D1Database, statement: &str, bindings: &[JsValue]) -> Result<Vec<Row>> {
    database.prepare(statement).bind(bindings)?.all().await?.results()
}

/// D1 takes numbers as JavaScript has them.
fn moment(at: Millis) -> JsValue {
    JsValue::from_f64(at as f64)
}

async fn ring_all(env: &Env, ids: Vec<String>, began_at: Millis) -> Answers {
    let answers = RefCell::new(Answers::default());
    let rings = iter(ids).for_each_concurrent(AT_ONCE, |id| {
        let answers = &answers;
        async move {
            let is_over = platform::now().saturating_sub(began_at) >= PASS_MS;
            // What there was no time for was not tried, and stays where it is.
            if is_over {
                return;
            }
            let rung = ring(env, &id).await;
            let mut answers = answers.borrow_mut();
            match rung {
                Ok(ProbeResponse {
                    summary: Some(summary),
                    gates,
                }) => {
                    answers.standings.push(summary);
                    answers.gates.extend(gates);
                }
                Ok(ProbeResponse { summary: None, .. }) => {
                    platform::log(json!({"level": "warn", "event": "index_row_without_run", "run_id": id}));
                    answers.gone.push(id);
                }
                Err(message) => {
                    platform::log(json!({
                        "level": "warn", "event": "ring_failed", "run_id": id, "message": message,
                    }));
                    answers.unanswered.push(id);
                }
            }
        }
    });
    rings.await;
    answers.into_inner()
}

async fn ring(env: &Env, id: &str) -> std::result::Result<ProbeResponse, String> {
    let runs = env.durable_object("RUNS").map_err(|error| error.to_string())?;
    let stub = runs.get_by_name(id).map_err(|error| error.to_string())?;
    let object: Peer = stub.into_rpc();
    let asked = async {
        let answer = Request::post("http://run/ring", "{}").send(&object).await?;
        match answer.status() {
            200 => Ok(answer.text().await?),
            status => Err(format!("the run's object answered with status {status}")),
        }
    };
    let answer = deadline::within(RING_MS, asked).await;
    let text = answer.ok_or("the run's object did not answer in time")??;
    serde_json::from_str(&text)
        .map_err(|error| format!("the run's object answered what is no standing: {error}"))
}

async fn keep(database: &D1Database, answers: Answers, began_at: Millis) -> Result<()> {
    let saved = consumer::save_answers(answers.standings, answers.gates, database).await;
    if !answers.gone.is_empty() {
        runs::forget(&answers.gone, began_at, database).await?;
    }
    if !answers.unanswered.is_empty() {
        let ids = JsValue::from(json!(answers.unanswered).to_string());
        database
            .prepare(PUT_OFF)
            .bind(&[ids, moment(began_at)])?
            .run()
            .await?;
    }
    saved
}
