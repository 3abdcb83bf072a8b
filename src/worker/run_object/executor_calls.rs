//! The calls to executors this object holds open: what was ordered and not yet answered. A call that has answered all it
//! was asked takes the next orders, so that a chain costs one invocation and not one a node.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use crate::run::TokenId;
use crate::worker::platform::executor_client::Connection;
use crate::worker::run_object::subrequests::Turn;

pub type Attempt = (TokenId, u64);

/// The platform lets an invocation call 32 Workers in its life: what would make more of them is for another one.
const CALLS: usize = 32;

#[derive(Default)]
pub struct Calls {
    numbers: Cell<u32>,
    open: RefCell<BTreeMap<u32, Call>>,
    /// The call whose last answer is being heard: it has nothing to do.
    at_hand: Cell<Option<u32>>,
}

struct Call {
    turn: Turn,
    /// Not answered yet.
    attempts: Vec<Attempt>,
    /// Nobody waits for these any more; an answer that comes all the same is known for what it is.
    given_up: Vec<Attempt>,
    /// What its orders make it call.
    calls: usize,
    connection: Connection,
}

impl Calls {
    /// A new call, and its number.
    pub fn open(&self, turn: &Turn, ask: impl FnOnce(u32) -> Connection) -> u32 {
        self.begin(turn, Vec::new(), 0, ask)
    }

    /// A call that is asked for this attempt and for nothing else.
    pub fn open_once(&self, turn: &Turn, attempt: Attempt, ask: impl FnOnce(u32) -> Connection) {
        self.begin(turn, vec![attempt], CALLS, ask);
    }

    fn begin(
        &self,
        turn: &Turn,
        attempts: Vec<Attempt>,
        calls: usize,
        ask: impl FnOnce(u32) -> Connection,
    ) -> u32 {
        let number = self.numbers.get().wrapping_add(1);
        self.numbers.set(number);
        let call = Call {
            turn: turn.clone(),
            attempts,
            given_up: Vec::new(),
            calls,
            connection: ask(number),
        };
        self.open.borrow_mut().insert(number, call);
        number
    }

    /// How many there have been.
    pub fn opened(&self) -> u32 {
        self.numbers.get()
    }

    /// Whether an order would find a call that has nothing to do.
    pub fn has_one_at_hand(&self) -> bool {
        self.at_hand.get().is_some()
    }

    /// For orders that make so many calls.
    pub fn take_at_hand(&self, calls: usize) -> Option<u32> {
        let number = self.at_hand.take()?;
        let open = self.open.borrow();
        let call = open.get(&number)?;
        // With somebody still at what nobody waits for it is to end, not to go on.
        (call.given_up.is_empty() && call.calls + calls <= CALLS).then_some(number)
    }

    pub fn send(&self, number: u32, attempts: &[Attempt], calls: usize, orders: &str) {
        if let Some(call) = self.open.borrow_mut().get_mut(&number) {
            call.calls += calls;
            call.attempts.extend(attempts);
            call.connection.send(orders);
        }
    }

    pub fn turn_of(&self, number: u32) -> Option<Turn> {
        self.open.borrow().get(&number).map(|call| call.turn.clone())
    }

    pub fn was_asked(&self, number: u32, attempt: Attempt) -> bool {
        let open = self.open.borrow();
        open.get(&number)
            .is_some_and(|call| call.attempts.contains(&attempt) || call.given_up.contains(&attempt))
    }

    /// The answer for an attempt is heard. If it is the last, the call has nothing to do then: what follows may go by it.
    pub fn hear(&self, number: u32, attempt: Attempt) {
        let open = self.open.borrow();
        let call = open.get(&number);
        if call.is_some_and(|call| call.attempts == [attempt] && call.calls < CALLS) {
            self.at_hand.set(Some(number));
        }
    }

    pub fn answered(&self, number: u32, attempt: Attempt) {
        if let Some(call) = self.open.borrow_mut().get_mut(&number) {
            call.attempts.retain(|other| *other != attempt);
        }
    }

    /// All that came was heard and what follows is on its way. A call that has nothing to do ends.
    pub fn settle(&self, number: u32) {
        self.at_hand.take();
        let mut open = self.open.borrow_mut();
        let Some(call) = open.get(&number).filter(|call| call.attempts.is_empty()) else {
            return;
        };
        match call.given_up.is_empty() {
            true => call.connection.finish(),
            // Somebody is still at what nobody waits for.
            false => call.connection.abort(),
        }
        open.remove(&number);
    }

    /// Nobody waits for this attempt any more. Where others share its call, it runs on for them.
    pub fn abort(&self, attempt: Attempt) {
        let mut open = self.open.borrow_mut();
        let mut calls = open.iter_mut();
        let Some((number, call)) = calls.find(|(_, call)| call.attempts.contains(&attempt)) else {
            return;
        };
        let number = *number;
        call.attempts.retain(|other| *other != attempt);
        call.given_up.push(attempt);
        if call.attempts.is_empty() {
            call.connection.abort();
            open.remove(&number);
        }
    }

    /// What these calls are for is not known any more.
    pub fn abort_all(&self) {
        self.at_hand.take();
        for call in self.open.take().into_values() {
            call.connection.abort();
        }
    }

    /// Whom a call that is over has not answered. Each counts as open until its loss is heard.
    pub fn unanswered(&self, number: u32) -> Option<(Turn, Vec<Attempt>)> {
        let open = self.open.borrow();
        let call = open.get(&number)?;
        Some((call.turn.clone(), call.attempts.clone()))
    }

    /// Gives up the calls whose executor should have been heard of since so long, and says whom they had not answered.
    pub fn drop_silent(&self, silence_ms: u64) -> Vec<Attempt> {
        let mut lost = Vec::new();
        self.open.borrow_mut().retain(|_, call| {
            let is_silent = call.connection.silent_ms() >= silence_ms as f64;
            if is_silent {
                call.connection.abort();
                lost.append(&mut call.attempts);
            }
            !is_silent
        });
        lost
    }

    pub fn attempts(&self) -> Vec<Attempt> {
        let open = self.open.borrow();
        let mut attempts: Vec<Attempt> = open
            .values()
            .flat_map(|call| call.attempts.iter().copied())
            .collect();
        attempts.sort_unstable();
        attempts
    }
}
