//! The clock of the run's own limit. It stands still while every live token stands in front of a person: at a gate, at a
//! join behind one, or with a child that does. The deadlines of gates and joins run on. A pause stops all of them.
//!
//! `header.timeout_at` is the limit as of the moment at which the clock stopped. It moves when the clock goes on.

use crate::base::time::Millis;
use crate::definition::workflow::RunClock;
use crate::run::state::Run;
use crate::run::token::TokenStatus;

impl Run {
    /// The run waits for a person: at its own gate, or with every live token.
    pub(in crate::run) fn waits_for_person(&self) -> bool {
        self.run_gate().is_some() || self.all_wait_at_gates_or(0)
    }

    /// Every live token waits for a person, or is one of `others`. Tokens at joins do no work. Some token waits.
    pub(in crate::run) fn all_wait_at_gates_or(&self, others: u64) -> bool {
        let with_child = self.tokens.count(TokenStatus::WaitingForSubworkflow);
        let waiting = self.tokens.count(TokenStatus::AwaitingHuman) + with_child + others;
        let busy = self.tokens.len() as u64 - self.tokens.count(TokenStatus::WaitingForSiblings);
        let children_wait = || {
            let mut calling = self
                .tokens
                .values()
                .filter(|token| token.status == TokenStatus::WaitingForSubworkflow);
            calling.all(|token| token.child_waits_for_person())
        };
        waiting > 0 && waiting == busy && (with_child == 0 || children_wait())
    }

    pub(in crate::run) fn stops_at_gates(&self) -> bool {
        match self.snapshot.workflow.clock {
            RunClock::StopsAtGates => true,
            RunClock::Runs => false,
        }
    }

    /// Stops or starts the clock after an event. Work that begins in the same decision counts from now, so `limit_at` and
    /// `limit_left_ms` do not depend on when this is called.
    pub(in crate::run) fn update_clock(&mut self) {
        let has_limit = self.is_running() && self.header.timeout_at.is_some();
        let stands = has_limit && self.stops_at_gates() && !self.is_paused() && self.all_wait_at_gates_or(0);
        if stands == self.header.stopped_at.is_some() {
            return;
        }
        match stands {
            true => self.header.stopped_at = Some(self.changes.now),
            false => self.start_clock(self.changes.now),
        }
        self.changes.header_changed = true;
        self.changes.publish_run = true;
    }

    /// The clock goes on, or a pause takes over. The limit moves by the time that the clock stood still.
    pub(in crate::run) fn start_clock(&mut self, now: Millis) {
        if let Some(stopped_at) = self.header.stopped_at.take() {
            let stopped_ms = now.saturating_sub(stopped_at);
            self.header.timeout_at = self.header.timeout_at.map(|at| at.saturating_add(stopped_ms));
        }
    }

    /// The moment at which `header.timeout_at` is measured: now, or when the clock stopped.
    pub(in crate::run) fn limit_clock(&self) -> Millis {
        self.header.stopped_at.unwrap_or_else(|| self.clock())
    }

    /// When the run's limit passes if its clock goes on now. While it stands still that is later than now.
    pub(in crate::run) fn limit_at(&self) -> Option<Millis> {
        if let Some(ending) = &self.header.ending {
            return Some(ending.deadline_at);
        }
        let stopped_ms = self
            .header
            .stopped_at
            .map_or(0, |at| self.changes.now.saturating_sub(at));
        self.header.timeout_at.map(|at| at.saturating_add(stopped_ms))
    }

    pub(in crate::run) fn limit_left_ms(&self) -> Option<u64> {
        if let Some(ending) = &self.header.ending {
            return Some(ending.deadline_at.saturating_sub(self.changes.now));
        }
        let timeout_at = self.header.timeout_at?;
        Some(timeout_at.saturating_sub(self.limit_clock()))
    }

    /// The earliest deadline of what the run stands at.
    pub(in crate::run) fn first_gate_deadline(&self) -> Option<Millis> {
        let gates = self
            .tokens
            .values()
            .filter_map(|token| token.deadline.enforced_at(0));
        let joins = self.fans.iter().flat_map(|instance| instance.fan_ins.values());
        let joins = joins.filter(|fan_in| fan_in.fired_at().is_none());
        gates.chain(joins.filter_map(|fan_in| fan_in.timeout_at)).min()
    }
}
