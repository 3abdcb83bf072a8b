//! How a token moves on: birth, attempt, end, and the transitions that follow.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;

use super::effect::{Order, Rejection};
use super::run::{Run, RunStatus};
use super::token::{Lane, Token, TokenId, TokenStatus};
use crate::model::failure::{Failure, FailureClass};
use crate::model::limits::{DEPTH, RESULT_BYTES, depth_of};
use crate::model::path::Path;
use crate::model::time::Millis;
use crate::model::workflow::{On, Work};
use crate::wire::{ReportStatus, TaskReport};

impl Run {
    /// An executor's word on an attempt. Only the attempt that counts may speak.
    pub(super) fn task_reported(&mut self, report: TaskReport) -> Result<(), Rejection> {
        let id = self.current_attempt(&report.token_id, report.epoch)?;
        self.change(id, |token| token.steps = report.steps);
        let failure = |otherwise: &str| {
            report.error.unwrap_or_else(|| {
                Failure::new(otherwise, FailureClass::Unknown, "the executor gave no reason")
            })
        };
        match report.status {
            ReportStatus::Completed => self.succeed(id, report.output.unwrap_or(Value::Null)),
            ReportStatus::Failed => {
                self.end_unsuccessfully(id, TokenStatus::Failed, failure("task_failed"));
            }
            ReportStatus::TimedOut => self.execution_timed_out(id, Some(failure("tool_timeout"))),
        }
        Ok(())
    }

    pub(super) fn call_lost(&mut self, token: TokenId, epoch: u64, message: &str) -> Result<(), Rejection> {
        let id = self.current_attempt(&token.to_string(), epoch)?;
        self.attempt_lost(id, message);
        Ok(())
    }

    pub(super) fn cancel_requested(&mut self, reason: Option<String>) -> Result<(), Rejection> {
        match self.header.status {
            RunStatus::Running => {}
            // Cancelling twice is cancelling once.
            RunStatus::Cancelled => return Ok(()),
            RunStatus::Completed | RunStatus::Failed | RunStatus::TimedOut => {
                return Err(Rejection::RunFinished);
            }
        }
        self.end_live_tokens(TokenStatus::Cancelled, "run_cancelled");
        self.header.reason = reason;
        self.finish(RunStatus::Cancelled, None, None);
        Ok(())
    }

    fn current_attempt(&self, token_id: &str, epoch: u64) -> Result<TokenId, Rejection> {
        let stale = || Rejection::StaleAttempt {
            token: token_id.to_string(),
            epoch,
        };
        let id = TokenId::parse(token_id).ok_or_else(stale)?;
        let token = self.tokens.get(&id).ok_or_else(stale)?;
        match token.status {
            TokenStatus::Executing if token.epoch == epoch => Ok(id),
            TokenStatus::Executing
            | TokenStatus::Pending
            | TokenStatus::Completed
            | TokenStatus::Failed
            | TokenStatus::TimedOut
            | TokenStatus::Cancelled => Err(stale()),
        }
    }

    /// A token is born at `node` and goes to work in the same commit.
    pub(super) fn give_birth(
        &mut self,
        node: usize,
        parent: Option<TokenId>,
        loops: BTreeMap<String, u64>,
        cause: Option<Failure>,
    ) {
        let limits = self.snapshot.workflow.limits;
        let active = self.tokens.len() as u64;
        if self.born >= limits.tokens_total {
            return self.exceed("tokens_total", limits.tokens_total);
        }
        if active >= limits.tokens_active {
            return self.exceed("tokens_active", limits.tokens_active);
        }
        if loops.values().any(|count| *count > limits.loop_iterations) {
            return self.exceed("loop_iterations", limits.loop_iterations);
        }
        self.born += 1;
        let id = TokenId(self.born);
        self.tokens.insert(
            id,
            Token {
                id,
                node,
                status: TokenStatus::Pending,
                epoch: 0,
                retry_count: 0,
                lost_count: 0,
                lane: None,
                parent,
                created_at: self.scratch.now,
                dispatched_at: None,
                started_at: None,
                ended_at: None,
                timeout_at: None,
                timeout_ms: None,
                watch_at: None,
                reason: None,
                error: None,
                cause,
                output: None,
                steps: Vec::new(),
                loops,
            },
        );
        self.count_move(None, TokenStatus::Pending);
        self.scratch.changed.insert(id);
        self.scratch.arrivals.push_back(id);
    }

    /// Lets every token that arrived somewhere do what its node says; ends the run when nothing is left.
    pub(super) fn settle(&mut self) {
        while self.is_running()
            && let Some(id) = self.scratch.arrivals.pop_front()
        {
            let Some(token) = self.tokens.get(&id) else {
                continue;
            };
            match self.snapshot.workflow.nodes[token.node].work {
                Work::PassThrough => self.succeed(id, Value::Null),
                Work::Task { .. } | Work::Action { .. } => self.dispatch(id),
            }
        }
        if self.is_running() && self.tokens.is_empty() {
            self.complete();
        }
    }

