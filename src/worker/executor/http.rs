//! `http_request` and `service_call`: sends a request, follows its redirects under the same deadline, and turns the response
//! into a result or a failure.

use serde_json::{Map, Value, json};

use crate::base::failure::{Failure, FailureClass};
use crate::base::from_json::from_json;
use crate::base::limits::RESULT_BYTES;
use crate::definition::http_request::HttpRequest;
use crate::definition::service_call::ServiceCall;
use crate::task::partial::text_of;
use crate::task::redirect::{self, REDIRECTS_MAX, Reach};
use crate::task::request::Outgoing;
use crate::task::runtime::{ActionCall, Stopped};
use crate::task::status;
use crate::worker::platform::http_client::{self, Clock, Error, Peer, ReadWhole, Request, Response};
use crate::worker::platform::now;

pub(super) struct Received {
    pub(super) status: u16,
    pub(super) headers: Map<String, Value>,
    pub(super) text: String,
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
    reach.check(&outgoing, call)?;
    let expected = request.expect_status.as_deref();
    let received = fetch_final(&http_client::internet(), clock, outgoing, reach, expected, call).await?;
    check_status(&received, expected, call)?;
    let body = parse_body(&received)?;
    Ok(json!({"status": received.status, "headers": received.headers, "body": body}))
}

/// Calls the user's own Worker with the step's input as JSON; its JSON response is the result.
pub async fn service_call(
    service: &ServiceCall,
    peer: &Peer,
    clock: &Clock,
    call: &ActionCall<'_>,
    key: &str,
) -> Result<Value, Stopped> {
    let outgoing = Outgoing::service_call(service, call, key)?;
    let reach = Reach::Binding(&service.binding);
    reach.check(&outgoing, call)?;
    let received = fetch_final(peer, clock, outgoing, reach, None, call).await?;
    check_status(&received, None, call)?;
    if received.text.is_empty() {
        return Ok(Value::Null);
    }
    from_json(&received.text).map_err(|error| {
        Stopped::Failed(Failure::validation(
            "invalid_response",
            format!("the answer of \"{}\" is not JSON: {error}", service.binding),
        ))
    })
}

/// The first response that is not a redirect, or is one that the action expects, read to its end.
pub(super) async fn fetch_final(
    peer: &Peer,
    clock: &Clock,
    first: Outgoing,
    reach: Reach<'_>,
    expected: Option<&[u16]>,
    call: &ActionCall<'_>,
) -> Result<Received, Stopped> {
    let is_expected = |status: u16| expected.is_some_and(|expected| expected.contains(&status));
    let mut skip_body_of = redirect::STATUSES.to_vec();
    skip_body_of.retain(|status| !is_expected(*status));
    let mut outgoing = first;
    for _ in 0..=REDIRECTS_MAX {
        let read = ReadWhole {
            skip_body_of: &skip_body_of,
            wants_headers: !matches!(reach, Reach::Binding(_)),
            max_bytes: RESULT_BYTES,
            timeout_ms: call.deadline_at.map(|at| at.saturating_sub(now())),
        };
        let response = request_of(&outgoing).fetch_whole(peer, clock, read).await;
        let response = response.map_err(stopped)?;
        if !is_expected(response.status) {
            let location = response.headers.iter().find(|(name, _)| name == "location");
            let location = location.map(|(_, value)| value.as_str());
            let next = redirect::next(&outgoing, response.status, location, reach, call)?;
            if let Some(next) = next {
                outgoing = next;
                continue;
            }
        }
        let headers = response.headers.into_iter();
        return Ok(Received {
            status: response.status,
            headers: headers.map(|(name, value)| (name, value.into())).collect(),
            text: utf8(response.bytes)?,
        });
    }
    Err(redirect::too_many().into())
}

/// Sends a request whose response is streamed.
pub(super) async fn send(peer: &Peer, outgoing: &Outgoing) -> Result<Response, Failure> {
    request_of(outgoing).send(peer).await.map_err(failure_of)
}

/// The whole body of a streamed response.
pub(super) async fn read_text(response: Response) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = response.read_into(&mut bytes, RESULT_BYTES).await;
    read.map_err(failure_of)?;
    utf8(bytes)
}

fn request_of(outgoing: &Outgoing) -> Request<'_> {
    Request {
        url: outgoing.url.as_str(),
        method: &outgoing.method,
        headers: &outgoing.headers,
        body: outgoing.body.as_deref(),
    }
}

fn stopped(error: Error) -> Stopped {
    match error {
        Error::Deadline(arrived) => Stopped::Deadline {
            partial: arrived.map(text_of),
        },
        other => Stopped::Failed(failure_of(other)),
    }
}

pub(super) fn failure_of(error: Error) -> Failure {
    match error {
        Error::TooLarge => Failure::validation(
            "response_too_large",
            format!("the answer is larger than the limit of {RESULT_BYTES} bytes"),
        ),
        Error::Lost(_) | Error::Broken(_) | Error::Deadline(_) => network_failure(error.into()),
        Error::Refused(_) => Failure::validation("invalid_request", String::from(error)),
        Error::BadHeader(_) => Failure::validation("invalid_header", String::from(error)),
    }
}

fn utf8(bytes: Vec<u8>) -> Result<String, Failure> {
    String::from_utf8(bytes)
        .map_err(|_| Failure::validation("invalid_response", "the answer is not UTF-8 text"))
}

pub(super) fn check_status(
    received: &Received,
    expected: Option<&[u16]>,
    call: &ActionCall<'_>,
) -> Result<(), Failure> {
    let Received {
        status,
        headers,
        text,
    } = received;
    status::check_response(*status, headers, text, expected, call.secrets.redactor(), now())
}

fn parse_body(received: &Received) -> Result<Value, Failure> {
    let kind = received.headers.get("content-type").and_then(Value::as_str);
    let is_json = kind.is_some_and(|kind| kind.contains("json"));
    if !is_json || received.text.is_empty() {
        return Ok(Value::String(received.text.clone()));
    }
    from_json(&received.text).map_err(|error| {
        Failure::validation(
            "invalid_response",
            format!("the answer says it is JSON but is not: {error}"),
        )
    })
}

pub(super) fn network_failure(message: String) -> Failure {
    Failure::new("network", FailureClass::Network, message)
}
