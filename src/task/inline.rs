//! A task run where its input is: for tasks that touch nothing but their own context.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use serde_json::Value;

use crate::base::compute::Meter;
use crate::base::time::Millis;
use crate::protocol::task::RetryReport;
use crate::task::secrets::Missing;
use crate::task::steps::{ActionCall, Assignment, Done, Runtime, Stopped, run_task};

/// A world in which nothing happens and no time passes.
struct NoIoRuntime<'m> {
    now: Millis,
    meter: &'m Meter,
}

impl Runtime for NoIoRuntime<'_> {
    fn meter(&self) -> Option<&Meter> {
        Some(self.meter)
    }

    fn now(&self) -> Millis {
        self.now
    }

    async fn sleep(&self, _millis: u64) {
        unreachable!("a task that waits between its attempts is not run here");
    }

    async fn perform(&self, _call: ActionCall<'_>) -> Result<Value, Stopped> {
        unreachable!("a task that calls out is not run here");
    }

    fn random(&self) -> f64 {
        unreachable!("only waits between calls need it");
    }

    fn secret(&self, _name: &str) -> Result<String, Missing> {
        unreachable!("a task with secrets is not run here");
    }

    fn note_retry(&self, _step_ref: &str, _retry: &RetryReport) {
        unreachable!("only calls are made again");
    }
}

/// Runs a pure task to its end, on the account of the decision it is part of. It waits for nothing, so the first poll is
/// the last.
pub fn run_here(now: Millis, meter: &Meter, assignment: Assignment<'_>) -> Done {
    let world = NoIoRuntime { now, meter };
    let task = pin!(run_task(&world, assignment));
    match task.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => unreachable!("a pure task waits for nothing"),
    }
}
