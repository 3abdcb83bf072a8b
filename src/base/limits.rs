//! Sizes and counts beyond which Curfew rejects. Every rejection states its limit.

pub const REQUEST_BYTES: usize = 1 << 20;
pub const DOCUMENT_BYTES: usize = 512 << 10;
pub const CONTEXT_BYTES: usize = 1 << 20;
pub const RESULT_BYTES: usize = 512 << 10;
/// The largest row in a run's storage. The platform allows twice as much.
pub const ROW_BYTES: usize = 1 << 20;
/// A run's output is part of the row that holds the run's status.
pub const OUTPUT_BYTES: usize = ROW_BYTES - (16 << 10);
pub const PROMPT_BYTES: usize = 256 << 10;
pub const CHECKPOINT_BYTES: usize = 512 << 10;
/// All branch results that a run holds in memory until their joins fire.
pub const JOIN_RESULTS_BYTES: usize = 16 << 20;
/// Undelivered messages of a run. Above it no further token begins that posts one: messages stay in memory, in several copies
/// while they are saved, and a run shares 128 MB with others.
pub const OUTBOX_BYTES: usize = 8 << 20;
/// One item of a fan-out, and all its items together.
pub const FAN_OUT_ITEM_BYTES: usize = 512 << 10;
pub const FAN_OUT_ITEMS_BYTES: usize = 1 << 20;
/// The payloads of all events that one attempt emits.
pub const EVENTS_PER_ATTEMPT_BYTES: usize = 512 << 10;
/// The message and the code of a failure.
pub const FAILURE_BYTES: usize = 4 << 10;
pub const FAILURE_CODE_BYTES: usize = 128;
/// The reason of a cancellation.
pub const REASON_BYTES: usize = 4 << 10;
pub const NODES: usize = 500;
pub const TRANSITIONS: usize = 2_000;
pub const STEPS: usize = 100;
pub const FAN_OUT_WIDTH: usize = 1_000;
pub const BUFFERED_SIGNALS: usize = 100;
pub const BUFFERED_SIGNALS_BYTES: usize = ROW_BYTES - (1 << 10);
/// Events that one attempt of a task may emit.
pub const EVENTS_PER_ATTEMPT: usize = 100;
/// Workflows that one event may trigger.
pub const WORKFLOWS_PER_EVENT: u64 = 100;
/// Length of a chain in which each event starts a run that emits the next event.
pub const EVENT_HOPS: u32 = 16;
/// Runs that one event may start, directly and through the events that those runs emit.
pub const RUNS_PER_EVENT: u64 = 1_000;
/// Runs that one request may start.
pub const BATCH_STARTS: usize = 100;
/// Runs that one bulk operation may name.
pub const BULK_IDS: usize = 1_000;
/// Nesting of workflow calls.
pub const CALL_DEPTH: u32 = 16;
/// The id of a child run contains its parent's id, so it may be longer than an id that a client chooses.
pub const CHILD_RUN_ID_LENGTH: usize = 512;
/// Nesting of JSON in a document, an input or a result. The parser's limit is 127; the difference leaves room for the rows,
/// orders and snapshots that wrap these values.
pub const DEPTH: usize = 100;
/// The longest task that may go through the queue: the platform ends a consumer after 15 minutes.
pub const QUEUE_MAX_MS: u64 = 14 * crate::base::time::MINUTE;
pub const ID_LENGTH: usize = 64;
pub const RUN_ID_LENGTH: usize = 128;
pub const BREAKER_KEY_LENGTH: usize = 128;
pub const TAGS: usize = 20;
/// Handlers in `on_end`.
pub const END_HANDLERS: usize = 20;
/// Targets in `notify`, and as many in the deployment's variable.
pub const NOTIFY_TARGETS: usize = 10;
pub const NOTIFY_HEADERS: usize = 20;
/// The URL of a target, and all of its headers together, before secrets are filled in.
pub const NOTIFY_TEXT_BYTES: usize = 2 << 10;
/// The body of a notification. Longer texts in it are cut.
pub const NOTIFICATION_BYTES: usize = 16 << 10;
/// Notifications that wait for one target. Further ones are counted in a summary.
pub const NOTIFICATIONS_PENDING: usize = 100;
/// Notifications that wait for all targets of a run together, so that runs which share an isolate fit into its memory.
pub const NOTIFICATIONS_PENDING_OF_RUN: usize = 500;
/// Notifications of a run that stay listed after they were delivered or given up.
pub const NOTIFICATIONS_KEPT: usize = 100;
pub const TIMEOUT_MIN_MS: u64 = 1;
pub const TIMEOUT_MAX_MS: u64 = 30 * crate::base::time::DAY;
/// The highest `TIMEOUT_MAX_MS` that an operator may configure. Added to any date, it is still an exact JavaScript number.
pub const TIMEOUT_CEILING_MS: u64 = 1_000_000_000_000_000;

/// Limits of one run that its workflow may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimits {
    pub tokens_total: u64,
    pub tokens_active: u64,
    pub loop_iterations: u64,
}

impl Default for RunLimits {
    fn default() -> Self {
        RunLimits {
            tokens_total: 10_000,
            tokens_active: 1_000,
            loop_iterations: 1_000,
        }
    }
}

/// A value exceeds its size limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooLarge {
    pub what: String,
    pub bytes: usize,
    pub bytes_max: usize,
}

impl TooLarge {
    pub fn check(what: impl std::fmt::Display, bytes: usize, bytes_max: usize) -> Result<(), TooLarge> {
        match bytes > bytes_max {
            true => Err(TooLarge {
                what: what.to_string(),
                bytes,
                bytes_max,
            }),
            false => Ok(()),
        }
    }
}

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} is {} bytes; the limit is {}",
            self.what, self.bytes, self.bytes_max
        )
    }
}

/// The nesting of a value; a scalar has 0. The parser and the evaluator bound the nesting, and so this recursion.
pub fn depth_of(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::Array(values) => 1 + values.iter().map(depth_of).max().unwrap_or(0),
        serde_json::Value::Object(fields) => 1 + fields.values().map(depth_of).max().unwrap_or(0),
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_) => 0,
    }
}
