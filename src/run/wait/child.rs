//! Sub-workflows: a child run does a token's work. The parent chooses the child's id, so a repeated start is the same
//! start; the child repeats its report until the parent has acknowledged it.

use serde_json::{Value, json};

use crate::base::compute::copy_steps;
use crate::base::failure::{Failure, FailureClass};
use crate::base::limits::{CALL_DEPTH, RESULT_BYTES, ROW_BYTES, TooLarge};
use crate::base::text::json_bytes;
use crate::definition::NOW;
use crate::definition::node::ChildFailurePolicy;
use crate::definition::step::StepAction;
use crate::run::event::{ParentSender, StartRefusal};
use crate::run::header::{ChildIds, LIMIT_EXCEEDED, ParentLink, RunStatus, StartRequest};
use crate::run::message::{ChildReport, ChildStatusUpdate, Message};
use crate::run::rejection::Rejection;
use crate::run::size::check_child_input;
use crate::run::state::Run;
use crate::run::time::event_log::RunEventKind;
use crate::run::token::attempt::Reported;
use crate::run::token::deadline::TokenDeadline;
use crate::run::token::{CHILD_PAUSED, Token, TokenId, TokenStatus};

impl Run {
    /// The id of the child of this attempt. A later attempt has another child.
    pub fn child_id(&self, token: &Token) -> String {
        let separator = match self.header.child_ids {
            ChildIds::Dotted => '.',
            ChildIds::Reserved => '~',
        };
        match token.epoch {
            0 | 1 => format!("{}{separator}{}", self.header.id, token.id),
            epoch => format!("{}{separator}{}{separator}{epoch}", self.header.id, token.id),
        }
    }

    /// Whether this run is the one that a start asks for: the same start again is the same run.
    pub fn was_started_by(
        &self,
        workflow_id: &str,
        input: &Value,
        request: &StartRequest,
        parent: Option<&ParentLink>,
    ) -> bool {
        let attempt = |parent: &ParentLink| (parent.run_id.clone(), parent.token_id.clone(), parent.epoch);
        self.header.workflow_id == workflow_id
            && self.header.request == *request
            && *self.context.input == *input
            && self.header.parent.as_ref().map(attempt) == parent.map(attempt)
    }

    /// Only the run that called this one may pause or cancel it as its parent.
    pub(in crate::run) fn check_parent(&self, sender: &ParentSender) -> Result<(), Rejection> {
        let is_parent = self.header.parent.as_ref().is_some_and(|parent| {
            let of_token = sender.token_id.as_ref();
            parent.run_id == sender.run_id && of_token.is_none_or(|token| *token == parent.token_id)
        });
        match is_parent {
            true => Ok(()),
            false => Err(Rejection::NotParent {
                run_id: sender.run_id.clone(),
            }),
        }
    }

    /// The attempt that waits for the run that reports.
    fn awaited(&self, token_id: &str, epoch: u64, run_id: &str) -> Result<TokenId, Rejection> {
        let id = self.current_attempt(token_id, epoch, TokenStatus::WaitingForSubworkflow)?;
        let is_child = self
            .tokens
            .get(&id)
            .is_some_and(|token| self.child_id(token) == run_id);
        match is_child {
            true => Ok(id),
            false => Err(Rejection::NotChild {
                run_id: run_id.to_string(),
            }),
        }
    }

    /// The child cannot be started and will never report to the token that waits.
    pub(in crate::run) fn child_refused(&mut self, message: u64, refusal: StartRefusal) {
        // The start may have been retracted meanwhile, and after a restore its number may belong to another message.
        let Some(Message::StartChild {
            run_id,
            token_id,
            epoch,
            ..
        }) = self.outbox.get(message)
        else {
            return;
        };
        let (code, text) = match refusal {
            StartRefusal::IdTaken => (
                "child_id_taken",
                format!(
                    "the run \"{run_id}\" exists and is not the child of this token; it was left alone, and the child was not \
                     started"
                ),
            ),
            StartRefusal::TooLarge => (
                LIMIT_EXCEEDED,
                format!(
                    "the child was not started: its workflow with all that it uses, or its input, is over the limit of \
                     {ROW_BYTES} bytes"
                ),
            ),
        };
        let waiting = self.awaited(token_id, *epoch, run_id);
        self.outbox.remove(message);
        if let Ok(id) = waiting {
            let failure = Failure::permanent(code, text);
            self.end_unsuccessfully(id, TokenStatus::Failed, failure);
        }
    }

