//! HTTP responses of the API Worker.

use serde_json::Value;
use wasm_bindgen::prelude::*;
use web_sys::{Response, ResponseInit};
use worker::Result;

use crate::api::auth::{Role, Roles};
use crate::api::error::Error;
use crate::index::metrics::text::CONTENT_TYPE;
use crate::worker::index::page::Page;

#[wasm_bindgen(module = "/src/worker/platform/api_response.mjs")]
extern "C" {
    #[wasm_bindgen(js_name = finishResponse)]
    fn finish_response(response: &Response, shows_bill: bool) -> Response;
}

/// Adds the headers that every answer of the API has. Only an admin sees what a request costs.
pub fn finish(response: &Response, roles: Roles) -> Response {
    finish_response(response, roles.contains(Role::Admin))
}

/// A status and a JSON body, or an error.
pub type ApiResult = std::result::Result<(u16, Value), Error>;

pub fn response(result: ApiResult) -> Result<Response> {
    let (status, body, headers) = match result {
        Ok((status, body)) => (status, body, Vec::new()),
        Err(error) => (error.status, error.body(), error.headers),
    };
    let response = text(status, "application/json", &body.to_string())?;
    for (name, value) in headers {
        response.headers().set(name, &value)?;
    }
    Ok(response)
}

/// A page of a list. A header says how many rows D1 bills for it.
pub fn page(page: &Page) -> Result<Response> {
    let response = text(200, "application/json", &page.body.to_string())?;
    let bill = format!("rows_read={}", page.rows_read);
    response.headers().set("x-curfew-bill", &bill)?;
    Ok(response)
}

/// As `page`, for Prometheus.
pub fn metrics(text_of_metrics: &str, rows_read: usize) -> Result<Response> {
    let response = text(200, CONTENT_TYPE, text_of_metrics)?;
    response
        .headers()
        .set("x-curfew-bill", &format!("rows_read={rows_read}"))?;
    Ok(response)
}

pub fn text(status: u16, content_type: &str, body: &str) -> Result<Response> {
    let init = ResponseInit::new();
    init.set_status(status);
    let response = Response::new_with_opt_str_and_init(Some(body), &init)?;
    response.headers().set("content-type", content_type)?;
    Ok(response)
}
