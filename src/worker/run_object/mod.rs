//! The run's Durable Object: load, decide, commit, perform, set the alarm.

mod deliver;
mod dispatch;
mod durable_object;
mod executor_calls;
mod history;
mod index_publisher;
pub mod object;
mod requests;
mod subrequests;
