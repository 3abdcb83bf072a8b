//! The state machine of a circuit breaker. Pure: `handle(now, event)` returns a decision and whether the state has changed.
//!
//! A closed breaker admits every call. Three consecutive failures open it: it refuses calls for 30 s, then admits one trial. A
//! trial that fails opens it again. Five consecutive failures escalate it: it waits 5 min between trials, and a person may reset
//! it. One success closes it. It needs no alarm, because time is only compared when an event comes.
//!
//! Failures of calls that were under way when it opened do not count: ten of them at once are one outage, not ten. While it is
//! open only trials count.

use serde::{Deserialize, Serialize};

use crate::base::time::{MINUTE, Millis, SECOND};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Consecutive failures that open it, and that escalate it.
    pub opening: u32,
    pub escalating: u32,
    /// The wait before a trial.
    pub open_ms: u64,
    pub escalated_ms: u64,
    /// How long the outcome of a trial is awaited before another call may be one.
    pub trial_ms: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            opening: 3,
            escalating: 5,
            open_ms: 30 * SECOND,
            escalated_ms: 5 * MINUTE,
            trial_ms: MINUTE,
        }
    }
}

/// The persisted state of a breaker. The default has seen no failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breaker {
    /// Consecutive failures.
    pub failures: u32,
    /// None while it is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opening: Option<Opening>,
    /// The number of the last trial. Numbers are never reused.
    #[serde(default)]
    pub trials: u64,
    /// Increases with every saved change, because messages to the index may arrive out of order.
    pub revision: u64,
    pub updated_at: Millis,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    pub opened_at: Millis,
    /// The earliest moment of the next trial.
    pub trial_at: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalated_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<Trial>,
}

/// A call that was admitted while the breaker was open. It stays the current trial until the next one begins, however late
/// its outcome comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    pub number: u64,
    /// The moment after which its outcome is not awaited any more.
    pub until: Millis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerEvent {
    /// A caller wants to make a call that ends at its deadline.
    AdmissionRequested { deadline_at: Option<Millis> },
    /// `trial` is the number of the trial, if the call was one.
    CallEnded {
        outcome: CallOutcome,
        trial: Option<u64>,
    },
    /// A person closes the breaker.
    Reset,
}

/// What the end of a call says about the dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// It responded, even if the response rejects the request.
    Alive,
    Failed,
    /// The call did not reach the dependency.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionDecision {
    /// Make the call. If there were failures, a success must be reported.
    Closed { failures: u32 },
    /// Make the call and report its outcome: all other callers wait for it.
    Trial { number: u64 },
    /// Do not make the call; ask again after this time.
    Open { retry_after_ms: u64, escalated: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    Closed,
    Open,
    /// A trial is under way.
    HalfOpen,
    /// Open, with longer waits, until a trial succeeds or a person resets it.
    Escalated,
}

impl Breaker {
    /// The decision, and whether the state has changed. A changed state is saved before the decision is sent.
    pub fn handle(
        &mut self,
        now: Millis,
        settings: &Settings,
        event: BreakerEvent,
    ) -> (AdmissionDecision, bool) {
        // The clock may jump back.
        let now = now.max(self.updated_at);
        let before = self.clone();
        match event {
            BreakerEvent::AdmissionRequested { deadline_at } => {
                if let Some(number) = self.begin_trial(now, settings, deadline_at) {
                    self.touch(now);
                    return (AdmissionDecision::Trial { number }, true);
                }
            }
            BreakerEvent::CallEnded { outcome, trial } => self.record(now, settings, outcome, trial),
            BreakerEvent::Reset => self.close(),
        }
        let changed = *self != before;
        if changed {
            self.touch(now);
        }
        (self.decision(now, settings), changed)
    }

    pub fn state(&self) -> BreakerState {
        match &self.opening {
            None => BreakerState::Closed,
            Some(opening) if opening.escalated_at.is_some() => BreakerState::Escalated,
            Some(opening) if opening.trial.is_some() => BreakerState::HalfOpen,
            Some(_) => BreakerState::Open,
        }
    }

    /// The number of the trial, if the caller may make one.
    fn begin_trial(&mut self, now: Millis, settings: &Settings, deadline_at: Option<Millis>) -> Option<u64> {
        let opening = self.opening.as_mut()?;
        if now < opening.next_trial_at() {
            return None;
        }
        let longest = now.saturating_add(settings.trial_ms);
        self.trials += 1;
        opening.trial = Some(Trial {
            number: self.trials,
            until: deadline_at.map_or(longest, |deadline| deadline.min(longest)),
        });
        Some(self.trials)
    }

    fn record(&mut self, now: Millis, settings: &Settings, outcome: CallOutcome, trial: Option<u64>) {
        let current = self.opening.as_ref().and_then(|opening| opening.trial);
        let is_current = trial.is_some() && trial == current.map(|current| current.number);
        let is_escalated = self.state() == BreakerState::Escalated;
        match outcome {
            // Only a trial ends an escalation: an older call says nothing about the present.
            CallOutcome::Alive if !is_escalated || is_current => self.close(),
            CallOutcome::Alive => {}
            CallOutcome::Failed if self.opening.is_none() || is_current => self.count_failure(now, settings),
            CallOutcome::Failed => {}
            // The trial has shown nothing. The next caller may make another.
            CallOutcome::Unknown => {
                if let Some(opening) = self.opening.as_mut().filter(|_| is_current) {
                    opening.trial = None;
                }
            }
        }
    }

    fn count_failure(&mut self, now: Millis, settings: &Settings) {
        self.failures = self.failures.saturating_add(1);
        if self.failures < settings.opening {
            return;
        }
        let before = self.opening.take();
        let escalated_at = match self.failures >= settings.escalating {
            true => before.as_ref().and_then(|it| it.escalated_at).or(Some(now)),
            false => None,
        };
        let pause_ms = match escalated_at {
            Some(_) => settings.escalated_ms,
            None => settings.open_ms,
        };
        self.opening = Some(Opening {
            opened_at: before.map_or(now, |it| it.opened_at),
            trial_at: now.saturating_add(pause_ms),
            escalated_at,
            trial: None,
        });
    }

    fn close(&mut self) {
        self.failures = 0;
        self.opening = None;
    }

    fn decision(&self, now: Millis, settings: &Settings) -> AdmissionDecision {
        match &self.opening {
            None => AdmissionDecision::Closed {
                failures: self.failures,
            },
            Some(opening) => {
                let wait_ms = opening.next_trial_at().saturating_sub(now);
                // Most trials end long before `until`.
                let wait_ms = match opening.trial {
                    Some(_) => wait_ms.min(settings.open_ms),
                    None => wait_ms,
                };
                AdmissionDecision::Open {
                    retry_after_ms: wait_ms,
                    escalated: opening.escalated_at.is_some(),
                }
            }
        }
    }

    fn touch(&mut self, now: Millis) {
        self.revision += 1;
        self.updated_at = now;
    }
}

impl Opening {
    fn next_trial_at(&self) -> Millis {
        match self.trial {
            Some(trial) => trial.until,
            None => self.trial_at,
        }
    }
}
