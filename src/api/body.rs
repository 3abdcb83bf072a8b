//! Request bodies: parsing, and the checks that need neither the catalogue nor the run's object. Pure.

use serde_json::{Value, json};

use crate::api::analyze::AnalyzeBody;
use crate::api::control;
use crate::api::error::Error;
use crate::api::routes::{BodyRule, Route};
use crate::base::limits;

/// The body of a request to `route`. An empty body is `null` for an event's payload and `{}` otherwise.
pub fn read(route: &Route, bytes: &[u8]) -> Result<Value, Error> {
    if bytes.len() > limits::REQUEST_BYTES {
        return Err(too_large());
    }
    let rule = route.rules().body;
    let mut body = match bytes.is_empty() {
        true if rule == BodyRule::Payload => Value::Null,
        true => json!({}),
        false => serde_json::from_slice(bytes).map_err(|error| Error::invalid_json(&error))?,
    };
    match rule {
        // A start is read field by field, with the deployment's time rules: see `start`.
        BodyRule::Ignored | BodyRule::Start | BodyRule::Batch => {}
        BodyRule::Simulate | BodyRule::WhatIf => check_depth("the body", &body)?,
        BodyRule::Empty => control::read_empty(&body)?,
        BodyRule::Document { id } => check_document(id, &mut body)?,
        BodyRule::Analyze { id } => drop(AnalyzeBody::read(&body, id)?),
        // Read with its caller: see `bulk`.
        BodyRule::Payload | BodyRule::CallbackResult | BodyRule::Bulk(_) => check_depth("the body", &body)?,
        BodyRule::Control(control) => {
            check_depth("the body", &body)?;
            control.check(&body)?;
        }
    }
    Ok(body)
}

/// The name that a body gives to its sender. It counts in development only, where senders have no name of their own.
pub fn name_in(route: &Route, body: &Value) -> Option<String> {
    match route.rules().body {
        BodyRule::Start | BodyRule::Empty => control::name_in(body),
        BodyRule::Control(control) => control.name_in(body),
        BodyRule::Bulk(control) => control.name_in(&body["with"]),
        // Each item of a batch may give one.
        BodyRule::Ignored
        | BodyRule::Document { .. }
        | BodyRule::Analyze { .. }
        | BodyRule::Payload
        | BodyRule::CallbackResult
        | BodyRule::Simulate
        | BodyRule::WhatIf
        | BodyRule::Batch => None,
    }
}

pub fn too_large() -> Error {
    let message = format!(
        "the body is larger than the limit of {} bytes",
        limits::REQUEST_BYTES
    );
    Error::new(413, "body_too_large", message)
}

fn check_depth(what: &str, body: &Value) -> Result<(), Error> {
    match limits::depth_of(body) > limits::DEPTH {
        true => Err(Error::too_deep(what)),
        false => Ok(()),
    }
}

/// A document without an id gets the id of its URL.
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
