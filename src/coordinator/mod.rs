//! The run's Durable Object: load, handle, commit, perform, set the alarm. It decides nothing.

mod calls;
pub mod consume;
mod deliver;
mod dispatch;
mod history;
mod news;
mod object;
mod run_do;
mod turn;
