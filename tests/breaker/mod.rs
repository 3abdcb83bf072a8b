//! Circuit breakers: the state machine, compared with a model, and the cache of executors.

mod cache;
mod machine;
mod model;
mod properties;
