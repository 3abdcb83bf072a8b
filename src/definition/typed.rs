//! Fields of an implementation whose value must have a certain type. A constant is checked when the document is stored, an
//! expression by the executor.

use serde_json::Value;

use crate::base::text::{json_type, shorten};
use crate::cel::Template;
use crate::definition::http::{self, CONNECTION_HEADERS, CREDENTIALS, UrlProblem};
use crate::definition::problem::pointer_to;
use crate::definition::reader::Reader;

/// The code and the message of a problem.
pub(super) type Mismatch = (&'static str, String);

/// Headers that say who sends a request.
const CREDENTIAL_HEADERS: &[&str] = &["api-key", "authorization", "proxy-authorization", "x-api-key"];

pub(super) struct TypedFields<'a, 'r> {
    pub reader: &'a Reader<'r>,
    /// The names that the templates may use.
    pub names: &'a [&'a str],
}

impl TypedFields<'_, '_> {
    /// A text that is not empty.
    pub fn text(&self, field: &'static str) -> Option<Template> {
        self.checked(field, |value| match value {
            Value::String(text) if text.is_empty() => Err(("wrong_type", "it is empty".into())),
            Value::String(_) => Ok(()),
            other => Err(expected("a string", other)),
        })
    }

    pub fn required_text(&self, field: &'static str) -> Option<Template> {
        self.reader.require(field);
        self.text(field)
    }

    /// A text that may be empty.
    pub fn string(&self, field: &'static str) -> Option<Template> {
        self.checked(field, |value| match value {
            Value::String(_) => Ok(()),
            other => Err(expected("a string", other)),
        })
    }

    pub fn object(&self, field: &'static str) -> Option<Template> {
        self.checked(field, |value| match value {
            Value::Object(_) => Ok(()),
            other => Err(expected("an object", other)),
        })
    }

    pub fn list(&self, field: &'static str) -> Option<Template> {
        self.checked(field, |value| match value {
            Value::Array(_) => Ok(()),
            other => Err(expected("a list", other)),
        })
    }

    pub fn url(&self, field: &'static str) -> Option<Template> {
        self.checked(field, |value| match value {
            Value::String(text) => check_url(text),
            other => Err(expected("a URL like \"https://api.example.com/\"", other)),
        })
    }

    pub fn required_url(&self, field: &'static str) -> Option<Template> {
        self.reader.require(field);
        self.url(field)
    }

    pub fn method(&self, field: &'static str) -> Option<Template> {
        self.checked(field, |value| match value {
            Value::String(text) if http::is_token(text) => Ok(()),
            Value::String(text) => Err((
                "invalid_method",
                format!(
                    "\"{}\" is no HTTP method; write one like \"GET\" or \"POST\"",
                    shorten(text)
                ),
            )),
            other => Err(expected("a method like \"GET\" or \"POST\"", other)),
        })
    }

    /// An object of headers. Its names are constant.
    pub fn headers(&self, field: &'static str) -> Option<Template> {
        let headers = self.checked(field, |value| match value {
            Value::Object(_) => Ok(()),
            other => Err(expected("an object of headers", other)),
        });
        if let Some(Value::Object(written)) = self.reader.value(field) {
            for (name, value) in written {
                self.check_header(name, value, &pointer_to(&self.reader.pointer_of(field), name));
            }
        }
        headers
    }

    fn check_header(&self, name: &str, value: &Value, pointer: &str) {
        let problems = self.reader.problems();
        if problems.is_prechecked() {
            return;
        }
        let report = |message: String| problems.report(pointer, "invalid_header", message);
        let lower = name.to_ascii_lowercase();
        if !http::is_token(name) {
            report("this is no name of a header: letters, digits and -".into());
        } else if CONNECTION_HEADERS.contains(&lower.as_str()) {
            report(format!(
                "\"{lower}\" belongs to the connection and cannot be written; leave it out"
            ));
        } else if value.as_str().is_some_and(http::breaks_out) {
            report("the value has a line break or another control character".into());
        } else if CREDENTIAL_HEADERS.contains(&lower.as_str()) && is_constant(value) && !value.is_null() {
            // Not quoted, because it may be a secret.
            let message = "the value stands in clear in the document, and everyone who may read it sees it; if it is a secret, \
                           store it as one of the executor and write \"${secret.NAME}\"";
            problems.warn(pointer, "secret_in_clear", message);
        }
    }

    /// A body where the method allows none. A lone expression may give null, which is no body.
    pub fn check_body(&self, default_method: &str) {
        let reader = self.reader;
        let method = reader.value("method").map_or(Some(default_method), Value::as_str);
        let has_body = reader
            .value("body")
            .is_some_and(|body| !body.is_string() || is_constant(body));
        if let Some(method) = method.filter(|method| http::has_no_body(method))
            && has_body
            && !reader.problems().is_prechecked()
        {
            let message = format!(
                "a {} request has no body; write another \"method\", like \"POST\", or leave \"body\" out",
                method.to_ascii_uppercase()
            );
            reader.report("body", "invalid_body", message);
        }
    }

    pub fn checked(
        &self,
        field: &'static str,
        check: impl FnOnce(&Value) -> Result<(), Mismatch>,
    ) -> Option<Template> {
        let template = self.reader.template(field, self.names)?;
        let value = self.reader.value(field)?;
        // Only a string that contains an expression is not known yet. A document that an earlier build stored goes on as it did.
        let is_known =
            (!value.is_string() || template.is_constant()) && !self.reader.problems().is_prechecked();
        if is_known && let Err((code, message)) = check(value) {
            self.reader.report(field, code, message);
            return None;
        }
        Some(template)
    }
}

fn check_url(text: &str) -> Result<(), Mismatch> {
    let message = match http::parse_url(text) {
        Ok(_) => return Ok(()),
        Err(UrlProblem::Invalid(why)) => format!(
            "\"{}\" is no URL: {why}; write one like \"https://api.example.com/\"",
            shorten(text)
        ),
        Err(UrlProblem::Credentials) => format!("{CREDENTIALS}, with a \"${{secret.NAME}}\""),
    };
    Err(("invalid_url", message))
}

/// The name of a binding of the executor. A binding is looked up as it is written.
pub(super) fn read_binding(reader: &Reader, field: &'static str) -> Option<String> {
    let name = reader.string(field)?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_$.-".contains(&byte);
    let can_exist = (1..=128).contains(&name.len()) && name.bytes().all(is_name);
    if !can_exist && !reader.problems().is_prechecked() {
        let message = format!(
            "\"{}\" is no name of a binding: it is 1-128 letters, digits and _, as in the executor's wrangler file",
            shorten(name)
        );
        reader.report(field, "invalid_id", message);
        return None;
    }
    Some(name.to_string())
}

/// A string without an expression, or a value that is no string.
pub(super) fn is_constant(value: &Value) -> bool {
    !value.is_string() || Template::parse(value).is_ok_and(|template| template.is_constant())
}

pub(super) fn expected(what: &str, found: &Value) -> Mismatch {
    (
        "wrong_type",
        format!("expected {what}, found {}", json_type(found)),
    )
}
