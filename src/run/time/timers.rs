//! The timers of a run. The object has one storage alarm, set to the earliest of them. Nothing polls.

use std::collections::BTreeSet;

use crate::base::time::Millis;
use crate::run::fan::InstanceId;
use crate::run::state::Run;
use crate::run::token::deadline::warning_at;
use crate::run::token::{TokenId, TokenStatus};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// A live token: its deadline, the warning before it, its next attempt, or the next check of the current one.
    Token(TokenId),
    /// An instance that waits at the join of a node: its deadline, or the warning before it.
    Join(InstanceId, usize),
    /// A message of the outbox or a notification is sent again.
    Message,
    /// The run's limit is near.
    RunWarning,
    /// The run's limit has passed.
    RunTimeout,
    /// The gate of the whole run: its deadline, or the warning before it.
    RunGate,
    /// The storage of an ended run is deleted.
    Retention,
}

/// The timers of tokens and joins, and the alarm. Those of the run as a whole follow from its header, those of messages
/// belong to the outbox.
#[derive(Debug, Default)]
pub(in crate::run) struct Timers {
    armed: BTreeSet<(Millis, Timer)>,
    /// The moment the storage alarm is set to.
    alarm_at: Option<Millis>,
}

impl Timers {
    /// `alarm_at` is the alarm that is stored.
    pub fn with_alarm(alarm_at: Option<Millis>) -> Timers {
        Timers {
            armed: BTreeSet::new(),
            alarm_at,
        }
    }

    pub fn start(&mut self, timer: Timer, at: Millis) {
        self.armed.insert((at, timer));
    }

    pub fn stop(&mut self, timer: Timer, at: Millis) {
        self.armed.remove(&(at, timer));
    }

    pub fn reschedule(&mut self, timer: Timer, from: Option<Millis>, to: Option<Millis>) {
        if from == to {
            return;
        }
        if let Some(at) = from {
            self.stop(timer, at);
        }
        if let Some(at) = to {
            self.start(timer, at);
        }
    }

    pub fn first(&self) -> Option<(Millis, Timer)> {
        self.armed.first().copied()
    }

    pub fn alarm_at(&self) -> Option<Millis> {
        self.alarm_at
    }

    /// The platform clears the alarm before it calls the object.
    pub fn alarm_fired(&mut self) {
        self.alarm_at = None;
    }

    /// An alarm whose moment has passed may be lost. One in the future is still set: writing it again would cost a row.
    pub fn forget_passed_alarm(&mut self, now: Millis) {
        self.alarm_at = self.alarm_at.filter(|at| *at > now);
    }

    /// Moves the alarm to `next` if necessary, and returns its new moment. An early alarm is kept while attempts begin and
    /// end: one needless wake costs less than moving the alarm with each attempt. For a run that only waits the alarm is
    /// exact.
    pub fn move_alarm(&mut self, next: Option<Millis>, now: Millis, only_waits: bool) -> Option<Millis> {
        let moved = next.filter(|next| {
            let is_kept = |at: Millis| now < at && at <= *next && !(only_waits && at < *next);
            !self.alarm_at.is_some_and(is_kept)
        });
        self.alarm_at = moved.or(self.alarm_at);
        moved
    }
}

impl Run {
    /// The earliest moment at which a timer is due.
    pub fn next_deadline(&self) -> Option<Millis> {
        self.first_of_each_kind()
            .into_iter()
            .flatten()
            .map(|(at, _)| at)
            .chain(self.rows_needed_by())
            .min()
    }

    /// The host reads the rows after the commit that needs them. Should it stop in between, the alarm brings it back.
    fn rows_needed_by(&self) -> Option<Millis> {
        let watch_at = self.changes.now.saturating_add(self.settings.watch_ms);
        self.needed_rows().map(|_| watch_at)
    }

    /// While a run is paused only its messages and its gate have timers. The gate's deadline makes the run's end certain.
    /// While its clock stands still at gates everything but its own limit has.
    fn first_of_each_kind(&self) -> [Option<(Millis, Timer)>; 5] {
        let armed = |at: Option<Millis>, timer: Timer| at.map(|at| (at, timer));
        let sends = [self.outbox.next_due_at(), self.notifications.next_due_at()];
        let message = armed(sends.into_iter().flatten().min(), Timer::Message);
        if let Some(deleted_at) = self.deleted_at() {
            return [message, Some((deleted_at, Timer::Retention)), None, None, None];
        }
        let warn_at = self.snapshot.workflow.timeouts.warn_at;
        let gate = self.run_gate().and_then(|gate| gate.due_at(warn_at));
        let gate = armed(gate, Timer::RunGate);
        if self.is_paused() {
            return [message, gate, None, None, None];
        }
        if self.header.stopped_at.is_some() {
            return [message, gate, self.timers.first(), None, None];
        }
        [
            message,
            gate,
            armed(self.workflow_due_at(), Timer::RunTimeout),
            armed(self.workflow_warning_at(), Timer::RunWarning),
            self.timers.first(),
        ]
    }

