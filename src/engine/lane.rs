//! How an attempt travels: run right here, or ordered from an executor, alone or with others.

use std::rc::Rc;

use serde_json::Value;

use super::effect::Order;
use super::run::Run;
use super::token::{Lane, TokenId, TokenStatus};
use crate::executor::inline::run_here;
use crate::executor::task::Assignment;
use crate::model::snapshot::Snapshot;
use crate::model::task::Dispatch;
use crate::wire::{ActionTimeouts, TaskReport};

/// Tasks that touch nothing but their own context share an invocation: they only take each other's CPU.
const PURE_TASKS: usize = 50;

/// Tasks run inside one decision; the rest in the next, which the alarm brings at once. A loop of pure tasks must not
/// keep the object from everything else, nor make one commit of a whole run.
const INLINE_BATCH: u32 = 200;

impl Run {
    /// The node's word, else the task's; `auto` is inline where that is possible.
    pub(super) fn lane_of(&self, node: usize, task: usize) -> Lane {
        let Some(resolved) = self.snapshot.tasks.get(task) else {
            return Lane::Direct;
        };
        let asked = self.snapshot.workflow.nodes[node].dispatch;
        match asked.unwrap_or(resolved.task.dispatch) {
            Dispatch::Auto | Dispatch::Inline if resolved.is_pure => Lane::Inline,
            Dispatch::Auto | Dispatch::Inline | Dispatch::Direct => Lane::Direct,
        }
    }

    /// The rest is left to the next decision.
    pub(super) fn has_run_enough(&self) -> bool {
        self.scratch.inline >= INLINE_BATCH
    }

    /// Runs a pure task where it stands: it begins and ends in this decision, and costs the row of its token.
    pub(super) fn run_inline(&mut self, id: TokenId, task: usize, input: &Value) {
        let now = self.scratch.now;
        if self.has_run_enough() {
            self.change(id, |token| token.watch_at = Some(now));
            return;
        }
        self.scratch.inline += 1;
        let (mut epoch, mut checkpoint) = (0, None);
        self.change(id, |token| {
            token.status = TokenStatus::Executing;
            token.epoch += 1;
            token.lane = Some(Lane::Inline);
            token.dispatched_at = Some(now);
            token.started_at = Some(now);
            token.watch_at = None;
            epoch = token.epoch;
            checkpoint = token.checkpoint.take();
        });
        let snapshot = Rc::clone(&self.snapshot);
        let Some(resolved) = snapshot.tasks.get(task) else {
            return;
        };
        let done = run_here(
            now,
            Assignment {
                task: &resolved.task,
                input,
                deadline_at: None,
                resume_from: checkpoint.map(|checkpoint| *checkpoint),
                action_timeouts: ActionTimeouts::default(),
            },
        );
        let report = TaskReport {
            token_id: id.to_string(),
            epoch,
            status: done.status,
            output: done.output,
            error: done.error,
            steps: done.steps,
            partial: done.partial,
            checkpoint: done.checkpoint,
        };
        self.take_report(id, report);
    }
}

/// Splits the orders of one commit into invocations. A task that calls out has one of its own: an invocation ends as
/// a whole, and aborting one attempt must close its connections and nobody else's.
pub fn invocations(orders: Vec<Order>, snapshot: &Snapshot) -> Vec<Vec<Order>> {
    let is_pure = |order: &Order| snapshot.tasks.get(order.task).is_some_and(|task| task.is_pure);
    let (pure, calling): (Vec<Order>, Vec<Order>) = orders.into_iter().partition(is_pure);
    let mut invocations: Vec<Vec<Order>> = Vec::new();
    let mut pure = pure.into_iter().peekable();
    while pure.peek().is_some() {
        invocations.push(pure.by_ref().take(PURE_TASKS).collect());
    }
    invocations.extend(calling.into_iter().map(|order| vec![order]));
    invocations
}
