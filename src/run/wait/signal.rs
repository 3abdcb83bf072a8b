//! Nodes that wait: for a duration, until a moment, or for a signal.

use serde_json::Value;

use crate::base::failure::{Failure, FailureClass};
use crate::base::time::{Millis, parse_moment};
use crate::cel::Template;
use crate::definition::node::NodeKind;
use crate::definition::wait::{SignalTimeoutPolicy, Wait};
use crate::run::rejection::Rejection;
use crate::run::size::check_received_result;
use crate::run::state::Run;
use crate::run::time::timeout_record::{FinalAction, Passed, TimeoutScope};
use crate::run::token::deadline::TokenDeadline;
use crate::run::token::route::{error_value, mapping_failure};
use crate::run::token::{Token, TokenId, TokenStatus};
use crate::run::wait::waits::{Awaited, TooManySignals};

impl Run {
    fn wait_of(&self, node: usize) -> &Wait {
        match &self.snapshot.workflow.nodes[node].kind {
            NodeKind::Wait(wait) => wait,
            NodeKind::Task { .. }
            | NodeKind::Action { .. }
            | NodeKind::Workflow { .. }
            | NodeKind::Gate(_)
            | NodeKind::PassThrough => unreachable!("a suspended token waits for a callback or is at a wait"),
        }
    }

    fn waiting_token(&self, id: TokenId) -> &Token {
        self.tokens.get(&id).expect("a token is live while it waits")
    }

    /// A token arrives at a wait.
    pub(in crate::run) fn begin_wait(&mut self, id: TokenId) {
        let token = self.waiting_token(id);
        let wait = self.wait_of(token.node).clone();
        let now = self.changes.now;
        let (wakes_at, timeout_ms) = match &wait {
            Wait::Sleep { millis } => {
                let left = token.sleep_left_ms.unwrap_or(*millis);
                (Some(now.saturating_add(left)), None)
            }
            Wait::Until(until) => match self.moment(token, until) {
                Ok(moment) => (Some(moment.max(now)), None),
                Err(failure) => return self.end_unsuccessfully(id, TokenStatus::Failed, failure),
            },
            Wait::Signal { timeout, .. } => (None, timeout.millis()),
        };
        self.change(id, |token| {
            token.status = TokenStatus::Suspended;
            token.epoch += 1;
            token.started_at = Some(now);
            token.watch_at = wakes_at;
            token.deadline = TokenDeadline::starting(now, timeout_ms);
            token.sleep_left_ms = None;
        });
        match wait {
            // Only a timer ends these waits.
            Wait::Sleep { .. } | Wait::Until(_) => {}
            Wait::Signal { name, .. } => match self.waits.take_buffered(&name) {
                Some(payload) => self.succeed(id, payload),
                None => self.waits.begin(id, Awaited::Signal { name }),
            },
        }
    }

    fn moment(&self, token: &Token, until: &Template) -> Result<Millis, Failure> {
        let place = format!("until of node {}", self.snapshot.workflow.nodes[token.node].id);
        let vars = self.vars(token, error_value(token.cause.as_ref()))?;
        let value = until
            .render(&self.scope(&vars))
            .map_err(|wrong| mapping_failure(&place, &wrong))?;
        parse_moment(&value)
            .map_err(|message| Failure::validation("invalid_moment", format!("{place}: {message}")))
    }

    /// Handles the timer of a wait: its moment has come, or its signal has not arrived in time.
    pub(in crate::run) fn wait_due(&mut self, id: TokenId) {
        let on_timeout = match self.wait_of(self.waiting_token(id).node) {
            Wait::Signal { on_timeout, .. } => *on_timeout,
            Wait::Sleep { .. } | Wait::Until(_) => return self.succeed(id, Value::Null),
        };
        self.waits.end(id);
        self.note_wait_timeout(id, on_timeout);
        match on_timeout {
            SignalTimeoutPolicy::Continue => self.succeed(id, Value::Null),
            SignalTimeoutPolicy::Fail => {
                let failure = Failure::new(
                    "signal_timeout",
                    FailureClass::Timeout,
                    "the signal did not come in time",
                );
                self.end_unsuccessfully(id, TokenStatus::TimedOut, failure);
            }
        }
    }

    fn note_wait_timeout(&mut self, id: TokenId, policy: SignalTimeoutPolicy) {
        let token = self.waiting_token(id);
        let action = match policy {
            SignalTimeoutPolicy::Continue => FinalAction::Proceed,
            SignalTimeoutPolicy::Fail => FinalAction::Fail,
        };
        let passed = Passed {
            scope: TimeoutScope::Step,
            due_at: token.deadline.at.unwrap_or(self.changes.now),
            timeout_ms: token.deadline.timeout_ms,
        };
        let record = self.record_of_token(token, passed, action);
        self.note_token_timeout(id, action, record);
    }

    /// Delivers a signal to the token that has waited longest for it, or buffers it.
    pub(in crate::run) fn signal_received(&mut self, name: String, payload: Value) -> Result<(), Rejection> {
        if self.has_ended() {
            return Err(Rejection::RunFinished);
        }
        if self.is_ending() {
            return Err(Rejection::Ending);
        }
        check_received_result("the signal", &payload)?;
        match self.waits.first_listener(&name) {
            Some(id) => {
                self.waits.end(id);
                self.succeed(id, payload);
                Ok(())
            }
            None => self
                .waits
                .buffer(name, payload)
                .map_err(|TooManySignals| Rejection::TooManySignals),
        }
    }
}
