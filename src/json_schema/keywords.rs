//! Owns what each keyword's value must look like and which rule it becomes.
//! Nothing here is lenient: a keyword we do not act on either cannot affect a
//! verdict or is a problem, so that no author believes in a check that is not
//! made.

use regex_lite::RegexBuilder;
use serde_json::{Map, Number, Value};

use super::compile::{At, Compiler, Origin, Step};
use super::messages::Quoted;
use super::pattern_cost::steps_per_byte;
use super::values::{as_count, sorted_entries, weight};
use super::{Counted, NodeId, Pattern, Rule, Types, limits, references};

/// Keywords that would change a verdict if ignored, or that other drafts and
/// dialects have, each with what to write instead.
const UNSUPPORTED: [(&str, &str); 16] = [
    ("$dynamicRef", "use $ref with a JSON pointer"),
    ("$dynamicAnchor", "use $defs and $ref with a JSON pointer"),
    ("$recursiveRef", "use $ref with a JSON pointer"),
    ("$recursiveAnchor", "use $ref with a JSON pointer"),
    ("$anchor", "use $defs and $ref with a JSON pointer"),
    ("$vocabulary", "remove it"),
    (
        "unevaluatedProperties",
        "list the properties in one schema and use additionalProperties",
    ),
    ("unevaluatedItems", "use prefixItems and items in one schema"),
    (
        "additionalItems",
        "use prefixItems for the first items and items for the rest",
    ),
    ("dependencies", "use dependentRequired or dependentSchemas"),
    ("contentSchema", "remove it, content is not decoded"),
    ("id", "use $id"),
    ("nullable", "use an array of types that includes \"null\""),
    ("example", "use examples"),
    (
        "discriminator",
        "use oneOf with a const property in each alternative",
    ),
    ("divisibleBy", "use multipleOf"),
];

