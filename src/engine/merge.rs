//! How the results of branches become one value.

use serde_json::{Map, Value};

use super::route::mapping_failure;
use crate::model::expression::{Expression, Scope};
use crate::model::failure::Failure;
use crate::model::fan::MergeStrategy;
use crate::model::reader::kind_of;

/// What one branch brings.
pub(super) struct Part {
    pub index: u32,
    /// Later arrivals have higher numbers.
    pub order: u64,
    pub value: Value,
}

/// The value a branch brings to the merge.
pub(super) fn source(source: &Expression, branch: &Value, place: &str) -> Result<Value, Failure> {
    let mut scope = Scope::new();
    scope.bind("_branch", branch);
    source
        .evaluate(&scope)
        .map_err(|wrong| mapping_failure(place, &wrong))
}

/// `parts` in the order of their branches; `held` is what the target holds already.
pub(super) fn merge(
    strategy: MergeStrategy,
    held: Option<Value>,
    parts: Vec<Part>,
    place: &str,
) -> Result<Value, Failure> {
    let held = held.filter(|value| !value.is_null());
    let wrong = |found: &Value, wanted: &str| {
        Failure::validation(
            "merge_failed",
            format!("{place}: expected {wanted}, found {}", kind_of(found)),
        )
    };
    match strategy {
        MergeStrategy::Append | MergeStrategy::Concat => {
            let mut list = match held {
                None => Vec::new(),
                Some(Value::Array(list)) => list,
                Some(other) => return Err(wrong(&other, "an array at the target")),
            };
            for part in parts {
                match (strategy, part.value) {
                    (MergeStrategy::Concat, Value::Array(values)) => list.extend(values),
                    (_, value) => list.push(value),
                }
            }
            Ok(Value::Array(list))
        }
        MergeStrategy::MergeObject | MergeStrategy::KeyedByBranch => {
            let mut object = match held {
                None => Map::new(),
                Some(Value::Object(object)) => object,
                Some(other) => return Err(wrong(&other, "an object at the target")),
            };
            for part in parts {
                match (strategy, part.value) {
                    (MergeStrategy::MergeObject, Value::Object(fields)) => object.extend(fields),
                    (MergeStrategy::MergeObject, Value::Null) => {}
                    (MergeStrategy::MergeObject, other) => {
                        return Err(wrong(&other, &format!("an object from branch {}", part.index)));
                    }
                    (_, value) => {
                        object.insert(part.index.to_string(), value);
                    }
                }
            }
            Ok(Value::Object(object))
        }
        MergeStrategy::LastWins => {
            let last = parts.into_iter().max_by_key(|part| part.order);
            Ok(last.map(|part| part.value).or(held).unwrap_or(Value::Null))
        }
    }
}
