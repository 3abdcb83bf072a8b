//! Simulations of workflows, natively, by the body of `POST /v1/simulate`.

mod basics;

use curfew::api::error::Error;
use curfew::definition::timeouts::TimeoutRules;
use curfew::simulate::{Deployment, simulate_alone};
use serde_json::Value;

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

/// Node and status of each token.
pub fn path_of(answer: &Value) -> String {
    let tokens = answer["tokens"].as_array().expect("a list of tokens");
    let steps = tokens.iter().map(|token| {
        let text = |field: &str| token[field].as_str().unwrap_or_default().to_string();
        format!("{} {}", text("node_id"), text("status"))
    });
    steps.collect::<Vec<_>>().join(", ")
}
