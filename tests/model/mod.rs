//! The model: documents and schemas, read and judged.

mod schema_differential;
