//! The decisions, pure: `Run::handle(now, event)` answers with effects. No clock, no randomness, no I/O.

mod context;
mod deadline;
mod effect;
mod finish;
mod route;
mod run;
mod token;

pub use context::Context;
pub use effect::{Effect, Event, Order, Rejection};
pub use run::{Header, NewRun, Remembered, Run, RunStatus, Settings, StartRequest};
pub use token::{Lane, Token, TokenId, TokenStatus};
