//! What one simulation may take. A workflow may loop for virtual years; its simulation ends with an error that says why.

use crate::api::error::Error;

pub const MOCKS_MAX: usize = 1_000;
/// Decisions of people, and signals.
pub const DECISIONS_MAX: usize = 1_000;
pub const DOCUMENTS_MAX: usize = 100;

/// Alarms and messages that changed something.
pub const EVENTS_MAX: u64 = 20_000;
/// Turns of the loop, also those in which an alarm found nothing due.
pub const TURNS_MAX: u64 = 200_000;
/// Runs: the workflow and its children.
pub const RUNS_MAX: usize = 1_000;
/// Of all rows of all runs.
pub const ROWS_BYTES: u64 = 16 << 20;
pub const CALLS_MAX: usize = 10_000;
/// Of what is recorded of calls.
pub const CALLS_BYTES: u64 = 4 << 20;
/// Of the tasks that executors have at the same time: each holds its input.
pub const TASKS_BYTES: u64 = 16 << 20;
/// Of what mocks have answered. Many answers may be on their way at the same time.
pub const MOCKED_BYTES: u64 = 32 << 20;
pub const ANSWER_BYTES: usize = 8 << 20;
/// Of all decisions and tasks: about two seconds in workerd.
pub const STEPS_MAX: u64 = 250_000_000;
/// What a turn costs besides what its decisions count: one that changed something, and one in which nothing was due.
const EVENT_STEPS: u64 = 4_000;
const IDLE_TURN_STEPS: u64 = 500;

/// In how many turns faults may happen.
pub struct FaultyTurns {
    pub default: u64,
    pub max: u64,
}

pub const FAULTY_TURNS: FaultyTurns = FaultyTurns {
    default: 150,
    max: 10_000,
};

/// What the simulation has taken so far.
#[derive(Debug, Default)]
pub struct Taken {
    pub events: u64,
    pub turns: u64,
    pub steps: u64,
    pub calls_bytes: u64,
    pub answers_bytes: u64,
}

/// A bound was reached.
pub fn exceeded(what: &str, most: impl std::fmt::Display, advice: &str) -> Error {
    let message = format!("the simulation was stopped: it takes more than {most} {what}; {advice}");
    Error::new(422, "limit_exceeded", message)
}

const LOOPS: &str = "let the workflow loop less often: write a shorter timeout, fewer iterations, or a longer wait in the loop";
const SMALLER: &str = "use a smaller input, smaller mocked results or fewer branches";

/// Executors have more work at the same time than fits into memory.
pub fn too_much_work() -> Error {
    let advice =
        "use a smaller input, an \"input_mapping\" that takes what the node needs, or fewer branches";
    exceeded("bytes of tasks at the same time", TASKS_BYTES, advice)
}

impl Taken {
    /// `steps` are those of the turn's decisions and tasks.
    pub fn count_turn(&mut self, is_idle: bool, steps: u64) {
        self.turns += 1;
        self.events += u64::from(!is_idle);
        let own = if is_idle { IDLE_TURN_STEPS } else { EVENT_STEPS };
        self.steps = self.steps.saturating_add(steps.saturating_add(own));
    }

    pub fn check(&self, runs: usize, rows_bytes: u64, calls: usize) -> Result<(), Error> {
        let is_within = |found: u64, most: u64| found <= most;
        let checks = [
            (is_within(self.events, EVENTS_MAX), "events", EVENTS_MAX, LOOPS),
            (is_within(self.turns, TURNS_MAX), "turns", TURNS_MAX, LOOPS),
            (
                is_within(self.steps, STEPS_MAX),
                "steps of computation",
                STEPS_MAX,
                SMALLER,
            ),
            (
                is_within(runs as u64, RUNS_MAX as u64),
                "runs",
                RUNS_MAX as u64,
                SMALLER,
            ),
            (
                is_within(rows_bytes, ROWS_BYTES),
                "bytes of rows",
                ROWS_BYTES,
                SMALLER,
            ),
            (
                is_within(calls as u64, CALLS_MAX as u64),
                "calls",
                CALLS_MAX as u64,
                LOOPS,
            ),
            (
                is_within(self.calls_bytes, CALLS_BYTES),
                "bytes of calls",
                CALLS_BYTES,
                SMALLER,
            ),
            (
                is_within(self.answers_bytes, MOCKED_BYTES),
                "bytes of mocked answers",
                MOCKED_BYTES,
                SMALLER,
            ),
        ];
        match checks.into_iter().find(|(is_within, ..)| !is_within) {
            None => Ok(()),
            Some((_, what, most, advice)) => Err(exceeded(what, most, advice)),
        }
    }
}
