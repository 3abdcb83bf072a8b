//! Handles the timers that are due.

use serde_json::json;

use crate::base::time::Millis;
use crate::run::state::Run;
use crate::run::time::event_log::RunEventKind;
use crate::run::time::row_events::Before;
use crate::run::time::timers::Timer;
use crate::run::token::{Lane, TimeoutConfig, Token, TokenId, TokenStatus};

/// The most timers handled in one wake, so that a commit stays small. If more are due, the alarm fires again at once.
const BATCH: usize = 100;

impl Run {
    pub(in crate::run) fn timeout_config(&self) -> TimeoutConfig {
        TimeoutConfig {
            grace_ms: self.settings.grace_ms,
            warn_at: self.snapshot.workflow.timeouts.warn_at,
        }
    }

    /// The run's own limit is checked before all other deadlines.
    pub(in crate::run) fn pass_workflow_deadline(&mut self) {
        let due = self.workflow_due_at().is_some_and(|at| at <= self.changes.now);
        if due && !self.has_ended() && !self.is_paused() {
            match self.is_ending() {
                true => self.ending_timed_out(),
                false => self.workflow_timed_out(),
            }
        }
    }

    /// Handles the timers that are due, oldest first. Only the alarm event lists the open calls, which distinguish a slow
    /// attempt from a lost one. No other event checks attempts: it could only postpone the check.
    pub(in crate::run) fn pass_deadlines(&mut self, open_calls: &[(TokenId, u64)]) {
        let now = self.changes.now;
        self.outbox.send_due(self.send_time());
        if let Some(deleted_at) = self.deleted_at() {
            self.changes.delete = deleted_at <= now;
            return;
        }
        self.pass_run_gate();
        if self.is_paused() || self.has_ended() {
            return;
        }
        if self.workflow_warning_at().is_some_and(|at| at <= now) {
            self.header.warned = true;
            self.changes.header_changed = true;
            // No warning once the limit has passed, in the grace that is left to the parent.
            if let Some(timeout_at) = self.header.timeout_at.filter(|at| *at > now) {
                self.warn("workflow", timeout_at, self.header.timeout_ms, None, None);
            }
        }
        for _ in 0..BATCH {
            let Some((at, timer)) = self.timers.first() else {
                return;
            };
            if at > now || self.has_ended() || self.is_paused() || self.is_full() {
                return;
            }
            self.work.begin_unit();
            match timer {
                Timer::Token(id) => self.token_due(id, open_calls),
                Timer::Join(instance, node) => self.fan_in_due(instance, node),
                Timer::Message
                | Timer::RunWarning
                | Timer::RunTimeout
                | Timer::RunGate
                | Timer::Retention => unreachable!("only tokens and joins arm a timer here"),
            }
            self.drain();
        }
    }

