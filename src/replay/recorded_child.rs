//! The workflows that a recorded run called, read from the events of the tokens that called them.

use std::rc::Rc;

use serde::Deserialize;

use crate::base::failure::Failure;
use crate::replay::export::{EventView, TokenView};
use crate::replay::history::{History, Hold, end_of_recording};
use crate::replay::outcome::ChildEnd;
use crate::replay::recorded_calls::{CallPlace, RecordedLimit, ends_attempt, limit_of, place_of};
use crate::run::RunStatus;

/// A workflow that a token called.
#[derive(Clone, Debug)]
pub struct RecordedChild {
    pub place: CallPlace,
    /// Moments after its start at which it began or stopped waiting for a person.
    pub pauses: Vec<(u64, bool, u64)>,
    /// When the clocks of the run that called it stopped, after its start.
    pub holds: Vec<Hold>,
    /// That of the node that called it.
    pub limit: RecordedLimit,
    pub lasted_ms: u64,
    pub end: Option<ChildEnd>,
    /// It could not be started.
    pub is_refused: bool,
    pub rank: u64,
}

pub fn children(history: &History<'_>, token: &TokenView, events: &[&EventView]) -> Vec<RecordedChild> {
    let export = history.export;
    let starts = (0..events.len()).filter(|&number| events[number].kind == "subworkflow_started");
    let starts: Vec<usize> = starts.collect();
    let mut children = Vec::new();
    if starts.is_empty() {
        return children;
    }
    let endings = next_endings(events);
    // The error that the node has caught is part of its output.
    let caught = Failure::deserialize(&token.output["error"]).ok().map(Rc::new);
    let error = token.error.clone().map(Rc::new);
    for (number, &at) in starts.iter().enumerate() {
        let start = events[at];
        let is_last = number + 1 == starts.len();
        let next_start = starts.get(number + 1).map_or(events.len(), |&next| next);
        let own = &events[at + 1..next_start];
        let ended = own.iter().find(|event| event.kind == "subworkflow_ended");
        let pauses = own.iter().filter_map(|event| {
            let is_pause = match event.kind.as_str() {
                "subworkflow_paused" => true,
                "subworkflow_resumed" => false,
                _other => return None,
            };
            Some((event.at.saturating_sub(start.at), is_pause, event.seq))
        });
        let ending = ended.copied().or_else(|| Some(events[endings[at + 1]?]));
        let ended_at = ending.map_or(end_of_recording(export), |event| event.at);
        let own_error = error.clone().filter(|_| is_last);
        let is_refused = own_error
            .as_ref()
            .is_some_and(|error| REFUSALS.contains(&&*error.code));
        children.push(RecordedChild {
            place: place_of(
                token,
                (token.epoch + number as u64 + 1).saturating_sub(starts.len() as u64),
            ),
            pauses: pauses.collect(),
            holds: history.holds_between(start.at, ended_at),
            limit: limit_of(history, token, ending, is_last),
            lasted_ms: ended_at.saturating_sub(start.at),
            end: ended.map(|event| child_end(token, event, own, own_error.or_else(|| caught.clone()))),
            is_refused: is_refused && ended.is_none(),
            rank: ending.map_or(u64::from(u32::MAX), |event| event.seq),
        });
    }
    children
}

/// Codes of a child that could not be started.
const REFUSALS: &[&str] = &["child_id_taken"];

/// For each event the next one, itself included, that ends an attempt.
fn next_endings(events: &[&EventView]) -> Vec<Option<usize>> {
    let mut endings = vec![None; events.len() + 1];
    for at in (0..events.len()).rev() {
        endings[at] = if ends_attempt(events[at]) {
            Some(at)
        } else {
            endings[at + 1]
        };
    }
    endings
}

/// `error`: that of the token, or the one it has caught.
fn child_end(
    token: &TokenView,
    ended: &EventView,
    own: &[&EventView],
    error: Option<Rc<Failure>>,
) -> ChildEnd {
    let status = ended.fields.get("status").cloned().unwrap_or_default();
    let status: RunStatus = serde_json::from_value(status).unwrap_or(RunStatus::Failed);
    let failed = own
        .iter()
        .find(|event| matches!(event.kind.as_str(), "token_failed" | "gate_opened"));
    let error = error.or_else(|| failed.map(|event| Rc::new(event.failure())));
    match status {
        RunStatus::Completed if token.output.is_null() && own_is_failed(own) => ChildEnd {
            status,
            output: None,
            error,
        },
        RunStatus::Completed => ChildEnd {
            status,
            output: Some(token.output.clone()),
            error: None,
        },
        RunStatus::Failed
        | RunStatus::TimedOut
        | RunStatus::Cancelled
        | RunStatus::Running
        | RunStatus::Waiting
        | RunStatus::Paused
        | RunStatus::Compensating => ChildEnd {
            status,
            output: None,
            error: error.filter(|error| error.code != "child_ended"),
        },
    }
}

fn own_is_failed(own: &[&EventView]) -> bool {
    own.iter().any(|event| event.kind == "token_failed")
}
