//! Curfew: a durable workflow coordinator for Cloudflare Workers.
//!
//! Layers, from the inside out; each may use those above it and none below:
//!
//! - `model`: what a workflow is. Pure.
//! - `wire`: what coordinator and executor say to each other. Pure.
//! - `engine`: the decisions, `Run::handle(now, event) -> effects`. Pure.
//! - `store`: rows <-> engine state. Pure but for `store::sqlite`.
//! - `breaker::{machine, wire}`, `executor::task`, `api::{routes, auth, start, views}`: the rules of the shells. Pure.
//! - `platform`, `coordinator`, `executor`, `breaker`, `api`, `watch`: the shells, on wasm only. They carry out; they decide nothing.
//!
//! The dependency `worker` exists for wasm32 alone, so a pure module that reaches for the platform does not
//! compile in the native tests.

pub mod api;
pub mod breaker;
pub mod engine;
pub mod executor;
pub mod model;
pub mod store;
pub mod watch;
pub mod wire;

#[cfg(target_arch = "wasm32")]
mod coordinator;
#[cfg(target_arch = "wasm32")]
mod entry;
#[cfg(target_arch = "wasm32")]
mod platform;
