//! One call, a gate, a signal, a child, and what is missing.

use serde_json::json;

use super::{path_of, simulated, try_simulate};

#[test]
fn a_call_is_answered_by_its_mock() {
    let answer = simulated(json!({
        "workflow": {
            "id": "order",
            "actions": [{"id": "charge", "kind": "http_request",
                "implementation": {"method": "POST", "url": "https://pay.example/${input.id}", "body": {"amount": "${input.amount}"}}}],
            "nodes": [{"id": "pay", "action_id": "charge"}, {"id": "done"}],
            "transitions": [{"from_node_id": "pay", "to_node_id": "done"}],
            "output_mapping": {"paid": "${state.pay.body.paid}"}
        },
        "input": {"id": "o1", "amount": 7},
        "mocks": [{"node": "pay", "after": "2s", "result": {"status": 200, "headers": {}, "body": {"paid": true}}}],
    }));
    assert_eq!(answer["run"]["status"], "completed", "{answer:#}");
    assert_eq!(answer["run"]["output"], json!({"paid": true}));
    assert_eq!(path_of(&answer), "pay completed, done completed");
    assert_eq!(answer["virtual_ms"], 2_000);
    assert_eq!(answer["calls"][0]["request"]["url"], "https://pay.example/o1");
    assert_eq!(answer["calls"][0]["request"]["body"], json!({"amount": 7}));
}

#[test]
fn a_call_without_a_mock_is_an_error_with_the_mock_to_add() {
    let error = try_simulate(&json!({
        "workflow": {
            "id": "order",
            "actions": [{"id": "charge", "kind": "service_call", "implementation": {"binding": "PEER"}}],
            "nodes": [{"id": "pay", "action_id": "charge"}],
            "transitions": []
        },
    }))
    .expect_err("no mock");
    assert_eq!((error.status, error.code), (422, "no_mock"));
    assert!(
        error
            .message
            .contains(r#"node "pay" makes a service_call of action "charge""#),
        "{}",
        error.message
    );
    assert!(error.message.contains(r#"{"node":"pay","#), "{}", error.message);
}
