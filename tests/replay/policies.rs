//! Other policies, routes and tasks.

use serde_json::{Value, json};

use super::{messages, outcome, recorded, set, try_what_if, what_if};
use crate::simulate::chain;

/// Three branches that take one, two and thirty seconds, and their join, which waits four seconds.
fn three_branches() -> Value {
    let workflow = json!({
        "id": "fan", "timeout": "1h",
        "actions": [{"id": "work", "kind": "service_call", "implementation": {"binding": "PEER"}}],
        "nodes": [{"id": "split"}, {"id": "work", "action_id": "work", "timeout": "1m"}, {"id": "join"}],
        "transitions": [
            {"id": "out", "from_node_id": "split", "to_node_id": "work", "spawn_count": 3},
            {"from_node_id": "work", "to_node_id": "join", "synchronization": {
                "strategy": "all", "sibling_group": "out", "timeout": "4s", "on_timeout": "proceed_with_available",
                "merge": {"target": "state.all", "strategy": "append"}}},
        ],
    });
    recorded(json!({
        "workflow": workflow,
        "mocks": [
            {"node": "work", "times": 1, "after": "1s", "result": 1},
            {"node": "work", "times": 1, "after": "2s", "result": 2},
            {"node": "work", "times": 1, "after": "30s", "result": 3},
        ],
    }))
}

const JOIN: &str = "/transitions/1/synchronization";

#[test]
fn a_join_with_another_strategy_goes_on_when_that_is_met() {
    let export = three_branches();
    assert_eq!(export["run"]["status"], "completed");
    let unchanged = what_if(&export, Value::Null);
    assert_eq!(
        (&unchanged["differences"], &unchanged["unknown"]),
        (&json!([]), &json!([]))
    );
    let any = what_if(&export, set(&format!("{JOIN}/strategy"), "any"));
    assert_eq!(outcome(&any), ("completed", 1_000), "{any:#}");
    let fails = what_if(&export, set(&format!("{JOIN}/on_timeout"), "fail"));
    assert_eq!(outcome(&fails), ("failed", 5_000));
}

#[test]
fn a_branch_that_the_join_did_not_wait_for_is_not_known() {
    let answer = what_if(&three_branches(), set(&format!("{JOIN}/timeout"), "10s"));
    assert_eq!(answer["unknown"][0]["node_id"], "work");
    assert_eq!(answer["unknown"][0]["at_ms"], 5_000);
    assert!(messages(&answer, "unknown")[0].contains("something else had ended it"));
}

#[test]
fn another_route_leads_to_calls_that_are_not_recorded() {
    let nodes = json!([{"id": "first", "action_id": "work"}, {"id": "second", "action_id": "work"}, {"id": "third", "action_id": "work"}]);
    let export = recorded(
        json!({"workflow": chain(nodes, json!({})), "mocks": [{"action": "work", "after": "1s", "result": {}}]}),
    );
    let skips = what_if(&export, set("/transitions/0/to_node_id", "third"));
    assert_eq!(outcome(&skips), ("completed", 2_000), "its answer is recorded");
    let again = what_if(
        &export,
        json!([{"op": "add", "path": "/transitions/-", "value": {"from_node_id": "third", "to_node_id": "second", "loop_config": {"max_iterations": 1}}}]),
    );
    assert_eq!(again["unknown"][0]["node_id"], "second");
    assert!(messages(&again, "unknown")[0].contains("did not make this call"));
}

/// Its result comes by a callback, which the recording has.
#[test]
fn another_async_action_may_have_answered_something_else() {
    let mut workflow = chain(
        json!([{"id": "first", "action_id": "work", "timeout": "1m"}]),
        json!({}),
    );
    workflow["actions"][0]["execution"] = json!({"mode": "async"});
    let export = recorded(
        json!({"workflow": workflow, "mocks": [{"node": "first", "after": "5s", "result": {"n": 7}}]}),
    );
    assert_eq!(outcome(&what_if(&export, Value::Null)), ("completed", 5_000));
    let longer = what_if(&export, set("/nodes/0/timeout", "2m"));
    assert_eq!(
        (outcome(&longer), &longer["unknown"]),
        (("completed", 5_000), &json!([]))
    );
    let other = what_if(&export, set("/actions/0/implementation/binding", "OTHER"));
    assert!(
        messages(&other, "unknown")[0].contains("its task is another one"),
        "{other:#}"
    );
}

