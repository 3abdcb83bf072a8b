//! Calls and their mocks: results, retries, deadlines, breakers, callbacks, and what is sent.

use serde_json::{Value, json};

use super::{calls_of, chain, path_of, refused, simulated};

#[test]
fn a_call_is_answered_by_its_mock() {
    let answer = simulated(json!({
        "workflow": {
            "id": "order",
            "actions": [{"id": "charge", "kind": "http_request", "implementation": {"method": "POST",
                "url": "https://pay.example/${input.id}", "headers": {"authorization": "Bearer ${secret.PAY}"},
                "body": {"amount": "${input.amount}", "note": "with ${secret.PAY}"}}}],
            "nodes": [{"id": "pay", "action_id": "charge"}, {"id": "done"}],
            "transitions": [{"from_node_id": "pay", "to_node_id": "done"}],
            "output_mapping": {"paid": "${state.pay.body.paid}"}
        },
        "input": {"id": "o1", "amount": 7},
        "mocks": [{"action": "charge", "after": "2s", "result": {"status": 200, "headers": {}, "body": {"paid": true}}}],
    }));
    assert_eq!(answer["run"]["status"], "completed", "{answer:#}");
    assert_eq!(answer["run"]["output"], json!({"paid": true}));
    assert_eq!(path_of(&answer), "pay completed, done completed");
    assert_eq!(answer["virtual_ms"], 2_000);
    assert_eq!(
        answer["calls"][0]["request"],
        json!({"method": "POST", "url": "https://pay.example/o1", "body": {"amount": 7, "note": "with [redacted]"}})
    );
    assert_eq!(calls_of(&answer), ["pay at 0 for 2000: result"]);
}

#[test]
fn a_call_without_a_mock_is_an_error_with_the_mock_to_add() {
    let workflow = chain(
        json!([{"id": "pay", "action_id": "work"}, {"id": "rest"}]),
        json!({}),
    );
    for mocks in [
        json!([]),
        json!([{"node": "rest", "result": 1}]),
        json!([{"step": "work", "times": 0, "result": 1}]),
    ] {
        let (status, code, message) = refused(json!({"workflow": workflow, "mocks": mocks}));
        assert_eq!((status, code), (422, "no_mock"));
        let expected =
            r#"node "pay" makes a service_call of action "work" in step "work", and no mock answers it"#;
        assert!(message.starts_with(expected), "{message}");
        let (_, mock) = message.split_once("for example ").expect("an example");
        let mock: Value = serde_json::from_str(mock).expect("it can be pasted");
        let answer = simulated(json!({"workflow": workflow, "mocks": [mock]}));
        assert_eq!(answer["run"]["status"], "completed");
    }
}

#[test]
fn calls_are_retried_as_in_production_and_a_mock_may_be_used_up() {
    let retry = json!({"max_attempts": 3, "initial_delay": "10s", "backoff": "linear", "jitter": false});
    let action = json!({"id": "work", "kind": "service_call", "implementation": {"binding": "PEER"},
        "execution": {"retry_policy": retry}});
    let workflow = chain(
        json!([{"id": "a", "action_id": "work"}]),
        json!({"actions": [action]}),
    );
    let answer = simulated(json!({"workflow": workflow, "mocks": [
        {"node": "a", "times": 2, "after": 500, "fail": "server_error"},
        {"node": "a", "result": {"n": 1}},
    ]}));
    assert_eq!(
        calls_of(&answer),
        [
            "a at 0 for 500: failed",
            "a at 10500 for 500: failed",
            "a at 31000 for 0: result"
        ]
    );
    assert_eq!(answer["tokens"][0]["steps"][0]["attempts"], 3, "{answer:#}");
}

#[test]
fn a_rate_limit_waits_as_long_as_the_peer_asks_for() {
    let workflow = chain(json!([{"id": "a", "action_id": "work"}]), json!({}));
    let answer = simulated(json!({"workflow": workflow, "mocks": [
        {"node": "a", "times": 1, "fail": {"class": "rate_limited", "retry_after": "7s"}},
        {"node": "a", "result": 1},
    ]}));
    assert_eq!(
        calls_of(&answer),
        ["a at 0 for 0: failed", "a at 7000 for 0: result"]
    );
}

