//! One seed's world: a clock, an object that may die at any moment, its store, an executor and the network between.
//!
//! The object does what the platform shell does: what is due goes first, a decision and its alarm are saved together,
//! orders are carried out after that.

use std::collections::{BTreeMap, BTreeSet};

use curfew::engine::{Effect, Event, Order, Run, Settings, TokenId};
use curfew::model::time::Millis;
use curfew::store::commit::Commit;
use curfew::wire::TaskReport;
use serde_json::{Value, json};

use super::faults::Faults;
use super::mail::{Mail, lost};
use super::outcome::Outcome;
use super::store::Store;
use crate::engine::dice::Dice;
use crate::engine::driver::{create_run, failed, render, store_document, succeeded, timed_out};
use crate::engine::generator;

const SETTINGS: Settings = Settings {
    workflow_timeout_ms: 3_600_000,
    grace_ms: 500,
    watch_ms: 30_000,
    lost_max: 5,
    retention_ms: 86_400_000,
};

/// Faults happen in the first so many events, then the world is kind.
const UNKIND_EVENTS: u64 = 150;
/// No run of the generator needs as many; one that does is stuck.
const EVENTS_MAX: u64 = 5_000;

/// The object in memory.
struct Object {
    run: Run,
    open_calls: BTreeSet<(TokenId, u64)>,
}

#[derive(PartialEq)]
enum Fate {
    Survived,
    Died,
}

pub struct World {
    dice: Dice,
    faults: Faults,
    trace: bool,
    now: Millis,
    life: u64,
    store: Store,
    /// When the alarm of the store will really ring.
    rings_at: Option<Millis>,
    object: Option<Object>,
    mail: BTreeMap<(Millis, u64), Mail>,
    posted: u64,
    attempts: BTreeSet<(TokenId, u64)>,
    deleted: bool,
    outcome: Outcome,
}

impl World {
    pub fn new(seed: u64, trace: bool) -> World {
        let mut dice = Dice::seeded(seed);
        let faults = Faults::of(&mut dice);
        let document = generator::workflow(&mut dice);
        if trace {
            println!("{faults:?}\n{document:#}");
        }
        let now = 1_000_000;
        let input = json!({"x": dice.below(4)});
        let (run, effects) = create_run(now, SETTINGS, store_document(&document), input);
        let mut world = World {
            dice,
            faults,
            trace,
            now,
            life: 1,
            store: Store::default(),
            rings_at: None,
            object: None,
            mail: BTreeMap::new(),
            posted: 0,
            attempts: BTreeSet::new(),
            deleted: false,
            outcome: Outcome::default(),
        };
        world.object = Some(Object {
            run,
            open_calls: BTreeSet::new(),
        });
        // A start that was never saved is no run: whoever asked for it asks again.
        world.commit(&effects);
        world.perform(effects);
        world
    }

    pub fn run(mut self) -> Outcome {
        while !self.deleted {
            self.outcome.events += 1;
            assert!(
                self.outcome.events < EVENTS_MAX,
                "the run is stuck: {:?}",
                self.store
            );
            if self.outcome.events == UNKIND_EVENTS {
                self.faults = Faults::default();
            }
            self.disturb();
            self.next_event();
            self.check();
        }
        self.count_end();
        self.outcome
    }

    fn count_end(&mut self) {
        let header = self.store.header().expect("a run was started");
        assert!(
            header.status.is_terminal(),
            "storage deleted under a live run: {header:?}"
        );
        let count = match json!(header.status).as_str() {
            Some("completed") => &mut self.outcome.completed,
            Some("failed") => &mut self.outcome.failed,
            Some("timed_out") => &mut self.outcome.timed_out,
            Some("cancelled") => &mut self.outcome.cancelled,
            other => panic!("{other:?} is no end"),
        };
        *count += 1;
        for (id, (status, row)) in &self.store.tokens {
            let status = curfew::store::rows::parse_status(status).expect("a known status");
            assert!(status.is_terminal(), "t{id} is still {status:?}: {row}");
        }
    }

