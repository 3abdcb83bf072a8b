//! HTTP in, answers out. `routes`, `auth`, `query`, `body`, `start`, `event`, `views` and `error` are pure; `worker`, `launch`, `raise` and
//! `catalogue` are the shell.

pub mod auth;
pub mod body;
pub mod control;
pub mod decision;
pub mod error;
pub mod event;
pub mod query;
pub mod recovery;
pub mod routes;
pub mod start;
pub mod views;

#[cfg(target_arch = "wasm32")]
mod catalogue;
#[cfg(target_arch = "wasm32")]
pub mod launch;
#[cfg(target_arch = "wasm32")]
pub mod raise;
#[cfg(target_arch = "wasm32")]
pub mod respond;
#[cfg(target_arch = "wasm32")]
pub mod worker;
