//! The rows of a run: their shapes, the commit that writes them and the restore that reads them. Pure.

pub mod commit;
pub mod measured;
pub mod pages;
pub mod restore;
pub mod row_ids;
pub mod rows;
pub mod schema;
