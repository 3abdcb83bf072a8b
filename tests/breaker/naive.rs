//! The breaker as the contract's sentences have it, with nothing clever: the whole history is kept and read again for
//! every question.

use curfew::base::time::Millis;
use curfew::breaker::machine::{AdmissionDecision, CallOutcome, Settings};

/// What happened, in order.
#[derive(Clone, Copy, Debug)]
enum Fact {
    Closed,
    Failure(Millis),
    TrialGiven { number: u64, until: Millis },
    TrialBack { number: u64 },
}

#[derive(Debug)]
pub struct Naive {
    settings: Settings,
    facts: Vec<Fact>,
    trials: u64,
}

impl Naive {
    pub fn new(settings: Settings) -> Naive {
        Naive {
            settings,
            facts: Vec::new(),
            trials: 0,
        }
    }

    /// "one success closes it": what was before does not matter.
    fn since_closed(&self) -> &[Fact] {
        let last = self.facts.iter().rposition(|fact| matches!(fact, Fact::Closed));
        &self.facts[last.map_or(0, |at| at + 1)..]
    }

    fn failures(&self) -> Vec<Millis> {
        let facts = self.since_closed().iter();
        facts
            .filter_map(|fact| match fact {
                Fact::Failure(at) => Some(*at),
                Fact::Closed | Fact::TrialGiven { .. } | Fact::TrialBack { .. } => None,
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

    /// The trial given last, if nothing was heard of it.
    pub fn trial(&self) -> Option<(u64, Millis)> {
        let mut current = None;
        for fact in self.since_closed() {
            match fact {
                Fact::TrialGiven { number, until } => current = Some((*number, *until)),
                // A failed trial is one no more; one that was given back never was.
                Fact::Failure(_) => current = None,
                Fact::TrialBack { number } if current.is_some_and(|(it, _)| it == *number) => current = None,
                Fact::TrialBack { .. } | Fact::Closed => {}
            }
        }
        current
    }

    /// "open it for 30 s, then one trial"; "a trial after 5 min"; one that nobody reports is given again.
    fn may_try_at(&self) -> Millis {
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
        if self.is_open() && now >= self.may_try_at() {
            self.trials += 1;
            let longest = now + self.settings.trial_ms;
            self.facts.push(Fact::TrialGiven {
                number: self.trials,
                until: deadline_at.unwrap_or(longest).min(longest),
            });
            return AdmissionDecision::Trial { number: self.trials };
        }
        self.look(now)
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
                    self.facts.push(Fact::TrialBack { number });
                }
            }
        }
        self.look(now)
    }

    pub fn reset(&mut self, now: Millis) -> AdmissionDecision {
        self.facts.push(Fact::Closed);
        self.look(now)
    }

    fn look(&self, now: Millis) -> AdmissionDecision {
        if !self.is_open() {
            let failures = self.failures().len() as u32;
            return AdmissionDecision::Closed { failures };
        }
        let wait_ms = self.may_try_at().saturating_sub(now);
        AdmissionDecision::Open {
            retry_after_ms: match self.trial() {
                Some(_) => wait_ms.min(self.settings.open_ms),
                None => wait_ms,
            },
            escalated: self.is_escalated(),
        }
    }
}
