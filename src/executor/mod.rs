//! Runs tasks. `task` holds the rules, `context` what the steps write, `partial` what is left of a task that did not
//! complete, `call` and `retry` when an action is called again, `request`, `redirect`, `address` and `status` what goes
//! over the wire and what comes of it, `secrets` and `redact` what must not leave; these are pure. `worker` and one
//! file per kind of call touch the world.

pub mod address;
mod call;
mod context;
#[cfg(target_arch = "wasm32")]
mod http;
mod http_date;
pub mod partial;
pub mod redact;
pub mod redirect;
pub mod request;
pub mod retry;
pub mod secrets;
pub mod status;
pub mod task;
pub mod task_cache;
#[cfg(target_arch = "wasm32")]
mod worker;
