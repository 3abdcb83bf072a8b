//! The queue lane: an attempt waits in a queue until a consumer claims it. The queue message only names the attempt; the
//! order is the response to the claim. A consumer sends heartbeats while it works.

use serde_json::json;

use crate::base::failure::{Failure, FailureClass};
use crate::base::time::format_duration;
use crate::definition::action::ExecutionTimeoutPolicy;
use crate::definition::node::NodeRole;
use crate::protocol::task::StepProgress;
use crate::run::rejection::Rejection;
use crate::run::state::Run;
use crate::run::time::event_log::RunEventKind;
use crate::run::time::timeout_record::{FinalAction, Passed, TimeoutError};
use crate::run::token::{Lane, Token, TokenId, TokenStatus};

/// Consecutive unclaimed attempts after which the token times out.
const UNCLAIMED_MAX: u32 = 3;

/// The error code of an attempt whose heartbeats stayed away.
const ATTEMPT_REAPED: &str = "attempt_reaped";

impl Run {
    /// Puts the next attempt into the queue. Its time limit starts with the claim.
    pub(in crate::run) fn enqueue(&mut self, id: TokenId) {
        let now = self.changes.now;
        let watch_at = now.saturating_add(self.settings.resend_ms);
        let mut epoch = 0;
        self.change(id, |token| {
            token.status = TokenStatus::Dispatched;
            token.epoch += 1;
            token.lane = Some(Lane::Queue);
            token.dispatched_at = Some(now);
            token.started_at = None;
            token.deadline.stop();
            token.watch_at = Some(watch_at);
            token.found_route();
            epoch = token.epoch;
        });
        self.changes.enqueues.insert((id, epoch));
    }

    /// A consumer claims an attempt: it begins executing, and its order is the response.
    pub(in crate::run) fn claimed(
        &mut self,
        token_id: &str,
        epoch: u64,
        claimant: Option<String>,
    ) -> Result<(), Rejection> {
        let unclaimed = self.current_attempt(token_id, epoch, TokenStatus::Dispatched);
        let id = unclaimed.or_else(|stale| {
            self.claimed_before(token_id, epoch, claimant.as_deref())
                .ok_or(stale)
        })?;
        if self.is_paused() {
            // The response to its first claim was lost, so no executor works on it: it goes back to pending.
            if self.tokens.live(id).status == TokenStatus::Executing {
                self.begin_next_attempt(id);
            }
            // Its queue message is sent again when the run resumes.
            return Err(Rejection::Paused);
        }
        let node = self.tokens.live(id).node;
        let task = self.snapshot.node_tasks[node].expect("only nodes with a task are enqueued");
        self.changes.claim_response = self.begin_attempt(id, task, Lane::Queue);
        if self.changes.claim_response.is_some() {
            self.change(id, |token| token.claim.claimed_by = claimant);
        }
        Ok(())
    }

    /// An attempt that this claimant has already claimed without a heartbeat since: the response to its claim was lost.
    fn claimed_before(&self, token_id: &str, epoch: u64, claimant: Option<&str>) -> Option<TokenId> {
        let id = self
            .current_attempt(token_id, epoch, TokenStatus::Executing)
            .ok()?;
        let claimed_by = self.tokens.live(id).claim.claimed_by.as_deref();
        (claimed_by.is_some() && claimed_by == claimant).then_some(id)
    }

    /// Takes over the progress, and moves the heartbeat deadline. It is saved, because the object does not stay in memory
    /// between two heartbeats, but not for every heartbeat, because rows cost. At least three quarters of `heartbeat_ms` always
    /// remain.
    pub(in crate::run) fn heartbeat(
        &mut self,
        token_id: &str,
        epoch: u64,
        progress: Option<StepProgress>,
    ) -> Result<(), Rejection> {
        let id = self.current_attempt(token_id, epoch, TokenStatus::Executing)?;
        let has_progress = progress.is_some();
        if let Some(progress) = progress {
            self.note_progress(id, progress);
        }
        let silence_ms = self.settings.heartbeat_ms;
        let soon = self.clock().saturating_add(silence_ms / 4 * 3);
        let at = self.clock().saturating_add(silence_ms);
        let token = self.tokens.live(id);
        // A direct attempt is supervised by its open call.
        if token.lane != Some(Lane::Queue) {
            return Ok(());
        }
        // Progress comes soon after the claim. The row that it will be saved with is early enough for the claim, too.
        let is_first = token.claim.claimed_by.is_some() && !has_progress;
        let is_late = token.claim.heartbeat_extended || token.watch_at.is_none_or(|watch_at| watch_at < soon);
        if is_first || is_late || self.is_progress_due(id) {
            let now = self.changes.now;
            self.change(id, |token| {
                token.watch_at = Some(at);
                token.claim.heartbeat_extended = false;
                // A consumer that sends heartbeats has its order, so a repeated claim is rejected from now on.
                token.claim.claimed_by = None;
                if let Some(progress) = &mut token.progress {
                    progress.saved_at = Some(now);
                    progress.is_unsaved = false;
                }
            });
        } else if has_progress {
            self.touch(id, |token| token.claim.claimed_by = None);
        }
        Ok(())
    }

