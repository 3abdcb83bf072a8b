//! The targets that a mapping writes to: `state.x.y`, `output.z`.

use serde_json::{Map, Value};

/// The nesting of a target adds to that of its value, and together they must stay parseable.
const SEGMENTS_MAX: usize = 16;

/// The part of the context that a path starts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Root {
    State,
    Output,
    /// `_branch.output`: the result of the token's branch.
    Branch,
}

impl Root {
    pub fn name(self) -> &'static str {
        match self {
            Root::State => "state",
            Root::Output => "output",
            Root::Branch => "_branch.output",
        }
    }
}

/// `segments` is empty only for `_branch.output`, which replaces the whole result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    pub root: Root,
    pub segments: Vec<String>,
}

impl Path {
    pub fn parse(text: &str) -> Result<Path, String> {
        if let Some(rest) = text.strip_prefix("_branch.output")
            && (rest.is_empty() || rest.starts_with('.'))
        {
            let segments: Vec<String> = rest.split('.').skip(1).map(str::to_string).collect();
            return Path::checked(Root::Branch, segments, text);
        }
        let mut parts = text.split('.');
        let root = match parts.next() {
            Some("state") => Root::State,
            Some("output") => Root::Output,
            Some(_) | None => {
                return Err(format!(
                    "\"{text}\" is not a target; write to state.<name>, output.<name> or, in a branch, _branch.output"
                ));
            }
        };
        let segments: Vec<String> = parts.map(str::to_string).collect();
        if segments.is_empty() {
            return Err(format!(
                "\"{text}\" would replace everything; name what to write: {text}.<name>"
            ));
        }
        Path::checked(root, segments, text)
    }

    fn checked(root: Root, segments: Vec<String>, text: &str) -> Result<Path, String> {
        if segments.iter().any(String::is_empty) {
            return Err(format!("\"{text}\" has an empty name between its dots"));
        }
        if segments.len() > SEGMENTS_MAX {
            return Err(format!(
                "\"{text}\" is {} names deep; the limit is {SEGMENTS_MAX}",
                segments.len()
            ));
        }
        Ok(Path { root, segments })
    }

    /// Like `parse`, but `y` means `output.y`. Tasks have no access to the branch.
    pub fn parse_in_task(text: &str) -> Result<Path, String> {
        if text.starts_with("_branch") {
            return Err(format!(
                "\"{text}\" is not a target in a task; write to state.<name> or output.<name>"
            ));
        }
        let first = text.split('.').next().unwrap_or_default();
        if first == "state" || first == "output" {
            return Path::parse(text);
        }
        Path::parse(&format!("output.{text}"))
    }

    /// The first segment. The context is stored by these.
    pub fn top(&self) -> &str {
        // Only `_branch.output` has no segments, and branches are stored whole.
        self.segments.first().map_or("", String::as_str)
    }

    /// The value at this path below `root`.
    pub fn find<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        self.segments.iter().try_fold(root, |here, name| here.get(name))
    }

    /// Like `write`, below a value that need not be an object.
    pub fn write_value(&self, root: &mut Value, value: Value) {
        if self.segments.is_empty() {
            *root = value;
            return;
        }
        self.write(as_object(root), value);
    }

    /// Writes `value`. Missing objects on the path are created, and other values on it are replaced by objects.
    pub fn write(&self, root: &mut Map<String, Value>, value: Value) {
        let (last, parents) = self
            .segments
            .split_last()
            .expect("only `_branch.output` has no segments, and it is written by `write_value`");
        let mut object = root;
        for name in parents {
            object = as_object(object.entry(name.clone()).or_insert(Value::Null));
        }
        object.insert(last.clone(), value);
    }
}

/// The value as an object, which replaces any other value.
fn as_object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("replaced by an object above")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn targets_start_in_state_output_or_the_branch() {
        for good in [
            "state.x",
            "output.y",
            "state.a.b.c",
            "_branch.output",
            "_branch.output.k",
        ] {
            assert!(Path::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "state", "output", "input.x", "", "x", "state.", "state..x", "_branch",
        ] {
            assert!(Path::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(Path::parse_in_task("y"), Path::parse("output.y"));
    }

    #[test]
    fn writing_creates_missing_objects() {
        let Value::Object(mut root) = json!({"a": 1}) else {
            unreachable!()
        };
        Path::parse("state.a.b").unwrap().write(&mut root, json!(2));
        Path::parse("state.c").unwrap().write(&mut root, json!(3));
        assert_eq!(Value::Object(root), json!({"a": {"b": 2}, "c": 3}));
    }
}
