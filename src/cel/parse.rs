//! Compiles source text to a program: the `cel` crate's parser provides the
//! grammar, and its tree is lowered here into nodes for the evaluator.
//!
//! Lowering rejects everything unsupported, so an expression that passes `check`
//! can fail only on its data. It is safe on any text: `scan::tokenize` bounds
//! the parser's recursion, the parser stops at its first error, and lowering
//! stops at `MAX_DEPTH`, which also bounds the evaluator's stack.

use std::collections::BTreeMap;

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};
use cel::parser::{ParseErrors, PrattParser};

use super::Names;

use super::functions::{self, CallForm, Function};
use super::node::{Binary, Comprehension, ComprehensionKind, Node, Program, Selection, Selector};
use super::scan::{self, Token, TokenKind};
use crate::base::text::shorten_to;

const MAX_DEPTH: usize = 64;

pub(super) fn compile(source: &str) -> Result<Program, String> {
    let tokens = scan::tokenize(source)?;
    let parsed = PrattParser::new()
        .enable_optional_syntax(true)
        .error_recovery_limit(0)
        .parse(source)
        .map_err(|errors| explain(source, &tokens, errors))?;
    let mut lowering = Lowering {
        source,
        tokens,
        locals: Vec::new(),
        names: Names::new(),
        calls: BTreeMap::new(),
    };
    let root = lowering.lower_value(parsed, 0)?;
    Ok(Program {
        root,
        names: lowering.names,
    })
}

/// The parser's first error, with columns counted in characters.
fn explain(source: &str, tokens: &[Token], errors: ParseErrors) -> String {
    let Some(error) = errors.errors.into_iter().find(|error| error.pos.0 > 0) else {
        return scan::with_position(source, 0, "expression is nested too deeply");
    };
    let lines_before = source.split_inclusive('\n').take(error.pos.0 as usize - 1);
    let line_start: usize = lines_before.map(str::len).sum();
    let offset = line_start + (error.pos.1.max(1) - 1) as usize;
    let found = match tokens.iter().find(|token| token.start >= offset) {
        Some(token) => format!("`{}`", shorten_to(&source[token.start..token.end], 60)),
        None => "end of expression".to_string(),
    };
    let message = if error.msg.starts_with("Syntax error") || error.msg == "unexpected token" {
        format!("unexpected {found}")
    } else if error.msg.starts_with("expected") {
        format!("{}, found {found}", error.msg)
    } else {
        error.msg
    };
    scan::with_position(source, offset, &message)
}

struct Lowering<'s> {
    source: &'s str,
    tokens: Vec<Token>,
    locals: Vec<String>,
    names: Names,
    /// Calls lowered so far, by name. The parser keeps no positions, but calls of
    /// one name are lowered in source order, so the count identifies the token.
    calls: BTreeMap<String, usize>,
}

