//! JSON Schema (draft 2020-12) for the inputs, outputs and messages of
//! workflows: a schema is compiled once, then instances are validated with it.
//!
//! Written here because of size, measured in 2026-11: of the release wasm, 1325 KiB
//! with gzip -9, this folder takes 58 KiB; `jsonschema` 0.60 would add 937 KiB to it
//! and `boon` 0.6 446 KiB. It is safe on untrusted schemas and instances: a schema that
//! would loop, or that uses an unsupported keyword, fails to compile instead of
//! being partly applied. Validation has a fixed step budget, recurses to a fixed
//! depth, and reports in an order that depends only on its inputs.

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
use validate::ValidateError;

/// A compiled schema. Cloning shares the compiled form.
#[derive(Debug, Clone)]
pub struct Schema {
    /// Node 0 is the root. Every `NodeId` is an index into this list.
    nodes: Arc<[Node]>,
}

/// One place where a schema is invalid, or where an instance violates its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// JSON pointer into the schema (compile) or the instance (validate).
    pub pointer: String,
    pub message: String,
}

impl Schema {
    /// Compiles `schema`, or returns up to `limits::COMPILE_VIOLATIONS_MAX` violations.
    pub fn compile(schema: &Value) -> Result<Schema, Vec<Violation>> {
        let nodes = compile::compile(schema)?;
        Ok(Schema { nodes: nodes.into() })
    }

    /// Returns up to `limits::VIOLATIONS_MAX` violations. An empty list means valid.
    pub fn validate(&self, instance: &Value) -> Vec<Violation> {
        self.validate_metered(None, instance)
    }

    /// Like `validate`, charged to the current unit of `meter`.
    pub fn validate_metered(&self, meter: Option<&Meter>, instance: &Value) -> Vec<Violation> {
        match validate::check(&self.nodes, instance, meter) {
            Ok(()) => Vec::new(),
            Err(ValidateError::Violations(violations)) => violations,
            Err(ValidateError::TooExpensive) => vec![Violation {
                pointer: String::new(),
                message: too_expensive(),
            }],
        }
    }

    /// Validates `instance`, charged to the current unit of `meter`. The error is the failure of the token: the instance is
    /// invalid, or validation takes more steps than the unit has left. `place` starts the message, as in
    /// `output_schema of the task, at`.
    pub fn check(
        &self,
        instance: &Value,
        meter: Option<&Meter>,
        code: &str,
        place: &str,
    ) -> Result<(), Failure> {
        match validate::check(&self.nodes, instance, meter) {
            Ok(()) => Ok(()),
            Err(ValidateError::Violations(violations)) => {
                let first = violations.first();
                let (pointer, message) = first.map_or(("", ""), |it| (&it.pointer, &it.message));
                Err(Failure::validation(
                    code,
                    format!("{place} \"{pointer}\": {message}"),
                ))
            }
            Err(ValidateError::TooExpensive) => Err(Failure::validation(
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

/// One assertion, or a group of keywords that depend on each other. Lists of
/// subschemas by property name are sorted by that name.
#[derive(Debug)]
enum Rule {
    /// `enum`, and `const` as an enum of one.
    Values {
        allowed: Vec<Value>,
        read_steps: usize,
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
        min: u64,
        max: Option<u64>,
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
    steps_per_byte: usize,
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
        // An integer is also a number, hence two bits.
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
