//! Other durations of calls, called workflows and decisions than the recorded ones.

use serde_json::{Value, json};

use super::{messages, outcome, recorded, try_what_if};
use crate::simulate::chain;

#[track_caller]
fn lasting(export: &Value, durations: Value) -> Value {
    match try_what_if(export, json!({"durations": durations})) {
        Ok(answer) => answer,
        Err(error) => panic!("{} {}: {}", error.status, error.code, error.message),
    }
}

/// The pointer and the message of a refusal.
#[track_caller]
fn refusal(export: &Value, durations: Value) -> (String, String) {
    let error = try_what_if(export, json!({"durations": durations})).expect_err("a refusal");
    assert_eq!(error.status, 422, "{}", error.message);
    (error.pointer.unwrap_or_default(), error.message)
}

/// A call of three seconds under a limit of ten.
fn call() -> Value {
    let nodes = json!([{"id": "work", "action_id": "work", "timeout": "10s"}, {"id": "done"}]);
    recorded(json!({
        "workflow": chain(nodes, json!({})),
        "mocks": [{"node": "work", "after": "3s", "result": {"n": 7}}],
    }))
}

/// A decision after an hour, at a gate that closes after two.
fn gate() -> Value {
    let gate =
        json!({"id": "ask", "gate": {"choices": ["yes", "no"], "timeout": "2h", "on_timeout": "fail"}});
    recorded(json!({
        "workflow": chain(json!([gate]), json!({})),
        "people": [{"gate": "ask", "after": "1h", "choice": "yes"}],
    }))
}

#[test]
fn a_call_that_takes_longer_holds_as_long_as_its_limit_does() {
    let export = call();
    for (after, expected) in [
        ("3s", ("completed", 3_000)),
        ("1ms", ("completed", 1)),
        ("9999ms", ("completed", 9_999)),
        ("10s", ("failed", 10_000)),
        ("720h", ("failed", 10_000)),
    ] {
        let answer = lasting(&export, json!([{"node": "work", "after": after}]));
        assert_eq!(outcome(&answer), expected, "{after}: {answer:#}");
        assert_eq!(answer["unknown"], json!([]), "{after}");
    }
}

#[test]
fn the_recorded_durations_change_nothing() {
    let answer = lasting(&call(), json!([{"node": "work", "after": 3_000}]));
    assert_eq!(answer["recorded"], answer["replayed"]);
    assert_eq!(answer["differences"], json!([]));
    let answer = lasting(&gate(), json!([{"gate": "ask", "after": "1h"}]));
    assert_eq!(answer["recorded"], answer["replayed"]);
}

#[test]
fn the_answer_has_the_recorded_durations() {
    let nodes = json!([
        {"id": "quick", "action_id": "work"},
        {"id": "ask", "gate": {"choices": ["yes"], "timeout": "2h", "on_timeout": "fail"}},
        {"id": "cut", "action_id": "work", "timeout": "1s", "on_timeout": "retry", "max_retries": 1},
    ]);
    let export = recorded(json!({
        "workflow": chain(nodes, json!({})),
        "people": [{"gate": "ask", "after": "5m", "choice": "yes"}],
        "mocks": [
            {"node": "cut", "times": 1, "hang": true},
            {"action": "work", "after": "300ms", "result": {}},
        ],
    }));
    let expected = json!([
        {"node": "quick", "answers": 1, "shortest_ms": 300, "longest_ms": 300},
        {"node": "cut", "answers": 1, "shortest_ms": 300, "longest_ms": 300},
        {"gate": "ask", "answers": 1, "shortest_ms": 300_000, "longest_ms": 300_000},
    ]);
    assert_eq!(lasting(&export, json!([]))["recorded_durations"], expected);
}

