//! Runs tasks. `task` holds the rules, `context` what the steps write, `partial` what is left of a task that did not
//! complete; these are pure, and `inline` runs such tasks
//! inside the coordinator. `worker` and one file per kind of call touch the world.

mod context;
#[cfg(target_arch = "wasm32")]
mod http;
pub mod inline;
pub mod partial;
pub mod task;
#[cfg(target_arch = "wasm32")]
mod worker;
