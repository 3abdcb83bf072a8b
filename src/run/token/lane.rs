//! How an attempt travels: run right here, or ordered from an executor, alone or with others.

use std::rc::Rc;

use crate::base::limits::QUEUE_MAX_MS;
use crate::base::time::MINUTE;
use crate::definition::fan::EarlyCompletePolicy;
use crate::definition::task::Dispatch;
use crate::protocol::task::ActionTimeouts;
use crate::run::state::Run;
use crate::run::token::order::AttemptOrder;
use crate::run::token::{Lane, Token, TokenId};
use crate::task::inline::run_inline;
use crate::task::run_task::Assignment;

/// What may take longer goes into the queue, where there is one.
const DIRECT_MAX_MS: u64 = MINUTE;

const PURE_TASKS: usize = 50;
const CALLING_TASKS: usize = 6;

/// Tasks run inside one decision; the rest in the next, which the alarm brings at once. A loop of pure tasks must not
/// keep the object from everything else, nor make one commit of a whole run.
const INLINE_BATCH: u32 = 200;

/// The same for what they bring: all of it is in memory, several times over, until it is committed.
const INLINE_BYTES: usize = 4 << 20;

impl Run {
    /// The node's word, else the task's. `auto` is inline where that is possible, and the queue for what may take long,
    /// so that the object need not stay awake for it. Nothing goes into the queue that may outlive its consumer.
    pub(in crate::run) fn lane_of(&self, node: usize, task: usize) -> Lane {
        let resolved = &self.snapshot.tasks[task];
        match self.snapshot.workflow.nodes[node]
            .dispatch
            .unwrap_or(resolved.task.dispatch)
        {
            Dispatch::Auto | Dispatch::Inline if resolved.is_pure => Lane::Inline,
            Dispatch::Auto if self.may_be_queued(node) && self.may_take_long(node) => Lane::Queue,
            Dispatch::Queue if self.may_be_queued(node) => Lane::Queue,
            Dispatch::Auto | Dispatch::Inline | Dispatch::Direct | Dispatch::Queue => Lane::Direct,
        }
    }

    fn may_take_long(&self, node: usize) -> bool {
        self.longest_ms(node).is_none_or(|millis| millis > DIRECT_MAX_MS)
    }

    fn may_be_queued(&self, node: usize) -> bool {
        let fits = self.longest_ms(node).is_some_and(|millis| millis <= QUEUE_MAX_MS);
        self.settings.queue && fits
    }

    /// How long an attempt that begins now may take, where that is known: no attempt outlives its run.
    fn longest_ms(&self, node: usize) -> Option<u64> {
        let run_ends_at = self.header.timeout_at;
        let left_ms = run_ends_at.map(|at| at.saturating_sub(self.clock()));
        let limit_ms = self.execution_limit(node).limit.millis();
        limit_ms.into_iter().chain(left_ms).min()
    }

    /// Whether an attempt goes by a request of its own: no other order comes of it, and it is over soon by its own limit. A
    /// WebSocket costs more, but as long as it is open the platform keeps the object in memory, and the executor says by
    /// it that it lives. The run's limit may be extended, and says nothing here.
    pub(in crate::run) fn is_short_and_last(&self, token: &Token) -> bool {
        let is_last = token.branch.is_none() && self.snapshot.routes_from(token.node).is_empty();
        let limit_ms = self.execution_limit(token.node).limit.millis();
        is_last && limit_ms.is_some_and(|millis| millis <= DIRECT_MAX_MS)
    }

    /// Nothing more can begin in this decision: what is due is left to the next.
    pub(in crate::run) fn is_full(&self) -> bool {
        self.changes.is_deferred || self.is_inline_spent() || self.work.is_exhausted()
    }

    fn is_inline_spent(&self) -> bool {
        self.changes.inline >= INLINE_BATCH || self.changes.result_bytes >= INLINE_BYTES
    }

    /// Runs a pure task where it stands: it begins and ends in this decision, and costs the row of its token.
    pub(in crate::run) fn run_inline(&mut self, id: TokenId, task: usize) {
        let now = self.changes.now;
        if self.is_inline_spent() {
            return self.leave_to_next_wake(id);
        }
        self.changes.inline += 1;
        // It failed before its first step.
        let Some(order) = self.begin_attempt(id, task, Lane::Inline) else {
            return;
        };
        let snapshot = Rc::clone(&self.snapshot);
        let resolved = &snapshot.tasks[task];
        let result = run_inline(
            now,
            &self.work,
            Assignment {
                task: &resolved.task,
                input: &order.input,
                // No time passes inside a decision.
                deadline_at: None,
                run_ends_at: None,
                resume_from: order.checkpoint.map(|checkpoint| *checkpoint),
                action_timeouts: ActionTimeouts::default(),
                callback: serde_json::Value::Null,
            },
        );
        self.take_report(id, result.into_report(id.to_string(), order.epoch));
    }
}

