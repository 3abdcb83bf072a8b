//! wait

pub mod callback;
pub mod child;
pub mod escalation;
pub mod gate;
pub mod signal;
