//! The contract for programs, served as it is. `openapi/` has its parts; tests/docs/contract.rs compares it with the routes.

/// The OpenAPI document.
pub const OPENAPI: &str = include_str!("openapi.json");
