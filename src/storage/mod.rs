//! Rows and the state they hold.

pub mod commit;
pub mod pages;
pub mod restore;
pub mod row_ids;
pub mod rows;
pub mod schema;
