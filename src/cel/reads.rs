//! What an expression reads and how it decides, found without evaluating it. Static analysis of documents uses it.

use super::Expression;
use super::node::{Binary, Comprehension, ComprehensionKind, Node, Selection, Selector};

/// A path that an expression reads, like `state.order.total`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The name of the scope, then the members.
    pub path: Vec<String>,
    pub kind: ReadKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadKind {
    /// A missing member is an error.
    Certain,
    /// As above, but another part of the expression decides whether it is read at all.
    Conditional,
    /// `has(a.b)` or `a.?b`: a missing member is no error.
    Lenient,
}

impl Expression {
    /// Every path that starts at a name of the scope. A computed member ends the path. Nothing if it does not parse.
    pub fn reads(&self) -> Vec<Read> {
        let mut reads = Vec::new();
        if let Ok(program) = self.program() {
            walk(&program.root, ReadKind::Certain, &mut reads);
        }
        reads
    }

    /// Whether exactly one of the two conditions holds, by their form: `a` and `!a`, `a == b` and `a != b`, `a < b` and
    /// `a >= b`.
    pub fn is_opposite_of(&self, other: &Expression) -> bool {
        match (self.program(), other.program()) {
            (Ok(one), Ok(other)) => are_opposite(&one.root, &other.root),
            (Err(_), _) | (_, Err(_)) => false,
        }
    }

    /// `path == "text"`, in either order.
    pub fn compared_text(&self) -> Option<(Vec<String>, &str)> {
        let Ok(program) = self.program() else {
            return None;
        };
        let Node::Binary(Binary::Equal, operands) = &program.root else {
            return None;
        };
        match &**operands {
            (Node::Text(text), path) | (path, Node::Text(text)) => Some((path_of(path)?, text)),
            _other => None,
        }
    }

    /// The path, if the expression is nothing else.
    pub fn as_path(&self) -> Option<Vec<String>> {
        path_of(&self.program().as_ref().ok()?.root)
    }

    /// The number of elements, if the expression is a list with a fixed number of them.
    pub fn list_length(&self) -> Option<usize> {
        match &self.program().as_ref().ok()?.root {
            Node::List(elements) => Some(elements.len()),
            _other => None,
        }
    }

    /// The condition is the constant `true`.
    pub fn is_true(&self) -> bool {
        matches!(self.program(), Ok(program) if matches!(program.root, Node::Bool(true)))
    }
}

fn path_of(node: &Node) -> Option<Vec<String>> {
    match node {
        Node::Global(name) => Some(vec![name.clone()]),
        Node::Selection(selection) => {
            let mut path = path_of(&selection.operand)?;
            match &selection.selector {
                Selector::Field(member) | Selector::Index(Node::Text(member)) => path.push(member.clone()),
                Selector::Index(_) => return None,
            }
            Some(path)
        }
        _other => None,
    }
}

fn walk(node: &Node, kind: ReadKind, reads: &mut Vec<Read>) {
    let within = match kind {
        ReadKind::Certain => ReadKind::Conditional,
        ReadKind::Conditional | ReadKind::Lenient => kind,
    };
    match node {
        Node::Null | Node::Bool(_) | Node::Int(_) | Node::Double(_) | Node::Text(_) | Node::Local(_) => {}
        Node::Global(name) => reads.push(Read {
            path: vec![name.clone()],
            kind,
        }),
        Node::List(nodes) | Node::Call(_, nodes) => nodes.iter().for_each(|node| walk(node, kind, reads)),
        Node::Map(entries) => {
            for (key, value) in entries {
                walk(key, kind, reads);
                walk(value, kind, reads);
            }
        }
        Node::Selection(selection) => walk_selection(selection, kind, reads),
        Node::Present(node) => walk(node, ReadKind::Lenient, reads),
        Node::Not(node) | Node::Negate(node) => walk(node, kind, reads),
        Node::OrValue(pair) => {
            walk(&pair.0, ReadKind::Lenient, reads);
            walk(&pair.1, within, reads);
        }
        Node::And(pair) | Node::Or(pair) => {
            walk(&pair.0, kind, reads);
            walk(&pair.1, within, reads);
        }
        Node::Binary(_, pair) => {
            walk(&pair.0, kind, reads);
            walk(&pair.1, kind, reads);
        }
        Node::Conditional(parts) => {
            walk(&parts.0, kind, reads);
            walk(&parts.1, within, reads);
            walk(&parts.2, within, reads);
        }
        Node::Comprehension(comprehension) => walk_comprehension(comprehension, kind, within, reads),
    }
}

