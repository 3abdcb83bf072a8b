//! From an answer to a response.

use serde_json::Value;
use web_sys::{Response, ResponseInit};
use worker::Result;

use crate::api::error::Error;
use crate::worker::index::page::Page;

/// A status and a body, or a refusal.
pub type Answer = std::result::Result<(u16, Value), Error>;

pub fn parts(answer: Answer) -> (u16, Value) {
    match answer {
        Ok(answered) => answered,
        Err(error) => (error.status, error.body()),
    }
}

pub fn response(answer: Answer) -> Result<Response> {
    let (status, body) = parts(answer);
    text(status, "application/json", &body.to_string())
}

/// A page of a list, and what reading it is billed as.
pub fn page(page: &Page) -> Result<Response> {
    let response = text(200, "application/json", &page.body.to_string())?;
    let bill = format!("rows_read={}", page.rows_read);
    response.headers().set("x-curfew-bill", &bill)?;
    Ok(response)
}

pub fn text(status: u16, content_type: &str, body: &str) -> Result<Response> {
    let init = ResponseInit::new();
    init.set_status(status);
    let response = Response::new_with_opt_str_and_init(Some(body), &init)?;
    response.headers().set("content-type", content_type)?;
    Ok(response)
}
