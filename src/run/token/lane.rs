//! Lanes and batches: whether an attempt runs inline, by a direct call or through the queue, and which attempts share a call.

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

/// Tasks that may take longer go into the queue, if it is enabled.
const DIRECT_MAX_MS: u64 = MINUTE;

const PURE_TASKS: usize = 50;
const CALLING_TASKS: usize = 6;

/// Inline tasks per decision. The alarm triggers the next decision immediately, which runs the rest. A loop of pure tasks
/// must neither block the object nor grow into a single commit.
const INLINE_BATCH: u32 = 200;

/// The same limit for the size of their results, which are held in memory several times until the commit.
const INLINE_BYTES: usize = 4 << 20;

impl Run {
    /// The node's setting, else the task's. `auto` chooses inline where possible, and the queue for tasks that may take long,
    /// so that the object need not stay in memory. A task that may outlive a queue consumer is never queued.
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

    /// The longest time an attempt that begins now may take, if it is bounded by its own limit or by the run's. Retries do not
    /// count: they are rare, and a queued attempt makes those it has time for.
    fn longest_ms(&self, node: usize) -> Option<u64> {
        let left_ms = self.limit_left_ms();
        let limit_ms = self.execution_limit(node).without_retries.millis();
        limit_ms.into_iter().chain(left_ms).min()
    }

    /// Whether an attempt uses a plain request instead of the WebSocket: its own limit is short and no other order follows
    /// from it. A WebSocket costs more, but while it is open the platform keeps the object in memory and the executor can
    /// signal that it is alive, and send what a model has streamed. The run's limit does not count here because it may be
    /// extended.
    pub(in crate::run) fn is_short_and_last(&self, token: &Token) -> bool {
        let is_last = token.branch.is_none() && self.snapshot.routes_from(token.node).is_empty();
        let limit_ms = self.execution_limit(token.node).limit.millis();
        let streams = || {
            let task = self.snapshot.task_of(token.node);
            task.is_some_and(|task| task.task.streams())
        };
        is_last && limit_ms.is_some_and(|millis| millis <= DIRECT_MAX_MS) && !streams()
    }

    /// Nothing more can begin in this decision; remaining due work is left to the next.
    pub(in crate::run) fn is_full(&self) -> bool {
        self.changes.is_deferred || self.is_inline_spent() || self.work.is_exhausted()
    }

    fn is_inline_spent(&self) -> bool {
        self.changes.inline >= INLINE_BATCH || self.changes.result_bytes >= INLINE_BYTES
    }

    /// Runs a pure task inside this decision. It costs only the row of its token.
    pub(in crate::run) fn run_inline(&mut self, id: TokenId, task: usize) {
        let now = self.changes.now;
        if self.is_inline_spent() {
            return self.defer_to_next_wake(id);
        }
        self.changes.inline += 1;
        // The attempt failed before its first step.
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
                trace: None,
            },
        );
        self.take_report(id, result.into_report(id.to_string(), order.epoch));
    }
}

/// Which attempts may share an invocation. An invocation can only be ended as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchKind {
    /// Pure computation. Such tasks share nothing but CPU time.
    Pure,
    /// Makes outgoing requests. Few share an invocation, because it can wait for six connections at a time.
    Calling,
    /// May have to be cancelled while others continue.
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

/// The number of orders in one decision, by batch kind.
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

    /// The executor calls needed for these orders.
    fn calls(self) -> usize {
        self.pure.div_ceil(PURE_TASKS) + self.calling.div_ceil(CALLING_TASKS) + self.alone
    }
}

impl Run {
    /// Reserves a call for an order. If none is left the token is deferred to the next wake, which the alarm triggers
    /// immediately.
    pub(in crate::run) fn reserve_call(&mut self, id: TokenId, batch: BatchKind) -> bool {
        let counts = self.changes.batches.with(batch);
        if counts.calls() as u32 <= self.changes.remaining_calls {
            self.changes.batches = counts;
            return true;
        }
        self.changes.is_deferred = true;
        self.defer_to_next_wake(id);
        false
    }

    /// Makes a token due immediately. A token that is already due is not changed: otherwise every report before the next wake
    /// would rewrite its row.
    pub(in crate::run) fn defer_to_next_wake(&mut self, id: TokenId) {
        let now = self.changes.now;
        let is_due = |token: &Token| token.watch_at.is_some_and(|at| at <= now);
        if !is_due(self.tokens.live(id)) {
            self.change(id, |token| token.watch_at = Some(now));
        }
    }

    /// The batch kind of an attempt. If a join may cancel the token's branch while others continue, the attempt needs a call of
    /// its own that can be aborted.
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

/// The executor calls needed for `orders`.
pub fn calls_for<'a>(orders: impl Iterator<Item = &'a AttemptOrder>) -> u32 {
    let counts = orders.fold(BatchCounts::default(), |counts, order| counts.with(order.batch));
    counts.calls() as u32
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
