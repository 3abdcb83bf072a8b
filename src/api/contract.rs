//! What programs and editors read about the API and about documents, served as it is. `openapi/` has the parts;
//! tests/docs/contract.rs and tests/definition/schemas.rs compare them with the code.

use crate::definition::snapshot::DocumentKind;

/// The OpenAPI document.
pub const OPENAPI: &str = include_str!("openapi.json");

/// The JSON Schema of documents of this kind.
pub fn schema(kind: DocumentKind) -> &'static str {
    match kind {
        DocumentKind::Actions => include_str!("../../schema/action.json"),
        DocumentKind::Tasks => include_str!("../../schema/task.json"),
        DocumentKind::Workflows => include_str!("../../schema/workflow.json"),
    }
}