    /// What may happen between two events.
    fn disturb(&mut self) {
        if self.dice.chance(self.faults.eviction) && self.object.is_some() {
            self.note("evicted");
            self.outcome.evictions += 1;
            self.die();
        }
        if self.dice.chance(self.faults.knock) {
            let delay = self.dice.below(2_000);
            let open_calls = Vec::new();
            self.post(delay, Mail::Request(Event::Woken { open_calls }));
        }
        if self.dice.chance(self.faults.cancel) {
            let delay = self.dice.below(2_000);
            self.post(delay, Mail::Request(Event::CancelRequested { reason: None }));
        }
    }

    fn next_event(&mut self) {
        let mail_at = self.mail.first_key_value().map(|((at, _), _)| *at);
        match (mail_at, self.rings_at) {
            (Some(mail_at), Some(rings_at)) if rings_at <= mail_at => self.ring(rings_at),
            (None, Some(rings_at)) => self.ring(rings_at),
            (Some(_), _) => self.open_mail(),
            (None, None) => panic!("nothing will ever happen again: {:?}", self.store),
        }
    }

    fn ring(&mut self, at: Millis) {
        self.now = self.now.max(at);
        // The platform clears an alarm before it rings, and rings it again if the object dies meanwhile.
        let alarm_at = self.store.alarm_at.take();
        self.rings_at = None;
        self.note("alarm rings");
        let fate = self.deliver(None);
        if fate == Fate::Died && self.store.alarm_at.is_none() {
            self.store.alarm_at = alarm_at;
            self.rings_at = Some(self.now + 2_000);
        } else if !self.deleted && self.dice.chance(self.faults.repeated_alarm) {
            self.note("alarm rings again");
            self.deliver(None);
        }
    }

    fn open_mail(&mut self) {
        let Some(((at, _), mail)) = self.mail.pop_first() else {
            return;
        };
        self.now = self.now.max(at);
        match mail {
            Mail::Request(event) => {
                self.deliver(Some(event));
            }
            Mail::Answer { life, attempt, event } => {
                // Nobody listens to the calls of a former life; a queue's answer might still come.
                if life != self.life && self.dice.chance(70) {
                    return;
                }
                self.deliver(Some(event));
                if let Some(object) = self.object.as_mut().filter(|_| life == self.life) {
                    object.open_calls.remove(&attempt);
                }
            }
        }
    }

    /// What comes in goes through here. `None`: only the alarm.
    fn deliver(&mut self, event: Option<Event>) -> Fate {
        if self.deleted {
            return Fate::Survived;
        }
        if self.object.is_none() {
            let run = self.store.recall(SETTINGS).expect("what was saved can be read");
            self.object = Some(Object {
                run,
                open_calls: BTreeSet::new(),
            });
            if self.handle(Event::Loaded) == Fate::Died {
                return Fate::Died;
            }
        }
        let Some(object) = &self.object else {
            return Fate::Died;
        };
        if event.is_none() || object.run.is_due(self.now) {
            let open_calls = object.open_calls.iter().copied().collect();
            if self.handle(Event::Woken { open_calls }) == Fate::Died {
                return Fate::Died;
            }
        }
        match event {
            // Somebody knocked; what was due is done.
            None | Some(Event::Woken { .. }) => Fate::Survived,
            Some(event) => self.handle(event),
        }
    }

    fn handle(&mut self, event: Event) -> Fate {
        let Some(object) = &mut self.object else {
            return Fate::Survived; // Deleted while this was on its way.
        };
        let text = self.trace.then(|| format!("{event:?}"));
        let (answer, effects) = object.run.handle(self.now, event);
        if self.trace {
            println!("{} {} -> {answer:?}", self.now, text.unwrap_or_default());
            for effect in &effects {
                println!("    {}", render(effect, &object.run));
            }
        }
        self.outcome.stale_answers += u64::from(answer.is_err());
        if self.dice.chance(self.faults.crash_before_commit) {
            self.note("crashed before the commit");
            self.outcome.crashes_before_commit += 1;
            return self.die();
        }
        self.commit(&effects);
        if self.dice.chance(self.faults.crash_after_commit) {
            self.note("crashed after the commit");
            self.outcome.crashes_after_commit += 1;
            // The end of the storage is part of the commit; everything else is not.
            self.deleted = effects.contains(&Effect::DeleteStorage);
            return self.die();
        }
        self.perform(effects);
        Fate::Survived
    }

