//! What the index is told of runs, and what it makes of it.

mod index_view;
mod letters;
mod run_lists;
mod standing;
