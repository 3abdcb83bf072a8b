//! Pausing a run: its clock stops while there is at least one pause reason, and continues from there. Work in flight
//! continues and its results are saved; no new work begins.

use serde_json::json;

use crate::base::time::Millis;
use crate::definition::node::NodeKind;
use crate::definition::wait::Wait;
use crate::run::header::PauseReason;
use crate::run::message::{ChildStatusUpdate, Message};
use crate::run::rejection::Rejection;
use crate::run::state::{Run, own_limit_ms};
use crate::run::time::event_log::RunEventKind;
use crate::run::token::{Token, TokenId, TokenStatus};

impl Run {
    pub(in crate::run) fn pause_requested(&mut self, by: Option<&str>) -> Result<(), Rejection> {
        if self.has_ended() {
            return Err(Rejection::RunFinished);
        }
        if self.is_ending() {
            return Err(Rejection::Ending);
        }
        self.pause(PauseReason::Person, by);
        Ok(())
    }

    pub(in crate::run) fn resume_requested(&mut self, by: Option<&str>) -> Result<(), Rejection> {
        if self.has_ended() {
            return Err(Rejection::RunFinished);
        }
        if self.is_ending() {
            return Err(Rejection::Ending);
        }
        if self.header.pause_reasons.contains(&PauseReason::Person) {
            self.end_pause(PauseReason::Person, by);
            return Ok(());
        }
        match self.header.pause_reasons.first() {
            None => Err(Rejection::NotPaused),
            Some(holder) => Err(Rejection::PausedFor {
                holder: *holder,
                gate: self.run_gate().map(|gate| gate.id.clone()),
            }),
        }
    }

    /// The parent was paused or resumed, or its remaining time changed.
    pub(in crate::run) fn parent_holds(
        &mut self,
        number: u64,
        held: bool,
        budget_ms: Option<u64>,
    ) -> Result<(), Rejection> {
        if self.has_ended() {
            return Err(Rejection::RunFinished);
        }
        // A repeated message, or one that a later message overtook.
        if number <= self.header.hold_seq_received {
            return Ok(());
        }
        // The parent already received the report of an end: it no longer waits for this run and would never resume it.
        if self.header.ends > 0 {
            return Ok(());
        }
        self.header.hold_seq_received = number;
        self.changes.header_changed = true;
        if let Some(budget_ms) = budget_ms.filter(|_| self.header.on_budget) {
            self.take_budget(budget_ms);
        }
        match held {
            true => self.pause(PauseReason::Parent, None),
            false => self.end_pause(PauseReason::Parent, None),
        }
        Ok(())
    }

    /// Applies a change of the parent's remaining time. The limit of this run never exceeds its own.
    fn take_budget(&mut self, budget_ms: u64) {
        let (before, timeout_ms) = self
            .header
            .timeout_at
            .zip(self.header.timeout_ms)
            .expect("a run on its parent's budget has a limit");
        let clock = self.limit_clock();
        // Not `started_at`: pauses do not count.
        let began_at = before.saturating_sub(timeout_ms);
        let own_at =
            own_limit_ms(&self.header.request, &self.snapshot).map(|own| began_at.saturating_add(own));
        let budget_at = clock.saturating_add(budget_ms);
        let after = own_at.map_or(budget_at, |own| own.min(budget_at));
        self.header.on_budget = after == budget_at;
        self.header.timeout_ms = Some(after.saturating_sub(began_at));
        self.header.timeout_at = Some(after);
        // A pause of both runs moves the limit only by the delay of the message: no second warning for that.
        if after > before.saturating_add(self.settings.grace_ms) {
            self.header.warned = false;
        }
        if self.snapshot.workflow.timeouts.inherit_budget {
            self.send_pause_to_children();
        }
        // The run waited at the gate of its limit and has time again.
        if after > clock && self.header.pause_reasons.contains(&PauseReason::WorkflowTimeout) {
            self.withdraw_run_gate();
            self.end_pause(PauseReason::WorkflowTimeout, None);
        }
    }

    /// Adds a pause reason, logs it, and stops the clock if it runs.
    pub(in crate::run) fn pause(&mut self, holder: PauseReason, by: Option<&str>) {
        if !self.header.pause_reasons.contains(&holder) {
            self.note_by(by, RunEventKind::RunPaused, json!({"cause": holder}));
        }
        self.pause_since(holder, self.changes.now);
    }

    /// Stops the clock as of `moment`, for a caller that has logged the event.
    pub(in crate::run) fn pause_since(&mut self, holder: PauseReason, moment: Millis) {
        if !self.header.pause_reasons.insert(holder) {
            return;
        }
        self.changes.header_changed = true;
        self.changes.publish_run = true;
        if self.header.paused_at.is_none() {
            self.header.paused_at = Some(moment);
            self.send_pause_to_children();
        }
    }

