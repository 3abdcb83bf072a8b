//! Runs tasks. `task` holds the rules and is pure; `worker` and one file per kind of call touch the world.

#[cfg(target_arch = "wasm32")]
mod http;
pub mod task;
#[cfg(target_arch = "wasm32")]
mod worker;
