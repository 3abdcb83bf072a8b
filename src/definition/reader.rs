//! Reads one JSON object of a document field by field. Every problem is reported, not only the first.
//!
//! A reader records which fields were requested. `finish` reports all others as unknown.

use std::cell::RefCell;

use serde_json::{Map, Value};

use crate::base::ids;
use crate::base::suggest::{closest, known_names};
use crate::base::text::{json_type, shorten};
use crate::base::time::{Limit, format_duration, parse_exact_duration, parse_length};
use crate::cel::{Expression, Template};
use crate::definition::problem::{MISSING_FIELD, Problems, UNKNOWN_FIELD, pointer_to};
use crate::json_schema::Schema;

pub struct Reader<'a> {
    object: &'a Map<String, Value>,
    pointer: String,
    problems: &'a Problems,
    known: RefCell<Vec<&'static str>>,
}

/// An element of an array, with its JSON pointer.
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
                    format!("expected an object, found {}", json_type(other)),
                );
                None
            }
        }
    }

    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    pub fn pointer_of(&self, field: &str) -> String {
        pointer_to(&self.pointer, field)
    }

    pub fn report(&self, field: &str, code: &'static str, message: impl Into<String>) {
        self.problems.report(&self.pointer_of(field), code, message);
    }

    pub fn problems(&self) -> &'a Problems {
        self.problems
    }

    /// The field's value. `null` counts as absent.
    pub fn value(&self, field: &'static str) -> Option<&'a Value> {
        self.known.borrow_mut().push(field);
        self.object.get(field).filter(|value| !value.is_null())
    }

    pub fn has(&self, field: &'static str) -> bool {
        self.value(field).is_some()
    }

    /// The field is there, also with `null`.
    pub fn is_written(&self, field: &str) -> bool {
        self.object.contains_key(field)
    }

    pub fn string(&self, field: &'static str) -> Option<&'a str> {
        self.typed(field, "a string", Value::as_str)
    }

    pub fn required_string(&self, field: &'static str) -> Option<&'a str> {
        self.require(field);
        self.string(field)
    }

    pub fn boolean(&self, field: &'static str) -> Option<bool> {
        self.typed(field, "true or false", Value::as_bool)
    }

    pub fn integer(&self, field: &'static str, min: i64, max: i64) -> Option<i64> {
        let number = self.typed(field, "a whole number", Value::as_i64)?;
        if (min..=max).contains(&number) {
            return Some(number);
        }
        let message = match number < 0 && min >= 0 {
            true => format!("{number} must not be negative; it is {min} to {max}"),
            false => format!("{number} is outside {min} to {max}"),
        };
        self.report(field, "out_of_range", message);
        None
    }

    /// The id of a document or of a part of one.
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

    /// One of a fixed set of strings.
    pub fn choice<T: Copy>(&self, field: &'static str, choices: &[(&str, T)]) -> Option<T> {
        let text = self.string(field)?;
        if let Some((_, chosen)) = choices.iter().find(|(name, _)| *name == text) {
            return Some(*chosen);
        }
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        self.report(
            field,
            "invalid_choice",
            format!("\"{}\" is none of {}", shorten(text), names.join(", ")),
        );
        None
    }

    /// A duration in the field `<name>_ms` (a number) or `<name>` (Go's format). `null` means never.
    pub fn limit(&self, name: &'static str, name_ms: &'static str) -> Limit {
        self.read_limit(name, name_ms, false)
    }

    /// Like `limit`, but a bare number in the field `<name>` is milliseconds, too.
    pub fn limit_or_millis(&self, name: &'static str, name_ms: &'static str) -> Limit {
        self.read_limit(name, name_ms, true)
    }

    fn read_limit(&self, name: &'static str, name_ms: &'static str, takes_millis: bool) -> Limit {
        self.known.borrow_mut().extend([name, name_ms]);
        let (field, millis) = match (self.object.get(name), self.object.get(name_ms)) {
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
            // Earlier builds made a whole millisecond of half a one.
            (Some(Value::String(text)), None)
                if is_below_millisecond(text) && !self.problems.is_prechecked() =>
            {
                let message = format!("\"{}\" is shorter than 1ms", shorten(text));
                self.report(name, "out_of_range", message);
                return Limit::Unset;
            }
            (Some(text @ Value::String(_)), None) => match parse_length(text) {
                Ok(millis) => (name, millis),
                Err(message) => {
                    self.report(name, "invalid_duration", message);
                    return Limit::Unset;
                }
            },
            (Some(other), None) if is_negative(other) => {
                self.report(name, "out_of_range", format!("{other} must not be negative"));
                return Limit::Unset;
            }
            (Some(other), None) if !(takes_millis && other.is_number()) => {
                self.report(
                    name,
                    "wrong_type",
                    format!(
                        "expected a duration like \"30s\", found {}; milliseconds go under \"{name_ms}\"",
                        json_type(other)
                    ),
                );
                return Limit::Unset;
            }
            (written, millis) => {
                let field = if written.is_some() { name } else { name_ms };
                let value = written.or(millis).unwrap_or(&Value::Null);
                match value.as_u64() {
                    Some(millis) => (field, millis),
                    None if is_negative(value) => {
                        self.report(field, "out_of_range", format!("{value} must not be negative"));
                        return Limit::Unset;
                    }
                    None => {
                        self.report(
                            field,
                            "wrong_type",
                            format!(
                                "expected a whole number of milliseconds, found {}; a duration like \"30s\" goes under \"{name}\"",
                                json_type(value)
                            ),
                        );
                        return Limit::Unset;
                    }
                }
            }
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

    /// Like `limit`, but `<name>` may also be `"adaptive"`. Then the limit is unset and the second value is true.
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

    /// Which of the two fields for a duration is present, for the pointer of a problem.
    pub fn limit_field(&self, name: &'static str, name_ms: &'static str) -> &'static str {
        match self.object.contains_key(name) {
            true => name,
            false => name_ms,
        }
    }

    pub fn object(&self, field: &'static str) -> Option<Reader<'a>> {
        Reader::new(self.value(field)?, self.pointer_of(field), self.problems)
    }

    /// The entries of an object whose keys the user chooses.
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
                pointer: format!("{}/{index}", self.pointer_of(field)),
            })
            .collect()
    }

    /// A list of objects, each of which `read` reads.
    pub fn list<T>(
        &self,
        field: &'static str,
        most: usize,
        read: impl Fn(&Reader<'a>) -> Option<T>,
    ) -> Vec<T> {
        let elements = self.array(field);
        if elements.len() > most {
            let message = format!(
                "{} entries are too many; at most {most} are allowed",
                elements.len()
            );
            self.report(field, "limit_exceeded", message);
            return Vec::new();
        }
        let read_element = |element: Element<'a>| {
            let reader = Reader::new(element.value, element.pointer, self.problems)?;
            let read = read(&reader);
            reader.finish();
            read
        };
        elements.into_iter().filter_map(read_element).collect()
    }

    /// A length of time: a duration like "30s", or milliseconds.
    pub fn length(&self, field: &'static str) -> Option<u64> {
        let length = parse_length(self.value(field)?);
        length
            .map_err(|message| self.report(field, "invalid_duration", message))
            .ok()
    }

    /// One value or a list of them, as `parse` accepts them. `expected` describes them in the report.
    pub fn one_or_list<T>(
        &self,
        field: &'static str,
        expected: &str,
        parse: impl Fn(&Value) -> Option<T>,
    ) -> Option<Vec<T>> {
        let parsed: Option<Vec<T>> = match self.value(field)? {
            Value::Array(values) => values.iter().map(parse).collect(),
            single => parse(single).map(|value| vec![value]),
        };
        if parsed.as_ref().is_none_or(Vec::is_empty) {
            self.report(
                field,
                "wrong_type",
                format!("expected {expected} or a list of them"),
            );
        }
        parsed
    }

    /// Reports a required field that is absent.
    pub fn require(&self, field: &'static str) {
        if !self.has(field) {
            self.report(field, MISSING_FIELD, format!("\"{field}\" is required"));
        }
    }

    pub fn required_template(&self, field: &'static str, names: &[&str]) -> Option<Template> {
        self.require(field);
        self.template(field, names)
    }

    /// A CEL expression without `${}`. `names` are the ones in scope.
    pub fn expression(&self, field: &'static str, names: &[&str]) -> Option<Expression> {
        let source = self.string(field)?;
        read_expression(source, &self.pointer_of(field), names, self.problems)
    }

    /// JSON in which strings may contain `${CEL}`.
    pub fn template(&self, field: &'static str, names: &[&str]) -> Option<Template> {
        read_template(self.value(field)?, &self.pointer_of(field), names, self.problems)
    }

    pub fn schema(&self, field: &'static str) -> Option<Schema> {
        let value = self.value(field)?;
        match Schema::compile(value) {
            Ok(schema) => Some(schema),
            Err(found) => {
                for problem in found {
                    self.problems.report(
                        &format!("{}{}", self.pointer_of(field), problem.pointer),
                        "invalid_schema",
                        problem.message,
                    );
                }
                None
            }
        }
    }

    /// Reports fields that are specified but not implemented yet, instead of ignoring them.
    pub fn unsupported(&self, fields: &[&'static str]) {
        for field in fields {
            if self.value(field).is_some() {
                self.report(
                    field,
                    "unsupported",
                    format!("\"{field}\" is not supported by this version of Curfew yet; remove it"),
                );
            }
        }
    }

    /// Reports every unknown field with the closest name, and the first one of its kind of object with all known names.
    pub fn finish(self) {
        let known = self.known.borrow();
        let mut list = None;
        for field in self.object.keys() {
            if known.contains(&field.as_str()) {
                continue;
            }
            let mut message = "unknown field".to_string();
            if let Some(name) = closest(&known, field) {
                message += &format!("; did you mean \"{name}\"?");
                // It is there, under a wrong name.
                self.problems.retract(&self.pointer_of(name), MISSING_FIELD);
            }
            let pointer = self.pointer_of(field);
            let list = list.get_or_insert_with(|| known_names(&known));
            if self.problems.is_first_list(list, &pointer) {
                message += &format!(" {list}");
            }
            self.problems.report(&pointer, UNKNOWN_FIELD, message);
        }
    }

    fn typed<T>(
        &self,
        field: &'static str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.value(field)?;
        let typed = read(value);
        if typed.is_none() {
            self.report(
                field,
                "wrong_type",
                format!("expected {expected}, found {}", json_type(value)),
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
            let message = match bare_expression(source) {
                Some(bare) => format!(
                    "leave out ${{}}: this field is an expression already; write \"{}\"",
                    shorten(bare)
                ),
                None => message,
            };
            problems.report(pointer, "invalid_expression", message);
            None
        }
    }
}

/// What stands in `${}`, if that is all there is.
fn bare_expression(source: &str) -> Option<&str> {
    let inside = source.trim().strip_prefix("${")?.strip_suffix('}')?;
    Some(inside.trim())
}

fn is_below_millisecond(duration: &str) -> bool {
    parse_exact_duration(duration).is_ok_and(|millis| millis > 0.0 && millis < 1.0)
}

fn is_negative(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number < 0.0)
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
            for (below, message) in found {
                problems.report(&format!("{pointer}{below}"), "invalid_expression", message);
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
