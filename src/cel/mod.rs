//! Expressions and templates: CEL over JSON, bounded and deterministic.
//!
//! An [`Expression`] is one CEL expression; a [`Template`] is JSON whose strings
//! may contain expressions as `${...}`. A [`Scope`] names the values both can read.
//!
//! Safe on untrusted definitions and data: source is at most 4096 characters and
//! 64 nodes deep, one evaluation takes at most 100 000 steps and produces at most
//! 4 MiB, and nothing reads a clock, randomness or hash order, so the same scope
//! always gives the same result. The present moment is a value of the scope. No input panics.
//!
//! The dialect is CEL with these rules for JSON: `uint` is `int`; ints and
//! doubles mix (`1 == 1.0`, `1 + 0.5`); map keys are strings (`{1: "a"}` has key
//! `"1"`); `has(a.b.c)` is false when `a.b` is missing or null; `type(x)` is a
//! string such as `"int"`; `ceil`, `floor`, `round` give ints; `a.?b` and
//! `a[?0]` must end in `.orValue(default)` or `.hasValue()`. There are no bytes,
//! structs, timestamps, durations or regular expressions.

mod budget;
mod call;
mod evaluate;
mod functions;
#[cfg(test)]
mod limit_tests;
mod lists;
mod members;
mod node;
mod operate;
mod parse;
mod reads;
mod scan;
mod template;
#[cfg(test)]
mod tests;
mod value;
mod values;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;

use serde_json::Value;

pub use members::Members;
pub use reads::{Read, ReadKind};
pub use template::{Template, TextPart};
pub use values::{SIZE, Values};

use budget::{Budget, Fault};
use evaluate::Evaluator;
use node::Program;
use value::Operand;

use crate::base::compute::Meter;
use crate::base::text::shorten_to;

/// The root identifiers an expression reads from its scope.
pub type Names = BTreeSet<String>;

/// One CEL expression, parsed on first use and shared by its clones.
#[derive(Clone)]
pub struct Expression {
    inner: Rc<Inner>,
}

struct Inner {
    source: String,
    program: OnceCell<Result<Program, String>>,
}

impl Expression {
    /// The source is parsed on first use.
    pub fn new(source: impl Into<String>) -> Self {
        Expression {
            inner: Rc::new(Inner {
                source: source.into(),
                program: OnceCell::new(),
            }),
        }
    }

    pub fn source(&self) -> &str {
        &self.inner.source
    }

    /// Parses the expression and returns the names it reads. An error is one line
    /// that starts with the position, as in `column 7: unexpected `)``.
    pub fn check(&self) -> Result<Names, String> {
        match self.program() {
            Ok(program) => Ok(program.names.clone()),
            Err(message) => Err(message.clone()),
        }
    }

    pub fn evaluate(&self, scope: &Scope) -> Result<Value, Error> {
        let mut budget = Budget::new(scope.meter);
        let value = self.value(scope, &mut budget)?;
        value.into_json(&mut budget, 0).map_err(|fault| self.error(fault))
    }

    /// Evaluates a condition; a result other than a bool is an error.
    pub fn evaluate_bool(&self, scope: &Scope) -> Result<bool, Error> {
        match self.value(scope, &mut Budget::new(scope.meter))? {
            Operand::Bool(value) => Ok(value),
            other => Err(self.error(Fault::Failed(format!(
                "result must be a bool, found {}",
                other.type_name()
            )))),
        }
    }

    fn program(&self) -> &Result<Program, String> {
        let compile = || parse::compile(&self.inner.source);
        self.inner.program.get_or_init(compile)
    }

    /// The value before it is copied to JSON. Several expressions may share a budget.
    fn value<'a>(&'a self, scope: &'a Scope<'a>, budget: &mut Budget<'a>) -> Result<Operand<'a>, Error> {
        match self.program() {
            Ok(program) => Evaluator::new(scope, budget)
                .run(&program.root)
                .map_err(|fault| self.error(fault)),
            Err(message) => Err(self.error(Fault::Failed(message.clone()))),
        }
    }

    fn error(&self, fault: Fault) -> Error {
        Error {
            expression: shorten_to(&self.inner.source, 200),
            is_unit_exhausted: matches!(fault, Fault::UnitExhausted(_)),
            message: fault.message(),
        }
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Expression")
            .field(&self.inner.source)
            .finish()
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.inner.source == other.inner.source
    }
}

impl Eq for Expression {}

/// The names an expression can read, and their values.
#[derive(Clone, Debug, Default)]
pub struct Scope<'a> {
    values: BTreeMap<&'a str, Cow<'a, Value>>,
    meter: Option<&'a Meter>,
}

impl<'a> Scope<'a> {
    pub fn new() -> Self {
        Scope::default()
    }

    /// Evaluations in this scope are charged to `meter`, and stop when its unit is exhausted.
    pub fn metered(meter: Option<&'a Meter>) -> Self {
        Scope {
            values: BTreeMap::new(),
            meter,
        }
    }

    /// Binds a name to a value, which is read in place. Replaces an earlier binding.
    pub fn bind(&mut self, name: &'a str, value: &'a Value) -> &mut Self {
        self.values.insert(name, Cow::Borrowed(value));
        self
    }

    pub fn bind_owned(&mut self, name: &'a str, value: Value) -> &mut Self {
        self.values.insert(name, Cow::Owned(value));
        self
    }

    fn value(&self, name: &str) -> Option<&Value> {
        self.values.get(name).map(Cow::as_ref)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().copied()
    }
}

/// Why an evaluation failed, and the expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The source, truncated to 200 characters. Empty if a constant part of a template was too large.
    pub expression: String,
    pub message: String,
    /// All computation of the unit together was too expensive, not only this evaluation.
    pub is_unit_exhausted: bool,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.expression.as_str() {
            "" if self.is_unit_exhausted => formatter.write_str(&self.message),
            expression => write!(formatter, "expression `{expression}`: {}", self.message),
        }
    }
}

impl std::error::Error for Error {}
