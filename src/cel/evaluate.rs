//! Evaluates a program against a scope.
//!
//! The `cel` crate's interpreter is not used, for four reasons. An expression
//! runs inside a coordinator that other runs share, so it must stop after a
//! bounded computation: each node visited and each byte created is charged to a
//! budget. State can be a megabyte, so it is read in place and not converted to
//! another value type. A replay must give the same result, so maps are iterated
//! in key order. JSON does not distinguish 1 from 1.0, so arithmetic mixes both.
//!
//! It is safe because a program is at most 64 nodes deep, values are traversed
//! to a fixed depth, and every failure is an error value.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::Scope;
use super::budget::{Budget, ENTRY_BYTES, Fault, fail};
use super::node::{Binary, Comprehension, ComprehensionKind, Node, Selector};
use super::value::{List, Operand, StringMap, Text};
use super::{call, operate};
use crate::base::compute::OBJECT_STEPS;
use crate::base::text::shorten_to;

pub(super) struct Evaluator<'a, 'b> {
    scope: &'a Scope<'a>,
    locals: Vec<Operand<'a>>,
    budget: &'b mut Budget<'a>,
}

impl<'a, 'b> Evaluator<'a, 'b> {
    pub fn new(scope: &'a Scope<'a>, budget: &'b mut Budget<'a>) -> Self {
        Evaluator {
            scope,
            locals: Vec::new(),
            budget,
        }
    }

    pub fn run(&mut self, node: &'a Node) -> Result<Operand<'a>, Fault> {
        self.budget.charge(1)?;
        match node {
            Node::Null => Ok(Operand::Null),
            Node::Bool(value) => Ok(Operand::Bool(*value)),
            Node::Int(value) => Ok(Operand::Int(*value)),
            Node::Double(value) => Ok(Operand::Double(*value)),
            Node::Text(text) => Ok(Operand::Text(Text::Borrowed(text))),
            Node::Global(name) => self.global(name),
            Node::Local(index) => {
                let value = self.locals.get(*index);
                Ok(value.expect("lowering numbers only variables in scope").clone())
            }
            Node::List(items) => {
                self.budget.allocate(items.len() as u64 * ENTRY_BYTES)?;
                let values: Result<_, _> = items.iter().map(|item| self.run(item)).collect();
                Ok(Operand::list(values?))
            }
            Node::Map(entries) => self.map(entries),
            Node::Selection(_) => Ok(self
                .find(node)?
                .expect("lowering rejects an optional selection that is used as a value")),
            Node::Present(selection) => Ok(Operand::Bool(self.find(selection)?.is_some())),
            Node::OrValue(parts) => match self.find(&parts.0)? {
                Some(value) => Ok(value),
                None => self.run(&parts.1),
            },
            Node::Not(operand) => Ok(Operand::Bool(!self.truth(operand, "!")?)),
            Node::Negate(operand) => operate::negate(self.run(operand)?),
            Node::And(parts) => self.logic(parts, false),
            Node::Or(parts) => self.logic(parts, true),
            Node::Conditional(parts) => {
                if self.truth(&parts.0, "?:")? {
                    self.run(&parts.1)
                } else {
                    self.run(&parts.2)
                }
            }
            Node::Binary(operator, parts) => {
                let (left, right) = (self.run(&parts.0)?, self.run(&parts.1)?);
                self.binary(*operator, left, right)
            }
            Node::Comprehension(comprehension) => self.comprehension(comprehension),
            Node::Call(function, arguments) => {
                let values: Result<Vec<_>, _> = arguments.iter().map(|argument| self.run(argument)).collect();
                call::call(*function, &values?, self.budget)
            }
        }
    }

    /// Evaluates a condition, whose result must be a bool.
    pub fn truth(&mut self, node: &'a Node, operator: &str) -> Result<bool, Fault> {
        match self.run(node)? {
            Operand::Bool(value) => Ok(value),
            other => fail(format!("{operator} needs a bool, found {}", other.type_name())),
        }
    }

    fn global(&self, name: &str) -> Result<Operand<'a>, Fault> {
        match self.scope.value(name) {
            Some(value) => Ok(Operand::from(value)),
            None => {
                let known: Vec<_> = self.scope.names().collect();
                let known = shorten_to(&known.join(", "), 200);
                fail(format!("unknown name: {name} (known: {known})"))
            }
        }
    }

