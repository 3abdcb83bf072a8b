//! Retries under other limits: a retry that would begin too late is not made, and what was not made is not known.

use serde_json::{Value, json};

use super::{messages, outcome, recorded, set, what_if};

const OK: &str = "the call answers";

/// One HTTP call with retries 800 ms apart, recorded with these answers. `more` are further fields of the workflow.
fn retried(node: Value, more: Value, answers: &[(&str, &str)]) -> Value {
    let policy = json!({"max_attempts": 4, "backoff": "linear", "initial_delay": "800ms", "jitter": false});
    let mut workflow = json!({
        "id": "flow",
        "timeout": "1h",
        "on_timeout": "fail",
        "nodes": [{"id": "a", "action_id": "c"}],
        "actions": [{
            "id": "c", "kind": "http_request", "execution": {"retry_policy": policy},
            "implementation": {"method": "GET", "url": "https://peer.example.com"},
        }],
    });
    for (name, value) in node.as_object().into_iter().flatten() {
        workflow["nodes"][0][name] = value.clone();
    }
    for (name, value) in more.as_object().into_iter().flatten() {
        workflow[name] = value.clone();
    }
    let mocks = answers.iter().map(|(after, answer)| match *answer {
        OK => {
            json!({"node": "a", "times": 1, "after": after, "result": {"status": 200, "headers": {}, "body": {}}})
        }
        class => json!({"node": "a", "times": 1, "after": after, "fail": class}),
    });
    recorded(json!({"workflow": workflow, "mocks": mocks.collect::<Vec<Value>>()}))
}

/// 20 ms, a delay of 800 ms, 100 ms.
fn second_call_answers(node: Value) -> Value {
    let export = retried(node, json!({}), &[("20ms", "server_error"), ("100ms", OK)]);
    assert_eq!(export["run"]["duration_ms"], 920);
    export
}

#[track_caller]
fn check_unknown(answer: &Value, at_ms: u64, why: &str) {
    let messages = messages(answer, "unknown");
    assert_eq!(messages.len(), 1, "{answer:#}");
    assert!(messages[0].contains(why), "{messages:?}");
    assert_eq!(answer["unknown"][0]["at_ms"], at_ms);
}

#[test]
fn a_failure_for_lack_of_time_is_not_known_with_more_of_it() {
    let answers = [("20ms", "server_error"), ("20ms", OK)];
    let of_run = retried(json!({}), json!({"timeout": "600ms"}), &answers);
    let of_node = retried(json!({"timeout": "600ms"}), json!({}), &answers);
    for (export, change) in [(&of_run, "/timeout"), (&of_node, "/nodes/0/timeout")] {
        assert_eq!(export["run"]["error"]["code"], "http_500");
        let unchanged = what_if(export, Value::Null);
        assert_eq!(unchanged["recorded"], unchanged["replayed"]);
        let longer = what_if(export, set(change, "30s"));
        check_unknown(&longer, 20, "not tried again for lack of time");
    }
    // Of a limit that was not in the way.
    let same = what_if(&of_node, set("/timeout", "2h"));
    assert_eq!(outcome(&same), ("failed", 20), "{same:#}");
}

#[test]
fn a_retry_that_would_begin_too_late_is_not_made() {
    let export = second_call_answers(json!({"timeout": "10s"}));
    for (change, limit) in [
        ("/nodes/0/timeout", "600ms"),
        ("/timeout", "600ms"),
        ("/actions/0/execution/retry_policy/total_timeout", "600ms"),
    ] {
        let answer = what_if(&export, set(change, limit));
        check_unknown(&answer, 20, "would not be tried again after its server_error");
    }
}

#[test]
fn a_call_that_has_begun_is_cut_at_the_limit() {
    let export = second_call_answers(json!({"timeout": "10s"}));
    let cut = what_if(&export, set("/nodes/0/timeout", "900ms"));
    assert_eq!(outcome(&cut), ("failed", 900), "{cut:#}");
    assert_eq!(cut["replayed"]["error"]["code"], "execution_timeout");
    let total = what_if(
        &export,
        set("/actions/0/execution/retry_policy/total_timeout", "900ms"),
    );
    check_unknown(&total, 900, "it would be cut");
}

#[test]
fn a_limit_that_every_call_meets_changes_nothing() {
    let export = second_call_answers(json!({"timeout": "10s"}));
    for (change, limit) in [
        ("/nodes/0/timeout", "950ms"),
        ("/nodes/0/timeout", "1h"),
        ("/timeout", "950ms"),
        ("/actions/0/execution/timeout", "150ms"),
        ("/timeouts", ""),
    ] {
        let value = match limit {
            "" => json!({"tool": 150}),
            text => json!(text),
        };
        let answer = what_if(&export, set(change, value));
        assert_eq!(outcome(&answer), ("completed", 920), "{change}: {answer:#}");
        assert_eq!(answer["unknown"], json!([]));
    }
    let short = what_if(&export, set("/timeouts", json!({"tool": 50})));
    check_unknown(&short, 870, "it would be cut");
}

