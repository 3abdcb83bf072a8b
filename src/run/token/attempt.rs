//! Attempts: what happens when one times out or is lost.

use serde_json::json;

use crate::base::failure::{Failure, FailureClass};
use crate::base::time::MINUTE;
use crate::definition::action::ExecutionTimeoutPolicy;
use crate::protocol::task::Artifact;
use crate::run::state::Run;
use crate::run::time::event_log::RunEventKind;
use crate::run::time::partial_artifacts::RecordedArtifact;
use crate::run::time::timeout_record::{FinalAction, Passed, TimeoutError, TimeoutRecord};
use crate::run::token::{Lane, Token, TokenId, TokenStatus};

/// How a timeout was reported. An attempt whose deadline the alarm found passed has no report.
pub(in crate::run) enum Reported {
    /// The executor or the child stopped by itself.
    Stopped {
        step_ref: Option<String>,
        partial: Vec<Artifact>,
    },
    /// No callback came before the resume deadline.
    NoCallback,
}

/// The error code of a call whose callback did not arrive in time.
const TOOL_TIMEOUT: &str = "tool_timeout";

/// The maximum delay between attempts.
const RETRY_DELAY_MAX_MS: u64 = MINUTE;

impl Run {
    /// An attempt passed its deadline, as reported by its executor or found by the alarm.
    pub(in crate::run) fn execution_timed_out(&mut self, id: TokenId, reported: Option<Reported>) {
        let token = self.tokens.live(id);
        let may_retry = self.may_retry(token, self.timeout_policy_of_action(token, reported.as_ref()));
        if reported.is_none() {
            self.abort_work(id, "execution_timeout");
        }
        if may_retry {
            self.note_execution_timeout(id, FinalAction::Retry, reported.as_ref());
            return self.retry_after_timeout(id);
        }
        self.time_out(id, reported);
    }

    /// The policy of the only action for the whole attempt. The executor itself makes a call again that timed out, so it counts
    /// only where the executor could not: no callback came, or the attempt had no time for more than one call.
    fn timeout_policy_of_action(
        &self,
        token: &Token,
        reported: Option<&Reported>,
    ) -> Option<ExecutionTimeoutPolicy> {
        let policy = self.on_timeout_of_action(token);
        let is_of_attempt = match reported {
            Some(Reported::NoCallback) => true,
            Some(Reported::Stopped { .. }) | None => self
                .snapshot
                .is_limit_of_one_call(token.node, token.deadline.timeout_ms),
        };
        policy.filter(|_| is_of_attempt)
    }

    pub(in crate::run) fn on_timeout_of_action(&self, token: &Token) -> Option<ExecutionTimeoutPolicy> {
        let task = self.snapshot.task_of(token.node)?;
        task.task.only_action()?.on_timeout
    }

    /// Whether another attempt follows one that took too long. The node's policy takes precedence over that of the action.
    pub(in crate::run) fn may_retry(&self, token: &Token, of_action: Option<ExecutionTimeoutPolicy>) -> bool {
        let node = &self.snapshot.workflow.nodes[token.node];
        let policy = node.on_timeout.or(of_action);
        match policy.unwrap_or(ExecutionTimeoutPolicy::Fail) {
            ExecutionTimeoutPolicy::Retry => token.retry_count < node.max_retries,
            ExecutionTimeoutPolicy::Fail => false,
        }
    }

    /// A pending token passed its deadline while it waited for its next attempt. It is not retried.
    pub(in crate::run) fn pending_timed_out(&mut self, id: TokenId) {
        self.time_out(id, None);
    }

    fn time_out(&mut self, id: TokenId, reported: Option<Reported>) {
        let token = self.tokens.live(id);
        let node = &self.snapshot.workflow.nodes[token.node];
        let mut message = format!("step {} timed out: context deadline exceeded", node.shown_id());
        let is_one_of_several = self
            .snapshot
            .task_of(token.node)
            .is_some_and(|task| task.task.steps.len() > 1);
        if is_one_of_several
            && let Some(Reported::Stopped {
                step_ref: Some(step), ..
            }) = &reported
        {
            message += &format!(" (in step {step} of node {})", node.shown_id());
        }
        let failure = match &reported {
            None => Failure::new("execution_timeout", FailureClass::Timeout, message),
            Some(Reported::Stopped { step_ref, .. }) => Failure {
                step_ref: step_ref.clone(),
                ..Failure::new("execution_timeout", FailureClass::Timeout, message)
            },
            Some(Reported::NoCallback) => {
                let message = format!("{message} (no callback came)");
                Failure::new(TOOL_TIMEOUT, FailureClass::Timeout, message)
            }
        };
        let action = match !self.is_ending() && self.is_escalated(id, &failure) {
            true => FinalAction::Escalate,
            false => FinalAction::Fail,
        };
        self.note_execution_timeout(id, action, reported.as_ref());
        self.end_unsuccessfully(id, TokenStatus::TimedOut, failure);
    }

    fn note_execution_timeout(&mut self, id: TokenId, action: FinalAction, reported: Option<&Reported>) {
        let token = self.tokens.live(id);
        let now = self.changes.now;
        let scope = self.scope_of(token.node);
        let passed = Passed {
            scope,
            // A step of the task may have timed out before the attempt's deadline.
            due_at: token.deadline.at.unwrap_or(now).min(now),
            timeout_ms: self.passed_limit_ms(token, reported),
        };
        let mut record = self.record_of_token(token, passed, action);
        match reported {
            None => {}
            // The report is newer than the progress, and has all of it.
            Some(Reported::Stopped { partial, .. }) => {
                record.partial_artifacts = partial.iter().cloned().map(RecordedArtifact::from).collect();
            }
            Some(Reported::NoCallback) => {
                record.error = Some(TimeoutError {
                    code: TOOL_TIMEOUT.into(),
                });
            }
        }
        self.note_token_timeout(id, action, record);
    }

