//! Where an attempt of a replay departs from the recorded one, because its limits, its task or its duration are others.
//!
//! The recording has when each call began and ended, and what the last one came to. So it is known that a call is cut, or that a
//! retry would begin too late, and when; what the task makes of that is not.

use crate::base::failure::FailureClass;
use crate::base::time::format_duration;
use crate::protocol::task::{ActionTimeouts, NOT_TRIED_AGAIN, StepReport, StepStatus};
use crate::replay::comparison::TOLERANCE_MS;
use crate::replay::outcome::AttemptEnd;
use crate::replay::recorded_calls::RecordedAttempt;
use crate::replay::recorded_tasks::{ComparedTask, Difference, StepLimits};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// After the order.
    pub after_ms: u64,
    pub kind: DepartureKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DepartureKind {
    /// The executor cuts the call under way at the attempt's limit, and reports that.
    Cut(Option<CutCall>),
    /// What comes of it is not recorded, and why.
    Unknown(String),
}

/// A call that is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutCall {
    pub step_ref: String,
    pub lasted_ms: u64,
}

/// The limits of an attempt.
#[derive(Clone, Copy, Debug)]
pub struct AttemptLimits {
    pub attempt_ms: Option<u64>,
    /// That of its executor, which may be longer: the run decides first.
    pub executor_ms: Option<u64>,
    /// How long after its order the run ends.
    pub run_ms: Option<u64>,
    pub actions: ActionTimeouts,
    /// Tells the input of the attempt from others.
    pub input: u64,
}

impl AttemptLimits {
    fn are_same(self, other: AttemptLimits) -> bool {
        self.attempt_ms == other.attempt_ms
            && self.actions == other.actions
            && is_close(self.executor_ms, other.executor_ms)
            && is_close(self.run_ms, other.run_ms)
    }

    fn are_longer(self, other: AttemptLimits) -> bool {
        let is_longer = |one: Option<u64>, other: Option<u64>| {
            other.is_some_and(|other| one.is_none_or(|one| one > other.saturating_add(TOLERANCE_MS)))
        };
        is_longer(self.executor_ms, other.executor_ms) || is_longer(self.run_ms, other.run_ms)
    }
}

fn is_close(one: Option<u64>, other: Option<u64>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.abs_diff(other) <= TOLERANCE_MS,
        (one, other) => one == other,
    }
}

/// The first departure. `None`: the attempt goes as recorded. `before`: the limits in the recording, if they are known.
pub fn departure(
    recorded: &RecordedAttempt,
    task: &ComparedTask<'_>,
    limits: AttemptLimits,
    before: Option<&AttemptLimits>,
) -> Option<Departure> {
    if let Some(unknown) = other_work(task, limits, before) {
        return Some(unknown);
    }
    let is_same = before.is_some_and(|before| limits.are_same(*before));
    if is_same && task.difference == Difference::None && !recorded.is_longer {
        return where_it_stops(recorded);
    }
    // One that something else ended, such as a pause, may have met its own limit, too.
    let is_open = matches!(recorded.end, AttemptEnd::Open { .. });
    let is_same_limit = match before {
        Some(before) => !recorded.is_longer && is_close(before.executor_ms, limits.executor_ms),
        None => recorded.limit.is_same_as(limits.attempt_ms),
    };
    let of_attempt = limits.executor_ms.filter(|_| is_open || !is_same_limit);
    let of_task = task
        .limit_ms()
        .filter(|_| is_open || task.difference == Difference::Limits);
    let cut_ms = of_attempt
        .into_iter()
        .chain(of_task)
        .filter(|limit| *limit <= recorded.lasted_ms)
        .min();
    let ends_ms = cut_ms.into_iter().chain(limits.run_ms).min();
    let has_new_limits = task.difference == Difference::Limits || recorded.is_longer;
    let has_more_time = recorded.limit.is_extended_by(limits.attempt_ms)
        || before.is_none_or(|before| limits.are_longer(*before));
    let mut found = vec![at_the_end(recorded, task, limits, has_more_time)];
    match calls_of(recorded, task) {
        Ok(calls) => {
            for (number, call) in calls.iter().enumerate() {
                found.push(call.retry_too_late(ends_ms));
                if has_new_limits {
                    let limit = task.step_limit(call.reference, limits.actions);
                    let next = calls.get(number + 1).filter(|next| next.failed_as.is_some());
                    found.push(call.retry_after_total(limit.total_ms));
                    found.push(call.cut(limit));
                    found.push(next.and_then(|next| call.retried_otherwise(task, next)));
                }
            }
            found.push(cut_ms.map(|after_ms| Departure {
                after_ms,
                kind: DepartureKind::Cut(calls.iter().find_map(|call| call.under_way(after_ms))),
            }));
        }
        Err(why) => {
            let is_shortened = ends_ms.is_some_and(|ends| ends <= recorded.lasted_ms);
            if task.difference == Difference::Limits
                || is_shortened
                || (recorded.is_longer && task.has_limits())
            {
                found.push(Some(unknown(0, why)));
            }
        }
    }
    let is_cut = |departure: &Departure| match departure.kind {
        DepartureKind::Cut(_) => true,
        DepartureKind::Unknown(_) => false,
    };
    let first = |departure: &Departure| (departure.after_ms, !is_cut(departure));
    found.into_iter().flatten().min_by_key(first)
}

