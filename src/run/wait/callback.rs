//! Async actions: the call returns at once, and a callback delivers its result later. The callback is authorized by a
//! capability. Each attempt has its own.

use serde_json::Value;

use crate::base::failure::{Failure, FailureClass};
use crate::base::time::Limit;
use crate::definition::action::Action;
use crate::run::rejection::Rejection;
use crate::run::size::check_received_result;
use crate::run::state::Run;
use crate::run::token::attempt::Reported;
use crate::run::token::deadline::TokenDeadline;
use crate::run::token::{Token, TokenId, TokenStatus};
use crate::run::wait::capability::Capability;
use crate::run::wait::waits::Awaited;

/// What a callback delivers.
#[derive(Clone, Debug, PartialEq)]
pub enum CallbackResult {
    Output(Value),
    Failed(Failure),
}

impl CallbackResult {
    /// `{output}` or `{error: {code?, message?}}`; any other body is the output itself, as a webhook of another service sends it.
    pub fn read(body: Value) -> CallbackResult {
        let error = &body["error"];
        if error.is_object() || error.is_string() {
            let text = |field: &str| error[field].as_str();
            let message = text("message")
                .or(error.as_str())
                .unwrap_or("the callback reports a failure");
            let code = text("code").unwrap_or("callback_failed");
            return CallbackResult::Failed(Failure::new(code, FailureClass::Unknown, message));
        }
        match body {
            Value::Object(mut fields) if fields.contains_key("output") => {
                CallbackResult::Output(fields.remove("output").unwrap_or_default())
            }
            other => CallbackResult::Output(other),
        }
    }
}

impl Run {
    pub(in crate::run) fn async_action(&self, token: &Token) -> Option<&Action> {
        let action = self.snapshot.task_of(token.node)?.task.only_action()?;
        action.is_async().then_some(action)
    }

    /// The capability of an attempt at an async action.
    pub(in crate::run) fn capability(&self, token: &Token, epoch: u64) -> Option<String> {
        self.async_action(token)?;
        let (token_id, secret) = (token.id.to_string(), self.header.callback_secret.as_ref()?);
        let capability = Capability {
            run_id: self.header.id.clone(),
            proof: secret.proof(self.header.started_at, &token_id, epoch),
            token_id,
            epoch,
        };
        Some(capability.text())
    }

    /// The executor made the call: the token waits for its callback.
    pub(in crate::run) fn suspend(&mut self, id: TokenId) {
        let token = self
            .tokens
            .get(&id)
            .expect("the token of a current attempt is live");
        let Some(action) = self.async_action(token) else {
            let failure = Failure::new(
                "invalid_report",
                FailureClass::Permanent,
                "the executor waits for a callback that no action asked for",
            );
            return self.end_unsuccessfully(id, TokenStatus::Failed, failure);
        };
        let node = &self.snapshot.workflow.nodes[token.node];
        // An adaptive limit without enough samples is none.
        let is_bounded_by_node = match node.adaptive {
            true => token.deadline.timeout_ms.is_some(),
            false => node.timeout != Limit::Unset,
        };
        let limit = action.timeout.millis().unwrap_or(0).max(self.settings.suspend_ms);
        let deadline = TokenDeadline::starting(self.clock(), Some(limit));
        self.change(id, |token| {
            token.status = TokenStatus::Suspended;
            // The node's own limit bounds the call and the wait for its result together: it stays.
            if !is_bounded_by_node {
                token.deadline = deadline;
            }
            token.watch_at = None;
        });
        self.waits.begin(id, Awaited::Callback);
    }

    /// A callback may arrive before the executor has reported that it made the call.
    pub(in crate::run) fn callback_received(
        &mut self,
        capability: &Capability,
        result: CallbackResult,
    ) -> Result<(), Rejection> {
        let secret = self.header.callback_secret.as_ref();
        if !secret.is_some_and(|secret| secret.proves(self.header.started_at, capability)) {
            return Err(Rejection::UnknownCallback);
        }
        let waiting = self.current_attempt(&capability.token_id, capability.epoch, TokenStatus::Suspended);
        let id = waiting.or_else(|_| {
            self.current_attempt(&capability.token_id, capability.epoch, TokenStatus::Executing)
        })?;
        let token = self
            .tokens
            .get(&id)
            .expect("the token of a current attempt is live");
        if let CallbackResult::Output(output) = &result {
            check_received_result("the result", output)?;
        }
        let was_executing = token.status == TokenStatus::Executing;
        let schema = self
            .async_action(token)
            .and_then(|action| action.output_schema.as_ref());
        let result = match result {
            CallbackResult::Output(output) => {
                let place = "output_schema of the action, at";
                let fits = schema.map_or(Ok(()), |schema| {
                    schema.check(&output, Some(&self.work), "schema_mismatch", place)
                });
                fits.map(|()| output)
            }
            CallbackResult::Failed(failure) => Err(failure),
        };
        if was_executing {
            self.abort_work(id, "called_back");
        }
        self.waits.end(id);
        match result {
            Ok(output) => self.succeed(id, output),
            Err(failure) => self.end_unsuccessfully(id, TokenStatus::Failed, failure),
        }
        Ok(())
    }

    /// No callback came in time: handled as a timeout that the executor reports.
    pub(in crate::run) fn callback_due(&mut self, id: TokenId) {
        self.waits.end(id);
        self.execution_timed_out(id, Some(Reported::NoCallback));
    }
}
