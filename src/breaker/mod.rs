//! Circuit breakers: a dependency that fails again and again is left alone for a while. One object per key, shared by
//! all runs. `machine` decides, `wire` is what executors and the object say to each other; both are pure. `object` is
//! the shell.

pub mod machine;
#[cfg(target_arch = "wasm32")]
mod object;
pub mod wire;
