//! Runs a pure task inside the decision that made its token ready.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use serde_json::Value;

use crate::base::compute::Meter;
use crate::base::time::Millis;
use crate::protocol::task::RetryReport;
use crate::task::run_task::{Assignment, run_task};
use crate::task::runtime::{ActionCall, Runtime, Stopped};
use crate::task::secrets::SecretStore;
use crate::task::task_result::TaskResult;

/// A runtime without I/O, in which no time passes.
struct NoIoRuntime<'m> {
    now: Millis,
    meter: &'m Meter,
    /// There are none in the coordinator.
    secrets: SecretStore,
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

    /// A task with secrets is not run here.
    fn secrets(&self) -> &SecretStore {
        &self.secrets
    }

    fn note_retry(&self, _step_ref: &str, _retry: &RetryReport) {
        unreachable!("only calls are retried");
    }
}

/// Runs a pure task to its end; its computation is charged to the decision. It waits for nothing, so that the first poll
/// finishes it.
pub fn run_inline(now: Millis, meter: &Meter, assignment: Assignment<'_>) -> TaskResult {
    let runtime = NoIoRuntime {
        now,
        meter,
        secrets: SecretStore::default(),
    };
    let task = pin!(run_task(&runtime, assignment));
    match task.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => unreachable!("a pure task waits for nothing"),
    }
}
