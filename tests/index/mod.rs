//! The index: messages, views, summaries and lists of runs.

mod batch;
mod index_view;
mod metrics;
mod run_lists;
mod run_summary;