#[test]
fn a_call_that_hangs_is_cut_at_its_deadline_with_what_had_arrived() {
    let node = json!({"id": "a", "action_id": "work", "timeout": "90s", "on_timeout": "fail"});
    let workflow = chain(json!([node]), json!({}));
    let answer = simulated(json!({"workflow": workflow, "mocks": [
        {"node": "a", "hang": true, "partial": "half an answer"}]}));
    assert_eq!(
        (&answer["run"]["status"], &answer["virtual_ms"]),
        (&json!("failed"), &json!(90_000))
    );
    assert_eq!(calls_of(&answer), ["a at 0 for 90000: timed_out"]);
    let timeout = &answer["timeouts"][0];
    assert_eq!(timeout["timeout_event"]["due_at"], 1_767_225_690_000_u64);
    assert_eq!(
        timeout["partial_artifacts"][0]["text"], "half an answer",
        "{timeout:#}"
    );
}

#[test]
fn a_breaker_opens_after_three_failures() {
    let retry = json!({"max_attempts": 5, "initial_delay": "1s", "backoff": "linear", "jitter": false});
    let action = json!({"id": "work", "kind": "service_call", "implementation": {"binding": "PEER"},
        "execution": {"retry_policy": retry, "breaker": "peer"}});
    let workflow = chain(
        json!([{"id": "a", "action_id": "work", "timeout": "10m"}]),
        json!({"actions": [action]}),
    );
    let answer = simulated(json!({"workflow": workflow, "mocks": [
        {"node": "a", "times": 3, "fail": "network"}, {"node": "a", "result": 1}]}));
    // The third failure opens it: the next call is its trial, 30 s later.
    assert_eq!(
        calls_of(&answer),
        [
            "a at 0 for 0: failed",
            "a at 1000 for 0: failed",
            "a at 3000 for 0: failed",
            "a at 33000 for 0: result"
        ],
        "{answer:#}"
    );
}

#[test]
fn an_async_action_gets_its_result_by_a_callback() {
    let action = json!({"id": "work", "kind": "http_request", "implementation": {"url": "https://jobs.example/"},
        "execution": {"mode": "async", "timeout": "3h"}});
    let workflow = chain(
        json!([{"id": "a", "action_id": "work"}]),
        json!({"actions": [action], "output_mapping": "${state.a}"}),
    );
    let answer = simulated(
        json!({"workflow": workflow, "mocks": [{"node": "a", "after": "2h", "result": {"done": true}}]}),
    );
    assert_eq!(answer["run"]["output"], json!({"done": true}), "{answer:#}");
    assert_eq!(answer["virtual_ms"], 7_200_000);
    let failed = simulated(json!({"workflow": workflow, "mocks": [
        {"node": "a", "after": "1h", "fail": {"class": "unknown", "code": "broken", "message": "no luck"}}]}));
    assert_eq!(failed["run"]["error"]["code"], "broken", "{failed:#}");
    let never = simulated(json!({"workflow": workflow, "mocks": [{"node": "a", "hang": true}]}));
    assert_eq!(never["virtual_ms"], 10_800_000);
}

