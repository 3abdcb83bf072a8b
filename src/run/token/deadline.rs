//! The deadline of a token's attempt or wait: when it passes, how long it was at first, and what was sent of it to an executor.
//! A pause moves it; what an executor was sent stays.

use crate::base::time::{Millis, SECOND};

/// Shorter limits get no warning, because there is no time to act on it.
const WARNED_FROM_MS: u64 = 10 * SECOND;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenDeadline {
    /// When it passes. None without a limit, between attempts, and after the token's work.
    pub at: Option<Millis>,
    /// The limit it was made of. It stays when the deadline is stopped, for views and records.
    pub timeout_ms: Option<u64>,
    /// The reason for the limit, if it is not written in a document.
    pub reason: Option<String>,
    /// The warning was sent.
    pub warned: bool,
    /// The deadline sent to the executor, if it is earlier than `at`: a pause moved the latter, or an older build sent the
    /// run's limit.
    pub executor_deadline: Option<Millis>,
    /// Since when it stands still: the child that does the work waits for a person.
    pub stopped_at: Option<Millis>,
}

impl TokenDeadline {
    /// The deadline of work that begins at `now`. No limit: none.
    pub fn starting(now: Millis, timeout_ms: Option<u64>) -> TokenDeadline {
        TokenDeadline {
            at: timeout_ms.map(|millis| now.saturating_add(millis)),
            timeout_ms,
            ..TokenDeadline::default()
        }
    }

    pub fn because(self, reason: Option<String>) -> TokenDeadline {
        TokenDeadline { reason, ..self }
    }

    /// The work is over, or waits for its next attempt.
    pub fn stop(&mut self) {
        self.at = None;
        self.stopped_at = None;
    }

    /// It stands still from `now` on.
    pub fn stop_clock(&mut self, now: Millis) {
        self.stopped_at = self.stopped_at.or(Some(now));
    }

    /// It goes on with the time that was left. Returns how long it stood still.
    pub fn start_clock(&mut self, now: Millis) -> u64 {
        let stopped_at = self.stopped_at.take();
        let stopped_ms = stopped_at.map_or(0, |at| now.saturating_sub(at));
        self.at = self.at.map(|at| at.saturating_add(stopped_ms));
        stopped_ms
    }

    fn running_at(&self) -> Option<Millis> {
        self.at.filter(|_| self.stopped_at.is_none())
    }

    pub fn has_passed(&self, now: Millis) -> bool {
        self.running_at().is_some_and(|at| at <= now)
    }

    /// When it is enforced, if an executor or a child has `grace_ms` to report first.
    pub fn enforced_at(&self, grace_ms: u64) -> Option<Millis> {
        self.running_at().map(|at| at.saturating_add(grace_ms))
    }

    /// When its time began. Pauses move it, so they do not count as elapsed.
    pub fn began_at(&self) -> Option<Millis> {
        Some(self.at?.saturating_sub(self.timeout_ms?))
    }

    /// When to warn of it, if the warning was not sent yet.
    pub fn warning_at(&self, warn_at: f64) -> Option<Millis> {
        match self.warned {
            true => None,
            false => warning_at(self.running_at(), self.timeout_ms, warn_at),
        }
    }

    /// Moves it by a pause. An executor that works on keeps the deadline it was sent.
    pub fn shift(&mut self, pause_ms: u64, is_at_executor: bool) {
        if is_at_executor {
            self.executor_deadline = self.executor_deadline.or(self.at);
        }
        self.at = self.at.map(|at| at.saturating_add(pause_ms));
        self.stopped_at = self.stopped_at.map(|at| at.saturating_add(pause_ms));
    }

    /// The executor stopped at the deadline it was sent, but a pause or an extension has moved that since. The grace allows
    /// for clock skew between machines.
    pub fn is_outdated_at_executor(&self, now: Millis, grace_ms: u64, run_ends_at: Option<Millis>) -> bool {
        let run_ends_at = run_ends_at.unwrap_or(Millis::MAX);
        self.executor_deadline.is_some_and(|sent| {
            sent <= now.saturating_add(grace_ms) && sent < run_ends_at && !self.has_passed(now)
        })
    }
}

