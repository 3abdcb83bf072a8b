//! A person's decision at a gate, as the API takes it. Pure.

use serde_json::Value;

use crate::api::error::Error;
use crate::definition::problem::Problems;
use crate::definition::reader::Reader;
use crate::run::GateDecision;

pub fn read_decision(body: &Value) -> Result<GateDecision, Error> {
    let problems = Problems::default();
    let decision = Reader::new(body, "", &problems).and_then(|reader| {
        let choice = reader.required_string("choice");
        let input = reader.any("input").cloned();
        let comment = reader.string("comment");
        let by = reader.string("by");
        reader.finish();
        Some(GateDecision {
            choice: choice?.to_string(),
            input: input.unwrap_or(Value::Null),
            comment: comment.map(str::to_string),
            by: by.map(str::to_string),
            at: 0,
        })
    });
    match decision {
        Some(decision) if !problems.has_errors() => Ok(decision),
        Some(_) | None => Err(Error::invalid_body(problems)),
    }
}
