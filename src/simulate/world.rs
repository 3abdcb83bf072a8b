//! What is around the simulated objects: executors, peers, receivers, other workflows, and what observes them. The simulator of
//! a request answers with mocks, the one of our own tests with random reports.

use crate::base::time::Millis;
use crate::host::{Attempt, EmittedEvent, LiveEvents, Published};
use crate::protocol::notification::{NotificationOrder, NotificationReport};
use crate::protocol::run::{RunRequest, RunResponse};
use crate::protocol::task::{StepProgress, TaskMessage};
use crate::run::{Decision, Event, Run, Write};
use crate::simulate::environment::{ConnectionId, Environment};
use crate::simulate::faults::Faults;
use crate::simulate::platform::Durable;
use crate::simulate::store::Store;
use crate::storage::commit::Commit;

/// What happened between objects, besides faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    MessageSent,
    Claimed,
    ClaimRefused,
    ClaimResponseLost,
    /// A report that arrived together with another.
    ReportBatched,
    /// The clock of a run stopped, because all its tokens stand at gates.
    ClockStopped,
}

/// A decision, with what it was decided on.
pub struct Observed<'a> {
    pub run_id: &'a str,
    /// After the decision.
    pub run: &'a Run,
    pub event: &'a Event,
    pub is_accepted: bool,
    pub decision: &'a Decision,
    pub now: Millis,
}

pub trait World: Sized {
    fn environment(&self) -> &Environment;

    /// Orders, one per line, reach an executor. `store` has the rows of their run.
    fn orders_arrived(&self, store: &Store, connection: &ConnectionId, orders: &str);

    /// The object has closed the connection: its executor stops.
    fn connection_closed(&self, _connection: &ConnectionId) {}

    /// The object left memory, with its connections.
    fn object_left(&self, _run: &str) {}

    /// How long a message waits in the task queue.
    fn queue_delay(&self, _message: &TaskMessage) -> u64 {
        match self.fault(|faults| faults.slow) {
            true => self.environment().below(60_000),
            false => self.environment().delay(100),
        }
    }

    /// When the alarm rings that a run has set for the moment `at`.
    fn alarm_rings_at(&self, at: Millis) -> Millis {
        let environment = self.environment();
        let late = match self.fault(|faults| faults.late_alarm) {
            true => 1 + environment.below(70_000),
            false => 0,
        };
        let early = match late == 0 && self.fault(|faults| faults.early_alarm) {
            true => 1 + environment.below(5_000),
            false => 0,
        };
        at.saturating_add(late).saturating_sub(early)
    }

    /// A consumer of the queue has claimed an attempt and got its order.
    fn order_claimed(&self, store: &Store, order: &str);

    /// Whether the consumer of a claimed attempt still works on it, and what it reports with its heartbeat.
    fn progress_of(&self, run: &str, attempt: Attempt) -> Option<Option<StepProgress>>;

    /// A heartbeat was answered that the attempt does not count any more.
    fn claim_ended(&self, run: &str, attempt: Attempt);

    fn publish(&self, event: &EmittedEvent) -> Published;

    /// A receiver gets a notification. `None`: the answer is lost.
    fn receive(&self, order: &NotificationOrder) -> Option<NotificationReport>;

    /// The response to a message for another run, where no simulated object answers. `sender` has the rows of the run it is from.
    fn answer(&self, _sender: &Store, _run_id: &str, _request: &RunRequest) -> Option<RunResponse> {
        None
    }

    /// What a run answered to a request of a person.
    fn answered(&self, _run: &str, _request: &RunRequest, _response: &RunResponse) {}

    /// A property that must hold for any run does not.
    fn broken(&self, run: &str, what: String);

    /// Draws a fault.
    fn fault(&self, odds: fn(&Faults) -> u64) -> bool {
        self.environment().fault(odds)
    }

    /// Whether the database refuses a commit. `store` has the rows of the run.
    fn refuses_commit(&self, _run: &str, _store: &Store) -> bool {
        self.fault(|faults| faults.commit_fails)
    }

    fn happened(&self, _what: Happening) {}

    /// A line of the history, for people.
    fn note(&self, _run: &str, _what: &str) {}

    fn decided(&self, _observed: &Observed<'_>) {}

    /// `writes` are empty where nothing is checked.
    fn committed(&self, _run: &str, _durable: &Durable, _commit: &Commit, _writes: &[Write]) {}

    /// The computation of a decision, in steps.
    fn computed(&self, _steps: u64) {}

    fn events_published(&self, _run: &str, _store: &Store, _events: &LiveEvents) {}

    fn progress_published(&self, _store: &Store, _line: &str) {}
}
