//! Waits for an operation of JavaScript, which calls back with its id and how it ended. A future of `wasm-bindgen-futures` would
//! cost a promise, two closures and a microtask for each.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use wasm_bindgen::prelude::*;

use crate::worker::platform::inline_executor;

pub type Done = Closure<dyn Fn(u32, u8)>;

thread_local! {
    static OPERATIONS: RefCell<Operations> = RefCell::default();
    /// One for all operations: creating a closure costs more than the call.
    static DONE: Done = Closure::new(complete);
}

/// Starts an operation and returns how it ended. `start` gets the id and the callback.
pub fn run_operation(start: impl FnOnce(u32, &Done)) -> impl Future<Output = u8> {
    let operation = Operation::new();
    DONE.with(|done| start(operation.0, done));
    operation
}

/// Operations under way, by their id.
#[derive(Default)]
struct Operations {
    last_id: u32,
    states: BTreeMap<u32, OperationState>,
}

enum OperationState {
    /// The waker is there once the operation was polled.
    Pending(Option<Waker>),
    Ended(u8),
}

/// Called from JavaScript. An operation that is not there was dropped.
fn complete(id: u32, how: u8) {
    let before = OPERATIONS.with_borrow_mut(|operations| {
        let state = operations.states.get_mut(&id)?;
        Some(std::mem::replace(state, OperationState::Ended(how)))
    });
    if let Some(OperationState::Pending(Some(waker))) = before {
        inline_executor::wake(waker);
    }
}

/// Resolves to how the operation ended.
struct Operation(u32);

impl Operation {
    fn new() -> Operation {
        OPERATIONS.with_borrow_mut(|operations| {
            operations.last_id = operations.last_id.wrapping_add(1);
            let id = operations.last_id;
            operations.states.insert(id, OperationState::Pending(None));
            Operation(id)
        })
    }
}

impl Future for Operation {
    type Output = u8;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<u8> {
        OPERATIONS.with_borrow_mut(|operations| {
            let state = operations.states.get_mut(&self.0);
            match state.expect("it stays until the operation is dropped") {
                OperationState::Ended(how) => Poll::Ready(*how),
                OperationState::Pending(waker) => {
                    *waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        OPERATIONS.with_borrow_mut(|operations| operations.states.remove(&self.0));
    }
}
