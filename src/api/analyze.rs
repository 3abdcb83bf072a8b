//! The body of `POST /v1/workflows/:id/analyze`. Pure.

use serde_json::{Value, json};

use crate::api::control;
use crate::api::error::Error;
use crate::base::limits;

/// What to analyse.
#[derive(Clone, Debug, PartialEq)]
pub enum AnalyzeBody {
    /// The stored document.
    Stored,
    /// A document that need not be stored.
    Document(Value),
}

impl AnalyzeBody {
    /// `{document?}`. A document without an id gets the id of the URL.
    pub fn read(body: &Value, id: &str) -> Result<AnalyzeBody, Error> {
        let document = control::read(body, |reader| Some(reader.value("document").cloned()))?;
        let Some(mut document) = document else {
            return Ok(AnalyzeBody::Stored);
        };
        let Value::Object(fields) = &mut document else {
            let message = "a document is an object; leave \"document\" out to analyze the stored one";
            return Err(Error::invalid_request("/document", message));
        };
        let written = fields.entry("id").or_insert_with(|| json!(id));
        if written.as_str().is_some_and(|written| written != id) {
            let message = format!("the document says its id is {written}, the address says \"{id}\"");
            return Err(Error::invalid_request("/document/id", message));
        }
        if limits::depth_of(&document) > limits::DEPTH {
            return Err(Error::too_deep("the document"));
        }
        Ok(AnalyzeBody::Document(document))
    }
}

/// A version belongs to a stored document.
pub fn version_of_body() -> Error {
    Error::bad_request("\"version\" chooses a stored document; leave it or \"document\" out")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_a_document_or_nothing() {
        let read = |body: Value| AnalyzeBody::read(&body, "w");
        assert_eq!(read(json!({})), Ok(AnalyzeBody::Stored));
        let document = json!({"nodes": [], "id": "w"});
        assert_eq!(
            read(json!({"document": {"nodes": []}})),
            Ok(AnalyzeBody::Document(document))
        );
        for (body, expected) in [
            (
                json!({"docment": {}}),
                "did you mean \"document\"? (known: document)",
            ),
            (json!({"document": 1}), "a document is an object"),
            (json!({"document": {"id": "x"}}), "the address says \"w\""),
            (json!([]), "expected an object"),
        ] {
            let error = read(body.clone()).expect_err("it is refused");
            assert!(
                error.body().to_string().replace("\\\"", "\"").contains(expected),
                "{body}: {error:?}"
            );
        }
    }
}
