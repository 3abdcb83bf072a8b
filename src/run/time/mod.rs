//! time

pub mod event_log;
pub mod pause;
pub mod timeout_gate;
pub mod timeout_record;
pub mod timers;
