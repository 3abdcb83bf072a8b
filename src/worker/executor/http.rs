//! `http_request` and `service_call`: sends one request under one deadline, redirects included, and turns the answer
//! into a result or a failure.

use serde_json::{Map, Value, json};
use worker::Headers;

use crate::base::failure::{Failure, FailureClass};
use crate::base::limits::RESULT_BYTES;
use crate::definition::action::{HttpRequest, ServiceCall};
use crate::task::partial::text_of;
use crate::task::redirect::{self, REDIRECTS_MAX, Reach};
use crate::task::request::Outgoing;
use crate::task::status::{self, Answered};
use crate::task::steps::{ActionCall, Stopped};
use crate::worker::platform::call::{self, Answer, BodyError, Call, Peer, SendError};
use crate::worker::platform::exchange::{Clock, Ended, Exchange};
use crate::worker::platform::now;

pub(in crate::worker) struct Received {
    pub(in crate::worker) status: u16,
    pub(in crate::worker) headers: Map<String, Value>,
    pub(in crate::worker) text: String,
}

pub async fn http_request(
    request: &HttpRequest,
    private: bool,
    clock: &Clock,
    call: &ActionCall<'_>,
    key: &str,
) -> Result<Value, Stopped> {
    let outgoing = Outgoing::http_request(request, call, key)?;
    let reach = Reach::Internet { private };
    reach.check(&outgoing)?;
    let expected = request.expect_status.as_deref();
    let received = exchange(&call::internet(), clock, outgoing, reach, expected, call).await?;
    check_status(&received, expected, call)?;
    let body = parse_body(&received)?;
    Ok(json!({"status": received.status, "headers": received.headers, "body": body}))
}

/// The user's own Worker: it gets the step's input as JSON, its JSON answer is the result.
pub async fn service_call(
    service: &ServiceCall,
    peer: &Peer,
    clock: &Clock,
    call: &ActionCall<'_>,
    key: &str,
) -> Result<Value, Stopped> {
    let outgoing = Outgoing::service_call(service, call, key)?;
    let received = exchange(peer, clock, outgoing, Reach::Binding, None, call).await?;
    check_status(&received, None, call)?;
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

/// The first answer that is no redirect, or is one the action expects, read to its end.
pub(in crate::worker) async fn exchange(
    peer: &Peer,
    clock: &Clock,
    first: Outgoing,
    reach: Reach,
    expected: Option<&[u16]>,
    call: &ActionCall<'_>,
) -> Result<Received, Stopped> {
    let is_expected = |status: u16| expected.is_some_and(|expected| expected.contains(&status));
    let mut bodyless = redirect::STATUSES.to_vec();
    bodyless.retain(|status| !is_expected(*status));
    let mut request = first;
    for _ in 0..=REDIRECTS_MAX {
        let exchange = Exchange {
            url: request.url.as_str(),
            method: &request.method,
            headers: &request.headers,
            body: request.body.as_deref(),
            bodyless: &bodyless,
            in_full: !matches!(reach, Reach::Binding),
            most: RESULT_BYTES,
            millis: call.deadline_at.map(|at| at.saturating_sub(now())),
        };
        let reply = exchange.run(peer, clock).await.map_err(stopped)?;
        if !is_expected(reply.status) {
            let location = reply.headers.iter().find(|(name, _)| name == "location");
            let location = location.map(|(_, value)| value.as_str());
            let next = redirect::next(&request, reply.status, location, reach, call.redactor)?;
            if let Some(next) = next {
                request = next;
                continue;
            }
        }
        let text = String::from_utf8(reply.bytes).map_err(|_| not_text())?;
        let headers = reply.headers.into_iter();
        return Ok(Received {
            status: reply.status,
            headers: headers.map(|(name, value)| (name, value.into())).collect(),
            text,
        });
    }
    Err(redirect::too_many().into())
}

fn stopped(ended: Ended) -> Stopped {
    Stopped::Failed(match ended {
        Ended::Deadline(arrived) => {
            return Stopped::Deadline {
                partial: arrived.map(text_of),
            };
        }
        Ended::TooLarge => too_large(),
        Ended::Lost(message) | Ended::Broken(message) => network_failure(message),
        Ended::Refused(message) => Failure::validation("invalid_request", message),
        Ended::BadHeader(name) => bad_header(&name),
    })
}

fn bad_header(name: &str) -> Failure {
    Failure::validation(
        "invalid_header",
        format!("header \"{name}\" has an invalid name or value"),
    )
}

fn too_large() -> Failure {
    Failure::validation(
        "response_too_large",
        format!("the answer is larger than the limit of {RESULT_BYTES} bytes"),
    )
}

fn not_text() -> Failure {
    Failure::validation("invalid_response", "the answer is not UTF-8 text")
}

/// The whole body. Whoever drops this halfway finds in `bytes` what had arrived.
pub(in crate::worker) async fn read_text(answer: Answer, bytes: &mut Vec<u8>) -> Result<String, Failure> {
    answer
        .read_into(bytes, RESULT_BYTES)
        .await
        .map_err(|error| match error {
            BodyError::TooLarge => too_large(),
            BodyError::Broken(message) => network_failure(message),
        })?;
    String::from_utf8(std::mem::take(bytes)).map_err(|_| not_text())
}

pub(in crate::worker) async fn send(peer: &Peer, request: &Outgoing) -> Result<Answer, Failure> {
    let headers = Headers::new();
    for (name, value) in &request.headers {
        headers.set(name, value).map_err(|_| bad_header(name))?;
    }
    let call = Call {
        url: request.url.as_str(),
        method: &request.method,
        headers: Some(headers),
        body: request.body.as_deref(),
        follow_redirects: false,
    };
    call::send(peer, call).await.map_err(|error| match error {
        SendError::Refused(message) => Failure::validation("invalid_request", message),
        SendError::Lost(message) => network_failure(message),
    })
}

pub(in crate::worker) fn check_status(
    received: &Received,
    expected: Option<&[u16]>,
    call: &ActionCall<'_>,
) -> Result<(), Failure> {
    let answered = Answered {
        status: received.status,
        retry_after: received.headers.get("retry-after").and_then(Value::as_str),
        text: &received.text,
    };
    status::check(&answered, expected, call.redactor, now())
}

fn parse_body(received: &Received) -> Result<Value, Failure> {
    let kind = received.headers.get("content-type").and_then(Value::as_str);
    let is_json = kind.is_some_and(|kind| kind.contains("json"));
    if !is_json || received.text.is_empty() {
        return Ok(Value::String(received.text.clone()));
    }
    serde_json::from_str(&received.text).map_err(|error| {
        Failure::validation(
            "invalid_response",
            format!("the answer says it is JSON but is not: {error}"),
        )
    })
}

pub(in crate::worker) fn network_failure(message: String) -> Failure {
    Failure::new("network", FailureClass::Network, message)
}
