//! The vocabulary of every room: time, ids, limits, failures, text and its size, the meter of computation, a cache.

pub mod compute;
pub mod failure;
pub mod ids;
pub mod limits;
pub mod lru_cache;
pub mod text;
pub mod time;
