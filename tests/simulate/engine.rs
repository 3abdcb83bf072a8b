//! The engine as a function of texts, as its wasm exports it. Its answers are compared with those of the wasm by
//! `engine/engine.test.mjs`.

use curfew::engine::call;
use serde_json::{Value, json};

use super::chain;

fn answer(request: &Value) -> Value {
    serde_json::from_str(&call(&request.to_string())).expect("an answer is JSON")
}

#[test]
fn a_document_is_checked_and_resolved() {
    let document = chain(json!([{"id": "a", "action_id": "work"}]), json!({}));
    let checked = answer(&json!({"op": "check", "document": document}));
    assert!(checked["ok"]["problems"].is_array(), "{checked}");
    let wrong = answer(&json!({"op": "check", "document": {"id": "flow", "nodes": []}}));
    assert_eq!(wrong["ok"]["problems"][0]["severity"], "error", "{wrong}");
    let resolved = answer(&json!({"op": "resolve", "document": document}));
    assert_eq!(
        resolved["ok"]["tasks"][0]["steps"][0]["ref"], "work",
        "{resolved}"
    );
    let task = answer(&json!({"op": "check", "kind": "tasks", "document": {"id": "t", "steps": []}}));
    assert!(task["ok"]["problems"].is_array(), "{task}");
}

#[test]
fn a_simulation_is_the_answer_of_the_api() {
    let document = chain(json!([{"id": "a", "wait": {"sleep": "23h"}}]), json!({}));
    let simulated = answer(&json!({"op": "simulate", "workflow": document}));
    assert_eq!(simulated["ok"]["virtual_ms"], 82_800_000, "{simulated}");
}

#[test]
fn what_is_no_request_is_refused() {
    for (request, status) in [
        ("", 400),
        ("[]", 400),
        ("{\"op\": \"explode\"}", 400),
        ("{\"op\": \"simulate\"}", 422),
        ("{\"op\": \"check\", \"kind\": \"plans\"}", 422),
        (
            "{\"op\": \"check\", \"document\": {}, \"documents\": {\"more\": 1}}",
            400,
        ),
    ] {
        let answer: Value = serde_json::from_str(&call(request)).expect("an answer is JSON");
        assert_eq!(answer["error"]["status"], status, "{request}: {answer}");
        assert!(answer["error"]["message"].is_string());
    }
    let large = " ".repeat(curfew::engine::REQUEST_BYTES + 1);
    assert!(call(&large).contains("body_too_large"));
}
