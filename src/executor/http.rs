//! `http_request` and `service_call`: sends one request under one deadline, redirects included, and turns the answer
//! into a result or a failure.

use serde_json::{Map, Value, json};
use worker::Headers;

use super::partial::text_of;
use super::redirect::{self, REDIRECTS_MAX, Reach};
use super::request::Outgoing;
use super::status::{self, Answered};
use super::task::{ActionCall, Stopped};
use crate::model::action::{HttpRequest, ServiceCall};
use crate::model::failure::{Failure, FailureClass};
use crate::model::limits::RESULT_BYTES;
use crate::platform::call::{self, Answer, BodyError, Call, Peer, SendError};
use crate::platform::{deadline, now};

pub(super) struct Received {
    pub(super) status: u16,
    pub(super) headers: Map<String, Value>,
    pub(super) text: String,
}

pub async fn http_request(
    request: &HttpRequest,
    private: bool,
    call: &ActionCall<'_>,
    key: &str,
) -> Result<Value, Stopped> {
    let outgoing = Outgoing::http_request(request, call, key)?;
    let reach = Reach::Internet { private };
    reach.check(&outgoing)?;
    let expected = request.expect_status.as_deref();
    let received = exchange(&call::internet(), outgoing, reach, expected, call).await?;
    check_status(&received, expected, call)?;
    let body = parse_body(&received)?;
    Ok(json!({"status": received.status, "headers": received.headers, "body": body}))
}

/// The user's own Worker: it gets the step's input as JSON, its JSON answer is the result.
pub async fn service_call(
    service: &ServiceCall,
    peer: &Peer,
    call: &ActionCall<'_>,
    key: &str,
) -> Result<Value, Stopped> {
    let outgoing = Outgoing::service_call(service, call, key)?;
    let received = exchange(peer, outgoing, Reach::Binding, None, call).await?;
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

pub(super) async fn exchange(
    peer: &Peer,
    first: Outgoing,
    reach: Reach,
    expected: Option<&[u16]>,
    call: &ActionCall<'_>,
) -> Result<Received, Stopped> {
    // Outlives `talk`, so that what arrived before the deadline is still there after it. None until headers come.
    let mut arrived: Option<Vec<u8>> = None;
    let talk = async {
        let answer = follow(peer, first, reach, expected, call).await?;
        let status = answer.status();
        let mut headers = Map::new();
        for (name, value) in answer.headers().entries() {
            headers.insert(name, value.into());
        }
        let text = read_text(answer, arrived.insert(Vec::new())).await?;
        Ok(Received {
            status,
            headers,
            text,
        })
    };
    let Some(deadline_at) = call.deadline_at else {
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

/// The whole body. Whoever drops this halfway finds in `bytes` what had arrived.
pub(super) async fn read_text(answer: Answer, bytes: &mut Vec<u8>) -> Result<String, Failure> {
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
    String::from_utf8(std::mem::take(bytes))
        .map_err(|_| Failure::validation("invalid_response", "the answer is not UTF-8 text"))
}

/// The first answer that is no redirect, or is one the action expects. The bodies of redirects are not read: dropping
/// an answer closes its connection.
async fn follow(
    peer: &Peer,
    first: Outgoing,
    reach: Reach,
    expected: Option<&[u16]>,
    call: &ActionCall<'_>,
) -> Result<Answer, Failure> {
    let mut request = first;
    for _ in 0..=REDIRECTS_MAX {
        let answer = send(peer, &request).await?;
        let status = answer.status();
        if expected.is_some_and(|expected| expected.contains(&status)) {
            return Ok(answer);
        }
        let location = answer.headers().get("location").ok().flatten();
        match redirect::next(&request, status, location.as_deref(), reach, call.redactor)? {
            Some(next) => request = next,
            None => return Ok(answer),
        }
    }
    Err(redirect::too_many())
}

pub(super) async fn send(peer: &Peer, request: &Outgoing) -> Result<Answer, Failure> {
    let headers = Headers::new();
    for (name, value) in &request.headers {
        headers.set(name, value).map_err(|_| {
            Failure::validation(
                "invalid_header",
                format!("header \"{name}\" has an invalid name or value"),
            )
        })?;
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

pub(super) fn check_status(
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

pub(super) fn network_failure(message: String) -> Failure {
    Failure::new("network", FailureClass::Network, message)
}
