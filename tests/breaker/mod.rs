//! Breakers: the machine against a naive one, and what executors remember.

mod cache;
mod machine;
mod naive;
mod promises;
