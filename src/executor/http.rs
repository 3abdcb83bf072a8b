//! `http_request` and `service_call`: one call under one deadline, its answer turned into a result or a failure.

use serde_json::{Map, Value, json};
use worker::{Headers, Url};

use super::context::plain;
use super::partial::text_of;
use super::task::{ActionCall, Stopped};
use crate::model::action::{HttpRequest, ServiceCall};
use crate::model::expression::{Scope, Template};
use crate::model::failure::{Failure, FailureClass};
use crate::model::limits::RESULT_BYTES;
use crate::model::time::Millis;
use crate::platform::call::{self, BodyError, Call, Peer};
use crate::platform::{deadline, now};

struct Prepared {
    url: String,
    method: String,
    headers: Headers,
    body: Option<String>,
}

struct Received {
    status: u16,
    headers: Map<String, Value>,
    is_json: bool,
    text: String,
}

pub async fn http_request(request: &HttpRequest, call: &ActionCall<'_>, key: &str) -> Result<Value, Stopped> {
    let scope = call.scope;
    let mut url = parse_url(&text(&request.url, scope, "url")?)?;
    if let Some(query) = &request.query {
        let pairs = object(render(query, scope, "query")?, "query")?;
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
    let body = match &request.body {
        Some(body) => Some(render(body, scope, "body")?),
        None => None,
    };
    let prepared = prepare(
        url.into(),
        text(&request.method, scope, "method")?,
        request.headers.as_ref(),
        body,
        scope,
        key,
    )?;
    let received = exchange(&call::internet(), prepared, call.deadline_at).await?;
    check_status(&received, request.expect_status.as_deref())?;
    let body = parse_body(received.is_json, received.text)?;
    Ok(json!({"status": received.status, "headers": received.headers, "body": body}))
}

/// The user's own Worker: it gets the step's input as JSON, its JSON answer is the result.
pub async fn service_call(
    service: &ServiceCall,
    peer: &Peer,
    call: &ActionCall<'_>,
    key: &str,
) -> Result<Value, Stopped> {
    let scope = call.scope;
    let path = text(&service.path, scope, "path")?;
    let method = text(&service.method, scope, "method")?;
    let body = match &service.body {
        Some(body) => Some(render(body, scope, "body")?),
        None if method == "GET" || method == "HEAD" => None,
        None => Some(call.input.clone()),
    };
    // The host of a bound Worker means nothing; the binding says who answers.
    let url = format!("http://{}/{}", "service", path.trim_start_matches('/'));
    let prepared = prepare(url, method, service.headers.as_ref(), body, scope, key)?;
    let received = exchange(peer, prepared, call.deadline_at).await?;
    check_status(&received, None)?;
    if received.text.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(&received.text).map_err(|error| {
        Stopped::Failed(Failure::validation(
            "invalid_response",
            format!("the answer of \"{}\" is not JSON: {error}", service.binding),
        ))
    })
}

fn prepare(
    url: String,
    method: String,
    headers: Option<&Template>,
    body: Option<Value>,
    scope: &Scope,
    key: &str,
) -> Result<Prepared, Failure> {
    let written = Headers::new();
    let set = |name: &str, value: &str| {
        // The platform refuses names and values that would break out of their line.
        written.set(name, value).map_err(|_| {
            Failure::validation(
                "invalid_header",
                format!("header \"{name}\" has an invalid name or value"),
            )
        })
    };
    if matches!(
        body,
        Some(Value::Object(_) | Value::Array(_) | Value::Number(_) | Value::Bool(_))
    ) {
        set("content-type", "application/json")?;
    }
    set("idempotency-key", key)?;
    if let Some(headers) = headers {
        for (name, value) in object(render(headers, scope, "headers")?, "headers")? {
            if !value.is_null() {
                set(&name, &plain(value))?;
            }
        }
    }
    Ok(Prepared {
        url,
        method: method.to_ascii_uppercase(),
        headers: written,
        body: body.filter(|body| !body.is_null()).map(plain),
    })
}

async fn exchange(peer: &Peer, prepared: Prepared, deadline_at: Option<Millis>) -> Result<Received, Stopped> {
    // Outlives `talk`, so that what arrived before the deadline is still there after it. None until headers come.
    let mut arrived: Option<Vec<u8>> = None;
    let talk = async {
        let call = Call {
            url: &prepared.url,
            method: &prepared.method,
            headers: Some(prepared.headers),
            body: prepared.body.as_deref(),
            follow_redirects: true,
        };
        let answer = call::send(peer, call).await.map_err(network_failure)?;
        let status = answer.status();
        let mut headers = Map::new();
        for (name, value) in answer.headers().entries() {
            headers.insert(name, value.into());
        }
        let is_json = headers
            .get("content-type")
            .and_then(Value::as_str)
            .is_some_and(|kind| kind.contains("json"));
        let bytes = arrived.insert(Vec::new());
        answer
            .read_into(bytes, RESULT_BYTES)
            .await
            .map_err(|error| match error {
                BodyError::TooLarge => Failure::validation(
                    "response_too_large",
                    format!("the answer is larger than the limit of {RESULT_BYTES} bytes"),
                ),
                BodyError::Broken(message) => network_failure(message),
            })?;
        let text = String::from_utf8(std::mem::take(bytes))
            .map_err(|_| Failure::validation("invalid_response", "the answer is not UTF-8 text"))?;
        Ok(Received {
            status,
            headers,
            is_json,
            text,
        })
    };
    let Some(deadline_at) = deadline_at else {
        return talk.await.map_err(Stopped::Failed);
    };
    // Dropping `talk` aborts the call: the peer sees its connection close.
    match deadline::within(deadline_at.saturating_sub(now()), talk).await {
        Some(received) => received.map_err(Stopped::Failed),
        None => Err(Stopped::Deadline {
            partial: arrived.map(text_of),
        }),
    }
}

fn check_status(received: &Received, expected: Option<&[u16]>) -> Result<(), Failure> {
    let status = received.status;
    let fits = match expected {
        Some(expected) => expected.contains(&status),
        None => (200..300).contains(&status),
    };
    if fits {
        return Ok(());
    }
    let class = match status {
        429 => FailureClass::RateLimited,
        401 | 403 => FailureClass::Auth,
        404 => FailureClass::NotFound,
        422 => FailureClass::Validation,
        500..=599 => FailureClass::ServerError,
        400..=499 => FailureClass::BadRequest,
        _ => FailureClass::Unknown,
    };
    let start: String = received.text.chars().take(200).collect();
    Err(Failure::new(
        &format!("http_{status}"),
        class,
        format!("the answer has status {status}: {start}"),
    ))
}

fn parse_body(is_json: bool, text: String) -> Result<Value, Failure> {
    if !is_json || text.is_empty() {
        return Ok(Value::String(text));
    }
    serde_json::from_str(&text).map_err(|error| {
        Failure::validation(
            "invalid_response",
            format!("the answer says it is JSON but is not: {error}"),
        )
    })
}

fn parse_url(text: &str) -> Result<Url, Failure> {
    let wrong = |why: String| Failure::validation("invalid_url", format!("\"{text}\" is no URL: {why}"));
    let url = Url::parse(text).map_err(|error| wrong(error.to_string()))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        scheme => Err(wrong(format!("{scheme} is neither http nor https"))),
    }
}

fn render(template: &Template, scope: &Scope, field: &str) -> Result<Value, Failure> {
    template
        .render(scope)
        .map_err(|wrong| Failure::validation("expression_failed", format!("{field}: {wrong}")))
}

fn text(template: &Template, scope: &Scope, field: &str) -> Result<String, Failure> {
    match render(template, scope, field)? {
        Value::String(text) => Ok(text),
        other => Err(Failure::validation(
            "wrong_type",
            format!("{field} must be a string, found {other}"),
        )),
    }
}

fn object(value: Value, field: &str) -> Result<Map<String, Value>, Failure> {
    match value {
        Value::Object(fields) => Ok(fields),
        other => Err(Failure::validation(
            "wrong_type",
            format!("{field} must be an object, found {other}"),
        )),
    }
}

fn network_failure(message: String) -> Failure {
    Failure::new("network", FailureClass::Network, message)
}
