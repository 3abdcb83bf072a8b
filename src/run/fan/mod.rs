//! fan

pub mod instances;
pub mod join;
pub mod merge;
pub mod out;
