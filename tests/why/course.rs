//! Runs that went on after a timeout: what the smallest limit is made of. `soundness` tries many more.

use curfew::api::control::Control;
use curfew::definition::timeouts::TimeoutRules;
use curfew::simulate::{Deployment, Session};
use serde_json::{Value, json};

use super::{reason, smallest};

fn open(body: &Value) -> Session {
    let opened = Session::open(body, &TimeoutRules::default(), &Deployment::default());
    opened.unwrap_or_else(|error| panic!("{}", error.message))
}

fn control(session: &mut Session, control: Control, body: Value) {
    let refused = session.control(control, body).expect("it is asked");
    assert_eq!(refused, None);
}

/// Lets the run end. `why` of its first timeout.
fn why(session: &mut Session) -> Value {
    session.advance(&json!({"until": "end"})).expect("it ends");
    let view = session.view().expect("a view");
    let id = view["timeouts"][0]["id"].as_u64().expect("it timed out");
    session.timeout(id).expect("a record")["why"].clone()
}

/// `x` sleeps 600 ms; beside it `y` is a call of 500 ms, and then `y2` sleeps 400 ms.
fn two_ways() -> Value {
    json!({
        "workflow": {
            "id": "w", "timeout_ms": 150,
            "nodes": [{"id": "b"}, {"id": "x", "wait": {"sleep_ms": 600}}, {"id": "y", "action_id": "c"},
                {"id": "y2", "wait": {"sleep_ms": 400}}],
            "transitions": [{"from_node_id": "b", "to_node_id": "x"}, {"from_node_id": "b", "to_node_id": "y"},
                {"from_node_id": "y", "to_node_id": "y2"}],
            "actions": [{"id": "c", "kind": "service_call", "implementation": {"binding": "PEER"}}],
        },
        "mocks": [{"node": "y", "after": 500, "result": {}}],
    })
}

#[test]
fn the_way_that_needs_most_of_the_clock_counts_not_the_one_that_ended_last() {
    let mut body = two_ways();
    body["workflow"]["on_timeout"] = json!("human_gate");
    let mut session = open(&body);
    session.advance(&json!({"by": 750})).expect("time");
    let gate = Control::Gate {
        id: "timeout".to_string(),
    };
    control(
        &mut session,
        gate,
        json!({"choice": "extend", "input": {"by_ms": 3_000}}),
    );
    let why = why(&mut session);
    let change = json!([{"op": "replace", "path": "/timeout_ms", "value": 901}]);
    assert_eq!(smallest(&why), json!([901, 900, change]), "{why:#}");
    assert!(
        reason(&why).contains("up to the end of \"y2\" it takes 900ms"),
        "{why:#}"
    );
}

#[test]
fn a_sleep_that_a_retry_continued_counts_whole() {
    let workflow = json!({
        "id": "w", "timeout_ms": 500, "on_timeout": "cancel_all",
        "nodes": [{"id": "s", "wait": {"sleep_ms": 300}}, {"id": "s2", "wait": {"sleep_ms": 400}}],
        "transitions": [{"from_node_id": "s", "to_node_id": "s2"}],
    });
    let mut session = open(&json!({"workflow": workflow}));
    session.advance(&json!({"by": 900})).expect("time");
    control(&mut session, Control::Retry, json!({"mode": "retry_step"}));
    let why = why(&mut session);
    assert_eq!(why["smallest_limit_ms"], 701, "{why:#}");
}

#[test]
fn the_change_of_a_join_sets_it_at_all_of_its_transitions() {
    let join = json!({"sibling_group": "g", "timeout_ms": 150, "on_timeout": "proceed_with_available",
        "on_early_complete": "allow_late_merge", "merge": {"target": "state.all"}});
    let workflow = json!({
        "id": "w",
        "nodes": [{"id": "b"}, {"id": "x", "wait": {"sleep_ms": 30}}, {"id": "y", "wait": {"sleep_ms": 400}}, {"id": "j"},
            {"id": "z", "wait": {"sleep_ms": 600}}],
        "transitions": [{"from_node_id": "b", "to_node_id": "x", "sibling_group": "g"},
            {"from_node_id": "b", "to_node_id": "y", "sibling_group": "g"},
            {"from_node_id": "x", "to_node_id": "j", "synchronization": join},
            {"from_node_id": "y", "to_node_id": "j", "synchronization": join}, {"from_node_id": "j", "to_node_id": "z"}],
    });
    let body = json!({"workflow": workflow});
    let mut session = open(&body);
    let why = why(&mut session);
    let set = |transition: u64| {
        let path = format!("/transitions/{transition}/synchronization/timeout_ms");
        json!({"op": "replace", "path": path, "value": 371})
    };
    assert_eq!(smallest(&why), json!([371, 370, [set(2), set(3)]]), "{why:#}");
    let export = crate::replay::export_of(&body, &session.view().expect("a view"));
    let changes = json!({"changes": why["change"]});
    let answer = crate::replay::try_what_if(&export, changes).expect("the patch is applied as it is");
    assert_eq!(answer["replayed"]["timeouts"], json!([]), "{answer:#}");
}

#[test]
fn a_signal_that_a_later_wait_took_came_late_for_this_one() {
    let wait = |id: &str, millis: u64| json!({"id": id, "wait": {"signal": "paid", "timeout_ms": millis, "on_timeout": "continue"}});
    let workflow = json!({"id": "w", "nodes": [wait("w", 200), wait("w2", 900)],
        "transitions": [{"from_node_id": "w", "to_node_id": "w2"}]});
    let mut session = open(&json!({"workflow": workflow, "signals": [{"name": "paid", "at": 500}]}));
    let why = why(&mut session);
    let change = json!([{"op": "replace", "path": "/nodes/0/wait/timeout_ms", "value": 501}]);
    assert_eq!(smallest(&why), json!([501, 500, change]), "{why:#}");
    assert!(reason(&why).contains("node \"w2\" took it"), "{why:#}");
}

#[test]
fn a_gate_that_was_open_while_the_run_waited_at_its_limit_leaves_the_limit_unknown() {
    let workflow = json!({
        "id": "w", "timeout_ms": 300, "clock": "runs", "on_timeout": "human_gate",
        "nodes": [{"id": "g", "gate": {}}, {"id": "s", "wait": {"sleep_ms": 100}}],
        "transitions": [{"from_node_id": "g", "to_node_id": "s"}],
    });
    let mut session = open(&json!({"workflow": workflow}));
    session.advance(&json!({"by": 500})).expect("time");
    let gate = |id: &str| Control::Gate { id: id.to_string() };
    control(&mut session, gate("g"), json!({"choice": "approve"}));
    control(
        &mut session,
        gate("timeout"),
        json!({"choice": "extend", "input": {"by_ms": 3_000}}),
    );
    let why = why(&mut session);
    assert_eq!(smallest(&why), json!([null, 300, null]), "{why:#}");
    assert!(
        reason(&why).contains("a gate was open while the run waited"),
        "{why:#}"
    );
}