/// What the attempt has to do is not what it did.
pub fn other_work(
    task: &ComparedTask<'_>,
    limits: AttemptLimits,
    before: Option<&AttemptLimits>,
) -> Option<Departure> {
    if task.difference == Difference::Task {
        return Some(unknown(0, "its task is another one than in the recording"));
    }
    // Calls answer as they did, whatever they are asked; what the task computes by itself follows from its input.
    let has_other_input = before.is_some_and(|before| before.input != limits.input);
    (has_other_input && task.computes()).then(|| {
        let why = "its input is another one than in the recording, and the task computes with it";
        unknown(0, why)
    })
}

fn unknown(after_ms: u64, why: impl Into<String>) -> Departure {
    Departure {
        after_ms,
        kind: DepartureKind::Unknown(why.into()),
    }
}

/// Whether the recorded end would be another one, although everything before it is the same.
fn at_the_end(
    recorded: &RecordedAttempt,
    task: &ComparedTask<'_>,
    limits: AttemptLimits,
    has_more_time: bool,
) -> Option<Departure> {
    let lasted_ms = recorded.lasted_ms;
    let has_other_limits = task.difference == Difference::Limits;
    let is_cut_later = match recorded.limit.was_cut_inside() {
        // A call that was cut is tried again if there is time.
        true => has_more_time && !task.never_retries(),
        false => {
            let latest_ms = lasted_ms.saturating_add(TOLERANCE_MS);
            let is_extended = recorded.limit.is_extended_by(limits.attempt_ms);
            is_extended || limits.executor_ms.is_none_or(|limit| limit > latest_ms)
        }
    };
    let at_end = |why: &str| Some(unknown(lasted_ms, why));
    match &recorded.end {
        AttemptEnd::Failed { error, .. } => {
            if has_other_limits {
                return at_end("the task failed, and its limits or retries are others than in the recording");
            }
            // It could be tried again if there was more time.
            let (_, advice) = error.message.split_once(NOT_TRIED_AGAIN)?;
            let is_of_attempt = advice.contains("the attempt's deadline");
            let is_of_total = advice.contains("total_timeout");
            let ends_first = limits
                .run_ms
                .is_some_and(|run| limits.attempt_ms.is_none_or(|limit| run < limit));
            let is_same_limit = recorded.limit.is_same_as(limits.attempt_ms)
                && limits.executor_ms == limits.attempt_ms
                && !ends_first;
            let is_same = is_of_total || (is_of_attempt && is_same_limit);
            match is_same && !recorded.is_longer {
                true => None,
                false => at_end(
                    "it was not tried again for lack of time, and whether that would be so is not recorded",
                ),
            }
        }
        // A step that failed, and whose failure the task went on with, may have lacked time, too.
        AttemptEnd::Completed { steps, .. } => {
            let is_failed =
                |step: &StepReport| matches!(step.status, StepStatus::Failed | StepStatus::TimedOut);
            let has_failed = steps.iter().any(is_failed);
            match has_failed && (has_other_limits || has_more_time) {
                true => Some(unknown(
                    0,
                    "one of its steps failed, and its limits are others than in the recording",
                )),
                false => None,
            }
        }
        AttemptEnd::TimedOut { .. } if is_cut_later => {
            let lasted = format_duration(lasted_ms);
            Some(unknown(
                lasted_ms,
                format!("it had not answered when it was cut after {lasted}"),
            ))
        }
        AttemptEnd::TimedOut { .. } if has_other_limits && recorded.limit.was_cut_inside() => {
            at_end("the task failed, and its limits or retries are others than in the recording")
        }
        AttemptEnd::TimedOut { .. } | AttemptEnd::Lost => None,
        AttemptEnd::Open { .. } => match recorded.answered_after {
            Some(after_ms) => Some(unknown(
                after_ms,
                "what it answered to the join that it waited at is not recorded",
            )),
            None => where_it_stops(recorded),
        },
    }
}

/// What the recording does not have is not known in an unchanged run, either.
pub fn where_it_stops(recorded: &RecordedAttempt) -> Option<Departure> {
    let AttemptEnd::Open { is_under_way } = recorded.end else {
        return None;
    };
    let why = match is_under_way {
        true => "it had not answered when the run was exported",
        false => "something else had ended it before it answered",
    };
    Some(unknown(recorded.lasted_ms, why))
}

/// A call as it was, in milliseconds after the order.
struct Call<'a> {
    /// The `ref` of its step.
    reference: &'a str,
    step_begins_ms: u64,
    begins_ms: u64,
    ends_ms: u64,
    /// When the call before it failed. `None`: it is the first one of its step.
    failed_ms: Option<u64>,
    failed_as: Option<FailureClass>,
}

