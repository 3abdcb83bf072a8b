//! What an executor does with a task. Pure: the platform is behind the `Runtime` trait of `steps`.

pub mod address;
pub mod breaker;
pub(crate) mod call;
pub(crate) mod context;
mod emit;
pub(crate) mod http_date;
pub mod inline;
pub mod llm;
pub mod mcp;
pub mod partial;
pub mod redact;
pub mod redirect;
pub mod request;
pub mod retry;
pub mod secrets;
pub mod shell;
pub mod sse;
pub mod status;
pub mod steps;
pub mod task_cache;