    fn map(&mut self, entries: &'a [(Node, Node)]) -> Result<Operand<'a>, Fault> {
        self.budget.charge_unit(OBJECT_STEPS)?;
        let mut values = BTreeMap::new();
        for (key, value) in entries {
            let key = self.run(key)?;
            let key = operate::key(&key)?;
            self.budget.allocate(ENTRY_BYTES + key.as_str().len() as u64)?;
            let value = self.run(value)?;
            if let Some((key, _)) = values.get_key_value(&key) {
                let key: &Text = key;
                return fail(format!("duplicate key: {}", shorten_to(key.as_str(), 60)));
            }
            values.insert(key, value);
        }
        Ok(Operand::Map(StringMap::Shared(Rc::new(values))))
    }

    /// Follows a selection. `None` is an absent value, which only a lenient selection allows.
    fn find(&mut self, node: &'a Node) -> Result<Option<Operand<'a>>, Fault> {
        let Node::Selection(selection) = node else {
            return self.run(node).map(Some);
        };
        self.budget.charge(1)?;
        let Some(parent) = self.find(&selection.operand)? else {
            return Ok(None);
        };
        if selection.lenient && matches!(parent, Operand::Null) {
            return Ok(None);
        }
        let found = match &selection.selector {
            Selector::Field(field) => operate::select(&parent, field)?,
            Selector::Index(index) => {
                let index = self.run(index)?;
                operate::index(&parent, &index, self.budget)?
            }
        };
        match found {
            Ok(value) => Ok(Some(value)),
            Err(_) if selection.lenient => Ok(None),
            Err(missing) => fail(missing),
        }
    }

    /// `&&` (decided by `false`) and `||` (decided by `true`): a decisive side
    /// overrides a failure of the other, in either order. Exhaustion always fails.
    fn logic(&mut self, parts: &'a (Node, Node), decisive: bool) -> Result<Operand<'a>, Fault> {
        let operator = if decisive { "||" } else { "&&" };
        let left = self.truth(&parts.0, operator);
        match left {
            Ok(value) if value == decisive => return Ok(Operand::Bool(decisive)),
            Err(fault @ (Fault::Exhausted(_) | Fault::UnitExhausted(_))) => return Err(fault),
            Ok(_) | Err(Fault::Failed(_)) => {}
        }
        match (left, self.truth(&parts.1, operator)) {
            (_, Ok(value)) if value == decisive => Ok(Operand::Bool(decisive)),
            (_, Err(fault @ (Fault::Exhausted(_) | Fault::UnitExhausted(_)))) => Err(fault),
            (Err(fault), _) | (Ok(_), Err(fault)) => Err(fault),
            (Ok(_), Ok(value)) => Ok(Operand::Bool(value)),
        }
    }

    fn binary(
        &mut self,
        operator: Binary,
        left: Operand<'a>,
        right: Operand<'a>,
    ) -> Result<Operand<'a>, Fault> {
        let budget = &mut *self.budget;
        match operator {
            Binary::Add | Binary::Subtract | Binary::Multiply | Binary::Divide | Binary::Remainder => {
                operate::arithmetic(operator, left, right, budget)
            }
            Binary::Equal => Ok(Operand::Bool(operate::equal(&left, &right, budget, 0)?)),
            Binary::NotEqual => Ok(Operand::Bool(!operate::equal(&left, &right, budget, 0)?)),
            Binary::Less => Ok(Operand::Bool(operate::order(&left, &right, budget)?.is_lt())),
            Binary::LessOrEqual => Ok(Operand::Bool(operate::order(&left, &right, budget)?.is_le())),
            Binary::Greater => Ok(Operand::Bool(operate::order(&left, &right, budget)?.is_gt())),
            Binary::GreaterOrEqual => Ok(Operand::Bool(operate::order(&left, &right, budget)?.is_ge())),
            Binary::In => Ok(Operand::Bool(operate::contains(&left, &right, budget)?)),
        }
    }

    fn comprehension(&mut self, node: &'a Comprehension) -> Result<Operand<'a>, Fault> {
        let range = match self.run(&node.range)? {
            Operand::List(list) => list,
            Operand::Map(map) => {
                let keys = map.keys(self.budget)?.into_iter().map(Operand::Text);
                List::Shared(Rc::new(keys.collect()))
            }
            other => return fail(format!("cannot iterate over {}", other.type_name())),
        };
        let index = self.locals.len();
        let result = self.iterate(node, &range);
        // Also after a failure, because an enclosing `||` may absorb it.
        self.locals.truncate(index);
        result
    }

    fn iterate(&mut self, node: &'a Comprehension, range: &List<'a>) -> Result<Operand<'a>, Fault> {
        let index = self.locals.len();
        let mut collected = Vec::new();
        let mut count = 0_usize;
        let mut failure = None;
        for item in range.items() {
            self.budget.charge(1)?;
            self.locals.truncate(index);
            self.locals.push(item);
            match &node.kind {
                ComprehensionKind::All | ComprehensionKind::Exists => {
                    let exists = matches!(node.kind, ComprehensionKind::Exists);
                    match self.truth(&node.body, if exists { "exists" } else { "all" }) {
                        Ok(value) if value == exists => return Ok(Operand::Bool(exists)),
                        Ok(_) => {}
                        Err(fault @ (Fault::Exhausted(_) | Fault::UnitExhausted(_))) => return Err(fault),
                        Err(fault @ Fault::Failed(_)) => failure = failure.or(Some(fault)),
                    }
                }
                ComprehensionKind::ExistsOne => count += usize::from(self.truth(&node.body, "exists_one")?),
                ComprehensionKind::Map { condition } => {
                    if let Some(condition) = condition
                        && !self.truth(condition, "filter")?
                    {
                        continue;
                    }
                    self.budget.allocate(ENTRY_BYTES)?;
                    collected.push(self.run(&node.body)?);
                }
            }
        }
        match (&node.kind, failure) {
            (_, Some(fault)) => Err(fault),
            (ComprehensionKind::All, None) => Ok(Operand::Bool(true)),
            (ComprehensionKind::Exists, None) => Ok(Operand::Bool(false)),
            (ComprehensionKind::ExistsOne, None) => Ok(Operand::Bool(count == 1)),
            (ComprehensionKind::Map { .. }, None) => Ok(Operand::list(collected)),
        }
    }
}
