//! The attempts of a token, as its events tell of them.

use serde_json::{Value, json};

use crate::base::time::Millis;
use crate::run::{Lane, RunEventKind};
use crate::why::facts::{Noted, TokenTimes};

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptEnd {
    Completed,
    Failed,
    TimedOut,
    /// No heartbeat came.
    Silent,
    /// It was repeated: no report came, or a pause had moved its deadline.
    Repeated,
    /// The run, a join or a person ended the token.
    CutOff,
    Running,
}

impl AttemptEnd {
    fn name(self) -> &'static str {
        match self {
            AttemptEnd::Completed => "completed",
            AttemptEnd::Failed => "failed",
            AttemptEnd::TimedOut => "timed_out",
            AttemptEnd::Silent => "silent",
            AttemptEnd::Repeated => "repeated",
            AttemptEnd::CutOff => "cut_off",
            AttemptEnd::Running => "running",
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub epoch: u64,
    pub dispatched_at: Millis,
    /// When the executor had it. `None`: only the last claim of a queue is known.
    pub started_at: Option<Millis>,
    pub ended_at: Option<Millis>,
    pub end: AttemptEnd,
    pub child_run_id: Option<String>,
}

impl Attempt {
    pub fn began_at(&self) -> Millis {
        self.started_at.unwrap_or(self.dispatched_at)
    }

    pub fn queued_ms(&self) -> Option<u64> {
        Some(self.started_at?.saturating_sub(self.dispatched_at))
    }

    pub fn duration_ms(&self) -> Option<u64> {
        Some(self.ended_at?.saturating_sub(self.began_at()))
    }

    pub fn view(&self) -> Value {
        let mut view = json!({
            "epoch": self.epoch,
            "dispatched_at": self.dispatched_at,
            "queued_ms": self.queued_ms(),
            "duration_ms": self.duration_ms(),
            "ended": self.end.name(),
        });
        if let Some(run_id) = &self.child_run_id {
            view["child_run_id"] = json!(run_id);
        }
        view
    }
}

/// The attempts that were dispatched up to event `seq`.
pub(super) fn until(token: &TokenTimes, seq: u64) -> Vec<Attempt> {
    let mut attempts = all(token);
    let begun = token
        .events
        .iter()
        .filter(|event| is_start(event) && event.seq < seq)
        .count();
    attempts.truncate(begun);
    attempts
}

pub(super) fn all(token: &TokenTimes) -> Vec<Attempt> {
    let mut attempts: Vec<Attempt> = Vec::new();
    for (index, event) in token.events.iter().enumerate() {
        if !is_start(event) {
            continue;
        }
        let later = token.events[index + 1..].iter();
        let end = later
            .map(|event| (event.at, end_of(event)))
            .find_map(|(at, end)| Some((at, end?)));
        let (ended_at, end) = match (end, token.ended_at) {
            (Some((at, end)), _) => (Some(at), end),
            // It waits at a join, which is no event of its own.
            (None, Some(at)) if token.has_error => (Some(at), AttemptEnd::Failed),
            (None, Some(at)) => (Some(at), AttemptEnd::Completed),
            (None, None) => (None, AttemptEnd::Running),
        };
        // A token that waited at a join completes when that fires; its work was done when it arrived.
        let ended_at = match (end, token.joins_at.is_some()) {
            (AttemptEnd::Completed | AttemptEnd::Failed, true) => token.ended_at.or(ended_at),
            (_, _) => ended_at,
        };
        attempts.push(Attempt {
            epoch: event.epoch.unwrap_or(attempts.len() as u64 + 1),
            dispatched_at: event.at,
            started_at: match token.lane {
                Some(Lane::Queue) => None,
                Some(Lane::Direct | Lane::Inline) | None => Some(event.at),
            },
            ended_at,
            end,
            child_run_id: event.more().child_run_id.clone(),
        });
    }
    if let Some(last) = attempts.last_mut() {
        let claimed_at = token.started_at.filter(|at| *at >= last.dispatched_at);
        last.started_at = last.started_at.or(claimed_at);
    }
    attempts
}

fn is_start(event: &Noted) -> bool {
    matches!(
        event.kind,
        RunEventKind::TokenDispatched | RunEventKind::SubworkflowStarted
    )
}

/// How an attempt ended with this event, if it did.
fn end_of(event: &Noted) -> Option<AttemptEnd> {
    Some(match event.kind {
        RunEventKind::TokenDispatched | RunEventKind::SubworkflowStarted => AttemptEnd::Repeated,
        RunEventKind::TokenTimedOut if event.has_record => AttemptEnd::TimedOut,
        RunEventKind::TokenTimedOut | RunEventKind::TokenCancelled => AttemptEnd::CutOff,
        RunEventKind::TokenCompleted => AttemptEnd::Completed,
        RunEventKind::TokenFailed => AttemptEnd::Failed,
        RunEventKind::AttemptReaped => AttemptEnd::Silent,
        RunEventKind::SubworkflowEnded => match event.more().status.as_deref() {
            Some("completed") => AttemptEnd::Completed,
            Some("timed_out") => AttemptEnd::TimedOut,
            Some(_) | None => AttemptEnd::Failed,
        },
        RunEventKind::RunStarted
        | RunEventKind::RunCompleted
        | RunEventKind::RunCompensating
        | RunEventKind::RunFailed
        | RunEventKind::RunTimedOut
        | RunEventKind::RunCancelled
        | RunEventKind::RunPaused
        | RunEventKind::RunResumed
        | RunEventKind::RunExtended
        | RunEventKind::RunRetried
        | RunEventKind::RunRestarted
        | RunEventKind::TokenCreated
        | RunEventKind::TokenRetried
        | RunEventKind::FanOutStarted
        | RunEventKind::FanInStarted
        | RunEventKind::FanInCompleted
        | RunEventKind::SyncTimedOut
        | RunEventKind::GateOpened
        | RunEventKind::GateReminded
        | RunEventKind::GateDecided
        | RunEventKind::GateTimedOut
        | RunEventKind::LateResultDiscarded
        | RunEventKind::DeadlineWarning
        | RunEventKind::SignalReceived
        | RunEventKind::SubworkflowPaused
        | RunEventKind::SubworkflowResumed
        | RunEventKind::LimitExceeded
        | RunEventKind::DispatchRungAgain => return None,
    })
}
