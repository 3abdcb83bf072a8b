//! What a breaker decides. Pure: `handle(now, event)` answers, and says whether there is something to save.
//!
//! Closed: everybody calls. Three failures in a row open it: nobody calls for 30 s, then one caller may try. A trial that
//! fails opens it again; at five failures in a row it is escalated, which is open with 5 min between trials, and a
//! person may reset it. One success closes it. No alarm: whoever asks next finds out what time it is.
//!
//! Calls that were under way when it opened say nothing new when they fail: ten of them at once are one outage, not ten,
//! so only trials count then.

use serde::{Deserialize, Serialize};

use crate::base::time::{MINUTE, Millis, SECOND};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Failures in a row that open it, and that make it a person's matter.
    pub opening: u32,
    pub escalating: u32,
    /// Between opening and the next trial.
    pub open_ms: u64,
    pub escalated_ms: u64,
    /// How long a trial may stay without a word before another caller may try.
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

/// A breaker as it is kept. The default is one that nothing ever happened to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breaker {
    /// Failures in a row.
    pub failures: u32,
    /// None: closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opening: Option<Opening>,
    /// Trials ever given, so that none is taken for another.
    #[serde(default)]
    pub trials: u64,
    /// Counts what was saved: news may overtake each other.
    pub revision: u64,
    pub updated_at: Millis,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    pub opened_at: Millis,
    /// From when on one caller may try.
    pub trial_at: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalated_at: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<Trial>,
}

/// A call that was let through. It stays the current one until the next is given, however late it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    pub number: u64,
    /// Not waited for any longer than this.
    pub until: Millis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Somebody wants to call, and will have given up at its deadline.
    Asked { deadline_at: Option<Millis> },
    /// A call ended; `trial` if it was one.
    Reported { outcome: Outcome, trial: Option<u64> },
    /// A person says that all is well.
    Reset,
}

/// What a call says about the dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is there: it answered, if only that the request was wrong.
    Alive,
    Failed,
    /// Nothing: the call never got as far as the dependency.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Call. With failures before it, a success is news.
    Closed { failures: u32 },
    /// Call, and say how it went: everybody else waits for it.
    Trial { number: u64 },
    /// Do not call; ask again after this long.
    Open { retry_after_ms: u64, escalated: bool },
}

/// How a breaker stands, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    Closed,
    Open,
    /// A trial is under way.
    HalfOpen,
    /// Open, and a person is wanted.
    Escalated,
}

impl Breaker {
    /// The answer, and whether the breaker is another one now: then it is saved before anybody hears the answer.
    pub fn handle(&mut self, now: Millis, settings: &Settings, event: Event) -> (Answer, bool) {
        // A clock that jumps back must not make it younger.
        let now = now.max(self.updated_at);
        let before = self.clone();
        match event {
            Event::Asked { deadline_at } => {
                if let Some(number) = self.give_trial(now, settings, deadline_at) {
                    self.touch(now);
                    return (Answer::Trial { number }, true);
                }
            }
            Event::Reported { outcome, trial } => self.hear(now, settings, outcome, trial),
            Event::Reset => self.close(),
        }
        let changed = *self != before;
        if changed {
            self.touch(now);
        }
        (self.answer(now, settings), changed)
    }

    pub fn standing(&self) -> Standing {
        match &self.opening {
            None => Standing::Closed,
            Some(opening) if opening.escalated_at.is_some() => Standing::Escalated,
            Some(opening) if opening.trial.is_some() => Standing::HalfOpen,
            Some(_) => Standing::Open,
        }
    }

    /// The number of the trial, if this caller gets one.
    fn give_trial(&mut self, now: Millis, settings: &Settings, deadline_at: Option<Millis>) -> Option<u64> {
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

    fn hear(&mut self, now: Millis, settings: &Settings, outcome: Outcome, trial: Option<u64>) {
        let current = self.opening.as_ref().and_then(|opening| opening.trial);
        let is_current = trial.is_some() && trial == current.map(|current| current.number);
        let is_escalated = self.standing() == Standing::Escalated;
        match outcome {
            // Only a trial made after the escalation ends it: an older call tells of an older time.
            Outcome::Alive if !is_escalated || is_current => self.close(),
            Outcome::Alive => {}
            Outcome::Failed if self.opening.is_none() || is_current => self.count_failure(now, settings),
            Outcome::Failed => {}
            // It was no trial: the next who asks gets another.
            Outcome::Unknown => {
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

    fn answer(&self, now: Millis, settings: &Settings) -> Answer {
        match &self.opening {
            None => Answer::Closed {
                failures: self.failures,
            },
            Some(opening) => {
                let wait_ms = opening.next_trial_at().saturating_sub(now);
                // Most trials are over long before they have to be.
                let wait_ms = match opening.trial {
                    Some(_) => wait_ms.min(settings.open_ms),
                    None => wait_ms,
                };
                Answer::Open {
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
