//! The decisions, pure: `Run::handle(now, event)` answers with effects. No clock, no randomness, no I/O.

mod branch;
mod child;
mod conclude;
mod context;
mod control;
mod deadline;
mod effect;
mod fan_in;
mod fan_out;
mod finish;
mod gate;
mod header;
mod lane;
mod merge;
mod outbox;
mod recall;
mod route;
mod run;
mod token;
mod wait;

pub use branch::{Branch, FanIn, Instance, InstanceId};
pub use context::Context;
pub use effect::{ChildReport, Effect, Event, Message, Order, PastToken, Rejection, RestartPoint};
pub use gate::{Decision, GateState, GateStatus};
pub use header::{Header, ParentLink, RunStatus, Settings, StartRequest};
pub use lane::invocations;
pub use recall::Remembered;
pub use run::{NewRun, Run};
pub use token::{Lane, Token, TokenId, TokenStatus};
