//! Maps the errors of providers to failure classes.

use serde_json::Value;

use crate::base::failure::{Failure, FailureClass};
use crate::task::redact::Redactor;
use crate::task::status::class_of;

/// How much of a provider's message is quoted.
const QUOTED_CHARACTERS: usize = 200;

/// The error in a chunk or in a response that was not streamed.
pub(super) fn error_in(chunk: &Value, redactor: &Redactor) -> Option<Failure> {
    let error = chunk.get("error").filter(|error| !error.is_null())?;
    let text = |field: &str| error.get(field).and_then(Value::as_str);
    let kind = text("type").or_else(|| text("code")).unwrap_or("an error");
    let message = error
        .as_str()
        .or_else(|| text("message"))
        .unwrap_or("it does not say which");
    let class = error
        .get("code")
        .and_then(status_of)
        .map(class_of)
        .or_else(|| text("type").and_then(class_of_kind))
        .or_else(|| text("code").and_then(class_of_kind))
        .unwrap_or(FailureClass::Unknown);
    let quoted = quote(&format!("{kind}: {message}"), redactor);
    let message = format!("the provider reports {quoted}");
    Some(Failure::new("provider_error", class, message))
}

/// Some providers use the HTTP status as error code, as a number or as text.
fn status_of(code: &Value) -> Option<u16> {
    let number = code
        .as_u64()
        .or_else(|| code.as_str().and_then(|text| text.parse().ok()))?;
    u16::try_from(number)
        .ok()
        .filter(|status| (400..600).contains(status))
}

/// The error types of OpenAI and Anthropic, by the HTTP status that they belong to.
fn class_of_kind(kind: &str) -> Option<FailureClass> {
    let status = match kind {
        "invalid_request_error" | "invalid_request" => 400,
        "authentication_error" | "invalid_api_key" => 401,
        "permission_error" | "permission_denied" => 403,
        "not_found_error" | "model_not_found" => 404,
        "request_too_large" | "context_length_exceeded" => 413,
        "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" => 429,
        "api_error" | "server_error" | "internal_error" | "internal_server_error" => 500,
        "timeout_error" => 504,
        "overloaded_error" | "overloaded" => 529,
        _ => return None,
    };
    Some(class_of(status))
}

/// The failure for an error of the Workers AI binding, such as `3040: Capacity temporarily exceeded`. Its numbers correspond to
/// HTTP statuses.
pub fn binding_failure(message: &str, redactor: &Redactor) -> Failure {
    let digits: String = message
        .trim_start_matches(|c: char| !c.is_ascii_digit())
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    let class = match digits.as_str() {
        "3003" | "3039" | "5004" | "5007" => class_of(400),
        "3023" | "3041" | "5016" | "5018" => class_of(403),
        "3042" => class_of(404),
        "5005" | "5019" => class_of(405),
        "3007" | "3008" => class_of(408),
        "3006" => class_of(413),
        "3036" => class_of(429),
        // The provider is out of capacity; no limit of the account was reached.
        "3040" => FailureClass::ProviderTransient,
        _ => FailureClass::Unknown,
    };
    let quoted = quote(message, redactor);
    Failure::new("provider_error", class, format!("Workers AI reports {quoted}"))
}

/// Redacted before it is cut: half a secret would not be found.
fn quote(text: &str, redactor: &Redactor) -> String {
    redactor
        .text(text.to_string())
        .chars()
        .take(QUOTED_CHARACTERS)
        .collect()
}

/// The stream or its connection ended before the last event.
pub(super) fn broken_off(why: &str) -> Failure {
    Failure::new(
        "network",
        FailureClass::Network,
        format!("the answer broke off: {why}"),
    )
}

pub(super) fn too_large(what: String) -> Failure {
    Failure::validation("response_too_large", what)
}

pub(super) fn unreadable(why: impl Into<String>) -> Failure {
    Failure::validation("invalid_response", why)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_have_the_class_of_their_status() {
        for (error, class) in [
            (
                json!({"type": "overloaded_error", "message": "Overloaded"}),
                FailureClass::ProviderTransient,
            ),
            (json!({"type": "rate_limit_error"}), FailureClass::RateLimited),
            (json!({"type": "api_error"}), FailureClass::ServerError),
            (json!({"type": "timeout_error"}), FailureClass::ServerError),
            (json!({"type": "authentication_error"}), FailureClass::Auth),
            (json!({"type": "permission_error"}), FailureClass::Auth),
            (json!({"type": "not_found_error"}), FailureClass::NotFound),
            (json!({"type": "invalid_request_error"}), FailureClass::BadRequest),
            (
                json!({"type": "tokens", "code": "rate_limit_exceeded"}),
                FailureClass::RateLimited,
            ),
            (
                json!({"code": 429, "message": "slow down"}),
                FailureClass::RateLimited,
            ),
            (json!({"code": "502"}), FailureClass::ServerError),
            (json!({"code": 7}), FailureClass::Unknown),
            (json!("no luck"), FailureClass::Unknown),
            (json!({}), FailureClass::Unknown),
        ] {
            let failure = error_in(&json!({"error": error}), &Redactor::default()).expect("it is an error");
            assert_eq!(
                (failure.class, failure.code.as_str()),
                (class, "provider_error"),
                "{error}"
            );
        }
        for chunk in [json!({}), json!({"error": null}), json!([]), json!("error")] {
            assert_eq!(error_in(&chunk, &Redactor::default()), None, "{chunk}");
        }
    }

    #[test]
    fn the_binding_speaks_in_numbers() {
        for (message, class) in [
            (
                "3040: Capacity temporarily exceeded",
                FailureClass::ProviderTransient,
            ),
            (
                "InferenceUpstreamError: 3036: daily free allocation",
                FailureClass::RateLimited,
            ),
            ("5007: No such model", FailureClass::BadRequest),
            ("5018: not allowed", FailureClass::Auth),
            ("3042: no such id", FailureClass::NotFound),
            ("3007: timeout", FailureClass::Network),
            ("8007: who knows", FailureClass::Unknown),
            ("", FailureClass::Unknown),
        ] {
            assert_eq!(
                binding_failure(message, &Redactor::default()).class,
                class,
                "{message}"
            );
        }
    }

    #[test]
    fn a_message_is_cut_after_its_secrets_are_out() {
        let secret = "s".repeat(20);
        let text = format!(
            "{}{secret}{}",
            "x".repeat(QUOTED_CHARACTERS - 15),
            "y".repeat(1_000)
        );
        let redactor = Redactor::new([secret]);
        let failure =
            error_in(&json!({"error": {"type": "t", "message": text}}), &redactor).expect("an error");
        assert!(!failure.message.contains("ss"), "{}", failure.message);
        assert!(failure.message.contains("x[redacted]"), "{}", failure.message);
        assert!(failure.message.len() < 300);
    }
}
