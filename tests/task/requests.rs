//! The requests of actions: rendered, and checked before a connection is opened.

use curfew::base::failure::Failure;
use curfew::definition::action::ActionKind;
use curfew::task::request::Outgoing;
use curfew::task::runtime::ActionCall;
use serde_json::{Value, json};

use super::action_call::calling;
use super::fake_runtime::with;

/// The request of an action over `input`.
fn outgoing(kind: &str, implementation: Value, input: Value) -> Result<Outgoing, Failure> {
    calling(kind, implementation, input, None, |call| {
        match &call.action.kind {
            ActionKind::HttpRequest(request) => Outgoing::http_request(request, call, "key"),
            ActionKind::ServiceCall(service) => Outgoing::service_call(service, call, "key"),
            other => panic!("{other:?} sends nothing"),
        }
    })
}

fn request(more: Value, input: Value) -> Result<Outgoing, Failure> {
    let url = json!({"url": "https://a.example/p"});
    outgoing("http_request", with(url, more), input)
}

/// Method, url, headers and body in one line.
fn line(sent: Result<Outgoing, Failure>) -> String {
    match sent {
        Ok(sent) => {
            let headers: Vec<_> = sent
                .headers
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            let body = sent.body.map(|body| format!(" {body}")).unwrap_or_default();
            format!("{} {} [{}]{body}", sent.method, sent.url, headers.join("; "))
        }
        Err(failure) => format!("{} {:?}: {}", failure.code, failure.class, failure.message),
    }
}

#[test]
fn a_request_is_rendered_from_its_templates() {
    assert_eq!(
        line(request(json!({}), json!({}))),
        "GET https://a.example/p [idempotency-key=key]"
    );
    assert_eq!(
        line(request(
            json!({"method": "post", "query": {"q": "${input.q}", "n": 1, "none": null, "list": ["a", 2], "o": {"k": 1}},
                "headers": {"X-Caller": "run ${input.q}", "x-none": null, "X-Number": 5}, "body": {"q": "${input.q}"}}),
            json!({"q": "a b&c"}),
        )),
        "POST https://a.example/p?list=a&list=2&n=1&o=%7B%22k%22%3A1%7D&q=a+b%26c \
         [content-type=application/json; idempotency-key=key; x-caller=run a b&c; x-number=5] {\"q\":\"a b&c\"}"
    );
    let kept = request(
        json!({"url": "https://a.example/p?x=1#part", "query": {"none": null}}),
        json!({}),
    );
    assert_eq!(
        line(kept),
        "GET https://a.example/p?x=1#part [idempotency-key=key]"
    );
}

#[test]
fn bodies_have_a_content_type() {
    let sent = |more| line(request(with(json!({"method": "PUT"}), more), json!({"n": 1})));
    for (more, end) in [
        (
            json!({"body": "words"}),
            "[content-type=text/plain; charset=utf-8; idempotency-key=key] words",
        ),
        (
            json!({"body": ""}),
            "[content-type=text/plain; charset=utf-8; idempotency-key=key] ",
        ),
        (
            json!({"body": "<a/>", "headers": {"Content-Type": "application/xml"}}),
            "[idempotency-key=key; content-type=application/xml] <a/>",
        ),
        (
            json!({"body": "${input.n}"}),
            "[content-type=application/json; idempotency-key=key] 1",
        ),
        (
            json!({"body": "n=${input.n}"}),
            "[content-type=text/plain; charset=utf-8; idempotency-key=key] n=1",
        ),
        (
            json!({"body": [true, null]}),
            "[content-type=application/json; idempotency-key=key] [true,null]",
        ),
        (json!({"body": null}), "[idempotency-key=key]"),
        (
            json!({"headers": {"Idempotency-Key": "mine"}}),
            "[idempotency-key=mine]",
        ),
    ] {
        assert_eq!(
            sent(more.clone()),
            format!("PUT https://a.example/p {end}"),
            "{more}"
        );
    }
}

#[test]
fn methods_are_tokens() {
    for (method, sent) in [
        ("get", "GET"),
        ("PURGE", "PURGE"),
        ("Patch", "PATCH"),
        ("M-SEARCH", "M-SEARCH"),
        ("custom", "custom"),
    ] {
        assert_eq!(
            request(json!({"method": method}), json!({})).map(|it| it.method),
            Ok(sent.to_string())
        );
    }
    for method in ["", "GET /", "A B", "GET\r\nX: y", "Ünı"] {
        let refused = line(request(json!({"method": method}), json!({})));
        assert!(
            refused.starts_with("invalid_method Validation"),
            "{method}: {refused}"
        );
    }
    for method in ["GET", "head"] {
        let refused = line(request(json!({"method": method, "body": "x"}), json!({})));
        assert!(
            refused.starts_with("invalid_body Validation"),
            "{method}: {refused}"
        );
    }
}

