//! Joins whose wait was too short: which branches were missing, and when they came.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::base::time::{Millis, format_duration};
use crate::definition::fan::{BranchFailurePolicy, Strategy};
use crate::definition::transition::TransitionOn;
use crate::run::{InstanceId, RunEventKind, TokenId};
use crate::why::facts::{JoinTimes, TokenTimes};
use crate::why::smallest::Smallest;
use crate::why::{Asked, SHOWN};

pub(super) struct Join<'a> {
    asked: Asked<'a>,
    times: &'a JoinTimes,
    /// In the version that the run has now.
    pub transition: usize,
    /// Branches that had arrived, and how many of them count.
    arrived: usize,
    counted: u32,
    missing: Vec<Missing<'a>>,
}

struct Missing<'a> {
    index: u32,
    /// The last token of the branch at that time.
    token: Option<&'a TokenTimes>,
    came_at: Option<Came>,
}

/// When the branch would have arrived.
#[derive(Clone, Copy)]
enum Came {
    Merged(Millis),
    Discarded(Millis),
}

impl Came {
    fn at(self) -> Millis {
        match self {
            Came::Merged(at) | Came::Discarded(at) => at,
        }
    }
}

/// The rows do not tell which join it was.
pub(super) fn unknown() -> (Value, Smallest) {
    let reason = "the rows of this join are not as they were at its timeout: the run has gone on since";
    (json!({}), Smallest::unknown(reason))
}

