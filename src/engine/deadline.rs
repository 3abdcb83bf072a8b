//! Every moment at which something must happen by itself, and what happens then.
//!
//! The object has one alarm; it stands at `next_deadline`. Nothing polls.

use super::header::RunStatus;
use super::run::{Due, Run};
use super::token::{Token, TokenId, TokenStatus};
use crate::model::action::ExecutionTimeoutPolicy;
use crate::model::failure::{Failure, FailureClass};
use crate::model::time::{Limit, Millis, format_duration};
use crate::model::workflow::WorkflowTimeoutPolicy;

impl Run {
    /// The earliest moment this run needs to be woken at. While it is paused only messages have a clock.
    pub fn next_deadline(&self) -> Option<Millis> {
        let first_message = || {
            let mut due = self.due.iter();
            due.find(|(_, due)| matches!(due, Due::Message(_)))
                .map(|(at, _)| *at)
        };
        if let Some(ended_at) = self.header.ended_at {
            let deleted_at = ended_at.saturating_add(self.settings.retention_ms);
            return first_message().into_iter().chain([deleted_at]).min();
        }
        if self.is_paused() {
            return first_message();
        }
        let first = self.due.first().map(|(at, _)| *at);
        self.header.timeout_at.into_iter().chain(first).min()
    }

    /// The workflow's own deadline goes before all others.
    pub(super) fn pass_workflow_deadline(&mut self) {
        let due = self.header.timeout_at.is_some_and(|at| at <= self.scratch.now);
        if due && self.is_running() && !self.is_paused() {
            self.workflow_timed_out();
        }
    }

    /// Handles everything that is due, oldest first. Only a wake that lists the open calls can tell a slow attempt
    /// from a lost one, so no other event looks after attempts: it would only put the watch off.
    pub(super) fn pass_deadlines(&mut self, open_calls: &[(TokenId, u64)]) {
        let now = self.scratch.now;
        let messages: Vec<u64> = self
            .outbox
            .iter()
            .filter(|(_, entry)| entry.due_at <= now)
            .map(|(id, _)| *id)
            .collect();
        for id in messages {
            self.send(id);
        }
        if let Some(ended_at) = self.header.ended_at {
            self.scratch.delete = ended_at.saturating_add(self.settings.retention_ms) <= now;
            return;
        }
        if self.is_paused() {
            return;
        }
        while let Some(&(at, due)) = self.due.first() {
            if at > now || !self.is_running() {
                return;
            }
            match due {
                Due::Token(id) => self.token_due(id, open_calls),
                Due::FanIn(instance, node) => {
                    self.due.remove(&(at, due));
                    self.sync_timed_out(instance, node);
                }
                Due::Message(_) => unreachable!("messages that were due were sent above"),
            }
            self.settle();
        }
    }

    fn token_due(&mut self, id: TokenId, open_calls: &[(TokenId, u64)]) {
        let now = self.scratch.now;
        let Some(token) = self.tokens.get(&id) else {
            unreachable!("{id} is due but not live");
        };
        let deadline_passed = token
            .timeout_at
            .is_some_and(|deadline| deadline.saturating_add(self.settings.grace_ms) <= now);
        match token.status {
            TokenStatus::Executing if deadline_passed => self.execution_timed_out(id, None),
            TokenStatus::Executing if open_calls.contains(&(id, token.epoch)) => self.look_again_later(id),
            TokenStatus::Executing => self.attempt_lost(id, "the call to the executor is gone"),
            TokenStatus::WaitingForSubworkflow => self.execution_timed_out(id, None),
            TokenStatus::AwaitingHuman => self.gate_due(id),
            TokenStatus::Suspended => self.wait_due(id),
            TokenStatus::Pending => self.begin(id),
            TokenStatus::WaitingForSiblings
            | TokenStatus::Completed
            | TokenStatus::Failed
            | TokenStatus::TimedOut
            | TokenStatus::Cancelled => unreachable!("{id} is {:?} and cannot be due", token.status),
        }
    }

    /// The run's own limit passed.
    fn workflow_timed_out(&mut self) {
        let after = format_duration(self.header.timeout_ms.unwrap_or_default());
        let failure = Failure::new(
            "workflow_timeout",
            FailureClass::Timeout,
            format!("Workflow execution timed out after {after}"),
        );
        let status = match self.snapshot.workflow.on_timeout {
            WorkflowTimeoutPolicy::HumanGate | WorkflowTimeoutPolicy::CancelAll => RunStatus::TimedOut,
            WorkflowTimeoutPolicy::Fail => RunStatus::Failed,
        };
        self.end_live_tokens(TokenStatus::TimedOut, "workflow_timeout");
        self.finish(status, None, Some(failure));
    }

