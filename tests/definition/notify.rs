//! `notify` of a workflow, and the deployment's variable of the same shape.

use curfew::definition::event_kinds::EVENT_KINDS;
use curfew::run::{DeploymentTarget, RunEventKind};
use serde_json::{Value, json};

use super::documents::workflow;

fn target() -> Value {
    json!({"on": ["gate_opened", "run_failed"], "url": "https://x.example/hook"})
}

/// The problems of one target.
#[track_caller]
fn one(target: Value, expected: &[&str]) {
    workflow(json!({"nodes": [{"id": "a"}], "notify": [target]}), expected);
}

/// The problems of a target with `value` in `field`.
#[track_caller]
fn with(field: &str, value: Value, expected: &[&str]) {
    let mut target = target();
    target[field] = value;
    one(target, expected);
}

#[test]
fn every_kind_of_event_has_its_name_in_the_list() {
    for (index, name) in EVENT_KINDS.iter().enumerate() {
        let kind: RunEventKind = serde_json::from_value(json!(name)).expect("a kind");
        assert_eq!((kind as usize, kind.name()), (index, *name));
    }
    let source = include_str!("../../src/run/time/event_log.rs");
    let (_, variants) = source.split_once("pub enum RunEventKind {").expect("the enum");
    let (variants, _) = variants.split_once('}').expect("its end");
    assert_eq!(variants.matches(',').count(), EVENT_KINDS.len());
}

#[test]
fn a_target_has_kinds_and_an_address() {
    one(target(), &[]);
    one(
        json!({"on": EVENT_KINDS, "url": "https://${secret.HOST}/${secret.PATH}?k=${secret.KEY}",
            "headers": {"Authorization": "Bearer ${secret.TOKEN}", "x-env": "test"}, "secret": "${secret.SIGN}"}),
        &[],
    );
    one(
        json!({"on": ["run_failed"], "url": "${secret.WHOLE_ADDRESS}"}),
        &[],
    );
    one(
        json!({"kinds": ["run_failed"]}),
        &[
            "/notify/0/kinds unknown_field",
            "/notify/0/on missing_field",
            "/notify/0/url missing_field",
        ],
    );
    one(json!("https://x.example"), &["/notify/0 wrong_type"]);
    workflow(
        json!({"nodes": [{"id": "a"}], "notify": target()}),
        &["/notify wrong_type"],
    );
    workflow(
        json!({"nodes": [{"id": "a"}], "notify": []}),
        &["/notify empty_list: the list is empty; add a target"],
    );
    let many: Vec<Value> = (0..11)
        .map(|n| json!({"on": ["run_failed"], "url": format!("https://x.example/{n}")}))
        .collect();
    workflow(
        json!({"nodes": [{"id": "a"}], "notify": many}),
        &["/notify limit_exceeded: 11 targets; the limit is 10"],
    );
    workflow(
        json!({"nodes": [{"id": "a"}], "notify": [target(), {"on": ["run_completed"], "url": "https://x.example/hook"}]}),
        &["/notify/1 duplicate: another target has the same url"],
    );
}

#[test]
fn kinds_are_those_of_the_history() {
    with(
        "on",
        json!(["gate_open"]),
        &["/notify/0/on/0 unknown_value: \"gate_open\" is no kind of event; did you mean \"gate_opened\"?"],
    );
    with(
        "on",
        json!(["zzz"]),
        &["/notify/0/on/0 unknown_value: \"zzz\" is no kind of event; the kinds are run_started,"],
    );
    with("on", json!([7]), &["/notify/0/on/0 unknown_value: 7 is no kind"]);
    with("on", json!([]), &["/notify/0/on empty_list: no kind is named"]);
    with("on", json!("run_failed"), &["/notify/0/on wrong_type"]);
    with(
        "on",
        json!(["run_failed", "run_failed"]),
        &["/notify/0/on/1 duplicate"],
    );
}

