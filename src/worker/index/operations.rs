//! Bulk operations in D1: their rows, and the work on them. A message of the index queue does some pages of an operation and sends the
//! next message. The sweep sends one for an operation that stands still.
//!
//! A page may be repeated after a crash, or done by two consumers at once. Its counts and the new cursor are saved in one statement
//! that expects the old cursor, so a page is counted once.

use std::cell::RefCell;

use futures_util::FutureExt;
use serde::Deserialize;
use serde_json::{Value, json};
use wasm_bindgen::JsValue;
use worker::{D1Database, Env, QueueContentType, RawMessageBuilder, Result};

use crate::api::bulk::{Counts, ERRORS_MAX, Operation, Page};
use crate::api::error::Error;
use crate::api::scope;
use crate::base::from_json::from_json;
use crate::base::text::to_json;
use crate::base::time::Millis;
use crate::index::batch::operation_message;
use crate::protocol::caller::Caller;
use crate::worker::index::runs;
use crate::worker::platform::concurrent::run_all;
use crate::worker::platform::{self, log_error};
use crate::worker::run_client::{CallError, RunClient};

/// How long a run's object may take to respond.
const OBJECT_MS: u64 = 10_000;
/// Pages of one message: 250 of the thousand calls that an invocation may make.
const PAGES_MAX: usize = 10;
/// No page begins later than this after the message was taken. Updates of the index wait in the same queue.
const PAGES_MS: u64 = 10_000;
/// Operations that one pass of the sweep sends messages for, and that it deletes.
const SWEPT_MAX: u32 = 100;

const INSERT: &str = "INSERT INTO operations (id, kind, request, created_at, created_by, total, updated_at) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?4)";
/// The view, and apart from it what the work needs. Each is text: a row of many columns takes a reader of its own.
const READ_VIEW: &str = "SELECT json_object('id', id, 'kind', kind, \
        'status', CASE WHEN ended_at IS NULL THEN 'running' ELSE 'completed' END, 'created_at', created_at, \
        'created_by', created_by, 'ended_at', ended_at, 'total', total, 'done', done, 'failed', failed, \
        'skipped', skipped, 'errors', json(errors)) AS id FROM operations WHERE id = ?1";
const READ_WORK: &str = "SELECT json_array(request, cursor, errors) AS id FROM operations \
    WHERE id = ?1 AND ended_at IS NULL";
/// `?8` are the failures of the page.
const SAVE_PAGE: &str = "UPDATE operations SET cursor = ?3, done = done + ?4, failed = failed + ?5, skipped = skipped + ?6, \
        updated_at = ?7, errors = ?8, ended_at = ?9, \
        total = CASE WHEN ?9 IS NULL THEN total ELSE done + ?4 + failed + ?5 + skipped + ?6 END \
    WHERE id = ?1 AND cursor = ?2 AND ended_at IS NULL RETURNING id";
const CONTINUE: &str = "UPDATE operations SET updated_at = ?2 WHERE id IN ( \
    SELECT id FROM operations WHERE ended_at IS NULL AND updated_at <= ?1 ORDER BY updated_at LIMIT ?3) RETURNING id";
const REMOVE_OLD: &str = "DELETE FROM operations WHERE id IN ( \
    SELECT id FROM operations WHERE ended_at <= ?1 ORDER BY ended_at LIMIT ?2)";

/// The one column of every statement here.
#[derive(Deserialize)]
struct Id {
    id: String,
}

/// Stores an operation and has its work begin. Returns its id.
pub async fn create(env: &Env, kind: &str, operation: &Operation, now: Millis) -> Result<String> {
    let id = platform::random_id()?;
    let request = to_json(operation).map_err(|error| worker::Error::RustError(error.to_string()))?;
    let created_by = operation.caller.name.as_deref();
    let bindings = [
        id.as_str().into(),
        kind.into(),
        request.into(),
        number(now),
        created_by.map_or(JsValue::NULL, JsValue::from),
        operation
            .total()
            .map_or(JsValue::NULL, |total| number(total as u64)),
    ];
    env.d1("DB")?.prepare(INSERT).bind(&bindings)?.run().await?;
    // Without a message the sweep begins the work.
    if let Err(error) = send_message(env, &id).await {
        log_error("queue_failed", &error.to_string());
    }
    Ok(id)
}

