//! What a workflow is: documents and the types they are read into. Pure; knows no clock and no platform.

pub mod action;
mod adaptive;
mod escalate;
pub mod expression;
pub mod failure;
pub mod fan;
pub mod graph;
mod hard_limits;
pub mod ids;
mod inline;
pub mod limits;
pub mod llm;
pub mod mcp_tool;
pub mod path;
pub mod problem;
pub mod reader;
mod resolve;
pub mod retry;
pub mod schema;
pub mod secret;
pub mod shell;
pub mod snapshot;
pub mod task;
pub mod time;
pub mod timeouts;
pub mod wait;
pub mod workflow;
