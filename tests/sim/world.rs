//! One seed's world: a clock, runs whose objects may die at any moment, their stores, an executor, persons, and the
//! network between them. A child is a run like any other.
//!
//! An object does what the platform shell does: what is due goes first, a decision and its alarm are saved together,
//! orders are carried out after that.

use std::collections::{BTreeMap, BTreeSet};

use curfew::base::time::Millis;
use curfew::run::{Command, Decision, Event, Message, Routes, Settings, Write};
use curfew::storage::commit::{Commit, FAILED_WAKES};
use serde_json::{Value, json};

use super::events::Bus;
use super::faults::Faults;
use super::hosted::{Hosted, Object};
use super::mail::{Content, Mail};
use super::outcome::Outcome;
use super::promises::{Decided, calls_of};
use crate::run::dice::Dice;
use crate::run::driver::{Start, render, store_document};
use crate::run::generator;

pub(super) const SETTINGS: Settings = Settings {
    retry_delay_ms: 1_000,
    queue: false,
    routes: Routes::ALL,
    pending_ms: 5_000,
    no_route_ms: 300_000,
    ring_ms: 10_000,
    claim_ms: 30_000,
    // Short, or most attempts would meet their own deadline before anybody missed them.
    heartbeat_ms: 45_000,
    suspend_ms: 30_000,
    grace_ms: 500,
    watch_ms: 30_000,
    lost_max: 5,
    retention_ms: 86_400_000,
};

/// Faults happen in the first so many events, then the world is kind.
const UNKIND_EVENTS: &[u64] = &[15, 40, 150];
/// No world of the generator needs as many; one that does is stuck.
const EVENTS_MAX: u64 = 20_000;

#[derive(PartialEq)]
pub(super) enum Fate {
    Survived,
    Died,
}

pub struct World {
    pub(super) dice: Dice,
    pub(super) settings: Settings,
    /// Calls to executors that one turn of an object may make.
    turn_calls: u32,
    /// What is left of them in this one.
    room: u32,
    /// What the last event was answered with.
    pub(super) accepted: bool,
    /// Messages that were put into the queue.
    pub(super) rings: u64,
    /// The answer to the claim that is being made gets lost on its way.
    pub(super) loses_claim: bool,
    pub(super) faults: Faults,
    pub(super) trace: bool,
    pub(super) now: Millis,
    pub(super) runs: BTreeMap<String, Hosted>,
    pub(super) mail: BTreeMap<(Millis, u64), Mail>,
    pub(super) posted: u64,
    pub(super) outcome: Outcome,
    unkind_events: u64,
    /// In the end nobody acts.
    pub(super) quiet: bool,
    /// By when runs must have ended that are left alone.
    pub(super) ends_by: BTreeMap<String, Millis>,
    pub(super) bus: Bus,
    /// Children whose start has left their parent.
    starts_sent: BTreeSet<String>,
}

impl World {
    pub fn new(seed: u64, trace: bool) -> World {
        let mut dice = Dice::seeded(seed);
        let faults = Faults::of(&mut dice);
        let document = generator::workflow(&mut dice);
        if trace {
            println!("{faults:?}\n{document:#}");
        }
        let unkind_events = *dice.pick(UNKIND_EVENTS);
        let input = json!({"x": dice.below(4), "name": "Ada"});
        let settings = Settings {
            queue: dice.chance(50),
            ..SETTINGS
        };
        let turn_calls = *dice.pick(&[24, 24, 1, 2]);
        let mut world = World {
            dice,
            settings,
            turn_calls,
            room: turn_calls,
            accepted: true,
            rings: 0,
            loses_claim: false,
            faults,
            trace,
            now: 1_000_000,
            runs: BTreeMap::new(),
            mail: BTreeMap::new(),
            posted: 0,
            outcome: Outcome::default(),
            starts_sent: BTreeSet::new(),
            unkind_events,
            quiet: false,
            ends_by: BTreeMap::new(),
            bus: Bus::default(),
        };
        world.host(Start {
            id: "run-1".into(),
            stored: store_document(&document),
            input,
            request: Default::default(),
            parent: None,
            triggered_by: None,
        });
        world
    }

