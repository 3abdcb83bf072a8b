//! What is on its way to an object.

use curfew::run::{Event, RetryMode, TokenId};

use serde_json::Value;

use crate::run::driver::Start;

pub enum Mail {
    /// The end of a call to the executor. `life` is the object's life in which the call was made.
    Answer {
        run: String,
        life: u64,
        attempt: (TokenId, u64),
        event: Event,
    },
    /// A message of the queue: an attempt is to be claimed. `tries`: how often the queue delivers it again, under the same
    /// number.
    Ring {
        run: String,
        attempt: (TokenId, u64),
        message: u64,
        tries: u64,
    },
    /// Whoever claimed an attempt says that it lives, and will so `left` times more.
    Heartbeat {
        run: String,
        attempt: (TokenId, u64),
        left: u64,
    },
    /// What came of a claimed attempt, or of the callback it was promised. No object's life matters to it.
    Consumer {
        run: String,
        attempt: (TokenId, u64),
        event: Event,
    },
    /// Somebody asks something of a run.
    Request { run: String, event: Event },
    /// A run that ended is to go on. What it takes is read when it is asked for; `choice` picks among its tokens.
    Retry {
        run: String,
        mode: RetryMode,
        choice: Option<u64>,
    },
    /// A message of the outbox of `from`.
    Letter {
        from: String,
        life: u64,
        id: u64,
        to: String,
        content: Content,
    },
    /// The end of the call that carried a letter.
    Receipt { run: String, life: u64, event: Event },
}

#[derive(Clone)]
pub enum Content {
    Start(Box<Start>),
    Say(Event),
    /// An event for whoever it triggers.
    Raise {
        key: String,
        payload: Value,
        after: Option<String>,
    },
}

/// A call that ended without an answer.
pub fn lost(attempt: (TokenId, u64)) -> Event {
    Event::CallLost {
        token: attempt.0,
        epoch: attempt.1,
        message: "reset".into(),
    }
}
