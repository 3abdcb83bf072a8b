//! `llm_call`: `request` builds a provider's request from a prompt and `messages`. `response_decoder` decodes the streamed
//! response into a `completion`, with one format each in `openai` and `anthropic`. `result` makes the step's result of it.

mod anthropic;
mod completion;
mod messages;
mod openai;
mod provider_error;
pub mod request;
pub mod response_decoder;
pub mod result;

pub use provider_error::binding_failure;
