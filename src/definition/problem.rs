//! What is wrong with a document: every problem at once, each with the place it stands at.

use std::cell::RefCell;
use std::fmt;

use crate::definition::timeouts::TimeoutRules;

/// The code of an unknown field.
pub const UNKNOWN_FIELD: &str = "unknown_field";

/// One thing wrong at one place. `code` is stable; `message` says what to do.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    pub pointer: String,
    pub code: &'static str,
    pub message: String,
    pub severity: Severity,
}

/// An error refuses the document; a warning comes back with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Error,
    Warning,
}

/// Collects problems while a document is read. Shared by nested readers, so reporting takes `&self`.
#[derive(Debug, Default)]
pub struct Problems {
    found: RefCell<Vec<Problem>>,
    prechecked: bool,
    rules: TimeoutRules,
}

impl Problems {
    /// For a document that is judged by the rules of this deployment.
    pub fn new(rules: TimeoutRules) -> Self {
        Problems {
            rules,
            ..Problems::default()
        }
    }

    /// For a document that was checked when it was stored: expressions are not parsed again until they are used, and
    /// bounds that were narrowed since do not make it unreadable.
    pub fn prechecked() -> Self {
        Problems {
            found: RefCell::default(),
            prechecked: true,
            rules: TimeoutRules::WIDEST,
        }
    }

    pub fn rules(&self) -> &TimeoutRules {
        &self.rules
    }

    pub fn is_prechecked(&self) -> bool {
        self.prechecked
    }

    pub fn report(&self, pointer: &str, code: &'static str, message: impl Into<String>) {
        self.push(pointer, code, message.into(), Severity::Error);
    }

    pub fn warn(&self, pointer: &str, code: &'static str, message: impl Into<String>) {
        self.push(pointer, code, message.into(), Severity::Warning);
    }

    fn push(&self, pointer: &str, code: &'static str, message: String, severity: Severity) {
        self.found.borrow_mut().push(Problem {
            pointer: pointer.to_string(),
            code,
            message,
            severity,
        });
    }

    pub fn count(&self) -> usize {
        self.found.borrow().len()
    }

    pub fn has_errors(&self) -> bool {
        self.found
            .borrow()
            .iter()
            .any(|problem| problem.severity == Severity::Error)
    }

    /// The problems in the order of their places, so that an answer does not depend on the order of checks.
    pub fn into_sorted(self) -> Vec<Problem> {
        let mut problems = self.found.into_inner();
        problems.sort_by(|a, b| a.pointer.cmp(&b.pointer).then(a.message.cmp(&b.message)));
        problems.dedup();
        problems
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.pointer, self.message)
    }
}

/// `parent` + `/` + `key`, escaped as JSON Pointer wants it.
pub fn pointer_to(parent: &str, key: &str) -> String {
    format!("{parent}/{}", key.replace('~', "~0").replace('/', "~1"))
}
