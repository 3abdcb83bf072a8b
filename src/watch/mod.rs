//! What looks at many runs: the index they announce themselves to, and the sweep that goes by it.

#[cfg(target_arch = "wasm32")]
pub mod breakers;
#[cfg(target_arch = "wasm32")]
pub mod event_starts;
#[cfg(target_arch = "wasm32")]
pub mod index;
#[cfg(target_arch = "wasm32")]
pub mod latencies;
pub mod letters;
#[cfg(target_arch = "wasm32")]
pub mod page;
pub mod standing;
#[cfg(target_arch = "wasm32")]
pub mod sweep;
