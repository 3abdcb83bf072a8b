//! Where a mapping writes: `state.x.y`, `output.z`.

use serde_json::{Map, Value};

/// A target's depth adds to its value's, and what is saved must be readable again.
const SEGMENTS: usize = 16;

/// The part of a context a path starts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Root {
    State,
    Output,
}

impl Root {
    pub fn name(self) -> &'static str {
        match self {
            Root::State => "state",
            Root::Output => "output",
        }
    }
}

/// A parsed target. `segments` may be empty only for a bare root, which replaces all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    pub root: Root,
    pub segments: Vec<String>,
}

impl Path {
    pub fn parse(text: &str) -> Result<Path, String> {
        let mut parts = text.split('.');
        let root = match parts.next() {
            Some("state") => Root::State,
            Some("output") => Root::Output,
            Some(_) | None => {
                return Err(format!(
                    "\"{text}\" is not a target; write to state.<name> or output.<name>"
                ));
            }
        };
        let segments: Vec<String> = parts.map(str::to_string).collect();
        if segments.is_empty() {
            return Err(format!(
                "\"{text}\" would replace everything; name what to write: {text}.<name>"
            ));
        }
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

    /// As `parse`, where a bare `y` means `output.y` (in `update_context`).
    pub fn parse_in_task(text: &str) -> Result<Path, String> {
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
        for good in ["state.x", "output.y", "state.a.b.c"] {
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