#[test]
fn every_answer_of_a_node_takes_so_long() {
    let fan = json!({
        "id": "wide",
        "nodes": [{"id": "split"}, {"id": "work", "action_id": "work"}, {"id": "join"}],
        "transitions": [
            {"id": "fan", "from_node_id": "split", "to_node_id": "work", "spawn_count": 3},
            {"from_node_id": "work", "to_node_id": "join", "synchronization": {"strategy": "all", "sibling_group": "fan", "timeout": "30s"}},
        ],
        "actions": [{"id": "work", "kind": "http_request", "implementation": {"method": "GET", "url": "https://work.example.com"}}],
    });
    let mock = |times: Option<u64>, after: &str| json!({"node": "work", "times": times, "after": after, "result": {"status": 200, "headers": {}, "body": {}}});
    let mut slow = mock(None, "5s");
    slow.as_object_mut().expect("an object").remove("times");
    let export = recorded(json!({"workflow": fan, "mocks": [mock(Some(1), "1s"), slow]}));
    let answer = lasting(&export, json!([]));
    let recorded = json!([{"node": "work", "answers": 3, "shortest_ms": 1_000, "longest_ms": 5_000}]);
    assert_eq!(
        (&answer["recorded_durations"], outcome(&answer)),
        (&recorded, ("completed", 5_000))
    );
    let answer = lasting(&export, json!([{"node": "work", "after": "2s"}]));
    assert_eq!(outcome(&answer), ("completed", 2_000));
}

#[test]
fn a_person_who_takes_too_long_is_no_longer_waited_for() {
    let export = gate();
    let answer = lasting(&export, json!([{"gate": "ask", "after": "119m"}]));
    assert_eq!(outcome(&answer), ("completed", 119 * 60_000));
    let answer = lasting(&export, json!([{"gate": "ask", "after": "3h"}]));
    assert_eq!(outcome(&answer), ("failed", 2 * 3_600_000), "{answer:#}");
}

#[test]
fn a_decision_at_the_limit_of_the_run_may_come_later_too() {
    let nodes = json!([{"id": "work", "action_id": "work"}]);
    let limit = json!({"timeout": "1m", "on_timeout": "human_gate", "gate": {"timeout": "24h", "on_timeout": "cancel_all"}});
    let export = recorded(json!({
        "workflow": chain(nodes, limit),
        "people": [{"gate": "timeout", "after": "1h", "choice": "extend", "input": {"by_ms": 600_000}}],
        "mocks": [{"node": "work", "after": "90s", "result": {}}],
    }));
    assert_eq!(export["run"]["status"], "completed");
    let answer = lasting(&export, json!([{"gate": "timeout", "after": "2h"}]));
    assert_eq!(
        outcome(&answer),
        ("completed", 2 * 3_600_000 + 60_000),
        "{answer:#}"
    );
    let answer = lasting(&export, json!([{"gate": "timeout", "after": "25h"}]));
    assert_eq!(outcome(&answer).0, "timed_out");
}

#[test]
fn a_called_workflow_may_last_longer() {
    let child = json!({"id": "child", "nodes": [{"id": "rest", "wait": {"sleep": "1m"}}], "transitions": []});
    let nodes = json!([{"id": "call", "workflow_id": "child", "timeout": "5m"}]);
    let export = recorded(json!({"workflow": chain(nodes, json!({})), "documents": {"workflows": [child]}}));
    for (after, expected) in [("2m", ("completed", 120_000)), ("6m", ("failed", 300_000))] {
        let answer = lasting(&export, json!([{"node": "call", "after": after}]));
        assert_eq!(outcome(&answer), expected, "{after}: {answer:#}");
    }
}

#[test]
fn a_call_that_its_own_action_would_cut_is_not_known() {
    let action = |limit: &str| json!({"id": "work", "kind": "http_request", "execution": {"timeout": limit}, "implementation": {"method": "GET", "url": "https://work.example.com"}});
    let workflow = |limit: &str| json!({"id": "cut", "nodes": [{"id": "work", "action_id": "work", "timeout": "1m"}], "transitions": [], "actions": [action(limit)]});
    let export = recorded(json!({
        "workflow": workflow("8s"),
        "mocks": [{"node": "work", "after": "3s", "result": {"status": 200, "headers": {}, "body": {}}}],
    }));
    let answer = lasting(&export, json!([{"node": "work", "after": "7s"}]));
    assert_eq!(outcome(&answer), ("completed", 7_000));
    let answer = lasting(&export, json!([{"node": "work", "after": "9s"}]));
    assert_eq!(outcome(&answer), ("running", 8_000), "{answer:#}");
    let why = messages(&answer, "unknown");
    assert!(why[0].contains("it would be cut"), "{why:?}");
}

