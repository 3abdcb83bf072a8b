//! How a run ends, and how it continues after its end.
//!
//! `ending` is the way from the decision to end to the end itself, with compensations (`compensate`) and end handlers. `finish`
//! ends a run once, with everything in it. `control` handles requests to cancel or restart it. A run that
//! failed or timed out can be resumed from what its end interrupted (`resume`), and any ended run can be restarted from a
//! token (`rewind`): both undo context writes with the patches that tokens saved (`undo`, `value_hash`),
//! and both may go on with another version of the workflow (`version`).
//!
//! No state is kept here between decisions: a resume is computed from the rows of the run.

pub mod compensate;
pub mod control;
pub mod ending;
pub mod finish;
pub mod resume;
pub mod rewind;
pub mod undo;
pub mod value_hash;
pub mod version;
