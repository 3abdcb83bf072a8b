//! Fields that cannot mean anything where they stand are refused, and names that no request can name. Documents that earlier builds
//! stored may have them.

use curfew::definition::problem::Problems;
use curfew::definition::snapshot::{DocumentKind, Library};
use curfew::definition::task::Task;
use curfew::definition::workflow::Workflow;
use serde_json::{Value, json};

use super::documents::{expect, problems_of};

fn with_join(more: Value) -> Value {
    let mut join = json!({"sibling_group": "t1", "merge": {"target": "state.all"}});
    for (name, field) in more.as_object().into_iter().flatten() {
        join[name] = field.clone();
    }
    json!({"id": "w", "nodes": [{"id": "a"}, {"id": "b"}, {"id": "c"}], "transitions": [
        {"from_node_id": "a", "to_node_id": "b", "spawn_count": 2},
        {"from_node_id": "b", "to_node_id": "c", "synchronization": join}]})
}

fn one(node: Value) -> Value {
    json!({"id": "w", "nodes": [node]})
}

fn looped(config: Value) -> Value {
    json!({"id": "w", "timeout": "1h", "nodes": [{"id": "a", "wait": {"sleep": "1s"}}, {"id": "b"}], "transitions": [
        {"from_node_id": "a", "to_node_id": "a", "condition": "input.again", "loop_config": config},
        {"from_node_id": "a", "to_node_id": "b", "priority": 1}]})
}

fn refused() -> Vec<(Value, &'static str)> {
    let handled =
        |on: Value| json!({"id": "w", "nodes": [{"id": "a"}], "on_end": [{"workflow_id": "w", "on": on}]});
    let triggered = |trigger: Value| json!({"id": "w", "nodes": [{"id": "a"}], "trigger": trigger});
    vec![
        (
            triggered(json!({"event": "x", "timezone": "UTC"})),
            "/trigger/timezone unknown_field: \"timezone\" means nothing here",
        ),
        (
            triggered(json!({"event": ".."})),
            "/trigger/event invalid_id: no request can name \"..\"",
        ),
        (
            one(json!({"id": "a", "wait": {"signal": "."}})),
            "/nodes/0/wait/signal invalid_id: no request can name \".\"",
        ),
        (
            one(json!({"id": "a", "gate": {"timeout": "1h"}, "timeout": "2h"})),
            "/nodes/0/timeout unknown_field: \"timeout\" means nothing here: the gate has a \"timeout\" of its own",
        ),
        (
            one(json!({"id": "a", "gate": {"timeout_ms": null}, "timeout_ms": 5000})),
            "/nodes/0/timeout_ms unknown_field",
        ),
        (
            with_join(json!({"strategy": {"m_of_n": 1}, "on_branch_failure": "fail"})),
            "/transitions/1/synchronization/on_branch_failure unknown_field: \"on_branch_failure\" means nothing here: only the strategy \"all\"",
        ),
        (
            with_join(json!({"strategy": "any", "on_branch_failure": "fail"})),
            "/transitions/1/synchronization/on_branch_failure unknown_field",
        ),
        (
            looped(json!({})),
            "/transitions/0/loop_config/max_iterations missing_field",
        ),
        (handled(json!([])), "/on_end/0/on empty_list: no end is named"),
        (
            json!({"id": "w", "nodes": [{"id": "a"}], "compensation": {"on": []}}),
            "/compensation/on empty_list",
        ),
        (
            json!({"id": "w", "nodes": [{"id": "a"}], "timeout": "0.5ms"}),
            "/timeout out_of_range: \"0.5ms\" is shorter than 1ms",
        ),
        (
            json!({"id": "w", "nodes": [{"id": "a"}], "timeout": "0s"}),
            "/timeout out_of_range",
        ),
    ]
}

fn named(kind: &str, implementation: Value, execution: Value) -> Value {
    json!({"id": "a", "kind": kind, "implementation": implementation, "execution": execution})
}

#[test]
fn what_means_nothing_is_refused() {
    for (document, problem) in refused() {
        expect(DocumentKind::Workflows, document, &[problem]);
    }
    let action = json!({"kind": "service_call", "implementation": {"binding": "PEER"}});
    expect(
        DocumentKind::Tasks,
        json!({"id": "t", "steps": [{"action": action, "action_version": 2}]}),
        &["/steps/0/action_version unknown_field: \"action_version\" means nothing here"],
    );
    expect(
        DocumentKind::Actions,
        named(
            "service_call",
            json!({"binding": "PEER"}),
            json!({"breaker": ".."}),
        ),
        &["/execution/breaker invalid_id: no request can name \"..\""],
    );
    expect(
        DocumentKind::Actions,
        named("emit_event", json!({"name": "."}), json!({})),
        &["/implementation/name invalid_id: no request can name \".\""],
    );
}