    /// A start that was never saved is no run: whoever asked for it asks again.
    pub(super) fn host(&mut self, start: Start) {
        let id = start.id.clone();
        let (run, decision) = start.run_in(self.turn_calls, self.now, self.settings);
        self.runs.insert(
            id.clone(),
            Hosted {
                object: Some(Object::of(run)),
                life: 1,
                ..Hosted::default()
            },
        );
        self.outcome.runs += 1;
        self.commit(&id, &decision);
        self.perform(&id, decision);
    }

    /// Faults and persons for so many events, instead of as many as the seed says.
    pub fn unkind_for(mut self, events: u64) -> World {
        self.unkind_events = events;
        if events == 0 {
            self.faults = Faults::default();
            self.leave_alone();
        }
        self
    }

    pub fn unkind_events(&self) -> u64 {
        self.unkind_events
    }

    pub fn run(mut self) -> Outcome {
        while self.runs.values().any(|hosted| !hosted.deleted) {
            self.outcome.events += 1;
            assert!(
                self.outcome.events < EVENTS_MAX,
                "the world is stuck: {}",
                self.describe()
            );
            if self.outcome.events == self.unkind_events {
                self.faults = Faults::default();
                // Or nobody ever puts it right: then, too, every run ends.
                if self.dice.chance(70) {
                    self.deploy(Routes::ALL);
                }
                self.leave_alone();
            }
            self.disturb();
            self.next_event();
            for hosted in self.runs.values() {
                hosted.check(self.now);
            }
            self.check_children_stand_still();
        }
        for hosted in self.runs.values() {
            hosted.check_end();
        }
        self.check_ends();
        self.check_all_heard();
        self.count_end();
        self.outcome
    }

    pub(super) fn is_kind(&self) -> bool {
        self.outcome.events >= self.unkind_events
    }

    /// What is still on its way from persons would be an act.
    pub(super) fn forget_requests(&mut self) {
        let is_act = |mail: &Mail| matches!(mail, Mail::Request { .. } | Mail::Retry { .. });
        self.mail.retain(|_, mail| !is_act(mail));
    }

    pub(super) fn count_end(&mut self) {
        for hosted in self.runs.values() {
            let header = hosted.store.header();
            let error = header.as_ref().and_then(|header| header.error.as_ref());
            self.outcome.given_up += u64::from(error.is_some_and(|it| it.code == "internal_error"));
            let status = header.map(|header| json!(header.status));
            let count = match status.as_ref().and_then(Value::as_str) {
                Some("completed") => &mut self.outcome.completed,
                Some("failed") => &mut self.outcome.failed,
                Some("timed_out") => &mut self.outcome.timed_out,
                Some("cancelled") => &mut self.outcome.cancelled,
                other => panic!("{other:?} is no end"),
            };
            *count += 1;
            let rows = hosted.store.run.iter();
            let fired =
                rows.filter(|(key, row)| key.starts_with("instance/") && row.contains("\"fired_at\""));
            self.outcome.joins_fired += fired.count() as u64;
        }
    }

    pub(super) fn next_event(&mut self) {
        let mail_at = self.mail.first_key_value().map(|((at, _), _)| *at);
        let alarms = self.runs.iter().filter(|(_, hosted)| !hosted.deleted);
        let alarm = alarms
            .filter_map(|(id, hosted)| Some((hosted.rings_at?, id.clone())))
            .min();
        match (mail_at, alarm) {
            (Some(mail_at), Some((rings_at, id))) if rings_at <= mail_at => self.ring(&id, rings_at),
            (None, Some((rings_at, id))) => self.ring(&id, rings_at),
            (Some(_), _) => self.open_mail(),
            (None, None) => {
                assert!(!self.quiet, "nothing will ever happen again: {}", self.describe());
                let ids: Vec<String> = self.runs.keys().cloned().collect();
                let helped = ids.iter().filter(|id| self.help(id)).count();
                assert!(helped > 0, "nothing will ever happen again: {}", self.describe());
            }
        }
    }

