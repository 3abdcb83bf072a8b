//! Bodies of control requests: what is accepted, and the pointer and message of what is refused.

use curfew::api::body;
use curfew::api::control::{
    Control, RestartBody, RetryBody, read_cancel, read_extension, read_restart, read_retry,
};
use curfew::api::error::Error;
use curfew::api::routes::Route;
use curfew::run::{Extension, RetryMode, TokenId};
use serde_json::{Value, json};

/// As a request to this path of a run is checked.
fn check(path: &str, body: &Value) -> Result<(), Error> {
    match Route::parse("POST", &format!("/v1/runs/run-1{path}"))? {
        Route::Control { control, .. } => control.check(body),
        other => panic!("{path} is {other:?}"),
    }
}

#[test]
fn an_extension_is_a_duration_or_a_timestamp() {
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
fn refused<T: std::fmt::Debug>(result: Result<T, curfew::api::error::Error>, body: &Value, pointer: &str) {
    let error = result.expect_err("refused");
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
fn an_invalid_extension_is_refused_with_a_pointer() {
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
    ] {
        refused(read_extension(&body), &body, pointer);
    }
    for body in [json!(null), json!([]), json!("1m"), json!(60_000)] {
        refused(read_extension(&body), &body, "");
    }
}

#[test]
fn a_retry_has_a_mode_and_an_optional_token() {
    for (body, expected) in [
        (json!({"mode": "retry_step"}), (RetryMode::RetryStep, None, None)),
        (
            json!({"mode": "discard_and_retry", "version": 3}),
            (RetryMode::DiscardAndRetry, None, Some(3)),
        ),
        (json!({"mode": "escalate"}), (RetryMode::Escalate, None, None)),
        (
            json!({"mode": "retry_step", "token_id": "t7"}),
            (RetryMode::RetryStep, Some(TokenId(7)), None),
        ),
    ] {
        let (mode, token, version) = expected;
        let expected = RetryBody { mode, token, version };
        assert_eq!(read_retry(&body), Ok(expected), "{body}");
    }
}

#[test]
fn an_invalid_retry_is_refused_with_a_pointer() {
    for (body, pointer) in [
        (json!({}), "/mode"),
        (json!({"mode": null}), "/mode"),
        (json!({"mode": "again"}), "/mode"),
        (json!({"mode": 1}), "/mode"),
        (json!({"mode": "retry_step", "token_id": "7"}), "/token_id"),
        (json!({"mode": "retry_step", "token_id": "t07"}), "/token_id"),
        (json!({"mode": "retry_step", "token_id": 7}), "/token_id"),
        (json!({"mode": "retry_step", "version": 0}), "/version"),
        (json!({"mode": "retry_step", "version": "2"}), "/version"),
        (json!({"mode": "retry_step", "version": "latest"}), "/version"),
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
        let problems = error.details.expect("the problems");
        assert_eq!(problems.as_array().map(Vec::len), Some(1), "{body}: {problems}");
    }
}

/// An unknown field is never ignored: the caller asks for something that the control does not do.
#[test]
fn an_unknown_field_is_a_400_with_a_suggestion() {
    for (path, body, pointer, suggested) in [
        ("/cancel", json!({"reasons": "x"}), "/reasons", Some("reason")),
        ("/cancel", json!({"sender": {"run_id": "run-1"}}), "/sender", None),
        ("/pause", json!({"until": 1}), "/until", None),
        ("/resume", json!({"mode": "x"}), "/mode", None),
        ("/extend", json!({"by_ms": 1, "of": "mine"}), "/of", None),
        ("/extend", json!({"by_m": 60_000}), "/by_m", Some("by_ms")),
        (
            "/retry",
            json!({"mode": "retry_step", "token": "t7"}),
            "/token",
            Some("token_id"),
        ),
        (
            "/retry",
            json!({"mode": "retry_step", "tokens": ["t7"]}),
            "/tokens",
            None,
        ),
        (
            "/restart",
            json!({"from_node": "b"}),
            "/from_node",
            Some("from_node_id"),
        ),
        ("/restart", json!({"a": 1, "from_node_id": 7}), "/a", None),
        (
            "/gates/g1",
            json!({"choice": "yes", "inputs": {}}),
            "/inputs",
            Some("input"),
        ),
    ] {
        let error = check(path, &body).expect_err(path);
        let seen = (error.status, error.code, error.pointer.as_deref());
        assert_eq!(seen, (400, "invalid_request", Some(pointer)), "{path} {body}");
        let suggestion = suggested.map(|name| format!("did you mean \"{name}\"?"));
        let suggests = error.message.contains("did you mean");
        assert_eq!(suggests, suggested.is_some(), "{path}: {}", error.message);
        assert!(
            suggestion.is_none_or(|text| error.message.contains(&text)),
            "{}",
            error.message
        );
        assert!(error.message.contains("known"), "{path}: {}", error.message);
    }
}

#[test]
fn a_control_takes_an_object() {
    for path in [
        "/cancel",
        "/pause",
        "/resume",
        "/extend",
        "/retry",
        "/restart",
        "/gates/g1",
    ] {
        for body in [json!(null), json!([]), json!("now"), json!(1), json!(true)] {
            refused(check(path, &body), &body, "");
        }
    }
    for body in [json!(null), json!([1]), json!({"any": "thing"})] {
        assert_eq!(
            check("/signals/go", &body),
            Ok(()),
            "a signal's payload may be any JSON"
        );
    }
    for path in ["/cancel", "/pause", "/resume", "/restart"] {
        assert_eq!(check(path, &json!({})), Ok(()), "{path}");
    }
    assert!(check("/claim", &json!({})).is_err(), "only executors claim");
    for (body, version) in [
        (json!({"from_node_id": "b"}), None),
        (json!({"from_node_id": "b", "version": 2}), Some(2)),
    ] {
        let from_node_id = Some("b".to_string());
        let expected = RestartBody {
            from_node_id,
            version,
        };
        assert_eq!(read_restart(&body), Ok(expected));
        assert_eq!(Control::Restart.version(&body), Ok(version));
    }
    assert_eq!(Control::Pause.version(&json!({})), Ok(None));
    assert!(read_restart(&json!({"version": 1.5})).is_err());
    assert_eq!(
        read_cancel(&json!({"reason": "enough"})),
        Ok(Some("enough".into()))
    );
    refused(
        read_cancel(&json!({"reason": 7})),
        &json!({"reason": 7}),
        "/reason",
    );
}

/// The API checks bodies before it wakes a run's object.
#[test]
fn bodies_are_checked_by_their_route() {
    let read = |method: &str, path: &str, body: &str| {
        let route = Route::parse(method, path).expect(path);
        body::read(&route, body.as_bytes())
    };
    for (method, path, body, status) in [
        ("POST", "/v1/runs/r/restart", r#"{"from_node": "a"}"#, 400),
        ("POST", "/v1/runs/r/pause", "[]", 422),
        ("POST", "/v1/runs/r/pause", "{", 400),
        ("POST", "/v1/breakers/b/reset", r#"{"force": true}"#, 400),
        ("PUT", "/v1/workflows/a", r#"{"id": "b"}"#, 422),
    ] {
        let error = read(method, path, body).expect_err(path);
        assert_eq!(error.status, status, "{path} {body}: {}", error.message);
    }
    assert_eq!(read("POST", "/v1/runs/r/pause", ""), Ok(json!({})));
    assert_eq!(read("POST", "/v1/events/e", ""), Ok(json!(null)));
    assert_eq!(read("PUT", "/v1/workflows/a", "{}"), Ok(json!({"id": "a"})));
    let deep = "[".repeat(110) + &"]".repeat(110);
    for path in [
        "/v1/runs/r/signals/s",
        "/v1/events/e",
        "/v1/callbacks/c",
        "/v1/runs/r/gates/g",
    ] {
        assert_eq!(read("POST", path, &deep).expect_err(path).status, 422);
    }
    let many: Vec<String> = (0..20_000).map(|n| format!("\"w{n}\":1")).collect();
    let body = format!("{{{}}}", many.join(","));
    let error = read("POST", "/v1/runs/r/cancel", &body).expect_err("unknown fields");
    assert!(error.body().to_string().len() < 50_000, "the response is bounded");
}
