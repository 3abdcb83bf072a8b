//! The `breakers` table in D1: the last known state of every breaker that ever counted a failure.

use serde::{Deserialize, Serialize};
use serde_json::json;
use worker::{D1Database, Result};

use crate::api::cursor;
use crate::worker::index::page::{Page, page, rows_limit, write_all};

/// Messages may be repeated and reordered: the higher revision wins.
const SAVE: &str = "INSERT INTO breakers (key, state, failures, opened_at, trial_at, escalated_at, updated_at, revision) \
    SELECT value ->> '$.breaker.key', value ->> '$.breaker.state', value ->> '$.breaker.failures', \
        value ->> '$.breaker.opened_at', value ->> '$.breaker.trial_at', value ->> '$.breaker.escalated_at', \
        value ->> '$.breaker.updated_at', value ->> '$.revision' \
    FROM json_each(?1) WHERE true ORDER BY value ->> '$.revision' \
    ON CONFLICT (key) DO UPDATE SET state = excluded.state, failures = excluded.failures, \
        opened_at = excluded.opened_at, trial_at = excluded.trial_at, escalated_at = excluded.escalated_at, \
        updated_at = excluded.updated_at, revision = excluded.revision \
    WHERE excluded.revision > breakers.revision";

const LIST: &str = "SELECT key, state, failures, opened_at, trial_at, escalated_at, updated_at FROM breakers \
    WHERE key > ?1 ORDER BY key LIMIT ?2";

/// `states` is a JSON array of breaker states with their revisions.
pub(in crate::worker) async fn save(states: &str, database: &D1Database) -> Result<usize> {
    write_all(&[SAVE], &[states.into()], database).await
}

#[derive(Serialize, Deserialize)]
struct Row {
    key: String,
    state: String,
    failures: u64,
    opened_at: Option<u64>,
    trial_at: Option<u64>,
    escalated_at: Option<u64>,
    updated_at: u64,
}

/// The list's name in cursors.
pub const CURSOR: &str = "breakers";

pub async fn list(database: &D1Database, after: &str, limit: u64) -> Result<Page> {
    let statement = database.prepare(LIST).bind(&[after.into(), rows_limit(limit)])?;
    page(
        statement,
        limit,
        |row: &Row| cursor::write(CURSOR, &[&row.key]),
        |row| Ok(json!(row)),
    )
    .await
}
