//! The pure parts of the API that deal with time: what a person may ask for, and what a run has to say for itself.

mod control;
mod deliverables;
mod events;
mod recovery;
mod standing;
mod timeouts;
