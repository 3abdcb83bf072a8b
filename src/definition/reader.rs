//! Reads one JSON object of a document field by field, reporting every problem instead of stopping at the first.
//!
//! A reader remembers which fields were asked for; `finish` reports the ones nobody knows.

use std::cell::RefCell;

use serde_json::{Map, Value};

use crate::base::ids;
use crate::base::time::{Limit, format_duration, parse_duration};
use crate::cel::{Expression, Template};
use crate::definition::problem::{Problems, UNKNOWN_FIELD, pointer_to};
use crate::json_schema::Schema;

/// With so many problems found, messages no longer list the names that are known.
const KNOWN_NAMES_SHOWN: usize = 100;

pub struct Reader<'a> {
    object: &'a Map<String, Value>,
    pointer: String,
    problems: &'a Problems,
    known: RefCell<Vec<&'static str>>,
}

/// An element of an array together with its place.
pub struct Element<'a> {
    pub value: &'a Value,
    pub pointer: String,
}

impl<'a> Reader<'a> {
    pub fn new(value: &'a Value, pointer: impl Into<String>, problems: &'a Problems) -> Option<Self> {
        let pointer = pointer.into();
        match value {
            Value::Object(object) => Some(Reader {
                object,
                pointer,
                problems,
                known: RefCell::default(),
            }),
            other => {
                problems.report(
                    &pointer,
                    "wrong_type",
                    format!("expected an object, found {}", kind_of(other)),
                );
                None
            }
        }
    }

    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    pub fn at(&self, field: &str) -> String {
        pointer_to(&self.pointer, field)
    }

    pub fn report(&self, field: &str, code: &'static str, message: impl Into<String>) {
        self.problems.report(&self.at(field), code, message);
    }

