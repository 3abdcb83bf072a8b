//! `notify` of a workflow, and the deployment's variable of the same shape: which events are posted to which addresses.
//!
//! Secrets are only named here. The executor fills them in, because only the executor may read them.

use serde_json::Value;
use url::Url;

use crate::base::limits;
use crate::base::suggest::closest;
use crate::base::text::shorten;
use crate::cel::{Template, TextPart};
use crate::definition::event_kinds::EVENT_KINDS;
use crate::definition::http::is_token;
use crate::definition::problem::Problems;
use crate::definition::reader::{Element, Reader, read_template};
use crate::definition::secret::SECRET;

/// The coordinator's variable with targets for all workflows.
pub const NOTIFY: &str = "CURFEW_NOTIFY";

/// An address and the kinds of events that are posted to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifyTarget {
    pub on: EventKinds,
    /// Texts in which `${secret.NAME}` may stand. Names of headers are in lower case.
    pub url: String,
    pub headers: Vec<(String, String)>,
    /// The name of the secret that signs.
    pub secret: Option<String>,
    /// Of a target in the variable: patterns of workflow ids. `None`: all workflows.
    pub workflows: Option<Vec<String>>,
}

/// A set of kinds: one bit for each of `EVENT_KINDS`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventKinds(u64);

impl EventKinds {
    /// `kind` is an index of `EVENT_KINDS`.
    pub fn contains(self, kind: usize) -> bool {
        self.0 & 1 << kind != 0
    }

    pub fn union(self, other: EventKinds) -> EventKinds {
        EventKinds(self.0 | other.0)
    }

    fn insert(&mut self, kind: usize) {
        self.0 |= 1 << kind;
    }
}

/// Reads `notify` of a workflow.
pub(super) fn read_targets(reader: &Reader) -> Vec<NotifyTarget> {
    let elements = reader.array("notify");
    if elements.is_empty() && reader.value("notify").is_some_and(Value::is_array) {
        let message = "the list is empty; add a target like {\"on\": [\"run_failed\"], \"url\": \"https://...\"}, or leave it out";
        reader.report("notify", "empty_list", message);
    }
    read_list(&elements, &reader.pointer_of("notify"), reader.problems(), false)
}

/// Reads the text of the deployment's variable. The error says what is wrong and quotes no value.
pub fn parse_variable(text: &str) -> Result<Vec<NotifyTarget>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
    let Value::Array(values) = &value else {
        return Err(
            "it must be a JSON array of targets like {\"on\": [\"run_failed\"], \"url\": \"https://...\"}"
                .into(),
        );
    };
    let problems = Problems::new(Default::default());
    let elements: Vec<Element> = values
        .iter()
        .enumerate()
        .map(|(index, value)| Element {
            value,
            pointer: format!("/{index}"),
        })
        .collect();
    let targets = read_list(&elements, "", &problems, true);
    let first = problems.into_sorted().into_iter().next();
    match first {
        None => Ok(targets),
        Some(problem) => Err(format!("at {}: {}", problem.pointer, problem.message)),
    }
}

fn read_list(
    elements: &[Element],
    pointer: &str,
    problems: &Problems,
    is_variable: bool,
) -> Vec<NotifyTarget> {
    if elements.len() > limits::NOTIFY_TARGETS {
        let message = format!(
            "{} targets; the limit is {}",
            elements.len(),
            limits::NOTIFY_TARGETS
        );
        problems.report(pointer, "limit_exceeded", message);
        return Vec::new();
    }
    let mut targets: Vec<NotifyTarget> = Vec::new();
    for element in elements {
        let Some(reader) = Reader::new(element.value, element.pointer.as_str(), problems) else {
            continue;
        };
        let Some(target) = read_target(reader, is_variable) else {
            continue;
        };
        let is_same = |other: &NotifyTarget| {
            (&other.url, &other.headers, &other.secret) == (&target.url, &target.headers, &target.secret)
        };
        if targets.iter().any(is_same) && !is_variable {
            let message = "another target has the same url, headers and secret; write one target with the kinds of both";
            problems.report(&element.pointer, "duplicate", message);
        }
        targets.push(target);
    }
    targets
}