impl Lowering<'_> {
    /// Lowers an expression used as a value, which must not be optional.
    fn lower_value(&mut self, expression: IdedExpr, depth: usize) -> Result<Node, String> {
        let node = self.lower(expression, depth)?;
        if is_lenient(&node) {
            let mut pairs = self.tokens.windows(2);
            let question = pairs.find(|pair| {
                pair[1].kind == TokenKind::Question
                    && matches!(pair[0].kind, TokenKind::Dot | TokenKind::Open)
            });
            let offset = question.map_or(0, |pair| pair[0].start);
            return Err(scan::with_position(
                self.source,
                offset,
                "an optional value needs .orValue(default) or .hasValue()",
            ));
        }
        Ok(node)
    }

    fn lower_boxed(&mut self, expression: IdedExpr, depth: usize) -> Result<Box<Node>, String> {
        Ok(Box::new(self.lower_value(expression, depth)?))
    }

    fn lower_all(&mut self, expressions: Vec<IdedExpr>, depth: usize) -> Result<Vec<Node>, String> {
        let lowered = expressions.into_iter();
        lowered.map(|one| self.lower_value(one, depth)).collect()
    }

    fn reject<T>(&self, message: &str) -> Result<T, String> {
        Err(scan::with_position(self.source, 0, message))
    }

    fn lower(&mut self, expression: IdedExpr, depth: usize) -> Result<Node, String> {
        if depth >= MAX_DEPTH {
            return self.reject("expression is nested too deeply");
        }
        let depth = depth + 1;
        match expression.expr {
            Expr::Unspecified => self.reject("expression is incomplete"),
            Expr::Literal(literal) => self.literal(literal),
            Expr::Ident(name) => self.name(name),
            Expr::List(list) if list.optional_indices.is_empty() => {
                Ok(Node::List(self.lower_all(list.elements, depth)?))
            }
            Expr::List(_) => self.reject("optional list elements are not supported"),
            Expr::Map(map) => {
                let mut entries = Vec::with_capacity(map.entries.len());
                for entry in map.entries {
                    match entry.expr {
                        EntryExpr::MapEntry(entry) if !entry.optional => entries.push((
                            self.lower_value(entry.key, depth)?,
                            self.lower_value(entry.value, depth)?,
                        )),
                        EntryExpr::MapEntry(_) | EntryExpr::StructField(_) => {
                            return self.reject("optional map entries are not supported");
                        }
                    }
                }
                Ok(Node::Map(entries))
            }
            Expr::Struct(literal) => {
                let message = format!("struct literals are not supported: {}", literal.type_name);
                self.reject(&message)
            }
            Expr::Select(select) => {
                let operand = self.lower(*select.operand, depth)?;
                let mut node = selection(operand, Selector::Field(select.field), false);
                if select.test {
                    make_lenient(&mut node);
                    node = Node::Present(Box::new(node));
                }
                Ok(node)
            }
            Expr::Comprehension(comprehension) => self.comprehension(*comprehension, depth),
            Expr::Call(call) => self.call(call, depth),
        }
    }

    fn literal(&self, literal: LiteralValue) -> Result<Node, String> {
        Ok(match literal {
            LiteralValue::Null => Node::Null,
            LiteralValue::Boolean(value) => Node::Bool(value.into_inner()),
            LiteralValue::Int(value) => Node::Int(value.into_inner().into()),
            LiteralValue::UInt(value) => Node::Int(value.into_inner().into()),
            LiteralValue::Double(value) => Node::Double(value.into_inner()),
            LiteralValue::String(value) => Node::Text(value.into_inner()),
            LiteralValue::Bytes(_) => return self.reject("bytes literals are not supported"),
        })
    }

    fn name(&mut self, name: String) -> Result<Node, String> {
        if let Some(name) = name.strip_prefix('.') {
            return self.reject(&format!("unexpected `.` before {name}"));
        }
        Ok(match self.locals.iter().rposition(|local| *local == name) {
            Some(position) => Node::Local(position),
            None => {
                self.names.insert(name.clone());
                Node::Global(name)
            }
        })
    }

    /// Recognizes the parser's expansion of a macro by its initial accumulator.
    /// Evaluated literally, `map` would copy its whole result at every iteration.
    fn comprehension(&mut self, from: ComprehensionExpr, depth: usize) -> Result<Node, String> {
        let range = self.lower_value(from.iter_range, depth)?;
        let mut step = arguments(from.loop_step);
        let (kind, body) = match from.accu_init.expr {
            Expr::Literal(LiteralValue::Boolean(start)) => {
                let kind = if start.into_inner() {
                    ComprehensionKind::All
                } else {
                    ComprehensionKind::Exists
                };
                (kind, step.pop())
            }
            Expr::Literal(LiteralValue::Int(_)) => (ComprehensionKind::ExistsOne, step.drain(..).next()),
            Expr::List(_) => {
                let mut condition = None;
                if step.len() == 3 {
                    step.pop();
                    let append = step.pop();
                    condition = step.pop();
                    step = append.map(arguments).unwrap_or_default();
                }
                let body = match step.pop().map(|appended| appended.expr) {
                    Some(Expr::List(list)) => list.elements.into_iter().next(),
                    _ => None,
                };
                self.locals.push(from.iter_var.clone());
                let condition = condition.map(|one| self.lower_value(one, depth)).transpose()?;
                self.locals.pop();
                (ComprehensionKind::Map { condition }, body)
            }
            _ => return self.reject("comprehension is not supported"),
        };
        let Some(body) = body else {
            return self.reject("comprehension is not supported");
        };
        if from.iter_var.starts_with('.') {
            return self.reject("argument must be a simple name");
        }
        self.locals.push(from.iter_var);
        let body = self.lower_value(body, depth)?;
        self.locals.pop();
        Ok(Node::Comprehension(Box::new(Comprehension { kind, range, body })))
    }

    fn call(&mut self, call: CallExpr, depth: usize) -> Result<Node, String> {
        let CallExpr {
            func_name,
            target,
            args,
        } = call;
        if let Some(target) = target {
            return self.function_call(&func_name, Some(*target), args, depth);
        }
        let count = args.len();
        let mut rest = args.into_iter();
        match (func_name.as_str(), count, rest.next(), rest.next(), rest.next()) {
            (operators::LOGICAL_NOT, 1, Some(one), None, None) => {
                Ok(Node::Not(self.lower_boxed(one, depth)?))
            }
            (operators::NEGATE, 1, Some(one), None, None) => Ok(Node::Negate(self.lower_boxed(one, depth)?)),
            (operators::CONDITIONAL, 3, Some(one), Some(two), Some(three)) => {
                Ok(Node::Conditional(Box::new((
                    self.lower_value(one, depth)?,
                    self.lower_value(two, depth)?,
                    self.lower_value(three, depth)?,
                ))))
            }
            (operators::INDEX, 2, Some(one), Some(two), None) => self.index(one, two, false, depth),
            (operators::OPT_INDEX, 2, Some(one), Some(two), None) => self.index(one, two, true, depth),
            (operators::OPT_SELECT, 2, Some(one), Some(two), None) => {
                let operand = self.lower(one, depth)?;
                match two.expr {
                    Expr::Literal(LiteralValue::String(field)) => {
                        Ok(selection(operand, Selector::Field(field.into_inner()), true))
                    }
                    _ => self.reject("optional selection needs a field name"),
                }
            }
            (operators::LOGICAL_AND, 2, Some(one), Some(two), None) => {
                Ok(Node::And(self.lower_pair(one, two, depth)?))
            }
            (operators::LOGICAL_OR, 2, Some(one), Some(two), None) => {
                Ok(Node::Or(self.lower_pair(one, two, depth)?))
            }
            (name, _, one, two, three) => {
                let mut given: Vec<_> = [one, two, three].into_iter().flatten().collect();
                given.extend(rest);
                match (Binary::from_operator_name(name), <[IdedExpr; 2]>::try_from(given)) {
                    (Some(operator), Ok([one, two])) => {
                        Ok(Node::Binary(operator, self.lower_pair(one, two, depth)?))
                    }
                    (_, Ok(given)) => self.function_call(name, None, given.into(), depth),
                    (_, Err(given)) => self.function_call(name, None, given, depth),
                }
            }
        }
    }

    fn lower_pair(
        &mut self,
        one: IdedExpr,
        two: IdedExpr,
        depth: usize,
    ) -> Result<Box<(Node, Node)>, String> {
        Ok(Box::new((
            self.lower_value(one, depth)?,
            self.lower_value(two, depth)?,
        )))
    }

    fn index(
        &mut self,
        operand: IdedExpr,
        index: IdedExpr,
        optional: bool,
        depth: usize,
    ) -> Result<Node, String> {
        let operand = self.lower(operand, depth)?;
        let index = self.lower_value(index, depth)?;
        Ok(selection(operand, Selector::Index(index), optional))
    }

    fn function_call(
        &mut self,
        name: &str,
        target: Option<IdedExpr>,
        arguments: Vec<IdedExpr>,
        depth: usize,
    ) -> Result<Node, String> {
        let form = if target.is_some() {
            CallForm::Member
        } else {
            CallForm::Global
        };
        let receiver = target.map(|target| self.lower(target, depth)).transpose()?;
        let offset = self.call_offset(name);
        let given = arguments.len() + usize::from(receiver.is_some());
        let function = functions::resolve(name, form, given)
            .map_err(|message| scan::with_position(self.source, offset, &message))?;
        let mut lowered = self.lower_all(arguments, depth)?;
        let Some(receiver) = receiver else {
            return Ok(Node::Call(function, lowered));
        };
        match (function, is_lenient(&receiver)) {
            (Function::HasValue, true) => Ok(Node::Present(Box::new(receiver))),
            (Function::OrValue, true) => {
                let default = lowered.pop().expect("resolve requires the default of orValue");
                Ok(Node::OrValue(Box::new((receiver, default))))
            }
            (Function::HasValue | Function::OrValue, false) => Err(scan::with_position(
                self.source,
                offset,
                &format!("{name} needs an optional value: select it with `.?` or `[?`"),
            )),
            (_, true) => Err(scan::with_position(
                self.source,
                offset,
                &format!("an optional value needs .orValue(default) before .{name}"),
            )),
            (_, false) => {
                lowered.insert(0, receiver);
                Ok(Node::Call(function, lowered))
            }
        }
    }

    fn call_offset(&mut self, name: &str) -> usize {
        let seen = self.calls.entry(name.to_string()).or_default();
        let mut calls = self.tokens.windows(2).filter(|pair| {
            let opens = &self.source[pair[1].start..pair[1].end] == "(";
            opens && &self.source[pair[0].start..pair[0].end] == name
        });
        let position = calls.nth(*seen).map_or(0, |pair| pair[0].start);
        *seen += 1;
        position
    }
}

/// A selection from an optional value is optional too.
fn selection(operand: Node, selector: Selector, optional: bool) -> Node {
    Node::Selection(Box::new(Selection {
        lenient: optional || is_lenient(&operand),
        operand,
        selector,
    }))
}

fn is_lenient(node: &Node) -> bool {
    matches!(node, Node::Selection(selection) if selection.lenient)
}

/// Makes a selection and all selections below it lenient, for `has(a.b.c)`.
fn make_lenient(mut node: &mut Node) {
    while let Node::Selection(selection) = node {
        selection.lenient = true;
        node = &mut selection.operand;
    }
}

fn arguments(expression: IdedExpr) -> Vec<IdedExpr> {
    match expression.expr {
        Expr::Call(call) => call.args,
        _ => Vec::new(),
    }
}
