//! Longer and shorter limits.

use serde_json::{Value, json};

use super::{messages, outcome, recorded, set, what_if};
use crate::simulate::{chain, simulated};

/// A call that takes three seconds, under the limit `limit` of its node.
fn call_of_three_seconds(limit: &str) -> Value {
    let nodes = json!([{"id": "work", "action_id": "work", "timeout": limit}, {"id": "done"}]);
    recorded(json!({
        "workflow": chain(nodes, json!({})),
        "mocks": [{"node": "work", "after": "3s", "result": {"n": 7}}],
    }))
}

#[test]
fn an_unchanged_run_is_replayed_as_it_was() {
    for limit in ["10s", "2s"] {
        let answer = what_if(&call_of_three_seconds(limit), Value::Null);
        assert_eq!(answer["differences"], json!([]), "{limit}");
        assert_eq!(answer["unknown"], json!([]), "{limit}");
        assert_eq!(answer["recorded"], answer["replayed"], "{limit}");
    }
}

#[test]
fn an_answer_that_came_in_time_holds_under_a_limit_that_it_still_meets() {
    let export = call_of_three_seconds("10s");
    for limit in ["1h", "3001ms"] {
        let answer = what_if(&export, set("/nodes/0/timeout", limit));
        assert_eq!(outcome(&answer), ("completed", 3_000), "{limit}: {answer:#}");
        assert_eq!(answer["unknown"], json!([]));
    }
}

#[test]
fn an_answer_that_comes_too_late_for_a_shorter_limit_is_cut() {
    let answer = what_if(&call_of_three_seconds("10s"), set("/nodes/0/timeout", "2s"));
    assert_eq!(outcome(&answer), ("failed", 2_000));
    let found = messages(&answer, "differences");
    assert!(
        found.contains(&"the run would be failed instead of completed".into()),
        "{found:?}"
    );
    assert!(
        found.contains(&"node \"done\" would not be reached here".into()),
        "{found:?}"
    );
    assert_eq!(answer["replayed"]["timeouts"][0]["timeout_ms"], 2_000);
    // A deadline comes before a result at the same moment.
    let answer = what_if(&call_of_three_seconds("10s"), set("/nodes/0/timeout", "3s"));
    assert_eq!(outcome(&answer), ("failed", 3_000));
}

#[test]
fn the_same_limit_with_another_length_is_one_difference() {
    let export = call_of_three_seconds("2s");
    let answer = what_if(&export, set("/nodes/0/timeout", "1s"));
    let message = "the tool timeout at \"work\" would come after 1s instead of 2s";
    let expected = ["it would take 1s instead of 2s", message];
    assert_eq!(messages(&answer, "differences"), expected);
    let timeout = &answer["differences"][1];
    assert_eq!(
        (
            &timeout["recorded"]["timeout_ms"],
            &timeout["replayed"]["timeout_ms"]
        ),
        (&json!(2_000), &json!(1_000))
    );
    let answer = what_if(&export, set("/nodes/0/timeout", "5s"));
    assert_eq!(messages(&answer, "differences").len(), 0, "it stops before");
}

#[test]
fn what_a_call_would_have_answered_that_was_cut_is_not_known() {
    let answer = what_if(&call_of_three_seconds("2s"), set("/nodes/0/timeout", "5s"));
    assert_eq!(outcome(&answer), ("running", 2_000), "it stops there");
    let unknown = &answer["unknown"][0];
    assert_eq!(
        (&unknown["node_id"], &unknown["at_ms"]),
        (&json!("work"), &json!(2_000))
    );
    let why = messages(&answer, "unknown");
    assert!(
        why[0].contains("it had not answered when it was cut after 2s"),
        "{why:?}"
    );
    assert_eq!(
        answer["differences"],
        json!([]),
        "until then everything is as it was"
    );
}

#[test]
fn a_call_that_is_under_way_has_not_answered_yet() {
    let nodes = json!([{"id": "work", "action_id": "work", "timeout": "1m"}]);
    let once = json!({"retry_policy": {"max_attempts": 1}});
    let action = json!({"id": "work", "kind": "service_call", "execution": once, "implementation": {"binding": "PEER"}});
    let export = recorded(json!({
        "workflow": chain(nodes, json!({"actions": [action]})),
        "mocks": [{"node": "work", "after": "40s", "result": {}}],
        "until": "9s",
    }));
    assert_eq!(export["run"]["status"], "running");
    let answer = what_if(&export, Value::Null);
    assert_eq!(answer["recorded"], answer["replayed"]);
    let answer = what_if(&export, set("/nodes/0/timeout", "2m"));
    assert_eq!(outcome(&answer), ("running", 9_000));
    let why = messages(&answer, "unknown");
    assert!(
        why[0].contains("it had not answered when the run was exported"),
        "{why:?}"
    );
    // What would have ended it by then is known.
    let cut = what_if(&export, set("/nodes/0/timeout", "5s"));
    assert_eq!(outcome(&cut), ("failed", 5_000));
}