fn read_target(reader: Reader, is_variable: bool) -> Option<NotifyTarget> {
    let on = read_kinds(&reader);
    let url = read_url(&reader);
    let headers = read_headers(&reader);
    let secret = read_secret(&reader);
    let workflows = match is_variable {
        true => read_workflows(&reader),
        false => Some(None),
    };
    reader.finish();
    Some(NotifyTarget {
        on: on?,
        url: url?,
        headers: headers?,
        secret: secret?,
        workflows: workflows?,
    })
}

fn read_kinds(reader: &Reader) -> Option<EventKinds> {
    reader.require("on");
    let elements = reader.array("on");
    if elements.is_empty() {
        if reader.value("on").is_some_and(Value::is_array) {
            let message = "no kind is named; write at least one, like \"run_failed\" or \"gate_opened\"";
            reader.report("on", "empty_list", message);
        }
        return None;
    }
    let mut kinds = EventKinds::default();
    for element in elements {
        let text = element.value.as_str();
        match EVENT_KINDS.iter().position(|kind| text == Some(kind)) {
            Some(kind) if kinds.contains(kind) => {
                let message = format!("\"{}\" is there twice; leave one out", EVENT_KINDS[kind]);
                reader.problems().report(&element.pointer, "duplicate", message);
            }
            Some(kind) => kinds.insert(kind),
            // A later build that knows more kinds may have stored the document.
            None if reader.problems().is_prechecked() => {}
            None => {
                let found = text.map_or_else(|| element.value.to_string(), |text| format!("\"{text}\""));
                let nearest = closest(EVENT_KINDS, text.unwrap_or_default());
                let advice = match nearest {
                    Some(kind) => format!("did you mean \"{kind}\"?"),
                    None => format!("the kinds are {}", EVENT_KINDS.join(", ")),
                };
                let message = format!("{} is no kind of event; {advice}", shorten(&found));
                reader
                    .problems()
                    .report(&element.pointer, "unknown_value", message);
            }
        }
    }
    Some(kinds)
}

const NOT_A_SECRET: &str = "only \"${secret.NAME}\" may stand here, as it is: a notification has no other data of the run in its \
                            address or headers";

/// A text in which secrets may stand, and nothing else that is computed.
fn read_text(value: &Value, pointer: &str, problems: &Problems) -> Option<Template> {
    let text = value.as_str();
    let Some(text) = text else {
        problems.report(pointer, "wrong_type", "expected a string");
        return None;
    };
    if text.len() > limits::NOTIFY_TEXT_BYTES {
        let message = format!("{} bytes; the limit is {}", text.len(), limits::NOTIFY_TEXT_BYTES);
        problems.report(pointer, "limit_exceeded", message);
        return None;
    }
    let template = read_template(value, pointer, &[SECRET], problems)?;
    let mut is_bare = true;
    template.visit(&mut |expression, _| is_bare &= expression.bare_member_of(SECRET).is_some());
    if !is_bare && !problems.has_errors_in(pointer) {
        problems.report(pointer, "invalid_secret", NOT_A_SECRET);
        return None;
    }
    Some(template)
}

fn read_url(reader: &Reader) -> Option<String> {
    reader.require("url");
    let value = reader.value("url")?;
    let pointer = reader.pointer_of("url");
    let template = read_text(value, &pointer, reader.problems())?;
    if let Err(message) = check_url(&template) {
        reader.report("url", "invalid_url", message);
        return None;
    }
    value.as_str().map(str::to_string)
}

