//! An export with what is looked up for each attempt and each called workflow: its timeouts, when its end began, when its clocks stopped.

use std::collections::BTreeMap;

use crate::base::time::Millis;
use crate::replay::export::{EventView, Export, TimeoutView, TokenView};

/// The clocks of the run stopped, and with them those of the workflows that it called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    pub after_ms: u64,
    pub cause: HoldCause,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldCause {
    /// A request stopped them, at a moment that a replay has, too.
    Request,
    /// A limit or a failure, which may come at another moment.
    Decision,
}

pub struct History<'a> {
    pub export: &'a Export,
    /// By moment and token.
    timeouts: BTreeMap<(Millis, &'a str), &'a TimeoutView>,
    /// Events with which the end of the run began, or was taken back, by number.
    ends: BTreeMap<u64, &'a EventView>,
    /// When the clocks of the run stopped.
    holds: Vec<(Millis, HoldCause)>,
}

impl<'a> History<'a> {
    pub fn of(export: &'a Export) -> History<'a> {
        let mut timeouts = BTreeMap::new();
        for record in &export.timeouts {
            if let Some(token) = record.last_known_state.token_id.as_deref() {
                timeouts
                    .entry((record.timeout_event.timestamp, token))
                    .or_insert(record);
            }
        }
        let ends = export
            .events
            .iter()
            .filter(|event| matches!(&*event.kind, "run_compensating" | "run_retried" | "run_restarted"));
        let holds = export.events.iter().filter(|event| event.kind == "run_paused");
        History {
            export,
            timeouts,
            ends: ends.map(|event| (event.seq, event)).collect(),
            holds: holds.map(|event| (event.at, cause_of(event))).collect(),
        }
    }

    pub fn holds_between(&self, from: Millis, to: Millis) -> Vec<Hold> {
        let first = self.holds.partition_point(|(at, _)| *at < from);
        let between = self.holds[first..].iter().take_while(|(at, _)| *at < to);
        let hold = |&(at, cause): &(Millis, HoldCause)| Hold {
            after_ms: at.saturating_sub(from),
            cause,
        };
        between.map(hold).collect()
    }

    /// The record of a timeout of the token.
    pub fn record_of(&self, token: &TokenView, event: &EventView) -> Option<&'a TimeoutView> {
        self.timeouts.get(&(event.at, token.id.as_str())).copied()
    }

    /// The end of the run was decided before.
    pub fn was_ending(&self, event: &EventView) -> bool {
        let last = self.ends.range(..event.seq).next_back();
        last.is_some_and(|(_, last)| last.kind == "run_compensating" && last.at < event.at)
    }
}

fn cause_of(paused: &EventView) -> HoldCause {
    match paused.text("cause") {
        Some("workflow_timeout" | "escalation") => HoldCause::Decision,
        Some(_) | None => HoldCause::Request,
    }
}

/// The events of each token, in order.
pub fn events_by_token(export: &Export) -> BTreeMap<&str, Vec<&EventView>> {
    let mut by_token: BTreeMap<&str, Vec<&EventView>> = BTreeMap::new();
    for event in &export.events {
        if let Some(token) = event.token() {
            by_token.entry(token).or_default().push(event);
        }
    }
    by_token
}

pub fn end_of_recording(export: &Export) -> Millis {
    let run = &export.run;
    // A run that goes on has lasted until it was exported.
    let last = run
        .ended_at
        .unwrap_or(run.started_at.saturating_add(run.duration_ms));
    export.events.last().map_or(last, |event| last.max(event.at))
}
