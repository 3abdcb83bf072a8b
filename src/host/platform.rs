//! What the loop needs of the world around it. Nothing here decides: an implementation carries out, or fails.

use std::fmt;
use std::future::Future;

use serde_json::Value;

use crate::base::time::Millis;
use crate::host::delivery::Delivery;
use crate::host::subrequests::SubrequestBudget;
use crate::index::batch::RemovedRun;
use crate::protocol::notification::NotificationOrder;
use crate::protocol::task::TaskMessage;
use crate::run::{Decision, Event, MeasuredRows, Patch, Run, WrittenAt};
use crate::storage::commit::Commit;
use crate::storage::pages::ListedRow;
use crate::storage::restore::Rows;
use crate::storage::rows::ListedRowEvent;

/// A failure of the platform, or rows that cannot be read. The request fails; the run is as it was committed last.
#[derive(Debug, PartialEq, Eq)]
pub struct Error(pub String);

pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl From<String> for Error {
    fn from(message: String) -> Error {
        Error(message)
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Error {
        Error(error.to_string())
    }
}

/// A connection to an executor. Reports come back by `Host::reports_arrived`, its end by `Host::connection_closed`.
pub trait Connection {
    /// Orders, one per line.
    fn send(&self, orders: &str);

    /// Every order was answered.
    fn finish(&self);

    /// The executor stops at once.
    fn abort(&self);

    /// How long ago the executor's last sign of life came. Zero for a connection without heartbeats.
    fn silent_ms(&self) -> u64;
}

/// The rows of the object.
pub trait Storage {
    /// Whether there is a table. Rows of an older build are migrated. Nothing is written for an unknown run.
    fn has_table(&self) -> Result<bool>;

    /// `false`: there was one.
    fn create_table(&self) -> Result<bool>;

    /// Takes back `create_table` of a start that failed.
    fn remove_table(&self) -> Result<()>;

    fn alarm_at(&self) -> impl Future<Output = Result<Option<Millis>>>;

    fn load(&self, alarm_at: Option<Millis>) -> Result<Rows>;

    /// Rows and alarm land together or not at all. `None` leaves the alarm as it is.
    fn commit(&self, commit: &Commit, alarm: Option<Millis>) -> Result<()>;

    /// Counts in a row of its own, because the commit of the wake failed.
    fn count_failed_wake(&self) -> Result<()>;

    /// Rows and alarm.
    fn delete_all(&self);

    /// Tokens by id, ended ones included.
    fn list_tokens(&self, after: u64, limit: u64) -> Result<Vec<ListedRow>>;

    fn list_events(&self, after: u64, limit: u64) -> Result<Vec<ListedRow>>;

    /// Events that stand on other rows.
    fn list_row_events(&self, after: u64, limit: u64) -> Result<Vec<ListedRowEvent>>;

    /// The events that have a timeout record.
    fn list_timeouts(&self, after: u64, limit: u64) -> Result<Vec<ListedRow>>;

    fn list_instances(&self) -> Result<Vec<ListedRow>>;

    /// The texts of the rows, in their order.
    fn values(&self, page: &[ListedRow]) -> Result<Vec<String>>;

    /// The undo record of one of a token's writes, where it is a row of its own.
    fn undo(&self, token: u64, at: WrittenAt) -> Result<Vec<Patch>>;

    /// What the metrics of the run are counted from, besides what is in memory.
    fn measured(&self) -> Result<MeasuredRows>;

    /// Rows written since the object came into memory, as the platform bills them.
    fn rows_written(&self) -> u64;

    /// How late deadlines were enforced: scope, count, total and maximal milliseconds.
    fn lateness(&self) -> Result<Vec<(String, u64, u64, u64)>>;
}

/// A change that the index of runs must learn of.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexChange {
    Run,
    Gate(String),
    /// A measured latency, as JSON.
    Latency(Value),
    Removed(RemovedRun),
}

/// The events of one commit, for clients that watch the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveEvents {
    /// The number of the last event before them.
    pub after: u64,
    pub last: u64,
    /// One JSON object a line.
    pub lines: String,
    /// The run has ended: nothing follows.
    pub has_ended: bool,
}

pub trait Platform {
    type Connection: Connection;
    type Storage: Storage;

    fn storage(&self) -> &Self::Storage;

    fn now(&self) -> Millis;

    /// Unguessable.
    fn random_id(&self) -> Result<String>;

    /// Never an input, an output or a secret.
    fn log(&self, line: Value);

    /// A connection that takes orders until it is finished. `None`: no executor is configured.
    fn connect(&self, number: u32) -> Option<Self::Connection>;

    /// A connection for one order, which needs no heartbeats.
    fn send_one(&self, number: u32, order: &str) -> Option<Self::Connection>;

    /// The URL of the API for others, or why it is unknown.
    fn public_url(&self) -> std::result::Result<String, String>;

    fn enqueue(&self, message: &TaskMessage);

    /// Sends a message of the outbox. The result comes back by `Host::delivery_ended`; one that is lost is sent again.
    fn deliver(&self, budget: &SubrequestBudget, delivery: Delivery);

    /// Lets an executor post a notification. The report comes back by `Host::notification_ended`; one that is lost is sent again.
    fn notify(&self, budget: &SubrequestBudget, number: u64, order: NotificationOrder);

    /// Losing a change costs a stale list until the sweep finds it.
    fn publish(&self, change: IndexChange);

    /// Publishes again what the index's queue refused.
    fn publish_refused(&self);

    /// Until `notify_run_ended`, at most for `millis`.
    fn wait_for_end(&self, millis: u64) -> impl Future<Output = ()>;

    fn notify_run_ended(&self);

    /// Whether a client watches the run.
    fn is_watched(&self) -> bool;

    /// A watcher that is lost, or that was not reached, asks for what it lacks.
    fn publish_events(&self, events: LiveEvents);

    /// The progress of an executing token, for clients that watch the run. It is not saved in the direct lane; losing it costs a
    /// moment until the next one.
    fn publish_progress(&self, line: &str);

    /// Observers of the simulator, around every decision.
    fn deciding(&self, _run: &Run, _event: &Event, _remaining_calls: u32) {}

    fn decided(&self, _run: &Run, _accepted: bool, _decision: &Decision) {}
}
