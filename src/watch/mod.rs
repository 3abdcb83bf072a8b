//! What looks at many runs: the index they announce themselves to, and the sweep that goes by it.

#[cfg(target_arch = "wasm32")]
pub mod breakers;
pub mod cursor;
pub mod cut;
#[cfg(target_arch = "wasm32")]
pub mod event_starts;
#[cfg(target_arch = "wasm32")]
pub mod gates;
#[cfg(target_arch = "wasm32")]
pub mod index;
pub mod index_view;
#[cfg(target_arch = "wasm32")]
pub mod latencies;
pub mod letters;
#[cfg(target_arch = "wasm32")]
pub mod page;
pub mod pending;
pub mod pieces;
pub mod run_filter;
pub mod run_query;
#[cfg(target_arch = "wasm32")]
pub mod runs;
pub mod standing;
#[cfg(target_arch = "wasm32")]
pub mod sweep;
