//! The tree of a compiled expression.
//!
//! It is smaller than CEL's tree: operators are variants and not names, macros
//! are loops of a known kind and not folds, and comprehension variables are
//! already distinguished from names of the scope. Only `parse` builds it, to a
//! bounded depth, so evaluating and dropping may recurse.

use cel::common::ast::operators;

use super::Names;
use super::functions::Function;

pub(super) enum Node {
    Null,
    Bool(bool),
    Int(i128),
    Double(f64),
    Text(String),
    /// A name of the caller's scope.
    Global(String),
    /// A comprehension variable, by its index on the evaluator's stack.
    Local(usize),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
    Selection(Box<Selection>),
    /// Whether a lenient selection finds a value.
    Present(Box<Node>),
    OrValue(Box<(Node, Node)>),
    Not(Box<Node>),
    Negate(Box<Node>),
    And(Box<(Node, Node)>),
    Or(Box<(Node, Node)>),
    Conditional(Box<(Node, Node, Node)>),
    Binary(Binary, Box<(Node, Node)>),
    Comprehension(Box<Comprehension>),
    Call(Function, Vec<Node>),
}

pub(super) struct Selection {
    pub operand: Node,
    pub selector: Selector,
    /// A missing key is an absent value instead of an error.
    pub lenient: bool,
}

pub(super) enum Selector {
    Field(String),
    Index(Node),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
}

impl Binary {
    /// The operator of the same comparison with its sides changed.
    pub fn swapped(self) -> Binary {
        match self {
            Binary::Less => Binary::Greater,
            Binary::LessOrEqual => Binary::GreaterOrEqual,
            Binary::Greater => Binary::Less,
            Binary::GreaterOrEqual => Binary::LessOrEqual,
            Binary::Add
            | Binary::Subtract
            | Binary::Multiply
            | Binary::Divide
            | Binary::Remainder
            | Binary::Equal
            | Binary::NotEqual
            | Binary::In => self,
        }
    }

    /// The operator for one of the parser's function names.
    pub fn from_operator_name(name: &str) -> Option<Self> {
        Some(match name {
            operators::ADD => Binary::Add,
            operators::SUBSTRACT => Binary::Subtract,
            operators::MULTIPLY => Binary::Multiply,
            operators::DIVIDE => Binary::Divide,
            operators::MODULO => Binary::Remainder,
            operators::EQUALS => Binary::Equal,
            operators::NOT_EQUALS => Binary::NotEqual,
            operators::LESS => Binary::Less,
            operators::LESS_EQUALS => Binary::LessOrEqual,
            operators::GREATER => Binary::Greater,
            operators::GREATER_EQUALS => Binary::GreaterOrEqual,
            operators::IN => Binary::In,
            _ => return None,
        })
    }
}

pub(super) enum ComprehensionKind {
    All,
    Exists,
    ExistsOne,
    /// Also `filter`, which maps an element to itself.
    Map {
        condition: Option<Node>,
    },
}

pub(super) struct Comprehension {
    pub kind: ComprehensionKind,
    pub range: Node,
    pub body: Node,
}

/// A compiled expression and the names it reads.
pub(super) struct Program {
    pub root: Node,
    pub names: Names,
}
