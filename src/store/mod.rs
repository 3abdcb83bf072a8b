//! Rows <-> engine state. Pure but for `sqlite`, which moves text in and out of the object's database.

pub mod commit;
pub mod memory;
pub mod pages;
pub mod places;
pub mod rows;
pub mod schema;
#[cfg(target_arch = "wasm32")]
pub mod sqlite;
