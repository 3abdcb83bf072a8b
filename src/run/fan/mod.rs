//! Fan-out and fan-in.
//!
//! A transition with a sibling group fans out: its tokens form one [`Instance`], one token per branch. A transition
//! with `synchronization` joins them: the branches of one instance wait there until its quorum is reached, and
//! exactly one token continues.
//!
//! [`instances::Instances`] owns the state: open instances, arrivals at joins, and which of them a decision changed. It
//! reads and writes nothing else and is tested alone; [`quorum`] and the merge strategies are pure functions. The
//! other files are the part of `Run` that acts on them: they end and create tokens, merge results and set timers.
//! Code outside this folder asks `Run::fans`, or calls `follow`, `arrive`, `branch_ended` and `fan_in_due`.

pub mod deadline;
pub mod fail;
pub mod fire;
pub mod instance;
pub mod instances;
pub mod join;
pub mod merge;
pub mod out;
pub mod quorum;

pub use instance::{Branch, FanIn, FanInState, Instance, InstanceId, InstanceStatus};
