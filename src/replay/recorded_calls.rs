//! The attempts of a recorded run, read from the events of its tokens. A token's row has the result of its last
//! attempt; the events have when each attempt began and what became of it.

use std::rc::Rc;

use serde_json::Value;

use crate::base::time::Millis;
use crate::protocol::task::{StepReport, StepStatus};
use crate::replay::export::{EventView, Export, TimeoutView, TokenView};
use crate::replay::history::{History, end_of_recording};
use crate::replay::outcome::AttemptEnd;
use crate::replay::recorded_tasks::RecordedTasks;
use crate::run::Lane;

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
    /// When it had answered, if its end is open because its branch waited at a join.
    pub answered_after: Option<u64>,
    /// The number of the event that shows its end: what ended at the same moment ends in that order.
    pub rank: u64,
}

/// The limit of an attempt or a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedLimit {
    /// `None`: it had no limit.
    Known(Option<u64>),
    /// The same, but a limit of its task or of a step cut it.
    Inside(Option<u64>),
    /// Something else has taken its place in the row of the token.
    Unknown,
}

impl RecordedLimit {
    /// The new limit, if it is the shorter one.
    pub fn shortened_to(self, limit_ms: Option<u64>) -> Option<u64> {
        match self {
            RecordedLimit::Known(Some(recorded)) | RecordedLimit::Inside(Some(recorded)) => {
                limit_ms.filter(|limit| *limit < recorded)
            }
            RecordedLimit::Known(None) | RecordedLimit::Inside(None) => limit_ms,
            RecordedLimit::Unknown => None,
        }
    }

    pub fn was_cut_inside(self) -> bool {
        match self {
            RecordedLimit::Inside(_) => true,
            RecordedLimit::Known(_) | RecordedLimit::Unknown => false,
        }
    }

    pub fn is_same_as(self, limit_ms: Option<u64>) -> bool {
        match self {
            RecordedLimit::Known(recorded) | RecordedLimit::Inside(recorded) => recorded == limit_ms,
            RecordedLimit::Unknown => false,
        }
    }

    /// Whether the new limit is the longer one.
    pub fn is_extended_by(self, limit_ms: Option<u64>) -> bool {
        match self {
            RecordedLimit::Known(Some(recorded)) | RecordedLimit::Inside(Some(recorded)) => {
                limit_ms.is_none_or(|limit| limit > recorded)
            }
            RecordedLimit::Known(None) | RecordedLimit::Inside(None) | RecordedLimit::Unknown => false,
        }
    }
}

pub fn limit_of(
    history: &History<'_>,
    token: &TokenView,
    ending: Option<&EventView>,
    is_last: bool,
) -> RecordedLimit {
    let is_gate = |event: &EventView| event.kind == "gate_opened";
    match ending.and_then(|event| history.record_of(token, event)) {
        Some(record) if is_inside(record, token) => RecordedLimit::Inside(token.timeout_ms),
        Some(record) => RecordedLimit::Known(record.timeout_event.timeout_ms),
        None if is_last && !ending.is_some_and(is_gate) => RecordedLimit::Known(token.timeout_ms),
        None => RecordedLimit::Unknown,
    }
}

/// The limit that passed is that of the task or of a step, not that of the attempt.
fn is_inside(record: &TimeoutView, token: &TokenView) -> bool {
    record.timeout_event.timeout_ms != token.timeout_ms
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallPlace {
    pub token_id: String,
    pub epoch: u64,
    /// As `export::node_key` makes it.
    pub node_id: String,
    pub branch: Option<u32>,
}

/// Kinds that end an attempt.
pub fn ends_attempt(event: &EventView) -> bool {
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
    tasks: &RecordedTasks,
) -> Vec<RecordedAttempt> {
    let export = history.export;
    let is_async = tasks.is_async(&token.node_key());
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
        let mut end = match ending {
            Some(event) => end_of(history, token, event, is_last, tasks),
            None => AttemptEnd::Open { is_under_way: true },
        };
        let mut ended_at = ending.map_or(end_of_recording(export), |event| event.at);
        // The event of a branch that waited at a join is of when the join fired.
        let has_answered = matches!(end, AttemptEnd::Completed { .. } | AttemptEnd::Failed { .. });
        if let (true, true, Some(at)) = (is_last, has_answered, token.ended_at) {
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
        let mut lasted_ms = ended_at.saturating_sub(ordered_at);
        if dispatches.len() == 1 && end == (AttemptEnd::Open { is_under_way: false }) {
            // Of a task that may begin again the row has the last round only.
            let cut = cut_in_pause(token)
                .filter(|(_, after_ms)| *after_ms <= lasted_ms && !tasks.repeats(&token.node_key()));
            (end, lasted_ms) = cut.unwrap_or((end, lasted_ms));
        }
        let answered_after = answered_after(token, ordered_at)
            .filter(|_| is_last && end == (AttemptEnd::Open { is_under_way: false }));
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
            answered_after,
            rank: ending.map_or(u64::from(u32::MAX), |event| event.seq),
        });
    }
    attempts
}

