//! What each keyword's value must be, and the rule that it compiles to. A keyword
//! without a rule either cannot affect a verdict or is reported, so that no
//! author relies on an assertion that is not made.

use regex_lite::RegexBuilder;
use serde_json::{Map, Number, Value};

use super::compile::{Compiler, Location, LocationStep, Origin};
use super::messages::Quoted;
use super::pattern_cost::steps_per_byte;
use super::values::{as_count, read_steps, sorted_entries};
use super::{Counted, NodeId, Pattern, Rule, Types, limits, references};

/// Keywords that would change a verdict if ignored, and keywords of other drafts
/// and dialects, each with its replacement.
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
    /// The rule of a keyword. Of keywords that form one rule together, the
    /// mandatory one creates it. `properties` and its companions are all optional,
    /// so the first one present creates it.
    pub(super) fn rule(
        &mut self,
        at: Location<'s>,
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
                    read_steps: read_steps(value),
                })
            }
            "const" => Some(Rule::Values {
                allowed: vec![value.clone()],
                read_steps: read_steps(value),
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
                    if let Some(names) = self.strings(at.step(LocationStep::Key(key)), names) {
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
                self.report_at(at, "items takes one schema; use prefixItems for a list".into());
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
                    min: count("minContains").unwrap_or(1),
                    max: count("maxContains"),
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
                self.report_at(at, message);
                None
            }
        }
    }

    pub(super) fn types(&mut self, at: Location<'s>, value: &Value) -> Types {
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

    fn number(&mut self, at: Location<'s>, value: &Value) -> Option<Number> {
        self.read(at, "a number", value, value.as_number().cloned())
    }

    fn count(&mut self, at: Location<'s>, value: &Value) -> Option<u64> {
        self.read(at, "a whole number from 0", value, as_count(value))
    }

    fn at_least(&mut self, at: Location<'s>, value: &Value, counted: Counted) -> Option<Rule> {
        let min = self.count(at, value)?;
        Some(Rule::AtLeast(counted, min))
    }

    fn at_most(&mut self, at: Location<'s>, value: &Value, counted: Counted) -> Option<Rule> {
        let max = self.count(at, value)?;
        Some(Rule::AtMost(counted, max))
    }

    fn strings(&mut self, at: Location<'s>, value: &Value) -> Option<Vec<String>> {
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
        Some(self.child(Location::new(node, keyword), value))
    }

    fn schema_list(&mut self, at: Location<'s>, value: &'s Value) -> Vec<NodeId> {
        let list = value.as_array().filter(|list| !list.is_empty());
        let list = self.read(at, "an array of at least one schema", value, list);
        let numbered = list.into_iter().flatten().enumerate();
        numbered
            .map(|(index, value)| self.child(at.step(LocationStep::Index(index)), value))
            .collect()
    }

    /// The subschemas by name, sorted for binary search.
    fn schema_map(&mut self, at: Location<'s>, value: &'s Value) -> Vec<(&'s String, NodeId)> {
        let map = self.read(at, "an object of schemas", value, value.as_object());
        let entries = map.map(sorted_entries).unwrap_or_default().into_iter();
        entries
            .map(|(key, value)| (key, self.child(at.step(LocationStep::Key(key)), value)))
            .collect()
    }

    fn properties(&mut self, node: NodeId, keywords: &'s Map<String, Value>) -> Rule {
        let mut named = Vec::new();
        if let Some(value) = keywords.get("properties") {
            named = owned(self.schema_map(Location::new(node, "properties"), value));
        }
        let mut patterns = Vec::new();
        if let Some(value) = keywords.get("patternProperties") {
            let at = Location::new(node, "patternProperties");
            for (source, node) in self.schema_map(at, value) {
                if let Some(pattern) = self.pattern(at.step(LocationStep::Key(source)), source) {
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

    /// Compiles with growing size limits, which is the only way to learn the
    /// compiled size, to which matching time is proportional.
    fn pattern(&mut self, at: Location<'s>, source: &str) -> Option<Pattern> {
        if source.len() > limits::PATTERN_BYTES {
            let message = format!("pattern is longer than {} bytes", limits::PATTERN_BYTES);
            self.report_at(at, message);
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
        let left = self.pattern_units.checked_sub(units);
        match (built, left) {
            (Ok(regex), Some(left)) => {
                self.pattern_units = left;
                let steps_per_byte = steps_per_byte(source, units);
                return Some(Pattern {
                    regex,
                    steps_per_byte,
                });
            }
            (Ok(_), None) => {
                self.report_at(at, "patterns of this schema are too large together".into());
            }
            (Err(error), _) => {
                let pattern = Quoted(source);
                self.report_at(at, format!("pattern {pattern} is not supported: {error}"));
            }
        }
        None
    }

    fn reference(&mut self, at: Location<'s>, value: &'s Value) -> Option<Rule> {
        let text = self.read(at, "a string", value, value.as_str())?;
        if self.is_embedded(at.node) {
            let message = "$ref under a subschema with its own $id is not supported: \
                           remove the $id";
            self.report_at(at, message.to_owned());
            return None;
        }
        match references::resolve(self.subschemas[0].value, text) {
            Ok(found) => {
                let origin = Origin::Pointer(found.pointer);
                let node = self.add_subschema(origin, found.value, found.embedded);
                Some(Rule::AllOf(vec![node]))
            }
            Err(message) => {
                self.report_at(at, message);
                None
            }
        }
    }
}

fn owned(named: Vec<(&String, NodeId)>) -> Vec<(String, NodeId)> {
    let named = named.into_iter();
    named.map(|(name, node)| (name.clone(), node)).collect()
}