    /// Starts the child that does this token's work.
    pub(in crate::run) fn start_child(&mut self, id: TokenId) {
        let token = self
            .tokens
            .get(&id)
            .expect("a token is live when its work begins");
        let node = token.node;
        if self.header.depth + 1 >= CALL_DEPTH {
            let failure = Failure::new(
                "depth_exceeded",
                FailureClass::Permanent,
                format!("workflows may not call each other more than {CALL_DEPTH} deep"),
            );
            return self.end_unsuccessfully(id, TokenStatus::Failed, failure);
        }
        let input = self
            .task_input(token)
            .and_then(|input| self.call_input(node, &input));
        let input = input.and_then(|input| {
            check_child_input(&self.snapshot.workflow.nodes[node].id, &input)?;
            Ok(input)
        });
        let input = match input {
            Ok(input) => input,
            Err(failure) => return self.end_unsuccessfully(id, TokenStatus::Failed, failure),
        };
        let now = self.changes.now;
        let limit = self.execution_limit(node);
        let timeout_ms = limit.limit.millis();
        let left = self.limit_left_ms().map(|left| left.max(1));
        let budget_ms = left.filter(|_| self.snapshot.workflow.timeouts.inherit_budget);
        self.change(id, |token| {
            token.status = TokenStatus::WaitingForSubworkflow;
            token.epoch += 1;
            token.dispatched_at = Some(now);
            token.started_at = Some(now);
            token.stopped_ms = 0;
            token.deadline = TokenDeadline::starting(now, timeout_ms).because(limit.reason);
            token.watch_at = None;
            // Each child numbers its messages from 1.
            token.child_news = 0;
        });
        let token = self.tokens.get(&id).expect("changed just now");
        let message = Message::StartChild {
            run_id: self.child_id(token),
            node_id: self.snapshot.workflow.nodes[node].id.clone(),
            token_id: id.to_string(),
            epoch: token.epoch,
            input,
            timeout_ms,
            budget_ms,
            node_decides: timeout_ms.is_some(),
        };
        self.post(message);
        let child = json!({"child_run_id": self.child_id(self.tokens.live(id))});
        self.note_on_token(id, RunEventKind::SubworkflowStarted, child);
    }

    /// The input of the child: the node's input, through the step's mapping if an action makes the call.
    fn call_input(&self, node: usize, input: &Value) -> Result<Value, Failure> {
        let task = self.snapshot.task_of(node).map(|task| &task.task);
        let step = task.and_then(|task| task.steps.first());
        match step.and_then(|step| step.input_mapping.as_ref().map(|mapping| (step, mapping))) {
            None => {
                self.work
                    .charge_for("the input of the child", copy_steps(input))?;
                Ok(input.clone())
            }
            Some((step, mapping)) => {
                debug_assert!(
                    matches!(step.action, StepAction::Inline(_)),
                    "snapshots are resolved"
                );
                let empty = json!({});
                let mut scope = crate::cel::Scope::metered(Some(&self.work));
                scope
                    .bind("input", input)
                    .bind("state", &empty)
                    .bind("output", &empty)
                    .bind_owned(NOW, self.changes.now.into());
                mapping.render(&scope).map_err(|wrong| {
                    crate::run::token::route::mapping_failure(
                        &format!("input_mapping of step {}", step.reference),
                        &wrong,
                    )
                })
            }
        }
    }

    pub(in crate::run) fn child_ended(&mut self, report: ChildReport) -> Result<(), Rejection> {
        let id = self.awaited(&report.token_id, report.epoch, &report.run_id)?;
        self.child_goes_on(id);
        let child = json!({"child_run_id": report.run_id, "status": report.status});
        self.note_on_token(id, RunEventKind::SubworkflowEnded, child);
        let token = self
            .tokens
            .get(&id)
            .expect("the token of a current attempt is live");
        let policy = self
            .snapshot
            .call_of(token.node)
            .unwrap_or(ChildFailurePolicy::Propagate);
        let (status, failure) = match report.status {
            RunStatus::Completed => match report.error {
                None => {
                    self.succeed(id, report.output.unwrap_or(Value::Null));
                    return Ok(());
                }
                // Its output is too large for a token.
                error => (TokenStatus::Failed, error),
            },
            // The limit was this node's, so the node's timeout policy applies.
            RunStatus::TimedOut
                if token.deadline.timeout_ms.is_some() && policy == ChildFailurePolicy::Propagate =>
            {
                let reported = Reported::Stopped {
                    step_ref: report.error.and_then(|error| error.step_ref),
                    partial: Vec::new(),
                };
                self.execution_timed_out(id, Some(reported));
                return Ok(());
            }
            RunStatus::TimedOut => (TokenStatus::TimedOut, report.error),
            RunStatus::Failed
            | RunStatus::Cancelled
            | RunStatus::Running
            | RunStatus::Waiting
            | RunStatus::Paused
            | RunStatus::Compensating => (TokenStatus::Failed, report.error),
        };
        let failure = failure.unwrap_or_else(|| {
            let how = serde_json::to_value(report.status).unwrap_or_default();
            Failure::new(
                "child_ended",
                FailureClass::Permanent,
                format!(
                    "child run {} ended {}",
                    report.run_id,
                    how.as_str().unwrap_or("without its output")
                ),
            )
        });
        match policy {
            ChildFailurePolicy::Catch => {
                let result = json!({"status": report.status, "error": failure, "run_id": report.run_id});
                self.succeed(id, result);
            }
            ChildFailurePolicy::Propagate => self.end_unsuccessfully(id, status, failure),
        }
        Ok(())
    }

