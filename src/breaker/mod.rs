//! The state machine of a circuit breaker.

pub mod machine;
