//! The index in D1: what its queue's consumer writes and what the API reads.

pub mod breakers;
pub mod consumer;
pub mod event_starts;
pub mod gates;
pub mod latencies;
pub mod metrics;
pub mod operations;
pub mod page;
pub mod runs;
pub mod traces;
