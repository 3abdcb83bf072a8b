//! Finds the secrets that an action's implementation names. Each is named literally, `${secret.NAME}`, so that the values to
//! provide and to redact are known before the action runs.

use serde_json::Value;

use crate::cel::{Members, Template};
use crate::definition::problem::Problems;

/// The name of the executor's secrets in expressions.
pub const SECRET: &str = "secret";

/// The secrets that templates anywhere in `implementation` name, in alphabetical order.
pub(super) fn named_in(implementation: &Value, pointer: &str, problems: &Problems) -> Vec<String> {
    // Most actions name no secret, and need not be parsed.
    if !mentions_secrets(implementation) {
        return Vec::new();
    }
    // Invalid templates are reported where their field is read.
    let Ok(template) = Template::parse(implementation) else {
        return Vec::new();
    };
    let mut named = std::collections::BTreeSet::new();
    template.visit(&mut |expression, below| {
        let mut members = Members::default();
        expression.members_of(SECRET, &mut members);
        if members.has_unknown {
            problems.report(
                &format!("{pointer}{below}"),
                "invalid_secret",
                "secrets are named one by one: \"${secret.NAME}\"",
            );
        }
        named.extend(members.named);
    });
    named.into_iter().collect()
}

fn mentions_secrets(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => text.contains(SECRET),
        Value::Array(items) => items.iter().any(mentions_secrets),
        Value::Object(fields) => fields.values().any(mentions_secrets),
    }
}
