//! Nodes that wait: for a duration, until a moment, or for a signal.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::base::failure::{Failure, FailureClass};
use crate::base::ordered::set_of;
use crate::base::text::shorten_to;
use crate::base::time::{Millis, format_duration, parse_length, parse_moment};
use crate::cel::Template;
use crate::definition::node::NodeKind;
use crate::definition::wait::{SignalTimeoutPolicy, SleepLength, Wait};
use crate::run::header::LIMIT_EXCEEDED;
use crate::run::rejection::Rejection;
use crate::run::size::check_received_result;
use crate::run::state::Run;
use crate::run::time::event_log::{RunEventKind, with_name};
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
            Wait::Sleep(length) => match self.sleep_ms(token, length) {
                Ok(millis) => (Some(now.saturating_add(millis)), None),
                Err(failure) => return self.end_unsuccessfully(id, TokenStatus::Failed, failure),
            },
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
            Wait::Sleep(_) | Wait::Until(_) => {}
            Wait::Signal { name, .. } => match self.waits.take_buffered(&name) {
                Some(payload) => self.succeed(id, payload),
                None => self.waits.begin(id, Awaited::Signal { name }),
            },
        }
    }

    /// How long a token sleeps: the rest of a sleep that was interrupted, or its whole length.
    fn sleep_ms(&self, token: &Token, length: &SleepLength) -> Result<u64, Failure> {
        let computed = match (token.sleep_left_ms, length) {
            (Some(left), _) => return Ok(left),
            (None, SleepLength::Millis(millis)) => return Ok(*millis),
            (None, SleepLength::Computed(template)) => template,
        };
        let place = format!("sleep of node {}", self.snapshot.workflow.nodes[token.node].id);
        let value = self.computed(token, &place, computed)?;
        let millis = parse_length(&value)
            .map_err(|message| wrong_value("invalid_duration", &place, computed, &message))?;
        let most = self.settings.timeout_max_ms;
        if millis > most {
            let (millis, most) = (format_duration(millis), format_duration(most));
            let message = format!("{millis} is over the limit of {most}");
            return Err(wrong_value(LIMIT_EXCEEDED, &place, computed, &message));
        }
        Ok(millis)
    }

    fn moment(&self, token: &Token, until: &Template) -> Result<Millis, Failure> {
        let place = format!("until of node {}", self.snapshot.workflow.nodes[token.node].id);
        let value = self.computed(token, &place, until)?;
        parse_moment(&value).map_err(|message| wrong_value("invalid_moment", &place, until, &message))
    }

    fn computed(&self, token: &Token, place: &str, template: &Template) -> Result<Value, Failure> {
        let vars = self.vars(token, error_value(token.cause.as_ref()))?;
        template
            .render(&self.scope(&vars))
            .map_err(|wrong| mapping_failure(place, &wrong))
    }

    /// Handles the timer of a wait: its moment has come, or its signal has not arrived in time.
    pub(in crate::run) fn wait_due(&mut self, id: TokenId) {
        let on_timeout = match self.wait_of(self.waiting_token(id).node) {
            Wait::Signal { on_timeout, .. } => *on_timeout,
            Wait::Sleep(_) | Wait::Until(_) => return self.succeed(id, Value::Null),
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

    fn check_signal_name(&self, name: &str) -> Result<(), Rejection> {
        let nodes = self.snapshot.workflow.nodes.iter();
        let waits = nodes.filter_map(|node| match &node.kind {
            NodeKind::Wait(wait) => Some(wait),
            NodeKind::Task { .. }
            | NodeKind::Action { .. }
            | NodeKind::Workflow { .. }
            | NodeKind::Gate(_)
            | NodeKind::PassThrough => None,
        });
        let known: BTreeSet<&String> = set_of(waits.filter_map(|wait| match &**wait {
            Wait::Signal { name, .. } => Some(name),
            Wait::Sleep(_) | Wait::Until(_) => None,
        }));
        match known.iter().any(|it| *it == name) {
            true => Ok(()),
            false => Err(Rejection::UnknownSignal {
                name: name.to_string(),
                known: known.into_iter().cloned().collect(),
            }),
        }
    }

    /// Delivers a signal to the token that has waited longest for it, or buffers it.
    pub(in crate::run) fn signal_received(
        &mut self,
        name: String,
        payload: Value,
        by: Option<&str>,
    ) -> Result<(), Rejection> {
        if self.has_ended() {
            return Err(Rejection::RunFinished);
        }
        if self.is_ending() {
            return Err(Rejection::Ending);
        }
        self.check_signal_name(&name)?;
        check_received_result("the signal", &payload)?;
        let received = with_name(by, json!({"name": name}));
        match self.waits.first_listener(&name) {
            Some(id) => {
                self.waits.end(id);
                self.note_on_token(id, RunEventKind::SignalReceived, received);
                self.succeed(id, payload);
                Ok(())
            }
            None => {
                let buffered = self.waits.buffer(name, payload);
                buffered.map_err(|TooManySignals| Rejection::TooManySignals)?;
                self.note(RunEventKind::SignalReceived, received);
                Ok(())
            }
        }
    }
}

/// What was computed is not of use. The message has its expressions and their place.
fn wrong_value(code: &str, place: &str, template: &Template, message: &str) -> Failure {
    let mut sources = Vec::new();
    template.visit(&mut |expression, _| sources.push(shorten_to(expression.source(), 200)));
    let text = match sources.as_slice() {
        // A constant of an earlier build.
        [] => format!("{place}: {message}"),
        [_, ..] => format!("{place}: expression `{}`: {message}", sources.join("`, `")),
    };
    Failure::validation(code, text)
}