    /// The next attempt: a new epoch, a deadline from now.
    pub(super) fn dispatch(&mut self, id: TokenId) {
        let Some(token) = self.tokens.get(&id) else {
            return;
        };
        let node = token.node;
        let input = match self.task_input(token) {
            Ok(input) => input,
            Err(failure) => return self.end_unsuccessfully(id, TokenStatus::Failed, failure),
        };
        let Some(task) = self.snapshot.node_tasks.get(node).copied().flatten() else {
            let failure = Failure::new("no_task", FailureClass::Permanent, "the node has no task");
            return self.end_unsuccessfully(id, TokenStatus::Failed, failure);
        };
        let now = self.scratch.now;
        let timeout_ms = self.execution_limit(node).millis();
        let timeout_at = timeout_ms.map(|millis| now.saturating_add(millis));
        // An attempt never outlives its run. Where the run's limit is the nearer one the executor gets a moment
        // more: the run's own deadline must win, and its end aborts the call anyway.
        let run_ends_at = self.header.timeout_at.unwrap_or(Millis::MAX);
        let deadline_at = match timeout_at.filter(|at| *at < run_ends_at) {
            Some(at) => Some(at),
            None => self
                .header
                .timeout_at
                .map(|at| at.saturating_add(self.settings.grace_ms)),
        };
        let watch_at = now.saturating_add(self.settings.watch_ms);
        let mut epoch = 0;
        self.change(id, |token| {
            token.status = TokenStatus::Executing;
            token.epoch += 1;
            token.lane = Some(Lane::Direct);
            token.dispatched_at = Some(now);
            token.started_at = Some(now);
            token.timeout_ms = timeout_ms;
            token.timeout_at = timeout_at.map(|at| at.min(run_ends_at));
            token.watch_at = Some(watch_at);
            epoch = token.epoch;
        });
        self.scratch.orders.push(Order {
            token: id,
            epoch,
            task,
            input,
            deadline_at,
        });
    }

    /// Back to pending and at once into the next attempt.
    pub(super) fn try_again(&mut self, id: TokenId) {
        self.change(id, |token| {
            token.status = TokenStatus::Pending;
            token.timeout_at = None;
            token.watch_at = None;
        });
        self.dispatch(id);
    }

    fn task_input(&self, token: &Token) -> Result<Rc<Value>, Failure> {
        let node = &self.snapshot.workflow.nodes[token.node];
        let Some(mapping) = &node.input_mapping else {
            return Ok(self.context.input.clone());
        };
        let error = error_value(token.cause.as_ref());
        mapping
            .render(&self.scope(&error))
            .map(Rc::new)
            .map_err(|wrong| mapping_failure(&format!("input_mapping of node {}", node.id), &wrong))
    }

    /// The node's work is done: map its result, then take the routes of a success.
    fn succeed(&mut self, id: TokenId, result: Value) {
        if let Err(failure) = self.check_result(id, &result) {
            return self.end_unsuccessfully(id, TokenStatus::Failed, failure);
        }
        let mapped = self.map_output(id, &result);
        // The result is on the token whatever its mapping makes of it.
        self.change(id, |token| {
            token.reason = None;
            token.output = Some(result);
        });
        if let Err(failure) = mapped {
            return self.end_unsuccessfully(id, TokenStatus::Failed, failure);
        }
        let Some(token) = self.tokens.get(&id) else {
            return;
        };
        let cause = token.cause.clone();
        match self.matching_routes(token, On::Success, cause.as_ref()) {
            Ok(routes) => {
                self.end(id, TokenStatus::Completed, |_| {});
                self.follow(id, &routes, None);
            }
            Err(failure) => self.end_unsuccessfully(id, TokenStatus::Failed, failure),
        }
    }

    /// A token ends without its work done: its failure or timeout routes, else the end of the run.
    pub(super) fn end_unsuccessfully(&mut self, id: TokenId, status: TokenStatus, mut failure: Failure) {
        let Some(token) = self.tokens.get(&id) else {
            return;
        };
        failure.node_id = Some(self.snapshot.workflow.nodes[token.node].id.clone());
        failure.token_id = Some(id.to_string());
        let on = match status {
            TokenStatus::TimedOut => On::Timeout,
            TokenStatus::Pending
            | TokenStatus::Executing
            | TokenStatus::Completed
            | TokenStatus::Failed
            | TokenStatus::Cancelled => On::Failure,
        };
        let routes = self.matching_routes(token, on, Some(&failure));
        self.end(id, status, |token| token.error = Some(failure.clone()));
        match routes {
            Ok(routes) if routes.is_empty() => self.fail(failure),
            Ok(routes) => self.follow(id, &routes, Some(failure)),
            Err(wrong) => self.fail(wrong),
        }
    }