    /// When the storage of an ended run is deleted.
    pub(in crate::run) fn deleted_at(&self) -> Option<Millis> {
        let ended_at = self.header.ended_at?;
        Some(ended_at.saturating_add(self.settings.retention_ms))
    }

    /// The moment by which the run has certainly ended or waits at its gate; while its clock stands still at gates, the
    /// first of their deadlines. A paused run has none, unless it waits at its gate.
    pub fn ends_by(&self) -> Option<Millis> {
        match (self.has_ended(), self.is_paused()) {
            (false, false) if self.header.stopped_at.is_some() => self.first_gate_deadline(),
            (false, false) => self.workflow_due_at(),
            (false, true) => self.run_gate().and_then(|gate| gate.timeout_at),
            (true, _) => None,
        }
    }

    /// When the run's own limit is enforced, if its clock goes on now. If the limit is the parent's remaining time, the parent
    /// enforces it first, and its decision applies to both.
    pub(in crate::run) fn workflow_due_at(&self) -> Option<Millis> {
        let at = self.limit_at()?;
        Some(match self.header.on_budget {
            true => at.saturating_add(self.settings.grace_ms),
            false => at,
        })
    }

    pub(in crate::run) fn workflow_warning_at(&self) -> Option<Millis> {
        match self.header.warned || self.is_ending() {
            true => None,
            false => warning_at(
                self.header.limit_due_at(),
                self.header.timeout_ms,
                self.snapshot.workflow.timeouts.warn_at,
            ),
        }
    }

    /// Moves the alarm to the next deadline if necessary.
    pub(in crate::run) fn move_alarm(&mut self) -> Option<Millis> {
        let only_waits = !self.has_ended()
            && self.tokens.count(TokenStatus::Executing) + self.tokens.count(TokenStatus::Dispatched) == 0
            && self.tokens.count(TokenStatus::Suspended) + self.tokens.count(TokenStatus::AwaitingHuman) > 0;
        let next = self.next_deadline();
        self.timers.move_alarm(next, self.changes.now, only_waits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: Timer = Timer::Token(TokenId(1));

    #[test]
    fn the_earliest_timer_is_first() {
        let mut timers = Timers::default();
        timers.start(Timer::Join(InstanceId(1), 2), 300);
        timers.reschedule(TOKEN, None, Some(200));
        assert_eq!(timers.first(), Some((200, TOKEN)));
        timers.reschedule(TOKEN, Some(200), Some(400));
        assert_eq!(timers.first(), Some((300, Timer::Join(InstanceId(1), 2))));
        timers.stop(Timer::Join(InstanceId(1), 2), 300);
        timers.reschedule(TOKEN, Some(400), None);
        assert_eq!(timers.first(), None);
    }

    #[test]
    fn the_alarm_moves_when_it_is_late_or_has_passed() {
        let mut timers = Timers::default();
        assert_eq!(timers.move_alarm(None, 100, false), None);
        assert_eq!(
            timers.move_alarm(Some(500), 100, false),
            Some(500),
            "none was set"
        );
        assert_eq!(
            timers.move_alarm(Some(500), 200, false),
            None,
            "it is set already"
        );
        assert_eq!(
            timers.move_alarm(Some(400), 200, false),
            Some(400),
            "it is too late"
        );
        assert_eq!(
            timers.move_alarm(Some(600), 200, false),
            None,
            "too early costs one wake"
        );
        assert_eq!(
            timers.move_alarm(Some(600), 400, false),
            Some(600),
            "it has passed"
        );
        assert_eq!(
            timers.move_alarm(Some(900), 400, true),
            Some(900),
            "nothing else wakes it"
        );
        assert_eq!(timers.alarm_at(), Some(900));
    }

    #[test]
    fn an_alarm_in_the_future_is_still_set_after_a_wake() {
        let mut timers = Timers::with_alarm(Some(500));
        timers.forget_passed_alarm(499);
        assert_eq!(timers.alarm_at(), Some(500));
        timers.forget_passed_alarm(500);
        assert_eq!(timers.alarm_at(), None);
        assert_eq!(timers.move_alarm(Some(700), 500, false), Some(700));
        timers.alarm_fired();
        assert_eq!(timers.alarm_at(), None);
    }
}