    fn token_due(&mut self, id: TokenId, open_calls: &[(TokenId, u64)]) {
        let now = self.changes.now;
        let token = self.tokens.live(id);
        let passed = |grace_ms: u64| token.deadline.enforced_at(grace_ms).is_some_and(|at| at <= now);
        let over = match token.status {
            // The executor or the child enforces its deadline first.
            TokenStatus::Executing | TokenStatus::WaitingForSubworkflow => passed(self.settings.grace_ms),
            TokenStatus::AwaitingHuman | TokenStatus::Suspended | TokenStatus::Pending => passed(0),
            TokenStatus::Dispatched => false,
            TokenStatus::WaitingForSiblings
            | TokenStatus::Completed
            | TokenStatus::Failed
            | TokenStatus::TimedOut
            | TokenStatus::Cancelled => unreachable!("{id} is {:?} and cannot be due", token.status),
        };
        let warning_at = token.deadline.warning_at(self.timeout_config().warn_at);
        let should_warn = warning_at.is_some_and(|at| at <= now);
        if should_warn && !over && token.status != TokenStatus::Pending {
            return self.warn_of_token(id);
        }
        match token.status {
            TokenStatus::Executing if over => self.execution_timed_out(id, None),
            TokenStatus::Dispatched => self.dispatch_due(id),
            TokenStatus::Executing if token.lane == Some(Lane::Queue) => self.reap_attempt(id),
            TokenStatus::Executing if open_calls.contains(&(id, token.epoch)) => self.postpone_watch(id),
            TokenStatus::Executing => self.attempt_lost(id, "the call to the executor is gone"),
            TokenStatus::WaitingForSubworkflow => self.execution_timed_out(id, None),
            TokenStatus::AwaitingHuman => self.gate_due(id),
            TokenStatus::Suspended if self.waits.awaits_callback(id) => self.callback_due(id),
            TokenStatus::Suspended => self.wait_due(id),
            // Its deadline passed before the next attempt could begin.
            TokenStatus::Pending if over => self.pending_timed_out(id),
            TokenStatus::Pending => self.begin(id),
            TokenStatus::WaitingForSiblings
            | TokenStatus::Completed
            | TokenStatus::Failed
            | TokenStatus::TimedOut
            | TokenStatus::Cancelled => unreachable!("{id} is {:?} and cannot be due", token.status),
        }
    }

    fn warn_of_token(&mut self, id: TokenId) {
        let token = self.tokens.live(id);
        let kind = match token.status {
            TokenStatus::AwaitingHuman => "gate",
            TokenStatus::Suspended => "wait",
            TokenStatus::Pending
            | TokenStatus::Dispatched
            | TokenStatus::Executing
            | TokenStatus::WaitingForSiblings
            | TokenStatus::WaitingForSubworkflow
            | TokenStatus::Completed
            | TokenStatus::Failed
            | TokenStatus::TimedOut
            | TokenStatus::Cancelled => "execution",
        };
        let (node, timeout_at, timeout_ms) = (token.node, token.deadline.at, token.deadline.timeout_ms);
        self.change(id, |token| token.deadline.warned = true);
        // The deadline has passed, so a warning is too late; only the executor's grace is left.
        if timeout_at.is_some_and(|at| at <= self.changes.now) {
            return;
        }
        self.warn(
            kind,
            timeout_at.unwrap_or(self.changes.now),
            timeout_ms,
            Some(node),
            Some(id),
        );
    }

    /// Logs that a deadline is near.
    pub(in crate::run) fn warn(
        &mut self,
        kind: &str,
        due_at: Millis,
        timeout_ms: Option<u64>,
        node: Option<usize>,
        token: Option<TokenId>,
    ) {
        let mut fields = json!({
            "deadline": kind,
            "due_at": due_at,
            "remaining_ms": due_at.saturating_sub(self.changes.now),
            "timeout_ms": timeout_ms,
        });
        if let Some(node) = node {
            fields["node_id"] = json!(self.snapshot.workflow.nodes[node].id);
        }
        if let Some(token) = token {
            fields["token_id"] = json!(token.to_string());
        }
        self.note(RunEventKind::DeadlineWarning, fields);
    }

    fn postpone_watch(&mut self, id: TokenId) {
        let at = self.changes.now.saturating_add(self.settings.watch_ms);
        // In memory only: after a crash the stored, earlier moment is the right one to wake at.
        self.touch(id, |token| token.watch_at = Some(at));
    }

    /// Changes a live token and marks it to be saved.
    pub(in crate::run) fn change(&mut self, id: TokenId, update: impl FnOnce(&mut Token)) {
        let before = Before::of(self.tokens.live(id));
        self.touch(id, update);
        self.tokens.mark_changed(id);
        self.note_change(id, before);
    }

    /// Changes a live token in memory only.
    pub(in crate::run) fn touch(&mut self, id: TokenId, update: impl FnOnce(&mut Token)) {
        let due = self.tokens.touch(id, self.timeout_config(), update);
        self.timers.reschedule(Timer::Token(id), due.from, due.to);
    }
}
