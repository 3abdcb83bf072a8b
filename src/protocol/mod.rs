//! What crosses a boundary between two deployed parts. Each shape is pinned by a golden file.

pub mod breaker;
pub mod caller;
pub mod child;
pub mod notification;
pub mod run;
pub mod start;
pub mod task;
pub mod trace;
