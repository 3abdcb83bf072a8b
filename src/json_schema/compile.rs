//! Compiles a schema document to nodes and reports what is invalid in it.
//! Subschemas are queued in a list instead of on the stack, and each is compiled
//! once however often it is referenced, so the time is linear in the document.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::messages::Described;
use super::values::nests_deeper_than;
use super::{Node, NodeId, Types, Violation, limits, references};

pub(super) fn compile(schema: &Value) -> Result<Vec<Node>, Vec<Violation>> {
    if nests_deeper_than(schema, limits::NESTING) {
        let message = format!("schema nests deeper than {} levels", limits::NESTING);
        let pointer = String::new();
        return Err(vec![Violation { pointer, message }]);
    }
    let mut compiler = Compiler {
        subschemas: Vec::new(),
        nodes_by_address: BTreeMap::new(),
        violations: Vec::new(),
        pattern_units: limits::SCHEMA_PATTERN_UNITS,
    };
    compiler.add_subschema(Origin::Pointer(""), schema, false);
    let mut nodes = Vec::new();
    while let Some(subschema) = compiler.subschemas.get(nodes.len()) {
        let value = subschema.value;
        let node = compiler.node(nodes.len(), value);
        nodes.push(node);
    }
    for looping in references::cycles(&nodes) {
        let pointer = compiler.pointer(looping);
        compiler.report(
            pointer,
            "schema refers back to itself without descending into the instance".to_owned(),
        );
    }
    if compiler.violations.is_empty() {
        Ok(nodes)
    } else {
        Err(compiler.violations)
    }
}

pub(super) struct Compiler<'s> {
    /// Every subschema found so far. The index is its `NodeId`.
    pub(super) subschemas: Vec<Subschema<'s>>,
    /// The address identifies a subschema, whichever reference led to it.
    nodes_by_address: BTreeMap<*const Value, NodeId>,
    violations: Vec<Violation>,
    pub(super) pattern_units: usize,
}

pub(super) struct Subschema<'s> {
    pub(super) value: &'s Value,
    origin: Origin<'s>,
    /// Whether an enclosing subschema, other than the root, has an `$id`.
    embedded: bool,
}

/// Where a subschema is. Pointers are only built for messages: below a long
/// property name they would take quadratic memory.
pub(super) enum Origin<'s> {
    Pointer(&'s str),
    Below(Location<'s>),
}

#[derive(Clone, Copy)]
pub(super) struct Location<'s> {
    pub(super) node: NodeId,
    pub(super) keyword: &'s str,
    step: LocationStep<'s>,
}

#[derive(Clone, Copy)]
pub(super) enum LocationStep<'s> {
    Whole,
    Key(&'s str),
    Index(usize),
}

