//! The receiver's address and headers, and what its responses mean.

use curfew::base::time::MINUTE;
use curfew::trace::receiver::{
    ExportOutcome, GIVE_UP_MS, RecentExports, headers, outcome, retry_delay_seconds, traces_url,
};

#[test]
fn the_path_is_added_unless_it_is_there() {
    let url = |setting: &str| traces_url(setting).unwrap_or_else(|error| error);
    assert_eq!(url("http://localhost:4318"), "http://localhost:4318/v1/traces");
    assert_eq!(
        url(" https://a.example/otlp/ "),
        "https://a.example/otlp/v1/traces"
    );
    assert_eq!(
        url("https://a.example/otlp/v1/traces"),
        "https://a.example/otlp/v1/traces"
    );
    assert_eq!(
        url("https://a.example/v1/traces/?team=1"),
        "https://a.example/v1/traces/?team=1"
    );
    assert_eq!(
        url("https://a.example?team=1"),
        "https://a.example/v1/traces?team=1"
    );
    assert_eq!(url("ftp://a.example"), "ftp is neither http nor https");
    assert!(url("a.example").starts_with("it is no URL"));
    assert!(!url("https://ada:hunter2@a.example").contains("hunter2"));
}

#[test]
fn headers_are_a_json_object_of_lines() {
    let read = |setting: &str| headers(Some(setting)).map(|headers| headers[1..].to_vec());
    assert_eq!(headers(None).map(|headers| headers.len()), Ok(1));
    assert_eq!(
        read(r#"{"X-Key": "a b"}"#),
        Ok(vec![("x-key".into(), "a b".into())])
    );
    assert_eq!(
        headers(Some(r#"{"Content-Type": "x"}"#)),
        Ok(vec![("content-type".into(), "x".into())])
    );
    for wrong in [
        "x",
        "[]",
        r#"{"a": 1}"#,
        r#"{"a": "b\nc"}"#,
        r#"{"": "b"}"#,
        r#"{"a b": "c"}"#,
        r#"{"a": "é"}"#,
    ] {
        let error = read(wrong).expect_err(wrong);
        assert!(!error.contains('\n') && !error.contains('é'), "{error}");
    }
    let many: Vec<String> = (0..100).map(|n| format!(r#""h{n}": "x""#)).collect();
    assert!(read(&format!("{{{}}}", many.join(","))).is_err());
    assert!(read(&format!(r#"{{"a": "{}"}}"#, "x".repeat(10_000))).is_err());
}

#[test]
fn only_what_otlp_calls_retryable_is_sent_again() {
    let after = |status| outcome(status, b"", Some(7_000));
    for status in [429, 502, 503, 504] {
        assert_eq!(
            after(status),
            ExportOutcome::Retry {
                after_ms: Some(7_000)
            }
        );
    }
    for status in [301, 400, 401, 403, 404, 413, 500, 501] {
        assert_eq!(after(status), ExportOutcome::Refused);
    }
    assert_eq!(after(200), ExportOutcome::Accepted);
    let partial = |body: &str| outcome(200, body.as_bytes(), None);
    assert_eq!(partial("{}"), ExportOutcome::Accepted);
    assert_eq!(
        partial(r#"{"partialSuccess": {"errorMessage": "hm"}}"#),
        ExportOutcome::Accepted
    );
    for rejected in [r#""3""#, "3"] {
        let body = format!(r#"{{"partialSuccess": {{"rejectedSpans": {rejected}}}}}"#);
        assert_eq!(partial(&body), ExportOutcome::AcceptedInPart { rejected: 3 });
    }
    assert_eq!(partial("\u{0}not json"), ExportOutcome::Accepted);
}

#[test]
fn delays_grow_with_the_age_of_the_message_and_end() {
    let delay = |age_ms, asked_ms| retry_delay_seconds(age_ms, asked_ms, 10_000);
    assert_eq!(delay(0, None), Some(10));
    assert_eq!(delay(30_000, None), Some(30));
    assert_eq!(delay(30_000, Some(45_500)), Some(46));
    assert_eq!(delay(20 * MINUTE, None), Some(600));
    assert_eq!(delay(0, Some(u64::MAX)), Some(600));
    assert_eq!(delay(GIVE_UP_MS, None), None);
    // From the first delivery on.
    let (mut age, mut deliveries) = (0, 0);
    while let Some(seconds) = delay(age, None) {
        age += u64::from(seconds) * 1_000;
        deliveries += 1;
    }
    assert!((8..=12).contains(&deliveries), "{deliveries}");
}

#[test]
fn recent_exports_are_bounded() {
    let mut recent = RecentExports::default();
    for number in 0..5_000 {
        recent.add(number.to_string());
        recent.add(number.to_string());
    }
    assert!(recent.contains("4999") && recent.contains("4000"));
    assert!(!recent.contains("3999"));
}