    /// The limit that passed: of the attempt, or before it of its task or of a step.
    fn passed_limit_ms(&self, token: &Token, reported: Option<&Reported>) -> Option<u64> {
        let step_ref = match reported {
            Some(Reported::Stopped { step_ref, .. }) => step_ref.as_deref(),
            Some(Reported::NoCallback) | None => None,
        };
        let of_step = step_ref.and_then(|step_ref| self.passed_step_limit_ms(token, step_ref));
        let of_task = self
            .snapshot
            .task_of(token.node)
            .and_then(|task| task.task.timeout.millis());
        let is_reported = matches!(reported, Some(Reported::Stopped { .. }));
        // Its executor keeps the limit of the task beside a longer one of the node.
        let of_attempt = of_task
            .filter(|_| is_reported)
            .into_iter()
            .chain(token.deadline.timeout_ms)
            .min();
        of_step.or(of_attempt)
    }

    fn passed_step_limit_ms(&self, token: &Token, step_ref: &str) -> Option<u64> {
        let limits = self.step_limits(token.node, step_ref)?;
        let step = token.steps.iter().rfind(|step| step.reference == step_ref);
        match step.and_then(|step| Some((step.last_call_ms()?, step.duration_ms))) {
            Some((call_ms, step_ms)) => limits.passed_after(call_ms, step_ms),
            // How long it took is not known. The grace allows for clock skew between machines.
            None => {
                let soon = self.changes.now.saturating_add(self.settings.grace_ms);
                let of_step = limits.call_ms.or(limits.total_ms);
                of_step.filter(|_| !token.deadline.has_passed(soon))
            }
        }
    }

    pub(in crate::run) fn note_token_timeout(
        &mut self,
        id: TokenId,
        action: FinalAction,
        record: TimeoutRecord,
    ) {
        let token = self.tokens.live(id);
        let fields = json!({
            "token_id": id.to_string(),
            "workflow_run_id": self.header.id,
            "node_id": self.snapshot.workflow.nodes[token.node].shown_id(),
            "timeout_type": "execution",
            "timeout_duration_ms": record.timeout_event.timeout_ms,
            "policy_applied": action.policy(),
        });
        self.changes.timeouts_noted.insert(id);
        self.note_with(RunEventKind::TokenTimedOut, fields, Some(record));
    }

    /// Schedules the next attempt after a delay. It starts without a checkpoint.
    pub(in crate::run) fn retry_after_timeout(&mut self, id: TokenId) {
        let token = self.tokens.live(id);
        let retry_count = token.retry_count + 1;
        let delay = retry_delay_ms(self.settings.retry_delay_ms, retry_count);
        let at = self.clock().saturating_add(delay);
        self.change(id, |token| {
            token.status = TokenStatus::Pending;
            token.retry_count = retry_count;
            token.deadline.stop();
            token.watch_at = Some(at);
            token.checkpoint = None;
            token.reason = Some("execution_timeout".into());
        });
        self.note(
            RunEventKind::TokenRetried,
            json!({"token_id": id.to_string(), "retry_count": retry_count, "delay_ms": delay}),
        );
        if delay == 0 {
            self.begin(id);
        }
    }

    /// An attempt was lost: it is replaced by a new one, up to `lost_max` times.
    pub(in crate::run) fn attempt_lost(&mut self, id: TokenId, message: &str) {
        let token = self.tokens.live(id);
        if token.lost_count >= self.settings.lost_max {
            let failure = Failure::new(
                "attempt_lost",
                FailureClass::Network,
                format!(
                    "no executor answered in {} attempts; last: {message}",
                    token.lost_count + 1
                ),
            );
            self.end_unsuccessfully(id, TokenStatus::Failed, failure);
            return;
        }
        let lost_count = token.lost_count + 1;
        let at = self.clock().saturating_add(lost_delay_ms(lost_count));
        // The deadline is kept: a token that cannot begin its next attempt before it times out.
        self.change(id, |token| {
            token.status = TokenStatus::Pending;
            token.lost_count = lost_count;
            token.watch_at = Some(at);
            token.reason = Some("attempt_lost".into());
        });
        if at <= self.clock() {
            self.begin(id);
        }
    }

    /// After the object was loaded again, no direct call is open any more: its attempt is lost.
    pub(in crate::run) fn take_over_lost_attempts(&mut self) {
        let executing: Vec<TokenId> = self
            .tokens
            .values()
            .filter(|token| token.status == TokenStatus::Executing)
            .map(|token| token.id)
            .collect();
        for id in executing {
            let Some(token) = self.tokens.get(&id) else {
                continue; // An earlier token of the list ended the run.
            };
            // A queue consumer works on without this object in memory.
            if token.lane == Some(Lane::Queue) {
                self.renew_watch_once(id);
                continue;
            }
            if !self.is_paused() && token.deadline.has_passed(self.changes.now) {
                self.execution_timed_out(id, None);
            } else {
                self.attempt_lost(id, "the run's object restarted during the attempt");
            }
        }
    }
}

fn retry_delay_ms(first_ms: u64, retry_count: u32) -> u64 {
    let doubled = first_ms.saturating_mul(1 << retry_count.saturating_sub(1).min(16));
    doubled.min(RETRY_DELAY_MAX_MS.max(first_ms))
}

/// Immediately, then after 1, 2, 4, 8 seconds: long enough for a deployment of the executor to finish.
fn lost_delay_ms(lost_count: u32) -> u64 {
    match lost_count {
        0 | 1 => 0,
        count => 1_000 << (count - 2).min(10),
    }
}