    pub fn problems(&self) -> &'a Problems {
        self.problems
    }

    /// The field's value; `null` counts as not written.
    pub fn any(&self, field: &'static str) -> Option<&'a Value> {
        self.known.borrow_mut().push(field);
        self.object.get(field).filter(|value| !value.is_null())
    }

    pub fn has(&self, field: &'static str) -> bool {
        self.any(field).is_some()
    }

    pub fn string(&self, field: &'static str) -> Option<&'a str> {
        self.typed(field, "a string", Value::as_str)
    }

    pub fn required_string(&self, field: &'static str) -> Option<&'a str> {
        if self.any(field).is_none() {
            self.report(field, "missing_field", format!("\"{field}\" is required"));
            return None;
        }
        self.string(field)
    }

    pub fn boolean(&self, field: &'static str) -> Option<bool> {
        self.typed(field, "true or false", Value::as_bool)
    }

    pub fn integer(&self, field: &'static str, least: i64, most: i64) -> Option<i64> {
        let number = self.typed(field, "a whole number", Value::as_i64)?;
        if (least..=most).contains(&number) {
            return Some(number);
        }
        self.report(
            field,
            "out_of_range",
            format!("{number} is outside {least} to {most}"),
        );
        None
    }

    /// An id of a document or a part of one; reported if it breaks the rule.
    pub fn id(&self, field: &'static str) -> Option<String> {
        let text = self.string(field)?;
        if !ids::is_id(text) {
            self.report(
                field,
                "invalid_id",
                format!("\"{}\" is no id: {}", shorten(text), ids::ID_RULE),
            );
            return None;
        }
        Some(text.to_string())
    }

    pub fn required_id(&self, field: &'static str) -> Option<String> {
        self.required_string(field)?;
        self.id(field)
    }

    /// One of a closed set of words.
    pub fn choice<T: Copy>(&self, field: &'static str, choices: &[(&str, T)]) -> Option<T> {
        let text = self.string(field)?;
        if let Some((_, chosen)) = choices.iter().find(|(word, _)| *word == text) {
            return Some(*chosen);
        }
        let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
        self.report(
            field,
            "invalid_choice",
            format!("\"{}\" is none of {}", shorten(text), words.join(", ")),
        );
        None
    }

    /// A duration under `<name>_ms` (a number) or `<name>` (Go's format); `null` means never.
    pub fn limit(&self, name: &'static str, name_ms: &'static str) -> Limit {
        self.known.borrow_mut().extend([name, name_ms]);
        let written = (self.object.get(name), self.object.get(name_ms));
        let (field, millis) = match written {
            (None, None) => return Limit::Unset,
            (Some(_), Some(_)) => {
                self.report(
                    name,
                    "both_forms",
                    format!("write either \"{name}\" or \"{name_ms}\", not both"),
                );
                return Limit::Unset;
            }
            (Some(Value::Null), None) | (None, Some(Value::Null)) => return Limit::Never,
            (Some(Value::String(text)), None) => match parse_duration(text) {
                Ok(millis) => (name, millis),
                Err(message) => {
                    self.report(name, "invalid_duration", message);
                    return Limit::Unset;
                }
            },
            (Some(other), None) => {
                self.report(
                    name,
                    "wrong_type",
                    format!(
                        "expected a duration like \"30s\", found {}; milliseconds go under \"{name_ms}\"",
                        kind_of(other)
                    ),
                );
                return Limit::Unset;
            }
            (None, Some(value)) => match value.as_u64() {
                Some(millis) => (name_ms, millis),
                None => {
                    self.report(
                        name_ms,
                        "wrong_type",
                        format!(
                            "expected a whole number of milliseconds, found {}; a duration like \"30s\" goes under \"{name}\"",
                            kind_of(value)
                        ),
                    );
                    return Limit::Unset;
                }
            },
        };
        let rules = self.problems.rules();
        if !(rules.min_ms..=rules.max_ms).contains(&millis) {
            self.report(
                field,
                "out_of_range",
                format!(
                    "{} is outside {} to {}",
                    format_duration(millis),
                    format_duration(rules.min_ms),
                    format_duration(rules.max_ms)
                ),
            );
            return Limit::Unset;
        }
        Limit::After(millis)
    }

    /// As `limit`, or the word `adaptive` under `<name>`: then the second is true and the limit is not set.
    pub fn limit_or_adaptive(&self, name: &'static str, name_ms: &'static str) -> (Limit, bool) {
        let is_adaptive = |field| self.object.get(field).and_then(Value::as_str) == Some("adaptive");
        if is_adaptive(name) && !self.object.contains_key(name_ms) {
            self.known.borrow_mut().extend([name, name_ms]);
            return (Limit::Unset, true);
        }
        if is_adaptive(name_ms) && !self.object.contains_key(name) {
            self.known.borrow_mut().extend([name, name_ms]);
            self.report(
                name_ms,
                "wrong_type",
                format!("\"adaptive\" is no number of milliseconds; write \"{name}\": \"adaptive\""),
            );
            return (Limit::Unset, false);
        }
        (self.limit(name, name_ms), false)
    }

    /// Which of the two names of a duration is written, for a problem's place.
    pub fn spelling(&self, name: &'static str, name_ms: &'static str) -> &'static str {
        match self.object.contains_key(name) {
            true => name,
            false => name_ms,
        }
    }

    pub fn object(&self, field: &'static str) -> Option<Reader<'a>> {
        Reader::new(self.any(field)?, self.at(field), self.problems)
    }

    /// The entries of an object whose keys are the user's.
    pub fn entries(&self, field: &'static str) -> Option<Vec<(&'a str, Element<'a>)>> {
        let reader = self.object(field)?;
        Some(
            reader
                .object
                .iter()
                .map(|(key, value)| {
                    let pointer = pointer_to(&reader.pointer, key);
                    (key.as_str(), Element { value, pointer })
                })
                .collect(),
        )
    }

    pub fn array(&self, field: &'static str) -> Vec<Element<'a>> {
        let Some(elements) = self.typed(field, "an array", Value::as_array) else {
            return Vec::new();
        };
        elements
            .iter()
            .enumerate()
            .map(|(index, value)| Element {
                value,
                pointer: format!("{}/{index}", self.at(field)),
            })
            .collect()
    }

    /// A bare CEL expression, parsed now; `names` are the ones in scope here.
    pub fn expression(&self, field: &'static str, names: &[&str]) -> Option<Expression> {
        let source = self.string(field)?;
        read_expression(source, &self.at(field), names, self.problems)
    }

    /// JSON in which strings may hold `${CEL}`.
    pub fn template(&self, field: &'static str, names: &[&str]) -> Option<Template> {
        read_template(self.any(field)?, &self.at(field), names, self.problems)
    }

    pub fn schema(&self, field: &'static str) -> Option<Schema> {
        let value = self.any(field)?;
        match Schema::compile(value) {
            Ok(schema) => Some(schema),
            Err(found) => {
                for problem in found {
                    self.problems.report(
                        &format!("{}{}", self.at(field), problem.pointer),
                        "invalid_schema",
                        problem.message,
                    );
                }
                None
            }
        }
    }

    /// A field of the contract that this build cannot carry out yet: refused, so that nothing silently does nothing.
    pub fn unsupported(&self, fields: &[&'static str]) {
        for field in fields {
            if self.any(field).is_some() {
                self.report(
                    field,
                    "unsupported",
                    format!("\"{field}\" is not supported by this version of Curfew yet; remove it"),
                );
            }
        }
    }

    /// Reports every unknown field, with the nearest name and all known ones.
    pub fn finish(self) {
        let known = self.known.borrow();
        for field in self.object.keys() {
            if known.contains(&field.as_str()) {
                continue;
            }
            let mut message = "unknown field".to_string();
            if let Some(name) = nearest(&known, field) {
                message += &format!("; did you mean \"{name}\"?");
            }
            // A document can hold a hundred thousand of them.
            if self.problems.count() < KNOWN_NAMES_SHOWN {
                message += &format!(" {}", known_names(&known));
            }
            self.report(field, UNKNOWN_FIELD, message);
        }
    }

    fn typed<T>(
        &self,
        field: &'static str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.any(field)?;
        let typed = read(value);
        if typed.is_none() {
            self.report(
                field,
                "wrong_type",
                format!("expected {expected}, found {}", kind_of(value)),
            );
        }
        typed
    }
}

pub fn read_expression(
    source: &str,
    pointer: &str,
    names: &[&str],
    problems: &Problems,
) -> Option<Expression> {
    let expression = Expression::new(source);
    if problems.is_prechecked() {
        return Some(expression);
    }
    match expression.check() {
        Ok(used) => {
            report_unknown_names(used.iter().map(String::as_str), pointer, names, problems);
            Some(expression)
        }
        Err(message) => {
            problems.report(pointer, "invalid_expression", message);
            None
        }
    }
}

pub fn read_template(value: &Value, pointer: &str, names: &[&str], problems: &Problems) -> Option<Template> {
    let checked = Template::parse(value).and_then(|template| {
        let used = match problems.is_prechecked() {
            true => Default::default(),
            false => template.check()?,
        };
        Ok((template, used))
    });
    match checked {
        Ok((template, used)) => {
            report_unknown_names(used.iter().map(String::as_str), pointer, names, problems);
            Some(template)
        }
        Err(found) => {
            for (place, message) in found {
                problems.report(&format!("{pointer}{place}"), "invalid_expression", message);
            }
            None
        }
    }
}

fn report_unknown_names<'n>(
    used: impl Iterator<Item = &'n str>,
    pointer: &str,
    names: &[&str],
    problems: &Problems,
) {
    for name in used.filter(|name| !names.contains(name)) {
        problems.report(
            pointer,
            "unknown_name",
            format!(
                "\"{}\" is not a name here; the names are {}",
                shorten(name),
                names.join(", ")
            ),
        );
    }
}

pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// User text in a message, kept short.
pub fn shorten(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

/// All names that may stand in a place, each once, in a sentence.
pub fn known_names(known: &[&'static str]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in known {
        if !names.contains(name) {
            names.push(name);
        }
    }
    match names.is_empty() {
        true => "(none is known here)".to_string(),
        false => format!("(known: {})", names.join(", ")),
    }
}

/// The name that was most likely meant, if one is close enough for a typing slip.
pub fn nearest(known: &[&'static str], written: &str) -> Option<&'static str> {
    let near = known
        .iter()
        .filter_map(|name| Some((slips(name, written)?, *name)));
    // Of two that are as near the one that is asked for first.
    near.min_by_key(|(slips, _)| *slips).map(|(_, name)| name)
}

/// How many characters differ, if they are few enough for the length of the name, or if only its end is missing.
fn slips(name: &str, written: &str) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) = (name.chars().collect(), written.chars().take(42).collect());
    let most = match a.len().max(b.len()) {
        0..=3 => 1,
        4..=8 => 2,
        _longer => 3,
    };
    if b.len() >= 4 && a.starts_with(&b) {
        return Some(a.len() - b.len());
    }
    if a.len().abs_diff(b.len()) > most || b.len() > 40 {
        return None;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let cost = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    Some(row[b.len()]).filter(|slips| *slips <= most)
}