/// Who may travel with whom. An invocation ends as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchKind {
    /// Touches nothing but its own context: they only take each other's CPU.
    Pure,
    /// Calls out. Few of them share: an invocation has six connections that wait for an answer.
    Calling,
    /// May have to be stopped while the others go on.
    Alone,
}

impl BatchKind {
    fn size(self) -> usize {
        match self {
            BatchKind::Pure => PURE_TASKS,
            BatchKind::Calling => CALLING_TASKS,
            BatchKind::Alone => 1,
        }
    }
}

/// Orders of one decision, by batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct BatchCounts {
    pure: usize,
    calling: usize,
    alone: usize,
}

impl BatchCounts {
    fn with(mut self, batch: BatchKind) -> BatchCounts {
        match batch {
            BatchKind::Pure => self.pure += 1,
            BatchKind::Calling => self.calling += 1,
            BatchKind::Alone => self.alone += 1,
        }
        self
    }

    /// The calls it takes to carry them.
    fn calls(self) -> usize {
        self.pure.div_ceil(PURE_TASKS) + self.calling.div_ceil(CALLING_TASKS) + self.alone
    }
}

impl Run {
    /// Makes room for an order, or leaves its token to the next wake, which the alarm brings at once.
    pub(in crate::run) fn reserve_call(&mut self, id: TokenId, batch: BatchKind) -> bool {
        let load = self.changes.batches.with(batch);
        if load.calls() as u32 <= self.changes.remaining_calls {
            self.changes.batches = load;
            return true;
        }
        self.changes.is_deferred = true;
        self.leave_to_next_wake(id);
        false
    }

    /// Due already, it stays as it is: every answer that comes before the next wake would cost a row.
    pub(in crate::run) fn leave_to_next_wake(&mut self, id: TokenId) {
        let now = self.changes.now;
        let is_due = |token: &Token| token.watch_at.is_some_and(|at| at <= now);
        if !is_due(self.tokens.live(id)) {
            self.change(id, |token| token.watch_at = Some(now));
        }
    }

    /// The batch an attempt at `node` may travel in. Where a join may cancel its branches while others go on, each
    /// needs a call that can be dropped.
    pub(in crate::run) fn batch_kind_of(&self, token: &Token, task: usize) -> BatchKind {
        let may_be_cancelled = self.fans.enclosing(token.branch.as_ref()).any(|(_, instance)| {
            self.snapshot.joins_of(&instance.group).any(|transition| {
                let join = self.snapshot.workflow.transitions[transition]
                    .synchronization
                    .as_ref();
                join.is_some_and(|join| join.on_early_complete == EarlyCompletePolicy::Cancel)
            })
        });
        let is_pure = self.snapshot.tasks[task].is_pure;
        match (is_pure, may_be_cancelled) {
            (true, _) => BatchKind::Pure,
            (false, false) => BatchKind::Calling,
            (false, true) => BatchKind::Alone,
        }
    }
}

/// The calls it takes to carry these orders.
pub fn calls_for<'a>(orders: impl Iterator<Item = &'a AttemptOrder>) -> u32 {
    let load = orders.fold(BatchCounts::default(), |load, order| load.with(order.batch));
    load.calls() as u32
}

/// Splits the orders of one commit into invocations.
pub fn invocations(orders: Vec<AttemptOrder>) -> Vec<Vec<AttemptOrder>> {
    let mut invocations: Vec<Vec<AttemptOrder>> = Vec::new();
    for batch in [BatchKind::Pure, BatchKind::Calling, BatchKind::Alone] {
        let mut open: Vec<AttemptOrder> = Vec::new();
        for order in orders.iter().filter(|order| order.batch == batch) {
            open.push(order.clone());
            if open.len() == batch.size() {
                invocations.push(std::mem::take(&mut open));
            }
        }
        invocations.extend(Some(open).filter(|open| !open.is_empty()));
    }
    invocations
}