/// Checks the part of the address that does not come from a secret. A message does not quote it: it may hold a credential.
fn check_url(template: &Template) -> Result<(), String> {
    let mut text = String::new();
    for part in template.text_parts() {
        match part {
            TextPart::Text(part) => text.push_str(part),
            // A whole address, or a part of one.
            TextPart::Expression(_) if text.is_empty() => text.push_str("https://secret.invalid/"),
            TextPart::Expression(_) => text.push_str("secret"),
        }
    }
    let url = Url::parse(&text)
        .map_err(|error| format!("this is no URL: {error}; write one like \"https://example.com/hook\""))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("\"{}\" is neither http nor https", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("the url holds a user or a password; write an \"authorization\" header with a \"${secret.NAME}\" instead".into());
    }
    Ok(())
}

/// Headers that every notification has, or that belong to the connection.
const FIXED_HEADERS: &[&str] = &[
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "webhook-id",
    "webhook-signature",
    "webhook-timestamp",
];

fn read_headers(reader: &Reader) -> Option<Vec<(String, String)>> {
    if !reader.has("headers") {
        return Some(Vec::new());
    }
    let entries = reader.entries("headers")?;
    if entries.len() > limits::NOTIFY_HEADERS {
        let message = format!(
            "{} headers; the limit is {}",
            entries.len(),
            limits::NOTIFY_HEADERS
        );
        reader.report("headers", "limit_exceeded", message);
        return None;
    }
    let length = |(name, element): &(&str, Element)| name.len() + element.value.as_str().map_or(0, str::len);
    let bytes: usize = entries.iter().map(length).sum();
    if bytes > limits::NOTIFY_TEXT_BYTES {
        let message = format!("{bytes} bytes; the limit is {}", limits::NOTIFY_TEXT_BYTES);
        reader.report("headers", "limit_exceeded", message);
        return None;
    }
    let mut headers: Vec<(String, String)> = Vec::new();
    for (name, element) in entries {
        let name = name.to_ascii_lowercase();
        let report = |message: String| {
            reader
                .problems()
                .report(&element.pointer, "invalid_header", message)
        };
        if !is_token(&name) {
            report("this is no name of a header: letters, digits and -".into());
        } else if FIXED_HEADERS.contains(&name.as_str()) {
            report(format!(
                "\"{name}\" is set for every notification and cannot be written; leave it out"
            ));
        } else if headers.iter().any(|(other, _)| *other == name) {
            report(format!("\"{name}\" is there twice; leave one out"));
        } else if read_text(element.value, &element.pointer, reader.problems()).is_some() {
            let text = element.value.as_str().unwrap_or_default();
            match text.chars().any(|c| c.is_control() && c != '\t') {
                true => report("the value has a line break or another control character".into()),
                false => headers.push((name, text.to_string())),
            }
        }
    }
    Some(headers)
}

/// `None` after a problem, `Some(None)` without a secret.
fn read_secret(reader: &Reader) -> Option<Option<String>> {
    let Some(value) = reader.value("secret") else {
        return Some(None);
    };
    let problems = reader.problems();
    let template = read_template(value, &reader.pointer_of("secret"), &[SECRET], problems);
    let name = template
        .as_ref()
        .and_then(|template| match template.text_parts()[..] {
            [TextPart::Expression(expression)] => expression.bare_member_of(SECRET).map(str::to_string),
            _ => None,
        });
    if name.is_none() && !problems.has_errors_in(&reader.pointer_of("secret")) {
        // Not quoted: it may be the secret itself.
        let message = "write exactly one \"${secret.NAME}\", and store the value as a secret of the executor; a secret never stands \
                       in a document";
        reader.report("secret", "invalid_secret", message);
    }
    name.map(Some)
}

fn read_workflows(reader: &Reader) -> Option<Option<Vec<String>>> {
    if !reader.has("workflows") {
        return Some(None);
    }
    let mut patterns = Vec::new();
    for element in reader.array("workflows") {
        match element.value.as_str() {
            Some(pattern) => patterns.push(pattern.to_string()),
            None => reader
                .problems()
                .report(&element.pointer, "wrong_type", "expected a string"),
        }
    }
    if patterns.is_empty() {
        let message =
            "no workflow is named; leave the list out for all workflows, or write patterns like \"order-*\"";
        reader.report("workflows", "empty_list", message);
        return None;
    }
    Some(Some(patterns))
}