fn walk_selection(selection: &Selection, kind: ReadKind, reads: &mut Vec<Read>) {
    let kind = match selection.lenient {
        true => ReadKind::Lenient,
        false => kind,
    };
    match (&selection.selector, path_of(&selection.operand)) {
        (Selector::Field(member) | Selector::Index(Node::Text(member)), Some(mut path)) => {
            path.push(member.clone());
            reads.push(Read { path, kind });
        }
        (Selector::Field(_) | Selector::Index(Node::Text(_)), None) => walk(&selection.operand, kind, reads),
        (Selector::Index(index), _) => {
            walk(&selection.operand, kind, reads);
            walk(index, kind, reads);
        }
    }
}

fn walk_comprehension(
    comprehension: &Comprehension,
    kind: ReadKind,
    within: ReadKind,
    reads: &mut Vec<Read>,
) {
    walk(&comprehension.range, kind, reads);
    walk(&comprehension.body, within, reads);
    match &comprehension.kind {
        ComprehensionKind::All | ComprehensionKind::Exists | ComprehensionKind::ExistsOne => {}
        ComprehensionKind::Map { condition } => {
            if let Some(condition) = condition {
                walk(condition, within, reads);
            }
        }
    }
}

fn are_opposite(one: &Node, other: &Node) -> bool {
    match (one, other) {
        (Node::Not(inner), node) | (node, Node::Not(inner)) if is_same(inner, node) => true,
        (Node::Not(one), Node::Not(other)) => are_opposite(one, other),
        // Each way of the one is closed in the other.
        (Node::And(one), Node::Or(other)) | (Node::Or(one), Node::And(other)) => {
            (are_opposite(&one.0, &other.0) && are_opposite(&one.1, &other.1))
                || (are_opposite(&one.0, &other.1) && are_opposite(&one.1, &other.0))
        }
        (Node::Binary(one, operands), Node::Binary(other, others)) => {
            let are_opposite =
                |other: Binary| are_opposite_operators(*one, other) || are_opposite_operators(other, *one);
            let is_same_order = is_same(&operands.0, &others.0) && is_same(&operands.1, &others.1);
            let is_other_order = is_same(&operands.0, &others.1) && is_same(&operands.1, &others.0);
            (is_same_order && are_opposite(*other)) || (is_other_order && are_opposite(other.swapped()))
        }
        _other => false,
    }
}

fn are_opposite_operators(one: Binary, other: Binary) -> bool {
    matches!(
        (one, other),
        (Binary::Equal, Binary::NotEqual)
            | (Binary::Less, Binary::GreaterOrEqual)
            | (Binary::Greater, Binary::LessOrEqual)
    )
}

/// Whether two parts are written alike. False for parts that are rarely compared.
fn is_same(one: &Node, other: &Node) -> bool {
    match (one, other) {
        (Node::Null, Node::Null) => true,
        (Node::Bool(one), Node::Bool(other)) => one == other,
        (Node::Int(one), Node::Int(other)) => one == other,
        (Node::Double(one), Node::Double(other)) => one == other,
        (Node::Text(one), Node::Text(other)) => one == other,
        (Node::Not(one), Node::Not(other))
        | (Node::Negate(one), Node::Negate(other))
        | (Node::Present(one), Node::Present(other)) => is_same(one, other),
        (Node::Binary(one, operands), Node::Binary(other, others)) => {
            one == other && is_same(&operands.0, &others.0) && is_same(&operands.1, &others.1)
        }
        (Node::And(one), Node::And(other)) | (Node::Or(one), Node::Or(other)) => {
            is_same(&one.0, &other.0) && is_same(&one.1, &other.1)
        }
        (Node::Selection(selection), Node::Selection(others)) => {
            selection.lenient == others.lenient
                && is_same(&selection.operand, &others.operand)
                && match (&selection.selector, &others.selector) {
                    (Selector::Field(one), Selector::Field(other)) => one == other,
                    (Selector::Index(one), Selector::Index(other)) => is_same(one, other),
                    (Selector::Field(_), Selector::Index(_)) | (Selector::Index(_), Selector::Field(_)) => {
                        false
                    }
                }
        }
        (Node::Global(one), Node::Global(other)) => one == other,
        (Node::List(one), Node::List(other)) => are_same(one, other),
        (Node::Call(one, operands), Node::Call(other, others)) => one == other && are_same(operands, others),
        (Node::OrValue(one), Node::OrValue(other)) => is_same(&one.0, &other.0) && is_same(&one.1, &other.1),
        _other => false,
    }
}

