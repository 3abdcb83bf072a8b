//! The table of a run's object, as numbered migrations.
//!
//! Every new run pays for its tables, in rows written and in time, so there is one. Its rows stand in the order in which they
//! came (`places` knows where): what is written together lies together, and a commit touches few pages of the file. No
//! secondary index: the object holds live state in memory and asks by number.

/// The version all migrations lead to. In 3 a token that has ended may keep something of the context (`rows::KEEPING`): rows
/// of 2 are read as they are, and a run that was begun then says 3 when its header is written next.
pub const VERSION: u32 = 3;

/// How many tables there are; reading it writes nothing.
pub const TABLES: &str =
    "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('run', 'tokens')";

/// The version of an object with so many tables. `None`: no run lives in it.
pub fn version_of(tables: u64) -> Option<u32> {
    match tables {
        0 => None,
        1 => Some(VERSION),
        _two => Some(1),
    }
}

/// Makes the table of a new run. Writes no row where there is one. Only tokens have a status.
pub const CREATE: &str = "CREATE TABLE IF NOT EXISTS run \
     (id INTEGER PRIMARY KEY, key TEXT NOT NULL, value TEXT NOT NULL, status TEXT NOT NULL)";

/// The end of a table that nothing could be put into.
pub const REMOVE: &str = "DROP TABLE IF EXISTS run";

/// How often in a row it failed to save what woke the run. The row goes with the next commit that succeeds.
pub const COUNT_FAILED_WAKE: &str = "UPDATE run SET value = value + 1 WHERE key = 'failed_wakes'";
pub const FIRST_FAILED_WAKE: &str = "INSERT INTO run (key, value, status) VALUES ('failed_wakes', '1', '')";

/// Statements that lead from version `version` to the next one.
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

/// One row; `save.mjs` makes it several. Reading many out of one JSON text costs SQLite more.
pub const SAVE: &str = "INSERT INTO run (id, key, value, status) VALUES (?, ?, ?, ?) \
     ON CONFLICT (id) DO UPDATE SET value = excluded.value, status = excluded.status";
pub const DELETE: &str = "DELETE FROM run WHERE id = ?";

/// Tokens that have ended stay where they are; events and undo patches are read on request.
pub const LOAD: &str = "SELECT id, key, status, value FROM run \
     WHERE status NOT IN ('completed', 'failed', 'timed_out', 'cancelled') AND NOT (key >= 'event/' AND key < 'event0') \
     AND NOT (key >= 'undo/' AND key < 'undo0')";
/// The way back from a write. `?`: its key.
pub const LOAD_UNDO: &str = "SELECT value FROM run WHERE key = ?";
/// By status, which is none for all that are no tokens: how many rows, the last of them, and the last event.
pub const LOAD_SUMMARY: &str = "SELECT status, count(*), max(id), \
         max(CASE WHEN key >= 'event/' AND key < 'event0' THEN key ELSE '' END) FROM run GROUP BY status";
/// Asked only of runs that have events.
pub const LOAD_LATE: &str = "SELECT value ->> '$.fields.token_id', value ->> '$.fields.epoch' FROM run \
     WHERE key >= 'event/' AND key < 'event0' AND value ->> '$.kind' = 'late_result_discarded'";
/// Rows are listed without their texts, which `LOAD_VALUES` brings page by page: sorting would hold all of them at once.
/// `?`: the key to begin after, how many.
pub const LIST_EVENTS: &str = "SELECT id, key, status, octet_length(value) FROM run \
     WHERE key > ? AND key < 'event0' ORDER BY key LIMIT ?";
/// The same, of those that left a record behind.
pub const LIST_TIMEOUTS: &str = "SELECT id, key, status, octet_length(value) FROM run \
     WHERE key > ? AND key < 'event0' AND value ->> '$.record' IS NOT NULL ORDER BY key LIMIT ?";
/// How late deadlines were enforced, by whose they were: scope, how many, milliseconds in all and at most.
pub const LOAD_LATENESS: &str = "SELECT value ->> '$.record.timeout_event.scope', count(*), \
         sum(value ->> '$.record.timeout_event.lateness_ms'), max(value ->> '$.record.timeout_event.lateness_ms') \
     FROM run WHERE key >= 'event/' AND key < 'event0' AND value ->> '$.record' IS NOT NULL GROUP BY 1";
pub const LIST_INSTANCES: &str = "SELECT id, key, status, octet_length(value) FROM run \
     WHERE key > ? AND key < 'instance0' ORDER BY key LIMIT ?";
/// `?`: the key to begin after, how many.
pub const LIST_TOKENS: &str = "SELECT id, key, status, octet_length(value) FROM run \
     WHERE key > ? AND key < 'token0' ORDER BY key LIMIT ?";
/// The `?` stands for as many places as are asked for.
pub const LOAD_VALUES: &str = "SELECT id, value FROM run WHERE id IN (?)";