    /// Removes a pause reason. Without any left, the clock continues.
    pub(in crate::run) fn end_pause(&mut self, holder: PauseReason, by: Option<&str>) {
        if !self.header.pause_reasons.remove(&holder) {
            return;
        }
        self.changes.header_changed = true;
        self.changes.publish_run = true;
        if !self.header.pause_reasons.is_empty() {
            return;
        }
        let paused_at = self.header.paused_at.take();
        let paused_at = paused_at.expect("a run with a pause reason is paused");
        let pause = self.changes.now.saturating_sub(paused_at);
        self.note_by(
            by,
            RunEventKind::RunResumed,
            json!({"cause": holder, "paused_ms": pause}),
        );
        self.header.timeout_at = self.header.timeout_at.map(|at| at.saturating_add(pause));
        self.shift_tokens(pause);
        self.shift_joins(pause);
        self.gates.shift_deadlines(pause);
        self.send_pause_to_children();
    }

    fn shift_tokens(&mut self, pause: u64) {
        let live: Vec<TokenId> = self.tokens.keys().copied().collect();
        for id in live {
            let token = self.tokens.live(id);
            // A pause does not move an absolute moment.
            let is_moment = matches!(
                &self.snapshot.workflow.nodes[token.node].kind,
                NodeKind::Wait(wait) if matches!(**wait, Wait::Until(_))
            ) && token.status == TokenStatus::Suspended;
            let has_clock = token.deadline.at.or(token.watch_at).is_some() && !is_moment;
            if has_clock {
                self.change(id, |token| {
                    if token.started_at.is_some() {
                        token.stopped_ms = token.stopped_ms.saturating_add(pause);
                    }
                    let is_at_executor = token.status == TokenStatus::Executing;
                    token.deadline.shift(pause, is_at_executor);
                    token.watch_at = token.watch_at.map(|at| at.saturating_add(pause));
                    if let Some(unroutable) = &mut token.unroutable {
                        unroutable.since = unroutable.since.saturating_add(pause);
                    }
                });
            }
            // It could not begin during the pause.
            let token = self.tokens.live(id);
            if token.is_held_back() {
                self.changes.arrivals.push_back(id);
            }
            // Claims were refused during the pause: the attempt is re-sent, with the whole time to be claimed.
            if token.status == TokenStatus::Dispatched {
                self.changes.enqueues.insert((id, token.epoch));
                let now = self.changes.now;
                let watch_at = now.saturating_add(self.settings.resend_ms);
                self.change(id, |token| {
                    token.dispatched_at = Some(now);
                    token.watch_at = Some(watch_at);
                });
            }
        }
    }

    /// Children are paused and resumed with their parent.
    pub(in crate::run) fn send_pause_to_children(&mut self) {
        self.send_pause_to(|token| token.status == TokenStatus::WaitingForSubworkflow);
    }

    /// The child of this token gets what is left of this run, if that is its budget.
    pub(in crate::run) fn send_budget_to_child(&mut self, id: TokenId) {
        if self.snapshot.workflow.timeouts.inherit_budget {
            self.send_pause_to(|token| token.id == id);
        }
    }

    fn send_pause_to(&mut self, is_receiver: impl Fn(&Token) -> bool) {
        let receivers = self.tokens.values().filter(|token| is_receiver(token));
        let children: Vec<(TokenId, String)> =
            receivers.map(|token| (token.id, self.child_id(token))).collect();
        if children.is_empty() {
            return;
        }
        self.header.hold_seq_sent += 1;
        self.changes.header_changed = true;
        let (number, held) = (self.header.hold_seq_sent, self.is_paused());
        let left = self.limit_left_ms().map(|left| left.max(1));
        let budget_ms = left.filter(|_| self.snapshot.workflow.timeouts.inherit_budget);
        for (token, run_id) in children {
            self.outbox.retract(
                |message| matches!(message, Message::HoldChild { run_id: other, .. } if *other == run_id),
            );
            self.post(Message::HoldChild {
                run_id,
                number,
                held,
                budget_ms,
                token_id: Some(token.to_string()),
            });
        }
    }

    /// Resumes a paused child that continues without this run waiting for it.
    pub(in crate::run) fn release_child(&mut self, token: &Token) {
        if !self.is_paused() {
            return;
        }
        let run_id = self.child_id(token);
        self.header.hold_seq_sent += 1;
        self.changes.header_changed = true;
        self.outbox.retract(
            |message| matches!(message, Message::HoldChild { run_id: other, .. } if *other == run_id),
        );
        self.post(Message::HoldChild {
            run_id,
            number: self.header.hold_seq_sent,
            held: false,
            budget_ms: None,
            token_id: Some(token.id.to_string()),
        });
    }

    /// Sends the parent a message if the event has made this run wait for a person, or go on, also to its compensations. The
    /// end of the run is reported by itself, and after the first one no parent waits.
    pub(in crate::run) fn send_wait_to_parent(&mut self) {
        let paused = self.waits_for_person();
        let is_awaited = match self.header.ends {
            0 => true,
            1 => self.is_ending(),
            _later => false,
        };
        if paused == self.changes.waited_for_person || !is_awaited {
            return;
        }
        let Some(parent) = self.header.parent.clone() else {
            return;
        };
        self.header.hold_seq_sent += 1;
        self.changes.header_changed = true;
        self.outbox
            .retract(|message| matches!(message, Message::TellParent { .. }));
        let news = ChildStatusUpdate {
            token_id: parent.token_id,
            epoch: parent.epoch,
            run_id: self.header.id.clone(),
            number: self.header.hold_seq_sent,
            paused,
        };
        self.post(Message::TellParent {
            run_id: parent.run_id,
            news,
        });
    }
}
