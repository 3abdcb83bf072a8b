//! What runs cost on Cloudflare's paid plan, beyond the included amounts.

/// Dollars per million.
const ROWS_WRITTEN: f64 = 1.0;
const OBJECT_REQUESTS: f64 = 0.15;
const SECONDS_AWAKE: f64 = 1.6;
const WORKER_REQUESTS: f64 = 0.3;
const QUEUE_OPERATIONS: f64 = 0.4;

/// A message is written, read and deleted.
const OPERATIONS_A_MESSAGE: u64 = 3;
/// Rows that D1 writes for a run that is published to the index at its end: the row and an entry in each index.
const INDEX_ROWS: u64 = 5;

/// What runs used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub runs: u64,
    /// With alarms.
    pub rows_written: u64,
    /// Requests to objects, and alarms.
    pub object_requests: u64,
    /// Calls of executors.
    pub calls: u64,
    /// Messages of the task queue.
    pub queue_messages: u64,
    /// How long objects were in memory because a call was open.
    pub awake_ms: u64,
}

/// CPU time is left out: a run takes a few milliseconds of it, which are less than its rows by far.
pub fn dollars(usage: &Usage) -> f64 {
    let rows = usage.rows_written + usage.runs * INDEX_ROWS;
    let messages = usage.queue_messages + usage.runs;
    let per_million = rows as f64 * ROWS_WRITTEN
        + usage.object_requests as f64 * OBJECT_REQUESTS
        + usage.awake_ms as f64 / 1_000.0 * SECONDS_AWAKE
        + (usage.runs + usage.calls) as f64 * WORKER_REQUESTS
        + (messages * OPERATIONS_A_MESSAGE) as f64 * QUEUE_OPERATIONS;
    // A millionth of a cent is as exact as it can be.
    (per_million * 100.0).round() / 100.0 / 1_000_000.0
}
