//! JSON pointers and `$ref`: resolves a reference inside its document, and finds
//! cycles of references that would never end. Both are iterative, so no document
//! can exhaust the stack.

use serde_json::Value;

use super::messages::Quoted;
use super::{Node, NodeId, Rule};

/// Appends one segment to a JSON pointer.
pub(super) fn push_segment(pointer: &mut String, segment: &str) {
    pointer.push('/');
    for character in segment.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            plain => pointer.push(plain),
        }
    }
}

#[derive(Debug)]
pub(super) struct Target<'s> {
    pub(super) pointer: &'s str,
    pub(super) value: &'s Value,
    /// Whether a schema that contains the target, other than the root, has an `$id`.
    pub(super) embedded: bool,
}

pub(super) fn resolve<'s>(root: &'s Value, text: &'s str) -> Result<Target<'s>, String> {
    let pointer = match text.strip_prefix('#') {
        Some(pointer) => pointer,
        None if text.is_empty() => "",
        None => {
            return Err("$ref to another document is not supported: \
                        copy that schema into $defs and use \"#/$defs/name\""
                .to_owned());
        }
    };
    let unresolvable = || format!("{} leads to nothing in this document", Quoted(text));
    let decoded = percent_decoded(pointer).ok_or_else(unresolvable)?;
    let mut steps = decoded.split('/');
    if steps.next() != Some("") {
        return Err("$ref to an anchor is not supported: use \"#/$defs/name\"".to_owned());
    }
    let mut target = Target {
        pointer,
        value: root,
        embedded: false,
    };
    for (depth, step) in steps.enumerate() {
        let key = step.replace("~1", "/").replace("~0", "~");
        target.embedded |= depth > 0 && target.value.get("$id").is_some_and(Value::is_string);
        let below = match target.value {
            Value::Object(map) => map.get(&key),
            Value::Array(items) => index(&key).and_then(|index| items.get(index)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        };
        target.value = below.ok_or_else(unresolvable)?;
    }
    Ok(target)
}

fn index(step: &str) -> Option<usize> {
    let canonical = step == "0" || !step.starts_with(['0', '+']);
    canonical.then(|| step.parse().ok())?
}

/// A `$ref` is a URI reference, so its fragment may be percent-encoded.
fn percent_decoded(fragment: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = fragment.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => hex(rest.next()?)? << 4 | hex(rest.next()?)?,
            plain => plain,
        });
    }
    String::from_utf8(bytes).ok()
}

fn hex(digit: u8) -> Option<u8> {
    // A base-16 digit is below 16, so the cast is lossless.
    char::from(digit).to_digit(16).map(|value| value as u8)
}

#[derive(Clone, Copy, PartialEq)]
enum Visit {
    Unseen,
    Open,
    Closed,
}

/// Nodes that apply to the same instance a node which is already being applied
/// to it.
pub(super) fn cycles(nodes: &[Node]) -> Vec<NodeId> {
    let mut visits = vec![Visit::Unseen; nodes.len()];
    let mut looping = vec![false; nodes.len()];
    for start in 0..nodes.len() {
        let mut path = vec![(start, vec![start])];
        while let Some((node, next)) = path.last_mut() {
            let from = *node;
            let Some(to) = next.pop() else {
                path.pop();
                // The first entry only provides the start and was never opened.
                if !path.is_empty() {
                    visits[from] = Visit::Closed;
                }
                continue;
            };
            match visits[to] {
                Visit::Unseen => {
                    visits[to] = Visit::Open;
                    path.push((to, same_instance(&nodes[to])));
                }
                Visit::Open => looping[from] = true,
                Visit::Closed => {}
            }
        }
    }
    (0..nodes.len()).filter(|node| looping[*node]).collect()
}

/// The nodes that are applied to the instance itself, not to a part of it.
fn same_instance(node: &Node) -> Vec<NodeId> {
    let mut applied = Vec::new();
    let Node::Rules { rules, .. } = node else {
        return applied;
    };
    for rule in rules {
        match rule {
            Rule::AllOf(nodes) | Rule::AnyOf(nodes) | Rule::OneOf(nodes) => {
                applied.extend_from_slice(nodes);
            }
            Rule::Not(node) => applied.push(*node),
            Rule::DependentSchemas(dependents) => {
                applied.extend(dependents.iter().map(|(_, node)| *node));
            }
            Rule::Conditional {
                test,
                then,
                otherwise,
            } => {
                applied.push(*test);
                applied.extend(*then);
                applied.extend(*otherwise);
            }
            Rule::Values { .. }
            | Rule::Minimum(_)
            | Rule::ExclusiveMinimum(_)
            | Rule::Maximum(_)
            | Rule::ExclusiveMaximum(_)
            | Rule::MultipleOf(_)
            | Rule::AtLeast(..)
            | Rule::AtMost(..)
            | Rule::Pattern(_)
            | Rule::Required(_)
            | Rule::Properties { .. }
            | Rule::PropertyNames(_)
            | Rule::DependentRequired(_)
            | Rule::Items { .. }
            | Rule::Contains { .. }
            | Rule::UniqueItems => {}
        }
    }
    applied
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::json_schema::tests::compile_violations;

    #[test]
    fn references_that_do_not_descend_are_rejected() {
        let looping = "schema refers back to itself without descending into the instance";
        let cases = [
            (json!({"$ref": "#"}), ""),
            (json!({"allOf": [{"$ref": "#"}]}), "/allOf/0"),
            (json!({"not": {"if": {"$ref": "#"}}}), "/not/if"),
            (
                json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"dependentSchemas": {"x": {"$ref": "#/$defs/a"}}}}}),
                "/$defs/b/dependentSchemas/x",
            ),
        ];
        for (schema, pointer) in cases {
            assert_eq!(
                compile_violations(&schema),
                [format!("{pointer} {looping}")],
                "{schema}"
            );
        }
        let descending = json!({"properties": {"a": {"$ref": "#"}}, "items": {"anyOf": [{"$ref": "#"}]}, "contains": {"$ref": "#"}, "minContains": 0});
        assert_eq!(compile_violations(&descending), [""; 0]);
    }
}
