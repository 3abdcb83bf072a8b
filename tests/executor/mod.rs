//! The executor's rules, over a world that is made up.

mod fake_world;
mod requests;
mod retries;
mod secrets;
mod task_partial;
mod task_resume;
mod task_rules;
mod task_time;
