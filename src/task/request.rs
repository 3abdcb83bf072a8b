//! The HTTP request of an action, with its templates rendered and everything checked. Pure; `http` sends it.

use serde_json::{Map, Value};
use url::Url;

use crate::base::failure::Failure;
use crate::base::trace::TRACEPARENT;
use crate::cel::{Scope, Template};
use crate::definition::http::{
    self, CONNECTION_HEADERS, CREDENTIALS, UrlProblem, breaks_out, has_no_body, is_token,
};
use crate::definition::http_request::HttpRequest;
use crate::definition::service_call::ServiceCall;
use crate::task::context::plain;
use crate::task::runtime::ActionCall;

#[derive(Clone, Debug, PartialEq)]
pub struct Outgoing {
    pub url: Url,
    pub method: String,
    /// Names are in lower case and unique.
    pub headers: Vec<(String, String)>,
    pub body: Option<String>,
}

/// Methods that fetch converts to upper case. Others are case-sensitive.
const USUAL_METHODS: &[&str] = &["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"];

/// The URL to which the result of an async action is to be posted.
pub const CALLBACK_HEADER: &str = "curfew-callback-url";

impl Outgoing {
    pub fn http_request(request: &HttpRequest, call: &ActionCall, key: &str) -> Result<Outgoing, Failure> {
        let scope = call.scope;
        let mut url = parse_url(&text(&request.url, scope, "url")?)?;
        if let Some(query) = &request.query {
            add_query(&mut url, object(render(query, scope, "query")?, "query")?);
        }
        let body = match &request.body {
            Some(body) => render(body, scope, "body")?,
            None => Value::Null,
        };
        let method = text(&request.method, scope, "method")?;
        Outgoing::new(url, &method, request.headers.as_ref(), body, scope, key)?
            .called_back_at(call.callback_url)?
            .traced_by(call)
    }

    /// The request to the user's own Worker. Its body is the step's input, unless the action writes one.
    pub fn service_call(service: &ServiceCall, call: &ActionCall, key: &str) -> Result<Outgoing, Failure> {
        let scope = call.scope;
        let path = text(&service.path, scope, "path")?;
        let method = text(&service.method, scope, "method")?;
        let body = match &service.body {
            Some(body) => render(body, scope, "body")?,
            None if has_no_body(&method) => Value::Null,
            None => call.input.clone(),
        };
        // The binding selects the Worker; the host is not used.
        let url = parse_url(&format!("http://service/{}", path.trim_start_matches('/')))?;
        Outgoing::new(url, &method, service.headers.as_ref(), body, scope, key)?
            .called_back_at(call.callback_url)?
            .traced_by(call)
    }

    /// Adds the trace context of the call.
    pub(super) fn traced_by(self, call: &ActionCall) -> Result<Outgoing, Failure> {
        self.with_default(TRACEPARENT, call.traceparent)
    }

    /// Adds the callback header, unless the implementation writes its own.
    fn called_back_at(self, url: Option<&str>) -> Result<Outgoing, Failure> {
        self.with_default(CALLBACK_HEADER, url)
    }

    fn with_default(mut self, name: &str, value: Option<&str>) -> Result<Outgoing, Failure> {
        let is_written = self.headers.iter().any(|(written, _)| written == name);
        if let Some(value) = value.filter(|_| !is_written) {
            self.set_header(name, value)?;
        }
        Ok(self)
    }

    pub(super) fn new(
        url: Url,
        method: &str,
        headers: Option<&Template>,
        body: Value,
        scope: &Scope,
        key: &str,
    ) -> Result<Outgoing, Failure> {
        let method = parse_method(method)?;
        let kind = match &body {
            Value::Null => None,
            Value::String(_) => Some("text/plain; charset=utf-8"),
            Value::Object(_) | Value::Array(_) | Value::Number(_) | Value::Bool(_) => {
                Some("application/json")
            }
        };
        if kind.is_some() && has_no_body(&method) {
            return Err(Failure::validation(
                "invalid_body",
                format!("a {method} request has no body"),
            ));
        }
        let mut request = Outgoing {
            url,
            method,
            headers: Vec::new(),
            body: kind.map(|_| plain(body)),
        };
        if let Some(kind) = kind {
            request.set_header("content-type", kind)?;
        }
        request.set_header("idempotency-key", key)?;
        request.set_headers(headers, scope)?;
        Ok(request)
    }

    /// Sets the headers that an implementation writes. They replace those that are set already.
    pub(super) fn set_headers(&mut self, headers: Option<&Template>, scope: &Scope) -> Result<(), Failure> {
        let Some(headers) = headers else {
            return Ok(());
        };
        for (name, value) in object(render(headers, scope, "headers")?, "headers")? {
            if !value.is_null() {
                self.set_header(&name, &plain(value))?;
            }
        }
        Ok(())
    }

    pub(super) fn set_header(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        let name = name.to_ascii_lowercase();
        let value = value.trim_matches([' ', '\t']);
        if !is_token(&name) || breaks_out(value) {
            return Err(Failure::validation(
                "invalid_header",
                format!("header \"{name}\" has an invalid name or value"),
            ));
        }
        if CONNECTION_HEADERS.contains(&name.as_str()) {
            return Err(Failure::validation(
                "invalid_header",
                format!("header \"{name}\" belongs to the connection and cannot be written"),
            ));
        }
        self.headers.retain(|(other, _)| *other != name);
        self.headers.push((name, value.to_string()));
        Ok(())
    }
}

pub(super) fn parse_url(text: &str) -> Result<Url, Failure> {
    http::parse_url(text).map_err(|problem| {
        let message = match problem {
            UrlProblem::Invalid(why) => format!("\"{text}\" is no URL: {why}"),
            UrlProblem::Credentials => CREDENTIALS.into(),
        };
        Failure::validation("invalid_url", message)
    })
}

fn add_query(url: &mut Url, pairs: Map<String, Value>) {
    if pairs.values().all(Value::is_null) {
        return; // The pairs would be written as an empty `?`.
    }
    let mut writer = url.query_pairs_mut();
    for (name, value) in pairs {
        match value {
            Value::Null => {}
            Value::Array(values) => {
                for value in values {
                    writer.append_pair(&name, &plain(value));
                }
            }
            single => {
                writer.append_pair(&name, &plain(single));
            }
        }
    }
}

fn parse_method(written: &str) -> Result<String, Failure> {
    if !is_token(written) {
        return Err(Failure::validation(
            "invalid_method",
            format!("\"{written}\" is no HTTP method"),
        ));
    }
    let upper = written.to_ascii_uppercase();
    Ok(match USUAL_METHODS.contains(&upper.as_str()) {
        true => upper,
        false => written.to_string(),
    })
}

pub(super) fn render(template: &Template, scope: &Scope, field: &str) -> Result<Value, Failure> {
    template
        .render(scope)
        .map_err(|wrong| Failure::validation("expression_failed", format!("{field}: {wrong}")))
}

pub(super) fn text(template: &Template, scope: &Scope, field: &str) -> Result<String, Failure> {
    match render(template, scope, field)? {
        Value::String(text) => Ok(text),
        other => Err(Failure::validation(
            "wrong_type",
            format!("{field} must be a string, found {other}"),
        )),
    }
}

pub(super) fn object(value: Value, field: &str) -> Result<Map<String, Value>, Failure> {
    match value {
        Value::Object(fields) => Ok(fields),
        other => Err(Failure::validation(
            "wrong_type",
            format!("{field} must be an object, found {other}"),
        )),
    }
}