impl<'s> Location<'s> {
    pub(super) fn new(node: NodeId, keyword: &'s str) -> Location<'s> {
        let step = LocationStep::Whole;
        Location { node, keyword, step }
    }

    pub(super) fn step(self, step: LocationStep<'s>) -> Location<'s> {
        Location { step, ..self }
    }
}

impl<'s> Compiler<'s> {
    pub(super) fn add_subschema(&mut self, origin: Origin<'s>, value: &'s Value, embedded: bool) -> NodeId {
        let next = self.subschemas.len();
        let node = *self
            .nodes_by_address
            .entry(std::ptr::from_ref(value))
            .or_insert(next);
        if node == next {
            self.subschemas.push(Subschema {
                value,
                origin,
                embedded,
            });
        }
        node
    }

    pub(super) fn child(&mut self, at: Location<'s>, value: &'s Value) -> NodeId {
        let embedded = self.is_embedded(at.node);
        self.add_subschema(Origin::Below(at), value, embedded)
    }

    pub(super) fn is_embedded(&self, node: NodeId) -> bool {
        let subschema = &self.subschemas[node];
        subschema.embedded || node != 0 && subschema.value.get("$id").is_some()
    }

    pub(super) fn pointer(&self, node: NodeId) -> String {
        match &self.subschemas[node].origin {
            Origin::Pointer(pointer) => (*pointer).to_owned(),
            // The recursion is over the nesting of the document, which is bounded.
            Origin::Below(at) => self.pointer_at(*at),
        }
    }

    fn pointer_at(&self, at: Location<'s>) -> String {
        let mut pointer = self.pointer(at.node);
        references::push_segment(&mut pointer, at.keyword);
        match at.step {
            LocationStep::Whole => {}
            LocationStep::Key(key) => references::push_segment(&mut pointer, key),
            LocationStep::Index(index) => references::push_segment(&mut pointer, &index.to_string()),
        }
        pointer
    }

    fn report(&mut self, pointer: String, message: String) {
        if self.violations.len() < limits::COMPILE_VIOLATIONS_MAX {
            self.violations.push(Violation { pointer, message });
        }
    }

    pub(super) fn report_at(&mut self, at: Location<'s>, message: String) {
        let pointer = self.pointer_at(at);
        self.report(pointer, message);
    }

    /// Reports `value` if `read` is none.
    pub(super) fn read<T>(
        &mut self,
        at: Location<'s>,
        wanted: &str,
        value: &Value,
        read: Option<T>,
    ) -> Option<T> {
        if read.is_none() {
            self.report_at(at, format!("expected {wanted}, found {}", Described(value)));
        }
        read
    }

    fn node(&mut self, node: NodeId, value: &'s Value) -> Node {
        match value {
            Value::Bool(true) => Node::Always,
            Value::Bool(false) => Node::Never,
            Value::Object(keywords) => self.rules(node, keywords),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                let pointer = self.pointer(node);
                let found = Described(value);
                self.report(
                    pointer,
                    format!("expected a schema (object or boolean), found {found}"),
                );
                Node::Never
            }
        }
    }

    fn rules(&mut self, node: NodeId, keywords: &'s Map<String, Value>) -> Node {
        let mut types = Types::ANY;
        let mut rules = Vec::new();
        for (keyword, value) in keywords {
            let at = Location::new(node, keyword);
            if keyword == "type" {
                types = self.types(at, value);
            } else {
                rules.extend(self.rule(at, value, keywords));
            }
        }
        if rules.is_empty() && types.0 == Types::ANY.0 {
            return Node::Always;
        }
        Node::Rules { types, rules }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::json_schema::tests::compile_violations;

    #[test]
    fn every_violation_in_a_schema_is_reported_with_its_pointer() {
        let cases = [
            (
                json!({"requird": [], "properties": {"a": {"tpye": 1}}}),
                vec![
                    "/requird unknown keyword \"requird\"",
                    "/properties/a/tpye unknown keyword \"tpye\"",
                ],
            ),
            (
                json!({"type": "text"}),
                vec![
                    "/type expected one or more of null, boolean, object, array, number, string, integer, found string \"text\"",
                ],
            ),
            (
                json!({"minimum": "3", "required": "id"}),
                vec![
                    "/minimum expected a number, found string \"3\"",
                    "/required expected an array of strings, found string \"id\"",
                ],
            ),
            (
                json!({"minLength": -1}),
                vec!["/minLength expected a whole number from 0, found number -1"],
            ),
            (
                json!({"multipleOf": 0}),
                vec!["/multipleOf expected a number above 0, found number 0"],
            ),
            (
                json!({"anyOf": []}),
                vec!["/anyOf expected an array of at least one schema, found array of 0 items"],
            ),
            (
                json!({"allOf": [true, 3]}),
                vec!["/allOf/1 expected a schema (object or boolean), found number 3"],
            ),
            (
                json!({"$defs": {"a/b": null}}),
                vec!["/$defs/a~1b expected a schema (object or boolean), found null"],
            ),
            (
                json!({"items": [{}]}),
                vec!["/items items takes one schema; use prefixItems for a list"],
            ),
            (
                json!({"dependentRequired": {"a": "b"}}),
                vec!["/dependentRequired/a expected an array of strings, found string \"b\""],
            ),
            (
                json!({"pattern": "("}),
                vec!["/pattern pattern \"(\" is not supported: found open group without closing ')'"],
            ),
            (
                json!({"patternProperties": {"(?=a)": {}}}),
                vec![
                    "/patternProperties/(?=a) pattern \"(?=a)\" is not supported: look-around is not supported",
                ],
            ),
            (
                json!({"pattern": "((a{999}){999}){999}"}),
                vec![
                    "/pattern pattern \"((a{999}){999}){999}\" is not supported: compiled regex exceeded size limit",
                ],
            ),
            (
                json!({"pattern": "*".repeat(9999)}),
                vec!["/pattern pattern is longer than 2048 bytes"],
            ),
            (
                json!({"$ref": "#/$defs/none"}),
                vec!["/$ref \"#/$defs/none\" leads to nothing in this document"],
            ),
            (
                json!({"$ref": "#/allOf/01", "allOf": [{}, {}]}),
                vec!["/$ref \"#/allOf/01\" leads to nothing in this document"],
            ),
            (
                json!({"$ref": "#%zz"}),
                vec!["/$ref \"#%zz\" leads to nothing in this document"],
            ),
            (
                json!({"$ref": "#here"}),
                vec!["/$ref $ref to an anchor is not supported: use \"#/$defs/name\""],
            ),
            (
                json!({"$ref": "other.json#/a"}),
                vec![
                    "/$ref $ref to another document is not supported: copy that schema into $defs and use \"#/$defs/name\"",
                ],
            ),
            (
                json!({"$ref": "#/default", "default": 3}),
                vec!["/default expected a schema (object or boolean), found number 3"],
            ),
            (
                json!({"items": {"$id": "inner", "items": {"$ref": "#/$defs/a"}}}),
                vec![
                    "/items/items/$ref $ref under a subschema with its own $id is not supported: remove the $id",
                ],
            ),
            (
                json!({"$anchor": "a"}),
                vec!["/$anchor $anchor is not supported: use $defs and $ref with a JSON pointer"],
            ),
            (
                json!({"unevaluatedProperties": false}),
                vec![
                    "/unevaluatedProperties unevaluatedProperties is not supported: list the properties in one schema and use additionalProperties",
                ],
            ),
            (
                json!([]),
                vec![" expected a schema (object or boolean), found array of 0 items"],
            ),
        ];
        for (schema, expected) in cases {
            assert_eq!(compile_violations(&schema), expected, "{schema}");
        }
        for keyword in ["$dynamicRef", "$dynamicAnchor", "unevaluatedItems", "$vocabulary"] {
            let violations = compile_violations(&json!({ keyword: true }));
            assert!(violations[0].contains("is not supported: "), "{violations:?}");
        }
    }
}
