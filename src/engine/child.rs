//! Sub-workflows: a child run does a token's work. The parent picks the child's id, so that starting twice is
//! starting once; the child tells how it ended until the parent has heard it.

use serde_json::{Value, json};

use super::attempt::Reported;
use super::chronicle::EntryKind;
use super::effect::{ChildNews, ChildReport, Message, Rejection};
use super::header::RunStatus;
use super::run::Run;
use super::token::{Token, TokenId, TokenStatus};
use crate::model::failure::{Failure, FailureClass};
use crate::model::limits::CALL_DEPTH;
use crate::model::task::StepAction;
use crate::model::work::copy_steps;
use crate::model::workflow::ChildFailurePolicy;

impl Run {
    /// The id of the child of this attempt. A later attempt has another child.
    pub(super) fn child_id(&self, token: &Token) -> String {
        match token.epoch {
            0 | 1 => format!("{}.{}", self.header.id, token.id),
            epoch => format!("{}.{}.{epoch}", self.header.id, token.id),
        }
    }

    /// Starts the child that does this token's work.
    pub(super) fn start_child(&mut self, id: TokenId) {
        let Some(token) = self.tokens.get(&id) else { return };
        let node = token.node;
        if self.header.depth + 1 >= CALL_DEPTH {
            let failure = Failure::new(
                "depth_exceeded",
                FailureClass::Permanent,
                format!("workflows may not call each other more than {CALL_DEPTH} deep"),
            );
            return self.end_unsuccessfully(id, TokenStatus::Failed, failure);
        }
        let input = match self
            .task_input(token)
            .and_then(|input| self.call_input(node, &input))
        {
            Ok(input) => input,
            Err(failure) => return self.end_unsuccessfully(id, TokenStatus::Failed, failure),
        };
        let now = self.scratch.now;
        let limit = self.execution_limit(node);
        let timeout_ms = limit.limit.millis();
        let run_ends_at = self.header.timeout_at;
        let budget_ms = run_ends_at
            .filter(|_| self.snapshot.workflow.timeouts.inherit_budget)
            .map(|at| at.saturating_sub(now).max(1));
        self.change(id, |token| {
            token.status = TokenStatus::WaitingForSubworkflow;
            token.epoch += 1;
            token.dispatched_at = Some(now);
            token.started_at = Some(now);
            token.timeout_ms = timeout_ms;
            token.timeout_at = timeout_ms.map(|millis| now.saturating_add(millis));
            token.timeout_reason = limit.reason;
            token.warned = false;
            token.watch_at = None;
            // Another child counts its news from the beginning.
            token.child_news = 0;
        });
        let Some(token) = self.tokens.get(&id) else { return };
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
    }

    /// What the child gets: the node's input, through the step's mapping where an action makes the call.
    fn call_input(&self, node: usize, input: &Value) -> Result<Value, Failure> {
        let task = self.snapshot.task_of(node).map(|task| &task.task);
        let step = task.and_then(|task| task.steps.first());
        match step.and_then(|step| step.input_mapping.as_ref().map(|mapping| (step, mapping))) {
            None => {
                self.work.pay_for("the input of the child", copy_steps(input))?;
                Ok(input.clone())
            }
            Some((step, mapping)) => {
                debug_assert!(
                    matches!(step.action, StepAction::Inline(_)),
                    "snapshots are resolved"
                );
                let empty = json!({});
                let mut scope = crate::model::expression::Scope::metered(Some(&self.work));
                scope
                    .bind("input", input)
                    .bind("state", &empty)
                    .bind("output", &empty);
                mapping.render(&scope).map_err(|wrong| {
                    super::route::mapping_failure(
                        &format!("input_mapping of step {}", step.reference),
                        &wrong,
                    )
                })
            }
        }
    }

    pub(super) fn child_ended(&mut self, report: ChildReport) -> Result<(), Rejection> {
        let doing = TokenStatus::WaitingForSubworkflow;
        let id = self.current_attempt(&report.token_id, report.epoch, doing)?;
        let Some(token) = self.tokens.get(&id) else {
            return Ok(());
        };
        let policy = self
            .snapshot
            .call_of(token.node)
            .unwrap_or(ChildFailurePolicy::Propagate);
        let (status, failure) = match report.status {
            RunStatus::Completed => {
                self.succeed(id, report.output.unwrap_or(Value::Null));
                return Ok(());
            }
            // The limit was this node's: what follows is its own word.
            RunStatus::TimedOut if token.timeout_ms.is_some() && policy == ChildFailurePolicy::Propagate => {
                let otherwise =
                    || Failure::new("workflow_timeout", FailureClass::Timeout, "the child timed out");
                let reported = Reported {
                    failure: report.error.unwrap_or_else(otherwise),
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
            | RunStatus::Paused => (TokenStatus::Failed, report.error),
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

    /// A child stands in front of a person, or goes on again.
    pub(super) fn child_news(&mut self, news: ChildNews) -> Result<(), Rejection> {
        let doing = TokenStatus::WaitingForSubworkflow;
        let id = self.current_attempt(&news.token_id, news.epoch, doing)?;
        let heard = self.tokens.get(&id).map_or(0, |token| token.child_news);
        // Overtaken by a later one, or heard twice.
        if news.number <= heard {
            return Ok(());
        }
        self.change(id, |token| {
            token.child_news = news.number;
            token.reason = news.paused.then(|| "child_paused".into());
        });
        let kind = match news.paused {
            true => EntryKind::SubworkflowPaused,
            false => EntryKind::SubworkflowResumed,
        };
        self.note(
            kind,
            json!({"token_id": news.token_id, "child_run_id": news.run_id}),
        );
        Ok(())
    }

    /// The token's child has nobody left to work for.
    pub(super) fn cancel_child(&mut self, token: &Token, reason: &str) {
        let message = Message::CancelChild {
            run_id: self.child_id(token),
            reason: reason.to_string(),
        };
        if !self.take_back_start(token) {
            self.post(message);
        }
    }

    /// Takes the start of a token's child out of the outbox; true if it never left.
    pub(super) fn take_back_start(&mut self, token: &Token) -> bool {
        let start = self.outbox.iter().find_map(|(id, entry)| match &entry.message {
            Message::StartChild { token_id, epoch, .. }
                if *token_id == token.id.to_string() && *epoch == token.epoch =>
            {
                Some(*id)
            }
            Message::StartChild { .. }
            | Message::HoldChild { .. }
            | Message::CancelChild { .. }
            | Message::NotifyParent { .. }
            | Message::TellParent { .. }
            | Message::Emit { .. } => None,
        });
        let Some(start) = start else { return false };
        let never_left = self.scratch.new_messages.contains(&start);
        self.unpost(start);
        never_left
    }

    /// Tells the parent how this run ended, if it has one.
    pub(super) fn notify_parent(&mut self) {
        let Some(parent) = self.header.parent.clone() else {
            return;
        };
        self.post(Message::NotifyParent {
            run_id: parent.run_id,
            report: ChildReport {
                token_id: parent.token_id,
                epoch: parent.epoch,
                run_id: self.header.id.clone(),
                status: self.header.status,
                output: self.header.output.clone(),
                error: self.header.error.clone(),
            },
        });
    }
}
