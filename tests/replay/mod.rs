//! Recorded runs under other limits and policies. The recordings are simulations, which have the same views as real runs; the
//! simulator (`tests/sim/replays.rs`) and the tests in workerd replay unchanged runs of every kind.

mod durations;
mod exports;
mod limits;
mod patches;
mod policies;
mod retries;
mod soundness;

use curfew::api::error::Error;
use curfew::definition::timeouts::TimeoutRules;
use curfew::engine;
use curfew::replay::{FORMAT, WhatIfBody, what_if_alone};
use serde_json::{Value, json};

use crate::simulate::simulated;

/// The export of a simulated run of the workflow.
#[track_caller]
pub fn recorded(body: Value) -> Value {
    export_of(&body, &simulated(body.clone()))
}

/// The export of a run that was answered so.
#[track_caller]
pub fn export_of(body: &Value, answer: &Value) -> Value {
    let document = body["workflow"].clone();
    let resolve = json!({"op": "resolve", "document": document, "documents": body["documents"]});
    let resolved: Value = serde_json::from_str(&engine::call(&resolve.to_string())).expect("JSON");
    let people = body["people"].clone();
    json!({
        "format": FORMAT,
        "redacted": false,
        "run": answer["run"],
        "start": {"request": {}},
        "snapshot": resolved["ok"],
        "document": document,
        "settings": {},
        "gates": gates(&answer["events"], &people),
        "tokens": answer["tokens"],
        "events": answer["events"],
        "timeouts": answer["timeouts"],
    })
}

/// The gates as the events have them, with the inputs of the people who decided.
fn gates(events: &Value, people: &Value) -> Vec<Value> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut gates = Vec::new();
    for event in list(events) {
        let gate_id = &event["gate_id"];
        match event["kind"].as_str() {
            Some("gate_opened") => gates.push(json!({
                "id": gate_id,
                "kind": event["gate_kind"],
                "node_id": event["node_id"],
                "opened_at": event["at"],
            })),
            // Of the gate's policy, without the event of a person.
            Some("gate_timed_out") => {
                let gate = gates.iter_mut().find(|gate: &&mut Value| gate["id"] == *gate_id);
                let gate = gate.expect("a gate opens before its time is over");
                let choice = event["policy_applied"].clone();
                gate["decision"] = json!({"at": event["at"], "by": "timeout", "choice": choice});
            }
            Some("gate_decided") => {
                let gate = gates.iter_mut().find(|gate: &&mut Value| gate["id"] == *gate_id);
                let gate = gate.expect("a gate opens before it is decided");
                let name = gate["node_id"].as_str().unwrap_or("timeout");
                let person = list(people).into_iter().find(|person| person["gate"] == name);
                let input = person.map(|person| person["input"].clone());
                gate["decision"] =
                    json!({"at": event["at"], "by": event["by"], "choice": event["choice"], "input": input});
            }
            Some(_) | None => {}
        }
    }
    gates
}

#[track_caller]
pub fn what_if(export: &Value, changes: Value) -> Value {
    match try_what_if(export, json!({"changes": changes})) {
        Ok(answer) => answer,
        Err(error) => panic!("{} {}: {}", error.status, error.code, error.message),
    }
}

pub fn try_what_if(export: &Value, body: Value) -> Result<Value, Error> {
    what_if_alone(export.clone(), WhatIfBody::read(&body)?, &TimeoutRules::WIDEST)
}

/// `{op: "add"}` of a value.
pub fn set(path: &str, value: impl Into<Value>) -> Value {
    json!([{"op": "add", "path": path, "value": value.into()}])
}

/// The replayed status, and for how long the run went on.
pub fn outcome(answer: &Value) -> (&str, u64) {
    let replayed = &answer["replayed"];
    let status = replayed["status"].as_str().expect("a status");
    (status, replayed["duration_ms"].as_u64().expect("a duration"))
}

pub fn messages(answer: &Value, what: &str) -> Vec<String> {
    let list = answer[what].as_array().expect("a list");
    list.iter()
        .map(|item| item["message"].as_str().unwrap_or_default().to_string())
        .collect()
}