    pub(super) fn ring(&mut self, id: &str, at: Millis) {
        self.now = self.now.max(at);
        // The platform clears an alarm before it rings, and rings it again if the object dies meanwhile.
        let hosted = self.hosted(id);
        let alarm_at = hosted.store.alarm_at.take();
        hosted.rings_at = None;
        self.note(id, "alarm rings");
        self.room = self.turn_calls;
        let fate = self.deliver(id, None);
        let now = self.now;
        let hosted = self.hosted(id);
        if fate == Fate::Died && hosted.store.alarm_at.is_none() {
            hosted.store.alarm_at = alarm_at;
            hosted.rings_at = Some(now + 2_000);
        } else if !hosted.deleted && self.dice.chance(self.faults.repeated_alarm) {
            self.note(id, "alarm rings again");
            self.deliver(id, None);
        }
    }

    pub(super) fn open_mail(&mut self) {
        let Some(((at, _), mail)) = self.mail.pop_first() else {
            return;
        };
        self.now = self.now.max(at);
        // What is heard of a call is heard in the turn that made it, whatever that has left.
        self.room = match mail {
            Mail::Answer { .. } | Mail::Receipt { .. } => {
                self.dice.below(u64::from(self.turn_calls) + 1) as u32
            }
            Mail::Request { .. }
            | Mail::Retry { .. }
            | Mail::Letter { .. }
            | Mail::Ring { .. }
            | Mail::Consumer { .. }
            | Mail::Heartbeat { .. } => self.turn_calls,
        };
        match mail {
            Mail::Ring {
                run,
                attempt,
                message,
                tries,
            } => self.claim(&run, attempt, message, tries),
            Mail::Heartbeat { run, attempt, left } => self.heartbeat(&run, attempt, left),
            Mail::Consumer { run, attempt, event } => self.consumer_reports(&run, attempt, event),
            Mail::Request { run, event } => {
                self.deliver(&run, Some(event));
            }
            Mail::Retry { run, mode, choice } => self.retry(&run, mode, choice),
            Mail::Answer {
                run,
                life,
                attempt,
                event,
            } => {
                // Nobody listens to the calls of a former life; a queue's answer might still come.
                if life != self.runs[&run].life && self.dice.chance(70) {
                    return;
                }
                self.deliver(&run, Some(event));
                let hosted = self.hosted(&run);
                if let Some(object) = hosted.object.as_mut().filter(|_| life == hosted.life) {
                    object.open_calls.remove(&attempt);
                }
            }
            Mail::Letter {
                from,
                life,
                id,
                to,
                content,
            } => {
                let event = match self.receive(&to, content) {
                    Receipt::Arrived => Event::Delivered { id },
                    Receipt::Gone => Event::DeliveryFailed { id, is_gone: true },
                    Receipt::Failed => Event::DeliveryFailed { id, is_gone: false },
                    Receipt::Unfinished(after) => Event::DeliveryUnfinished { id, after },
                };
                let delay = self.dice.below(300);
                if !self.dice.chance(self.faults.letter_lost) {
                    self.post(
                        delay,
                        Mail::Receipt {
                            run: from,
                            life,
                            event,
                        },
                    );
                }
            }
            Mail::Receipt { run, life, event } => {
                // A call ends with the object that made it.
                if life == self.runs[&run].life {
                    self.deliver(&run, Some(event));
                }
            }
        }
    }

    /// What the object a letter is for makes of it.
    fn receive(&mut self, to: &str, content: Content) -> Receipt {
        match content {
            // Starting twice is starting once.
            Content::Start(start) if self.runs.contains_key(to) => {
                let header = self.runs[to].store.header().expect("a run was started");
                assert_eq!(header.parent, start.parent, "{to} is the child of another run");
                Receipt::Arrived
            }
            Content::Start(_) if self.dice.chance(self.faults.crash_before_commit) => Receipt::Failed,
            Content::Start(start) => {
                self.note(to, "started");
                self.host(*start);
                Receipt::Arrived
            }
            Content::Raise { key, payload, after } => match self.raise(&key, &payload, after.as_deref()) {
                Ok(()) => Receipt::Arrived,
                Err(last) => Receipt::Unfinished(last),
            },
            Content::Say(event) => match self.runs.get(to).map(|hosted| hosted.deleted) {
                None | Some(true) => Receipt::Gone,
                Some(false) => match self.deliver(to, Some(event)) {
                    Fate::Survived => Receipt::Arrived,
                    Fate::Died => Receipt::Failed,
                },
            },
        }
    }