#[test]
fn what_means_something_is_accepted() {
    for document in [
        one(json!({"id": "a", "gate": {}, "timeout": "2h"})),
        one(json!({"id": "a", "gate": {"timeout": "2h"}})),
        one(json!({"id": "a", "wait": {"signal": "..."}})),
        with_join(json!({"on_branch_failure": "proceed_with_available"})),
        with_join(json!({"strategy": "all", "on_branch_failure": "fail"})),
        looped(json!({"max_iterations": 3})),
        json!({"id": "w", "nodes": [{"id": "a", "wait": {"sleep": "1.5ms"}}]}),
    ] {
        expect(DocumentKind::Workflows, document, &[]);
    }
}

#[test]
fn what_is_stored_already_can_still_be_read() {
    // Earlier builds refused a duration that is rounded to nothing, too.
    let stored = refused()
        .into_iter()
        .filter(|(document, _)| document["timeout"] != "0s");
    for (document, _) in stored {
        let problems = Problems::prechecked();
        assert!(Workflow::read(&document, &problems).is_some(), "{document}");
        assert!(!problems.has_errors(), "{document}: {problems:?}");
    }
    for (action, more) in [
        (named("emit_event", json!({"name": ".."}), json!({})), json!({})),
        (
            named(
                "service_call",
                json!({"binding": "PEER"}),
                json!({"breaker": "."}),
            ),
            json!({"action_version": 2}),
        ),
    ] {
        let mut step = json!({"action": action});
        for (name, field) in more.as_object().into_iter().flatten() {
            step[name] = field.clone();
        }
        let problems = Problems::prechecked();
        let task = Task::read(&json!({"id": "t", "steps": [step]}), "", &problems);
        assert!(task.is_some() && !problems.has_errors(), "{problems:?}");
    }
}

/// What is wrong with a list is not followed by a problem that it is empty.
#[test]
fn a_wrong_list_is_one_problem() {
    expect(
        DocumentKind::Workflows,
        one(json!({"id": "a", "gate": {"choices": [""]}})),
        &["/nodes/0/gate/choices/0 wrong_type: a choice is a string"],
    );
    expect(
        DocumentKind::Workflows,
        json!({"id": "w", "nodes": {}}),
        &["/nodes wrong_type: expected an array"],
    );
    expect(
        DocumentKind::Tasks,
        json!({"id": "t", "steps": {}}),
        &["/steps wrong_type: expected an array"],
    );
}

#[test]
fn a_problem_of_the_whole_document_has_no_empty_place() {
    let problems = problems_of(DocumentKind::Workflows, &Value::Null, &Library::new());
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["expected an object, found null"]);
}

/// A document of a hundred nodes with the same mistake says once what a node may have.
#[test]
fn known_fields_are_listed_once_for_each_kind_of_object() {
    let nodes: Vec<Value> = (0..3)
        .map(|number| json!({"id": format!("n{number}"), "colour": 1, "size": 2}))
        .collect();
    let action = json!({"id": "a", "kind": "service_call", "implementation": {"binding": "PEER", "zzz": 1}});
    let step = json!({"action_id": "a", "zzz": 1});
    let document = json!({"id": "w", "zzz": 1, "nodes": nodes, "tasks": [{"id": "t", "steps": [step]}], "actions": [action],
        "transitions": [{"from_node_id": "n0", "to_node_id": "n1"}, {"from_node_id": "n1", "to_node_id": "n2"}]});
    let problems = problems_of(DocumentKind::Workflows, &document, &Library::new());
    let listed: Vec<&str> = problems
        .iter()
        .filter(|problem| problem.message.contains("(known: "))
        .map(|problem| problem.pointer.as_str())
        .collect();
    assert_eq!(
        listed,
        [
            "/actions/0/implementation/zzz",
            "/nodes/0/colour",
            "/tasks/0/steps/0/zzz",
            "/zzz"
        ]
    );
    assert_eq!(problems.len(), 9, "{problems:?}");
}