#[test]
fn a_task_that_begins_again_has_only_its_last_round_recorded() {
    let task = json!({
        "id": "t",
        "retry": {"max_attempts": 3},
        "steps": [
            {"ref": "ask", "action_id": "c", "on_failure": "retry"},
            {"ref": "note", "action": {"kind": "update_context", "implementation": {"set": {"done": true}}}},
        ],
    });
    let more = json!({"tasks": [task], "nodes": [{"id": "a", "task_id": "t"}]});
    let answers = [("30ms", "bad_request"), ("30ms", "bad_request"), ("30ms", OK)];
    let export = retried(json!({}), more, &answers);
    assert_eq!(export["run"]["status"], "completed");
    for (change, value) in [
        ("/tasks/0/retry/max_attempts", json!(2)),
        ("/tasks/0/retry/initial_delay", json!("10s")),
        ("/actions/0/execution/timeout", json!("20ms")),
        ("/nodes/0/timeout", json!("40ms")),
        ("/timeout", json!("40ms")),
    ] {
        let answer = what_if(&export, set(change, value));
        check_unknown(&answer, 0, "only its last round is recorded");
    }
    let longer = what_if(&export, set("/nodes/0/timeout", "1m"));
    assert_eq!(outcome(&longer).0, "completed");
}

#[test]
fn a_failure_that_the_task_went_on_with_may_have_lacked_time() {
    let task = json!({
        "id": "t",
        "timeout": "600ms",
        "steps": [
            {"ref": "ask", "action_id": "c", "on_failure": "continue"},
            {"ref": "note", "action": {"kind": "update_context", "implementation": {"set": {"done": true}}}},
        ],
    });
    let more = json!({"tasks": [task], "nodes": [{"id": "a", "task_id": "t"}]});
    let export = retried(json!({}), more, &[("20ms", "server_error"), ("20ms", OK)]);
    assert_eq!(export["run"]["status"], "completed");
    let longer = what_if(&export, set("/tasks/0/timeout", "1m"));
    check_unknown(&longer, 0, "one of its steps failed");
}

#[test]
fn the_step_that_was_stopped_is_recorded_not_one_that_failed_before() {
    let steps = json!([
        {"ref": "first", "action_id": "c", "on_failure": "continue"},
        {"ref": "second", "action_id": "c", "timeout_override": "50ms"},
    ]);
    let task = json!({"id": "t", "steps": steps});
    let more = json!({"tasks": [task], "nodes": [{"id": "a", "task_id": "t", "timeout": "5s"}]});
    let export = retried(json!({}), more, &[("20ms", "bad_request"), ("10s", OK)]);
    let timeout = &export["timeouts"][0];
    assert_eq!(timeout["last_known_state"]["step_ref"], "second");
    assert_eq!(timeout["timeout_event"]["timeout_ms"], 50);
    let unchanged = what_if(&export, Value::Null);
    assert_eq!(unchanged["recorded"], unchanged["replayed"]);
}

#[test]
fn a_gate_that_decided_by_itself_decides_by_its_new_limit() {
    for policy in ["approve", "reject"] {
        let gate = json!({"id": "g", "gate": {"timeout": "800ms", "on_timeout": policy}});
        let export = recorded(json!({"workflow": {"id": "flow", "timeout": "30s", "nodes": [gate]}}));
        assert_eq!(outcome(&what_if(&export, Value::Null)), ("completed", 800));
        let longer = what_if(&export, set("/nodes/0/gate/timeout", "3s"));
        assert_eq!(outcome(&longer), ("completed", 3_000));
        assert_eq!(longer["recorded_durations"], json!([]));
    }
}

#[test]
fn more_time_may_help_a_called_workflow_that_timed_out() {
    let child = json!({"id": "child", "timeout": "900ms", "on_timeout": "fail", "nodes": [{"id": "rest", "wait": {"sleep": "1400ms"}}]});
    let workflow = json!({"id": "flow", "timeout": "1m", "nodes": [{"id": "k", "workflow_id": "child"}]});
    let export = recorded(json!({"workflow": workflow, "documents": {"workflows": [child]}}));
    assert_eq!(export["run"]["status"], "failed");
    let unchanged = what_if(&export, Value::Null);
    assert_eq!(unchanged["recorded"], unchanged["replayed"]);
    let longer = what_if(&export, set("/nodes/0/timeout", "4s"));
    check_unknown(
        &longer,
        900,
        "the called workflow had not come to an end of its own",
    );
}

#[test]
fn work_that_ends_while_the_run_compensates_ends_so_again() {
    let policy = json!({"max_attempts": 2, "initial_delay": "200ms", "backoff": "linear", "jitter": false});
    let action = |id: &str, execution: Value| json!({"id": id, "kind": "http_request", "execution": execution, "implementation": {"method": "GET", "url": "https://peer.example.com"}});
    let hangs = json!({"timeout": "1200ms", "on_timeout": "retry", "retry_policy": policy});
    let workflow = json!({
        "id": "flow", "timeout": "1s", "on_timeout": "cancel_all", "compensation": {"timeout": "5s"},
        "nodes": [
            {"id": "a", "action_id": "quick", "compensate": {"action_id": "quick"}},
            {"id": "b", "action_id": "hangs", "compensate": {"action_id": "quick"}},
        ],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}],
        "actions": [action("quick", json!({})), action("hangs", hangs)],
    });
    let ok = json!({"status": 200, "headers": {}, "body": {}});
    let mocks = json!([{"node": "b", "hang": true}, {"action": "quick", "after": "20ms", "result": ok}]);
    let export = recorded(json!({"workflow": workflow, "mocks": mocks}));
    assert_eq!(export["run"]["duration_ms"], 1_240, "b timed out after the limit");
    let unchanged = what_if(&export, Value::Null);
    assert_eq!(
        (&unchanged["differences"], &unchanged["unknown"]),
        (&json!([]), &json!([]))
    );
    assert_eq!(unchanged["recorded"], unchanged["replayed"]);
}
