//! The executor Worker: one file for each kind of call.

mod breaker_client;
mod execute;
mod http;
mod llm;
mod mcp_client;
mod notify;
mod shell_client;
