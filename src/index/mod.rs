//! The index of all runs: what is written to it, and how it is queried.

pub mod batch;
pub mod chunks;
pub mod index_view;
pub mod metrics;
pub mod pending;
pub mod run_query;
pub mod run_summary;
