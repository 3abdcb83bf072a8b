//! Every native test in one crate: one link step instead of five, and the drivers are shared.

mod analysis;
mod api;
mod breaker;
mod definition;
mod docs;
mod fuzz;
mod golden;
mod index;
mod replay;
mod rooms;
mod run;
mod sim;
mod simulate;
mod task;
mod trace;
mod why;
