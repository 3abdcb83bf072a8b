//! Notifications in the executor: secrets, addresses, signatures, and what an answer means.

use curfew::protocol::notification::{NotificationOrder, NotificationReport, NotificationTarget};
use curfew::task::notification::{prepare, report_of};
use curfew::task::request::Outgoing;
use curfew::task::secrets::SecretStore;

const NOW: u64 = 1_614_265_330_123;

fn store(setting: &str) -> SecretStore {
    SecretStore::new(setting, |name| match name {
        "SIGN" => Some("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into()),
        "BROKEN" => Some("whsec_***".into()),
        "TOKEN" => Some("t0ken-value".into()),
        "LINES" => Some("a\r\nx-other: b".into()),
        _unset => None,
    })
}

const LISTED: &str = "SIGN, BROKEN, TOKEN, LINES, UNSET";

fn order(url: &str, headers: &[(&str, &str)], secret: Option<&str>) -> NotificationOrder {
    NotificationOrder {
        run_id: "run-1".into(),
        id: "msg_p5jXN8AQM9LWM0D4loKWxJek".into(),
        target: NotificationTarget {
            url: url.into(),
            headers: headers
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect(),
            secret: secret.map(str::to_string),
        },
        body: "{\"test\": 2432232314}".into(),
        timeout_ms: 15_000,
    }
}

fn prepared(order: &NotificationOrder, setting: &str) -> Result<Outgoing, NotificationReport> {
    prepare(order, &store(setting), false, NOW)
}

fn header<'a>(request: &'a Outgoing, name: &str) -> Option<&'a str> {
    let found = request.headers.iter().find(|(other, _)| other == name);
    found.map(|(_, value)| value.as_str())
}

/// The vector of the Standard Webhooks specification.
#[test]
fn a_signature_is_that_of_standard_webhooks() {
    let request =
        prepared(&order("https://x.example/hook", &[], Some("SIGN")), LISTED).expect("it can be sent");
    assert_eq!(
        header(&request, "webhook-id"),
        Some("msg_p5jXN8AQM9LWM0D4loKWxJek")
    );
    assert_eq!(header(&request, "webhook-timestamp"), Some("1614265330"));
    assert_eq!(
        header(&request, "webhook-signature"),
        Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
    );
    assert_eq!(request.body.as_deref(), Some("{\"test\": 2432232314}"));
}

#[test]
fn secrets_are_filled_in_and_no_header_replaces_those_of_the_signature() {
    let headers = [
        ("authorization", "Bearer ${secret.TOKEN}"),
        ("webhook-id", "mine"),
        ("content-type", "text/plain"),
    ];
    let request = prepared(
        &order(
            "https://x.example/${secret.TOKEN}?k=${secret.TOKEN}",
            &headers,
            None,
        ),
        LISTED,
    );
    let request = request.expect("it can be sent");
    assert_eq!(
        request.url.as_str(),
        "https://x.example/t0ken-value?k=t0ken-value"
    );
    assert_eq!(header(&request, "authorization"), Some("Bearer t0ken-value"));
    assert_eq!(
        header(&request, "webhook-id"),
        Some("msg_p5jXN8AQM9LWM0D4loKWxJek")
    );
    assert_eq!(header(&request, "content-type"), Some("application/json"));
    assert_eq!(header(&request, "webhook-signature"), None);
}

/// Whether another attempt may succeed, and the message.
#[track_caller]
fn check_not_sent(order: NotificationOrder, setting: &str, is_final: bool, expected: &str) {
    let report = prepared(&order, setting).expect_err("it is not sent");
    let (found_final, message) = match report {
        NotificationReport::Refused { message } => (true, message),
        NotificationReport::Failed { message, .. } => (false, message),
        other => panic!("{other:?}"),
    };
    assert!(
        found_final == is_final && message.contains(expected),
        "{is_final} {expected}: {found_final} {message}"
    );
    assert!(!message.contains("t0ken-value"), "{message}");
}

#[test]
fn what_is_not_sent() {
    let to = |url: &str| order(url, &[], None);
    check_not_sent(
        to("http://127.0.0.1/x"),
        LISTED,
        true,
        "\"127.0.0.1\" is a loopback address",
    );
    check_not_sent(to("http://[::1]/x"), LISTED, true, "loopback");
    check_not_sent(to("${secret.TOKEN}"), LISTED, true, "is no URL");
    check_not_sent(
        order("https://x.example", &[("x-a", "${secret.LINES}")], None),
        LISTED,
        true,
        "invalid name or value",
    );
    // An operator may correct these while it is retried.
    check_not_sent(
        to("https://x.example/${secret.UNSET}"),
        LISTED,
        false,
        "the executor has no secret \"UNSET\"",
    );
    check_not_sent(
        to("https://x.example/${secret.TOKEN}"),
        "SIGN",
        false,
        "does not list it",
    );
    check_not_sent(
        order("https://x.example", &[], Some("BROKEN")),
        LISTED,
        false,
        "no base64 text follows",
    );
    let bound = r#"{"TOKEN": ["api.example.com"], "SIGN": ["api.example.com"]}"#;
    check_not_sent(
        to("https://x.example/${secret.TOKEN}"),
        bound,
        false,
        "may not be sent to \"x.example\"",
    );
    check_not_sent(
        order("https://x.example", &[], Some("SIGN")),
        bound,
        false,
        "may not be sent to \"x.example\"",
    );
    assert!(prepared(&to("https://api.example.com/${secret.TOKEN}"), bound).is_ok());
    assert!(
        prepare(&to("http://127.0.0.1/x"), &store(LISTED), true, NOW).is_ok(),
        "the executor may allow it"
    );
}

#[test]
fn the_status_decides() {
    for status in [200, 201, 204, 299] {
        assert_eq!(report_of(status, None, NOW), NotificationReport::Delivered);
    }
    assert_eq!(report_of(410, None, NOW), NotificationReport::Gone);
    for status in [301, 307, 400, 401, 404, 429, 500, 503] {
        let NotificationReport::Failed { message, .. } = report_of(status, None, NOW) else {
            panic!("{status} is no failure");
        };
        assert!(message.contains(&status.to_string()), "{message}");
    }
    let NotificationReport::Failed { retry_after_ms, .. } = report_of(503, Some("7"), NOW) else {
        panic!("503 is a failure");
    };
    assert_eq!(retry_after_ms, Some(7_000));
}
