//! Simulations of workflows, natively, by the body of `POST /v1/simulate`.

mod bodies;
mod bounds;
mod calls;
mod children;
mod engine;
mod faults;
mod golden;
mod names;
mod sessions;
mod waits;

use curfew::api::error::Error;
use curfew::definition::timeouts::TimeoutRules;
use curfew::simulate::{Deployment, simulate_alone};
use serde_json::{Value, json};

pub fn try_simulate(body: &Value) -> Result<Value, Error> {
    simulate_alone(body, &TimeoutRules::default(), &Deployment::default())
}

#[track_caller]
pub fn simulated(body: Value) -> Value {
    match try_simulate(&body) {
        Ok(answer) => answer,
        Err(error) => panic!("{} {}: {}", error.status, error.code, error.message),
    }
}

/// The refusal of a body: status, code and message.
#[track_caller]
pub fn refused(body: Value) -> (u16, &'static str, String) {
    let error = try_simulate(&body).expect_err("it is refused");
    (error.status, error.code, error.message)
}

/// A workflow of nodes that follow each other. Those that call have the action `work`.
pub fn chain(nodes: Value, more: Value) -> Value {
    let ids = nodes.as_array().expect("a list of nodes").clone();
    let pairs = ids.windows(2);
    let transitions = pairs.map(|pair| json!({"from_node_id": pair[0]["id"], "to_node_id": pair[1]["id"]}));
    let mut workflow = json!({
        "id": "flow",
        "timeout": "24h",
        "actions": [{"id": "work", "kind": "service_call", "implementation": {"binding": "PEER"}}],
        "transitions": transitions.collect::<Vec<_>>(),
        "nodes": nodes,
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        workflow[key] = value.clone();
    }
    workflow
}

/// Node and status of each token.
pub fn path_of(answer: &Value) -> String {
    let tokens = answer["tokens"].as_array().expect("a list of tokens");
    let steps = tokens.iter().map(|token| {
        let text = |field: &str| token[field].as_str().unwrap_or_default().to_string();
        format!("{} {}", text("node_id"), text("status"))
    });
    steps.collect::<Vec<_>>().join(", ")
}

/// Moment, length and outcome of each call.
pub fn calls_of(answer: &Value) -> Vec<String> {
    let calls = answer["calls"].as_array().expect("a list of calls").iter();
    let calls = calls.map(|call| {
        format!(
            "{} at {} for {}: {}",
            call["node_id"].as_str().unwrap_or_default(),
            call["at_ms"],
            call["duration_ms"],
            call["outcome"].as_str().unwrap_or_default()
        )
    });
    calls.collect()
}
