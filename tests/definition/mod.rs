//! The model: documents and schemas, read and judged.

mod adaptive;
mod documents;
mod events;
mod execution;
mod finality;
mod graph_features;
mod hard_limits;
mod inline;
mod kinds;
mod llm;
mod mutations;
mod references;
mod schema_differential;
mod timeouts;
