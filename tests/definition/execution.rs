//! The `execution` of an action, its secrets, and the `escalate_on` of a node.

use curfew::definition::snapshot::{CheckError, DocumentKind, Library, check};
use curfew::definition::timeouts::{Preset, TimeoutRules};
use serde_json::{Value, json};

use super::documents::{expect, expect_under};

fn action(execution: Value) -> Value {
    json!({"id": "a", "kind": "http_request", "implementation": {"url": "http://x.example"}, "execution": execution})
}

fn policy(policy: Value, expected: &[&str]) {
    expect(
        DocumentKind::Actions,
        action(json!({"retry_policy": policy})),
        expected,
    );
}

#[test]
fn a_retry_policy_is_read_field_by_field() {
    policy(json!({}), &[]);
    policy(
        json!({"max_attempts": 5, "backoff": "linear", "initial_delay": "200ms", "max_delay": "2s", "jitter": false,
            "retry_on": ["network", "not_found"], "total_timeout": "1m"}),
        &[],
    );
    policy(
        json!({"initial_delay_ms": 1, "max_delay_ms": 2, "total_timeout_ms": 3, "retry_on": ["*"]}),
        &[],
    );
    policy(
        json!({"max_attempts": 0, "backoff": "wild", "initial_delay": 5, "initial_delay_ms": 5, "jitter": "yes",
            "max_delay_ms": "1s", "retry_on": "network", "total_timeout": "soon", "tries": 3}),
        &[
            "/execution/retry_policy/backoff invalid_choice",
            "/execution/retry_policy/initial_delay both_forms",
            "/execution/retry_policy/jitter wrong_type",
            "/execution/retry_policy/max_attempts out_of_range",
            "/execution/retry_policy/max_delay_ms wrong_type",
            "/execution/retry_policy/retry_on wrong_type",
            "/execution/retry_policy/total_timeout invalid_duration",
            "/execution/retry_policy/tries unknown_field",
        ],
    );
}

#[test]
fn retry_on_accepts_only_retryable_classes() {
    policy(
        json!({"retry_on": ["network", "5xx", 5, "timeout", "permanent"]}),
        &[
            "/execution/retry_policy/retry_on/1 invalid_choice: \"5xx\" is none of *, network, server_error",
            "/execution/retry_policy/retry_on/2 wrong_type",
            "/execution/retry_policy/retry_on/3 invalid_choice: a timeout is tried again by \"on_timeout\"",
            "/execution/retry_policy/retry_on/4 invalid_choice: what is permanent is never tried again",
        ],
    );
    let agreed = json!({"on_timeout": "retry", "retry_policy": {"retry_on": ["timeout"]}});
    expect(DocumentKind::Actions, action(agreed), &[]);
}

#[test]
fn a_policy_without_effect_is_rejected() {
    let with_policy = |kind: &str, implementation: Value| json!({"id": "a", "kind": kind, "implementation": implementation, "execution": {"retry_policy": {}}});
    for document in [
        with_policy("update_context", json!({"set": {"a": 1}})),
        with_policy("assert", json!({"condition": "true"})),
        with_policy("workflow_call", json!({"workflow_id": "w"})),
    ] {
        expect(
            DocumentKind::Actions,
            document,
            &["/execution/retry_policy unsupported"],
        );
    }
    expect(
        DocumentKind::Actions,
        with_policy("service_call", json!({"binding": "B"})),
        &[],
    );
}

#[test]
fn the_total_timeout_obeys_the_hard_limit_of_a_step() {
    let rules = TimeoutRules {
        preset: Preset::Flow,
        ..TimeoutRules::default()
    };
    let total = |minutes: u64| {
        action(json!({"timeout": "1m", "retry_policy": {"total_timeout": format!("{minutes}m")}}))
    };
    let library = Default::default();
    expect_under(&rules, DocumentKind::Actions, total(15), &library, &[]);
    expect_under(
        &rules,
        DocumentKind::Actions,
        total(16),
        &library,
        &["/execution/retry_policy/total_timeout "],
    );
}

#[test]
fn a_breaker_key_contains_no_secrets() {
    let guarded = |key: Value| action(json!({"breaker": key}));
    for key in ["pay", "pay:${input.region}", "A.b-c_d:9", &"k".repeat(128)] {
        expect(DocumentKind::Actions, guarded(json!(key)), &[]);
    }
    for (key, problem) in [
        (json!("a b"), "/execution/breaker invalid_id"),
        (json!(""), "/execution/breaker invalid_id"),
        (json!("k".repeat(129)), "/execution/breaker invalid_id"),
        (json!(7), "/execution/breaker wrong_type"),
        (json!("${secret.KEY}"), "/execution/breaker unknown_name"),
        (json!("${input."), "/execution/breaker invalid_expression"),
    ] {
        expect(DocumentKind::Actions, guarded(key), &[problem]);
    }
    let pure = json!({"id": "a", "kind": "update_context", "implementation": {"set": {"a": 1}},
        "execution": {"breaker": "pay"}});
    expect(DocumentKind::Actions, pure, &["/execution/breaker unsupported"]);
}

