//! Owns what each rule asserts about an instance. Every loop whose length an
//! author or a caller chooses pays for its rounds first, which is what keeps
//! the whole check within its budget.

use serde_json::{Map, Number, Value};

use super::messages::{Choice, Found, Misses, Plural, Quoted};
use super::validate::Check;
use super::values::{compare, compare_numbers, is_multiple_of, text_weight, weight};
use super::{Counted, Node, NodeId, Pattern, Problem, Rule, references};

impl<'s> Check<'s> {
    /// Applies a rule to the instance. Rules for another type pass.
    pub(super) fn rule(&mut self, rule: &'s Rule, instance: &Value) {
        match (rule, instance) {
            (Rule::Values { allowed, weight }, _) => self.values(allowed, *weight, instance),
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
                // Long division over the exponents an f64 can have.
                const DIVISION: usize = 16;
                if self.pay(DIVISION) && !is_multiple_of(number, unit) {
                    self.number("a multiple of ", unit, number);
                }
            }
            (Rule::AtLeast(counted, least), _) => {
                if let Some(count) = self.count(*counted, instance).filter(|count| count < least) {
                    let wanted = Plural(*least, counted.noun());
                    self.report(format_args!("expected at least {wanted}, found {count}"));
                }
            }
            (Rule::AtMost(counted, most), _) => {
                if let Some(count) = self.count(*counted, instance).filter(|count| count > most) {
                    let wanted = Plural(*most, counted.noun());
                    self.report(format_args!("expected at most {wanted}, found {count}"));
                }
            }
            (Rule::Pattern(pattern), Value::String(text)) => {
                if !self.finds(pattern, text) {
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
                    if self.pay(text_weight(name)) && map.contains_key(name) {
                        self.required(names, map);
                    }
                }
            }
            (Rule::DependentSchemas(dependents), Value::Object(map)) => {
                for (name, node) in dependents {
                    if self.pay(text_weight(name)) && map.contains_key(name) {
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
                    self.part(node, &index.to_string(), item);
                }
            }
            (Rule::Contains { node, least, most }, Value::Array(items)) => {
                self.contains(*node, *least, *most, items);
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
                    let found = Found(instance);
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

    fn values(&mut self, allowed: &[Value], weight: usize, instance: &Value) {
        if self.pay(weight) && !allowed.iter().any(|value| compare(value, instance).is_eq()) {
            let wanted = Choice(allowed);
            self.report(format_args!("expected {wanted}, found {}", Found(instance)));
        }
    }

    /// How many of the counted things the instance has, if it can have any.
    fn count(&mut self, counted: Counted, instance: &Value) -> Option<u64> {
        let count = match (counted, instance) {
            (Counted::Characters, Value::String(text)) => {
                if !self.pay(text_weight(text)) {
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
            if self.pay(text_weight(name)) && !map.contains_key(name) {
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
            if !self.pay(text_weight(key)) {
                return;
            }
            let mut known = false;
            if let Ok(position) = named.binary_search_by(|(name, _)| name.cmp(key)) {
                known = true;
                self.part(named[position].1, key, value);
            }
            for (pattern, node) in patterns {
                if self.finds(pattern, key) {
                    known = true;
                    self.part(*node, key, value);
                }
            }
            if let (false, Some(node)) = (known, additional) {
                match &self.nodes[node] {
                    Node::Always => {}
                    Node::Never => {
                        let end = self.path.len();
                        references::push_step(&mut self.path, key);
                        self.report(format_args!("unexpected property {}", Quoted(key)));
                        self.path.truncate(end);
                    }
                    Node::Rules { .. } => self.part(node, key, value),
                }
            }
        }
    }

    fn property_names(&mut self, node: NodeId, map: &Map<String, Value>) {
        for key in map.keys() {
            if !self.pay(text_weight(key)) {
                return;
            }
            let name = Value::from(key.as_str());
            if let Some(problem) = self.attempt(node, &name) {
                let (key, message) = (Quoted(key), problem.message);
                self.report(format_args!("property name {key}: {message}"));
            }
        }
    }

    fn contains(&mut self, node: NodeId, least: u64, most: Option<u64>, items: &[Value]) {
        let mut found = 0;
        for item in items {
            // Nothing further can change the verdict.
            let settled = most.map_or(found >= least, |most| found > most);
            if settled || self.is_done() {
                break;
            }
            found += u64::from(self.matches(node, item));
        }
        if found < least {
            let wanted = Plural(least, "item");
            self.report(format_args!(
                "expected at least {wanted} matching contains, found {found}"
            ));
        }
        if let Some(most) = most.filter(|most| found > *most) {
            let wanted = Plural(most, "item");
            self.report(format_args!(
                "expected at most {wanted} matching contains, found more"
            ));
        }
    }

    fn unique(&mut self, instance: &Value, items: &[Value]) {
        // Paid before sorting: a comparison that gave up half way would not be
        // an order, and sorting may panic without one.
        let rounds = items.len().checked_ilog2().unwrap_or(0) as usize + 1;
        if !self.pay(weight(instance).saturating_mul(rounds)) {
            return;
        }
        let mut order = Vec::from_iter(0..items.len());
        order.sort_unstable_by(|left, right| {
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
        // Without a word first: most instances fit, and what is wrong with every other alternative costs most to say.
        if nodes.iter().any(|node| self.matches(*node, instance)) || self.is_done() {
            return;
        }
        let mut misses = Vec::new();
        for node in nodes {
            match self.attempt(*node, instance) {
                None => return,
                Some(problem) => misses.push(problem),
            }
        }
        self.report_misses("anyOf", &misses);
    }

    fn one_of(&mut self, nodes: &[NodeId], instance: &Value) {
        let matches = nodes.iter().filter(|node| self.matches(**node, instance));
        if matches.take(2).count() == 1 || self.is_done() {
            return;
        }
        let mut misses = Vec::new();
        let mut matched = None;
        for (index, node) in nodes.iter().enumerate() {
            match (self.attempt(*node, instance), matched) {
                (Some(problem), _) => misses.push(problem),
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
            self.report_misses("oneOf", &misses);
        }
    }

    fn report_misses(&mut self, keyword: &str, misses: &[Problem]) {
        let misses = Misses {
            path: self.path.len(),
            misses,
        };
        self.report(format_args!(
            "expected an alternative of {keyword} to match: {misses}"
        ));
    }
}