#[test]
fn a_duration_and_a_limit_may_change_together() {
    let changes = json!([{"op": "add", "path": "/nodes/0/timeout", "value": "1m"}]);
    let body = json!({"changes": changes, "durations": [{"node": "work", "after": "30s"}]});
    let answer = try_what_if(&call(), body).expect("an answer");
    assert_eq!(outcome(&answer), ("completed", 30_000));
}

#[test]
fn what_has_no_recorded_duration_is_refused() {
    let export = call();
    let (pointer, message) = refusal(&export, json!([{"node": "wrok", "after": "1s"}]));
    assert_eq!(pointer, "/durations/0/node");
    assert!(
        message.contains("\"wrok\"") && message.contains("the recording has: work"),
        "{message}"
    );
    let (pointer, message) = refusal(&export, json!([{"gate": "ask", "after": "1s"}]));
    assert_eq!(pointer, "/durations/0/gate");
    assert!(message.contains("the recording has none"), "{message}");
    let twice = json!([{"node": "work", "after": "1s"}, {"node": "work", "after": "2s"}]);
    let (pointer, message) = refusal(&export, twice);
    assert_eq!(pointer, "/durations/1/node");
    assert!(message.contains("/durations/0"), "{message}");
}

#[test]
fn a_call_that_was_cut_has_no_duration() {
    let nodes = json!([{"id": "work", "action_id": "work", "timeout": "2s"}]);
    let export = recorded(json!({
        "workflow": chain(nodes, json!({})),
        "mocks": [{"node": "work", "hang": true}],
    }));
    let (pointer, message) = refusal(&export, json!([{"node": "work", "after": "1s"}]));
    assert_eq!(pointer, "/durations/0/node");
    assert!(message.contains("no answer is recorded"), "{message}");
}

#[test]
fn a_list_that_says_too_little_or_too_much_is_refused() {
    let export = call();
    for (durations, expected) in [
        (json!({}), "/durations"),
        (json!([7]), "/durations/0"),
        (json!([{}]), "/durations/0/after"),
        (json!([{"after": "1s"}]), "/durations/0/node"),
        (json!([{"node": "work"}]), "/durations/0/after"),
        (json!([{"node": "work", "after": "soon"}]), "/durations/0/after"),
        (json!([{"node": "work", "after": -1}]), "/durations/0/after"),
        (
            json!([{"node": "work", "gate": "ask", "after": 1}]),
            "/durations/0/gate",
        ),
        (
            json!(vec![json!({"node": "work", "after": 1}); 1_001]),
            "/durations",
        ),
    ] {
        let shown = durations.to_string();
        let (pointer, message) = refusal(&export, durations);
        assert_eq!(pointer, expected, "{}: {message}", &shown[..shown.len().min(80)]);
    }
}

#[test]
fn an_unknown_field_is_refused_with_the_known_ones() {
    let body = json!({"durations": [{"node": "work", "after": 1, "times": 2}]});
    let error = try_what_if(&call(), body).expect_err("a refusal");
    assert_eq!(
        (error.status, error.pointer.as_deref()),
        (400, Some("/durations/0/times"))
    );
    assert!(
        error.message.contains("known: node, gate, after"),
        "{}",
        error.message
    );
}

#[test]
fn the_work_of_an_end_has_durations_of_its_own() {
    let undo = json!({"action_id": "work"});
    let nodes =
        json!([{"id": "a", "action_id": "work", "compensate": undo}, {"id": "b", "action_id": "work"}]);
    let more = json!({"on_end": [{"on": ["failed"], "action_id": "work"}]});
    let export = recorded(json!({
        "workflow": chain(nodes, more),
        "mocks": [
            {"node": "b", "after": "100ms", "fail": "bad_request"},
            {"action": "work", "after": "2s", "result": {}},
        ],
    }));
    assert_eq!(export["run"]["status"], "failed");
    let unchanged = lasting(&export, json!([]));
    let names = unchanged["recorded_durations"].as_array().expect("a list");
    let names: Vec<&str> = names.iter().filter_map(|item| item["node"].as_str()).collect();
    assert_eq!(names, ["a", "b", "a~compensate", "on_end"]);
    let (_, before_ms) = outcome(&unchanged);
    for (name, after_ms) in [("a~compensate", before_ms + 3_000), ("on_end", before_ms + 3_000)] {
        let answer = lasting(&export, json!([{"node": name, "after": "5s"}]));
        assert_eq!(outcome(&answer), ("failed", after_ms), "{name}");
    }
}
