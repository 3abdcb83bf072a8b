//! Runs tasks. `task` holds the rules, `context` what the steps write, `partial` what is left of a task that did not
//! complete, `emit` the events it brings, `call` and `retry` when an action is called again, `breaker` whether it is called at all, `request`,
//! `redirect`, `address` and `status` what goes over the wire and what comes of it, `mcp` and `shell` what tools and
//! commands are asked and answer, `secrets` and `redact` what must not leave; these are pure, and `inline` runs pure tasks
//! inside the coordinator. `worker` and one file per kind of call touch the world.

pub mod address;
pub mod breaker;
#[cfg(target_arch = "wasm32")]
mod breaker_door;
mod call;
mod context;
mod emit;
#[cfg(target_arch = "wasm32")]
mod http;
mod http_date;
pub mod inline;
pub mod llm;
pub mod mcp;
#[cfg(target_arch = "wasm32")]
mod mcp_client;
pub mod partial;
pub mod redact;
pub mod redirect;
pub mod request;
pub mod retry;
pub mod secrets;
pub mod shell;
#[cfg(target_arch = "wasm32")]
mod shell_client;
pub mod sse;
pub mod status;
pub mod task;
pub mod task_cache;
#[cfg(target_arch = "wasm32")]
mod worker;