impl Call<'_> {
    /// A limit that passes when a call ends has cut it.
    fn under_way(&self, after_ms: u64) -> Option<CutCall> {
        (self.begins_ms <= after_ms && after_ms <= self.ends_ms).then(|| CutCall {
            step_ref: self.reference.to_string(),
            lasted_ms: after_ms - self.begins_ms,
        })
    }

    fn retry_too_late(&self, ends_ms: Option<u64>) -> Option<Departure> {
        let failed_ms = self.failed_ms?;
        ends_ms.filter(|ends| self.begins_ms >= *ends)?;
        let class = self.failed_as.map_or("failure", FailureClass::name);
        let why = format!(
            "step \"{}\" would not be tried again after its {class}, because the next call would begin too late",
            self.reference
        );
        Some(unknown(failed_ms, why))
    }

    fn retry_after_total(&self, total_ms: Option<u64>) -> Option<Departure> {
        let ends_ms = total_ms.map(|total| self.step_begins_ms.saturating_add(total));
        self.retry_too_late(ends_ms)
    }

    /// It was followed by `next`, which would begin at another moment, or after a longer wait for this one.
    fn retried_otherwise(&self, task: &ComparedTask<'_>, next: &Call<'_>) -> Option<Departure> {
        let lacked_time =
            next.failed_as == Some(FailureClass::Timeout) && task.difference == Difference::Limits;
        let is_same = task.retries_as_recorded(self.reference) && !lacked_time;
        let why = format!(
            "step \"{}\" was tried again, and its limits or retries are others than in the recording",
            self.reference
        );
        (!is_same).then(|| unknown(self.ends_ms, why))
    }

    fn cut(&self, limit: StepLimits) -> Option<Departure> {
        let of_call = limit.call_ms.map(|millis| self.begins_ms.saturating_add(millis));
        let of_step = limit
            .total_ms
            .map(|millis| self.step_begins_ms.saturating_add(millis));
        let cut_ms = of_call
            .into_iter()
            .chain(of_step)
            .min()
            .filter(|cut| *cut <= self.ends_ms)?;
        let why = format!(
            "a call of step \"{}\" took {}: it would be cut, and what follows from that is not recorded",
            self.reference,
            format_duration(self.ends_ms.saturating_sub(self.begins_ms))
        );
        // A retry that would begin after the end of its step is not made.
        (cut_ms > self.begins_ms).then(|| unknown(cut_ms, why))
    }
}

/// The calls of the attempt, in order. An error says why they are not known.
fn calls_of<'a>(recorded: &'a RecordedAttempt, task: &'a ComparedTask<'_>) -> Result<Vec<Call<'a>>, String> {
    if task.repeats() {
        return Err("the task may have begun again, and only its last round is recorded".into());
    }
    let steps = recorded.end.steps();
    if steps.is_empty() {
        return call_without_report(recorded, task);
    }
    let mut calls = Vec::new();
    let mut step_begins_ms: u64 = 0;
    for step in steps {
        if step.status == StepStatus::Skipped {
            continue;
        }
        let ends_ms = step_begins_ms.saturating_add(step.duration_ms);
        let several = format!(
            "step \"{}\" made {} calls, and how long each took is not recorded",
            step.reference, step.attempts
        );
        if step.retries.len() + 1 != step.attempts.max(1) as usize {
            return Err(several);
        }
        let (mut begins_ms, mut failed_ms, mut failed_as) = (step_begins_ms, None, None);
        for retry in &step.retries {
            let Some(after_ms) = retry.after_ms else {
                return Err(several);
            };
            let fails_ms = step_begins_ms.saturating_add(after_ms).min(ends_ms);
            calls.push(Call {
                reference: &step.reference,
                step_begins_ms,
                begins_ms,
                ends_ms: fails_ms,
                failed_ms,
                failed_as,
            });
            (failed_ms, failed_as) = (Some(fails_ms), Some(retry.class));
            begins_ms = fails_ms.saturating_add(retry.delay_ms).min(ends_ms);
        }
        calls.push(Call {
            reference: &step.reference,
            step_begins_ms,
            begins_ms,
            ends_ms,
            failed_ms,
            failed_as,
        });
        step_begins_ms = ends_ms;
    }
    Ok(calls)
}

/// An attempt that was ended from outside has no report, and of several attempts only the last one's is kept.
fn call_without_report<'a>(
    recorded: &RecordedAttempt,
    task: &'a ComparedTask<'_>,
) -> Result<Vec<Call<'a>>, String> {
    match (task.steps(), task.never_retries()) {
        ([step], true) => Ok(vec![Call {
            reference: step["ref"].as_str().unwrap_or_default(),
            step_begins_ms: 0,
            begins_ms: 0,
            ends_ms: recorded.lasted_ms,
            failed_ms: None,
            failed_as: None,
        }]),
        // Whichever step it was in.
        (_, true) if task.difference == Difference::None => Ok(Vec::new()),
        (_, _) => Err("the calls of this attempt are not recorded".into()),
    }
}
