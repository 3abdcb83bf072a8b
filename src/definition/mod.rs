//! Documents: what a workflow is, its problems, and the snapshot a run keeps.

pub mod action;
mod adaptive;
mod escalate;
pub mod event;
pub mod fan;
pub mod graph;
mod hard_limits;
mod inline;
pub mod llm;
pub mod mcp_tool;
pub mod path;
pub mod problem;
pub mod reader;
mod resolve;
pub mod retry;
pub mod secret;
pub mod shell;
pub mod snapshot;
pub mod task;
pub mod timeouts;
pub mod wait;
pub mod workflow;