    /// The object was loaded again and may have missed heartbeats. A heartbeat deadline that has passed is extended, but only
    /// once, or an object that is evicted between its alarms would wait forever.
    pub(in crate::run) fn renew_watch_once(&mut self, id: TokenId) {
        let clock = self.clock();
        let at = clock.saturating_add(self.settings.heartbeat_ms);
        let token = self.tokens.live(id);
        let has_passed = token.watch_at.is_some_and(|watch_at| watch_at <= clock);
        if has_passed && !token.claim.heartbeat_extended {
            self.change(id, |token| {
                token.watch_at = Some(at);
                token.claim.heartbeat_extended = true;
            });
        }
    }

    /// Unclaimed attempts are re-sent, then recreated, then timed out.
    pub(in crate::run) fn dispatch_due(&mut self, id: TokenId) {
        let token = self.tokens.live(id);
        let now = self.changes.now;
        let dispatched_at = token.dispatched_at.unwrap_or(now);
        let recreate_at = dispatched_at.saturating_add(self.settings.claim_ms);
        let (epoch, unclaimed) = (token.epoch, token.claim.unclaimed + 1);
        if now < recreate_at {
            self.changes.enqueues.insert((id, epoch));
            self.note(
                RunEventKind::DispatchRungAgain,
                json!({"token_id": id.to_string(), "epoch": epoch}),
            );
            return self.change(id, |token| token.watch_at = Some(recreate_at));
        }
        if unclaimed >= UNCLAIMED_MAX {
            let after = format_duration(self.settings.claim_ms);
            let failure = Failure::new(
                "dispatch_timeout",
                FailureClass::Timeout,
                format!("nobody took the task out of the queue, {unclaimed} times for {after}"),
            );
            self.change(id, |token| token.reason = Some("dispatch_timeout".into()));
            return self.end_unsuccessfully(id, TokenStatus::TimedOut, failure);
        }
        self.change(id, |token| {
            token.status = TokenStatus::Pending;
            token.claim.unclaimed = unclaimed;
            token.watch_at = None;
        });
        self.begin(id);
    }

    /// A claimed attempt missed its heartbeat deadline.
    pub(in crate::run) fn reap_attempt(&mut self, id: TokenId) {
        let token = self.tokens.live(id);
        let may_retry = self.may_retry(token, self.policy_of_reaping(token));
        let after = format_duration(self.settings.heartbeat_ms);
        let passed = Passed {
            scope: self.scope_of(token.node),
            due_at: token.watch_at.unwrap_or(self.changes.now),
            timeout_ms: Some(self.settings.heartbeat_ms),
        };
        let action = match may_retry {
            true => FinalAction::Retry,
            false => FinalAction::Fail,
        };
        let mut record = self.record_of_token(token, passed, action);
        record.error = Some(TimeoutError {
            code: ATTEMPT_REAPED.into(),
        });
        self.note_with(
            RunEventKind::AttemptReaped,
            json!({"token_id": id.to_string(), "epoch": token.epoch}),
            Some(record),
        );
        if may_retry {
            return self.retry_after_timeout(id);
        }
        let failure = Failure::new(
            ATTEMPT_REAPED,
            FailureClass::Timeout,
            format!("nothing was heard of the attempt for {after}"),
        );
        self.change(id, |token| {
            // A person may retry the token. The new epoch makes a late report of the lost consumer stale.
            token.epoch += 1;
            token.reason = Some("timeout_reaped_by_watchdog".into());
        });
        self.end_unsuccessfully(id, TokenStatus::Failed, failure);
    }

    /// Compensations and end handlers run at least once, so a lost consumer does not end them unless the action says so.
    fn policy_of_reaping(&self, token: &Token) -> Option<ExecutionTimeoutPolicy> {
        let of_action = self.on_timeout_of_action(token);
        match self.snapshot.workflow.nodes[token.node].role {
            NodeRole::Declared => of_action,
            NodeRole::Compensation { .. } | NodeRole::EndHandler => {
                of_action.or(Some(ExecutionTimeoutPolicy::Retry))
            }
        }
    }
}
