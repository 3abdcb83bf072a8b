//! The attempts and children of a recorded run, read from the events of its tokens. A token's row has the result of its last
//! attempt; the events have when each attempt began and what became of it.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::Deserialize;
use serde_json::Value;

use crate::base::failure::Failure;
use crate::base::time::Millis;
use crate::protocol::task::StepReport;
use crate::replay::export::{EventView, Export, TimeoutView, TokenView};
use crate::replay::outcome::{AttemptEnd, ChildEnd};
use crate::run::{Lane, RunStatus};

/// One attempt of a token that an executor had.
#[derive(Clone, Debug)]
pub struct RecordedAttempt {
    pub place: CallPlace,
    /// How long it waited in the queue.
    pub queued_ms: u64,
    /// From its order to its end.
    pub lasted_ms: u64,
    /// It lasts longer than in the recording, by a changed duration.
    pub is_longer: bool,
    pub limit: RecordedLimit,
    /// For an async action: when its call was accepted, after the order. The result came by a callback.
    pub suspended_after: Option<u64>,
    /// No consumer of the queue took it.
    pub is_unclaimed: bool,
    /// Its consumer sent no sign of life any more.
    pub is_reaped: bool,
    pub end: AttemptEnd,
    /// The number of the event that shows its end: what ended at the same moment ends in that order.
    pub rank: u64,
}

/// A workflow that a token called.
#[derive(Clone, Debug)]
pub struct RecordedChild {
    pub place: CallPlace,
    /// Moments after its start at which it began or stopped waiting for a person.
    pub pauses: Vec<(u64, bool, u64)>,
    /// That of the node that called it.
    pub limit: RecordedLimit,
    pub lasted_ms: u64,
    pub end: Option<ChildEnd>,
    /// It could not be started.
    pub is_refused: bool,
    pub rank: u64,
}

/// The limit of an attempt or a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedLimit {
    /// `None`: it had no limit.
    Known(Option<u64>),
    /// Something else has taken its place in the row of the token.
    Unknown,
}

impl RecordedLimit {
    /// The new limit, if it is the shorter one.
    pub fn shortened_to(self, limit_ms: Option<u64>) -> Option<u64> {
        match self {
            RecordedLimit::Known(Some(recorded)) => limit_ms.filter(|limit| *limit < recorded),
            RecordedLimit::Known(None) => limit_ms,
            RecordedLimit::Unknown => None,
        }
    }

    /// The limit of a step cut it.
    pub fn is_of_step(self) -> bool {
        self == RecordedLimit::Unknown
    }

    pub fn is_same_as(self, limit_ms: Option<u64>) -> bool {
        self == RecordedLimit::Known(limit_ms)
    }

    /// Whether the new limit is the longer one.
    pub fn is_extended_by(self, limit_ms: Option<u64>) -> bool {
        match self {
            RecordedLimit::Known(Some(recorded)) => limit_ms.is_none_or(|limit| limit > recorded),
            RecordedLimit::Known(None) | RecordedLimit::Unknown => false,
        }
    }
}