#[test]
fn only_executing_nodes_escalate_and_only_known_classes() {
    let node = |more: Value| {
        let mut node = json!({"id": "n"});
        for (field, value) in more.as_object().into_iter().flatten() {
            node[field] = value.clone();
        }
        json!({"id": "w", "nodes": [node], "actions": [action(json!({}))]})
    };
    let work = |classes: Value| node(json!({"action_id": "a", "escalate_on": classes}));
    for classes in [json!([]), json!(["auth", "timeout"]), json!(["breaker_open"])] {
        expect(DocumentKind::Workflows, work(classes), &[]);
    }
    expect(
        DocumentKind::Workflows,
        work(json!(["auth", "nonsense", 7])),
        &[
            "/nodes/0/escalate_on/1 invalid_choice",
            "/nodes/0/escalate_on/2 wrong_type",
        ],
    );
    expect(
        DocumentKind::Workflows,
        work(json!("auth")),
        &["/nodes/0/escalate_on wrong_type"],
    );
    for other in [json!({}), json!({"gate": {}}), json!({"wait": {"sleep_ms": 5}})] {
        let mut fields = other;
        fields["escalate_on"] = json!(["auth"]);
        expect(
            DocumentKind::Workflows,
            node(fields),
            &["/nodes/0/escalate_on unknown_field"],
        );
    }
}

#[test]
fn an_async_action_is_the_only_step_and_sends_a_request() {
    let asking = |kind: &str, more: Value| {
        let implementation = match kind {
            "http_request" => json!({"url": "https://peer.example", "body": "${callback.url}"}),
            _pure => json!({"condition": "true"}),
        };
        let mut step = json!({"ref": "ask", "action": {"kind": kind, "implementation": implementation,
            "execution": {"mode": "async"}}});
        if let (Value::Object(step), Value::Object(more)) = (&mut step, more) {
            step.extend(more);
        }
        json!({"id": "t", "steps": [step]})
    };
    let codes = |task: Value| match check(
        DocumentKind::Tasks,
        &task,
        &Library::new(),
        &TimeoutRules::default(),
    ) {
        Ok(_) => Vec::new(),
        Err(CheckError::Invalid(problems)) => problems
            .iter()
            .map(|it| format!("{} {}", it.pointer, it.code))
            .collect(),
        Err(CheckError::Missing(missing)) => panic!("{missing:?}"),
    };
    assert_eq!(codes(asking("http_request", json!({}))), Vec::<String>::new());
    assert_eq!(
        codes(asking(
            "http_request",
            json!({"output_mapping": {"output.x": "${result}"}})
        )),
        ["/steps/0 async_not_alone"]
    );
    assert_eq!(
        codes(asking("http_request", json!({"condition": "true"}))),
        ["/steps/0 async_not_alone"]
    );
    assert_eq!(
        codes(asking("assert", json!({}))),
        ["/steps/0/action/execution/mode unknown_field"]
    );
    let mut two = asking("http_request", json!({}));
    let again = two["steps"][0].clone();
    two["steps"] = json!([again.clone(), {"ref": "again", "action": again["action"]}]);
    assert_eq!(
        codes(two),
        ["/steps/0 async_not_alone", "/steps/1 async_not_alone"]
    );
}

#[test]
fn the_present_moment_is_known_in_tasks_but_not_in_the_key_of_a_breaker() {
    let action = json!({"kind": "http_request", "implementation": {"url": "https://a.example?at=${now}"}});
    let step = json!({"ref": "s", "action": action, "condition": "now > 1", "input_mapping": "${now}",
        "output_mapping": {"state.at": "${now}"}});
    expect(DocumentKind::Tasks, json!({"id": "t", "steps": [step]}), &[]);
    for implementation in [
        json!({"kind": "assert", "implementation": {"condition": "now > 1", "message": "at ${now}"}}),
        json!({"kind": "emit_event", "implementation": {"name": "tick", "payload": "${now}"}}),
        json!({"kind": "update_context", "implementation": {"set": {"at": "${now}"}}}),
    ] {
        let mut action = implementation;
        action["id"] = json!("a");
        expect(DocumentKind::Actions, action, &[]);
    }
    let breaker = json!({"id": "a", "kind": "http_request", "implementation": {"url": "https://a.example"},
        "execution": {"breaker": "peer-${now}"}});
    expect(
        DocumentKind::Actions,
        breaker,
        &["/execution/breaker unknown_name: \"now\" is not a name here; the names are input, state, output"],
    );
}
