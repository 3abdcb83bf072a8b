//! A model of the breaker that follows the sentences of its contract: it keeps the whole history and reads it again for every
//! decision.

use curfew::base::time::Millis;
use curfew::breaker::machine::{AdmissionDecision, CallOutcome, Settings};

/// What happened, in order.
#[derive(Clone, Copy, Debug)]
enum Fact {
    Closed,
    Failure(Millis),
    TrialBegan { number: u64, until: Millis },
    TrialVoid { number: u64 },
}

#[derive(Debug)]
pub struct ModelBreaker {
    settings: Settings,
    facts: Vec<Fact>,
    trials: u64,
}

impl ModelBreaker {
    pub fn new(settings: Settings) -> ModelBreaker {
        ModelBreaker {
            settings,
            facts: Vec::new(),
            trials: 0,
        }
    }

    /// "one success closes it": nothing before it counts.
    fn since_closed(&self) -> &[Fact] {
        let last = self.facts.iter().rposition(|fact| matches!(fact, Fact::Closed));
        &self.facts[last.map_or(0, |at| at + 1)..]
    }

    fn failures(&self) -> Vec<Millis> {
        let facts = self.since_closed().iter();
        facts
            .filter_map(|fact| match fact {
                Fact::Failure(at) => Some(*at),
                Fact::Closed | Fact::TrialBegan { .. } | Fact::TrialVoid { .. } => None,
            })
            .collect()
    }

    /// "3 consecutive failures open it"
    pub fn is_open(&self) -> bool {
        self.failures().len() as u32 >= self.settings.opening
    }

    /// "5 consecutive failures escalate"
    pub fn is_escalated(&self) -> bool {
        self.failures().len() as u32 >= self.settings.escalating
    }

    /// The last trial, if its outcome was not reported.
    pub fn trial(&self) -> Option<(u64, Millis)> {
        let mut current = None;
        for fact in self.since_closed() {
            match fact {
                Fact::TrialBegan { number, until } => current = Some((*number, *until)),
                // A trial that failed has ended; a void one does not count.
                Fact::Failure(_) => current = None,
                Fact::TrialVoid { number } if current.is_some_and(|(it, _)| it == *number) => current = None,
                Fact::TrialVoid { .. } | Fact::Closed => {}
            }
        }
        current
    }

    /// "open it for 30 s, then one trial"; "a trial after 5 min"; a trial without a report is repeated.
    fn trial_allowed_at(&self) -> Millis {
        if let Some((_, until)) = self.trial() {
            return until;
        }
        let last = self.failures().last().copied().unwrap_or(0);
        last + match self.is_escalated() {
            true => self.settings.escalated_ms,
            false => self.settings.open_ms,
        }
    }

    pub fn ask(&mut self, now: Millis, deadline_at: Option<Millis>) -> AdmissionDecision {
        if self.is_open() && now >= self.trial_allowed_at() {
            self.trials += 1;
            let longest = now + self.settings.trial_ms;
            self.facts.push(Fact::TrialBegan {
                number: self.trials,
                until: deadline_at.unwrap_or(longest).min(longest),
            });
            return AdmissionDecision::Trial { number: self.trials };
        }
        self.decision(now)
    }

    pub fn report(&mut self, now: Millis, outcome: CallOutcome, trial: Option<u64>) -> AdmissionDecision {
        let is_trial = trial.is_some() && trial == self.trial().map(|(number, _)| number);
        match outcome {
            // "it stays open until a person resets it, or a trial succeeds"
            CallOutcome::Alive if self.is_escalated() && !is_trial => {}
            CallOutcome::Alive => self.facts.push(Fact::Closed),
            CallOutcome::Failed if self.is_open() && !is_trial => {}
            CallOutcome::Failed => self.facts.push(Fact::Failure(now)),
            CallOutcome::Unknown => {
                if let Some(number) = trial {
                    self.facts.push(Fact::TrialVoid { number });
                }
            }
        }
        self.decision(now)
    }

    pub fn reset(&mut self, now: Millis) -> AdmissionDecision {
        self.facts.push(Fact::Closed);
        self.decision(now)
    }

    fn decision(&self, now: Millis) -> AdmissionDecision {
        if !self.is_open() {
            let failures = self.failures().len() as u32;
            return AdmissionDecision::Closed { failures };
        }
        let wait_ms = self.trial_allowed_at().saturating_sub(now);
        AdmissionDecision::Open {
            retry_after_ms: match self.trial() {
                Some(_) => wait_ms.min(self.settings.open_ms),
                None => wait_ms,
            },
            escalated: self.is_escalated(),
        }
    }
}