#[test]
fn the_queue_does_the_same_as_a_call() {
    let workflow = chain(
        json!([{"id": "a", "action_id": "work", "timeout": "5m"}, {"id": "b", "action_id": "work", "timeout": "5m"}]),
        json!({"output_mapping": "${state.b}"}),
    );
    let mocks =
        json!([{"node": "a", "after": "1m40s", "result": 1}, {"node": "b", "after": "3s", "result": 2}]);
    let run = |queue: bool| {
        let answer = simulated(json!({"workflow": workflow, "mocks": mocks, "queue": queue}));
        let lanes: Vec<&Value> = answer["tokens"]
            .as_array()
            .expect("tokens")
            .iter()
            .map(|token| &token["lane"])
            .collect();
        format!("{} {} {lanes:?}", answer["run"]["output"], answer["virtual_ms"])
    };
    assert_eq!(run(false), r#"2 103000 [String("direct"), String("direct")]"#);
    assert_eq!(run(true), r#"2 103000 [String("queue"), String("queue")]"#);
}

#[test]
fn pure_actions_are_executed() {
    let workflow = json!({
        "id": "flow",
        "tasks": [{"id": "sum", "steps": [
            {"ref": "add", "action": {"kind": "update_context", "implementation": {"set": {"output.n": "${input.n + 1}"}}}},
            {"ref": "check", "action": {"kind": "assert", "implementation": {"condition": "output.n == 5"}}},
            {"ref": "tell", "action": {"kind": "emit_event", "implementation": {"name": "summed", "payload": {"n": "${output.n}"}}}}]}],
        "nodes": [{"id": "a", "task_id": "sum"}],
        "output_mapping": "${state.a}",
    });
    let answer = simulated(json!({"workflow": workflow, "input": {"n": 4}}));
    assert_eq!(answer["run"]["output"], json!({"n": 5}), "{answer:#}");
    let emitted = &answer["calls"][0];
    assert_eq!(
        (&emitted["kind"], &emitted["event"], &emitted["request"]),
        (&json!("emit_event"), &json!("summed"), &json!({"n": 5}))
    );
    let failed = simulated(json!({"workflow": workflow, "input": {"n": 5}}));
    assert_eq!(failed["run"]["error"]["class"], "assertion");
}

/// One `http_request` that returns this.
fn request_that_returns(implementation: Value, result: Value) -> Value {
    let once = json!({"retry_policy": {"max_attempts": 1}});
    let action =
        json!({"id": "work", "kind": "http_request", "implementation": implementation, "execution": once});
    let workflow = chain(
        json!([{"id": "a", "action_id": "work"}]),
        json!({"actions": [action]}),
    );
    json!({"workflow": workflow, "mocks": [{"node": "a", "result": result}]})
}

#[test]
fn a_status_that_an_executor_refuses_fails_the_call() {
    let any = json!({"url": "https://peer.example/"});
    let created = json!({"url": "https://peer.example/", "expect_status": 201});
    for (implementation, status, code) in [
        (&any, 500, Some("http_500")),
        (&any, 404, Some("http_404")),
        (&created, 200, Some("http_200")),
        (&created, 201, None),
        (&any, 201, None),
        // A mock that is only about what follows.
        (&created, 0, None),
    ] {
        let mut result = json!({"status": status, "headers": {}, "body": {"why": "no"}});
        if status == 0 {
            result = json!({"body": {}});
        }
        let answer = simulated(request_that_returns(implementation.clone(), result));
        let found = answer["run"]["error"]["code"].as_str();
        assert_eq!(found, code, "{status}: {:#}", answer["run"]);
    }
}

#[test]
fn a_status_is_retried_as_an_executor_retries_it() {
    let mut body = request_that_returns(json!({"url": "https://peer.example/"}), Value::Null);
    body["workflow"]["actions"][0]["execution"] = json!({});
    body["mocks"] = json!([
        {"node": "a", "times": 1, "result": {"status": 429, "headers": {"retry-after": "7"}, "body": null}},
        {"node": "a", "result": {"status": 200, "headers": {}, "body": null}},
    ]);
    let answer = simulated(body);
    assert_eq!(answer["run"]["status"], "completed");
    assert_eq!(
        calls_of(&answer),
        ["a at 0 for 0: failed", "a at 7000 for 0: result"]
    );
}

#[test]
fn what_no_request_returns_is_refused() {
    let body = request_that_returns(json!({"url": "https://peer.example/"}), json!("x"));
    let error = super::try_simulate(&body).expect_err("it has no status");
    assert_eq!(
        (error.status, error.pointer.as_deref()),
        (422, Some("/mocks/0/result"))
    );
    assert!(error.message.contains("\"status\":200"), "{}", error.message);
}

#[test]
fn an_exit_code_that_is_not_expected_fails_the_command() {
    let action = json!({"id": "work", "kind": "shell", "implementation": {"url": "https://runner.example/", "command": "make"}});
    let workflow = chain(
        json!([{"id": "a", "action_id": "work"}]),
        json!({"actions": [action]}),
    );
    let result = json!({"exit_code": 2, "stdout": "", "stderr": "no rule", "truncated": false});
    let answer = simulated(json!({"workflow": workflow, "mocks": [{"node": "a", "result": result}]}));
    assert_eq!(answer["run"]["error"]["code"], "exit_code", "{:#}", answer["run"]);
}
