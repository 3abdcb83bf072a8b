//! Where a limit is written in the run's workflow document, or where it would be written.

use serde_json::{Value, json};

/// A JSON Patch operation that still lacks its milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    is_written: bool,
    path: String,
    form: Form,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    Millis,
    /// `"1500ms"`
    Duration,
    /// The object around it is not written either.
    ObjectWith(String),
}

impl Place {
    /// The limit `name`, or `name` with `_ms`, of the object at `parent`.
    pub fn of(document: &Value, parent: &str, name: &str) -> Place {
        let name_ms = format!("{name}_ms");
        let place = |field: &str, form, is_written| Place {
            is_written,
            path: format!("{parent}/{field}"),
            form,
        };
        match document.pointer(parent) {
            Some(Value::Object(fields)) if fields.contains_key(name) => place(name, Form::Duration, true),
            Some(Value::Object(fields)) if fields.contains_key(&name_ms) => {
                place(&name_ms, Form::Millis, true)
            }
            Some(Value::Object(_)) => place(&name_ms, Form::Millis, false),
            Some(_) | None => Place {
                is_written: false,
                path: parent.to_string(),
                form: Form::ObjectWith(name_ms),
            },
        }
    }

    /// The pointer of the limit, if it is written.
    pub fn pointer(&self) -> Option<&str> {
        self.is_written.then_some(self.path.as_str())
    }

    /// The operation that sets it.
    pub fn change(&self, millis: u64) -> Value {
        let value = match &self.form {
            Form::Millis => json!(millis),
            Form::Duration => json!(format!("{millis}ms")),
            Form::ObjectWith(name) => json!({name: millis}),
        };
        let op = if self.is_written { "replace" } else { "add" };
        json!({"op": op, "path": self.path, "value": value})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_replaced_in_the_form_it_has_and_added_where_there_is_none() {
        let document =
            json!({"timeout": "1m", "gate": {"timeout_ms": 5}, "nodes": [{"id": "a"}], "timeouts": null});
        for (parent, name, pointer, change) in [
            (
                "",
                "timeout",
                Some("/timeout"),
                json!({"op": "replace", "path": "/timeout", "value": "1500ms"}),
            ),
            (
                "/gate",
                "timeout",
                Some("/gate/timeout_ms"),
                json!({"op": "replace", "path": "/gate/timeout_ms", "value": 1_500}),
            ),
            (
                "/nodes/0",
                "timeout",
                None,
                json!({"op": "add", "path": "/nodes/0/timeout_ms", "value": 1_500}),
            ),
            (
                "/timeouts",
                "tool",
                None,
                json!({"op": "add", "path": "/timeouts", "value": {"tool_ms": 1_500}}),
            ),
        ] {
            let place = Place::of(&document, parent, name);
            assert_eq!(
                (place.pointer(), place.change(1_500)),
                (pointer, change),
                "{parent}"
            );
        }
    }
}