pub fn place_of(token: &TokenView, epoch: u64) -> CallPlace {
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

fn end_of(
    history: &History<'_>,
    token: &TokenView,
    event: &EventView,
    is_last: bool,
    tasks: &RecordedTasks,
) -> AttemptEnd {
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
            timed_out(history, token, event, is_last, tasks)
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

/// The only attempt of a token was cut while the run was paused, and would have begun again: its end, and when after its order.
fn cut_in_pause(token: &TokenView) -> Option<(AttemptEnd, u64)> {
    let last = token.steps.last()?;
    let end = AttemptEnd::TimedOut {
        step_ref: Some(last.reference.clone()),
        is_reported: true,
        steps: token.steps.clone(),
        step_limit_ms: None,
    };
    let durations = token.steps.iter().map(|step| step.duration_ms);
    let after_ms = durations.fold(0, u64::saturating_add);
    (last.status == StepStatus::TimedOut).then_some((end, after_ms))
}

/// All of its steps are done, and its row has the moment.
fn answered_after(token: &TokenView, ordered_at: Millis) -> Option<u64> {
    let is_done = |step: &StepReport| matches!(step.status, StepStatus::Completed | StepStatus::Skipped);
    let has_answered = !token.steps.is_empty() && token.steps.iter().all(is_done);
    let ended_at = token.ended_at.filter(|_| has_answered)?;
    Some(ended_at.saturating_sub(ordered_at))
}

/// The token has failed, before something else ended it.
fn is_own_error(token: &TokenView) -> bool {
    let error = token.error.as_ref();
    error.is_some_and(|error| error.token_id.as_deref() == Some(&token.id))
}

const ATTEMPT_LOST: &str = "attempt_lost";

/// An executor reports soon after the limit; the run's alarm finds it after the grace.
fn timed_out(
    history: &History<'_>,
    token: &TokenView,
    event: &EventView,
    is_last: bool,
    tasks: &RecordedTasks,
) -> AttemptEnd {
    let Some(record) = history.record_of(token, event) else {
        return AttemptEnd::Open { is_under_way: false };
    };
    let grace_ms = history.export.settings.grace_ms;
    let is_reported = event.at < record.timeout_event.due_at.saturating_add(grace_ms);
    let of_error = token.error.as_ref().filter(|_| is_last);
    let of_error = of_error.and_then(|error| error.step_ref.clone());
    let step_ref = of_error.or_else(|| record.last_known_state.step_ref.clone());
    let is_of_step = |limit_ms: &u64| {
        let step_ref = step_ref.as_deref().unwrap_or_default();
        is_inside(record, token) && tasks.is_limit_of_step(&token.node_key(), step_ref, *limit_ms)
    };
    let step_limit_ms = record.timeout_event.timeout_ms.filter(is_of_step).unwrap_or(0);
    let is_reported = is_reported && record.error.is_none();
    AttemptEnd::TimedOut {
        is_reported,
        // Without a report the row has those of an earlier attempt.
        steps: steps_of(token, is_last && is_reported),
        step_limit_ms: (!is_last).then_some(step_limit_ms),
        step_ref,
    }
}

/// The signals that a run got, with their payloads: those that a node waited for are its output.
pub fn payload_of(token: Option<&TokenView>) -> Value {
    token.map(|token| Value::clone(&token.output)).unwrap_or_default()
}