    /// A result that could not be saved, or not be read again, is none.
    fn check_result(&self, id: TokenId, result: &Value) -> Result<(), Failure> {
        let Some(token) = self.tokens.get(&id) else {
            return Ok(());
        };
        let node = &self.snapshot.workflow.nodes[token.node];
        let bytes = result.to_string().len();
        if bytes > RESULT_BYTES {
            return Err(Failure::validation(
                "limit_exceeded",
                format!(
                    "the result of node {} is {bytes} bytes; the limit is {RESULT_BYTES}",
                    node.id
                ),
            ));
        }
        if depth_of(result) > DEPTH {
            return Err(Failure::validation(
                "limit_exceeded",
                format!(
                    "the result of node {} is nested deeper than the limit of {DEPTH}",
                    node.id
                ),
            ));
        }
        Ok(())
    }

    fn map_output(&mut self, id: TokenId, result: &Value) -> Result<(), Failure> {
        let snapshot = Rc::clone(&self.snapshot);
        let Some(token) = self.tokens.get(&id) else {
            return Ok(());
        };
        let node = &snapshot.workflow.nodes[token.node];
        let Some(mapping) = &node.output_mapping else {
            if node.work == Work::PassThrough {
                return Ok(());
            }
            let target = Path {
                root: crate::model::path::Root::State,
                segments: vec![node.id.clone()],
            };
            return self.context.write(vec![(&target, result.clone())]);
        };
        let error = error_value(token.cause.as_ref());
        let mut scope = self.scope(&error);
        scope.bind("result", result);
        let mut values = Vec::with_capacity(mapping.len());
        for (path, template) in mapping {
            let value = template
                .render(&scope)
                .map_err(|wrong| mapping_failure(&format!("output_mapping of node {}", node.id), &wrong))?;
            values.push((path, value));
        }
        drop(scope);
        self.context.write(values)
    }

    /// The transitions to take: all matches of the first tier that has any, lowest priority number first.
    fn matching_routes(&self, token: &Token, on: On, error: Option<&Failure>) -> Result<Vec<usize>, Failure> {
        let error = error_value(error);
        let scope = self.scope(&error);
        let mut matches: Vec<usize> = Vec::new();
        let transitions = &self.snapshot.workflow.transitions;
        for &index in self.snapshot.routes_from(token.node) {
            let transition = &transitions[index];
            if transition.on != on {
                continue;
            }
            if matches
                .first()
                .is_some_and(|&first| transitions[first].priority < transition.priority)
            {
                break;
            }
            let fired = token.loops.get(&transition.id).copied().unwrap_or(0);
            if transition.iterations_max.is_some_and(|most| fired >= most) {
                continue;
            }
            let holds = match &transition.condition {
                None => true,
                Some(condition) => condition.evaluate_bool(&scope).map_err(|wrong| {
                    mapping_failure(&format!("condition of transition {}", transition.id), &wrong)
                })?,
            };
            if holds {
                matches.push(index);
            }
        }
        Ok(matches)
    }

    /// Births the tokens of `routes`, children of a token that has just ended.
    fn follow(&mut self, id: TokenId, routes: &[usize], cause: Option<Failure>) {
        let snapshot = Rc::clone(&self.snapshot);
        let path = self
            .scratch
            .terminal
            .last()
            .map(|token| token.loops.clone())
            .unwrap_or_default();
        for &index in routes {
            if !self.is_running() {
                return;
            }
            let transition = &snapshot.workflow.transitions[index];
            let mut loops = path.clone();
            if transition.in_cycle {
                *loops.entry(transition.id.clone()).or_default() += 1;
            }
            self.give_birth(transition.to, Some(id), loops, cause.clone());
        }
    }

    /// Moves a live token to a terminal status and out of memory.
    pub(super) fn end(&mut self, id: TokenId, status: TokenStatus, update: impl FnOnce(&mut Token)) {
        let now = self.scratch.now;
        self.change(id, |token| {
            token.status = status;
            token.ended_at = Some(now);
            token.watch_at = None;
            update(token);
        });
        self.scratch.changed.remove(&id);
        self.scratch.terminal.extend(self.tokens.remove(&id));
    }
}

pub(super) fn error_value(failure: Option<&Failure>) -> Value {
    failure
        .and_then(|failure| serde_json::to_value(failure).ok())
        .unwrap_or(Value::Null)
}

pub(super) fn mapping_failure(place: &str, wrong: &crate::model::expression::Error) -> Failure {
    Failure::validation("expression_failed", format!("{place}: {wrong}"))
}
