//! Errors of the API: an HTTP status, a stable code and a message that says what to do next.

use serde_json::{Value, json};

use crate::base::limits::{DEPTH, TooLarge};
use crate::definition::problem::{Problem, Problems, UNKNOWN_FIELD};
use crate::definition::snapshot::{DocumentKind, missing_document};

/// Limits the size of an error response: a body may contain any number of problems.
const PROBLEMS_SHOWN: usize = 100;

#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    pub status: u16,
    pub code: &'static str,
    pub message: String,
    pub pointer: Option<String>,
    pub details: Option<Value>,
    /// Headers of the response.
    pub headers: Vec<(&'static str, String)>,
}

/// What an object answers to a request that only reads.
const CODES_OF_OBJECTS: &[&str] = &["forbidden", "not_found", "invalid_request"];

impl Error {
    pub fn new(status: u16, code: &'static str, message: impl Into<String>) -> Error {
        Error {
            status,
            code,
            message: message.into(),
            pointer: None,
            details: None,
            headers: Vec::new(),
        }
    }

    pub fn bad_request(message: impl Into<String>) -> Error {
        Error::new(400, "invalid_request", message)
    }

    pub fn not_found(what: impl std::fmt::Display) -> Error {
        Error::new(404, "not_found", format!("{what} does not exist"))
    }

    /// The credential is bound to workflows, and what was asked for is none of them. Says nothing about it.
    pub fn out_of_scope(what: impl std::fmt::Display) -> Error {
        let message = format!("{what} is outside the workflows that this credential may reach");
        Error::new(403, "forbidden", message)
    }

    pub fn invalid_json(error: &serde_json::Error) -> Error {
        // The parser has a limit of its own, above ours.
        if error.to_string().starts_with("recursion limit exceeded") {
            return Error::too_deep("the body");
        }
        Error::new(400, "invalid_json", format!("the body is not JSON: {error}"))
    }

    pub fn invalid_request(pointer: &str, message: impl Into<String>) -> Error {
        Error {
            pointer: Some(pointer.to_string()),
            ..Error::new(422, "invalid_request", message)
        }
    }

    /// The message shows the first problem, the details list all. An unknown field comes first and is a 400: the caller
    /// asks for something that this request cannot do.
    pub fn invalid_body(problems: Problems) -> Error {
        let mut problems = problems.into_sorted();
        let unknown = problems.iter().find(|problem| problem.code == UNKNOWN_FIELD);
        let first = unknown.or(problems.first());
        let mut error = Error::invalid_request(
            first.map_or("", |problem| &problem.pointer),
            first.map(ToString::to_string).unwrap_or_default(),
        );
        if unknown.is_some() {
            error.status = 400;
        }
        problems.truncate(PROBLEMS_SHOWN);
        error.details = Some(json!(problems));
        error
    }

    /// `newest` is the newest version if the document exists in another version.
    pub fn no_document(kind: DocumentKind, id: &str, version: Option<u64>, newest: Option<u64>) -> Error {
        Error::new(404, "not_found", missing_document(kind, id, version, newest))
    }

    pub fn invalid_document(problems: &[Problem]) -> Error {
        let count = problems.len();
        let first = problems.first();
        let message = format!(
            "{count} problem{} in the document{}",
            if count == 1 { "" } else { "s" },
            first
                .map(|problem| format!("; the first: {problem}"))
                .unwrap_or_default()
        );
        Error {
            pointer: first.map(|problem| problem.pointer.clone()),
            details: Some(json!(problems)),
            ..Error::new(422, "invalid_document", message)
        }
    }

    pub fn unauthorized(message: impl Into<String>) -> Error {
        Error::new(401, "unauthorized", message).with_header("www-authenticate", "Bearer")
    }

    pub fn forbidden(message: impl Into<String>) -> Error {
        Error::new(403, "forbidden", message)
    }

    pub fn rate_limited(message: impl Into<String>, retry_after_s: u64) -> Error {
        Error::new(429, "rate_limited", message).with_header("retry-after", retry_after_s.to_string())
    }

    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Error {
        self.headers.push((name, value.into()));
        self
    }

    pub fn too_deep(what: &str) -> Error {
        Error::new(
            422,
            "limit_exceeded",
            format!("{what} is nested deeper than the limit of {DEPTH}"),
        )
    }

    pub fn too_large(too_large: &TooLarge) -> Error {
        Error::new(413, "limit_exceeded", too_large.to_string())
    }

    /// The cause is in the log only.
    /// The refusal of a run's object, with its body.
    pub fn of_response(status: u16, body: &str) -> Error {
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        let error = &body["error"];
        let known = CODES_OF_OBJECTS.iter().find(|code| error["code"] == **code);
        let message = error["message"]
            .as_str()
            .unwrap_or("the run's object refused the request");
        Error::new(status, known.copied().unwrap_or("internal"), message)
    }

    pub fn internal() -> Error {
        Error::new(
            500,
            "internal",
            "something went wrong inside Curfew; it was logged",
        )
    }

    /// `None` if what the database answered is no sign of missing migrations.
    pub fn not_migrated(answer: &str) -> Option<Error> {
        let is_missing = ["no such table", "no such column"]
            .iter()
            .any(|text| answer.contains(text));
        let message = "the database lacks a table or a column of this version: apply the migrations with `npx wrangler d1 \
                       migrations apply curfew --local` for wrangler dev, `--remote` for a deployment; `npm start` and `npm \
                       run deploy` do it themselves";
        is_missing.then(|| Error::new(503, "not_migrated", message))
    }

    pub fn body(&self) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(pointer) = &self.pointer {
            error["pointer"] = json!(pointer);
        }
        if let Some(details) = &self.details {
            error["details"] = details.clone();
        }
        json!({"error": error})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_without_migrations_is_recognized() {
        for answer in [
            "D1_ERROR: no such table: definitions: SQLITE_ERROR",
            "D1_ERROR: no such column: due_at at offset 7: SQLITE_ERROR",
        ] {
            let error = Error::not_migrated(answer).expect(answer);
            assert_eq!((error.status, error.code), (503, "not_migrated"));
        }
        assert_eq!(Error::not_migrated("D1_ERROR: Network connection lost."), None);
    }
}
