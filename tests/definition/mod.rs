//! Documents and schemas: reading, checking and resolving.

mod adaptive;
mod cacheable;
mod constants;
mod documents;
mod events;
mod execution;
mod graph_features;
mod hard_limits;
mod inline;
mod kinds;
mod llm;
mod meaningless;
mod mutations;
pub use mutations::{examples, mutate};
mod notify;
mod one_mistake;
mod references;
mod schema_differential;
mod schemas;
mod secrets;
mod timeouts;
mod unknown_fields;