/// When to warn of a deadline, if at all. Counted back from the deadline, so that a pause moves both.
pub fn warning_at(timeout_at: Option<Millis>, timeout_ms: Option<u64>, warn_at: f64) -> Option<Millis> {
    let timeout_ms = timeout_ms.filter(|millis| *millis >= WARNED_FROM_MS)?;
    let left = (timeout_ms as f64 * (1.0 - warn_at)).round() as u64;
    Some(timeout_at?.saturating_sub(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_starts_with_its_limit() {
        let deadline = TokenDeadline::starting(1_000, Some(60_000)).because(Some("measured".into()));
        assert_eq!((deadline.at, deadline.began_at()), (Some(61_000), Some(1_000)));
        assert_eq!(deadline.reason.as_deref(), Some("measured"));
        assert_eq!(TokenDeadline::starting(1_000, None), TokenDeadline::default());
        let never = TokenDeadline::starting(1_000, Some(u64::MAX));
        assert_eq!(never.at, Some(Millis::MAX));
    }

    #[test]
    fn it_passes_at_its_moment_and_is_enforced_after_the_grace() {
        let deadline = TokenDeadline::starting(1_000, Some(500));
        assert_eq!(
            (deadline.has_passed(1_499), deadline.has_passed(1_500)),
            (false, true)
        );
        assert_eq!(deadline.enforced_at(250), Some(1_750));
        let none = TokenDeadline::default();
        assert_eq!(
            (none.has_passed(Millis::MAX), none.enforced_at(250)),
            (false, None)
        );
    }

    #[test]
    fn a_stopped_deadline_keeps_its_limit() {
        let mut deadline = TokenDeadline::starting(1_000, Some(60_000));
        deadline.stop();
        assert!(!deadline.has_passed(Millis::MAX));
        assert_eq!(deadline.timeout_ms, Some(60_000));
        assert_eq!((deadline.began_at(), deadline.warning_at(0.8)), (None, None));
    }

    #[test]
    fn the_warning_comes_once_and_not_for_short_limits() {
        let mut deadline = TokenDeadline::starting(1_000, Some(10_000));
        assert_eq!(deadline.warning_at(0.8), Some(9_000));
        assert_eq!(TokenDeadline::starting(1_000, Some(9_999)).warning_at(0.8), None);
        deadline.shift(5_000, false);
        assert_eq!(deadline.warning_at(0.8), Some(14_000));
        deadline.warned = true;
        assert_eq!(deadline.warning_at(0.8), None);
    }

    #[test]
    fn pauses_move_it_and_not_what_the_executor_was_sent() {
        let mut waiting = TokenDeadline::starting(1_000, Some(60_000));
        waiting.shift(5_000, false);
        assert_eq!((waiting.at, waiting.executor_deadline), (Some(66_000), None));
        assert_eq!(waiting.began_at(), Some(6_000));
        let mut executing = TokenDeadline::starting(1_000, Some(60_000));
        executing.shift(5_000, true);
        executing.shift(7_000, true);
        assert_eq!(
            (executing.at, executing.executor_deadline),
            (Some(73_000), Some(61_000))
        );
    }

    #[test]
    fn a_deadline_that_stands_still_does_not_pass() {
        let mut deadline = TokenDeadline::starting(1_000, Some(60_000));
        deadline.stop_clock(11_000);
        deadline.stop_clock(12_000);
        assert!(!deadline.has_passed(Millis::MAX));
        assert_eq!(
            (deadline.enforced_at(500), deadline.warning_at(0.8)),
            (None, None)
        );
        // A pause in the meantime counts once.
        deadline.shift(5_000, false);
        assert_eq!(deadline.start_clock(26_000), 10_000);
        assert_eq!(
            (deadline.at, deadline.warning_at(0.8)),
            (Some(76_000), Some(64_000))
        );
        assert_eq!(deadline.start_clock(90_000), 0, "it runs already");
        deadline.stop_clock(30_000);
        deadline.stop();
        assert_eq!((deadline.at, deadline.stopped_at), (None, None));
    }

    #[test]
    fn a_timeout_at_a_moved_deadline_is_outdated() {
        let mut deadline = TokenDeadline::starting(1_000, Some(60_000));
        assert!(
            !deadline.is_outdated_at_executor(61_000, 500, None),
            "never moved"
        );
        deadline.shift(5_000, true);
        let cases = [
            ("at what it was sent", 61_000, None, true),
            ("its clock is ahead", 60_500, None, true),
            ("long before", 60_499, None, false),
            ("the deadline passed", 66_000, None, false),
            ("the run ends first", 61_000, Some(61_000), false),
            ("the run ends later", 61_000, Some(61_001), true),
        ];
        for (case, now, run_ends_at, expected) in cases {
            assert_eq!(
                deadline.is_outdated_at_executor(now, 500, run_ends_at),
                expected,
                "{case}"
            );
        }
    }
}
