//! Owns turning a schema document into nodes, and every complaint about the
//! document itself. Subschemas wait in a list instead of on the stack, and each
//! is compiled once however often it is referred to, so the work is linear in
//! the document.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::messages::Found;
use super::values::nests_deeper_than;
use super::{Node, NodeId, Problem, Types, limits, references};

pub(super) fn compile(schema: &Value) -> Result<Vec<Node>, Vec<Problem>> {
    if nests_deeper_than(schema, limits::NESTING) {
        let message = format!("schema nests deeper than {} levels", limits::NESTING);
        let pointer = String::new();
        return Err(vec![Problem { pointer, message }]);
    }
    let mut compiler = Compiler {
        places: Vec::new(),
        known: BTreeMap::new(),
        problems: Vec::new(),
        pattern_units: limits::SCHEMA_PATTERN_UNITS,
    };
    compiler.place(Origin::Pointer(""), schema, false);
    let mut nodes = Vec::new();
    while let Some(place) = compiler.places.get(nodes.len()) {
        let value = place.value;
        let node = compiler.node(nodes.len(), value);
        nodes.push(node);
    }
    for looping in references::loops(&nodes) {
        let pointer = compiler.pointer(looping);
        compiler.problem(
            pointer,
            "schema refers back to itself without descending into the instance".to_owned(),
        );
    }
    if compiler.problems.is_empty() {
        Ok(nodes)
    } else {
        Err(compiler.problems)
    }
}

pub(super) struct Compiler<'s> {
    /// Every subschema met, in order of meeting; the position is its `NodeId`.
    pub(super) places: Vec<Place<'s>>,
    /// By address, which identifies a subschema however it was reached.
    known: BTreeMap<*const Value, NodeId>,
    problems: Vec<Problem>,
    pub(super) pattern_units: usize,
}

pub(super) struct Place<'s> {
    pub(super) value: &'s Value,
    origin: Origin<'s>,
    /// Whether an enclosing subschema, not the root, has its own `$id`.
    embedded: bool,
}

/// Where a subschema stands. Pointers are spelled out only for problems: under
/// one long property name they would take quadratic room.
pub(super) enum Origin<'s> {
    Pointer(&'s str),
    Below(At<'s>),
}

#[derive(Clone, Copy)]
pub(super) struct At<'s> {
    pub(super) node: NodeId,
    pub(super) keyword: &'s str,
    step: Step<'s>,
}

#[derive(Clone, Copy)]
pub(super) enum Step<'s> {
    Whole,
    Key(&'s str),
    Index(usize),
}

impl<'s> At<'s> {
    pub(super) fn new(node: NodeId, keyword: &'s str) -> At<'s> {
        let step = Step::Whole;
        At { node, keyword, step }
    }

    pub(super) fn step(self, step: Step<'s>) -> At<'s> {
        At { step, ..self }
    }
}

impl<'s> Compiler<'s> {
    pub(super) fn place(&mut self, origin: Origin<'s>, value: &'s Value, embedded: bool) -> NodeId {
        let next = self.places.len();
        let node = *self.known.entry(std::ptr::from_ref(value)).or_insert(next);
        if node == next {
            self.places.push(Place {
                value,
                origin,
                embedded,
            });
        }
        node
    }

    pub(super) fn child(&mut self, at: At<'s>, value: &'s Value) -> NodeId {
        let embedded = self.is_embedded(at.node);
        self.place(Origin::Below(at), value, embedded)
    }

    pub(super) fn is_embedded(&self, node: NodeId) -> bool {
        let place = &self.places[node];
        place.embedded || node != 0 && place.value.get("$id").is_some()
    }

    pub(super) fn pointer(&self, node: NodeId) -> String {
        match &self.places[node].origin {
            Origin::Pointer(pointer) => (*pointer).to_owned(),
            // Recursion is over document nesting, which is bounded.
            Origin::Below(at) => self.pointer_at(*at),
        }
    }

    fn pointer_at(&self, at: At<'s>) -> String {
        let mut pointer = self.pointer(at.node);
        references::push_step(&mut pointer, at.keyword);
        match at.step {
            Step::Whole => {}
            Step::Key(key) => references::push_step(&mut pointer, key),
            Step::Index(index) => references::push_step(&mut pointer, &index.to_string()),
        }
        pointer
    }

    fn problem(&mut self, pointer: String, message: String) {
        if self.problems.len() < limits::COMPILE_PROBLEMS {
            self.problems.push(Problem { pointer, message });
        }
    }

    pub(super) fn problem_at(&mut self, at: At<'s>, message: String) {
        let pointer = self.pointer_at(at);
        self.problem(pointer, message);
    }

    /// Reports `value` unless `read` yielded something.
    pub(super) fn read<T>(&mut self, at: At<'s>, wanted: &str, value: &Value, read: Option<T>) -> Option<T> {
        if read.is_none() {
            self.problem_at(at, format!("expected {wanted}, found {}", Found(value)));
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
                let found = Found(value);
                self.problem(
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
            let at = At::new(node, keyword);
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

    use crate::json_schema::tests::compile_problems;

    #[test]
    fn every_problem_of_a_schema_is_reported_where_it_is() {
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
            assert_eq!(compile_problems(&schema), expected, "{schema}");
        }
        for keyword in ["$dynamicRef", "$dynamicAnchor", "unevaluatedItems", "$vocabulary"] {
            let problems = compile_problems(&json!({ keyword: true }));
            assert!(problems[0].contains("is not supported: "), "{problems:?}");
        }
    }
}
