//! What an executor does with a task. Pure: the platform is behind the `Runtime` trait.

pub mod address;
pub mod breaker;
pub(crate) mod call;
pub(crate) mod context;
mod emit;
pub mod inline;
pub mod llm;
pub mod mcp;
pub mod partial;
mod pass;
pub mod redact;
pub mod redirect;
pub mod request;
pub mod retry;
pub mod run_task;
pub mod runtime;
mod secret_encoding;
pub mod secret_hosts;
pub mod secrets;
pub mod shell;
pub mod sse;
pub mod status;
mod step;
pub mod task_cache;
pub mod task_result;
pub mod trace;
