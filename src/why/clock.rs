//! When the clock of a run's limit ran: not in a pause, and not while every token stood in front of a person. The moments at which
//! it stood still at gates are no events; they follow from what the tokens did.

use crate::base::time::Millis;
use crate::definition::workflow::RunClock;
use crate::run::{Run, RunEventKind};
use crate::why::facts::{Facts, TokenTimes};

pub(super) type Interval = (Millis, Millis);

pub(super) struct Clock {
    /// In order, without overlaps.
    running: Vec<Interval>,
}

impl Clock {
    pub fn of(run: &Run, facts: &Facts) -> Clock {
        let busy = match run.snapshot().workflow.clock {
            RunClock::Runs => vec![(0, Millis::MAX)],
            RunClock::StopsAtGates => {
                let mut at_gates: Vec<(&str, Interval)> = run
                    .gates()
                    .filter_map(|gate| {
                        let closed_at = gate.decision.as_ref().map(|decision| decision.at);
                        let interval = (gate.opened_at, closed_at.unwrap_or(Millis::MAX));
                        Some((gate.token_id.as_deref()?, interval))
                    })
                    .collect();
                at_gates.sort_unstable();
                let tokens = facts.tokens.values();
                union(tokens.flat_map(|token| busy_of(token, &at_gates)).collect())
            }
        };
        let mut pauses: Vec<Interval> = facts.pauses().collect();
        pauses.extend(run.header.paused_at.map(|at| (at, Millis::MAX)));
        Clock {
            running: without(busy, &union(pauses)),
        }
    }

    /// How much of a time the clock ran.
    pub fn ran_ms(&self, from: Millis, to: Millis) -> u64 {
        let first = self.running.partition_point(|(_, end)| *end <= from);
        let parts = self.running[first..].iter().take_while(|(start, _)| *start < to);
        parts
            .map(|(start, end)| (*end).min(to).saturating_sub((*start).max(from)))
            .sum()
    }
}

/// The time in which a token did not stand at one of its gates, and its child did not wait for a person.
fn busy_of(token: &TokenTimes, at_gates: &[(&str, Interval)]) -> Vec<Interval> {
    let id = token.id.to_string();
    let first = at_gates.partition_point(|(other, _)| *other < id.as_str());
    let own = at_gates[first..].iter().take_while(|(other, _)| *other == id);
    let mut stops: Vec<Interval> = own.map(|(_, interval)| *interval).collect();
    let mut child_paused_at = None;
    for event in &token.events {
        if event.kind == RunEventKind::SubworkflowPaused {
            child_paused_at = child_paused_at.or(Some(event.at));
        } else if let Some(from) = child_paused_at.take() {
            stops.push((from, event.at));
        }
    }
    stops.extend(child_paused_at.map(|from| (from, Millis::MAX)));
    let whole = (token.created_at, token.ended_at.unwrap_or(Millis::MAX));
    without(vec![whole], &union(stops))
}

/// The same time, in order and without overlaps.
pub(super) fn union(mut intervals: Vec<Interval>) -> Vec<Interval> {
    intervals.sort_unstable();
    let mut merged: Vec<Interval> = Vec::new();
    for (from, to) in intervals.into_iter().filter(|(from, to)| from < to) {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            Some(_) | None => merged.push((from, to)),
        }
    }
    merged
}

/// Both in order and without overlaps.
fn without(intervals: Vec<Interval>, stops: &[Interval]) -> Vec<Interval> {
    let mut left = Vec::new();
    let mut stops = stops.iter().peekable();
    for (mut from, to) in intervals {
        while let Some((start, end)) = stops.peek().copied().copied() {
            if start >= to {
                break;
            }
            if from < start {
                left.push((from, start));
            }
            from = from.max(end);
            // The next interval may be stopped by it, too.
            if end > to {
                break;
            }
            stops.next();
        }
        if from < to {
            left.push((from, to));
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_ran_where_something_was_busy_and_nothing_stopped_it() {
        let busy = union(vec![(10, 20), (15, 30), (40, 50), (50, 60), (70, 70)]);
        assert_eq!(busy, [(10, 30), (40, 60)]);
        let running = without(busy, &[(0, 12), (28, 45), (59, 100)]);
        assert_eq!(running, [(12, 28), (45, 59)]);
        let clock = Clock { running };
        for (from, to, ran) in [(0, 100, 30), (0, 12, 0), (20, 50, 13), (28, 45, 0), (50, 40, 0)] {
            assert_eq!(clock.ran_ms(from, to), ran, "{from} to {to}");
        }
    }
}
