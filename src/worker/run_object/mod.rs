//! The Durable Object of a run: `host` over workerd. Nothing here decides.

mod deliver;
mod durable_object;
mod index_publisher;
pub mod settings;
mod storage;
mod workerd;
