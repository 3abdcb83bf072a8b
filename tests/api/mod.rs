//! The pure parts of the API: what a caller reaches, control bodies, and views of runs and their history.

mod bulk;
mod control;
mod deliverables;
mod events;
mod paused_runs;
mod recovery;
mod scope;
mod timeouts;
