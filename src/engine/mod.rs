//! The engine as a function: the text of a request in, the text of its answer out. It needs no platform, so it runs as its own
//! wasm in Node, in browsers and in Workers, and natively.
//!
//! A request is `{"op": ..., ...}`; an answer is `{"ok": ...}` or `{"error": {status, code, message, ...}}`, as the API has it.

#[cfg(all(feature = "engine", target_arch = "wasm32"))]
mod exports;
mod sessions;

use serde_json::{Value, json};

use crate::api::error::Error;
use crate::base::limits::{DEPTH, depth_of};
use crate::definition::snapshot::{CheckError, DocumentKind, Library, Reference, Resolution, check, resolve};
use crate::definition::timeouts::TimeoutRules;
use crate::replay::{WhatIfBody, what_if_alone};
use crate::simulate::{Deployment, read_library, simulate_alone, simulate_seeds};

/// A request may hold a workflow with all its documents and mocks.
pub const REQUEST_BYTES: usize = 8 << 20;

const OPERATIONS: &str =
    "check, resolve, simulate, simulate_seeds, what_if, open, advance, control, view, close";

/// Answers a request.
pub fn call(request: &str) -> String {
    let answer = match answer(request) {
        Ok(answer) => json!({"ok": answer}),
        Err(error) => {
            let mut body = error.body();
            body["error"]["status"] = json!(error.status);
            body
        }
    };
    answer.to_string()
}

fn answer(request: &str) -> Result<Value, Error> {
    if request.len() > REQUEST_BYTES {
        let message = format!("the request is larger than the limit of {REQUEST_BYTES} bytes");
        return Err(Error::new(413, "body_too_large", message));
    }
    let mut request: Value = serde_json::from_str(request).map_err(|error| Error::invalid_json(&error))?;
    if depth_of(&request) > DEPTH {
        return Err(Error::too_deep("the request"));
    }
    let operation = request.as_object_mut().and_then(|fields| fields.remove("op"));
    match operation.as_ref().and_then(Value::as_str) {
        Some("check") => check_document(&request),
        Some("resolve") => resolve_document(&request),
        Some("simulate") => simulate_alone(&request, &TimeoutRules::default(), &Deployment::default()),
        Some("simulate_seeds") => simulate_seeds(&request, &TimeoutRules::default(), &Deployment::default()),
        Some("what_if") => what_if(request),
        Some(other) => sessions::answer(other, &request).unwrap_or_else(|| {
            let shown: String = other.chars().take(40).collect();
            let message = format!("\"{shown}\" is no operation; \"op\" is one of {OPERATIONS}");
            Err(Error::bad_request(message))
        }),
        None => Err(Error::bad_request(format!(
            "a request has an \"op\", one of {OPERATIONS}"
        ))),
    }
}

/// `{op: "check", kind?, document, documents?}`: the problems of a document, warnings included.
fn check_document(request: &Value) -> Result<Value, Error> {
    let kind = match request["kind"].as_str() {
        None => DocumentKind::Workflows,
        Some(name) => DocumentKind::parse(name).ok_or_else(|| {
            let message = format!("\"{name}\" is no kind of document; they are workflows, tasks and actions");
            Error::invalid_request("/kind", message)
        })?,
    };
    let rules = TimeoutRules::default();
    let mut library = library_of(request)?;
    loop {
        match check(kind, &request["document"], &library, &rules) {
            Ok(problems) | Err(CheckError::Invalid(problems)) => return Ok(json!({"problems": problems})),
            Err(CheckError::Missing(references)) => note_missing(&mut library, references),
        }
    }
}

/// `{op: "resolve", document, documents?}`: the snapshot that a run would keep.
fn resolve_document(request: &Value) -> Result<Value, Error> {
    let rules = TimeoutRules::default();
    let mut library = library_of(request)?;
    let document = &request["document"];
    loop {
        match check(DocumentKind::Workflows, document, &library, &rules) {
            Ok(_) => {}
            Err(CheckError::Invalid(problems)) => return Err(Error::invalid_document(&problems)),
            Err(CheckError::Missing(references)) => {
                note_missing(&mut library, references);
                continue;
            }
        }
        match resolve(document, 1, &library, &rules) {
            Resolution::Resolved(stored) => return Ok(json!(stored)),
            Resolution::Invalid(problems) => return Err(Error::invalid_document(&problems)),
            Resolution::Missing(references) => note_missing(&mut library, references),
        }
    }
}

/// `{op: "what_if", export, changes?, input?, durations?}`: the exported run once more, with changes.
fn what_if(mut request: Value) -> Result<Value, Error> {
    let export = request.as_object_mut().and_then(|fields| fields.remove("export"));
    let Some(export) = export else {
        let message = "\"what_if\" needs an \"export\": the answer of GET /v1/runs/{id}/export";
        return Err(Error::bad_request(message));
    };
    what_if_alone(export, WhatIfBody::read(&request)?, &TimeoutRules::WIDEST)
}

fn library_of(request: &Value) -> Result<Library, Error> {
    read_library(&request["documents"], "/documents")
}

/// There is no catalogue: what the request does not have does not exist.
fn note_missing(library: &mut Library, references: Vec<Reference>) {
    library.extend(references.into_iter().map(|reference| (reference, None)));
}
