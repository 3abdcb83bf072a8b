//! Ends a run: once, with a reason, and with all its work stopped.

use crate::base::compute::{copy_steps, write_steps};
use crate::base::failure::{Failure, FailureClass};
use crate::base::limits::{OUTPUT_BYTES, TooLarge};
use crate::base::text::json_bytes;
use crate::run::header::{LIMIT_EXCEEDED, RunStatus};
use crate::run::recovery::compensate::CompensationResult;
use crate::run::recovery::ending::{End, INTERNAL_ERROR};
use crate::run::rejection::Rejection;
use crate::run::state::{Run, Vars};
use crate::run::time::event_log::RunEventKind;
use crate::run::token::route::mapping_failure;
use crate::run::token::{TokenId, TokenStatus};
use serde_json::{Value, json};

impl Run {
    /// Completes the run once no token is live.
    pub(in crate::run) fn complete(&mut self) {
        let workflow = &self.snapshot.workflow;
        let output = match &workflow.output_mapping {
            None => {
                let output = self.context.output();
                let paid = self.work.charge_for("the run's output", copy_steps(output));
                paid.map(|()| output.clone())
            }
            Some(mapping) => mapping
                .render(&self.scope(&Vars::default()))
                .map_err(|wrong| mapping_failure("output_mapping of the workflow", &wrong)),
        };
        match output.and_then(|output| self.check_output(output)) {
            Ok(output) => self.decide_end(End {
                status: RunStatus::Completed,
                output: Some(output),
                error: None,
                reason: None,
                token_status: TokenStatus::Cancelled,
                token_reason: "run_completed",
                event: None,
            }),
            Err(failure) => self.fail(failure),
        }
    }

    pub(in crate::run) fn check_input(&self) -> Result<(), Failure> {
        let Some(schema) = &self.snapshot.workflow.input_schema else {
            return Ok(());
        };
        let place = "the input does not fit input_schema at";
        schema.check(&self.context.input, Some(&self.work), "invalid_input", place)
    }

    fn check_output(&self, output: Value) -> Result<Value, Failure> {
        self.work
            .charge_for("the run's output", 2 * write_steps(&output))?;
        TooLarge::check("the run's output", json_bytes(&output), OUTPUT_BYTES)?;
        if let Some(schema) = &self.snapshot.workflow.output_schema {
            let place = "the output does not fit output_schema at";
            schema.check(&output, Some(&self.work), "invalid_output", place)?;
        }
        Ok(output)
    }

    pub(in crate::run) fn fail(&mut self, failure: Failure) {
        let fields = json!({"code": failure.code, "class": failure.class, "node_id": failure.node_id,
            "token_id": failure.token_id});
        self.decide_end(End {
            status: RunStatus::Failed,
            output: None,
            error: Some(failure),
            reason: None,
            token_status: TokenStatus::Cancelled,
            token_reason: "run_failed",
            event: Some((RunEventKind::RunFailed, fields, None)),
        });
    }

    /// Ends a run that cannot be decided or saved because of a bug, without handling what is due. It fails, unless its end was
    /// decided before: then it ends that way.
    pub(in crate::run) fn abandoned(&mut self) -> Result<(), Rejection> {
        if self.header.status.is_terminal() {
            return Err(Rejection::RunFinished);
        }
        if self.is_ending() {
            self.give_up_ending();
            return Ok(());
        }
        let failure = Failure::new(
            INTERNAL_ERROR,
            FailureClass::Permanent,
            "Curfew could not decide or save what was due in this run, several times in a row, and gave it up: a bug of \
             Curfew. What was done is kept; GET .../resume says which ways back are open",
        );
        // At once: compensations could not be saved either.
        let fields = json!({"code": failure.code, "class": failure.class});
        self.end_live_tokens(TokenStatus::Cancelled, "run_failed");
        self.note(RunEventKind::RunFailed, fields);
        self.header.ends += 1;
        self.finish(RunStatus::Failed, None, Some(failure));
        Ok(())
    }