#[test]
fn another_called_workflow_may_have_ended_otherwise() {
    let child = |id: &str, sleep: &str| json!({"id": id, "nodes": [{"id": "rest", "wait": {"sleep": sleep}}], "output_mapping": id});
    let nodes = json!([{"id": "one", "workflow_id": "short"}, {"id": "two", "workflow_id": "long"}]);
    let mut short = child("short", "1m");
    short["nodes"][0] = json!({"id": "check", "task_id": "check", "task_version": 3});
    let pass = json!({"kind": "assert", "implementation": {"condition": "true"}});
    let task = json!({"id": "check", "version": 3, "steps": [{"action": pass}]});
    let export = recorded(json!({
        "workflow": chain(nodes, json!({"output_mapping": ["${state.one}", "${state.two}"]})),
        "documents": {"workflows": [short, child("long", "1h")], "tasks": [task]},
    }));
    let unchanged = what_if(&export, Value::Null);
    assert_eq!(
        (&unchanged["differences"], &unchanged["unknown"]),
        (&json!([]), &json!([]))
    );
    let other = what_if(&export, set("/nodes/0/workflow_id", "long"));
    assert_eq!(other["unknown"][0]["node_id"], "one", "{other:#}");
    assert!(messages(&other, "unknown")[0].contains("another workflow than in the recording"));
    let named = what_if(&export, set("/nodes/0/description", "The first one."));
    assert_eq!(named["unknown"], json!([]));
}

/// What a call answers is assumed to be the same for another input. What a task computes with it is not.
#[test]
fn a_task_that_computes_with_another_input_is_not_known() {
    let double = json!({"kind": "update_context", "implementation": {"set": {"total": "${input.n * 2}"}}});
    let ask = json!({"ref": "ask", "action_id": "work"});
    let steps = json!([ask, {"ref": "double", "action": double}]);
    let mut workflow = chain(
        json!([
            {"id": "call", "action_id": "work"},
            {"id": "compute", "task_id": "compute", "input_mapping": {"n": "${input.n}"}},
        ]),
        json!({"output_mapping": "${state.compute.total}"}),
    );
    workflow["tasks"] = json!([{"id": "compute", "steps": steps}]);
    let export = recorded(json!({
        "workflow": workflow, "input": {"n": 5},
        "mocks": [{"action": "work", "after": "1s", "result": {}}],
    }));
    let with = |input: Value| try_what_if(&export, json!({"input": input})).expect("it is replayed");
    let same = with(json!({"n": 5, "other": true}));
    assert_eq!(
        (&same["replayed"]["output"], &same["unknown"]),
        (&json!(10), &json!([])),
        "the node takes only what is the same"
    );
    let other = with(json!({"n": 6}));
    assert_eq!(other["unknown"][0]["node_id"], "compute", "{other:#}");
    assert_eq!(
        other["unknown"][0]["at_ms"], 1_000,
        "the call before it answers as it did"
    );
    assert!(messages(&other, "unknown")[0].contains("the task computes with it"));
}

#[test]
fn another_task_may_have_answered_something_else() {
    let nodes = json!([{"id": "first", "action_id": "work"}]);
    let export = recorded(
        json!({"workflow": chain(nodes, json!({})), "mocks": [{"action": "work", "after": "1s", "result": {}}]}),
    );
    let other = what_if(&export, set("/actions/0/implementation/binding", "OTHER"));
    assert!(messages(&other, "unknown")[0].contains("its task is another one"));
    // Only its limit is another one, and the one call that it made meets it.
    let limited = what_if(&export, set("/actions/0/execution", json!({"timeout": "2s"})));
    assert_eq!(outcome(&limited), ("completed", 1_000));
    let cut = what_if(&export, set("/actions/0/execution", json!({"timeout": "500ms"})));
    assert!(
        messages(&cut, "unknown")[0].contains("it would be cut"),
        "{cut:#}"
    );
}

#[test]
fn conditions_see_the_changed_input() {
    let more = json!({"on_no_match": "end"});
    let mut workflow = chain(json!([{"id": "a"}, {"id": "b"}]), more);
    workflow["transitions"][0]["condition"] = json!("input.go");
    let export = recorded(json!({"workflow": workflow, "input": {"go": true}}));
    let stays = try_what_if(&export, json!({"input": {"go": false}})).expect("it is replayed");
    let found = messages(&stays, "differences");
    assert!(
        found.contains(&"node \"b\" would not be reached here".into()),
        "{found:?}"
    );
    assert_eq!(stays["replayed"]["tokens"].as_array().map(Vec::len), Some(1));
}
