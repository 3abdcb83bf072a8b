//! Merges the results of branches into one value.

use std::rc::Rc;

use serde_json::{Map, Value};

use crate::base::compute::{copy_steps, write_steps};
use crate::base::failure::Failure;
use crate::base::text::json_type;
use crate::cel::{Expression, Scope};
use crate::definition::NOW;
use crate::definition::fan::{MergeStrategy, Synchronization};
use crate::definition::path::Root;

use crate::run::fan::instance::Arrival;
use crate::run::state::Run;
use crate::run::token::Token;
use crate::run::token::route::mapping_failure;

impl Run {
    /// Merges the results of branches into the context, or into the branch around the join.
    pub(in crate::run) fn merge_branches(
        &mut self,
        transition: usize,
        branches: &[(u32, Arrival)],
        outer: Option<&mut Value>,
    ) -> Result<(), Failure> {
        let snapshot = Rc::clone(&self.snapshot);
        let edge = &snapshot.workflow.transitions[transition];
        let Some(merge) = edge.synchronization.as_ref().and_then(|join| join.merge.as_ref()) else {
            return Ok(());
        };
        let place = format!("merge of transition {}", edge.id);
        let mut values = Vec::with_capacity(branches.len());
        for (index, arrival) in branches {
            let branch = self.branch_of_join(self.arriving(arrival.token), &edge.synchronization);
            values.push(Part {
                index: *index,
                order: arrival.order,
                value: self.source(&merge.source, &branch, &place)?,
            });
        }
        let held = match (merge.target.root, &outer) {
            (Root::Branch, Some(output)) => merge.target.find(output).cloned(),
            (Root::Branch, None) => {
                return Err(Failure::validation(
                    "invalid_target",
                    format!("{place}: there is no branch around this join to merge into"),
                ));
            }
            (Root::State, _) => merge.target.find(self.context.state()).cloned(),
            (Root::Output, _) => merge.target.find(self.context.output()).cloned(),
        };
        let value = merge_parts(merge.strategy, held, values, &place)?;
        match (merge.target.root, outer) {
            (Root::Branch, Some(output)) => {
                merge.target.write_value(output, value);
                Ok(())
            }
            (Root::Branch, None) => unreachable!("refused above"),
            (Root::State | Root::Output, _) => {
                // The token that continues, or the late token, saves the undo patches.
                let undo = self
                    .context
                    .write(vec![(&merge.target, value)], None, &self.work)?;
                self.changes.merge_undo.extend(undo);
                Ok(())
            }
        }
    }

    /// The value that a branch contributes.
    fn source(&self, source: &Expression, branch: &Value, place: &str) -> Result<Value, Failure> {
        // The branch was copied to bind `_branch`, and its row is written once more.
        self.work
            .charge_for(place, copy_steps(branch) + write_steps(branch))?;
        let mut scope = Scope::metered(Some(&self.work));
        scope
            .bind("_branch", branch)
            .bind_owned(NOW, self.changes.now.into());
        source
            .evaluate(&scope)
            .map_err(|wrong| mapping_failure(place, &wrong))
    }

    /// `_branch` of the joined group: the token may be in an inner branch.
    fn branch_of_join(&self, token: &Token, join: &Option<Synchronization>) -> Value {
        let group = join.as_ref().map_or("", |join| join.group.as_str());
        let innermost = token.branch.as_ref();
        let own = self
            .fans
            .enclosing(innermost)
            .find(|(_, instance)| instance.group == group);
        match (own, innermost) {
            (Some((branch, _)), Some(inner)) if branch.instance != inner.instance => {
                // The result of the branch is that of its inner token.
                let mut value = self.fans.branch_value(branch);
                value["output"] = inner.output.clone();
                value
            }
            (Some((branch, _)), _) => self.fans.branch_value(branch),
            (None, Some(inner)) => self.fans.branch_value(inner),
            (None, None) => Value::Null,
        }
    }
}

/// The result of one branch.
struct Part {
    index: u32,
    /// Later arrivals have higher numbers.
    order: u64,
    value: Value,
}

/// `parts` are in the order of their branches; `held` is the value at the target before.
fn merge_parts(
    strategy: MergeStrategy,
    held: Option<Value>,
    parts: Vec<Part>,
    place: &str,
) -> Result<Value, Failure> {
    let held = held.filter(|value| !value.is_null());
    let wrong = |found: &Value, wanted: &str| {
        Failure::validation(
            "merge_failed",
            format!("{place}: expected {wanted}, found {}", json_type(found)),
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