#[test]
fn no_header_breaks_out_of_its_line() {
    for (name, value) in [
        ("x-a", "b\r\nx-evil: 1"),
        ("x-a", "b\nc"),
        ("x-a", "b\rc"),
        ("x-a", "b\0c"),
        ("x-a\r\nx-evil", "1"),
        ("x a", "1"),
        ("x:a", "1"),
        ("", "1"),
        ("ünı", "1"),
        ("Host", "b.example"),
        ("content-length", "5"),
        ("Transfer-Encoding", "chunked"),
    ] {
        let refused = line(request(
            json!({"headers": {name: "${input.v}"}}),
            json!({"v": value}),
        ));
        assert!(
            refused.starts_with("invalid_header Validation"),
            "{name}: {value}: {refused}"
        );
    }
    let tab = request(json!({"headers": {"x-a": " b\tc "}}), json!({}));
    assert_eq!(
        line(tab),
        "GET https://a.example/p [idempotency-key=key; x-a=b\tc]"
    );
}

#[test]
fn urls_are_http_and_have_no_password() {
    for url in [
        "",
        "nowhere",
        "ftp://a.example/",
        "file:///etc/passwd",
        "http://",
        "javascript:1",
        "http://u:p4ss@a.example/",
        "http://u@a.example/",
    ] {
        let refused = line(request(json!({"url": "${input.url}"}), json!({"url": url})));
        assert!(refused.starts_with("invalid_url Validation"), "{url}: {refused}");
        assert!(!refused.contains("p4ss"), "{refused}");
    }
    for (field, value) in [
        ("url", json!("${input}")),
        ("method", json!(5)),
        ("headers", json!("x")),
        ("query", json!([1])),
    ] {
        let refused = line(request(json!({field: value}), json!({})));
        assert!(
            refused.starts_with(&format!("wrong_type Validation: {field} must be")),
            "{refused}"
        );
    }
    let refused = line(request(json!({"url": "${input.none}"}), json!({})));
    assert_eq!(
        refused,
        "expression_failed Validation: url: expression `input.none`: no such key: none"
    );
}

#[test]
fn async_actions_send_the_callback_url() {
    let url = Some("https://curfew.example/v1/callbacks/c");
    let sent = |kind: &str, implementation: Value| {
        calling(kind, implementation, json!({}), None, |call| {
            let call = ActionCall {
                callback_url: url,
                ..*call
            };
            line(match &call.action.kind {
                ActionKind::HttpRequest(request) => Outgoing::http_request(request, &call, "key"),
                ActionKind::ServiceCall(service) => Outgoing::service_call(service, &call, "key"),
                other => panic!("{other:?} sends nothing"),
            })
        })
    };
    assert_eq!(
        sent("http_request", json!({"url": "https://a.example/p"})),
        "GET https://a.example/p [idempotency-key=key; curfew-callback-url=https://curfew.example/v1/callbacks/c]"
    );
    assert_eq!(
        sent("service_call", json!({"binding": "B", "method": "GET"})),
        "GET http://service/ [idempotency-key=key; curfew-callback-url=https://curfew.example/v1/callbacks/c]"
    );
    let written = json!({"url": "https://a.example/p", "headers": {"Curfew-Callback-Url": "elsewhere"}});
    assert_eq!(
        sent("http_request", written),
        "GET https://a.example/p [idempotency-key=key; curfew-callback-url=elsewhere]"
    );
}

#[test]
fn a_service_gets_the_steps_input() {
    let call = |implementation: Value| {
        line(outgoing(
            "service_call",
            with(json!({"binding": "B"}), implementation),
            json!({"n": 1}),
        ))
    };
    assert_eq!(
        call(json!({})),
        "POST http://service/ [content-type=application/json; idempotency-key=key] {\"n\":1}"
    );
    assert_eq!(
        call(json!({"method": "get", "path": "//x/${input.n}?y=2"})),
        "GET http://service/x/1?y=2 [idempotency-key=key]"
    );
    assert_eq!(
        call(json!({"body": "text", "headers": {"x-a": "${input.n}"}})),
        "POST http://service/ [content-type=text/plain; charset=utf-8; idempotency-key=key; x-a=1] text"
    );
}
