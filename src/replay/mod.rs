//! Runs a recorded run again in virtual time, with the answers and durations that its history has: the same loop and engine as
//! production, over a world that answers from the recording. With another limit or policy it says what would have happened.
//!
//! A recording cannot say what a call would have answered that was cut or never made. There the replay stops and says so.

mod changed_durations;
mod comparison;
mod departure;
mod documents;
mod export;
mod export_bounds;
mod history;
pub mod json_patch;
mod outcome;
mod recorded_calls;
mod recorded_child;
mod recorded_children;
mod recorded_decisions;
mod recorded_requests;
mod recorded_tasks;
mod recorded_world;
mod recording;
mod replaying;
mod unplayed;
mod what_if;

pub use export::{Export, FORMAT, LISTS, Page, Parts, export_text, from_version};
pub use what_if::{Resolved, WhatIf, WhatIfBody, what_if_alone};
