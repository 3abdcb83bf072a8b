//! Everything that touches the platform. It carries out; it decides nothing.

mod api;
mod breaker_object;
mod entry;
mod executor;
mod index;
mod platform;
mod run_client;
mod run_object;
mod sqlite;
mod sweep;
mod task_consumer;
