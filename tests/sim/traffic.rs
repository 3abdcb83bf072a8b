//! What the runs of a world send: orders to the executor, letters to each other, and what becomes of them on the way.

use curfew::protocol::task::{Checkpoint, ReportStatus, TaskReport};
use curfew::run::{AttemptOrder, CallbackResult, Capability, Event, Message, TokenId};
use serde_json::json;

use super::events::events_of;
use super::mail::{Content, Mail, lost};
use super::world::World;
use crate::run::clockwork::asked_by_parent;
use crate::run::driver::{Start, failed, succeeded, timed_out};

impl World {
    /// A message leaves; it may be lost, come late or come twice.
    pub(super) fn send(&mut self, from: &str, id: u64, message: &Message) {
        let hosted = &self.runs[from];
        let Some(object) = &hosted.object else { return };
        let life = hosted.life;
        let events = "events".to_string();
        let (to, content) = match message {
            Message::Emit {
                key, payload, after, ..
            } => {
                let (key, payload, after) = (key.clone(), payload.clone(), after.clone());
                (&events, Content::Raise { key, payload, after })
            }
            Message::StartChild { run_id, .. } => {
                let start = Start::asked_by(&object.run, message).expect("a node that calls knows whom");
                (run_id, Content::Start(Box::new(start)))
            }
            Message::CancelChild { run_id, .. } | Message::HoldChild { run_id, .. } => {
                let event = asked_by_parent(from, message).expect("a parent's message");
                (run_id, Content::Say(event))
            }
            Message::TellParent { run_id, news } => {
                (run_id, Content::Say(Event::ChildNews(Box::new(news.clone()))))
            }
            Message::NotifyParent { run_id, report } => {
                (run_id, Content::Say(Event::ChildEnded(Box::new(report.clone()))))
            }
        };
        self.outcome.letters += 1;
        if self.dice.chance(self.faults.letter_lost) {
            self.outcome.letters_lost += 1;
            if self.dice.chance(50) {
                let event = Event::DeliveryFailed { id, is_gone: false };
                self.post(
                    500,
                    Mail::Receipt {
                        run: from.to_string(),
                        life,
                        event,
                    },
                );
            }
            return;
        }
        let copies = 1 + u64::from(self.dice.chance(self.faults.duplicated));
        for _ in 0..copies {
            let delay = match self.dice.chance(self.faults.slow) {
                true => self.dice.below(15_000),
                false => self.dice.below(300),
            };
            let letter = Mail::Letter {
                from: from.to_string(),
                life,
                id,
                to: to.clone(),
                content: content.clone(),
            };
            self.post(delay, letter);
        }
    }

    /// The executor takes an order; how its answer travels is the faults' matter.
    pub(super) fn call(&mut self, id: &str, order: AttemptOrder) {
        let attempt = (order.token, order.epoch);
        assert!(
            self.hosted(id).attempts.insert(attempt),
            "{id} {attempt:?} was ordered twice"
        );
        if self.dice.chance(self.faults.vanished) {
            return;
        }
        if let Some(object) = &mut self.hosted(id).object {
            object.open_calls.insert(attempt);
        }
        let delay = match self.dice.chance(self.faults.slow) {
            true => self.dice.below(200_000),
            false => self.dice.below(400),
        };
        if self.dice.chance(self.faults.silent) {
            // Without any limit the run would rightly wait for ever: there the connection breaks one day.
            if order.deadline_at.is_none() {
                self.post(600_000, self.answer(id, attempt, lost(attempt)));
            }
            return;
        }
        if self.dice.chance(self.faults.lost) {
            return self.post(delay, self.answer(id, attempt, lost(attempt)));
        }
        let (delay, report) = self.report(id, &order, delay);
        if self.dice.chance(self.faults.duplicated) {
            let again = delay + self.dice.below(50_000);
            let event = Event::TaskReported(Box::new(report.clone()));
            self.post(again, self.answer(id, attempt, event));
        }
        self.post(
            delay,
            self.answer(id, attempt, Event::TaskReported(Box::new(report))),
        );
    }

    /// Whoever was handed the capability of an async action brings its result, once, twice or never.
    fn call_back(&mut self, id: &str, order: &AttemptOrder, delay: u64) {
        let text = order.capability.as_deref().unwrap_or_default();
        let Some(capability) = Capability::parse(text).filter(|_| !self.dice.chance(self.faults.lost)) else {
            return;
        };
        let attempt = format!("{id}/{}@{}", order.token, order.epoch);
        let copies = 1 + u64::from(self.dice.chance(self.faults.duplicated));
        for _ in 0..copies {
            let most = *self.dice.pick(&[300, 40_000]);
            let later = delay + self.dice.below(most);
            let event = Event::CallbackReceived {
                capability: Box::new(capability.clone()),
                result: Box::new(CallbackResult::Output(
                    json!({"attempt": attempt, "epoch": order.epoch}),
                )),
            };
            self.outcome.callbacks += 1;
            let mail = Mail::Consumer {
                run: id.to_string(),
                attempt: (order.token, order.epoch),
                event,
            };
            self.post(later, mail);
        }
    }

    pub(super) fn report(&mut self, id: &str, order: &AttemptOrder, delay: u64) -> (u64, TaskReport) {
        let name = format!("{}@{}", order.token, order.epoch);
        let left = order.deadline_at.map(|at| at.saturating_sub(self.now));
        if let Some(left) = left.filter(|left| *left < delay) {
            let mut report = timed_out(&name);
            report.checkpoint = Some(Box::new(halfway())).filter(|_| self.dice.chance(50));
            return (left, report);
        }
        if order.capability.is_some() {
            self.call_back(id, order, delay);
            let report = TaskReport {
                status: ReportStatus::Suspended,
                ..succeeded(&name, json!({"status": 202}))
            };
            return (delay, report);
        }
        let report = match self.dice.below(20) {
            number @ 0..=17 => {
                let attempt = format!("{id}/{name}");
                let emits = number.saturating_sub(14);
                let mut output = json!({"attempt": attempt, "epoch": order.epoch, "emits": emits});
                if self.dice.chance(self.faults.oversized) {
                    let bytes = *self.dice.pick(&[300_000, 520_000, 600_000]);
                    output["padding"] = json!("x".repeat(bytes));
                }
                TaskReport {
                    events: events_of(&attempt, emits),
                    ..succeeded(&name, output)
                }
            }
            18 => failed(&name),
            _ => timed_out(&name),
        };
        (delay, report)
    }

    pub(super) fn answer(&self, id: &str, attempt: (TokenId, u64), event: Event) -> Mail {
        Mail::Answer {
            run: id.to_string(),
            life: self.runs[id].life,
            attempt,
            event,
        }
    }

    pub(super) fn post(&mut self, delay: u64, mail: Mail) {
        self.posted += 1;
        self.mail.insert((self.now + delay, self.posted), mail);
    }
}

/// What an executor had done when its time was over.
fn halfway() -> Checkpoint {
    Checkpoint {
        next: "second".into(),
        state: json!({"first": 1}),
        output: json!({}),
        wrote_output: false,
        last_result: json!(1),
        steps: Vec::new(),
        events: Vec::new(),
        rounds_before: 0,
    }
}