    /// An attempt passed its deadline, told by its executor or found by the alarm.
    pub(super) fn execution_timed_out(&mut self, id: TokenId, reported: Option<Failure>) {
        let Some(token) = self.tokens.get(&id) else {
            return;
        };
        let node = &self.snapshot.workflow.nodes[token.node];
        let action = self
            .snapshot
            .task_of(token.node)
            .and_then(|task| task.task.only_action());
        let policy = node
            .on_timeout
            .or(action.and_then(|action| action.on_timeout))
            .unwrap_or(ExecutionTimeoutPolicy::Fail);
        let message = format!("step {} timed out: context deadline exceeded", node.id);
        let may_retry = match policy {
            ExecutionTimeoutPolicy::Retry => token.retry_count < node.max_retries,
            ExecutionTimeoutPolicy::Fail => false,
        };
        if reported.is_none() {
            self.abort_work(id, "execution_timeout");
        }
        if may_retry {
            self.change(id, |token| token.retry_count += 1);
            self.try_again(id);
            return;
        }
        let mut failure = Failure::new("execution_timeout", FailureClass::Timeout, message);
        failure.step_ref = reported.and_then(|reported| reported.step_ref);
        self.end_unsuccessfully(id, TokenStatus::TimedOut, failure);
    }

    /// An attempt vanished: the next one replaces it, a few times.
    pub(super) fn attempt_lost(&mut self, id: TokenId, message: &str) {
        let Some(token) = self.tokens.get(&id) else {
            return;
        };
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
        self.change(id, |token| {
            token.status = TokenStatus::Pending;
            token.lost_count = lost_count;
            token.timeout_at = None;
            token.watch_at = Some(at);
            token.reason = Some("attempt_lost".into());
        });
        if at <= self.clock() {
            self.begin(id);
        }
    }

    /// After a restart every attempt under way is an attempt without a listener.
    pub(super) fn take_over_lost_attempts(&mut self) {
        let executing: Vec<TokenId> = self
            .tokens
            .values()
            .filter(|token| token.status == TokenStatus::Executing)
            .map(|token| token.id)
            .collect();
        for id in executing {
            let Some(token) = self.tokens.get(&id) else {
                continue; // An earlier one of the list ended the run.
            };
            if !self.is_paused() && token.timeout_at.is_some_and(|at| at <= self.scratch.now) {
                self.execution_timed_out(id, None);
            } else {
                self.attempt_lost(id, "the run's object restarted during the attempt");
            }
        }
    }

    /// How long an attempt at `node` may take, and by whose word: node, then task, then the action of a one-step task.
    pub(super) fn execution_limit(&self, node: usize) -> Limit {
        let task = self.snapshot.task_of(node).map(|task| &task.task);
        let action = task.and_then(|task| task.only_action());
        self.snapshot.workflow.nodes[node]
            .timeout
            .or(task.map(|task| task.timeout).unwrap_or_default())
            .or(action.map(|action| action.timeout).unwrap_or_default())
    }

    fn look_again_later(&mut self, id: TokenId) {
        let at = self.scratch.now.saturating_add(self.settings.watch_ms);
        // Only in memory: after a crash the older, earlier moment is the right one to wake at.
        self.touch(id, |token| token.watch_at = Some(at));
    }

    /// Changes a live token and marks it to be saved.
    pub(super) fn change(&mut self, id: TokenId, update: impl FnOnce(&mut Token)) {
        self.touch(id, update);
        self.scratch.changed.insert(id);
    }

    /// Changes a live token, keeping counts and the order of deadlines right.
    fn touch(&mut self, id: TokenId, update: impl FnOnce(&mut Token)) {
        let grace_ms = self.settings.grace_ms;
        let Some(token) = self.tokens.get_mut(&id) else {
            return;
        };
        let (status, due_at) = (token.status, token.due_at(grace_ms));
        update(token);
        assert!(
            status == token.status || status.may_become(token.status),
            "{id} may not go from {status:?} to {:?}",
            token.status
        );
        let (next_status, next_due_at) = (token.status, token.due_at(grace_ms));
        if status != next_status {
            self.count_move(Some(status), next_status);
        }
        if due_at != next_due_at {
            if let Some(at) = due_at {
                self.due.remove(&(at, Due::Token(id)));
            }
            if let Some(at) = next_due_at {
                self.due.insert((at, Due::Token(id)));
            }
        }
    }

    pub(super) fn count_move(&mut self, from: Option<TokenStatus>, to: TokenStatus) {
        if let Some(from) = from
            && let Some(count) = self.counts.get_mut(&from)
        {
            *count = count.saturating_sub(1);
        }
        *self.counts.entry(to).or_default() += 1;
    }
}

/// At once, then after 1, 2, 4, 8 seconds: an executor being deployed is back by then.
fn lost_delay_ms(lost_count: u32) -> u64 {
    match lost_count {
        0 | 1 => 0,
        count => 1_000 << (count - 2).min(10),
    }
}
