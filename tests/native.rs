//! Every native test in one crate: one link step instead of five, and the drivers are shared.

mod api;
mod breaker;
mod engine;
mod executor;
mod fuzz;
mod golden;
mod model;
mod sim;
mod watch;
