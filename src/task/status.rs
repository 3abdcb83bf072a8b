//! Maps HTTP statuses to results and failure classes.

use serde_json::{Map, Value};

use crate::base::failure::{Failure, FailureClass};
use crate::base::time::Millis;
use crate::task::redact::Redactor;
use crate::task::retry::retry_after_ms;

/// How much of a response a message quotes.
const QUOTED_CHARACTERS: usize = 200;

/// The parts of a response that make a failure.
pub struct ResponseParts<'a> {
    pub status: u16,
    pub retry_after: Option<&'a str>,
    pub text: &'a str,
}

/// Checks that the status is one of `expected`; without it, every 2xx is.
pub fn check(
    response: &ResponseParts,
    expected: Option<&[u16]>,
    redactor: &Redactor,
    now: Millis,
) -> Result<(), Failure> {
    let status = response.status;
    let fits = match expected {
        Some(expected) => expected.contains(&status),
        None => (200..300).contains(&status),
    };
    match fits {
        true => Ok(()),
        false => Err(refusal(response, redactor, now)),
    }
}

/// The same for a response with its headers.
pub fn check_response(
    status: u16,
    headers: &Map<String, Value>,
    text: &str,
    expected: Option<&[u16]>,
    redactor: &Redactor,
    now: Millis,
) -> Result<(), Failure> {
    let parts = ResponseParts {
        status,
        retry_after: headers.get("retry-after").and_then(Value::as_str),
        text,
    };
    check(&parts, expected, redactor, now)
}

/// The failure of a response that was not expected.
pub fn refusal(response: &ResponseParts, redactor: &Redactor, now: Millis) -> Failure {
    let status = response.status;
    // Redacted before it is cut: half a secret would not be found.
    let text = redactor.text(response.text.to_string());
    let start: String = text.chars().take(QUOTED_CHARACTERS).collect();
    let mut failure = Failure::new(
        &format!("http_{status}"),
        class_of(status),
        format!("the answer has status {status}: {start}"),
    );
    failure.retry_after_ms = response.retry_after.and_then(|text| retry_after_ms(text, now));
    failure
}

pub(super) fn class_of(status: u16) -> FailureClass {
    match status {
        // The call had its effect, and a retry would have it twice. Only the response is not the expected one.
        200..=299 => FailureClass::Validation,
        401 | 403 => FailureClass::Auth,
        404 => FailureClass::NotFound,
        // The server timed out waiting for the request, so the network failed.
        408 => FailureClass::Network,
        422 => FailureClass::Validation,
        429 => FailureClass::RateLimited,
        400..=499 => FailureClass::BadRequest,
        529 => FailureClass::ProviderTransient,
        500..=599 => FailureClass::ServerError,
        _ => FailureClass::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(status: u16, expected: Option<&[u16]>) -> Option<Failure> {
        let response = ResponseParts {
            status,
            retry_after: Some("7"),
            text: "no",
        };
        check(&response, expected, &Redactor::default(), 0).err()
    }

    #[test]
    fn classes_by_status() {
        for (class, statuses) in [
            (
                FailureClass::BadRequest,
                &[400, 402, 405, 409, 410, 415, 418, 499][..],
            ),
            (FailureClass::Auth, &[401, 403]),
            (FailureClass::NotFound, &[404]),
            (FailureClass::Network, &[408]),
            (FailureClass::Validation, &[422]),
            (FailureClass::RateLimited, &[429]),
            (FailureClass::ServerError, &[500, 501, 502, 503, 504, 520, 599]),
            (FailureClass::ProviderTransient, &[529]),
            (FailureClass::Unknown, &[100, 301, 304, 600]),
        ] {
            for status in statuses {
                let failure = failure(*status, None).expect("these are no success");
                assert_eq!(failure.class, class, "{status}");
                assert_eq!(failure.code, format!("http_{status}"));
                assert_eq!(failure.retry_after_ms, Some(7_000));
            }
        }
    }

    #[test]
    fn an_action_may_say_what_it_expects() {
        assert!(failure(200, None).is_none() && failure(299, None).is_none());
        assert!(failure(404, Some(&[200, 404])).is_none());
        assert_eq!(
            failure(200, Some(&[204])).map(|it| it.class),
            Some(FailureClass::Validation)
        );
    }

    #[test]
    fn a_quoted_answer_is_cut_after_its_secrets_are_out() {
        let secret = "s".repeat(20);
        let text = format!("{}{secret}", "x".repeat(QUOTED_CHARACTERS - 10));
        let response = ResponseParts {
            status: 500,
            retry_after: None,
            text: &text,
        };
        let failure = check(&response, None, &Redactor::new([secret]), 0).expect_err("it is a 500");
        assert!(failure.message.ends_with("x[redacted]"), "{}", failure.message);
    }
}
