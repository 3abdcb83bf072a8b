//! The loop of a run's object: load the run, do what is due, decide, commit, perform. It is written over `trait Platform`:
//! the Durable Object implements it with workerd, the simulator with its faults, and both run this code.
//!
//! The order is the whole point. A decision is committed together with its alarm before any of its commands is performed, so
//! that a crash at any moment leaves rows from which the run goes on. An event is decided on after what is due, so that it
//! cannot overtake a deadline that has passed.

mod delivery;
mod dispatch;
mod executor_calls;
mod go_on;
mod history;
mod live;
mod notify;
mod object;
mod platform;
mod requests;
mod subrequests;
mod trace_context;
mod trace_pages;
mod why;

pub use delivery::{Delivery, DeliveryId, DeliveryKind, DeliveryResult, EmittedEvent, Payload, Published};
pub use executor_calls::Attempt;
pub use object::{Config, Host};
pub use platform::{Connection, Error, IndexChange, LiveEvents, Platform, Result, Storage};
pub use subrequests::SubrequestBudget;
