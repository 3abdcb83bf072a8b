//! Bodies of `extend` and `retry`: everything that is accepted, and a place and a sentence for everything that is not.

use curfew::api::control::{read_extension, read_retry};
use curfew::engine::{Extension, RetryMode, TokenId};
use serde_json::{Value, json};

#[test]
fn an_extension_is_an_amount_or_a_moment() {
    for (body, expected) in [
        (json!({"by_ms": 60_000}), Extension::By(60_000)),
        (json!({"by": "1m30s"}), Extension::By(90_000)),
        (
            json!({"until": 1_700_000_000_000u64}),
            Extension::Until(1_700_000_000_000),
        ),
        (
            json!({"until": "2023-11-14T22:13:20Z"}),
            Extension::Until(1_700_000_000_000),
        ),
    ] {
        assert_eq!(read_extension(&body), Ok(expected), "{body}");
    }
}

#[track_caller]
fn refused<T: std::fmt::Debug>(answer: Result<T, curfew::api::error::Error>, body: &Value, pointer: &str) {
    let error = answer.expect_err("refused");
    assert_eq!((error.status, error.code), (422, "invalid_request"), "{body}");
    assert_eq!(
        error.pointer.as_deref(),
        Some(pointer),
        "{body}: {}",
        error.message
    );
    assert!(!error.message.is_empty(), "{body}");
}

#[test]
fn what_is_no_extension_is_refused_with_its_place() {
    for (body, pointer) in [
        (json!({}), "/by_ms"),
        (json!({"by_ms": null}), "/by_ms"),
        (json!({"by_ms": 0}), "/by_ms"),
        (json!({"by_ms": -1}), "/by_ms"),
        (json!({"by_ms": "60000"}), "/by_ms"),
        (json!({"by_ms": 1.5}), "/by_ms"),
        (json!({"by_ms": 31u64 * 24 * 3_600_000}), "/by_ms"),
        (json!({"by": 60_000}), "/by"),
        (json!({"by": "30"}), "/by"),
        (json!({"by": "1m", "by_ms": 60_000}), "/by"),
        (json!({"until": "tomorrow"}), "/until"),
        (json!({"until": true}), "/until"),
        (json!({"by_ms": 60_000, "until": 1_700_000_000_000u64}), "/until"),
        (json!({"by_ms": 60_000, "of": "mine"}), "/of"),
    ] {
        refused(read_extension(&body), &body, pointer);
    }
    for body in [json!(null), json!([]), json!("1m"), json!(60_000)] {
        refused(read_extension(&body), &body, "");
    }
}

#[test]
fn a_retry_names_its_mode_and_perhaps_a_token() {
    for (body, expected) in [
        (json!({"mode": "retry_step"}), (RetryMode::RetryStep, None)),
        (
            json!({"mode": "discard_and_retry"}),
            (RetryMode::DiscardAndRetry, None),
        ),
        (json!({"mode": "escalate"}), (RetryMode::Escalate, None)),
        (
            json!({"mode": "retry_step", "token_id": "t7"}),
            (RetryMode::RetryStep, Some(TokenId(7))),
        ),
    ] {
        assert_eq!(read_retry(&body), Ok(expected), "{body}");
    }
}

#[test]
fn what_is_no_retry_is_refused_with_its_place() {
    for (body, pointer) in [
        (json!({}), "/mode"),
        (json!({"mode": null}), "/mode"),
        (json!({"mode": "again"}), "/mode"),
        (json!({"mode": 1}), "/mode"),
        (json!({"mode": "retry_step", "token_id": "7"}), "/token_id"),
        (json!({"mode": "retry_step", "token_id": "t07"}), "/token_id"),
        (json!({"mode": "retry_step", "token_id": 7}), "/token_id"),
        (json!({"mode": "retry_step", "tokens": ["t7"]}), "/tokens"),
    ] {
        refused(read_retry(&body), &body, pointer);
    }
    refused(read_retry(&json!(null)), &json!(null), "");
}

#[test]
fn one_mistake_is_one_problem() {
    for (error, body) in [
        (read_extension(&json!({})).expect_err("refused"), "extension"),
        (
            read_extension(&json!({"by_ms": 0})).expect_err("refused"),
            "no time",
        ),
        (
            read_extension(&json!({"by": "soon"})).expect_err("refused"),
            "no duration",
        ),
        (
            read_extension(&json!({"until": "soon"})).expect_err("refused"),
            "no moment",
        ),
        (read_retry(&json!({})).expect_err("refused"), "retry"),
        (
            read_retry(&json!({"mode": "again"})).expect_err("refused"),
            "mode",
        ),
    ] {
        let problems = error.details.expect("all problems are told");
        assert_eq!(problems.as_array().map(Vec::len), Some(1), "{body}: {problems}");
    }
}
