//! How a run ends: once, with a reason, leaving nothing under way.

use super::route::mapping_failure;
use super::run::{Run, RunStatus};
use super::token::{TokenId, TokenStatus};
use crate::model::failure::{Failure, FailureClass};
use crate::model::limits::CONTEXT_BYTES;
use serde_json::Value;

impl Run {
    /// No token is live: the run completes with what its output mapping says.
    pub(super) fn complete(&mut self) {
        let workflow = &self.snapshot.workflow;
        let output = match &workflow.output_mapping {
            None => Ok(self.context.output().clone()),
            Some(mapping) => mapping
                .render(&self.scope(&Value::Null))
                .map_err(|wrong| mapping_failure("output_mapping of the workflow", &wrong)),
        };
        match output.and_then(|output| self.check_output(output)) {
            Ok(output) => self.finish(RunStatus::Completed, Some(output), None),
            Err(failure) => self.finish(RunStatus::Failed, None, Some(failure)),
        }
    }

    fn check_output(&self, output: Value) -> Result<Value, Failure> {
        let bytes = output.to_string().len();
        if bytes > CONTEXT_BYTES {
            return Err(Failure::validation(
                "limit_exceeded",
                format!("the run's output is {bytes} bytes; the limit is {CONTEXT_BYTES}"),
            ));
        }
        let problems = match &self.snapshot.workflow.output_schema {
            Some(schema) => schema.validate(&output),
            None => Vec::new(),
        };
        match problems.first() {
            None => Ok(output),
            Some(problem) => Err(Failure::validation(
                "invalid_output",
                format!(
                    "the output does not fit output_schema at \"{}\": {}",
                    problem.pointer, problem.message
                ),
            )),
        }
    }

    pub(super) fn fail(&mut self, failure: Failure) {
        self.end_live_tokens(TokenStatus::Cancelled, "run_failed");
        self.finish(RunStatus::Failed, None, Some(failure));
    }

    /// A bound of the run was reached: say which one.
    pub(super) fn exceed(&mut self, limit: &str, most: u64) {
        self.fail(Failure::new(
            "limit_exceeded",
            FailureClass::Permanent,
            format!("limit {limit} exceeded: the run may have {most}"),
        ));
    }

    /// Ends every live token and aborts what is under way.
    pub(super) fn end_live_tokens(&mut self, status: TokenStatus, reason: &str) {
        let live: Vec<TokenId> = self.tokens.keys().copied().collect();
        for id in live {
            let under_way = self
                .tokens
                .get(&id)
                .is_some_and(|token| token.status == TokenStatus::Executing);
            self.end(id, status, |token| token.reason = Some(reason.to_string()));
            if under_way && let Some(token) = self.scratch.terminal.last() {
                self.scratch.aborts.push((id, token.epoch));
            }
        }
    }

    pub(super) fn finish(&mut self, status: RunStatus, output: Option<Value>, error: Option<Failure>) {
        self.header.status = status;
        self.header.ended_at = Some(self.scratch.now);
        self.header.output = output;
        self.header.error = error;
        self.scratch.arrivals.clear();
        self.scratch.orders.clear();
        self.scratch.header_changed = true;
        self.scratch.announce = true;
        self.scratch.ended = true;
    }
}
