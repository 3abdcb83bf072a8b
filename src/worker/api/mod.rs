//! The API Worker.

mod authorize;
mod catalogue;
pub mod fetch;
pub mod prepare_start;
pub mod publish_event;
pub mod respond;