    /// A child that was cancelled does not exist: it will never report to the token that waits for its end.
    pub(in crate::run) fn child_is_gone(&mut self, message: u64) {
        let Some(Message::CancelChild {
            token_id: Some(token_id),
            ..
        }) = self.outbox.get(message)
        else {
            return;
        };
        let waiting = TokenId::parse(token_id).filter(|id| {
            let token = self.tokens.get(id);
            token.is_some_and(|token| token.status == TokenStatus::WaitingForSubworkflow)
        });
        if let Some(id) = waiting.filter(|_| self.is_ending()) {
            self.drop_token(id);
        }
    }

    /// A child waits for a person, or goes on.
    pub(in crate::run) fn child_news(&mut self, news: ChildStatusUpdate) -> Result<(), Rejection> {
        let id = self.awaited(&news.token_id, news.epoch, &news.run_id)?;
        let token = self.tokens.live(id);
        // A repeated message, or one that a later message overtook.
        if news.number <= token.child_news {
            return Ok(());
        }
        let waited = token.child_waits_for_person();
        self.change(id, |token| token.child_news = news.number);
        let kind = match (waited, news.paused) {
            (false, true) => {
                self.child_waits(id);
                RunEventKind::SubworkflowPaused
            }
            (true, false) => {
                self.child_goes_on(id);
                // Its own clock may have stood still for longer than this run's.
                self.send_budget_to_child(id);
                RunEventKind::SubworkflowResumed
            }
            // It went on and waits again, or the other way round: the message between was overtaken.
            (true, true) | (false, false) => return Ok(()),
        };
        self.note(
            kind,
            json!({"token_id": news.token_id, "child_run_id": news.run_id}),
        );
        Ok(())
    }

    /// The limit of the node stands still with that of the child, which it may be.
    fn child_waits(&mut self, id: TokenId) {
        let clock = self.clock();
        let stops = self.stops_at_gates();
        self.change(id, |token| {
            token.reason = Some(CHILD_PAUSED.into());
            if stops {
                token.deadline.stop_clock(clock);
            }
        });
    }

    /// The child no longer waits for a person, or has ended.
    fn child_goes_on(&mut self, id: TokenId) {
        if !self.tokens.live(id).child_waits_for_person() {
            return;
        }
        let clock = self.clock();
        self.change(id, |token| {
            token.reason = None;
            token.stopped_ms += token.deadline.start_clock(clock);
        });
    }

    /// The token no longer needs its child.
    pub(in crate::run) fn cancel_child(&mut self, token: &Token, reason: &str) {
        let message = Message::CancelChild {
            run_id: self.child_id(token),
            reason: reason.to_string(),
            token_id: Some(token.id.to_string()),
        };
        if !self.retract_start(token) {
            self.post(message);
        }
    }

    /// Reports to the parent how this run ended, if it has one.
    pub(in crate::run) fn notify_parent(&mut self) {
        let Some(parent) = self.header.parent.clone() else {
            return;
        };
        // It becomes the result of the parent's token.
        let bytes = self.header.output.as_ref().map_or(0, json_bytes);
        let too_large = TooLarge::check(
            format!("the output of child run {}", self.header.id),
            bytes,
            RESULT_BYTES,
        );
        let (output, error) = match too_large {
            Ok(()) => (self.header.output.clone(), self.header.error.clone()),
            Err(too_large) => (None, Some(Failure::from(too_large))),
        };
        self.post(Message::NotifyParent {
            run_id: parent.run_id,
            report: ChildReport {
                token_id: parent.token_id,
                epoch: parent.epoch,
                run_id: self.header.id.clone(),
                status: self.header.status,
                output,
                error,
            },
        });
    }
}
