//! The limit of a whole run: what its critical way took, token by token.
//!
//! A token begins in the decision that ended the one before it, so going back from the last token to its parents gives times that
//! follow each other without a gap.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::base::time::{Millis, format_duration};
use crate::run::{RunEventKind, RunStatus, TokenId};
use crate::why::attempts;
use crate::why::clock::Clock;
use crate::why::course::Course;
use crate::why::facts::{Facts, TokenTimes};
use crate::why::smallest::Smallest;
use crate::why::{Asked, SHOWN};

/// A token of the critical way, with the time of the run's clock that it took.
struct Part<'a> {
    token: &'a TokenTimes,
    millis: u64,
}

/// What the time was used for, and the node that was at work when it was up.
pub(super) fn used(asked: Asked) -> (Value, Option<String>) {
    let event = &asked.record.timeout_event;
    let clock = Clock::of(asked.run, asked.facts);
    let (at, due_at) = (event.timestamp, event.due_at.min(event.timestamp));
    let live = asked.facts.tokens.values().filter(|token| {
        let is_over = token.ended_at.is_some_and(|ended_at| ended_at < at) || ended_at_join(token, at);
        token.created_at <= due_at && !is_over
    });
    let last = live.min_by_key(|token| (token.created_at, token.id));
    let way = last.map_or_else(Vec::new, |last| way_to(asked.facts, last, &clock, due_at));
    let mut by_node: BTreeMap<&str, u64> = BTreeMap::new();
    for part in &way {
        *by_node.entry(&part.token.node_id).or_default() += part.millis;
    }
    let mut nodes: Vec<(&str, u64)> = by_node.into_iter().collect();
    nodes.sort_by_key(|(node_id, millis)| (std::cmp::Reverse(*millis), *node_id));
    let part_began_at = asked.part_began_at();
    let at_work = &asked.record.last_known_state.progress["nodes"];
    let used = json!({
        "elapsed_ms": event.elapsed_ms,
        "stopped_ms": at.saturating_sub(part_began_at).saturating_sub(event.elapsed_ms),
        "critical_way": way.iter().rev().take(SHOWN).rev().map(part_view).collect::<Vec<Value>>(),
        "critical_way_left_out": way.len().saturating_sub(SHOWN),
        "nodes": nodes.iter().take(SHOWN).map(|(node_id, millis)| json!({"node_id": node_id, "duration_ms": millis}))
            .collect::<Vec<Value>>(),
        "at_work": at_work,
    });
    (used, last.map(|token| shown(&token.node_id).to_string()))
}

/// It had arrived at a join, where it does nothing.
fn ended_at_join(token: &TokenTimes, at: Millis) -> bool {
    token.joins_at.is_some() && token.ended_at.is_some_and(|ended_at| ended_at <= at)
}

fn part_view(part: &Part) -> Value {
    json!({
        "token_id": part.token.id.to_string(),
        "node_id": shown(&part.token.node_id),
        "duration_ms": part.millis,
    })
}

/// The id without what marks a compensation or an end handler.
fn shown(node_id: &str) -> &str {
    node_id.split('~').next().unwrap_or_default()
}

