//! How long the clock of a run's limit has run, measured from its rows without the engine's own account of it: not while the run
//! is paused, and not while all its tokens stand in front of a person. Compared with the engine's account after every commit.

use crate::base::from_json::from_json;
use crate::base::time::Millis;
use crate::run::{RunEventKind, TimeoutScope, TokenStatus, Write};
use crate::storage::rows::{HeaderRow, TokenRow, parse_status};
use serde_json::Value;

use crate::simulate::properties::{Check, ensure, ensure_eq};
use crate::simulate::store::Store;

/// How long after a limit that is its parent's remaining time a child waits for the parent to enforce it.
const GRACE_MS: i64 = 500;

/// What the run's clock does since the last commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Clock {
    #[default]
    Runs,
    StandsAtGates,
    Paused,
    Ended,
}

#[derive(Debug, Default)]
pub struct RunningTime {
    clock: Clock,
    since: Option<Millis>,
    /// Since the start, or since the run was restarted or retried.
    running_ms: i64,
    /// In all.
    standing_ms: u64,
    /// The workflow says so.
    stops_at_gates: bool,
}

impl RunningTime {
    pub fn standing_ms(&self, now: Millis) -> u64 {
        let current = match self.clock {
            Clock::StandsAtGates => now.saturating_sub(self.since.unwrap_or(now)),
            Clock::Runs | Clock::Paused | Clock::Ended => 0,
        };
        self.standing_ms + current
    }

    /// Takes a commit into account and checks it. Returns whether the clock has stopped at gates.
    pub fn committed(&mut self, now: Millis, store: &Store, writes: &[Write]) -> Result<bool, String> {
        // The commit before a wake may be empty.
        if writes.is_empty() && self.since.is_some() {
            return Ok(false);
        }
        if self.since.is_none() || writes.iter().any(begins_anew) {
            self.stops_at_gates = store.snapshot()["workflow"]["clock"] == "stops_at_gates";
        }
        let Some(header) = store.header() else {
            return Ok(false);
        };
        let before = self.clock;
        let since = self.since.replace(now).unwrap_or(now);
        self.check_timeout(now, since, writes)?;
        self.clock = self.clock_of(&header, store);
        match before {
            // At its limit a run pauses as of the limit, however late the alarm rang.
            Clock::Runs => self.running_ms += header.paused_at.unwrap_or(now) as i64 - since as i64,
            Clock::StandsAtGates => self.standing_ms += now - since,
            Clock::Paused | Clock::Ended => {}
        }
        if writes.iter().any(begins_anew) {
            self.running_ms = 0;
        }
        self.check_remaining(now, &header)?;
        Ok(before != Clock::StandsAtGates && self.clock == Clock::StandsAtGates)
    }

    fn clock_of(&self, header: &HeaderRow, store: &Store) -> Clock {
        // The limit does not count once the end is decided.
        if header.status.is_terminal() || header.ending.is_some() {
            return Clock::Ended;
        }
        if header.paused_at.is_some() {
            return Clock::Paused;
        }
        match self.stops_at_gates && header.timeout_at.is_some() && all_stand_at_gates(store) {
            true => Clock::StandsAtGates,
            false => Clock::Runs,
        }
    }

    /// The limit passes only while the clock runs, and after as much time as the record says.
    fn check_timeout(&self, now: Millis, since: Millis, writes: &[Write]) -> Check {
        let records = writes.iter().filter_map(|write| write.event()?.record.as_ref());
        for record in records.filter(|it| it.timeout_event.scope == TimeoutScope::Flow) {
            ensure_eq!(
                self.clock,
                Clock::Runs,
                "a limit passed while its clock stood still: {record:?}"
            );
            let running_ms = self.running_ms + now as i64 - since as i64;
            ensure_eq!(record.timeout_event.elapsed_ms as i64, running_ms, "{record:?}");
        }
        Ok(())
    }

    /// What the engine takes for the rest is the rest, and no run goes on without any.
    fn check_remaining(&self, now: Millis, header: &HeaderRow) -> Check {
        let (Some(timeout_at), Some(timeout_ms)) = (header.timeout_at, header.timeout_ms) else {
            return Ok(());
        };
        if self.clock == Clock::Ended {
            return Ok(());
        }
        let clock = header.paused_at.or(header.stopped_at).unwrap_or(now);
        let remaining_ms = timeout_ms as i64 - self.running_ms;
        ensure_eq!(
            timeout_at as i64 - clock as i64,
            remaining_ms,
            "{self:?} {header:?}"
        );
        ensure_eq!(
            header.stopped_at.is_some(),
            self.clock == Clock::StandsAtGates,
            "{header:?}"
        );
        let grace_ms = if header.on_budget { GRACE_MS } else { 0 };
        let is_over = self.clock == Clock::Runs && remaining_ms + grace_ms <= 0;
        ensure!(!is_over, "the run has used up its time: {self:?} {header:?}");
        Ok(())
    }
}

/// A restart or a retry has the whole limit again.
fn begins_anew(write: &Write) -> bool {
    let event = write.event();
    event.is_some_and(|it| matches!(it.kind, RunEventKind::RunRestarted | RunEventKind::RunRetried))
}

fn all_stand_at_gates(store: &Store) -> bool {
    let mut some_stand = false;
    for (status, row) in store.tokens.values() {
        match parse_status(status).expect("a known status") {
            TokenStatus::AwaitingHuman => some_stand = true,
            TokenStatus::WaitingForSubworkflow => {
                let row: TokenRow = from_json(row).expect("rows are JSON");
                if row.reason.as_deref() != Some("child_paused") {
                    return false;
                }
                some_stand = true;
            }
            TokenStatus::Pending
            | TokenStatus::Dispatched
            | TokenStatus::Executing
            | TokenStatus::Suspended => return false,
            TokenStatus::WaitingForSiblings
            | TokenStatus::Completed
            | TokenStatus::Failed
            | TokenStatus::TimedOut
            | TokenStatus::Cancelled => {}
        }
    }
    some_stand
}

/// A gate without a deadline stops the clock until a person decides. Looks into the called workflows, too.
pub fn may_stand_forever(snapshot: &Value) -> bool {
    let workflow = &snapshot["workflow"];
    let nodes = workflow["nodes"].as_array().into_iter().flatten();
    let mut gates = nodes.map(|node| &node["gate"]).filter(|gate| gate.is_object());
    let stops = workflow["clock"] == "stops_at_gates";
    let children = snapshot["children"].as_array().into_iter().flatten();
    (stops && gates.any(|gate| gate["timeout_ms"].is_null())) || children.into_iter().any(may_stand_forever)
}
