//! Where a mapping writes: `state.x.y`, `output.z`.

use serde_json::{Map, Value};

/// A target's depth adds to its value's, and what is saved must be readable again.
const SEGMENTS: usize = 16;

/// The part of a context a path starts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Root {
    State,
    Output,
    /// `_branch.output`: the result of the branch the token is in.
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

/// A parsed target. `segments` is empty only for a bare `_branch.output`, which replaces all of it.
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
        if segments.len() > SEGMENTS {
            return Err(format!(
                "\"{text}\" is {} names deep; the limit is {SEGMENTS}",
                segments.len()
            ));
        }
        Ok(Path { root, segments })
    }

    /// As `parse`, where a bare `y` means `output.y` (in `update_context`). A task knows no branch.
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

    /// The top-level name under the root: the unit the context is stored in.
    pub fn top(&self) -> &str {
        // `parse` lets no empty list of segments through.
        self.segments.first().map_or("", String::as_str)
    }

    /// The value at this path below `root`.
    pub fn find<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        self.segments.iter().try_fold(root, |here, name| here.get(name))
    }

    /// As `write`, below a value that need not be an object yet.
    pub fn write_value(&self, root: &mut Value, value: Value) {
        if self.segments.is_empty() {
            *root = value;
            return;
        }
        if !root.is_object() {
            *root = Value::Object(Map::new());
        }
        if let Value::Object(fields) = root {
            self.write(fields, value);
        }
    }

    /// Writes `value`, making the objects on the way; what stands in the way and is no object is replaced.
    pub fn write(&self, root: &mut Map<String, Value>, value: Value) {
        let Some((last, way)) = self.segments.split_last() else {
            return;
        };
        let mut here = root;
        for name in way {
            let next = here.entry(name.clone()).or_insert(Value::Null);
            if !next.is_object() {
                *next = Value::Object(Map::new());
            }
            let Value::Object(object) = next else {
                return; // Unreachable: the line above made it an object.
            };
            here = object;
        }
        here.insert(last.clone(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn targets() {
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
    fn writing_makes_the_way() {
        let Value::Object(mut root) = json!({"a": 1}) else {
            unreachable!()
        };
        Path::parse("state.a.b").unwrap().write(&mut root, json!(2));
        Path::parse("state.c").unwrap().write(&mut root, json!(3));
        assert_eq!(Value::Object(root), json!({"a": {"b": 2}, "c": 3}));
    }
}
