//! Tables of a run's object, as numbered migrations.
//!
//! Every new run pays for its tables in rows written, so there are two: `run` holds what there is one of or few of
//! (header, snapshot, input, context), `tokens` what there are many of. No secondary index: the object holds
//! live state in memory and asks by primary key.

/// The version `migrate_from` leads to.
pub const VERSION: u32 = 1;

/// Says whether a run lives in this object at all; reading it writes nothing.
pub const EXISTS: &str = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'run'";

/// Statements that lead from version `version` to the next one. Version 0 is an empty object: there the first one writes
/// a row, and where a run lives it writes none.
pub fn migrate_from(version: u32) -> &'static [&'static str] {
    match version {
        0 => &[
            "CREATE TABLE IF NOT EXISTS run (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
            "CREATE TABLE IF NOT EXISTS tokens (id INTEGER PRIMARY KEY, status TEXT NOT NULL, row TEXT NOT NULL)",
        ],
        _ => &[],
    }
}

/// A row at a time: reading many out of one JSON text costs SQLite more than it costs to be asked for each.
pub const SAVE_RUN: &str = "INSERT INTO run (key, value) VALUES (?, ?) \
     ON CONFLICT (key) DO UPDATE SET value = excluded.value";
pub const SAVE_TOKENS: &str = "INSERT INTO tokens (id, status, row) VALUES (?, ?, ?) \
     ON CONFLICT (id) DO UPDATE SET status = excluded.status, row = excluded.row";
pub const DELETE_RUN: &str = "DELETE FROM run WHERE key = ?";

/// Events are read when somebody asks for them, not when the run comes into memory.
pub const LOAD_RUN: &str = "SELECT key, value FROM run WHERE key < 'event/' OR key >= 'event0'";
pub const LOAD_LAST_EVENT: &str =
    "SELECT key FROM run WHERE key >= 'event/' AND key < 'event0' ORDER BY key DESC LIMIT 1";
/// Asked only of runs that have events.
pub const LOAD_LATE: &str = "SELECT value ->> '$.fields.token_id', value ->> '$.fields.epoch' FROM run \
     WHERE key >= 'event/' AND key < 'event0' AND value ->> '$.kind' = 'late_result_discarded'";
/// `?`: the key to begin after, how many.
pub const LOAD_EVENTS: &str =
    "SELECT key, value FROM run WHERE key > ? AND key < 'event0' ORDER BY key LIMIT ?";
/// The same, of those that left a record behind.
pub const LOAD_TIMEOUTS: &str = "SELECT key, value FROM run \
     WHERE key > ? AND key < 'event0' AND value ->> '$.record' IS NOT NULL ORDER BY key LIMIT ?";
/// How late deadlines were enforced, by whose they were: scope, how many, milliseconds in all and at most.
pub const LOAD_LATENESS: &str = "SELECT value ->> '$.record.timeout_event.scope', count(*), \
         sum(value ->> '$.record.timeout_event.lateness_ms'), max(value ->> '$.record.timeout_event.lateness_ms') \
     FROM run WHERE key >= 'event/' AND key < 'event0' AND value ->> '$.record' IS NOT NULL GROUP BY 1";
pub const LOAD_INSTANCES: &str = "SELECT key, value FROM run WHERE key >= 'instance/' AND key < 'instance0'";
pub const LOAD_LIVE_TOKENS: &str = "SELECT id, status, row FROM tokens \
     WHERE status NOT IN ('completed', 'failed', 'timed_out', 'cancelled') ORDER BY id";
pub const LOAD_COUNTS: &str = "SELECT status, count(*) FROM tokens GROUP BY status";
pub const LOAD_TOKENS: &str = "SELECT id, status, row FROM tokens WHERE id > ? ORDER BY id LIMIT ?";
