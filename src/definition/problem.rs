//! The problems of a document, each with its JSON pointer.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use crate::base::ids;
use crate::base::ordered::sort_by;
use crate::definition::timeouts::TimeoutRules;

/// The code of a required field that is absent.
pub const MISSING_FIELD: &str = "missing_field";
/// The code of an unknown field.
pub const UNKNOWN_FIELD: &str = "unknown_field";

/// `code` is stable. `message` says how to fix the problem.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    pub pointer: String,
    pub code: &'static str,
    pub message: String,
    pub severity: Severity,
}

/// A document with an error is rejected. One with warnings is accepted, and the response lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Error,
    Warning,
}

/// Collects problems while a document is read. Nested readers share it, so reporting takes `&self`.
#[derive(Debug, Default)]
pub struct Problems {
    found: RefCell<Vec<Problem>>,
    /// The lists of known fields that messages have, each with the pointer of the problem that has it.
    lists: RefCell<BTreeMap<String, String>>,
    is_prechecked: bool,
    rules: TimeoutRules,
}

impl Problems {
    /// For a document that must follow the rules of this deployment.
    pub fn new(rules: TimeoutRules) -> Self {
        Problems {
            rules,
            ..Problems::default()
        }
    }

    /// For a document that was checked when it was stored. Expressions are only parsed when they are used, and the widest
    /// bounds apply, so that later changes to the deployment's rules do not make it unreadable.
    pub fn prechecked() -> Self {
        Problems {
            is_prechecked: true,
            rules: TimeoutRules::WIDEST,
            ..Problems::default()
        }
    }

    pub fn rules(&self) -> &TimeoutRules {
        &self.rules
    }

    pub fn is_prechecked(&self) -> bool {
        self.is_prechecked
    }

    /// Reports a name that no request can name. A document that an earlier build stored may have it.
    pub fn report_dots(&self, pointer: &str, name: &str) {
        if ids::is_dots(name) && !self.is_prechecked {
            let message = format!(
                "no request can name \"{name}\", because a URL cannot contain it; choose another name"
            );
            self.report(pointer, "invalid_id", message);
        }
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

    /// Whether a part of the document, or what is in it, has an error.
    pub fn has_errors_in(&self, pointer: &str) -> bool {
        let is_in = |problem: &Problem| {
            let below = problem.pointer.strip_prefix(pointer);
            below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let found = self.found.borrow();
        let mut errors = found.iter().filter(|problem| problem.severity == Severity::Error);
        errors.any(is_in)
    }

    /// Whether the problem at `pointer` is the one whose message has this list of known fields: in a document with many unknown fields
    /// each list is there once. A part of a document may be read twice, with the same problems.
    pub fn is_first_list(&self, list: &str, pointer: &str) -> bool {
        let mut lists = self.lists.borrow_mut();
        match lists.get(list) {
            Some(first) => first == pointer,
            None => {
                lists.insert(list.to_string(), pointer.to_string());
                true
            }
        }
    }

    /// Takes back a problem that turned out to be the consequence of another one.
    pub fn retract(&self, pointer: &str, code: &'static str) {
        let is_meant = |problem: &Problem| problem.pointer == pointer && problem.code == code;
        self.found.borrow_mut().retain(|problem| !is_meant(problem));
    }

    /// The problems in the order of their pointers, independent of the order of checks.
    pub fn into_sorted(self) -> Vec<Problem> {
        let mut problems = self.found.into_inner();
        sort_by(&mut problems, |a, b| {
            a.pointer.cmp(&b.pointer).then(a.message.cmp(&b.message))
        });
        problems.dedup();
        problems
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pointer.as_str() {
            // The document as a whole.
            "" => write!(f, "{}", self.message),
            pointer => write!(f, "{pointer}: {}", self.message),
        }
    }
}

/// Appends `key` to a JSON pointer.
pub fn pointer_to(parent: &str, key: &str) -> String {
    format!("{parent}/{}", key.replace('~', "~0").replace('/', "~1"))
}
