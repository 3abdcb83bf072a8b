//! `llm_call`: `request` writes a provider's request, `messages` the conversation so far; `response_decoder` reads the
//! streamed answer with one fold a dialect (`openai`, `anthropic`) into a `reply`; `result` is what the step gets.

mod anthropic;
mod messages;
mod openai;
mod provider_error;
mod reply;
pub mod request;
pub mod response_decoder;
pub mod result;

pub use provider_error::binding_failure;
