//! The secrets of an action. Each is named literally, `${secret.NAME}`, and nothing computes with it: the values to provide and
//! to redact are known before the action runs, and a value that a peer echoes still looks like the secret.

use std::collections::BTreeSet;

use serde_json::Value;
use url::Url;

use crate::cel::{Members, Template, TextPart};
use crate::definition::action::ActionKind;
use crate::definition::problem::{Problems, pointer_to};
use crate::definition::shell::Runner;

/// The name of the executor's secrets in expressions.
pub const SECRET: &str = "secret";

const COMPUTED: &str = "a secret stands as it is, alone or with text around it: \"Bearer ${secret.NAME}\"; operators, functions \
                        and \"secret[...]\" are not possible, store what is needed as a secret of its own";

/// In the context of a task every expression could read the value.
const NOT_SENT: &str = "this action sends nothing, and a secret may only be sent: write \"${secret.NAME}\" in the action that sends it";

/// The secrets that templates anywhere in `implementation` name, in alphabetical order. A document that was stored by an
/// earlier build may compute with them, and goes on as it did.
pub(super) fn read_secrets(
    implementation: &Value,
    kind: Option<&ActionKind>,
    pointer: &str,
    problems: &Problems,
) -> Vec<String> {
    // Most actions name no secret, and need not be parsed.
    if !mentions_secrets(implementation) {
        return Vec::new();
    }
    // Invalid templates are reported where their field is read.
    let Ok(template) = Template::parse(implementation) else {
        return Vec::new();
    };
    let mut named = BTreeSet::new();
    template.visit(&mut |expression, below| {
        let mut members = Members::default();
        expression.members_of(SECRET, &mut members);
        if members.is_empty() {
            return;
        }
        let is_bare = expression.bare_member_of(SECRET).is_some();
        if let Some(message) = problem_of(kind, is_bare).filter(|_| !problems.is_prechecked()) {
            problems.report(&format!("{pointer}{below}"), "invalid_secret", message);
        }
        named.extend(members.named);
    });
    let named: Vec<String> = named.into_iter().collect();
    if let Some(kind) = kind.filter(|_| !named.is_empty() && !problems.is_prechecked()) {
        warn_of_host_from_data(kind, &named, pointer, problems);
    }
    named
}

fn mentions_secrets(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => text.contains(SECRET),
        Value::Array(items) => items.iter().any(mentions_secrets),
        Value::Object(fields) => fields.values().any(mentions_secrets),
    }
}

fn problem_of(kind: Option<&ActionKind>, is_bare: bool) -> Option<&'static str> {
    match kind {
        Some(ActionKind::UpdateContext(_) | ActionKind::Assert(_)) => Some(NOT_SENT),
        // Their fields have no secrets in scope, which is reported there.
        Some(ActionKind::EmitEvent(_) | ActionKind::WorkflowCall(_)) => None,
        None
        | Some(
            ActionKind::HttpRequest(_)
            | ActionKind::McpTool(_)
            | ActionKind::ServiceCall(_)
            | ActionKind::LlmCall(_)
            | ActionKind::Shell(_),
        ) => Some(COMPUTED).filter(|_| !is_bare),
    }
}

/// The author of the data could choose where the secrets go.
fn warn_of_host_from_data(kind: &ActionKind, named: &[String], pointer: &str, problems: &Problems) {
    let Some((field, _)) = url_of(kind).filter(|(_, url)| has_host_from_data(url)) else {
        return;
    };
    let message = format!(
        "data decides which host gets the secret ({}); write the host out, or bind the secret to its hosts in the executor's \
         variable CURFEW_SECRETS, like {{\"{}\": [\"api.example.com\"]}}",
        named.join(", "),
        named[0]
    );
    problems.warn(&pointer_to(pointer, field), "secret_to_any_host", message);
}

/// The field with the address that an action calls.
fn url_of(kind: &ActionKind) -> Option<(&'static str, &Template)> {
    match kind {
        ActionKind::HttpRequest(request) => Some(("url", &request.url)),
        ActionKind::McpTool(tool) => Some(("server_url", &tool.server_url)),
        ActionKind::LlmCall(llm) => llm.base_url.as_ref().map(|url| ("base_url", url)),
        ActionKind::Shell(shell) => match &shell.runner {
            Runner::Url(url) => Some(("url", url)),
            Runner::Binding(_) => None,
        },
        ActionKind::ServiceCall(_)
        | ActionKind::UpdateContext(_)
        | ActionKind::Assert(_)
        | ActionKind::EmitEvent(_)
        | ActionKind::WorkflowCall(_) => None,
    }
}

/// Whether an expression other than a secret can change the host or the port.
fn has_host_from_data(url: &Template) -> bool {
    let mut before = String::new();
    for part in url.text_parts() {
        match part {
            TextPart::Text(text) => before.push_str(text),
            // The executor's own: a whole URL, or a part of one.
            TextPart::Expression(expression) if expression.bare_member_of(SECRET).is_some() => {
                before.push_str(if before.is_empty() {
                    "https://secret.invalid/"
                } else {
                    "secret"
                });
            }
            TextPart::Expression(_) => return !has_ended_host(&before),
        }
    }
    false
}

/// Whether what follows this beginning of a URL belongs to its path or query. What follows an unfinished host may be `@` and
/// another one.
fn has_ended_host(before: &str) -> bool {
    const OTHER: &str = "other.invalid";
    let continued = Url::parse(&format!("{before}@{OTHER}/"));
    continued.is_ok_and(|url| url.host_str().is_some_and(|host| host != OTHER))
}
