//! Messages on their way between objects, executors, queue consumers, peers and people.

use crate::host::{Attempt, Delivery, DeliveryId, DeliveryKind, DeliveryResult, SubrequestBudget};
use crate::protocol::caller::Caller;
use crate::protocol::notification::{NotificationOrder, NotificationReport};
use crate::protocol::run::RunRequest;
use crate::protocol::task::{TaskMessage, TaskReport};
use crate::simulate::environment::ConnectionId;

pub enum InFlight {
    Report {
        connection: ConnectionId,
        report: TaskReport,
    },
    /// The line of an attempt's progress.
    Progress {
        connection: ConnectionId,
        line: String,
    },
    ConnectionClosed {
        connection: ConnectionId,
    },
    /// A message of the task queue. `deliveries_left`: how often the queue delivers it again, under the same number.
    QueueMessage {
        message: TaskMessage,
        number: u64,
        deliveries_left: u64,
    },
    /// A consumer's heartbeat; `left` more follow.
    Heartbeat {
        run: String,
        attempt: Attempt,
        left: u64,
    },
    /// The result of a claimed attempt, or a callback. Repeated until it is answered.
    Result {
        run: String,
        attempt: Attempt,
        request: RunRequest,
    },
    /// A request of a person, or a message from inside.
    Request {
        run: String,
        caller: Option<Caller>,
        request: RunRequest,
        /// Until it is answered.
        is_repeated: bool,
    },
    /// A message of the outbox of `from`.
    Message {
        from: Sender,
        delivery: Delivery,
    },
    /// The end of the call that carried it.
    DeliveryEnded {
        to: Sender,
        id: DeliveryId,
        kind: DeliveryKind,
        result: DeliveryResult,
    },
    /// A notification on its way to its receiver.
    Notification {
        from: Sender,
        number: u64,
        order: Box<NotificationOrder>,
    },
    NotificationEnded {
        to: Sender,
        number: u64,
        report: NotificationReport,
    },
    /// Something of the world's own.
    Scheduled(u64),
}

/// The incarnation of an object that made a call, and the budget of the invocation.
#[derive(Clone)]
pub struct Sender {
    pub run: String,
    pub incarnation: u64,
    pub budget: SubrequestBudget,
}