impl<'a> Join<'a> {
    pub fn find(asked: Asked<'a>) -> Option<Join<'a>> {
        let times = times_of(&asked)?;
        let transitions = &asked.run.snapshot().workflow.transitions;
        let node = asked.node()?;
        let joins = || {
            let all = transitions.iter().enumerate();
            all.filter(|(_, it)| it.to == node && it.synchronization.is_some())
        };
        let named = joins().find(|(_, it)| it.id == times.transition_id);
        let (transition, _) = named.or_else(|| joins().next())?;
        let at = asked.at();
        let mut by_branch: BTreeMap<u32, Vec<&TokenTimes>> = BTreeMap::new();
        for token in asked.facts.tokens.values() {
            if let Some((instance, index)) = token.branch
                && instance == times.instance
                && token.created_at <= at
            {
                by_branch.entry(index).or_default().push(token);
            }
        }
        let (mut arrived, mut counted, mut missing) = (0, 0, Vec::new());
        for index in 0..times.total {
            let tokens = by_branch.get(&index).map_or(&[][..], Vec::as_slice);
            let arrival = tokens.iter().find(|token| {
                let is_there = token.joins_at.as_deref() == Some(times.node_id.as_str());
                is_there && token.ended_at.is_some_and(|ended_at| ended_at <= at)
            });
            match arrival {
                Some(token) => {
                    arrived += 1;
                    counted += u32::from(!token.has_error);
                }
                None => missing.push(Missing {
                    index,
                    token: tokens.last().copied(),
                    came_at: came_at(&asked, times.instance, index, node),
                }),
            }
        }
        Some(Join {
            asked,
            times,
            transition,
            arrived,
            counted,
            missing,
        })
    }

    /// How many of the missing branches it needed. `None`: all of them.
    fn needed(&self) -> Option<usize> {
        let transition = &self.asked.run.snapshot().workflow.transitions[self.transition];
        let join = transition.synchronization.as_ref()?;
        match (join.strategy, join.on_branch_failure) {
            (Strategy::Any, _) => Some(1),
            (Strategy::MOfN(count), _) => Some(count.saturating_sub(self.counted) as usize),
            (Strategy::All, BranchFailurePolicy::Fail | BranchFailurePolicy::ProceedWithAvailable) => None,
        }
    }

    pub fn used(&self) -> Value {
        let event = &self.asked.record.timeout_event;
        let wall_ms = event.timestamp.saturating_sub(self.times.started_at);
        let missing = self.missing.iter().take(SHOWN).map(|branch| {
            json!({
                "index": branch.index,
                "token_id": branch.token.map(|token| token.id.to_string()),
                "node_id": branch.token.map(|token| &*token.node_id),
                "came_at": branch.came_at.map(Came::at),
            })
        });
        json!({
            "elapsed_ms": event.elapsed_ms,
            "stopped_ms": wall_ms.saturating_sub(event.elapsed_ms),
            "first_arrival_at": self.times.started_at,
            "branches": self.times.total,
            "arrived": self.arrived,
            "needed": self.needed().unwrap_or(self.missing.len()),
            "missing": missing.collect::<Vec<Value>>(),
            "missing_left_out": self.missing.len().saturating_sub(SHOWN),
        })
    }

    pub fn smallest(&self) -> Smallest {
        let mut came: Vec<Came> = self.missing.iter().filter_map(|branch| branch.came_at).collect();
        came.sort_by_key(|came| came.at());
        let needed = self.needed().unwrap_or(self.missing.len());
        let last = needed.checked_sub(1).and_then(|last| came.get(last));
        let Some(last) = last else {
            let (never, known) = (self.missing.len() - came.len(), came.len());
            return Smallest::unknown(format!(
                "of the {} branches that were missing, {known} ended later and {never} were stopped, so the history has no time for \
                 them",
                self.missing.len()
            ));
        };
        if self.asked.is_interrupted_before(last.at()) {
            return Smallest::unknown(
                "before the last branch that was needed came, the run had ended or waited at the gate of its limit",
            );
        }
        let waited_ms = last.at().saturating_sub(self.asked.began_at());
        let waited_ms = waited_ms.saturating_sub(self.asked.facts.paused_ms(self.asked.at(), last.at()));
        let waited = format_duration(waited_ms);
        Smallest::after(
            waited_ms,
            match last {
                Came::Merged(_) => {
                    format!("the last branch that was needed arrived {waited} after the first one")
                }
                Came::Discarded(_) => {
                    format!(
                        "the last result that was needed came {waited} after the first arrival, and was discarded"
                    )
                }
            },
        )
    }
}

/// The join of the record: its deadline is as it was. Where a retry has moved it, the branches that were late name it.
fn times_of<'a>(asked: &Asked<'a>) -> Option<&'a JoinTimes> {
    let node_id = asked.record.last_known_state.node_id.as_deref()?;
    let at_node: Vec<&JoinTimes> = asked
        .facts
        .joins
        .iter()
        .filter(|join| join.node_id == node_id)
        .collect();
    let due_at = asked.record.timeout_event.due_at;
    let by_deadline = at_node
        .iter()
        .find(|join| join.timeout_at == Some(due_at))
        .copied();
    by_deadline.or_else(|| {
        let late = asked.record.last_known_state.progress["at_work"]
            .as_array()?
            .first()?;
        let token = TokenId::parse(late["token_id"].as_str()?)?;
        let (instance, _) = asked.facts.tokens.get(&token)?.branch?;
        at_node.into_iter().find(|join| join.instance == instance)
    })
}

/// When a branch that was missing arrived after all, or brought its last result.
fn came_at(asked: &Asked, instance: InstanceId, index: u32, join_node: usize) -> Option<Came> {
    let at = asked.at();
    let workflow = &asked.run.snapshot().workflow;
    let tokens = asked
        .facts
        .tokens
        .values()
        .filter(|token| token.branch == Some((instance, index)));
    let came = tokens.filter_map(|token| {
        if token.merged_late && !token.has_error {
            return token
                .ended_at
                .filter(|ended_at| *ended_at >= at)
                .map(Came::Merged);
        }
        let late = token.events.iter().find(|event| {
            event.kind == RunEventKind::LateResultDiscarded
                && event.seq > asked.event.seq
                && event.more().status.as_deref() == Some("completed")
        })?;
        // Only if nothing more was to be done.
        let node = workflow.node_index(&token.node_id)?;
        let leads_to_join = workflow.transitions.iter().any(|transition| {
            transition.from == node && transition.to == join_node && transition.on == TransitionOn::Success
        });
        leads_to_join.then_some(Came::Discarded(late.at))
    });
    came.min_by_key(|came| came.at())
}
