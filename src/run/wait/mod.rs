//! Tokens that wait for something outside the run.
//!
//! [`gates::Gates`] owns every gate of the run, of a token or of the whole run, and which of them is the run's open gate.
//! [`waits::Waits`] owns which suspended tokens wait for a signal or a callback, and the signals that arrived before a
//! token waited for them. Both know which rows a decision changed, depend on nothing else of the run and are tested alone.
//!
//! The other files are the part of `Run` that acts on them, one for each thing a token waits for: a decision at a node's
//! gate, a decision about a failed token, a signal or a moment, a callback, a child run. Code outside this folder asks
//! `Run::gates` and `Run::waits` but changes them only through their methods, so that every change is saved.
//! The gate of the whole run is opened and decided in `time/timeout_gate.rs`: it stops the run's clocks.

pub mod callback;
pub mod capability;
pub mod child;
pub mod escalation;
pub mod gate;
mod gate_view;
pub mod gates;
pub mod node_gate;
pub mod signal;
pub mod waits;
