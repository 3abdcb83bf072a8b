//! The open calls to executors: which attempts were ordered by which connection and not reported yet. A connection whose orders
//! are all reported takes the next ones, so that a chain of nodes costs one call and not one per node.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use crate::host::platform::Connection;
use crate::host::subrequests::SubrequestBudget;
use crate::run::TokenId;

pub type Attempt = (TokenId, u64);

/// The platform lets one invocation of the executor make 32 calls. Orders that would exceed it go by another connection.
const CALLS_PER_CONNECTION: usize = 32;

pub struct ExecutorCalls<C> {
    last_number: Cell<u32>,
    open: RefCell<BTreeMap<u32, Call<C>>>,
    /// The connection whose last report is being handled: the next orders may reuse it.
    reusable: Cell<Option<u32>>,
}

struct Call<C> {
    /// Of the invocation that made the call.
    budget: SubrequestBudget,
    /// Ordered and not reported.
    attempts: Vec<Attempt>,
    /// Aborted while others shared the connection. Their reports are expected and ignored.
    aborted: Vec<Attempt>,
    /// How many calls its orders make.
    calls: usize,
    connection: C,
}

impl<C> Default for ExecutorCalls<C> {
    fn default() -> ExecutorCalls<C> {
        ExecutorCalls {
            last_number: Cell::default(),
            open: RefCell::default(),
            reusable: Cell::default(),
        }
    }
}

impl<C: Connection> ExecutorCalls<C> {
    /// A number for a new connection.
    pub fn next_number(&self) -> u32 {
        let number = self.last_number.get().wrapping_add(1);
        self.last_number.set(number);
        number
    }

    /// How many connections were opened.
    pub fn opened(&self) -> u32 {
        self.last_number.get()
    }

    pub fn add(&self, number: u32, budget: &SubrequestBudget, connection: C) {
        self.insert(number, budget, Vec::new(), 0, connection);
    }

    /// A connection for this attempt and no other.
    pub fn add_single(&self, number: u32, budget: &SubrequestBudget, attempt: Attempt, connection: C) {
        self.insert(number, budget, vec![attempt], CALLS_PER_CONNECTION, connection);
    }

    fn insert(
        &self,
        number: u32,
        budget: &SubrequestBudget,
        attempts: Vec<Attempt>,
        calls: usize,
        connection: C,
    ) {
        let call = Call {
            budget: budget.clone(),
            attempts,
            aborted: Vec::new(),
            calls,
            connection,
        };
        self.open.borrow_mut().insert(number, call);
    }

    pub fn has_reusable(&self) -> bool {
        self.reusable.get().is_some()
    }

    /// The reusable connection, for orders that make so many calls.
    pub fn take_reusable(&self, calls: usize) -> Option<u32> {
        let number = self.reusable.take()?;
        let open = self.open.borrow();
        let call = open.get(&number)?;
        // A connection with an aborted attempt must end, because its executor may still work on that attempt.
        (call.aborted.is_empty() && call.calls + calls <= CALLS_PER_CONNECTION).then_some(number)
    }

    pub fn send(&self, number: u32, attempts: &[Attempt], calls: usize, orders: &str) {
        if let Some(call) = self.open.borrow_mut().get_mut(&number) {
            call.calls += calls;
            call.attempts.extend(attempts);
            call.connection.send(orders);
        }
    }

    pub fn budget_of(&self, number: u32) -> Option<SubrequestBudget> {
        self.open.borrow().get(&number).map(|call| call.budget.clone())
    }

    pub fn was_ordered(&self, number: u32, attempt: Attempt) -> bool {
        let open = self.open.borrow();
        open.get(&number)
            .is_some_and(|call| call.attempts.contains(&attempt) || call.aborted.contains(&attempt))
    }

    /// The report of an attempt is about to be handled. If it is the connection's last, the next orders may reuse it.
    pub fn report_arrived(&self, number: u32, attempt: Attempt) {
        let open = self.open.borrow();
        let call = open.get(&number);
        if call.is_some_and(|call| call.attempts == [attempt] && call.calls < CALLS_PER_CONNECTION) {
            self.reusable.set(Some(number));
        }
    }

    pub fn report_handled(&self, number: u32, attempt: Attempt) {
        if let Some(call) = self.open.borrow_mut().get_mut(&number) {
            call.attempts.retain(|other| *other != attempt);
        }
    }

    /// Every report that arrived was handled, and the orders that follow were sent. A connection without orders ends.
    pub fn finish_if_idle(&self, number: u32) {
        self.reusable.take();
        let mut open = self.open.borrow_mut();
        let Some(call) = open.get(&number).filter(|call| call.attempts.is_empty()) else {
            return;
        };
        match call.aborted.is_empty() {
            true => call.connection.finish(),
            false => call.connection.abort(),
        }
        open.remove(&number);
    }

