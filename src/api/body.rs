//! The body of a request: what can be said of it before anything is looked up and before an object wakes. Pure.

use serde_json::{Value, json};

use crate::api::control;
use crate::api::error::Error;
use crate::api::routes::Route;
use crate::base::limits;

/// The body of a request to `route` as JSON; one that is not there is what the route takes for it.
pub fn read(route: &Route, bytes: &[u8]) -> Result<Value, Error> {
    if bytes.len() > limits::REQUEST_BYTES {
        return Err(too_large());
    }
    let written: Option<Value> = match bytes.is_empty() {
        true => None,
        false => Some(serde_json::from_slice(bytes).map_err(|error| Error::invalid_json(&error))?),
    };
    let mut body = match route {
        Route::RaiseEvent { .. } => written.unwrap_or(Value::Null),
        Route::Health
        | Route::PutDocument { .. }
        | Route::ReadDocument { .. }
        | Route::ListDocuments { .. }
        | Route::StartRun { .. }
        | Route::ListRuns
        | Route::ReadRun { .. }
        | Route::ListTokens { .. }
        | Route::ListHistory { .. }
        | Route::ReadTimeout { .. }
        | Route::ReadReport { .. }
        | Route::ListGates
        | Route::Callback { .. }
        | Route::ListBreakers
        | Route::ResetBreaker { .. }
        | Route::Command { .. } => written.unwrap_or_else(|| json!({})),
    };
    check(route, &mut body)?;
    Ok(body)
}

pub fn too_large() -> Error {
    let message = format!(
        "the body is larger than the limit of {} bytes",
        limits::REQUEST_BYTES
    );
    Error::new(413, "body_too_large", message)
}

fn check(route: &Route, body: &mut Value) -> Result<(), Error> {
    match route {
        Route::PutDocument { id, .. } => check_document(id, body),
        // A capability that is none is a 404 whatever was sent with it.
        Route::Callback { .. } | Route::RaiseEvent { .. } => check_depth("the body", body),
        Route::Command { door, .. } => {
            check_depth("the body", body)?;
            control::check(door, body)
        }
        Route::ResetBreaker { .. } => control::read_empty(body),
        // A start is read field by field, with the rules of the deployment: see `start`.
        Route::StartRun { .. } => Ok(()),
        // Nothing is read of it.
        Route::Health
        | Route::ReadDocument { .. }
        | Route::ListDocuments { .. }
        | Route::ListRuns
        | Route::ReadRun { .. }
        | Route::ListTokens { .. }
        | Route::ListHistory { .. }
        | Route::ReadTimeout { .. }
        | Route::ReadReport { .. }
        | Route::ListGates
        | Route::ListBreakers => Ok(()),
    }
}

fn check_depth(what: &str, body: &Value) -> Result<(), Error> {
    match limits::depth_of(body) > limits::DEPTH {
        true => Err(Error::too_deep(what)),
        false => Ok(()),
    }
}

/// A document without an id has the one of its address.
fn check_document(id: &str, document: &mut Value) -> Result<(), Error> {
    if let Value::Object(fields) = document {
        let written = fields.entry("id").or_insert_with(|| json!(id));
        if written.as_str().is_some_and(|written| written != id) {
            let message = format!("the document says its id is {written}, the address says \"{id}\"");
            return Err(Error::invalid_request("/id", message));
        }
    }
    check_depth("the document", document)
}