#[test]
fn the_limit_of_the_run_ends_what_it_did_not_end() {
    let export = call_of_three_seconds("10s");
    let changes = json!([
        {"op": "add", "path": "/timeout", "value": "1s"},
        {"op": "add", "path": "/on_timeout", "value": "fail"},
    ]);
    let answer = what_if(&export, changes);
    assert_eq!(outcome(&answer), ("failed", 1_000));
    assert_eq!(answer["replayed"]["timeouts"][0]["scope"], "flow");
}

#[test]
fn a_wait_takes_as_long_as_the_changed_document_says() {
    let export = recorded(
        json!({"workflow": chain(json!([{"id": "rest", "wait": {"sleep": "48h"}}]), json!({"timeout": null}))}),
    );
    let answer = what_if(&export, set("/nodes/0/wait/sleep", "5m"));
    assert_eq!(outcome(&answer), ("completed", 300_000));
    assert_eq!(
        messages(&answer, "differences"),
        ["it would take 5m0s instead of 48h0m0s"]
    );
}

#[test]
fn a_retry_that_is_not_made_leaves_the_rest_out() {
    let nodes = json!([{"id": "work", "action_id": "work", "timeout": "2s", "on_timeout": "retry", "max_retries": 2}]);
    let export = recorded(json!({
        "workflow": chain(nodes, json!({})),
        "mocks": [{"node": "work", "times": 2, "hang": true}, {"node": "work", "after": "1s", "result": {}}],
    }));
    assert_eq!(export["run"]["status"], "completed", "the third attempt answers");
    let unchanged = what_if(&export, Value::Null);
    assert_eq!(unchanged["recorded"], unchanged["replayed"]);
    let once = what_if(&export, set("/nodes/0/max_retries", 1));
    assert_eq!(outcome(&once).0, "failed");
    assert!(
        messages(&once, "differences")
            .contains(&"node \"work\" would be retried 1 times instead of 2".into())
    );
    let more = what_if(&export, set("/nodes/0/max_retries", 9));
    assert_eq!(more["recorded"]["tokens"], more["replayed"]["tokens"]);
}

#[test]
fn a_called_workflow_lasts_as_long_as_it_did() {
    let child = json!({"id": "child", "nodes": [{"id": "rest", "wait": {"sleep": "1m"}}], "transitions": []});
    let nodes = json!([{"id": "call", "workflow_id": "child", "timeout": "5m"}]);
    let export = recorded(json!({"workflow": chain(nodes, json!({})), "documents": {"workflows": [child]}}));
    let unchanged = what_if(&export, Value::Null);
    assert_eq!(unchanged["recorded"], unchanged["replayed"]);
    assert_eq!(
        outcome(&what_if(&export, set("/nodes/0/timeout", "2m"))),
        ("completed", 60_000)
    );
    assert_eq!(
        outcome(&what_if(&export, set("/nodes/0/timeout", "30s"))),
        ("failed", 30_000)
    );
}

#[test]
fn a_called_workflow_that_is_cut_ends_with_the_error_of_its_limit() {
    let child = json!({"id": "child", "nodes": [{"id": "rest", "wait": {"sleep": "1m"}}], "transitions": []});
    let nodes = json!([{"id": "call", "workflow_id": "child", "timeout": "5m", "on_failure": "catch"}]);
    let mut body = json!({
        "workflow": chain(nodes, json!({"output_mapping": "${state.call.error}"})),
        "documents": {"workflows": [child]},
    });
    let cut = what_if(&recorded(body.clone()), set("/nodes/0/timeout", "30s"));
    assert_eq!(outcome(&cut), ("completed", 30_000));
    body["workflow"]["nodes"][0]["timeout"] = json!("30s");
    assert_eq!(cut["replayed"]["output"], simulated(body)["run"]["output"]);
    assert_eq!(cut["replayed"]["output"]["code"], "workflow_timeout");
}