pub(super) fn smallest(asked: Asked) -> Smallest {
    let header = &asked.run.header;
    match header.status {
        RunStatus::Completed => {}
        RunStatus::Running | RunStatus::Waiting | RunStatus::Paused | RunStatus::Compensating => {
            return Smallest::unknown("the run has not completed: how much longer it needs is not known yet");
        }
        RunStatus::Failed | RunStatus::TimedOut | RunStatus::Cancelled => {
            return Smallest::unknown(
                "the run did not complete: what was under way was stopped, and what would have followed never began",
            );
        }
    }
    let restarted = asked.facts.of_kind(RunEventKind::RunRestarted);
    if restarted.into_iter().any(|event| event.seq > asked.event.seq) {
        return Smallest::unknown(
            "the run was restarted and began again; what it had not done then never ended",
        );
    }
    if asked.facts.other_version_after(asked.event.seq).is_some() {
        return Smallest::unknown("the run has gone on with another version, which may take another time");
    }
    let needed = match Course::without_limit(asked, asked.part_began_at()) {
        Ok(needed) => needed,
        Err(reason) => {
            return Smallest::unknown(format!(
                "how long the run would have taken without this timeout is not known: {reason}"
            ));
        }
    };
    let took = format_duration(needed.millis);
    let stops = "without the time in which its clock stood still";
    let last = shown(needed.last_node);
    Smallest::after(
        needed.millis,
        match needed.is_retried {
            true => format!(
                "retried, the run completed: up to the end of \"{last}\" it takes {took}, {stops} and the work that was repeated"
            ),
            false => {
                format!(
                    "with more time the run completed: up to the end of \"{last}\" it takes {took}, {stops}"
                )
            }
        },
    )
}

/// From the first token to `last`. Nothing after `until` counts.
fn way_to<'a>(facts: &'a Facts, last: &'a TokenTimes, clock: &Clock, until: Millis) -> Vec<Part<'a>> {
    let mut retries: Vec<Millis> = facts
        .of_kind(RunEventKind::RunRetried)
        .map(|event| event.at)
        .collect();
    retries.sort_unstable();
    let mut way = Vec::new();
    let mut next = Some(last);
    while let Some(token) = next {
        let parent = parent_of(facts, token);
        // The token that a retry put in the place of an interrupted one: that one's work was lost.
        let replaced = parent.filter(|parent| {
            parent.node_id == token.node_id && retries.binary_search(&token.created_at).is_ok()
        });
        let before = match replaced {
            Some(replaced) => first_before(facts, replaced, &retries),
            None => parent,
        };
        let from = match (replaced, parent) {
            (None, Some(parent)) => parent.ended_at.unwrap_or(token.created_at).min(token.created_at),
            (Some(_), _) | (None, None) => token.created_at,
        };
        way.push(Part {
            token,
            millis: own_ms(token, from, clock, until),
        });
        next = before;
    }
    way.reverse();
    way
}

fn parent_of<'a>(facts: &'a Facts, token: &TokenTimes) -> Option<&'a TokenTimes> {
    // Parents have lower numbers, so the way back ends.
    facts
        .tokens
        .get(&token.parent.filter(|parent: &TokenId| *parent < token.id)?)
}

/// What came before the work that `replaced`, or the one that it replaced itself, was to do. A branch that had arrived at its join
/// has done its work.
fn first_before<'a>(
    facts: &'a Facts,
    mut replaced: &'a TokenTimes,
    retries: &[Millis],
) -> Option<&'a TokenTimes> {
    loop {
        if replaced.joins_at.is_some() {
            return Some(replaced);
        }
        let parent = parent_of(facts, replaced)?;
        let is_replacement =
            parent.node_id == replaced.node_id && retries.binary_search(&replaced.created_at).is_ok();
        if !is_replacement {
            return Some(parent);
        }
        replaced = parent;
    }
}

/// The time of the clock that a token took. Its attempts count whole: work that is in flight goes on while the run is paused, and
/// would have gone on under a longer limit.
fn own_ms(token: &TokenTimes, from: Millis, clock: &Clock, until: Millis) -> u64 {
    let to = token.ended_at.unwrap_or(Millis::MAX).min(until);
    let (mut total, mut waits_from) = (0, from);
    for attempt in attempts::all(token) {
        let (begin, end) = (
            attempt.dispatched_at.min(to),
            attempt.ended_at.unwrap_or(to).min(to),
        );
        total += clock.ran_ms(waits_from, begin);
        total += match attempt.child_run_id {
            // It stops with its parent.
            Some(_) => clock.ran_ms(begin, end),
            None => end.saturating_sub(begin),
        };
        waits_from = end.max(waits_from);
    }
    total + clock.ran_ms(waits_from, to)
}
