//! Which secrets an action's implementation names. They are named one by one, `${secret.NAME}`, so that it is known
//! before the action runs which values it may hold, and what must not leave the executor.

use serde_json::Value;

use crate::cel::{Members, Template};
use crate::definition::problem::Problems;

/// The name that stands for the executor's secrets.
pub const SECRET: &str = "secret";

/// The secrets that templates anywhere in `implementation` name, in the order of the alphabet.
pub(super) fn named_in(implementation: &Value, pointer: &str, problems: &Problems) -> Vec<String> {
    // Nearly every action has none, and nothing is parsed for those.
    if !mentions(implementation) {
        return Vec::new();
    }
    // What cannot be split or parsed is reported by whoever reads the field.
    let Ok(template) = Template::parse(implementation) else {
        return Vec::new();
    };
    let mut named = std::collections::BTreeSet::new();
    template.visit(&mut |expression, place| {
        let mut members = Members::default();
        expression.members_of(SECRET, &mut members);
        if members.has_unknown {
            problems.report(
                &format!("{pointer}{place}"),
                "invalid_secret",
                "secrets are named one by one: \"${secret.NAME}\"",
            );
        }
        named.extend(members.named);
    });
    named.into_iter().collect()
}

fn mentions(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => text.contains(SECRET),
        Value::Array(items) => items.iter().any(mentions),
        Value::Object(fields) => fields.values().any(mentions),
    }
}
