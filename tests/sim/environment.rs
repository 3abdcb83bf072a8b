//! What the simulated objects share: the clock, the random numbers, the faults, and everything that is on its way between them.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use curfew::base::time::Millis;
use curfew::host::Attempt;
use curfew::storage::restore::Snapshots;

use super::events::Bus;
use super::faults::Faults;
use super::in_flight::InFlight;
use super::notifications::Receivers;
use super::outcome::Outcome;
use crate::run::rng::Rng;

pub struct Environment {
    pub rng: RefCell<Rng>,
    pub faults: RefCell<Faults>,
    pub trace: bool,
    pub now: Cell<Millis>,
    /// By the moment of arrival.
    pub in_flight: RefCell<BTreeMap<(Millis, u64), InFlight>>,
    sent: Cell<u64>,
    pub connections: RefCell<BTreeMap<ConnectionId, ConnectionState>>,
    /// Every attempt that an executor or a consumer received.
    pub attempts: RefCell<BTreeSet<(String, Attempt)>>,
    pub bus: RefCell<Bus>,
    pub receivers: RefCell<Receivers>,
    /// Children whose start has left their parent.
    pub starts_sent: RefCell<BTreeSet<String>>,
    pub outcome: RefCell<Outcome>,
    pub snapshots: Rc<RefCell<Snapshots>>,
    /// Messages that were put into the task queue.
    pub queued: Cell<u64>,
    /// Only executors are slow, not messages between runs.
    pub messages_are_prompt: Cell<bool>,
}

/// A connection of one incarnation of a run's object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId {
    pub run: String,
    pub incarnation: u64,
    pub number: u32,
}

#[derive(Default)]
pub struct ConnectionState {
    /// The executor gives no more sign of life.
    pub frozen_since: Option<Millis>,
    pub is_closed: bool,
    /// Batches of orders that were sent.
    pub batches: u64,
}

impl Environment {
    pub fn new(rng: Rng, faults: Faults, trace: bool) -> Environment {
        Environment {
            rng: RefCell::new(rng),
            faults: RefCell::new(faults),
            trace,
            now: Cell::new(1_000_000),
            in_flight: RefCell::default(),
            sent: Cell::default(),
            connections: RefCell::default(),
            attempts: RefCell::default(),
            bus: RefCell::default(),
            receivers: RefCell::default(),
            starts_sent: RefCell::default(),
            outcome: RefCell::default(),
            snapshots: Rc::default(),
            queued: Cell::default(),
            messages_are_prompt: Cell::default(),
        }
    }

    pub fn below(&self, bound: u64) -> u64 {
        self.rng.borrow_mut().below(bound)
    }

    /// In percent.
    pub fn chance(&self, percent: u64) -> bool {
        self.rng.borrow_mut().chance(percent)
    }

    pub fn fault(&self, chance: fn(&Faults) -> u64) -> bool {
        let percent = chance(&self.faults.borrow());
        let happens = self.chance(percent);
        if happens {
            self.count_fault(chance);
        }
        happens
    }

    pub fn pick<T: Clone>(&self, choices: &[T]) -> T {
        self.rng.borrow_mut().pick(choices).clone()
    }

    pub fn post(&self, delay: u64, message: InFlight) {
        self.sent.set(self.sent.get() + 1);
        let arrival = (self.now.get() + delay, self.sent.get());
        self.in_flight.borrow_mut().insert(arrival, message);
    }

    pub fn note(&self, run: &str, what: &str) {
        if self.trace {
            println!("{} {run} {what}", self.now.get());
        }
    }
}