    /// What comes in goes through here. `None`: only the alarm.
    pub(super) fn deliver(&mut self, id: &str, event: Option<Event>) -> Fate {
        let now = self.now;
        if self.runs[id].deleted {
            return Fate::Survived;
        }
        if self.load(id) == Fate::Died {
            return Fate::Died;
        }
        let Some(object) = &self.runs[id].object else {
            return Fate::Died;
        };
        let open_calls = object.open_calls.iter().copied().collect();
        let wake = match &event {
            None => Some(Event::AlarmRang { open_calls }),
            Some(_) => object.run.is_due(now).then_some(Event::Woken { open_calls }),
        };
        if let Some(wake) = wake
            && self.handle(id, wake) == Fate::Died
        {
            return Fate::Died;
        }
        match event {
            // Somebody knocked; what was due is done.
            None | Some(Event::Woken { .. }) => Fate::Survived,
            Some(event) => self.handle(id, event),
        }
    }

    pub(super) fn load(&mut self, id: &str) -> Fate {
        let settings = self.settings;
        let hosted = self.hosted(id);
        if hosted.object.is_some() {
            return Fate::Survived;
        }
        let run = hosted.store.recall(settings).expect("what was saved can be read");
        hosted.object = Some(Object::of(run));
        self.handle(id, Event::Loaded)
    }

    pub(super) fn handle(&mut self, id: &str, event: Event) -> Fate {
        let (now, trace, room) = (self.now, self.trace, self.room);
        let starts_sent = std::mem::take(&mut self.starts_sent);
        let hosted = self.hosted(id);
        let Some(object) = &mut hosted.object else {
            self.starts_sent = starts_sent;
            return Fate::Survived; // Deleted while this was on its way.
        };
        let (answer, decision) = object.run.handle(now, room, event.clone());
        if trace {
            println!("{now} {id} {event:.200?} -> {answer:?}");
            for line in render(&decision, &object.run) {
                println!("    {line}");
            }
        }
        Decided {
            before: &hosted.store,
            run: &object.run,
            event: &event,
            decision: &decision,
            now,
            room,
            starts_sent: &starts_sent,
        }
        .check();
        self.starts_sent = starts_sent;
        self.accepted = answer.is_ok();
        self.count_waits_for_room(id);
        self.outcome.stale_answers += u64::from(answer.is_err());
        if self.dice.chance(self.faults.crash_before_commit) {
            self.note(id, "crashed before the commit");
            self.outcome.crashes_before_commit += 1;
            return self.die(id);
        }
        if self.dice.chance(self.faults.commit_fails) {
            return self.fail_commit(id, &event);
        }
        self.commit(id, &decision);
        if self.dice.chance(self.faults.crash_after_commit) {
            self.note(id, "crashed after the commit");
            self.outcome.crashes_after_commit += 1;
            // The end of the storage is part of the commit; everything else is not.
            self.hosted(id).deleted = decision == Decision::DeleteStorage;
            return self.die(id);
        }
        self.perform(id, decision);
        Fate::Survived
    }

    /// As the shell does it: memory goes, with every call that is open, and a wake is counted.
    fn fail_commit(&mut self, id: &str, event: &Event) -> Fate {
        self.note(id, "the commit failed");
        self.outcome.failed_commits += 1;
        if matches!(
            event,
            Event::Woken { .. } | Event::AlarmRang { .. } | Event::Loaded
        ) {
            let rows = &mut self.hosted(id).store.run;
            let before = rows
                .get(FAILED_WAKES)
                .map_or(0, |row| row.parse::<u32>().expect("a number"));
            rows.insert(FAILED_WAKES.to_string(), (before + 1).to_string());
        }
        self.die(id)
    }