    /// The attempt no longer counts. A connection that others share goes on for them.
    pub fn abort(&self, attempt: Attempt) {
        let mut open = self.open.borrow_mut();
        let mut calls = open.iter_mut();
        let Some((number, call)) = calls.find(|(_, call)| call.attempts.contains(&attempt)) else {
            return;
        };
        let number = *number;
        call.attempts.retain(|other| *other != attempt);
        call.aborted.push(attempt);
        if call.attempts.is_empty() {
            call.connection.abort();
            open.remove(&number);
        }
    }

    pub fn abort_all(&self) {
        self.reusable.take();
        for call in self.open.take().into_values() {
            call.connection.abort();
        }
    }

    /// The attempts of a closed connection without a report. They count as open until their loss is handled.
    pub fn unreported(&self, number: u32) -> Option<(SubrequestBudget, Vec<Attempt>)> {
        let open = self.open.borrow();
        let call = open.get(&number)?;
        Some((call.budget.clone(), call.attempts.clone()))
    }

    /// Aborts the connections without a sign of life for so long, and returns their attempts.
    pub fn abort_silent(&self, silence_ms: u64) -> Vec<Attempt> {
        let mut lost = Vec::new();
        self.open.borrow_mut().retain(|_, call| {
            let is_silent = call.connection.silent_ms() >= silence_ms;
            if is_silent {
                call.connection.abort();
                lost.append(&mut call.attempts);
            }
            !is_silent
        });
        lost
    }

    /// Every attempt of an open call.
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

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[derive(Clone, Default)]
    struct Recorded(Rc<RefCell<Vec<String>>>, Rc<Cell<u64>>);

    impl Connection for Recorded {
        fn send(&self, orders: &str) {
            self.0.borrow_mut().push(format!("send {orders}"));
        }

        fn finish(&self) {
            self.0.borrow_mut().push("finish".into());
        }

        fn abort(&self) {
            self.0.borrow_mut().push("abort".into());
        }

        fn silent_ms(&self) -> u64 {
            self.1.get()
        }
    }

    fn attempt(token: u64) -> Attempt {
        (TokenId(token), 1)
    }

    fn opened(attempts: &[Attempt], calls: usize) -> (ExecutorCalls<Recorded>, u32, Recorded) {
        let (open, connection) = (ExecutorCalls::default(), Recorded::default());
        let number = open.next_number();
        open.add(number, &SubrequestBudget::default(), connection.clone());
        open.send(number, attempts, calls, "orders");
        (open, number, connection)
    }

    #[test]
    fn the_last_report_makes_its_connection_reusable() {
        let (open, number, connection) = opened(&[attempt(1), attempt(2)], 2);
        open.report_arrived(number, attempt(1));
        assert!(!open.has_reusable(), "another attempt is still under way");
        open.report_handled(number, attempt(1));
        open.report_arrived(number, attempt(2));
        assert_eq!(open.attempts(), [attempt(2)], "it is open until it was handled");
        assert_eq!(open.take_reusable(1), Some(number));
        open.send(number, &[attempt(3)], 1, "more");
        open.report_handled(number, attempt(2));
        open.finish_if_idle(number);
        assert_eq!(*connection.0.borrow(), ["send orders", "send more"]);
        open.report_handled(number, attempt(3));
        open.finish_if_idle(number);
        assert_eq!(connection.0.borrow().last().map(String::as_str), Some("finish"));
        assert_eq!(open.budget_of(number).map(|_| ()), None);
    }

    #[test]
    fn orders_that_make_too_many_calls_need_another_connection() {
        let (open, number, _) = opened(&[attempt(1)], 30);
        open.report_arrived(number, attempt(1));
        assert_eq!(open.take_reusable(3), None);
        open.report_arrived(number, attempt(1));
        assert_eq!(open.take_reusable(2), Some(number));
        let (open, number, _) = opened(&[attempt(1)], CALLS_PER_CONNECTION);
        open.report_arrived(number, attempt(1));
        assert!(!open.has_reusable());
    }

    #[test]
    fn an_aborted_attempt_ends_its_connection_with_the_last_of_the_others() {
        let (open, number, connection) = opened(&[attempt(1), attempt(2)], 2);
        open.abort(attempt(1));
        assert_eq!(open.attempts(), [attempt(2)]);
        assert!(open.was_ordered(number, attempt(1)), "its report may still come");
        open.report_arrived(number, attempt(2));
        assert_eq!(
            open.take_reusable(1),
            None,
            "the executor may still work on the first"
        );
        open.report_handled(number, attempt(2));
        open.finish_if_idle(number);
        assert_eq!(*connection.0.borrow(), ["send orders", "abort"]);
        assert!(!open.was_ordered(number, attempt(1)));
    }

    #[test]
    fn silent_connections_are_given_up() {
        let (open, _, connection) = opened(&[attempt(1), attempt(2)], 2);
        connection.1.set(89);
        assert!(open.abort_silent(90).is_empty());
        connection.1.set(90);
        assert_eq!(open.abort_silent(90), [attempt(1), attempt(2)]);
        assert!(open.attempts().is_empty());
        assert_eq!(connection.0.borrow().last().map(String::as_str), Some("abort"));
    }
}
