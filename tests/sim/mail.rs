//! What is on its way to the object.

use curfew::engine::{Event, TokenId};

pub enum Mail {
    /// `life` is the object's life in which the call was made.
    Answer {
        life: u64,
        attempt: (TokenId, u64),
        event: Event,
    },
    Request(Event),
}

/// A call that ended without an answer.
pub fn lost(attempt: (TokenId, u64)) -> Event {
    Event::CallLost {
        token: attempt.0,
        epoch: attempt.1,
        message: "reset".into(),
    }
}
