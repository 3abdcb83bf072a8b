//! recovery

pub mod control;
pub mod finish;
pub mod resume;
pub mod rewind;
pub mod undo;
pub mod value_hash;