fn are_same(some: &[Node], others: &[Node]) -> bool {
    some.len() == others.len() && some.iter().zip(others).all(|(one, other)| is_same(one, other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str) -> Vec<String> {
        let reads = Expression::new(source).reads().into_iter();
        let text = reads.map(|read| format!("{:?} {}", read.kind, read.path.join(".")));
        text.collect()
    }

    #[test]
    fn reads_know_whether_a_missing_member_is_an_error() {
        for (source, expected) in [
            (
                "state.a.b + input.c",
                &["Certain state.a.b", "Certain input.c"][..],
            ),
            ("state[\"a\"][0].b", &["Certain state.a"]),
            (
                "has(state.a) && state.a > 1",
                &["Lenient state.a", "Conditional state.a"],
            ),
            (
                "state.?a.orValue(input.b)",
                &["Lenient state.a", "Conditional input.b"],
            ),
            (
                "input.x ? state.a : 1",
                &["Certain input.x", "Conditional state.a"],
            ),
            (
                "input.list.map(x, x.y + state.z)",
                &["Certain input.list", "Conditional state.z"],
            ),
            ("state. +", &[]),
        ] {
            assert_eq!(found(source), expected, "{source}");
        }
    }

    #[test]
    fn opposites_are_known_by_their_form() {
        for (one, other, expected) in [
            ("state.done", "!state.done", true),
            ("input.a >= 100", "input.a < 100", true),
            ("state.x == 'a'", "state.x != 'a'", true),
            ("input.a > 1", "input.a < 1", false),
            ("input.a > 1", "!(input.a > 1)", true),
            ("state.x == 'a'", "state.x == 'b'", false),
            ("has(state.x)", "!has(state.x)", true),
            ("input.a < input.b", "input.b <= input.a", true),
            ("input.a < input.b", "input.b < input.a", false),
            ("'a' == state.x", "state.x != 'a'", true),
            ("size(state.x) > 3", "size(state.x) <= 3", true),
            ("size(state.x) > 3", "size(state.y) <= 3", false),
            (
                "input.n + 1 > size(state.x)",
                "input.n + 1 <= state.x.size()",
                true,
            ),
            ("state.x in ['a', 'b']", "!(state.x in ['a', 'b'])", true),
            ("state.x in ['a', 'b']", "!(state.x in ['a'])", false),
            ("state.?x.orValue(0) > 1", "state.?x.orValue(0) <= 1", true),
            ("input.a || input.n > 3", "!input.a && input.n <= 3", true),
            ("input.a && input.n > 3", "input.n <= 3 || !input.a", true),
            ("input.a || input.n > 3", "!input.a && input.n < 3", false),
            ("input.a && input.n > 3", "!input.a && input.n <= 3", false),
            ("!(input.n > 3)", "!(input.n <= 3)", true),
        ] {
            let (one, other) = (Expression::new(one), Expression::new(other));
            assert_eq!(one.is_opposite_of(&other), expected, "{one:?} {other:?}");
            assert_eq!(other.is_opposite_of(&one), expected, "{other:?} {one:?}");
        }
    }

    #[test]
    fn simple_forms_are_read() {
        let compared = Expression::new("state.ask.choice == 'yes'");
        let path = ["state", "ask", "choice"].map(str::to_string).to_vec();
        assert_eq!(compared.compared_text(), Some((path.clone(), "yes")));
        assert_eq!(Expression::new("state.ask.choice").as_path(), Some(path));
        assert_eq!(Expression::new("[1, 2]").list_length(), Some(2));
        assert!(Expression::new("true").is_true());
    }
}
