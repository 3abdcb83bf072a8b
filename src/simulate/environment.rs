//! What the simulated objects share: the clock, the random numbers, the faults, and everything that is on its way between them.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::base::time::Millis;
use crate::simulate::awake::Awake;
use crate::simulate::faults::Faults;
use crate::simulate::in_flight::InFlight;
use crate::simulate::rng::Rng;
use crate::storage::restore::Snapshots;

pub struct Environment {
    pub rng: RefCell<Rng>,
    pub faults: RefCell<Faults>,
    /// Messages take some time. Without it they arrive at once, in the order in which they were sent.
    pub has_delays: bool,
    /// Executors may be slow, messages between runs are not.
    pub messages_are_prompt: Cell<bool>,
    /// Every decision and every commit is checked.
    pub is_checked: bool,
    /// How often the consumer of a queued task sends a heartbeat.
    pub heartbeat_ms: u64,
    pub now: Cell<Millis>,
    /// By the moment of arrival.
    pub in_flight: RefCell<BTreeMap<(Millis, u64), InFlight>>,
    sent: Cell<u64>,
    pub connections: RefCell<BTreeMap<ConnectionId, ConnectionState>>,
    pub awake: RefCell<Awake>,
    pub snapshots: Rc<RefCell<Snapshots>>,
    /// Messages that were put into the task queue.
    pub queued: Cell<u64>,
    /// Children whose start has left their parent.
    pub starts_sent: RefCell<BTreeSet<String>>,
}

/// Numbers of ranked messages begin here, above those of all that a simulation can send. Each rank has room for more messages than
/// a simulation has.
const RANKED: u64 = 1 << 40;
const RANK_BITS: u32 = 24;
/// Higher ranks count as this one.
pub const RANK_MAX: u64 = u32::MAX as u64;

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
    /// Without faults, delays and checks.
    pub fn new(rng: Rng, now: Millis) -> Environment {
        Environment {
            rng: RefCell::new(rng),
            faults: RefCell::default(),
            has_delays: false,
            messages_are_prompt: Cell::default(),
            is_checked: false,
            heartbeat_ms: 30_000,
            now: Cell::new(now),
            in_flight: RefCell::default(),
            sent: Cell::default(),
            connections: RefCell::default(),
            awake: RefCell::default(),
            snapshots: Rc::default(),
            queued: Cell::default(),
            starts_sent: RefCell::default(),
        }
    }

    pub fn below(&self, bound: u64) -> u64 {
        self.rng.borrow_mut().below(bound)
    }

    /// In percent.
    pub fn chance(&self, percent: u64) -> bool {
        self.rng.borrow_mut().chance(percent)
    }

    pub fn fault(&self, odds: fn(&Faults) -> u64) -> bool {
        let percent = odds(&self.faults.borrow());
        percent > 0 && self.chance(percent)
    }

    pub fn pick<T: Clone>(&self, choices: &[T]) -> T {
        self.rng.borrow_mut().pick(choices).clone()
    }

    /// A delay below `most`, where messages take time.
    pub fn delay(&self, most: u64) -> u64 {
        match self.has_delays {
            true => self.below(most),
            false => 0,
        }
    }

    pub fn post(&self, delay: u64, message: InFlight) {
        self.sent.set(self.sent.get() + 1);
        let arrival = (self.now.get().saturating_add(delay), self.sent.get());
        self.in_flight.borrow_mut().insert(arrival, message);
    }

    /// A message that arrives behind all others of the moment, in the order of `rank` among its like. Returns its key.
    pub fn post_ranked(&self, delay: u64, rank: u64, message: InFlight) -> (Millis, u64) {
        let at = self.now.get().saturating_add(delay);
        let mut in_flight = self.in_flight.borrow_mut();
        let first = RANKED + (rank.min(RANK_MAX) << RANK_BITS);
        let last = first + (1 << RANK_BITS) - 1;
        let of_rank = in_flight.range((at, first)..=(at, last)).next_back();
        let number = of_rank.map_or(first, |((_, number), _)| number + 1);
        let arrival = (at, number);
        in_flight.insert(arrival, message);
        arrival
    }

    pub fn advance(&self, to: Millis) {
        self.now.set(self.now.get().max(to));
    }

    pub fn is_open(&self, connection: &ConnectionId) -> bool {
        let connections = self.connections.borrow();
        let state = connections.get(connection);
        state.is_some_and(|state| !state.is_closed && state.frozen_since.is_none())
    }
}
