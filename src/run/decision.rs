//! The output of a run's decision: rows and an alarm that are committed together, and commands performed after the commit.
//! A command is final: performing it needs no further decision.

use std::rc::Rc;

use serde_json::Value;

use crate::base::time::Millis;
use crate::run::fan::Instance;
use crate::run::header::Header;
use crate::run::message::Message;
use crate::run::notification::Notification;
use crate::run::time::event_log::RunEvent;
use crate::run::token::order::AttemptOrder;
use crate::run::token::{Token, TokenId};
use crate::run::wait::gate::GateState;

/// The result of handling an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Commit the writes and the alarm together, then perform the commands in their order.
    Update {
        writes: Vec<Write>,
        /// The new time of the storage alarm. `None` leaves the alarm unchanged.
        alarm: Option<Millis>,
        commands: Vec<Command>,
    },
    /// The run is past its retention: delete its storage and its alarm, and nothing else.
    DeleteStorage,
}

/// A row to save or to delete.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    SaveSnapshot(Rc<str>),
    SaveInput(Rc<Value>),
    SaveRun(Box<Header>),
    /// `key` is `state.<name>` or `output.<name>`; the text is JSON, or `context::GONE`.
    SaveContext {
        key: String,
        text: String,
    },
    DeleteContext {
        key: String,
    },
    SaveToken(Box<Token>),
    SaveInstance(Box<Instance>),
    SaveGate(Box<GateState>),
    SaveEvent(Box<RunEvent>),
    /// Signals that no token has consumed yet.
    SaveSignals {
        name: String,
        payloads: Vec<Value>,
    },
    SaveMessage {
        id: u64,
        message: Box<Message>,
    },
    DeleteMessage {
        id: u64,
    },
    SaveNotification(Box<Notification>),
    DeleteNotification {
        number: u64,
    },
    /// This commit saves a wake, so the count of consecutive failed wakes is reset.
    DeleteFailedWakes,
}

/// Something to do after the commit.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Cancel the call of this attempt; its report no longer counts.
    AbortAttempt {
        token: TokenId,
        epoch: u64,
    },
    /// Call an executor.
    DispatchTask(AttemptOrder),
    /// Send the queue message by which a consumer finds this attempt.
    EnqueueAttempt {
        token: TokenId,
        epoch: u64,
    },
    /// Answer the claim that is being handled.
    RespondToClaim(AttemptOrder),
    /// Send an outbox message. Its delivery or failure is reported as an event.
    DeliverMessage {
        id: u64,
        message: Message,
    },
    /// Let an executor post a notification. What became of it is reported as an event.
    SendNotification(Box<Notification>),
    /// Publish the run's summary to the index.
    PublishRun,
    PublishGate(Box<GateState>),
    /// Publish the latency of a node with an adaptive limit.
    PublishLatency {
        node_id: String,
        token: TokenId,
        millis: u64,
    },
    /// Show the new progress of an attempt to those who watch the run. It is on the token.
    PublishProgress {
        token: TokenId,
        epoch: u64,
    },
    /// Answer the requests that wait for the run's end.
    NotifyRunEnded,
}

impl Default for Decision {
    fn default() -> Decision {
        Decision::Update {
            writes: Vec::new(),
            alarm: None,
            commands: Vec::new(),
        }
    }
}

impl Decision {
    pub fn writes(&self) -> &[Write] {
        match self {
            Decision::Update { writes, .. } => writes,
            Decision::DeleteStorage => &[],
        }
    }

    pub fn alarm(&self) -> Option<Millis> {
        match self {
            Decision::Update { alarm, .. } => *alarm,
            Decision::DeleteStorage => None,
        }
    }

    pub fn commands(&self) -> &[Command] {
        match self {
            Decision::Update { commands, .. } => commands,
            Decision::DeleteStorage => &[],
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Decision::Update {
                writes,
                alarm,
                commands,
            } => writes.is_empty() && alarm.is_none() && commands.is_empty(),
            Decision::DeleteStorage => false,
        }
    }
}

impl Write {
    /// The event of the run's history that is saved.
    pub fn event(&self) -> Option<&RunEvent> {
        if let Write::SaveEvent(event) = self {
            Some(event)
        } else {
            None
        }
    }

    /// The message of the outbox that is saved.
    pub fn message(&self) -> Option<&Message> {
        if let Write::SaveMessage { message, .. } = self {
            Some(message)
        } else {
            None
        }
    }
}

impl Command {
    /// The attempt to dispatch to an executor.
    pub fn dispatched(&self) -> Option<&AttemptOrder> {
        if let Command::DispatchTask(order) = self {
            Some(order)
        } else {
            None
        }
    }
}
