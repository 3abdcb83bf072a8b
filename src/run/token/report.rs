//! Reports and losses of attempts, and their effect on the run.

use serde_json::Value;

use crate::base::failure::{Failure, FailureClass};
use crate::base::time::Millis;
use crate::protocol::task::{ReportStatus, TaskReport};
use crate::run::metrics::retries_of;
use crate::run::rejection::Rejection;
use crate::run::size::bounded_artifacts;
use crate::run::state::Run;
use crate::run::token::attempt::Reported;
use crate::run::token::{TokenId, TokenStatus};

impl Run {
    /// Handles an executor's report. Only a report for the current attempt is accepted.
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

    /// Due deadlines are applied before a report. In a turn whose computation budget is exhausted the deadlines were not
    /// checked yet, so this attempt's deadline is checked here: otherwise its report could bypass it.
    fn has_missed_its_deadline(&self, id: TokenId) -> bool {
        let token = self.tokens.live(id);
        let enforced_at = token.deadline.enforced_at(self.settings.grace_ms);
        self.work.is_exhausted() && !self.is_paused() && enforced_at.is_some_and(|at| at <= self.changes.now)
    }

    /// Applies a report of the current attempt.
    pub(in crate::run) fn take_report(&mut self, id: TokenId, report: TaskReport) {
        self.count_retries(id, &report);
        self.change(id, |token| {
            token.steps = report.steps;
            token.checkpoint = report.checkpoint;
        });
        self.drop_large_checkpoint(id);
        // The executor stopped retrying because the run was about to end, but the run has more time now.
        let gave_up_too_early = report
            .gave_up_before
            .is_some_and(|moment| self.ends_later_than(moment));
        match report.status {
            ReportStatus::Completed => match self.check_events(&report.events) {
                Ok(()) => self.succeed_with(id, report.output.unwrap_or(Value::Null), report.events),
                Err(failure) => self.end_unsuccessfully(id, TokenStatus::Failed, failure),
            },
            ReportStatus::Suspended => self.suspend(id),
            ReportStatus::Failed | ReportStatus::TimedOut if gave_up_too_early => self.begin_next_attempt(id),
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
            // A running executor's deadline cannot be changed. Its timeout is ignored if the run is paused or the deadline
            // has moved since: the work continues in another attempt.
            ReportStatus::TimedOut if self.is_paused() || self.has_outdated_deadline(id) => {
                self.begin_next_attempt(id)
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

    /// An attempt that resumed at a checkpoint reports the steps before it once more.
    fn count_retries(&mut self, id: TokenId, report: &TaskReport) {
        let mut retries = retries_of(&report.steps);
        if retries.is_empty() {
            return;
        }
        let checkpoint = self.tokens.live(id).checkpoint.as_deref();
        for (class, before) in checkpoint.map(|it| retries_of(&it.steps)).unwrap_or_default() {
            if let Some(count) = retries.get_mut(&class) {
                *count = count.saturating_sub(before);
            }
        }
        retries.retain(|_, count| *count > 0);
        self.measure_retries(&retries);
        self.change(id, |token| {
            for (class, count) in retries {
                *token.retried.entry(class).or_default() += count;
            }
        });
    }

    /// The run has not ended, and its deadline is now later than `reported`, because it was extended or paused.
    fn ends_later_than(&self, reported: Millis) -> bool {
        let paused_ms = self.changes.now.saturating_sub(self.clock());
        let ends_at = match (self.is_paused(), self.workflow_due_at()) {
            // A resume moves the deadline by the whole pause.
            (true, Some(limit_at)) => Some(limit_at.saturating_add(paused_ms)),
            (true, None) => None,
            (false, _) => self.work_ends_at(),
        };
        !self.has_ended() && ends_at.is_none_or(|at| at > reported)
    }

    /// The executor's deadline is outdated: a pause moved it, or an older build sent the run's limit, which was extended.
    fn has_outdated_deadline(&self, id: TokenId) -> bool {
        let token = self.tokens.live(id);
        let (now, grace_ms) = (self.changes.now, self.settings.grace_ms);
        token
            .deadline
            .is_outdated_at_executor(now, grace_ms, self.limit_at())
    }

    /// Begins the next attempt, or leaves it pending while the run is paused. The checkpoint is kept.
    pub(in crate::run) fn begin_next_attempt(&mut self, id: TokenId) {
        self.change(id, |token| {
            token.status = TokenStatus::Pending;
            token.deadline.stop();
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