impl<'s> Compiler<'s> {
    /// The rule a keyword makes. Of keywords that form one rule together, the
    /// one that cannot be left out makes it; `properties` and its kin have no
    /// such member, so the first one present does.
    pub(super) fn rule(
        &mut self,
        at: At<'s>,
        value: &'s Value,
        keywords: &'s Map<String, Value>,
    ) -> Option<Rule> {
        match at.keyword {
            "$ref" => self.reference(at, value),
            "$defs" | "definitions" => {
                self.schema_map(at, value);
                None
            }
            "$schema" | "$id" | "$comment" | "title" | "description" | "format" | "contentMediaType"
            | "contentEncoding" => {
                self.read(at, "a string", value, value.as_str());
                None
            }
            "deprecated" | "readOnly" | "writeOnly" => {
                self.read(at, "a boolean", value, value.as_bool());
                None
            }
            "examples" => {
                self.read(at, "an array", value, value.as_array());
                None
            }
            "default" => None,
            "enum" => {
                let allowed = self.read(at, "an array", value, value.as_array())?;
                Some(Rule::Values {
                    allowed: allowed.clone(),
                    weight: weight(value),
                })
            }
            "const" => Some(Rule::Values {
                allowed: vec![value.clone()],
                weight: weight(value),
            }),
            "minimum" => self.number(at, value).map(Rule::Minimum),
            "exclusiveMinimum" => self.number(at, value).map(Rule::ExclusiveMinimum),
            "maximum" => self.number(at, value).map(Rule::Maximum),
            "exclusiveMaximum" => self.number(at, value).map(Rule::ExclusiveMaximum),
            "multipleOf" => {
                let positive = value.as_number().filter(|number| number.as_f64() > Some(0.0));
                let number = self.read(at, "a number above 0", value, positive)?;
                Some(Rule::MultipleOf(number.clone()))
            }
            "minLength" => self.at_least(at, value, Counted::Characters),
            "maxLength" => self.at_most(at, value, Counted::Characters),
            "minItems" => self.at_least(at, value, Counted::Items),
            "maxItems" => self.at_most(at, value, Counted::Items),
            "minProperties" => self.at_least(at, value, Counted::Properties),
            "maxProperties" => self.at_most(at, value, Counted::Properties),
            "pattern" => {
                let source = self.read(at, "a string", value, value.as_str())?;
                self.pattern(at, source).map(Rule::Pattern)
            }
            "required" => self.strings(at, value).map(Rule::Required),
            "properties" | "patternProperties" | "additionalProperties" => {
                let group = ["properties", "patternProperties", "additionalProperties"];
                let first = group.iter().find(|keyword| keywords.contains_key(**keyword));
                (first == Some(&at.keyword)).then(|| self.properties(at.node, keywords))
            }
            "propertyNames" => Some(Rule::PropertyNames(self.child(at, value))),
            "dependentRequired" => {
                let map = self.read(at, "an object", value, value.as_object())?;
                let mut dependents = Vec::new();
                for (key, names) in map {
                    if let Some(names) = self.strings(at.step(Step::Key(key)), names) {
                        dependents.push((key.clone(), names));
                    }
                }
                Some(Rule::DependentRequired(dependents))
            }
            "dependentSchemas" => Some(Rule::DependentSchemas(owned(self.schema_map(at, value)))),
            "prefixItems" => {
                let prefix = self.schema_list(at, value);
                let rest = self.sibling(at.node, keywords, "items");
                Some(Rule::Items { prefix, rest })
            }
            "items" if value.is_array() => {
                self.problem_at(at, "items takes one schema; use prefixItems for a list".into());
                None
            }
            "items" if keywords.contains_key("prefixItems") => None,
            "items" => Some(Rule::Items {
                prefix: Vec::new(),
                rest: Some(self.child(at, value)),
            }),
            "contains" => {
                let node = self.child(at, value);
                let count = |keyword| keywords.get(keyword).and_then(as_count);
                Some(Rule::Contains {
                    node,
                    least: count("minContains").unwrap_or(1),
                    most: count("maxContains"),
                })
            }
            "minContains" | "maxContains" => {
                self.count(at, value);
                None
            }
            "uniqueItems" => self
                .read(at, "a boolean", value, value.as_bool())?
                .then_some(Rule::UniqueItems),
            "allOf" => Some(Rule::AllOf(self.schema_list(at, value))),
            "anyOf" => Some(Rule::AnyOf(self.schema_list(at, value))),
            "oneOf" => Some(Rule::OneOf(self.schema_list(at, value))),
            "not" => Some(Rule::Not(self.child(at, value))),
            "if" => Some(Rule::Conditional {
                test: self.child(at, value),
                then: self.sibling(at.node, keywords, "then"),
                otherwise: self.sibling(at.node, keywords, "else"),
            }),
            "then" | "else" => {
                self.child(at, value);
                None
            }
            unknown => {
                let advice = UNSUPPORTED.iter().find(|(keyword, _)| *keyword == unknown);
                let message = match advice {
                    Some((_, advice)) => format!("{unknown} is not supported: {advice}"),
                    None => format!("unknown keyword {}", Quoted(unknown)),
                };
                self.problem_at(at, message);
                None
            }
        }
    }

    pub(super) fn types(&mut self, at: At<'s>, value: &Value) -> Types {
        let names = match value {
            Value::Array(names) if !names.is_empty() => names.as_slice(),
            name => std::slice::from_ref(name),
        };
        let accepted = names.iter().try_fold(Types::NONE, |types, name| {
            types.with(name.as_str().unwrap_or_default())
        });
        let wanted = format!("one or more of {}", Types::NAMES.join(", "));
        self.read(at, &wanted, value, accepted).unwrap_or(Types::ANY)
    }

    fn number(&mut self, at: At<'s>, value: &Value) -> Option<Number> {
        self.read(at, "a number", value, value.as_number().cloned())
    }

    fn count(&mut self, at: At<'s>, value: &Value) -> Option<u64> {
        self.read(at, "a whole number from 0", value, as_count(value))
    }

    fn at_least(&mut self, at: At<'s>, value: &Value, counted: Counted) -> Option<Rule> {
        let least = self.count(at, value)?;
        Some(Rule::AtLeast(counted, least))
    }

    fn at_most(&mut self, at: At<'s>, value: &Value, counted: Counted) -> Option<Rule> {
        let most = self.count(at, value)?;
        Some(Rule::AtMost(counted, most))
    }

