//! Waits: a token that stands still until a moment comes, or a signal.

use serde_json::Value;

use crate::base::failure::{Failure, FailureClass};
use crate::base::limits::{BUFFERED_SIGNALS, BUFFERED_SIGNALS_BYTES};
use crate::base::text::json_bytes;
use crate::base::time::{Millis, parse_moment};
use crate::definition::node::NodeKind;
use crate::definition::wait::{SignalTimeoutPolicy, Wait};
use crate::run::rejection::Rejection;
use crate::run::size::check_brought;
use crate::run::state::Run;
use crate::run::time::timeout_record::{FinalAction, Passed, TimeoutScope};
use crate::run::token::route::mapping_failure;
use crate::run::token::{TokenId, TokenStatus};

impl Run {
    fn wait_of(&self, node: usize) -> Option<&Wait> {
        match &self.snapshot.workflow.nodes[node].kind {
            NodeKind::Wait(wait) => Some(wait),
            NodeKind::Task { .. }
            | NodeKind::Action { .. }
            | NodeKind::Workflow { .. }
            | NodeKind::Gate(_)
            | NodeKind::PassThrough => None,
        }
    }

    /// A token arrived at a wait.
    pub(in crate::run) fn begin_wait(&mut self, id: TokenId) {
        let Some(token) = self.tokens.get(&id) else { return };
        let Some(wait) = self.wait_of(token.node).cloned() else {
            return;
        };
        let now = self.changes.now;
        let (wakes_at, timeout_ms) = match &wait {
            Wait::Sleep { millis } => {
                let left = token.sleep_left_ms.unwrap_or(*millis);
                (Some(now.saturating_add(left)), None)
            }
            Wait::Until(_) => match self.moment(id, &wait) {
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
            token.timeout_ms = timeout_ms;
            token.timeout_at = timeout_ms.map(|millis| now.saturating_add(millis));
            token.sleep_left_ms = None;
        });
        let Wait::Signal { name, .. } = wait else { return };
        // A signal that came before its wait was kept for it.
        if let Some(payloads) = self.signals.get_mut(&name)
            && !payloads.is_empty()
        {
            let payload = payloads.remove(0);
            self.changes.changed_signals.insert(name);
            self.succeed(id, payload);
        } else {
            self.listeners.entry(name).or_default().insert(id);
        }
    }

    fn moment(&self, id: TokenId, wait: &Wait) -> Result<Millis, Failure> {
        let (Wait::Until(until), Some(token)) = (wait, self.tokens.get(&id)) else {
            return Ok(self.changes.now);
        };
        let place = format!("until of node {}", self.snapshot.workflow.nodes[token.node].id);
        let vars = self.vars(token, crate::run::token::route::error_value(token.cause.as_ref()))?;
        let value = until
            .render(&self.scope(&vars))
            .map_err(|wrong| mapping_failure(&place, &wrong))?;
        parse_moment(&value)
            .map_err(|message| Failure::validation("invalid_moment", format!("{place}: {message}")))
    }

    /// The moment a waiting token stood still for.
    pub(in crate::run) fn wait_due(&mut self, id: TokenId) {
        let Some(token) = self.tokens.get(&id) else { return };
        let on_timeout = match self.wait_of(token.node) {
            Some(Wait::Signal { on_timeout, .. }) => *on_timeout,
            Some(Wait::Sleep { .. } | Wait::Until(_)) | None => return self.succeed(id, Value::Null),
        };
        self.stop_listening(id);
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
        let Some(token) = self.tokens.get(&id) else { return };
        let action = match policy {
            SignalTimeoutPolicy::Continue => FinalAction::Proceed,
            SignalTimeoutPolicy::Fail => FinalAction::Fail,
        };
        let passed = Passed {
            scope: TimeoutScope::Step,
            due_at: token.timeout_at.unwrap_or(self.changes.now),
            timeout_ms: token.timeout_ms,
        };
        let record = self.record_of_token(token, passed, action);
        self.note_token_timeout(id, action, record);
    }

    /// Gives a signal to the token that has waited longest for it, or keeps it.
    pub(in crate::run) fn signal_received(&mut self, name: String, payload: Value) -> Result<(), Rejection> {
        if !self.is_running() {
            return Err(Rejection::RunFinished);
        }
        check_brought("the signal", &payload)?;
        let listener = self
            .listeners
            .get(&name)
            .and_then(|tokens| tokens.first().copied());
        if let Some(id) = listener {
            self.stop_listening(id);
            self.succeed(id, payload);
            return Ok(());
        }
        let kept = self.signals.values().flatten();
        let (count, bytes) = kept.fold((0, 0), |(count, bytes), payload| {
            (count + 1, bytes + json_bytes(payload) + 1)
        });
        if count >= BUFFERED_SIGNALS || bytes + json_bytes(&payload) > BUFFERED_SIGNALS_BYTES {
            return Err(Rejection::TooManySignals);
        }
        self.signals.entry(name.clone()).or_default().push(payload);
        self.changes.changed_signals.insert(name);
        Ok(())
    }

    pub(in crate::run) fn stop_listening(&mut self, id: TokenId) {
        self.called_back.remove(&id);
        self.listeners.retain(|_, tokens| {
            tokens.remove(&id);
            !tokens.is_empty()
        });
    }
}
