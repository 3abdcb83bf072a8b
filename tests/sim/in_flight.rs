//! Messages on their way between objects, executors, queue consumers and operators.

use curfew::host::{Attempt, Delivery, DeliveryId, DeliveryKind, DeliveryResult, SubrequestBudget};
use curfew::protocol::caller::Caller;
use curfew::protocol::notification::{NotificationOrder, NotificationReport};
use curfew::protocol::run::{RetryMode, RunRequest};
use curfew::protocol::task::{TaskMessage, TaskReport};

use super::environment::ConnectionId;

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
    /// An operator's request, or a message from inside.
    Request {
        run: String,
        caller: Option<Caller>,
        request: RunRequest,
    },
    /// An operator's retry. Its token is chosen by `choice` from the tokens that can be retried on arrival.
    Retry {
        run: String,
        mode: RetryMode,
        choice: Option<u64>,
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
}

/// The incarnation of an object that made a call, and the budget of the invocation.
#[derive(Clone)]
pub struct Sender {
    pub run: String,
    pub incarnation: u64,
    pub budget: SubrequestBudget,
}
