//! What looks at many runs: the index they announce themselves to.

#[cfg(target_arch = "wasm32")]
pub mod breakers;
#[cfg(target_arch = "wasm32")]
pub mod index;
#[cfg(target_arch = "wasm32")]
pub mod latencies;
