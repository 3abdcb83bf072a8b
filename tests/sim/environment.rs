//! The world of the simulated objects: executors that report what a seed draws, operators, receivers, and the checks of what they
//! see. The clock, the faults and the messages are those of `curfew::simulate`.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use curfew::host::{Attempt, EmittedEvent, LiveEvents, Published};
use curfew::protocol::notification::{NotificationOrder, NotificationReport};
use curfew::protocol::run::RetryMode;
use curfew::protocol::task::StepProgress;
use curfew::run::{Lane, TokenStatus, Write};
use curfew::simulate::{
    ConnectionId, Durable, Environment as Shared, Faults, Happening, InFlight, Observed, Rng, Store, World,
};
use curfew::storage::commit::Commit;

use super::events::Bus;
use super::faults::Disturbances;
use super::notifications::Receivers;
use super::outcome::Outcome;
use super::progress::{check_progress, check_published};
use super::simulation::STARTER;
use crate::run::driver::render;

pub struct Environment {
    shared: Shared,
    pub disturbances: RefCell<Disturbances>,
    pub trace: bool,
    /// Every attempt that an executor or a consumer received.
    pub attempts: RefCell<BTreeSet<(String, Attempt)>>,
    pub bus: RefCell<Bus>,
    pub receivers: RefCell<Receivers>,
    pub outcome: RefCell<Outcome>,
    pub retries: RefCell<BTreeMap<u64, Retry>>,
    last_retry: Cell<u64>,
}

/// An operator's retry. Its token is chosen by `choice` from the tokens that can be retried on arrival.
pub struct Retry {
    pub run: String,
    pub mode: RetryMode,
    pub choice: Option<u64>,
}

impl Deref for Environment {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl Environment {
    pub fn new(rng: Rng, faults: Faults, disturbances: Disturbances, trace: bool) -> Environment {
        let mut shared = Shared::new(rng, 1_000_000);
        shared.has_delays = true;
        shared.is_checked = true;
        shared.heartbeat_ms = 10_000;
        *shared.faults.borrow_mut() = faults;
        Environment {
            shared,
            disturbances: RefCell::new(disturbances),
            trace,
            attempts: RefCell::default(),
            bus: RefCell::default(),
            receivers: RefCell::default(),
            outcome: RefCell::default(),
            retries: RefCell::default(),
            last_retry: Cell::default(),
        }
    }

    pub fn disturbs(&self, odds: fn(&Disturbances) -> u64) -> bool {
        let percent = odds(&self.disturbances.borrow());
        let happens = self.chance(percent);
        if happens {
            let name = Disturbances::NAMES[odds(&Disturbances::NUMBERS) as usize];
            self.outcome.borrow_mut().count(format!("fault {name}"));
        }
        happens
    }

    pub fn post_retry(&self, delay: u64, retry: Retry) {
        self.last_retry.set(self.last_retry.get() + 1);
        let number = self.last_retry.get();
        self.retries.borrow_mut().insert(number, retry);
        self.post(delay, InFlight::Scheduled(number));
    }
}

impl World for Environment {
    fn environment(&self) -> &Shared {
        &self.shared
    }

    fn orders_arrived(&self, _store: &Store, connection: &ConnectionId, orders: &str) {
        self.orders_arrived(connection, orders);
    }

    fn order_claimed(&self, _store: &Store, order: &str) {
        self.work(order);
    }

    fn progress_of(&self, run: &str, attempt: Attempt) -> Option<Option<StepProgress>> {
        Some(self.chance(60).then(|| self.progress_of(run, attempt)))
    }

    /// Most consumers stop; a report that is sent all the same changes nothing.
    fn claim_ended(&self, run: &str, attempt: Attempt) {
        if self.chance(70) {
            let is_dropped = |message: &InFlight| {
                matches!(message, InFlight::Result { run: other, attempt: of, .. }
                    if other == run && *of == attempt)
            };
            self.in_flight
                .borrow_mut()
                .retain(|_, message| !is_dropped(message));
        }
    }

    fn publish(&self, event: &EmittedEvent) -> Published {
        let published = self.publish(&event.key, &event.payload, event.after.as_deref());
        Published {
            unfinished_after: published.err(),
            refused: Vec::new(),
        }
    }

