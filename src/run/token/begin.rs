//! How a token begins its work: its creation, the work of its node, and its attempts.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;

use crate::base::compute::{TOKEN_STEPS, write_steps};
use crate::base::failure::{Failure, FailureClass};
use crate::definition::node::{NodeKind, NodeRole};
use crate::run::fan::Branch;
use crate::run::state::Run;
use crate::run::time::event_log::RunEventKind;
use crate::run::token::deadline::TokenDeadline;
use crate::run::token::lane::BatchKind;
use crate::run::token::order::AttemptOrder;
use crate::run::token::route::{error_value, mapping_failure};
use crate::run::token::{Lane, Token, TokenId, TokenStatus, TokenUndo};

impl Run {
    /// Creates a token at `node`. It begins its work in the same commit.
    pub(in crate::run) fn spawn_token(
        &mut self,
        node: usize,
        parent: Option<TokenId>,
        branch: Option<Branch>,
        loops: BTreeMap<String, u64>,
        cause: Option<Failure>,
    ) {
        // An earlier sibling exceeded a limit, which ended the run.
        if !self.is_running() {
            return;
        }
        let limits = self.snapshot.workflow.limits;
        let active = self.tokens.len() as u64;
        if self.tokens.created() - self.header.tokens_before >= limits.tokens_total {
            return self.fail_on_limit("tokens_total", limits.tokens_total);
        }
        if active >= limits.tokens_active {
            return self.fail_on_limit("tokens_active", limits.tokens_active);
        }
        if loops.values().any(|count| *count > limits.loop_iterations) {
            return self.fail_on_limit("loop_iterations", limits.loop_iterations);
        }
        let id = self.tokens.next_id();
        let token = Token {
            parent,
            cause,
            loops,
            branch,
            created_order: self.tokens.count_done(),
            undo: TokenUndo {
                creation: std::mem::take(&mut self.changes.merge_undo),
                ..TokenUndo::default()
            },
            ..Token::new(id, node, self.changes.now)
        };
        self.fans.enter(&token);
        self.insert_token(token);
    }

    /// Adds a token. It begins its work in the same commit.
    pub(in crate::run) fn insert_token(&mut self, token: Token) {
        let id = token.id;
        self.changes.arrivals.push_back(id);
        self.tokens.insert(token);
        self.note_on_token(id, RunEventKind::TokenCreated, Value::Null);
    }

    /// Begins the work of every token that arrived at a node, and lets joins react to ended branches. Completes the run if no
    /// token is left.
    pub(in crate::run) fn drain(&mut self) {
        while !self.has_ended() {
            if let Some(id) = self.changes.arrivals.pop_front() {
                // A join may have cancelled it in the meantime.
                if self.tokens.get(&id).is_some() {
                    self.begin(id);
                }
            } else if let Some(instance) = self.fans.take_ended_branch() {
                self.branch_ended(instance);
            } else if let Some(id) = self.next_with_room() {
                self.begin(id);
            } else if self.is_ending() {
                if !self.advance_ending() {
                    break;
                }
            } else if !self.is_paused() && self.tokens.is_empty() {
                self.complete();
            } else {
                break;
            }
        }
    }

    /// Begins the work of the token's node. Nothing begins while the run is paused. Work beyond the budget of this decision
    /// begins in the next wake.
    pub(in crate::run) fn begin(&mut self, id: TokenId) {
        let token = self.tokens.live(id);
        let role = self.snapshot.workflow.nodes[token.node].role;
        if self.is_ending() && role == NodeRole::Declared {
            return self.drop_token(id);
        }
        if self.is_paused() {
            self.change(id, |token| token.watch_at = None);
            return;
        }
        if self.work.is_exhausted() {
            return self.defer_to_next_wake(id);
        }
        if role == NodeRole::Declared && self.outbox.is_full() && self.posts_messages(token.node) {
            // It begins when messages have been delivered: those are sent until they are.
            self.change(id, |token| token.watch_at = None);
            return self.outbox.wait_for_room(id);
        }
        self.work.begin_unit();
        self.work.count(TOKEN_STEPS);
        if self.snapshot.call_of(token.node).is_some() {
            return self.start_child(id);
        }
        match self.snapshot.workflow.nodes[token.node].kind {
            NodeKind::PassThrough => self.succeed(id, Value::Null),
            NodeKind::Gate(_) => self.open_gate(id),
            NodeKind::Wait(_) => self.begin_wait(id),
            NodeKind::Task { .. } | NodeKind::Action { .. } | NodeKind::Workflow { .. } => self.dispatch(id),
        }
    }

    /// A token that was held back because too many messages were undelivered. At the end of a pause all tokens begin.
    fn next_with_room(&mut self) -> Option<TokenId> {
        if self.is_paused() {
            return None;
        }
        let is_held_back = |id: &TokenId| self.tokens.get(id).is_some_and(Token::is_held_back);
        std::iter::from_fn(|| self.outbox.next_with_room()).find(is_held_back)
    }

    /// Calls of other workflows, and events.
    fn posts_messages(&self, node: usize) -> bool {
        let emits = || self.snapshot.task_of(node).is_some_and(|task| task.task.emits());
        self.snapshot.call_of(node).is_some() || emits()
    }