fn limit_of(
    history: &History<'_>,
    token: &TokenView,
    ending: Option<&EventView>,
    is_last: bool,
) -> RecordedLimit {
    let is_gate = |event: &EventView| event.kind == "gate_opened";
    match ending.and_then(|event| history.record_of(token, event)) {
        // An inner limit cut it: that of a step.
        Some(record) if is_last && record.timeout_event.timeout_ms != token.timeout_ms => {
            RecordedLimit::Unknown
        }
        Some(record) => RecordedLimit::Known(record.timeout_event.timeout_ms),
        None if is_last && !ending.is_some_and(is_gate) => RecordedLimit::Known(token.timeout_ms),
        None => RecordedLimit::Unknown,
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallPlace {
    pub token_id: String,
    pub epoch: u64,
    /// As `export::node_key` makes it.
    pub node_id: String,
    pub branch: Option<u32>,
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

/// Kinds that end an attempt.
fn ends_attempt(event: &EventView) -> bool {
    match event.kind.as_str() {
        "token_dispatched" | "token_completed" | "token_failed" | "token_timed_out" | "token_cancelled"
        | "token_retried" | "attempt_reaped" => true,
        "gate_opened" => event.text("gate_kind") == Some("escalation"),
        _other => false,
    }
}

pub fn attempts(
    history: &History<'_>,
    token: &TokenView,
    events: &[&EventView],
    is_async: bool,
) -> Vec<RecordedAttempt> {
    let export = history.export;
    let mut attempts = Vec::new();
    let mut losses = 0;
    let dispatches: Vec<usize> = (0..events.len())
        .filter(|&number| events[number].kind == "token_dispatched")
        .collect();
    for (number, &at) in dispatches.iter().enumerate() {
        let (dispatch, rest) = (events[at], &events[at + 1..]);
        let epoch = dispatch.number("epoch").unwrap_or(1);
        let is_last = number + 1 == dispatches.len();
        let ending = rest.iter().find(|event| ends_attempt(event)).copied();
        let end = match ending {
            Some(event) => end_of(history, token, event, is_last),
            None => AttemptEnd::Open { is_under_way: true },
        };
        let mut ended_at = ending.map_or(end_of_recording(export), |event| event.at);
        // The event of a branch that waited at a join is of when the join fired.
        if let (true, Some(at)) = (is_last, token.ended_at) {
            ended_at = ended_at.min(at);
        }
        losses = match end {
            AttemptEnd::Lost => losses + 1,
            AttemptEnd::Completed { .. }
            | AttemptEnd::Failed { .. }
            | AttemptEnd::TimedOut { .. }
            | AttemptEnd::Open { .. } => 0,
        };
        if end == AttemptEnd::Lost {
            ended_at = ended_at.saturating_sub(delay_after_loss(losses));
        }
        let queued_ms = match is_last && token.lane == Some(Lane::Queue) {
            true => queued_ms(token, ended_at),
            false => 0,
        };
        let ordered_at = dispatch.at.saturating_add(queued_ms);
        let lasted_ms = ended_at.saturating_sub(ordered_at);
        let suspended_after = suspended_after(history, token, ending, ordered_at, lasted_ms);
        attempts.push(RecordedAttempt {
            place: place_of(token, epoch),
            queued_ms,
            lasted_ms,
            is_longer: false,
            limit: limit_of(history, token, ending, is_last),
            suspended_after: suspended_after.filter(|_| is_async),
            is_unclaimed: is_unclaimed(export, token, ended_at.saturating_sub(dispatch.at), &end),
            is_reaped: ending.is_some_and(|event| event.kind == "attempt_reaped"),
            end,
            rank: ending.map_or(u64::from(u32::MAX), |event| event.seq),
        });
    }
    attempts
}

fn place_of(token: &TokenView, epoch: u64) -> CallPlace {
    CallPlace {
        token_id: token.id.clone(),
        epoch,
        node_id: token.node_key(),
        branch: token.branch.as_ref().map(|branch| branch.index),
    }
}

/// A token whose work could not begin has ended when it was claimed.
fn queued_ms(token: &TokenView, ended_at: Millis) -> u64 {
    let claimed_at = token.started_at.unwrap_or(ended_at);
    let dispatched_at = token.dispatched_at.unwrap_or(claimed_at);
    claimed_at.saturating_sub(dispatched_at)
}

/// The limit of the wait for a callback counts from when the call was accepted.
fn suspended_after(
    history: &History<'_>,
    token: &TokenView,
    ending: Option<&EventView>,
    ordered_at: Millis,
    lasted_ms: u64,
) -> Option<u64> {
    let record = ending.and_then(|event| history.record_of(token, event));
    let limit = match record.map(|record| &record.timeout_event) {
        Some(timeout) => Some(timeout.due_at).zip(timeout.timeout_ms),
        None => token.timeout_at.zip(token.timeout_ms),
    };
    let after = limit.map_or(0, |(at, millis)| {
        at.saturating_sub(millis).saturating_sub(ordered_at)
    });
    Some(after.min(lasted_ms))
}

/// An export with what is looked up for each attempt.
pub struct History<'a> {
    pub export: &'a Export,
    /// By moment and token.
    timeouts: BTreeMap<(Millis, &'a str), &'a TimeoutView>,
    /// Events with which the end of the run began, or was taken back, by number.
    ends: BTreeMap<u64, &'a EventView>,
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
        History {
            export,
            timeouts,
            ends: ends.map(|event| (event.seq, event)).collect(),
        }
    }

    /// The record of a timeout of the token.
    fn record_of(&self, token: &TokenView, event: &EventView) -> Option<&'a TimeoutView> {
        self.timeouts.get(&(event.at, token.id.as_str())).copied()
    }

    /// The end of the run was decided before.
    fn was_ending(&self, event: &EventView) -> bool {
        let last = self.ends.range(..event.seq).next_back();
        last.is_some_and(|(_, last)| last.kind == "run_compensating" && last.at < event.at)
    }
}

/// The attempt was recreated when its time to be claimed was over.
fn is_unclaimed(export: &Export, token: &TokenView, lasted_ms: u64, end: &AttemptEnd) -> bool {
    let is_cut = match end {
        AttemptEnd::Lost | AttemptEnd::Open { .. } => true,
        AttemptEnd::TimedOut { is_reported, .. } => !is_reported,
        AttemptEnd::Completed { .. } | AttemptEnd::Failed { .. } => false,
    };
    token.lane == Some(Lane::Queue)
        && is_cut
        && lasted_ms >= export.settings.claim_ms
        && token.started_at.is_none()
}

/// A lost attempt is followed by the next one at once, and after the second loss by a growing delay.
fn delay_after_loss(losses: u32) -> u64 {
    match losses {
        0 | 1 => 0,
        count => 1_000 << (count - 2).min(10),
    }
}

fn end_of_recording(export: &Export) -> Millis {
    let run = &export.run;
    // A run that goes on has lasted until it was exported.
    let last = run
        .ended_at
        .unwrap_or(run.started_at.saturating_add(run.duration_ms));
    export.events.last().map_or(last, |event| last.max(event.at))
}

fn end_of(history: &History<'_>, token: &TokenView, event: &EventView, is_last: bool) -> AttemptEnd {
    match event.kind.as_str() {
        "token_completed" => AttemptEnd::Completed {
            output: token.output.clone(),
            steps: token.steps.clone(),
        },
        // Its work was done, and what followed from it failed.
        "token_failed" | "gate_opened" if is_last && !token.output.is_null() => AttemptEnd::Completed {
            output: token.output.clone(),
            steps: token.steps.clone(),
        },
        "token_failed" | "gate_opened" => {
            let known = token.error.as_ref().filter(|_| is_last).cloned();
            let error = known.unwrap_or_else(|| event.failure());
            match error.code == ATTEMPT_LOST {
                // The last of too many losses.
                true => AttemptEnd::Lost,
                false => AttemptEnd::Failed {
                    error,
                    steps: steps_of(token, is_last),
                },
            }
        }
        "token_timed_out" if event.text("timeout_type") == Some("execution") => {
            timed_out(history, token, event, is_last)
        }
        "token_dispatched" => AttemptEnd::Lost,
        // Its branch had arrived at the join that ended it.
        _cut if is_last && is_own_error(token) => AttemptEnd::Failed {
            error: token.error.clone().unwrap_or_else(|| event.failure()),
            steps: token.steps.clone(),
        },
        _cut if is_last && !token.output.is_null() => AttemptEnd::Completed {
            output: token.output.clone(),
            steps: token.steps.clone(),
        },
        // The run waited for its work, which ended without a result.
        "token_cancelled" | "token_timed_out" if history.was_ending(event) => AttemptEnd::Lost,
        _cut => AttemptEnd::Open { is_under_way: false },
    }
}

/// A token has the steps of its last attempt.
fn steps_of(token: &TokenView, is_last: bool) -> Rc<[StepReport]> {
    match is_last {
        true => token.steps.clone(),
        false => Rc::default(),
    }
}

/// The token has failed, before something else ended it.
fn is_own_error(token: &TokenView) -> bool {
    let error = token.error.as_ref();
    error.is_some_and(|error| error.token_id.as_deref() == Some(&token.id))
}

const ATTEMPT_LOST: &str = "attempt_lost";

/// An executor reports soon after the limit; the run's alarm finds it after the grace.
fn timed_out(history: &History<'_>, token: &TokenView, event: &EventView, is_last: bool) -> AttemptEnd {
    let Some(record) = history.record_of(token, event) else {
        return AttemptEnd::Open { is_under_way: false };
    };
    let grace_ms = history.export.settings.grace_ms;
    let is_reported = event.at < record.timeout_event.due_at.saturating_add(grace_ms);
    let of_error = token.error.as_ref().and_then(|error| error.step_ref.clone());
    AttemptEnd::TimedOut {
        step_ref: of_error.or_else(|| record.last_known_state.step_ref.clone()),
        is_reported: is_reported && record.error.is_none(),
        steps: steps_of(token, is_last),
    }
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

/// The signals that a run got, with their payloads: those that a node waited for are its output.
pub fn payload_of(token: Option<&TokenView>) -> Value {
    token.map(|token| Value::clone(&token.output)).unwrap_or_default()
}