    fn receive(&self, order: &NotificationOrder) -> Option<NotificationReport> {
        self.receive(order)
    }

    fn broken(&self, run: &str, what: String) {
        panic!("{run}: {what}");
    }

    fn fault(&self, odds: fn(&Faults) -> u64) -> bool {
        let happens = self.shared.fault(odds);
        if happens {
            let name = Faults::NAMES[odds(&Faults::NUMBERS) as usize];
            let mut outcome = self.outcome.borrow_mut();
            outcome.count(format!("fault {name}"));
            let counter = match name {
                "crash_before_commit" => &mut outcome.crashes_before_commit,
                "crash_after_commit" => &mut outcome.crashes_after_commit,
                "commit_fails" => &mut outcome.failed_commits,
                "late_alarm" => &mut outcome.late_alarms,
                "early_alarm" => &mut outcome.early_alarms,
                "message_lost" => &mut outcome.messages_lost,
                "eviction" => &mut outcome.evictions,
                _other => return true,
            };
            *counter += 1;
        }
        happens
    }

    fn happened(&self, what: Happening) {
        let mut outcome = self.outcome.borrow_mut();
        let counter = match what {
            Happening::MessageSent => &mut outcome.messages,
            Happening::Claimed => &mut outcome.claims,
            Happening::ClaimRefused => &mut outcome.claims_refused,
            Happening::ClaimResponseLost => &mut outcome.claim_responses_lost,
            Happening::ReportBatched => &mut outcome.reports_batched,
            Happening::ClockStopped => &mut outcome.clocks_stopped,
        };
        *counter += 1;
    }

    fn note(&self, run: &str, what: &str) {
        if self.trace {
            println!("{} {run} {what}", self.now.get());
        }
    }

    fn decided(&self, observed: &Observed<'_>) {
        let Observed {
            run_id,
            run,
            event,
            is_accepted,
            decision,
            now,
        } = observed;
        if self.trace {
            println!("{now} {run_id} {event:.200?} -> {is_accepted}");
            for line in render(decision, run) {
                println!("    {line}");
            }
        }
        check_progress(run);
        // Children have the name of the first start.
        assert_eq!(run.header.started_by.as_deref(), Some(STARTER));
        self.count_features(run, event, *is_accepted, decision.writes());
        let waits = run.live_tokens().filter(|token| {
            token.status == TokenStatus::Pending && token.epoch == 0 && token.watch_at == Some(*now)
        });
        let mut outcome = self.outcome.borrow_mut();
        outcome.waits_for_calls += waits.count() as u64;
        outcome.rejections += u64::from(!is_accepted);
    }

    fn committed(&self, run: &str, durable: &Durable, _commit: &Commit, writes: &[Write]) {
        let store = durable.store.borrow();
        self.check_events(run, &store, writes);
        self.check_notifications(run, &store);
        for write in writes {
            match write {
                Write::SaveToken(token) => {
                    let is_saved = token.progress.is_some() && token.lane == Some(Lane::Queue);
                    self.outcome.borrow_mut().progress_saved += u64::from(is_saved);
                    self.count_token(token);
                    self.check_answer(run, &store, token);
                }
                Write::SaveEvent(event) => {
                    let record = event.record.as_ref();
                    let has_output = record.is_some_and(|record| !record.partial_artifacts.is_empty());
                    self.outcome.borrow_mut().recorded_outputs += u64::from(has_output);
                    self.count_event(event);
                }
                _others => {}
            }
        }
        let given_up = writes.iter().filter_map(Write::event);
        let given_up = given_up.filter(|event| event.fields.contains_key("given_up"));
        self.outcome.borrow_mut().ends_given_up += given_up.count() as u64;
    }

    fn events_published(&self, _run: &str, _store: &Store, events: &LiveEvents) {
        self.outcome.borrow_mut().events_published += events.last - events.after;
    }

    fn progress_published(&self, store: &Store, line: &str) {
        check_published(store, line);
        self.outcome.borrow_mut().progress_published += 1;
    }
}
