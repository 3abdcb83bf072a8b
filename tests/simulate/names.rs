//! Names that the workflow does not have, and decisions that it refuses: each is an error at its place in the body.

use serde_json::{Value, json};

use super::{chain, simulated, try_simulate};

fn body() -> Value {
    let workflow = chain(
        json!([
            {"id": "reserve", "action_id": "work", "compensate": {"action_id": "work"}},
            {"id": "ask", "gate": {"timeout": "1h", "input_schema": {"required": ["why"]}}},
            {"id": "paid", "wait": {"signal": "payment"}},
            {"id": "ship", "workflow_id": "shipping"},
        ]),
        json!({"on_end": [{"action_id": "work"}]}),
    );
    let mut shipping = chain(json!([{"id": "pack", "action_id": "work"}]), json!({}));
    shipping["id"] = json!("shipping");
    json!({
        "workflow": workflow, "documents": {"workflows": [shipping]},
        "mocks": [{"action": "work", "result": {}}],
        "people": [{"gate": "ask", "choice": "approve", "input": {"why": "yes"}}],
        "signals": [{"name": "payment", "at": "1m"}],
    })
}

#[track_caller]
fn refusal(body: &Value) -> (String, String) {
    let error = try_simulate(body).expect_err("it is refused");
    assert_eq!(error.status, 422, "{}", error.message);
    (error.pointer.unwrap_or_default(), error.message)
}

#[test]
fn names_of_the_workflow_and_of_those_it_calls_are_known() {
    let mut body = body();
    for mock in [
        json!({"node": "pack", "result": {}}),
        json!({"node": "reserve~compensate", "result": {}}),
        json!({"node": "on_end~1", "result": {}}),
        json!({"node": "ship", "step": "work", "times": 0, "result": {}}),
    ] {
        body["mocks"].as_array_mut().expect("a list").push(mock);
    }
    body["people"]
        .as_array_mut()
        .expect("a list")
        .push(json!({"gate": "timeout", "choice": "abort"}));
    assert_eq!(simulated(body)["run"]["status"], "completed");
}

#[test]
fn a_name_that_nothing_has_is_refused_with_the_nearest() {
    for (place, value, pointer, message) in [
        (
            "mocks",
            json!({"node": "reserv", "result": {}}),
            "/mocks/1/node",
            "the workflow has no node \"reserv\"; did you mean \"reserve\"? (known: ask, on_end~1, pack, paid, reserve, reserve~compensate, ship)",
        ),
        (
            "mocks",
            json!({"action": "wrok", "result": {}}),
            "/mocks/1/action",
            "the workflow has no action \"wrok\"; did you mean \"work\"? (known: work)",
        ),
        (
            "mocks",
            json!({"node": "pack", "step": "bind", "result": {}}),
            "/mocks/1/step",
            "the workflow has no step \"bind\" (known: work)",
        ),
        (
            "people",
            json!({"gate": "timeuot", "choice": "abort"}),
            "/people/1/gate",
            "the workflow has no gate \"timeuot\"; did you mean \"timeout\"? (known: ask, on_end~1, pack, paid, reserve, reserve~compensate, ship, timeout)",
        ),
        (
            "signals",
            json!({"name": "paymnt"}),
            "/signals/1/name",
            "the workflow has no signal \"paymnt\"; did you mean \"payment\"? (known: payment)",
        ),
    ] {
        let mut body = body();
        body[place].as_array_mut().expect("a list").push(value);
        assert_eq!(refusal(&body), (pointer.to_string(), message.to_string()));
    }
}

#[test]
fn a_decision_that_the_gate_refuses_is_an_error_at_its_place() {
    let mut body = body();
    body["people"][0]["choice"] = json!("perhaps");
    let (pointer, message) = refusal(&body);
    assert_eq!(pointer, "/people/0", "{message}");
    assert!(message.contains("was refused"), "{message}");
}

#[test]
fn a_document_that_is_there_twice_is_refused() {
    let mut body = body();
    let workflows = body["documents"]["workflows"].as_array_mut().expect("a list");
    workflows.push(workflows[0].clone());
    let (pointer, message) = refusal(&body);
    assert_eq!(pointer, "/documents/workflows/1/id");
    assert!(
        message.contains("version 1 of \"shipping\" is in the list twice"),
        "{message}"
    );
}

/// Also where it comes first.
#[test]
fn without_a_version_the_newest_document_is_meant() {
    for newest_first in [true, false] {
        let mut body = body();
        let workflows = body["documents"]["workflows"].as_array_mut().expect("a list");
        let mut newer = chain(json!([{"id": "carry", "action_id": "work"}]), json!({}));
        newer["id"] = json!("shipping");
        newer["version"] = json!(2);
        workflows.insert(if newest_first { 0 } else { 1 }, newer);
        let answer = simulated(body);
        assert_eq!(answer["children"][0]["tokens"][0]["node_id"], "carry");
    }
}
