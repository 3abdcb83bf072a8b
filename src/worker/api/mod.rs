//! The API Worker.

mod access;
mod authorize;
mod batch;
mod callback;
mod catalogue;
mod documents;
pub mod fetch;
pub mod live;
pub mod prepare_start;
pub mod publish_event;
mod replay;
mod request;
pub mod respond;
mod simulate;
mod timeout;
