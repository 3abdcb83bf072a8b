//! What each rule asserts about an instance. Every loop whose length depends on
//! the schema or the instance charges for its iterations beforehand, which keeps
//! the whole validation within its budget.

use crate::base::ordered::sort_by;
use serde_json::{Map, Number, Value};

use super::messages::{AllowedValues, Described, Mismatches, Plural, Quoted};
use super::validate::Validator;
use super::values::{compare, compare_numbers, is_multiple_of, read_steps, text_steps};
use super::{Counted, Node, NodeId, Pattern, Rule, Violation, references};

impl<'s> Validator<'s> {
    /// Applies a rule to the instance. A rule for another type passes.
    pub(super) fn rule(&mut self, rule: &'s Rule, instance: &Value) {
        match (rule, instance) {
            (Rule::Values { allowed, read_steps }, _) => self.values(allowed, *read_steps, instance),
            (Rule::Minimum(bound), Value::Number(number)) => {
                if compare_numbers(number, bound).is_lt() {
                    self.number("at least ", bound, number);
                }
            }
            (Rule::ExclusiveMinimum(bound), Value::Number(number)) => {
                if compare_numbers(number, bound).is_le() {
                    self.number("more than ", bound, number);
                }
            }
            (Rule::Maximum(bound), Value::Number(number)) => {
                if compare_numbers(number, bound).is_gt() {
                    self.number("at most ", bound, number);
                }
            }
            (Rule::ExclusiveMaximum(bound), Value::Number(number)) => {
                if compare_numbers(number, bound).is_ge() {
                    self.number("less than ", bound, number);
                }
            }
            (Rule::MultipleOf(unit), Value::Number(number)) => {
                // A long division over the exponents of an f64.
                const DIVISION_STEPS: usize = 16;
                if self.charge(DIVISION_STEPS) && !is_multiple_of(number, unit) {
                    self.number("a multiple of ", unit, number);
                }
            }
            (Rule::AtLeast(counted, min), _) => {
                if let Some(count) = self.count(*counted, instance).filter(|count| count < min) {
                    let wanted = Plural(*min, counted.noun());
                    self.report(format_args!("expected at least {wanted}, found {count}"));
                }
            }
            (Rule::AtMost(counted, max), _) => {
                if let Some(count) = self.count(*counted, instance).filter(|count| count > max) {
                    let wanted = Plural(*max, counted.noun());
                    self.report(format_args!("expected at most {wanted}, found {count}"));
                }
            }
            (Rule::Pattern(pattern), Value::String(text)) => {
                if !self.pattern_matches(pattern, text) {
                    let source = Quoted(pattern.regex.as_str());
                    let found = Quoted(text);
                    self.report(format_args!("expected string matching {source}, found {found}"));
                }
            }
            (Rule::Required(names), Value::Object(map)) => self.required(names, map),
            (
                Rule::Properties {
                    named,
                    patterns,
                    additional,
                },
                Value::Object(map),
            ) => self.properties(named, patterns, *additional, map),
            (Rule::PropertyNames(node), Value::Object(map)) => self.property_names(*node, map),
            (Rule::DependentRequired(dependents), Value::Object(map)) => {
                for (name, names) in dependents {
                    if self.charge(text_steps(name)) && map.contains_key(name) {
                        self.required(names, map);
                    }
                }
            }
            (Rule::DependentSchemas(dependents), Value::Object(map)) => {
                for (name, node) in dependents {
                    if self.charge(text_steps(name)) && map.contains_key(name) {
                        self.node(*node, instance);
                    }
                }
            }
            (Rule::Items { prefix, rest }, Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    let Some(node) = prefix.get(index).copied().or(*rest) else {
                        break;
                    };
                    if self.is_done() {
                        break;
                    }
                    self.validate_part(node, &index.to_string(), item);
                }
            }
            (Rule::Contains { node, min, max }, Value::Array(items)) => {
                self.contains(*node, *min, *max, items);
            }
            (Rule::UniqueItems, Value::Array(items)) => self.unique(instance, items),
            (Rule::AllOf(nodes), _) => {
                for node in nodes {
                    self.node(*node, instance);
                }
            }
            (Rule::AnyOf(nodes), _) => self.any_of(nodes, instance),
            (Rule::OneOf(nodes), _) => self.one_of(nodes, instance),
            (Rule::Not(node), _) => {
                if self.matches(*node, instance) {
                    let found = Described(instance);
                    self.report(format_args!(
                        "expected no match with the schema of not, found {found}"
                    ));
                }
            }
            (
                Rule::Conditional {
                    test,
                    then,
                    otherwise,
                },
                _,
            ) => {
                let matched = self.matches(*test, instance);
                if let Some(node) = if matched { then } else { otherwise } {
                    self.node(*node, instance);
                }
            }
            (
                Rule::Minimum(_)
                | Rule::ExclusiveMinimum(_)
                | Rule::Maximum(_)
                | Rule::ExclusiveMaximum(_)
                | Rule::MultipleOf(_)
                | Rule::Pattern(_)
                | Rule::Required(_)
                | Rule::Properties { .. }
                | Rule::PropertyNames(_)
                | Rule::DependentRequired(_)
                | Rule::DependentSchemas(_)
                | Rule::Items { .. }
                | Rule::Contains { .. }
                | Rule::UniqueItems,
                _,
            ) => {}
        }
    }

    fn number(&mut self, relation: &str, bound: &Number, number: &Number) {
        self.report(format_args!("expected {relation}{bound}, found {number}"));
    }

    fn values(&mut self, allowed: &[Value], read_steps: usize, instance: &Value) {
        if self.charge(read_steps) && !allowed.iter().any(|value| compare(value, instance).is_eq()) {
            let wanted = AllowedValues(allowed);
            self.report(format_args!("expected {wanted}, found {}", Described(instance)));
        }
    }

    /// The count for an instance of the counted type, else `None`.
    fn count(&mut self, counted: Counted, instance: &Value) -> Option<u64> {
        let count = match (counted, instance) {
            (Counted::Characters, Value::String(text)) => {
                if !self.charge(text_steps(text)) {
                    return None;
                }
                text.chars().count()
            }
            (Counted::Items, Value::Array(items)) => items.len(),
            (Counted::Properties, Value::Object(map)) => map.len(),
            (Counted::Characters | Counted::Items | Counted::Properties, _) => return None,
        };
        Some(count as u64)
    }

    fn required(&mut self, names: &[String], map: &Map<String, Value>) {
        for name in names {
            if self.charge(text_steps(name)) && !map.contains_key(name) {
                self.report(format_args!("missing required property {}", Quoted(name)));
            }
        }
    }

    fn properties(
        &mut self,
        named: &'s [(String, NodeId)],
        patterns: &'s [(Pattern, NodeId)],
        additional: Option<NodeId>,
        map: &Map<String, Value>,
    ) {
        for (key, value) in map {
            if !self.charge(text_steps(key)) {
                return;
            }
            let mut known = false;
            if let Ok(position) = named.binary_search_by(|(name, _)| name.cmp(key)) {
                known = true;
                self.validate_part(named[position].1, key, value);
            }
            for (pattern, node) in patterns {
                if self.pattern_matches(pattern, key) {
                    known = true;
                    self.validate_part(*node, key, value);
                }
            }
            if let (false, Some(node)) = (known, additional) {
                match &self.nodes[node] {
                    Node::Always => {}
                    Node::Never => {
                        let end = self.pointer.len();
                        references::push_segment(&mut self.pointer, key);
                        self.report(format_args!("unexpected property {}", Quoted(key)));
                        self.pointer.truncate(end);
                    }
                    Node::Rules { .. } => self.validate_part(node, key, value),
                }
            }
        }
    }

    fn property_names(&mut self, node: NodeId, map: &Map<String, Value>) {
        for key in map.keys() {
            if !self.charge(text_steps(key)) {
                return;
            }
            let name = Value::from(key.as_str());
            if let Some(violation) = self.first_violation(node, &name) {
                let (key, message) = (Quoted(key), violation.message);
                self.report(format_args!("property name {key}: {message}"));
            }
        }
    }

    fn contains(&mut self, node: NodeId, min: u64, max: Option<u64>, items: &[Value]) {
        let mut found = 0;
        for item in items {
            // Further items cannot change the verdict.
            let settled = max.map_or(found >= min, |max| found > max);
            if settled || self.is_done() {
                break;
            }
            found += u64::from(self.matches(node, item));
        }
        if found < min {
            let wanted = Plural(min, "item");
            self.report(format_args!(
                "expected at least {wanted} matching contains, found {found}"
            ));
        }
        if let Some(max) = max.filter(|max| found > *max) {
            let wanted = Plural(max, "item");
            self.report(format_args!(
                "expected at most {wanted} matching contains, found more"
            ));
        }
    }

    fn unique(&mut self, instance: &Value, items: &[Value]) {
        // Charged before sorting: a comparison that stopped halfway would not be a
        // total order, and sorting may panic without one.
        let rounds = items.len().checked_ilog2().unwrap_or(0) as usize + 1;
        if !self.charge(read_steps(instance).saturating_mul(rounds)) {
            return;
        }
        let mut order = Vec::from_iter(0..items.len());
        sort_by(&mut order, |left, right| {
            compare(&items[*left], &items[*right]).then_with(|| left.cmp(right))
        });
        let equal = |pair: &&[usize]| compare(&items[pair[0]], &items[pair[1]]).is_eq();
        if let Some(pair) = order.windows(2).find(equal) {
            let (first, second) = (pair[0], pair[1]);
            self.report(format_args!(
                "expected unique items, found items {first} and {second} equal"
            ));
        }
    }

    fn any_of(&mut self, nodes: &[NodeId], instance: &Value) {
        // First without messages: most instances match one alternative, and formatting the mismatch with the others is
        // the most expensive part.
        if nodes.iter().any(|node| self.matches(*node, instance)) || self.is_done() {
            return;
        }
        let mut mismatches = Vec::new();
        for node in nodes {
            match self.first_violation(*node, instance) {
                None => return,
                Some(violation) => mismatches.push(violation),
            }
        }
        self.report_mismatches("anyOf", &mismatches);
    }

    fn one_of(&mut self, nodes: &[NodeId], instance: &Value) {
        let matches = nodes.iter().filter(|node| self.matches(**node, instance));
        if matches.take(2).count() == 1 || self.is_done() {
            return;
        }
        let mut mismatches = Vec::new();
        let mut matched = None;
        for (index, node) in nodes.iter().enumerate() {
            match (self.first_violation(*node, instance), matched) {
                (Some(violation), _) => mismatches.push(violation),
                (None, None) => matched = Some(index),
                (None, Some(first)) => {
                    return self.report(format_args!(
                        "expected exactly one alternative of oneOf to match, \
                         found that {first} and {index} both do"
                    ));
                }
            }
        }
        if matched.is_none() {
            self.report_mismatches("oneOf", &mismatches);
        }
    }

    fn report_mismatches(&mut self, keyword: &str, mismatches: &[Violation]) {
        let mismatches = Mismatches {
            pointer_length: self.pointer.len(),
            mismatches,
        };
        self.report(format_args!(
            "expected an alternative of {keyword} to match: {mismatches}"
        ));
    }
}
