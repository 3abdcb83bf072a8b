//! From an answer to a response.

use serde_json::Value;
use worker::{Response, Result};

use super::error::Error;

/// A status and a body, or a refusal.
pub type Answer = std::result::Result<(u16, Value), Error>;

pub fn response(answer: Answer) -> Result<Response> {
    let (status, body) = match answer {
        Ok((status, body)) => (status, body),
        Err(error) => (error.status, error.body()),
    };
    let response = Response::ok(body.to_string())?.with_status(status);
    response.headers().set("content-type", "application/json")?;
    Ok(response)
}