/// Its clock and that of the node that calls it stop meanwhile.
#[test]
fn a_called_workflow_that_waits_for_a_person_is_not_cut_meanwhile() {
    let child = chain(
        json!([{"id": "before", "wait": {"sleep": "10s"}}, {"id": "ask", "gate": {}}, {"id": "rest", "wait": {"sleep": "1m"}}]),
        json!({"id": "child"}),
    );
    let nodes = json!([{"id": "call", "workflow_id": "child", "timeout": "1h"}]);
    let mut body = json!({
        "workflow": chain(nodes, json!({})), "documents": {"workflows": [child]},
        "people": [{"gate": "ask", "after": "5h", "choice": "approve"}],
    });
    let export = recorded(body.clone());
    for limit in ["2m", "30s", "5s"] {
        let answer = what_if(&export, set("/nodes/0/timeout", limit));
        body["workflow"]["nodes"][0]["timeout"] = json!(limit);
        if limit == "5s" {
            body["people"] = json!([]);
        }
        let simulated = simulated(body.clone());
        let expected = (&simulated["run"]["status"], &simulated["virtual_ms"]);
        let replayed = &answer["replayed"];
        assert_eq!(
            (&replayed["status"], &replayed["duration_ms"]),
            expected,
            "{limit}"
        );
        assert_eq!(answer["unknown"], json!([]));
    }
}

/// It ends after its end handlers, or not before the limit of its node has passed.
#[test]
fn a_called_workflow_that_is_cut_and_has_more_to_do_is_not_known() {
    let rest = json!([{"id": "rest", "wait": {"sleep": "1m"}}]);
    let tells = json!({"id": "tells", "nodes": rest, "on_end": [{"action_id": "work"}]});
    let calls = json!({"id": "calls", "nodes": [{"id": "inner", "workflow_id": "tells"}]});
    let mut undoes = chain(
        json!([{"id": "book", "action_id": "work", "compensate": {"action_id": "work"}}, rest[0]]),
        json!({}),
    );
    undoes["id"] = json!("undoes");
    for (id, child) in [("tells", &tells), ("calls", &calls), ("undoes", &undoes)] {
        let mut child = child.clone();
        child["actions"] =
            json!([{"id": "work", "kind": "service_call", "implementation": {"binding": "PEER"}}]);
        let mut inner = tells.clone();
        inner["actions"] = child["actions"].clone();
        let documents = if id == "tells" {
            json!([child])
        } else {
            json!([child, inner])
        };
        let nodes = json!([{"id": "call", "workflow_id": id, "timeout": "5m", "on_failure": "catch"}]);
        let export = recorded(json!({
            "workflow": chain(nodes, json!({})), "documents": {"workflows": documents},
            "mocks": [{"action": "work", "result": 1}],
        }));
        let cut = what_if(&export, set("/nodes/0/timeout", "30s"));
        assert_eq!(cut["unknown"][0]["at_ms"], 30_000, "{id}: {cut:#}");
        assert!(messages(&cut, "unknown")[0].contains("end handlers"), "{id}");
        let long = what_if(&export, set("/nodes/0/timeout", "2m"));
        assert_eq!(
            (outcome(&long), &long["unknown"]),
            (("completed", 60_000), &json!([])),
            "{id}"
        );
    }
}

/// The record of a timeout names the step, and so does the error.
#[test]
fn a_limit_that_cuts_a_task_of_several_steps_names_the_step() {
    let steps = json!([{"ref": "one", "action_id": "work"}, {"ref": "two", "action_id": "work"}]);
    let mut workflow = chain(
        json!([{"id": "both", "task_id": "both", "timeout": "1m"}]),
        json!({}),
    );
    workflow["tasks"] = json!([{"id": "both", "steps": steps}]);
    let mut body = json!({"workflow": workflow, "mocks": [{"step": "one", "after": "2s", "result": 1}, {"step": "two", "after": "3s", "result": 2}]});
    let export = recorded(body.clone());
    for (limit, step) in [("1s", "one"), ("4s", "two")] {
        let cut = what_if(&export, set("/nodes/0/timeout", limit));
        body["workflow"]["nodes"][0]["timeout"] = json!(limit);
        let (replayed, simulated) = (
            &cut["replayed"]["error"],
            &simulated(body.clone())["run"]["error"],
        );
        assert_eq!(replayed, simulated);
        assert_eq!(replayed["step_ref"], step);
        // That of the task is kept by the executor, beside a longer one of the node.
        let cut = what_if(&export, set("/tasks/0/timeout", limit));
        let passed = &cut["replayed"]["timeouts"][0]["timeout_ms"];
        assert_eq!(
            passed,
            if step == "one" { 1_000 } else { 4_000 },
            "not that of a step: {cut:#}"
        );
    }
}

#[test]
fn a_run_without_any_deadline_goes_on_until_it_was_exported() {
    let wait = json!([{"id": "wait", "wait": {"signal": "paid"}}]);
    for timeout in [Value::Null, json!("24h")] {
        let workflow = chain(wait.clone(), json!({"timeout": timeout}));
        let mut export = recorded(json!({"workflow": workflow, "until": "9s"}));
        export["run"]["duration_ms"] = json!(9_000);
        let answer = what_if(&export, Value::Null);
        assert_eq!(answer["differences"], json!([]), "{timeout}");
        assert_eq!(outcome(&answer), ("waiting", 9_000));
    }
}
