//! Owns JSON Schema (draft 2020-12) for what Curfew's users declare about
//! inputs, outputs and messages: a schema is compiled once, then instances are
//! checked against it.
//!
//! Written here because a complete validator crate outweighs the rest of the
//! wasm module. It is safe to run on untrusted schemas and instances: a schema
//! that would loop, or that uses a keyword we do not implement, fails to
//! compile instead of being half obeyed; checking spends a fixed step budget,
//! recurses to a fixed depth, and reports in an order fixed by the inputs.

mod compile;
mod keywords;
mod limits;
mod messages;
mod pattern_cost;
mod references;
mod rules;
#[cfg(test)]
mod tests;
mod validate;
mod values;

use std::sync::Arc;

use regex_lite::Regex;
use serde_json::{Number, Value};

use crate::base::compute::Meter;
use crate::base::failure::Failure;
use validate::Misfit;

/// A compiled schema. Cloning shares the compiled form.
#[derive(Debug, Clone)]
pub struct Schema {
    /// Node 0 is the root; every `NodeId` below indexes this list.
    nodes: Arc<[Node]>,
}

/// One thing wrong with a schema or an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// JSON pointer into the schema (compile) or the instance (validate).
    pub pointer: String,
    pub message: String,
}

impl Schema {
    /// Compiles `schema`, or lists what is wrong with it (the first
    /// `limits::COMPILE_PROBLEMS` of it).
    pub fn compile(schema: &Value) -> Result<Schema, Vec<Problem>> {
        let nodes = compile::compile(schema)?;
        Ok(Schema { nodes: nodes.into() })
    }

    /// Lists what is wrong with `instance`, at most
    /// `limits::VALIDATE_PROBLEMS` problems; empty means valid.
    pub fn validate(&self, instance: &Value) -> Vec<Problem> {
        self.validate_on(None, instance)
    }

    /// As above, on the account of a unit.
    pub fn validate_on(&self, meter: Option<&Meter>, instance: &Value) -> Vec<Problem> {
        match validate::check(&self.nodes, instance, meter) {
            Ok(()) => Vec::new(),
            Err(Misfit::Problems(problems)) => problems,
            Err(Misfit::TooExpensive) => vec![Problem {
                pointer: String::new(),
                message: too_expensive(),
            }],
        }
    }

    /// Checks `instance` on the account of a unit: the failure of its token if it does not fit, or if the check takes
    /// more than the unit has left. `place` says what does not fit, as in `output_schema of the task, at`.
    pub fn check(
        &self,
        instance: &Value,
        meter: Option<&Meter>,
        code: &str,
        place: &str,
    ) -> Result<(), Failure> {
        match validate::check(&self.nodes, instance, meter) {
            Ok(()) => Ok(()),
            Err(Misfit::Problems(problems)) => {
                let first = problems.first();
                let (pointer, message) = first.map_or(("", ""), |it| (&it.pointer, &it.message));
                Err(Failure::validation(
                    code,
                    format!("{place} \"{pointer}\": {message}"),
                ))
            }
            Err(Misfit::TooExpensive) => Err(Failure::validation(
                "limit_exceeded",
                format!("{place} \"\": {}", too_expensive()),
            )),
        }
    }
}

fn too_expensive() -> String {
    format!(
        "schema too expensive to check: it and all else that is computed with it may take {} steps; use fewer or \
         shorter patterns, fewer alternatives, or less data",
        limits::STEPS
    )
}

type NodeId = usize;

#[derive(Debug)]
enum Node {
    Always,
    Never,
    Rules { types: Types, rules: Vec<Rule> },
}

/// One assertion, or a group of keywords whose meaning depends on each other.
/// Lists of subschemas by property name are sorted by that name.
#[derive(Debug)]
enum Rule {
    /// `enum`, and `const` as an enum of one.
    Values {
        allowed: Vec<Value>,
        weight: usize,
    },
    Minimum(Number),
    ExclusiveMinimum(Number),
    Maximum(Number),
    ExclusiveMaximum(Number),
    MultipleOf(Number),
    AtLeast(Counted, u64),
    AtMost(Counted, u64),
    Pattern(Pattern),
    Required(Vec<String>),
    Properties {
        named: Vec<(String, NodeId)>,
        patterns: Vec<(Pattern, NodeId)>,
        additional: Option<NodeId>,
    },
    PropertyNames(NodeId),
    DependentRequired(Vec<(String, Vec<String>)>),
    DependentSchemas(Vec<(String, NodeId)>),
    Items {
        prefix: Vec<NodeId>,
        rest: Option<NodeId>,
    },
    Contains {
        node: NodeId,
        least: u64,
        most: Option<u64>,
    },
    UniqueItems,
    /// `allOf`, and `$ref` as an `allOf` of one.
    AllOf(Vec<NodeId>),
    AnyOf(Vec<NodeId>),
    OneOf(Vec<NodeId>),
    Not(NodeId),
    Conditional {
        test: NodeId,
        then: Option<NodeId>,
        otherwise: Option<NodeId>,
    },
}

#[derive(Debug, Clone, Copy)]
enum Counted {
    Characters,
    Items,
    Properties,
}

#[derive(Debug)]
struct Pattern {
    regex: Regex,
    /// Steps one byte of subject text may cost.
    cost: usize,
}

/// The set of types a node accepts, one bit for each name in `Types::NAMES`.
#[derive(Debug, Clone, Copy)]
struct Types(u8);

impl Types {
    const NAMES: [&'static str; 7] = [
        "null", "boolean", "object", "array", "number", "string", "integer",
    ];
    const ANY: Types = Types(0x7f);
    const NONE: Types = Types(0);

    fn with(self, name: &str) -> Option<Types> {
        let position = Types::NAMES.iter().position(|known| *known == name)?;
        Some(Types(self.0 | 1 << position))
    }

    fn names(self) -> impl Iterator<Item = &'static str> {
        Types::NAMES
            .into_iter()
            .enumerate()
            .filter(move |(position, _)| self.0 & 1 << position != 0)
            .map(|(_, name)| name)
    }

    fn allows(self, instance: &Value) -> bool {
        // An integer is a number too, hence two bits.
        let bits = match instance {
            Value::Null => 1 << 0,
            Value::Bool(_) => 1 << 1,
            Value::Object(_) => 1 << 2,
            Value::Array(_) => 1 << 3,
            Value::Number(number) if values::is_integer(number) => 1 << 4 | 1 << 6,
            Value::Number(_) => 1 << 4,
            Value::String(_) => 1 << 5,
        };
        self.0 & bits != 0
    }
}
