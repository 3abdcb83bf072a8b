//! The table of a run's object, its migrations and statements.
//!
//! There is one table, because every new run pays for its tables in rows written and in time. Its rows are in the order in which
//! they were first written (`row_ids`), so that a commit touches few pages of the file. There is no secondary index: the object
//! holds live state in memory and reads rows by id.

/// The version after all migrations. Since 3 a completed token may hold context values (`rows::COMPLETED_WITH_CONTEXT`). Rows of
/// version 2 need no migration; the next write of the header sets 3.
pub const VERSION: u32 = 3;

/// The number of tables. Reading it writes nothing.
pub const TABLES: &str =
    "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('run', 'tokens')";

/// The version of an object with this number of tables; `None` if it has no run.
pub fn version_of(tables: u64) -> Option<u32> {
    match tables {
        0 => None,
        1 => Some(VERSION),
        _two => Some(1),
    }
}

/// Writes no row if the table exists. Only tokens have a status.
pub const CREATE: &str = "CREATE TABLE IF NOT EXISTS run \
     (id INTEGER PRIMARY KEY, key TEXT NOT NULL, value TEXT NOT NULL, status TEXT NOT NULL)";

/// Undoes `CREATE` when the first commit has failed.
pub const REMOVE: &str = "DROP TABLE IF EXISTS run";

/// Counts wakes in a row that could not be saved. The next successful commit deletes the row.
pub const COUNT_FAILED_WAKE: &str = "UPDATE run SET value = value + 1 WHERE key = 'failed_wakes'";
pub const FIRST_FAILED_WAKE: &str = "INSERT INTO run (key, value, status) VALUES ('failed_wakes', '1', '')";

/// Statements that migrate from `version` to the next one.
pub fn migrate_from(version: u32) -> &'static [&'static str] {
    match version {
        // Rows were sorted by their keys, and tokens had a table of their own.
        1 => &[
            "ALTER TABLE run RENAME TO older",
            CREATE,
            "INSERT INTO run (key, value, status) SELECT key, value, '' FROM older ORDER BY key",
            "INSERT INTO run (key, value, status) SELECT printf('token/%012d', id), row, status FROM tokens ORDER BY id",
            "DROP TABLE older",
            "DROP TABLE tokens",
            "UPDATE run SET value = json_set(value, '$.schema', 2) WHERE key = 'header'",
        ],
        _ => &[],
    }
}

/// One row; `save.mjs` repeats the values for several. Reading rows from one JSON text with `json_each` is slower.
pub const SAVE: &str = "INSERT INTO run (id, key, value, status) VALUES (?, ?, ?, ?) \
     ON CONFLICT (id) DO UPDATE SET value = excluded.value, status = excluded.status";
pub const DELETE: &str = "DELETE FROM run WHERE id = ?";

/// Without ended tokens, events and undo patches, which are read on request.
pub const LOAD: &str = "SELECT id, key, status, value FROM run \
     WHERE status NOT IN ('completed', 'failed', 'timed_out', 'cancelled') AND NOT (key >= 'event/' AND key < 'event0') \
     AND NOT (key >= 'undo/' AND key < 'undo0')";
/// Undo patches. `?`: the key.
pub const LOAD_UNDO: &str = "SELECT value FROM run WHERE key = ?";
/// For each status (empty for rows that are no tokens): the number of rows, the last row id, the last event that is a row, and the
/// last event on a token: its row begins with `{"seq":` and the number, which is much cheaper to read than JSON.
pub const LOAD_SUMMARY: &str = "SELECT status, count(*), max(id), \
         max(CASE WHEN key >= 'event/' AND key < 'event0' THEN key ELSE '' END), \
         max(CASE WHEN status = '' THEN 0 ELSE CAST(substr(value, 8, 16) AS INTEGER) END) FROM run GROUP BY status";
/// Events on the rows of tokens, gates, instances and the run. `?1`: the number to start after, `?2`: the limit. Rows of tokens
/// whose last event is not later are left out before their JSON is read.
pub const LIST_ROW_EVENTS: &str = "SELECT run.key, run.value ->> '$.node_id', run.value ->> '$.token_id', event.value \
     FROM run, json_each(run.value, '$.events') AS event \
     WHERE (run.key = 'header' OR (run.key >= 'gate/' AND run.key < 'gate0') \
             OR (run.key >= 'instance/' AND run.key < 'instance0') \
             OR (run.key >= 'token/' AND run.key < 'token0' AND CAST(substr(run.value, 8, 16) AS INTEGER) > ?1)) \
         AND event.value ->> 0 > ?1 \
     ORDER BY event.value ->> 0 LIMIT ?2";
/// Only for runs with events.
pub const LOAD_LATE: &str = "SELECT value ->> '$.fields.token_id', value ->> '$.fields.epoch' FROM run \
     WHERE key >= 'event/' AND key < 'event0' AND value ->> '$.kind' = 'late_result_discarded'";
/// Lists rows without their texts, because sorting would hold all texts in memory; `LOAD_VALUES` reads them page by page.
/// `?`: the key to start after, the limit.
pub const LIST_EVENTS: &str = "SELECT id, key, status, octet_length(value) FROM run \
     WHERE key > ? AND key < 'event0' ORDER BY key LIMIT ?";
/// Events with a timeout record.
pub const LIST_TIMEOUTS: &str = "SELECT id, key, status, octet_length(value) FROM run \
     WHERE key > ? AND key < 'event0' AND value ->> '$.record' IS NOT NULL ORDER BY key LIMIT ?";
/// How late deadlines were enforced, by scope: count, sum and maximum in milliseconds.
pub const LOAD_LATENESS: &str = "SELECT value ->> '$.record.timeout_event.scope', count(*), \
         sum(value ->> '$.record.timeout_event.lateness_ms'), max(value ->> '$.record.timeout_event.lateness_ms') \
     FROM run WHERE key >= 'event/' AND key < 'event0' AND value ->> '$.record' IS NOT NULL GROUP BY 1";
/// What the metrics of a run are counted from, without the texts of results. Events without what they say.
pub const LOAD_MEASURED_EVENTS: &str = "SELECT key, \
         json_object('at', value -> '$.at', 'kind', value -> '$.kind', 'record', value -> '$.record') \
     FROM run WHERE key >= 'event/' AND key < 'event0' AND (value ->> '$.record' IS NOT NULL OR value ->> '$.kind' IN \
         ('run_started', 'run_completed', 'run_failed', 'run_timed_out', 'run_cancelled', 'run_retried', 'run_restarted', \
          'token_retried', 'late_result_discarded', 'dispatch_rung_again'))";
pub const LOAD_MEASURED_TOKENS: &str = "SELECT status, json_object('node_id', value -> '$.node_id', \
         'created_at', value -> '$.created_at', 'started_at', value -> '$.started_at', 'ended_at', value -> '$.ended_at', \
         'retried', json(ifnull(value -> '$.retried', '{}'))) \
     FROM run WHERE status IN ('completed', 'completed+', 'failed', 'timed_out', 'cancelled')";
pub const LIST_INSTANCES: &str = "SELECT id, key, status, octet_length(value) FROM run \
     WHERE key > ? AND key < 'instance0' ORDER BY key LIMIT ?";
pub const LIST_TOKENS: &str = "SELECT id, key, status, octet_length(value) FROM run \
     WHERE key > ? AND key < 'token0' ORDER BY key LIMIT ?";
/// The `?` is replaced by one `?` for each row id.
pub const LOAD_VALUES: &str = "SELECT id, value FROM run WHERE id IN (?)";
