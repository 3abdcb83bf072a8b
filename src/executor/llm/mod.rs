//! `llm_call`. `request` says a question as its provider wants to hear it, `messages` what was said before; `intake`
//! takes the answer in as it arrives, with one fold a dialect (`openai`, `anthropic`) into a `reply`; `result` is what
//! the step gets. All of it is pure; only `exchange` touches the world.

mod anthropic;
#[cfg(target_arch = "wasm32")]
mod exchange;
pub mod intake;
mod messages;
mod openai;
mod reply;
pub mod request;
pub mod result;
mod trouble;

#[cfg(target_arch = "wasm32")]
pub(super) use exchange::llm_call;
pub use trouble::binding_failure;
