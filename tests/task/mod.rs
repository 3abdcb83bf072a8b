//! The executor's rules, over a runtime that is made up.

mod breakers;
mod events;
mod fake_runtime;
mod llm_answers;
mod llm_requests;
mod llm_task;
mod mcp;
mod rendered;
mod requests;
mod retries;
mod rounds;
mod secrets;
mod shell;
mod task_partial;
mod task_resume;
mod task_rules;
mod task_time;
