//! What a run costs on Cloudflare's paid plan, beyond the included amounts.

use crate::analysis::bounds::{Cost, UNBOUNDED};
use crate::base::time::SECOND;

/// Dollars per million.
const ROWS_WRITTEN: f64 = 1.0;
const OBJECT_REQUESTS: f64 = 0.15;
const SECONDS_AWAKE: f64 = 1.6;
const WORKER_REQUESTS: f64 = 0.3;
const CPU_MS: f64 = 0.02;
const QUEUE_OPERATIONS: f64 = 0.4;

/// A message is written, read and deleted.
const OPERATIONS_A_MESSAGE: f64 = 3.0;
/// Rows of the index for one message about a run, beside one for each tag: the row with its indexes, and the totals.
const INDEX_ROWS: u64 = 5;
/// How long an object stays in memory after an event.
const IDLE_MS: u64 = 10 * SECOND;
/// Computation of a run, and of a token.
const RUN_CPU_MS: f64 = 10.0;
const TOKEN_CPU_MS: f64 = 1.0;

/// How long the objects of a run are in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awake {
    /// While calls are open.
    DuringCalls,
    /// Also for a while after every event, but not longer than the runs take.
    AfterEvents { run_ms: u64 },
}

/// `None` if there is no bound.
pub fn dollars(cost: Cost, tags: usize, has_queue: bool, awake: Awake) -> Option<f64> {
    let awake_ms = match awake {
        Awake::DuringCalls => cost.open_ms,
        Awake::AfterEvents { run_ms } => {
            let events = cost
                .tokens
                .saturating_mul(2)
                .saturating_add(cost.runs.saturating_mul(2));
            let idle_ms = events.saturating_mul(IDLE_MS);
            let longest = run_ms.saturating_add(IDLE_MS).saturating_mul(cost.runs);
            cost.open_ms.saturating_add(idle_ms).min(longest)
        }
    };
    if [cost.rows, cost.calls, cost.checks, cost.tokens, awake_ms].contains(&UNBOUNDED) {
        return None;
    }
    let index_rows = cost.publications.saturating_mul(INDEX_ROWS + tags as u64);
    let (calls, tokens, runs) = (cost.calls as f64, cost.tokens as f64, cost.runs as f64);
    let queued = match has_queue {
        true => calls,
        false => 0.0,
    };
    let messages = cost.publications as f64 + queued;
    let millionths = (cost.rows.saturating_add(index_rows)) as f64 * ROWS_WRITTEN
        + (2.0 * calls + cost.checks as f64 + tokens + 3.0 * runs) * OBJECT_REQUESTS
        + awake_ms as f64 / 1_000.0 * SECONDS_AWAKE
        + (runs + calls + queued) * WORKER_REQUESTS
        + (RUN_CPU_MS * runs + TOKEN_CPU_MS * tokens) * CPU_MS
        + messages * OPERATIONS_A_MESSAGE * QUEUE_OPERATIONS;
    // Nanodollars are enough.
    Some((millionths * 1_000.0).ceil() / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_that_is_not_known_has_no_price() {
        let one = Cost {
            tokens: 1,
            rows: 9,
            open_ms: 100,
            calls: 1,
            checks: 0,
            publications: 1,
            runs: 1,
        };
        let happy = dollars(one, 0, false, Awake::DuringCalls).expect("a price");
        assert!((1.5e-5..2.0e-5).contains(&happy), "{happy}");
        let worst = dollars(one, 0, false, Awake::AfterEvents { run_ms: 60_000 }).expect("a price");
        assert!(worst > happy);
        let rows = UNBOUNDED;
        assert_eq!(dollars(Cost { rows, ..one }, 0, false, Awake::DuringCalls), None);
    }
}