/// The view of an operation, for a caller that may see it.
pub async fn read(
    database: &D1Database,
    caller: &Caller,
    id: &str,
) -> Result<std::result::Result<Value, Error>> {
    let Some(Id { id: text }) = first(database, READ_VIEW, &[id.into()]).await? else {
        return Ok(Err(Error::not_found("the operation")));
    };
    let view: Value = serde_json::from_str(&text)?;
    Ok(scope::check_operation(caller, view["created_by"].as_str()).map(|()| view))
}

async fn first(database: &D1Database, statement: &str, bindings: &[JsValue]) -> Result<Option<Id>> {
    database.prepare(statement).bind(bindings)?.first(None).await
}

async fn send_message(env: &Env, id: &str) -> Result<()> {
    let message = RawMessageBuilder::new(operation_message(id).into());
    let message = message.build_with_content_type(QueueContentType::Text);
    env.queue("INDEX_QUEUE")?.send_raw(message).await
}

/// Does the next pages of an operation.
pub async fn work(env: &Env, id: &str) -> Result<()> {
    let began_at = platform::now();
    let database = env.d1("DB")?;
    for _ in 0..PAGES_MAX {
        let Some(Id { id: text }) = first(&database, READ_WORK, &[id.into()]).await? else {
            return Ok(());
        };
        let [request, cursor, errors]: [String; 3] = from_json(&text)?;
        if !do_page(env, &database, id, &request, cursor, &errors).await? {
            return Ok(());
        }
        if platform::now().saturating_sub(began_at) >= PAGES_MS {
            break;
        }
    }
    send_message(env, id).await
}

/// Whether the operation goes on, and this consumer with it.
async fn do_page(
    env: &Env,
    database: &D1Database,
    id: &str,
    request: &str,
    cursor: String,
    errors: &str,
) -> Result<bool> {
    let operation: Operation = from_json(request)?;
    let invalid = |error: Error| worker::Error::RustError(error.message);
    let (ids, next) = match operation.page(&cursor).map_err(invalid)? {
        Page::Ids { ids, next } => (ids, next),
        Page::List(list) => runs::ids(database, &list).await?,
    };
    let counts = send_to_all(env, id, &operation, &ids).await;
    let mut errors: Vec<Value> = serde_json::from_str(errors)?;
    errors.extend(counts.errors);
    errors.truncate(ERRORS_MAX);
    let now = number(platform::now());
    let bindings = [
        id.into(),
        cursor.into(),
        next.as_deref().unwrap_or_default().into(),
        number(counts.done),
        number(counts.failed),
        number(counts.skipped),
        now.clone(),
        json!(errors).to_string().into(),
        if next.is_some() { JsValue::NULL } else { now },
    ];
    let saved = first(database, SAVE_PAGE, &bindings).await?;
    Ok(saved.is_some() && next.is_some())
}

async fn send_to_all(env: &Env, id: &str, operation: &Operation, runs: &[String]) -> Counts {
    let counts = RefCell::new(Counts::default());
    let calls = runs.iter().map(|run| {
        let counts = &counts;
        async move {
            let client = RunClient::new(env, run, OBJECT_MS)
                .on_behalf_of(Some(&operation.caller))
                .for_operation(id);
            let answer = client.send(&operation.request).await;
            let mut counts = counts.borrow_mut();
            match answer {
                Ok(answer) => {
                    let (status, body) = answer.into_parts();
                    counts.add(run, status, &body);
                }
                Err(error) => {
                    let code = match &error {
                        CallError::TimedOut => "timeout",
                        CallError::OtherBuild => "other_build",
                        CallError::Failed(_) => "internal",
                    };
                    counts.fail(run, code, &String::from(error));
                }
            }
        }
        .boxed_local()
    });
    run_all(calls.collect()).await;
    counts.into_inner()
}

/// Continues operations without progress since `stalled_at` and removes those that ended before `expired_at`.
pub async fn sweep(env: &Env, now: Millis, stalled_at: Millis, expired_at: Millis) -> Result<()> {
    let database = env.d1("DB")?;
    let bindings = [number(stalled_at), number(now), SWEPT_MAX.into()];
    let stalled = database.prepare(CONTINUE).bind(&bindings)?.all().await?;
    for Id { id } in stalled.results()? {
        platform::log(json!({"level": "warn", "event": "operation_continued", "operation_id": id}));
        send_message(env, &id).await?;
    }
    let remove = database.prepare(REMOVE_OLD);
    remove
        .bind(&[number(expired_at), SWEPT_MAX.into()])?
        .run()
        .await?;
    Ok(())
}

fn number(number: u64) -> JsValue {
    JsValue::from_f64(number as f64)
}
