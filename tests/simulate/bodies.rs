//! What a body may say, and what is refused.

use serde_json::{Value, json};

use super::{chain, refused, simulated, try_simulate};

#[track_caller]
fn check(more: Value, status: u16, expected: &str) {
    let mut body = json!({"workflow": chain(json!([{"id": "a"}]), json!({}))});
    for (key, value) in more.as_object().into_iter().flatten() {
        body[key] = value.clone();
    }
    let (found, code, message) = refused(body);
    assert_eq!(found, status, "{code}: {message}");
    assert!(message.contains(expected), "{message}");
}

#[test]
fn unknown_fields_are_refused_with_the_known_ones() {
    check(json!({"mock": []}), 400, "did you mean \"mocks\"?");
    check(
        json!({"mocks": [{"node": "a", "results": 1}]}),
        400,
        "(known: node, action, step, after, partial, times, fail, hang, result)",
    );
    check(
        json!({"people": [{"gate": "a", "choise": "x"}]}),
        400,
        "did you mean \"choice\"?",
    );
    check(
        json!({"signals": [{"name": "a", "when": 1}]}),
        400,
        "(known: name, at, payload)",
    );
    check(json!({"faults": {"crash": 1}}), 400, "crash_before_commit");
    check(
        json!({"documents": {"flows": []}}),
        400,
        "(known: workflows, tasks, actions)",
    );
}

#[test]
fn wrong_values_are_refused() {
    check(
        json!({"mocks": [{"result": 1}]}),
        422,
        "say which calls it answers",
    );
    check(json!({"mocks": [{"node": "a"}]}), 422, "write one of");
    check(
        json!({"mocks": [{"node": "a", "result": 1, "hang": true}]}),
        422,
        "write one of",
    );
    check(
        json!({"mocks": [{"node": "a", "fail": "broken"}]}),
        422,
        "\"broken\" is no class",
    );
    check(json!({"mocks": [{"node": "a", "fail": {}}]}), 422, "class");
    check(
        json!({"mocks": [{"node": "a", "result": 1, "after": "soon"}]}),
        422,
        "invalid duration",
    );
    check(json!({"start_at": "tomorrow"}), 422, "is no moment");
    check(json!({"workflow_id": "flow"}), 422, "not both");
    check(json!({"seed": -1}), 422, "must not be negative");
    check(json!({"faults": {"lost": 101}}), 422, "outside 0 to 100");
    check(json!({"workflow": {"id": "flow"}}), 422, "problem");
    check(
        json!({"signals": vec![json!({"name": "go"}); 1_001]}),
        422,
        "at most 1000",
    );
    let (status, _, message) = refused(json!({}));
    assert_eq!(
        (status, message.contains("write the document of a workflow here")),
        (422, true)
    );
    let (status, code, _) = refused(json!({"workflow_id": "flow"}));
    assert_eq!((status, code), (404, "not_found"));
}

#[test]
fn a_workflow_by_its_id_is_one_of_the_documents() {
    let workflow = chain(json!([{"id": "a"}]), json!({}));
    let answer = simulated(json!({"workflow_id": "flow", "documents": {"workflows": [workflow]}}));
    assert_eq!(answer["run"]["status"], "completed");
}

#[test]
fn the_input_fits_its_schema() {
    let workflow = chain(
        json!([{"id": "a"}]),
        json!({"input_schema": {"required": ["name"]}}),
    );
    let error = try_simulate(&json!({"workflow": workflow})).expect_err("no name");
    assert_eq!((error.status, error.code), (422, "invalid_input"));
}

#[test]
fn the_same_body_has_the_same_answer() {
    let action = json!({"id": "work", "kind": "service_call", "implementation": {"binding": "PEER"},
        "execution": {"retry_policy": {"max_attempts": 6, "initial_delay": "10s"}}});
    let workflow = chain(
        json!([{"id": "a", "action_id": "work"}]),
        json!({"actions": [action]}),
    );
    let body = |seed: u64| {
        json!({"workflow": workflow, "seed": seed,
            "mocks": [{"node": "a", "times": 4, "fail": "server_error"}, {"node": "a", "result": 1}]})
    };
    assert_eq!(simulated(body(1)), simulated(body(1)));
    assert_ne!(
        simulated(body(1))["virtual_ms"],
        simulated(body(2))["virtual_ms"],
        "jitter"
    );
}
