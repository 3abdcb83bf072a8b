//! Curfew: a durable workflow coordinator for Cloudflare Workers.
//!
//! The rooms, from the inside out. `tests/rooms.rs` reads every `use crate::` and fails on an edge that its table does not
//! list; ARCHITECTURE.md shows the same table.
//!
//! Everything but `worker` is pure: it compiles natively and knows no clock, no randomness and no platform. The dependency
//! `worker` exists for wasm32 alone, so a pure module that imports the platform does not compile in the native tests.

pub mod base;
pub mod cel;
pub mod json_schema;

pub mod definition;
pub mod protocol;

pub mod breaker;
pub mod task;

pub mod run;

pub mod analysis;

pub mod trace;

pub mod api;
pub mod index;
pub mod storage;

pub mod why;

pub mod host;

pub mod simulate;

pub mod replay;

#[cfg(any(feature = "engine", not(target_arch = "wasm32")))]
pub mod engine;

#[cfg(all(target_arch = "wasm32", feature = "platform"))]
mod worker;
