//! The time by which a run must end that is left alone, and whose report a token has. What any run must be like is in
//! `curfew::simulate`.

use curfew::base::time::MINUTE;
use curfew::protocol::run::RunRequest;
use curfew::run::{RunEvent, RunEventKind, Token, TokenStatus};
use curfew::simulate::{SimulatedRun, Store, may_stand_forever};
use curfew::storage::rows::TokenRow;

use super::environment::Environment;
use super::simulation::Simulation;

/// How long after its limit and the time of its gate a run that is left alone may end: its alarm may have been late when the
/// faults stopped.
const SLACK_MS: u64 = 2 * MINUTE;
/// A run that is paused by another also waits for messages that are sent again.
const SLACK_OF_MESSAGES_MS: u64 = 25 * MINUTE;

impl Simulation {
    /// Stops all operators, if every run has a limit, and computes the time by which each run must have ended.
    pub(super) fn leave_alone(&mut self) {
        let open: Vec<String> = self
            .runs
            .iter()
            .filter(|(_, run)| run.is_open())
            .map(|(id, _)| id.clone())
            .collect();
        let longest = open.iter().map(|id| self.longest(id)).collect::<Option<Vec<_>>>();
        let Some(longest) = longest else { return };
        self.is_unattended = true;
        self.environment.outcome.borrow_mut().unattended += 1;
        let now = self.environment.now.get();
        self.ends_by = open
            .iter()
            .cloned()
            .zip(longest.into_iter().map(|millis| now + millis + SLACK_MS))
            .map(|(id, by)| {
                let standing_ms = self.standing_ms(&id);
                (id, (by, standing_ms))
            })
            .collect();
        self.forget_requests();
        for id in open {
            self.ask(&id, RunRequest::Resume);
        }
    }

    /// What is left of a run's limit and of its gate, and of the runs that it may be paused with.
    fn longest(&self, id: &str) -> Option<u64> {
        let run = &self.runs[id];
        let header = run.store().header()?;
        if may_stand_forever(&run.store().snapshot()) {
            return None;
        }
        let stopped_at = header.paused_at.or(header.stopped_at);
        let since = stopped_at.unwrap_or(self.environment.now.get());
        let left = header.timeout_at?.saturating_sub(since);
        let above = header.parent.as_ref().map(|parent| parent.run_id.as_str());
        let above = above.filter(|above| self.runs[*above].is_open());
        let rest = above.map_or(Some(0), |above| Some(self.longest(above)? + SLACK_OF_MESSAGES_MS))?;
        // A child that gets the rest of its parent's time has no more than that.
        Some(left + gate_ms(run) + run.ending_ms() + rest)
    }

    /// How long the clocks of a run and of those above it stood still at gates.
    fn standing_ms(&self, id: &str) -> u64 {
        let run = &self.runs[id];
        let own = run
            .durable
            .running_time
            .borrow()
            .standing_ms(self.environment.now.get());
        let parent = run.store().header().and_then(|header| header.parent);
        own + parent.map_or(0, |parent| self.standing_ms(&parent.run_id))
    }

    pub(super) fn check_ends(&self) {
        for (id, (by, standing_before)) in &self.ends_by {
            let ended_at = self.runs[id].store().header().and_then(|header| header.ended_at);
            let by = by + self.standing_ms(id) - standing_before;
            assert!(
                ended_at.is_some_and(|at| at <= by),
                "{id} was to end by {by} and ended at {ended_at:?}"
            );
        }
    }

    /// A paused run whose messages have all arrived has no child that goes on.
    pub(super) fn check_children_are_paused(&self) {
        for (id, run) in &self.runs {
            let has_outbox = || run.store().run.keys().any(|key| key.starts_with("outbox/"));
            if !run.is_open() || !run.is_paused() || has_outbox() {
                continue;
            }
            let waiting = TokenStatus::WaitingForSubworkflow.name();
            let store = run.store();
            for (token, (_, row)) in store.tokens.iter().filter(|(_, it)| it.0 == waiting) {
                let row: TokenRow = serde_json::from_str(row).expect("rows are JSON");
                let child = match row.epoch {
                    1 => format!("{id}~t{token}"),
                    epoch => format!("{id}~t{token}~{epoch}"),
                };
                let Some(child) = self.runs.get(&child).filter(|child| child.is_open()) else {
                    continue;
                };
                // A retried child has no parent any more.
                let has_parent = child.store().header().is_some_and(|header| header.ends == 0);
                assert!(
                    !has_parent || child.is_paused(),
                    "{id} is paused and the child of t{token} is not"
                );
            }
        }
    }
}

impl Environment {
    /// A report counts for the attempt it was given to and for no other; a child's for the token that called this child. A
    /// token that took another's place at a join has its output.
    pub fn check_answer(&self, id: &str, store: &Store, token: &Token) {
        let output = token.output.as_ref();
        let Some(attempt) = output.and_then(|output| output["attempt"].as_str()) else {
            return;
        };
        let tokens = &store.tokens;
        let mut owner = token.id.0;
        loop {
            let own = format!("{id}/t{owner}@{}", token.epoch);
            let child = match token.epoch {
                1 => format!("{id}~t{owner}/"),
                epoch => format!("{id}~t{owner}~{epoch}/"),
            };
            if attempt == own || attempt.starts_with(&child) {
                return;
            }
            let row = |id: u64| -> Option<TokenRow> {
                let (_, row) = tokens.get(&id)?;
                serde_json::from_str(row).ok()
            };
            let parent = row(owner).and_then(|row| row.parent);
            let taken = parent.filter(|parent| {
                let before = row(*parent).and_then(|row| row.arrival);
                before.is_some() && before == token.join.map(|it| it.arrival)
            });
            owner = taken.unwrap_or_else(|| panic!("{attempt} went to {own}"));
        }
    }

    pub fn count_event(&self, entry: &RunEvent) {
        let outcome = &mut *self.outcome.borrow_mut();
        outcome.timeouts += u64::from(entry.record.is_some());
        outcome.version_changes += u64::from(entry.fields.contains_key("from_version"));
        let count = match entry.kind {
            RunEventKind::DeadlineWarning => &mut outcome.warnings,
            RunEventKind::RunExtended => &mut outcome.extensions,
            RunEventKind::RunRetried => &mut outcome.retries,
            RunEventKind::DispatchRungAgain => &mut outcome.requeued,
            RunEventKind::AttemptReaped => &mut outcome.reaped,
            RunEventKind::RunPaused if entry.record.is_some() => &mut outcome.timeout_gates,
            _others => return,
        };
        *count += 1;
    }

    pub fn count_token(&self, token: &Token) {
        let outcome = &mut *self.outcome.borrow_mut();
        let is_unroutable = token.unroutable.as_ref().is_some_and(|it| !it.is_logged);
        outcome.unroutable += u64::from(is_unroutable);
        let code = token.error.as_ref().map(|error| error.code.as_str());
        outcome.no_route += u64::from(code == Some("no_route"));
        outcome.too_large += u64::from(code == Some("limit_exceeded"));
    }
}

fn gate_ms(run: &SimulatedRun<Environment>) -> u64 {
    const WEEK_MS: u64 = 7 * 24 * 60 * MINUTE;
    let snapshot = run.store().snapshot();
    let gate = &snapshot["workflow"]["gate"]["timeout_ms"];
    gate.as_u64().unwrap_or(WEEK_MS)
}