#[test]
fn an_address_is_constant_but_for_secrets() {
    let place = "/notify/0/url";
    for (url, code) in [
        (json!("x.example/hook"), "invalid_url: this is no URL"),
        (
            json!("ftp://x.example"),
            "invalid_url: \"ftp\" is neither http nor https",
        ),
        (
            json!("https://user:pass@x.example"),
            "invalid_url: the url holds a user or a password",
        ),
        (
            json!("https://x.example/${input.path}"),
            "unknown_name: \"input\" is not a name here; the names are secret",
        ),
        (
            json!("https://x.example/${secret.A + 'x'}"),
            "invalid_secret: only \"${secret.NAME}\"",
        ),
        (json!("https://x.example/${secret}"), "invalid_secret"),
        (json!("https://x.example/${1 +}"), "invalid_expression"),
        (
            json!(format!("https://x.example/{}", "x".repeat(3_000))),
            "limit_exceeded",
        ),
        (json!(5), "wrong_type"),
    ] {
        with("url", url, &[&format!("{place} {code}")]);
    }
}

#[test]
fn headers_are_texts_that_belong_to_the_target() {
    for (headers, problem) in [
        (
            json!({"Webhook-Id": "x"}),
            "/notify/0/headers/Webhook-Id invalid_header: \"webhook-id\" is set for every",
        ),
        (json!({"host": "x"}), "/notify/0/headers/host invalid_header"),
        (json!({"a b": "x"}), "/notify/0/headers/a b invalid_header"),
        (
            json!({"x-a": "1\r\nx-b: 2"}),
            "/notify/0/headers/x-a invalid_header: the value has a line break",
        ),
        (json!({"x-a": 5}), "/notify/0/headers/x-a wrong_type"),
        (json!({"x-a": "${state.a}"}), "/notify/0/headers/x-a unknown_name"),
        (
            json!({"X-A": "1", "x-a": "2"}),
            "/notify/0/headers/x-a invalid_header: \"x-a\" is there twice",
        ),
        (json!("x"), "/notify/0/headers wrong_type"),
    ] {
        with("headers", headers, &[problem]);
    }
    with(
        "headers",
        json!({"x-a": "x".repeat(1_500), "x-b": "x".repeat(600)}),
        &["/notify/0/headers limit_exceeded: 2106 bytes; the limit is 2048"],
    );
    let many: serde_json::Map<String, Value> = (0..21).map(|n| (format!("x-{n}"), json!("1"))).collect();
    with(
        "headers",
        Value::Object(many),
        &["/notify/0/headers limit_exceeded"],
    );
}

#[test]
fn the_secret_is_named_and_never_written() {
    for secret in [
        json!("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        json!("x${secret.A}"),
        json!("${secret.A}${secret.B}"),
        json!(5),
        json!(["${secret.A}"]),
    ] {
        with(
            "secret",
            secret,
            &["/notify/0/secret invalid_secret: write exactly one \"${secret.NAME}\""],
        );
    }
    with("secret", json!("${input.a}"), &["/notify/0/secret unknown_name"]);
}

#[test]
fn the_variable_has_the_same_shape_and_may_name_workflows() {
    let parse = |value: Value| DeploymentTarget::parse(&value.to_string());
    let mut target = target();
    assert_eq!(parse(json!([target])).map(|it| it.len()), Ok(1));
    target["workflows"] = json!(["order-*", "pay"]);
    let parsed = parse(json!([target])).expect("it is valid");
    let reached: Vec<bool> = ["order-1", "pay", "other"]
        .iter()
        .map(|id| parsed[0].workflows.contains(id))
        .collect();
    assert_eq!(reached, [true, true, false]);
    for (value, expected) in [
        (json!({"on": []}), "it must be a JSON array of targets"),
        (
            json!([{"on": ["run_ended"], "url": "https://x.example"}]),
            "at /0/on/0: \"run_ended\" is no kind of event",
        ),
        (
            json!([{"on": ["run_failed"], "url": "https://x.example", "workflows": []}]),
            "at /0/workflows: no workflow is named",
        ),
        (
            json!([{"on": ["run_failed"], "url": "https://x.example", "workflows": ["A"]}]),
            "at /0/workflows: a pattern has",
        ),
        (
            json!([{"on": ["run_failed"], "url": "https://x.example", "secret": "s3cr3t"}]),
            "at /0/secret: write exactly one",
        ),
    ] {
        let refused = parse(value.clone()).expect_err("it is invalid");
        assert!(refused.starts_with(expected), "{value}: {refused}");
        assert!(!refused.contains("s3cr3t"), "{refused}");
    }
    assert!(DeploymentTarget::parse("[{").is_err_and(|refused| refused.starts_with("it is not JSON")));
}
