//! A task run where its input is: for tasks that touch nothing but their own context.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use serde_json::Value;

use super::task::{ActionCall, Assignment, Done, Stopped, World, run_task};
use crate::model::time::Millis;

/// A world in which nothing happens and no time passes.
struct Still {
    now: Millis,
}

impl World for Still {
    fn now(&self) -> Millis {
        self.now
    }

    async fn sleep(&self, _millis: u64) {
        unreachable!("a task that waits between its attempts is not run here");
    }

    async fn perform(&self, _call: ActionCall<'_>) -> Result<Value, Stopped> {
        unreachable!("a task that calls out is not run here");
    }
}

/// Runs a pure task to its end. It waits for nothing, so the first poll is the last.
pub fn run_here(now: Millis, assignment: Assignment<'_>) -> Done {
    let world = Still { now };
    let task = pin!(run_task(&world, assignment));
    match task.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => unreachable!("a pure task waits for nothing"),
    }
}
