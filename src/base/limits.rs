//! The sizes Curfew promises to refuse beyond. Every message that refuses names its limit.

pub const REQUEST_BYTES: usize = 1 << 20;
pub const DOCUMENT_BYTES: usize = 512 << 10;
pub const CONTEXT_BYTES: usize = 1 << 20;
pub const RESULT_BYTES: usize = 512 << 10;
/// The largest row of a run's object. The platform takes twice as much.
pub const ROW_BYTES: usize = 1 << 20;
/// A run's output is a part of the row that says how the run stands.
pub const OUTPUT_BYTES: usize = ROW_BYTES - (16 << 10);
pub const PROMPT_BYTES: usize = 256 << 10;
pub const CHECKPOINT_BYTES: usize = 512 << 10;
/// Results that wait at the joins of a run: they are held in memory.
pub const JOINED_BYTES: usize = 16 << 20;
/// One item of a fan-out, and all of them.
pub const ITEM_BYTES: usize = 512 << 10;
pub const ITEMS_BYTES: usize = 1 << 20;
/// What the events of one attempt carry.
pub const EVENTS_BYTES: usize = 512 << 10;
/// The sentence of a failure, everywhere, and its code.
pub const FAILURE_BYTES: usize = 4 << 10;
pub const FAILURE_CODE_BYTES: usize = 128;
/// The reason of a cancellation.
pub const REASON_BYTES: usize = 4 << 10;
pub const NODES: usize = 500;
pub const TRANSITIONS: usize = 2_000;
pub const STEPS: usize = 100;
pub const FAN_OUT_WIDTH: usize = 1_000;
pub const SIGNALS_KEPT: usize = 100;
pub const SIGNALS_KEPT_BYTES: usize = ROW_BYTES - (1 << 10);
/// Events one attempt at a task may emit.
pub const EVENTS_OF_TASK: usize = 100;
/// Workflows that one event may start.
pub const TRIGGERED: u64 = 100;
/// Events that may lead from run to run, each emitted by a run that the one before it started.
pub const EVENT_HOPS: u32 = 16;
/// Runs that one event may start in all: by itself, and by the events that those runs emit.
pub const EVENT_RUNS: u64 = 1_000;
/// How deep workflows may call each other.
pub const CALL_DEPTH: u32 = 16;
/// A child's id is its parent's with the token's behind it, so that ids of children may be longer than users'.
pub const CHILD_RUN_ID_LENGTH: usize = 512;
/// How deep JSON may be nested in a document, an input or a result. The parser's own limit is 127; rows, orders and
/// snapshots wrap what they hold.
pub const DEPTH: usize = 100;
/// The longest a task may take that goes by the queue: the platform ends a consumer after 15 minutes.
pub const QUEUE_MAX_MS: u64 = 14 * crate::base::time::MINUTE;
pub const ID_LENGTH: usize = 64;
pub const RUN_ID_LENGTH: usize = 128;
pub const BREAKER_KEY_LENGTH: usize = 128;
pub const TAGS: usize = 20;
pub const TIMEOUT_MIN_MS: u64 = 1;
pub const TIMEOUT_MAX_MS: u64 = 30 * crate::base::time::DAY;
/// The furthest an operator may move the bound above: added to any date, it is still exact in JavaScript's numbers.
pub const TIMEOUT_CEILING_MS: u64 = 1_000_000_000_000_000;

/// Bounds of one run that its workflow may set.
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

/// Something is larger than what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooLarge {
    pub what: String,
    pub bytes: usize,
    pub most: usize,
}

impl TooLarge {
    pub fn check(what: impl std::fmt::Display, bytes: usize, most: usize) -> Result<(), TooLarge> {
        match bytes > most {
            true => Err(TooLarge {
                what: what.to_string(),
                bytes,
                most,
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
            self.what, self.bytes, self.most
        )
    }
}

/// How deep a value is nested; a scalar is 0. As deep as parsed JSON can be, so the recursion is bounded by the parser
/// and by the evaluator.
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
