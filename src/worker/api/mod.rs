//! The API Worker.

mod access;
mod authorize;
mod batch;
mod callback;
mod catalogue;
pub mod fetch;
pub mod live;
pub mod prepare_start;
pub mod publish_event;
pub mod respond;
mod simulate;
