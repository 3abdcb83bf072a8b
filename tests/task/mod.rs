//! The rules of tasks, over a fake runtime.

mod action_call;
mod breakers;
mod business_retries;
mod deadlines;
mod events;
mod fake_runtime;
mod llm_requests;
mod llm_responses;
mod llm_task;
mod mcp;
mod notifications;
mod partial;
mod progress;
mod redaction;
mod redirects;
mod requests;
mod resume;
mod retries;
mod secrets;
mod shell;
mod steps;
mod traces;
