//! The boundary between the rules of a task and the platform: what a task calls, and how a call may end.

use serde_json::Value;

use crate::base::compute::Meter;
use crate::base::failure::Failure;
use crate::base::time::Millis;
use crate::breaker::machine::CallOutcome;
use crate::cel::Scope;
use crate::definition::action::Action;
use crate::protocol::task::RetryReport;
use crate::task::breaker::{Admission, Permit};
use crate::task::progress::ProgressCell;
use crate::task::secrets::{CallSecrets, SecretStore};
use crate::task::trace::CallNotes;

/// What a task needs of the platform, which has one thread: nothing is `Send`.
#[allow(async_fn_in_trait)]
pub trait Runtime {
    fn now(&self) -> Millis;
    async fn sleep(&self, millis: u64);
    /// Performs an action that is not pure. Must give up at `deadline_at` with `Stopped::Deadline`.
    async fn perform(&self, call: ActionCall<'_>) -> Result<Value, Stopped>;
    /// Uniform in 0..1.
    fn random(&self) -> f64;
    /// The secrets of this executor.
    fn secrets(&self) -> &SecretStore;
    /// Logs that a call failed and is retried.
    fn note_retry(&self, step_ref: &str, retry: &RetryReport);
    /// Counts the computation of a task that runs inside a decision of a run.
    fn meter(&self) -> Option<&Meter> {
        None
    }
    /// Where the progress of the task is written, if it is sent anywhere.
    fn progress(&self) -> Option<&ProgressCell> {
        None
    }
    /// Whether the breaker with this key admits a call that ends at `deadline_at`. Without breakers every call is admitted.
    async fn admit(&self, _key: &str, _deadline_at: Option<Millis>) -> Admission {
        Admission::Call(Permit::Blind)
    }
    /// Reports the outcome of an admitted call to its breaker.
    async fn report_to_breaker(&self, _key: &str, _permit: Permit, _outcome: CallOutcome) {}
}

#[derive(Clone, Copy)]
pub struct ActionCall<'a> {
    pub action: &'a Action,
    pub scope: &'a Scope<'a>,
    pub input: &'a Value,
    pub deadline_at: Option<Millis>,
    pub step_ref: &'a str,
    /// Business retries of the task before this pass over its steps.
    pub rounds_before: u32,
    /// Where the result of an async action is to be posted.
    pub callback_url: Option<&'a str>,
    /// The trace context that the call carries.
    pub traceparent: Option<&'a str>,
    /// What the call adds to the report of its step.
    pub notes: &'a CallNotes,
    /// Text is redacted before it is cut: half a secret would not be found.
    pub secrets: CallSecrets<'a>,
}

impl ActionCall<'_> {
    /// The idempotency key of this call, made of the order's key `work`. Each call of a task has its own, because each is work of
    /// its own. It stays the same when the call or the attempt is retried. A business retry changes it: a peer that honours the
    /// key would return the response that was not good enough.
    pub fn idempotency_key(&self, work: &str) -> String {
        match self.rounds_before {
            0 => format!("{work}:{}", self.step_ref),
            rounds => format!("{work}:{}:{}", self.step_ref, u64::from(rounds) + 1),
        }
    }
}

/// Why an action has no result.
#[derive(Debug)]
pub enum Stopped {
    Failed(Failure),
    /// It failed after this text had arrived.
    FailedMidway {
        failure: Failure,
        partial: String,
    },
    /// The text that had arrived; none if no response had begun.
    Deadline {
        partial: Option<String>,
    },
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Stopped {
        Stopped::Failed(failure)
    }
}