    /// Rows and alarm land together.
    fn commit(&mut self, effects: &[Effect]) {
        let Some(object) = &self.object else {
            return;
        };
        let commit = Commit::of(effects, object.run.snapshot()).expect("rows are JSON");
        if let Err(broken) = self.store.apply(&commit) {
            panic!("{broken}");
        }
        for effect in effects {
            if let Effect::SetAlarm(at) = effect {
                let late = match self.dice.chance(self.faults.late_alarm) {
                    true => 1 + self.dice.below(70_000),
                    false => 0,
                };
                self.outcome.late_alarms += u64::from(late > 0);
                self.store.alarm_at = Some(*at);
                self.rings_at = Some(at.saturating_add(late).max(self.now));
            }
            if let Effect::SaveToken(token) = effect
                && let Some(Value::Object(output)) = &token.output
            {
                // An answer counts for the attempt it was given to, and for no other.
                assert_eq!(output["attempt"], json!(format!("{}@{}", token.id, token.epoch)));
            }
        }
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Dispatch(order) => self.call(order),
                Effect::Abort { token, epoch } => {
                    if let Some(object) = &mut self.object {
                        object.open_calls.remove(&(token, epoch));
                    }
                }
                Effect::DeleteStorage => {
                    self.deleted = true;
                    self.object = None;
                }
                _saved_or_told => {}
            }
        }
    }

    /// The executor takes an order; how its answer travels is the faults' matter.
    fn call(&mut self, order: Order) {
        let attempt = (order.token, order.epoch);
        assert!(self.attempts.insert(attempt), "{attempt:?} was ordered twice");
        if self.dice.chance(self.faults.vanished) {
            return;
        }
        if let Some(object) = &mut self.object {
            object.open_calls.insert(attempt);
        }
        let delay = match self.dice.chance(self.faults.slow) {
            true => self.dice.below(200_000),
            false => self.dice.below(400),
        };
        if self.dice.chance(self.faults.silent) {
            // Without any limit the run would rightly wait for ever: there the connection breaks one day.
            if order.deadline_at.is_none() {
                self.post(600_000, self.answer(attempt, lost(attempt)));
            }
            return;
        }
        if self.dice.chance(self.faults.lost) {
            return self.post(delay, self.answer(attempt, lost(attempt)));
        }
        let (delay, report) = self.report(&order, delay);
        if self.dice.chance(self.faults.duplicated) {
            let again = delay + self.dice.below(50_000);
            let event = Event::TaskReported(Box::new(report.clone()));
            self.post(again, self.answer(attempt, event));
        }
        self.post(delay, self.answer(attempt, Event::TaskReported(Box::new(report))));
    }

    fn report(&mut self, order: &Order, delay: u64) -> (u64, TaskReport) {
        let name = format!("{}@{}", order.token, order.epoch);
        let left = order.deadline_at.map(|at| at.saturating_sub(self.now));
        if let Some(left) = left.filter(|left| *left < delay) {
            return (left, timed_out(&name));
        }
        let report = match self.dice.below(20) {
            0..=17 => succeeded(&name, json!({"attempt": name, "epoch": order.epoch})),
            18 => failed(&name),
            _ => timed_out(&name),
        };
        (delay, report)
    }

    fn answer(&self, attempt: (TokenId, u64), event: Event) -> Mail {
        Mail::Answer {
            life: self.life,
            attempt,
            event,
        }
    }

    fn post(&mut self, delay: u64, mail: Mail) {
        self.posted += 1;
        self.mail.insert((self.now + delay, self.posted), mail);
    }

    fn die(&mut self) -> Fate {
        self.object = None;
        self.life += 1;
        Fate::Died
    }

    /// What must be true between any two events.
    fn check(&self) {
        if self.deleted {
            return;
        }
        let alarm_at = self.store.alarm_at;
        assert!(alarm_at.is_some(), "nothing would wake the run: {:?}", self.store);
        if let Some(object) = &self.object {
            let next = object.run.next_deadline();
            assert_eq!(alarm_at, object.run.alarm_at());
            assert!(alarm_at <= next, "the alarm rings after {next:?}");
        }
    }

    fn note(&self, what: &str) {
        if self.trace {
            println!("{} {what}", self.now);
        }
    }
}
