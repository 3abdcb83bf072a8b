//! The timers, pauses and timeouts of a run, and the log of its events.
//!
//! Everything that must happen without an outside event has a timer: attempts, joins, gates, waits, messages of the outbox
//! and the run's own limit. The object has one storage alarm, set to the earliest of them, so a run that waits costs nothing.
//! While every token stands in front of a person, `clock` stops the run's own limit and nothing else.
//! While a run is paused its clock stops: `pause` moves every deadline by the length of the pause, except that of the run's
//! own gate.
//! A deadline that passes is logged with its scope, its lateness and the policy that was applied.
//!
//! `Timers` owns the timers and the alarm, `EventLog` the numbers of events and their rows. A timer is stopped together with its token or join: a
//! leftover timer is a bug.

pub mod clock;
pub mod due;
pub mod event_log;
pub mod history_event;
pub mod partial_artifacts;
pub mod pause;
pub mod row_events;
pub mod timeout_gate;
pub mod timeout_record;
pub mod timers;
