//! Runs tasks. `task` holds the rules, `context` what the steps write, `partial` what is left of a task that did not
//! complete; these are pure. `worker` and one file per kind of call touch the world.

mod context;
#[cfg(target_arch = "wasm32")]
mod http;
pub mod partial;
pub mod task;
#[cfg(target_arch = "wasm32")]
mod worker;