    /// Begins the next attempt on its lane.
    pub(in crate::run) fn dispatch(&mut self, id: TokenId) {
        let token = self.tokens.live(id);
        let node = token.node;
        let Some(task) = self.snapshot.node_tasks.get(node).copied().flatten() else {
            let failure = Failure::new("no_task", FailureClass::Permanent, "the node has no task");
            return self.end_unsuccessfully(id, TokenStatus::Failed, failure);
        };
        let lane = self.lane_of(node, task);
        if let Some(missing) = self.missing_route(lane) {
            return self.wait_for_route(id, missing);
        }
        match lane {
            Lane::Inline => self.run_inline(id, task),
            Lane::Queue => self.enqueue(id),
            Lane::Direct => {
                let batch = self.batch_kind_of(token, task);
                let counts_before = self.changes.batches;
                if !self.reserve_call(id, batch) {
                    return;
                }
                match self.begin_attempt(id, task, Lane::Direct) {
                    Some(order) => self.changes.orders.push(AttemptOrder { batch, ..order }),
                    // It failed before its call, so the reserved call is free again.
                    None => self.changes.batches = counts_before,
                }
            }
        }
    }

    /// Begins an attempt: renders its input and starts its deadline. A queued attempt already has its epoch.
    pub(in crate::run) fn begin_attempt(
        &mut self,
        id: TokenId,
        task: usize,
        lane: Lane,
    ) -> Option<AttemptOrder> {
        let token = self.tokens.live(id);
        let node = token.node;
        let input = self.task_input(token).and_then(|input| {
            self.charge_for_input(&input, lane)?;
            Ok(input)
        });
        let input = match input {
            Ok(input) => input,
            Err(failure) => {
                self.end_unsuccessfully(id, TokenStatus::Failed, failure);
                return None;
            }
        };
        let now = self.changes.now;
        let limit = self.execution_limit(node).in_lane(lane);
        let timeout_ms = limit.limit.millis();
        let deadline = TokenDeadline::starting(now, timeout_ms).because(limit.reason);
        let (is_new, watch_ms) = match lane {
            Lane::Inline => (true, None),
            Lane::Direct => (true, Some(self.settings.watch_ms)),
            Lane::Queue => (false, Some(self.settings.heartbeat_ms)),
        };
        let mut order = AttemptOrder {
            token: id,
            epoch: 0,
            task,
            input,
            deadline_at: self.executor_deadline(deadline.at),
            run_ends_at: self.work_ends_at(),
            limit: timeout_ms.map(|millis| (millis, limit.source)),
            checkpoint: None,
            batch: BatchKind::Alone,
            is_short_and_last: self.is_short_and_last(token),
            calls: self.snapshot.tasks[task].task.calls(),
            capability: None,
            work_of: id,
            action_timeouts: self.action_timeouts(),
        };
        self.change(id, |token| {
            token.status = TokenStatus::Executing;
            token.epoch += u64::from(is_new);
            token.lane = Some(lane);
            token.dispatched_at = token.dispatched_at.filter(|_| !is_new).or(Some(now));
            token.started_at = Some(now);
            token.deadline = deadline;
            token.claim.claimed_by = None;
            token.stopped_ms = 0;
            token.claim.unclaimed = 0;
            token.claim.heartbeat_extended = false;
            token.progress = None;
            token.found_route();
            token.watch_at = watch_ms.map(|millis| now.saturating_add(millis));
            order.epoch = token.epoch;
            order.checkpoint = token.checkpoint.clone();
            order.work_of = token.work_of.unwrap_or(id);
        });
        order.capability = self.capability(self.tokens.live(id), order.epoch);
        Some(order)
    }

    /// Charges for writing the input as text, which is how an executor gets it.
    fn charge_for_input(&self, input: &Rc<Value>, lane: Lane) -> Result<(), Failure> {
        let steps = match lane {
            Lane::Inline => return Ok(()),
            Lane::Direct | Lane::Queue if Rc::ptr_eq(input, &self.context.input) => {
                self.context.input_steps()
            }
            Lane::Direct | Lane::Queue => write_steps(input),
        };
        self.work.charge_for("the input of the task", steps)
    }

    pub(in crate::run) fn task_input(&self, token: &Token) -> Result<Rc<Value>, Failure> {
        let node = &self.snapshot.workflow.nodes[token.node];
        let Some(mapping) = &node.input_mapping else {
            return Ok(match (node.role, &token.compensates) {
                (NodeRole::Compensation { .. }, Some(compensates)) => Rc::new(compensates.result.clone()),
                (NodeRole::EndHandler, _) => Rc::new(self.facts.clone()),
                (NodeRole::Declared | NodeRole::Compensation { .. }, _) => self.context.input.clone(),
            });
        };
        let vars = self.vars(token, error_value(token.cause.as_ref()))?;
        let mut scope = self.scope(&vars);
        if let Some(compensates) = &token.compensates {
            scope.bind("result", &compensates.result);
        }
        mapping
            .render(&scope)
            .map(Rc::new)
            .map_err(|wrong| mapping_failure(&format!("input_mapping of node {}", node.id), &wrong))
    }
}
