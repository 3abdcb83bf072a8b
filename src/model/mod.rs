//! What a workflow is: documents and the types they are read into. Pure; knows no clock and no platform.

pub mod action;
pub mod expression;
pub mod failure;
pub mod fan;
pub mod graph;
pub mod ids;
pub mod limits;
pub mod path;
pub mod problem;
pub mod reader;
pub mod schema;
pub mod snapshot;
pub mod task;
pub mod time;
pub mod wait;
pub mod workflow;
