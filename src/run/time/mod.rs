//! What time does to a run: its timers, pauses, timeouts and the history of both.

pub mod due;
pub mod event_log;
pub mod pause;
pub mod timeout_gate;
pub mod timeout_record;
pub mod timers;