    fn strings(&mut self, at: At<'s>, value: &Value) -> Option<Vec<String>> {
        let strings = value.as_array().and_then(|items| {
            let strings = items.iter().map(|item| item.as_str().map(str::to_owned));
            strings.collect::<Option<Vec<_>>>()
        });
        self.read(at, "an array of strings", value, strings)
    }

    fn sibling(
        &mut self,
        node: NodeId,
        keywords: &'s Map<String, Value>,
        keyword: &'s str,
    ) -> Option<NodeId> {
        let value = keywords.get(keyword)?;
        Some(self.child(At::new(node, keyword), value))
    }

    fn schema_list(&mut self, at: At<'s>, value: &'s Value) -> Vec<NodeId> {
        let list = value.as_array().filter(|list| !list.is_empty());
        let list = self.read(at, "an array of at least one schema", value, list);
        let numbered = list.into_iter().flatten().enumerate();
        numbered
            .map(|(index, value)| self.child(at.step(Step::Index(index)), value))
            .collect()
    }

    /// The subschemas by name, sorted so that they can be searched.
    fn schema_map(&mut self, at: At<'s>, value: &'s Value) -> Vec<(&'s String, NodeId)> {
        let map = self.read(at, "an object of schemas", value, value.as_object());
        let entries = map.map(sorted_entries).unwrap_or_default().into_iter();
        entries
            .map(|(key, value)| (key, self.child(at.step(Step::Key(key)), value)))
            .collect()
    }

    fn properties(&mut self, node: NodeId, keywords: &'s Map<String, Value>) -> Rule {
        let mut named = Vec::new();
        if let Some(value) = keywords.get("properties") {
            named = owned(self.schema_map(At::new(node, "properties"), value));
        }
        let mut patterns = Vec::new();
        if let Some(value) = keywords.get("patternProperties") {
            let at = At::new(node, "patternProperties");
            for (source, node) in self.schema_map(at, value) {
                if let Some(pattern) = self.pattern(at.step(Step::Key(source)), source) {
                    patterns.push((pattern, node));
                }
            }
        }
        let additional = self.sibling(node, keywords, "additionalProperties");
        Rule::Properties {
            named,
            patterns,
            additional,
        }
    }

    /// Compiles under growing size limits, which is how the engine lets us
    /// learn the size that matching time is proportional to.
    fn pattern(&mut self, at: At<'s>, source: &str) -> Option<Pattern> {
        if source.len() > limits::PATTERN_BYTES {
            let message = format!("pattern is longer than {} bytes", limits::PATTERN_BYTES);
            self.problem_at(at, message);
            return None;
        }
        let mut units = 1;
        let built = loop {
            let mut builder = RegexBuilder::new(source);
            let built = builder.size_limit(units * limits::PATTERN_UNIT).build();
            if built.is_ok() || units >= limits::PATTERN_UNITS {
                break built;
            }
            units *= 2;
        };
        let room = self.pattern_units.checked_sub(units);
        match (built, room) {
            (Ok(regex), Some(room)) => {
                self.pattern_units = room;
                let cost = steps_per_byte(source, units);
                return Some(Pattern { regex, cost });
            }
            (Ok(_), None) => {
                self.problem_at(at, "patterns of this schema are too large together".into());
            }
            (Err(error), _) => {
                let pattern = Quoted(source);
                self.problem_at(at, format!("pattern {pattern} is not supported: {error}"));
            }
        }
        None
    }

    fn reference(&mut self, at: At<'s>, value: &'s Value) -> Option<Rule> {
        let text = self.read(at, "a string", value, value.as_str())?;
        if self.is_embedded(at.node) {
            let message = "$ref under a subschema with its own $id is not supported: \
                           remove the $id";
            self.problem_at(at, message.to_owned());
            return None;
        }
        match references::resolve(self.places[0].value, text) {
            Ok(found) => {
                let origin = Origin::Pointer(found.pointer);
                let node = self.place(origin, found.value, found.embedded);
                Some(Rule::AllOf(vec![node]))
            }
            Err(message) => {
                self.problem_at(at, message);
                None
            }
        }
    }
}

fn owned(named: Vec<(&String, NodeId)>) -> Vec<(String, NodeId)> {
    let named = named.into_iter();
    named.map(|(name, node)| (name.clone(), node)).collect()
}
