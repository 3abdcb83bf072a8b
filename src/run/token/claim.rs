//! The queue lane: an attempt lies in a queue until somebody claims it. The message is only a doorbell: what it rings for
//! stands in the token, and whoever takes it says from time to time that it lives.

use serde_json::json;

use crate::base::failure::{Failure, FailureClass};
use crate::base::time::format_duration;
use crate::run::rejection::Rejection;
use crate::run::state::Run;
use crate::run::time::event_log::RunEventKind;
use crate::run::token::{Lane, TokenId, TokenStatus};

/// Attempts that nobody claims before the token is given up.
const UNCLAIMED_MAX: u32 = 3;

impl Run {
    /// The next attempt goes into the queue. Its time begins when it is claimed.
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
            token.timeout_at = None;
            token.watch_at = Some(watch_at);
            token.found_route();
            epoch = token.epoch;
        });
        self.changes.enqueues.insert((id, epoch));
    }

    /// Somebody took the message: from now on the attempt is under way, and its order is the answer.
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
            // The answer to its first claim was lost, so it is not being executed: it goes back to pending.
            if self.tokens.live(id).status == TokenStatus::Executing {
                self.begin_again(id);
            }
            // Nothing new begins: it is rung for when the clocks go on.
            return Err(Rejection::Paused);
        }
        let node = self.tokens.live(id).node;
        let task = self.snapshot.node_tasks[node].expect("only nodes with a task are enqueued");
        self.changes.claim_response = self.begin_attempt(id, task, Lane::Queue);
        if self.changes.claim_response.is_some() {
            self.change(id, |token| token.claimed_by = claimant);
        }
        Ok(())
    }

    /// An attempt that this claimant has already, as far as it was never heard of since: the answer to its claim was lost.
    fn claimed_before(&self, token_id: &str, epoch: u64, claimant: Option<&str>) -> Option<TokenId> {
        let id = self
            .current_attempt(token_id, epoch, TokenStatus::Executing)
            .ok()?;
        let claimed_by = self.tokens.live(id).claimed_by.as_deref();
        (claimed_by.is_some() && claimed_by == claimant).then_some(id)
    }

    /// The watch moves on. It is saved, because the object does not stay in memory between two heartbeats; but not for
    /// each of them, because rows cost: an attempt may be silent for at least three quarters of the time.
    pub(in crate::run) fn heartbeat(&mut self, token_id: &str, epoch: u64) -> Result<(), Rejection> {
        let id = self.current_attempt(token_id, epoch, TokenStatus::Executing)?;
        let silence_ms = self.settings.heartbeat_ms;
        let soon = self.clock().saturating_add(silence_ms / 4 * 3);
        let at = self.clock().saturating_add(silence_ms);
        let token = self.tokens.live(id);
        // An attempt that is called directly is watched by its call.
        if token.lane != Some(Lane::Queue) {
            return Ok(());
        }
        let is_first = token.claimed_by.is_some();
        if is_first || token.unheard || token.watch_at.is_none_or(|watch_at| watch_at < soon) {
            self.change(id, |token| {
                token.watch_at = Some(at);
                token.unheard = false;
                // A consumer that sends heartbeats has its order: a repeated claim is refused from now on.
                token.claimed_by = None;
            });
        }
        Ok(())
    }

    /// The object came back: heartbeats may have met nobody. A watch that passed meanwhile begins again, but once only,
    /// or an object that sleeps between its alarms would wait for ever.
    pub(in crate::run) fn renew_watch_once(&mut self, id: TokenId) {
        let clock = self.clock();
        let at = clock.saturating_add(self.settings.heartbeat_ms);
        let token = self.tokens.live(id);
        let doubtful = !token.unheard && token.watch_at.is_some_and(|watch_at| watch_at <= clock);
        if doubtful {
            self.change(id, |token| {
                token.watch_at = Some(at);
                token.unheard = true;
            });
        }
    }

    /// Nobody has claimed it yet: ring again, then make it anew, and give up in the end.
    pub(in crate::run) fn dispatch_due(&mut self, id: TokenId) {
        let token = self.tokens.live(id);
        let now = self.changes.now;
        let lies_since = token.dispatched_at.unwrap_or(now);
        let anew_at = lies_since.saturating_add(self.settings.claim_ms);
        let (epoch, unclaimed) = (token.epoch, token.unclaimed + 1);
        if now < anew_at {
            self.changes.enqueues.insert((id, epoch));
            self.note(
                RunEventKind::DispatchRungAgain,
                json!({"token_id": id.to_string(), "epoch": epoch}),
            );
            return self.change(id, |token| token.watch_at = Some(anew_at));
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
            token.unclaimed = unclaimed;
            token.watch_at = None;
        });
        self.begin(id);
    }

    /// Whoever had claimed it has not been heard of for too long.
    pub(in crate::run) fn reap_attempt(&mut self, id: TokenId) {
        let token = self.tokens.live(id);
        let may_retry = self.may_retry(token);
        let after = format_duration(self.settings.heartbeat_ms);
        self.note(
            RunEventKind::AttemptReaped,
            json!({"token_id": id.to_string(), "epoch": token.epoch}),
        );
        if may_retry {
            return self.retry_after_timeout(id);
        }
        let failure = Failure::new(
            "attempt_reaped",
            FailureClass::Timeout,
            format!("nothing was heard of the attempt for {after}"),
        );
        self.change(id, |token| {
            // Where a person may bring the token back, its number alone tells the silent one from whoever comes next.
            token.epoch += 1;
            token.reason = Some("timeout_reaped_by_watchdog".into());
        });
        self.end_unsuccessfully(id, TokenStatus::Failed, failure);
    }
}
