//! Finds the members of one name that an expression reads, without evaluating it. Access to `secret.TOKEN` is granted by
//! name before the action runs, so it must not depend on how the expression evaluates.

use std::collections::BTreeSet;

use super::Expression;
use super::node::{Comprehension, ComprehensionKind, Node, Selection, Selector};

/// The members of a name that an expression reads.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// `name.member` and `name["member"]`.
    pub named: BTreeSet<String>,
    /// The name is used without a member, or its member is computed, so what is read is unknown.
    pub has_unknown: bool,
}

impl Members {
    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && !self.has_unknown
    }
}

impl Expression {
    /// The member, if the whole expression is `name.member`.
    pub fn bare_member_of(&self, name: &str) -> Option<&str> {
        let Ok(program) = self.program() else {
            return None;
        };
        let Node::Selection(selection) = &program.root else {
            return None;
        };
        match (&selection.operand, &selection.selector) {
            (Node::Global(global), Selector::Field(member)) if global == name && !selection.lenient => {
                Some(member)
            }
            _other => None,
        }
    }

    /// An expression that does not parse reads nothing.
    pub fn members_of(&self, name: &str, members: &mut Members) {
        if let Ok(program) = self.program()
            && program.names.contains(name)
        {
            walk(&program.root, name, members);
        }
    }
}

fn walk(node: &Node, name: &str, members: &mut Members) {
    match node {
        Node::Null | Node::Bool(_) | Node::Int(_) | Node::Double(_) | Node::Text(_) | Node::Local(_) => {}
        Node::Global(global) => members.has_unknown |= global == name,
        Node::List(nodes) | Node::Call(_, nodes) => {
            for node in nodes {
                walk(node, name, members);
            }
        }
        Node::Map(entries) => {
            for (key, value) in entries {
                walk(key, name, members);
                walk(value, name, members);
            }
        }
        Node::Selection(selection) => walk_selection(selection, name, members),
        Node::Present(node) | Node::Not(node) | Node::Negate(node) => walk(node, name, members),
        Node::OrValue(pair) | Node::And(pair) | Node::Or(pair) | Node::Binary(_, pair) => {
            walk(&pair.0, name, members);
            walk(&pair.1, name, members);
        }
        Node::Conditional(parts) => {
            walk(&parts.0, name, members);
            walk(&parts.1, name, members);
            walk(&parts.2, name, members);
        }
        Node::Comprehension(comprehension) => walk_comprehension(comprehension, name, members),
    }
}

fn walk_selection(selection: &Selection, name: &str, members: &mut Members) {
    let of_name = matches!(&selection.operand, Node::Global(global) if global == name);
    match &selection.selector {
        Selector::Field(member) | Selector::Index(Node::Text(member)) if of_name => {
            members.named.insert(member.clone());
        }
        Selector::Field(_) => walk(&selection.operand, name, members),
        Selector::Index(index) => {
            walk(&selection.operand, name, members);
            walk(index, name, members);
        }
    }
}

fn walk_comprehension(comprehension: &Comprehension, name: &str, members: &mut Members) {
    walk(&comprehension.range, name, members);
    walk(&comprehension.body, name, members);
    match &comprehension.kind {
        ComprehensionKind::All | ComprehensionKind::Exists | ComprehensionKind::ExistsOne => {}
        ComprehensionKind::Map { condition } => {
            if let Some(condition) = condition {
                walk(condition, name, members);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_in_every_position() {
        for (source, named, has_unknown) in [
            ("secret.A", "A", false),
            ("'Bearer ' + secret.A + secret['B']", "A,B", false),
            ("has(secret.A) ? secret.B : input.secret", "A,B", false),
            ("secret.?A.orValue('x')", "A", false),
            ("[1, 2].map(x, x > 1, secret.A + string(x))", "A", false),
            ("[secret.A, {'k': secret.B}, -input.n, !input.b]", "A,B", false),
            ("input.secret.A", "", false),
            ("[secret.A].exists(secret, secret == 'x')", "A", false),
            ("secret", "", true),
            ("secret[input.name]", "", true),
            ("secret.map(x, x)", "", true),
            ("input[secret.A]", "A", false),
            ("size(secret) > 0 && secret.A == 'x'", "A", true),
            ("secret.A.B", "A", false),
            ("secret. +", "", false),
        ] {
            let mut members = Members::default();
            Expression::new(source).members_of("secret", &mut members);
            let found: Vec<_> = members.named.iter().map(String::as_str).collect();
            assert_eq!(
                (found.join(",").as_str(), members.has_unknown),
                (named, has_unknown),
                "{source}"
            );
        }
    }

    #[test]
    fn a_bare_member_is_the_whole_expression() {
        for (source, member) in [
            ("secret.A", Some("A")),
            (" ( secret . A ) ", Some("A")),
            ("secret['A']", None),
            ("secret.A.B", None),
            ("secret.A + ''", None),
            ("has(secret.A)", None),
            ("input.A", None),
            ("input.secret.A", None),
            ("secret", None),
            ("secret. +", None),
        ] {
            assert_eq!(
                Expression::new(source).bare_member_of("secret"),
                member,
                "{source}"
            );
        }
    }
}
