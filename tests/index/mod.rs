//! What the index is told of runs, and what it makes of it.

mod batch;
mod index_view;
mod run_lists;
mod run_summary;