    /// Rows and alarm land together.
    pub(super) fn commit(&mut self, id: &str, decision: &Decision) {
        let hosted = self.hosted(id);
        let Some(object) = &hosted.object else {
            return;
        };
        let commit = Commit::of(decision.writes(), &object.run).expect("rows are JSON");
        if let Err(broken) = hosted.store.apply(&commit) {
            panic!("{id}: {broken}");
        }
        self.check_events(id, decision.writes());
        if let Some(at) = decision.alarm() {
            let late = match self.dice.chance(self.faults.late_alarm) {
                true => 1 + self.dice.below(70_000),
                false => 0,
            };
            let early = match late == 0 && self.dice.chance(self.faults.early_alarm) {
                true => 1 + self.dice.below(5_000),
                false => 0,
            };
            self.outcome.late_alarms += u64::from(late > 0);
            self.outcome.early_alarms += u64::from(early > 0);
            let now = self.now;
            let hosted = self.hosted(id);
            hosted.store.alarm_at = Some(at);
            hosted.rings_at = Some(at.saturating_add(late).saturating_sub(early).max(now));
        }
        for write in decision.writes() {
            match write {
                Write::SaveToken(token) => {
                    let is_stranded = token.unroutable.is_some_and(|it| !it.told);
                    self.outcome.unroutable += u64::from(is_stranded);
                    let failed = token.error.as_ref().is_some_and(|it| it.code == "no_route");
                    self.outcome.no_route += u64::from(failed);
                    let too_large = token.error.as_ref().is_some_and(|it| it.code == "limit_exceeded");
                    self.outcome.too_large += u64::from(too_large);
                    self.check_answer(id, token);
                }
                Write::SaveEvent(entry) => self.count_entry(entry),
                _others => {}
            }
        }
        if decision.commands().contains(&Command::NotifyRunEnded) {
            let now = self.now;
            self.hosted(id).ends.insert(now);
        }
    }

    pub(super) fn perform(&mut self, id: &str, decision: Decision) {
        let commands = match decision {
            Decision::Update { commands, .. } => commands,
            Decision::DeleteStorage => {
                let hosted = self.hosted(id);
                hosted.deleted = true;
                hosted.object = None;
                return;
            }
        };
        self.room = self.room.saturating_sub(calls_of(&commands));
        for command in commands {
            match command {
                Command::DispatchTask(order) => self.call(id, order),
                Command::EnqueueAttempt { token, epoch } => self.enqueue(id, (token, epoch)),
                Command::RespondToClaim(order) => self.work(id, order),
                Command::DeliverMessage { id: letter, message } => {
                    if let Message::StartChild { run_id, .. } = &message {
                        self.starts_sent.insert(run_id.clone());
                    }
                    self.send(id, letter, &message);
                }
                Command::AbortAttempt { token, epoch } => {
                    if let Some(object) = &mut self.hosted(id).object {
                        object.open_calls.remove(&(token, epoch));
                    }
                }
                Command::PublishRun
                | Command::PublishGate(_)
                | Command::PublishLatency { .. }
                | Command::NotifyRunEnded => {}
            }
        }
    }

    pub(super) fn hosted(&mut self, id: &str) -> &mut Hosted {
        self.runs.get_mut(id).expect("a run that was started")
    }

    pub(super) fn die(&mut self, id: &str) -> Fate {
        let hosted = self.hosted(id);
        hosted.object = None;
        hosted.life += 1;
        Fate::Died
    }

    /// Every object leaves memory, and comes back with what it finds.
    pub(super) fn deploy(&mut self, routes: Routes) {
        if self.trace {
            println!("{} deployed with {routes:?}", self.now);
        }
        self.settings.routes = routes;
        let ids: Vec<String> = self.runs.keys().cloned().collect();
        for id in ids {
            self.die(&id);
        }
    }

    pub(super) fn describe(&self) -> String {
        let open = self.runs.iter().filter(|(_, hosted)| !hosted.deleted);
        open.map(|(id, hosted)| format!("{id}: {:?}\n", hosted.store))
            .collect()
    }

    pub(super) fn note(&self, id: &str, what: &str) {
        if self.trace {
            println!("{} {id} {what}", self.now);
        }
    }
}

enum Receipt {
    Arrived,
    Gone,
    Failed,
    /// Heard by those up to this one.
    Unfinished(Option<String>),
}
