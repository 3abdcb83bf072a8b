//! The model: documents and schemas, read and judged.

mod documents;
mod graph_features;
mod mutations;
mod references;
mod schema_differential;