    /// Fails a run that reached one of its limits.
    pub(in crate::run) fn fail_on_limit(&mut self, limit: &str, most: u64) {
        self.note(RunEventKind::LimitExceeded, json!({"limit": limit, "most": most}));
        self.fail(Failure::new(
            LIMIT_EXCEEDED,
            FailureClass::Permanent,
            format!("limit {limit} exceeded: the run may have {most}"),
        ));
    }

    /// Ends every live token and aborts its work.
    pub(in crate::run) fn end_live_tokens(&mut self, status: TokenStatus, reason: &str) {
        let live: Vec<TokenId> = self.tokens.keys().copied().collect();
        for id in live {
            self.mark_interrupted(id);
            self.cancel_token(id, status, reason, true);
        }
        self.close_all_instances();
    }

    /// Ends a live token from outside. With `abort` its work is stopped, otherwise the result is ignored.
    pub(in crate::run) fn cancel_token(
        &mut self,
        id: TokenId,
        status: TokenStatus,
        reason: &str,
        abort: bool,
    ) {
        if abort {
            self.abort_work(id, reason);
        } else if self.tokens.live(id).status == TokenStatus::WaitingForSubworkflow {
            // A child that runs may continue; a start that was not sent yet is retracted.
            let token = self.tokens.live(id).clone();
            if !self.retract_start(&token) {
                self.release_child(&token);
            }
        }
        self.withdraw_gate(id);
        self.waits.end(id);
        self.end(id, status, |token| token.reason = Some(reason.to_string()));
    }

    /// Records the state of a token that the end of the run or of its branch interrupts, so that a resume can continue it.
    pub(in crate::run) fn mark_interrupted(&mut self, id: TokenId) {
        let token = self.tokens.live(id);
        let sleeps = token.status == TokenStatus::Suspended && token.deadline.at.is_none();
        let left = token.watch_at.map(|at| at.saturating_sub(self.clock()));
        let status = token.status;
        self.tokens.interrupt(id, status, left.filter(|_| sleeps));
    }

    /// Stops a token's work: its call, or its child.
    pub(in crate::run) fn abort_work(&mut self, id: TokenId, reason: &str) {
        let token = self.tokens.live(id);
        match token.status {
            TokenStatus::Executing => self.changes.aborts.push((id, token.epoch)),
            TokenStatus::WaitingForSubworkflow => {
                let token = token.clone();
                self.cancel_child(&token, reason);
            }
            // Claims of a queued attempt are refused, and so is the next heartbeat of a claimed one.
            TokenStatus::Pending
            | TokenStatus::Dispatched
            | TokenStatus::WaitingForSiblings
            | TokenStatus::AwaitingHuman
            | TokenStatus::Suspended
            | TokenStatus::Completed
            | TokenStatus::Failed
            | TokenStatus::TimedOut
            | TokenStatus::Cancelled => {}
        }
    }

    pub(in crate::run) fn finish(
        &mut self,
        status: RunStatus,
        output: Option<Value>,
        error: Option<Failure>,
    ) {
        self.header.status = status;
        self.header.ended_at = Some(self.changes.now);
        self.header.output = output;
        self.header.error = error;
        self.start_clock(self.changes.now);
        self.header.paused_at = None;
        self.header.pause_reasons.clear();
        let compensation = self.header.compensation.as_ref();
        if status == RunStatus::Completed || compensation.is_some_and(CompensationResult::settles_work) {
            self.header.settled_order = self.tokens.count_done();
        }
        self.note_end(status);
        self.forget_failed_wakes();
        self.withdraw_run_gate();
        self.notify_parent();
        self.changes.arrivals.clear();
        self.changes.orders.clear();
        self.changes.header_changed = true;
        self.changes.publish_run = true;
        self.changes.ended = true;
    }
}
