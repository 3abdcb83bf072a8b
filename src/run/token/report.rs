//! What an executor says of an attempt, or does not say any more, and what the run makes of it.

use serde_json::Value;

use crate::base::failure::{Failure, FailureClass};
use crate::base::time::Millis;
use crate::protocol::task::{ReportStatus, TaskReport};
use crate::run::rejection::Rejection;
use crate::run::size::bounded_artifacts;
use crate::run::state::Run;
use crate::run::token::attempt::Reported;
use crate::run::token::{TokenId, TokenStatus};

impl Run {
    /// An executor's word on an attempt. Only the attempt that counts may speak.
    pub(in crate::run) fn task_reported(&mut self, report: TaskReport) -> Result<(), Rejection> {
        let id = self
            .current_attempt(&report.token_id, report.epoch, TokenStatus::Executing)
            .inspect_err(|_| {
                self.note_late(&report.token_id, report.epoch, report.status.name());
            })?;
        if self.has_missed_its_deadline(id) {
            self.execution_timed_out(id, None);
            self.note_late(&report.token_id, report.epoch, report.status.name());
            return Err(Rejection::StaleAttempt {
                token: report.token_id,
                epoch: report.epoch,
            });
        }
        self.take_report(id, report);
        Ok(())
    }

    /// What is due goes before what came. In a turn that has computed all it may, the look at what is due was put off: it is
    /// made up for here, or this report would outrun its deadline.
    fn has_missed_its_deadline(&self, id: TokenId) -> bool {
        let token = self.tokens.live(id);
        let enforced_at = token
            .timeout_at
            .map(|at| at.saturating_add(self.settings.grace_ms));
        self.work.is_exhausted() && !self.is_paused() && enforced_at.is_some_and(|at| at <= self.changes.now)
    }

    /// What an attempt that counts came to.
    pub(in crate::run) fn take_report(&mut self, id: TokenId, report: TaskReport) {
        self.change(id, |token| {
            token.steps = report.steps;
            token.checkpoint = report.checkpoint;
        });
        self.drop_large_checkpoint(id);
        // It did not try again because the run would have ended, and the run has got more time since.
        let gave_up_too_early = report
            .gave_up_before
            .is_some_and(|moment| self.works_longer_than(moment));
        match report.status {
            ReportStatus::Completed => match self.check_events(&report.events) {
                Ok(()) => self.succeed_with(id, report.output.unwrap_or(Value::Null), report.events),
                Err(failure) => self.end_unsuccessfully(id, TokenStatus::Failed, failure),
            },
            ReportStatus::Suspended => self.suspend(id),
            ReportStatus::Failed | ReportStatus::TimedOut if gave_up_too_early => self.begin_again(id),
            ReportStatus::Failed => {
                let failure = report.error.unwrap_or_else(|| {
                    Failure::new(
                        "task_failed",
                        FailureClass::Unknown,
                        "the executor gave no reason",
                    )
                });
                self.end_unsuccessfully(id, TokenStatus::Failed, failure);
            }
            // An executor's clock cannot be moved from here. What it says of the time does not count while ours stand
            // still, or when the run got more time since: the work goes on in another attempt.
            ReportStatus::TimedOut if self.is_paused() || self.was_told_too_little(id) => {
                self.begin_again(id)
            }
            ReportStatus::TimedOut => {
                let reported = Reported::Stopped {
                    step_ref: report.error.and_then(|error| error.step_ref),
                    partial: bounded_artifacts(report.partial),
                };
                self.execution_timed_out(id, Some(reported));
            }
        }
    }

    /// The run lives, and its end has moved to a later moment than it was told to be: it was extended, or paused.
    fn works_longer_than(&self, told: Millis) -> bool {
        let paused_ms = self.changes.now.saturating_sub(self.clock());
        let ends_at = match (self.is_paused(), self.workflow_due_at()) {
            // The clocks go on from where they stand.
            (true, Some(limit_at)) => Some(limit_at.saturating_add(paused_ms)),
            (true, None) => None,
            (false, _) => self.work_ends_at(),
        };
        self.is_running() && ends_at.is_none_or(|at| at > told)
    }

    /// The executor was told a deadline as it stood then, and it has moved since: by a pause, or by an extension where an
    /// older build had told it the run's limit.
    fn was_told_too_little(&self, id: TokenId) -> bool {
        let token = self.tokens.live(id);
        let now = self.changes.now;
        let own_time_is_up = token.timeout_at.is_some_and(|at| at <= now);
        let run_ends_at = self.header.timeout_at.unwrap_or(Millis::MAX);
        // Clocks of two machines may differ by a little.
        token.executor_deadline.is_some_and(|told| {
            told <= now.saturating_add(self.settings.grace_ms) && told < run_ends_at && !own_time_is_up
        })
    }

    /// Back to pending, and into the next attempt as soon as the clocks go; with what the last one had done.
    pub(in crate::run) fn begin_again(&mut self, id: TokenId) {
        self.change(id, |token| {
            token.status = TokenStatus::Pending;
            token.timeout_at = None;
            token.watch_at = None;
        });
        self.begin(id);
    }

    pub(in crate::run) fn call_lost(
        &mut self,
        token: TokenId,
        epoch: u64,
        message: &str,
    ) -> Result<(), Rejection> {
        let id = self.current_attempt(&token.to_string(), epoch, TokenStatus::Executing)?;
        self.attempt_lost(id, message);
        Ok(())
    }
}
