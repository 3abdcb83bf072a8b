//! Documents: workflows, tasks and actions read from JSON, their problems, and the snapshot that a run stores.
//!
//! Documents are untrusted. `base::limits` bounds their size and nesting, graph algorithms do not recurse, and reading
//! reports problems instead of panicking.

/// The name of the present moment in expressions (Unix ms): of the decision, and inside a task of the beginning of its step.
pub const NOW: &str = "now";

/// The field by which editors find the schema of a document. It is ignored.
const SCHEMA: &str = "$schema";

pub mod action;
mod adaptive;
pub mod call_time;
pub mod ending;
mod escalate;
pub mod event;
pub mod event_kinds;
pub mod fan;
pub mod graph;
mod hard_limits;
pub mod http;
pub mod http_request;
mod inline;
pub mod llm;
mod mapping;
pub mod mcp_tool;
pub mod node;
pub mod notify;
pub mod path;
pub mod problem;
pub mod reader;
mod resolve;
mod resolver;
pub mod retry;
pub mod secret;
pub mod service_call;
pub mod shell;
pub mod snapshot;
pub mod step;
pub mod task;
pub mod timeouts;
pub mod transition;
mod typed;
pub mod wait;
pub mod workflow;
