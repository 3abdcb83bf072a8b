//! Why a deadline passed: which limit it was and where its length is written, what used the time, and the smallest limit with
//! which it would have held. Derived from the rows of a run when it is asked for; nothing of it is saved, and nothing is decided.
//!
//! What the history cannot say is `null` with a sentence that says why, never a guess.

mod attempts;
mod clock;
mod course;
mod facts;
mod gate;
mod join;
mod limit;
mod place;
mod run_time;
mod smallest;
mod step;
mod step_limit;
mod usual;

use serde_json::{Value, json};

use crate::base::time::Millis;
use crate::definition::node::NodeKind;
use crate::run::{Run, RunEvent, RunEventKind, TimeoutRecord, TimeoutScope, TokenId};

pub use facts::{Facts, FactsReader, Rows};
pub use usual::{Percentiles, add_usual, subject};

/// The most items of each list of an answer. How many more there are is said beside it.
const SHOWN: usize = 100;

/// Which rows of the run the answer needs, besides its log.
pub fn rows_of(run: &Run, record: &TimeoutRecord) -> Rows {
    let node_id = record.last_known_state.node_id.as_deref();
    let node = node_id.and_then(|id| run.snapshot().workflow.node_index(id));
    let is_wait =
        node.is_some_and(|node| matches!(run.snapshot().workflow.nodes[node].kind, NodeKind::Wait(_)));
    // The signal may have gone to another token.
    if is_wait {
        return Rows::All;
    }
    let token = record.last_known_state.token_id.as_deref();
    match (record.timeout_event.scope, token.and_then(TokenId::parse)) {
        (TimeoutScope::Flow | TimeoutScope::Sync, _) => Rows::All,
        (
            TimeoutScope::Step | TimeoutScope::LlmCall | TimeoutScope::Tool | TimeoutScope::Gate,
            Some(token),
        ) => Rows::Token(token),
        (TimeoutScope::Step | TimeoutScope::LlmCall | TimeoutScope::Tool | TimeoutScope::Gate, None) => {
            Rows::None
        }
    }
}

/// A timeout that is asked about.
#[derive(Clone, Copy)]
struct Asked<'a> {
    run: &'a Run,
    event: &'a RunEvent,
    record: &'a TimeoutRecord,
    facts: &'a Facts,
}

impl Asked<'_> {
    fn at(&self) -> Millis {
        self.record.timeout_event.timestamp
    }

    fn limit_ms(&self) -> Option<u64> {
        self.record.timeout_event.timeout_ms
    }

    /// The moment from which the limit counted. Pauses move it.
    fn began_at(&self) -> Millis {
        let event = &self.record.timeout_event;
        event.timestamp.saturating_sub(event.elapsed_ms)
    }

    fn node(&self) -> Option<usize> {
        let id = self.record.last_known_state.node_id.as_deref()?;
        self.run.snapshot().workflow.node_index(id)
    }

    /// Whether the run ended, or its limit passed, after this timeout and before that moment.
    fn is_interrupted_before(&self, until: Millis) -> bool {
        let later = self.facts.log.iter().filter(|event| event.seq > self.event.seq);
        later.take_while(|event| event.at <= until).any(|event| {
            let is_end = matches!(event.kind, RunEventKind::RunRetried | RunEventKind::RunRestarted);
            event.flow.is_some() || is_end
        })
    }

    /// The start of the run, or its last retry or restart before the timeout: each has the whole limit.
    fn part_began_at(&self) -> Millis {
        let begins = self.facts.log.iter().filter(|event| {
            let is_begin = matches!(event.kind, RunEventKind::RunRetried | RunEventKind::RunRestarted);
            is_begin && event.seq < self.event.seq
        });
        let last = begins.map(|event| event.at).next_back();
        last.unwrap_or(self.run.header.started_at)
    }

    fn token(&self) -> Option<TokenId> {
        TokenId::parse(self.record.last_known_state.token_id.as_deref()?)
    }
}

/// The field `why` of a timeout's record. `None`: the event has no record.
pub fn of(run: &Run, event: &RunEvent, facts: &Facts) -> Option<Value> {
    let asked = Asked {
        run,
        event,
        record: event.record.as_deref()?,
        facts,
    };
    let (mut limit, used, smallest, node_id) = match asked.record.timeout_event.scope {
        TimeoutScope::Flow => {
            let (used, node_id) = run_time::used(asked);
            (limit::of_run(asked), used, run_time::smallest(asked), node_id)
        }
        TimeoutScope::Sync => {
            let join = join::Join::find(asked);
            let limit = limit::of_join(asked, join.as_ref().map(|join| join.transition));
            let (used, smallest) = join.map_or_else(join::unknown, |join| (join.used(), join.smallest()));
            (limit, used, smallest, None)
        }
        TimeoutScope::Gate => (
            limit::of_gate(asked),
            gate::used(asked),
            gate::smallest(asked),
            None,
        ),
        TimeoutScope::Step | TimeoutScope::LlmCall | TimeoutScope::Tool => (
            step_limit::of_step(asked),
            step::used(asked),
            step::smallest(asked),
            None,
        ),
    };
    if let Some(version) = facts.other_version_after(event.seq) {
        limit = limit.of_other_version(version);
    }
    let node_id = node_id.or_else(|| asked.record.last_known_state.node_id.clone());
    let smallest = smallest.bounded_below(asked.limit_ms());
    let change = smallest.limit_ms.and_then(|millis| limit.change(millis));
    Some(json!({
        "limit": limit.view(asked.limit_ms()),
        "outer": limit::outer(asked),
        "used": used,
        "usual": usual::unasked(&run.header.workflow_id, node_id.as_deref()),
        "smallest_limit_ms": smallest.limit_ms,
        "more_than_ms": smallest.more_than_ms,
        "smallest_limit_reason": limit.with_bounds(asked, smallest.limit_ms, smallest.reason),
        "change": change,
    }))
}
