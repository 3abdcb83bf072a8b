//! The API Worker.

mod catalogue;
pub mod fetch;
pub mod prepare_start;
pub mod publish_event;
pub mod respond;
