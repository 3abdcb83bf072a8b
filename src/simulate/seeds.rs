//! Many simulations of one workflow, each with another seed. The documents are read and resolved once.

use std::rc::Rc;

use serde_json::{Value, json};

use crate::api::error::Error;
use crate::base::text::json_bytes;
use crate::definition::problem::Problems;
use crate::definition::reader::Reader;
use crate::definition::timeouts::TimeoutRules;
use crate::simulate::limits::ANSWER_BYTES;
use crate::simulate::resolve::read_alone;
use crate::simulate::simulation::{Deployment, simulate_sharing};

/// Of one request.
const SEEDS_MAX: i64 = 1_000;

/// `{first_seed, seeds}` beside the fields of a simulation. Each answer is `{seed, ok}` or `{seed, error}`; there may be fewer than
/// were asked for, but at least one.
pub fn simulate_seeds(
    request: &Value,
    rules: &TimeoutRules,
    deployment: &Deployment,
) -> Result<Value, Error> {
    let mut request = request.clone();
    let mut asked = json!({});
    for field in ["first_seed", "seeds"] {
        let value = request.as_object_mut().and_then(|fields| fields.remove(field));
        asked[field] = value.unwrap_or_default();
    }
    let (first, count) = read_range(&asked)?;
    let (body, workflow) = read_alone(&request, rules)?;
    let snapshots = Rc::default();
    let (mut answers, mut bytes) = (Vec::new(), 0);
    for seed in first..first + count {
        let mut body = body.clone();
        body.seed = seed;
        let answer = match simulate_sharing(body, &workflow, deployment, &snapshots) {
            Ok(answer) => json!({"seed": seed, "ok": answer}),
            Err(error) => {
                let mut body = error.body();
                body["error"]["status"] = json!(error.status);
                json!({"seed": seed, "error": body["error"]})
            }
        };
        bytes += json_bytes(&answer);
        if bytes > ANSWER_BYTES && !answers.is_empty() {
            break;
        }
        answers.push(answer);
    }
    Ok(json!({"answers": answers}))
}

fn read_range(asked: &Value) -> Result<(u64, u64), Error> {
    let problems = Problems::default();
    let range = Reader::new(asked, "", &problems).and_then(|reader| {
        let first = reader.integer("first_seed", 0, i64::MAX - SEEDS_MAX).unwrap_or(0);
        reader.require("seeds");
        let count = reader.integer("seeds", 1, SEEDS_MAX);
        reader.finish();
        Some((first as u64, count? as u64))
    });
    match range {
        Some(range) if !problems.has_errors() => Ok(range),
        Some(_) | None => Err(Error::invalid_body(problems)),
    }
}
