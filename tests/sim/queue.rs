//! The queue of a world and whoever takes attempts out of it: messages that are lost, come late or twice, and consumers
//! that die with a claim, never say that they live, report twice, or report to a run that has moved on.

use curfew::run::{AttemptOrder, Event, TokenId, TokenStatus};

use super::mail::{Mail, lost};
use super::world::{Fate, World};

/// How often a consumer says that it lives.
const HEARTBEAT_MS: u64 = 10_000;
/// How often the queue delivers a message that could not be handled.
const TRIES: u64 = 3;

impl World {
    pub(super) fn enqueue(&mut self, id: &str, attempt: (TokenId, u64)) {
        if self.dice.chance(self.faults.ring_lost) {
            return;
        }
        let copies = 1 + u64::from(self.dice.chance(self.faults.duplicated));
        for _ in 0..copies {
            let delay = match self.dice.chance(self.faults.slow) {
                true => self.dice.below(60_000),
                false => self.dice.below(100),
            };
            self.rings += 1;
            let ring = Mail::Ring {
                run: id.to_string(),
                attempt,
                message: self.rings,
                tries: TRIES,
            };
            self.post(delay, ring);
        }
    }

    /// A consumer asks for the attempt of its message. What it is handed comes by `work`.
    pub(super) fn claim(&mut self, id: &str, attempt: (TokenId, u64), message: u64, tries: u64) {
        let event = Event::Claimed {
            token: attempt.0.to_string(),
            epoch: attempt.1,
            claimant: Some(format!("message-{message}")),
        };
        self.accepted = false;
        self.loses_claim = self.dice.chance(self.faults.claim_answer_lost);
        let fate = self.deliver(id, Some(event));
        let is_unheard = fate == Fate::Died || std::mem::take(&mut self.loses_claim);
        match (is_unheard, self.accepted) {
            // Nobody answered: the queue delivers it again.
            (true, _) if tries > 0 => {
                let again = Mail::Ring {
                    run: id.to_string(),
                    attempt,
                    message,
                    tries: tries - 1,
                };
                self.post(2_000, again);
            }
            (true, _) => {}
            (false, true) => self.outcome.claims += 1,
            (false, false) => self.outcome.claims_refused += 1,
        }
    }

    /// A consumer has its order.
    pub(super) fn work(&mut self, id: &str, order: AttemptOrder) {
        let attempt = (order.token, order.epoch);
        if self.loses_claim {
            self.outcome.claim_answers_lost += 1;
            return;
        }
        assert!(
            self.hosted(id).attempts.insert(attempt),
            "{id} {attempt:?} was handed out twice"
        );
        if self.dice.chance(self.faults.consumer_dies) {
            return;
        }
        let delay = match self.dice.chance(self.faults.slow) {
            true => self.dice.below(900_000),
            false => self.dice.below(400),
        };
        if !self.dice.chance(self.faults.consumer_mute) {
            let left = delay / HEARTBEAT_MS;
            self.next_heartbeat(id, attempt, left);
        }
        let (delay, event) = match self.dice.chance(self.faults.lost) {
            true => (delay, lost(attempt)),
            false => {
                let (delay, report) = self.report(id, &order, delay);
                (delay, Event::TaskReported(Box::new(report)))
            }
        };
        let copies = 1 + u64::from(self.dice.chance(self.faults.duplicated));
        for copy in 0..copies {
            let later = delay + copy * self.dice.below(50_000);
            let run = id.to_string();
            let event = event.clone();
            self.post(later, Mail::Consumer { run, attempt, event });
        }
    }

    fn next_heartbeat(&mut self, id: &str, attempt: (TokenId, u64), left: u64) {
        if left == 0 {
            return;
        }
        let run = id.to_string();
        let left = left - 1;
        self.post(HEARTBEAT_MS, Mail::Heartbeat { run, attempt, left });
    }

    pub(super) fn heartbeat(&mut self, id: &str, attempt: (TokenId, u64), left: u64) {
        let event = Event::Heartbeat {
            token: attempt.0.to_string(),
            epoch: attempt.1,
        };
        self.accepted = true;
        self.deliver(id, Some(event));
        if self.accepted {
            return self.next_heartbeat(id, attempt, left);
        }
        // Nobody needs it any more: most give up. A report that was on its way all the same changes nothing.
        if self.dice.chance(70) {
            self.mail
                .retain(|_, mail| !matches!(mail, Mail::Consumer { run, attempt: other, .. } if run == id && *other == attempt));
        }
    }

    pub(super) fn consumer_reports(&mut self, id: &str, attempt: (TokenId, u64), event: Event) {
        if self.deliver(id, Some(event.clone())) == Fate::Died {
            // It was not heard, or not answered: it is said again.
            let run = id.to_string();
            self.post(1_000, Mail::Consumer { run, attempt, event });
        }
    }

    /// Tokens that stand at their node because no call could be made for them.
    pub(super) fn count_waits_for_room(&mut self, id: &str) {
        let now = self.now;
        let Some(object) = &self.runs[id].object else {
            return;
        };
        let waits = object.run.live_tokens().filter(|token| {
            token.status == TokenStatus::Pending && token.epoch == 0 && token.watch_at == Some(now)
        });
        self.outcome.waits_for_room += waits.count() as u64;
    }
}
