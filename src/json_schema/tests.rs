//! Tables of verdicts and messages, and functions that other tests of this
//! module share. The differential test covers combinations; these tests pin the
//! messages and the edge cases that random tests miss.

use serde_json::{Value, json};

use super::Schema;

fn compiled(schema: &Value) -> Schema {
    Schema::compile(schema).unwrap_or_else(|violations| panic!("{schema}: {violations:?}"))
}

/// Every violation as "pointer message".
pub(super) fn violations(schema: &Value, instance: &Value) -> Vec<String> {
    let violations = compiled(schema).validate(instance);
    let lines = violations.into_iter();
    lines
        .map(|violation| format!("{} {}", violation.pointer, violation.message))
        .collect()
}

pub(super) fn compile_violations(schema: &Value) -> Vec<String> {
    let violations = Schema::compile(schema).err().unwrap_or_default();
    let lines = violations.into_iter();
    lines
        .map(|violation| format!("{} {}", violation.pointer, violation.message))
        .collect()
}

#[test]
fn messages_state_what_was_expected_and_found() {
    let long = "x".repeat(100);
    let cases = [
        (
            json!({"type": "string"}),
            json!(3),
            " expected string, found number 3",
        ),
        (
            json!({"type": ["null", "integer"]}),
            json!(1.5),
            " expected null or integer, found number 1.5",
        ),
        (
            json!({"required": ["id"]}),
            json!({}),
            " missing required property \"id\"",
        ),
        (
            json!({"enum": ["a", 1, null, [1]]}),
            json!("b"),
            " expected one of \"a\", 1, null, [1], found string \"b\"",
        ),
        (
            json!({"enum": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}),
            json!({}),
            " expected one of 1, 2, 3, 4, 5, 6, 7, 8 or 2 more, found object with 0 properties",
        ),
        (
            json!({"const": 4}),
            json!(true),
            " expected 4, found boolean true",
        ),
        (
            json!(false),
            json!([]),
            " expected no value here, found array of 0 items",
        ),
        (
            json!({"properties": {"a/b~": {"minimum": 3}}}),
            json!({"a/b~": 2}),
            "/a~1b~0 expected at least 3, found 2",
        ),
        (
            json!({"items": {"exclusiveMaximum": 3}}),
            json!([2, 3]),
            "/1 expected less than 3, found 3",
        ),
        (
            json!({"multipleOf": 0.01}),
            json!(1.999),
            " expected a multiple of 0.01, found 1.999",
        ),
        (
            json!({"maxLength": 1}),
            json!("ab"),
            " expected at most 1 character, found 2",
        ),
        (
            json!({"minProperties": 2}),
            json!({"a": 1}),
            " expected at least 2 properties, found 1",
        ),
        (
            json!({"pattern": "^x+$"}),
            json!("y"),
            " expected string matching \"^x+$\", found \"y\"",
        ),
        (
            json!({"additionalProperties": false}),
            json!({"b": 1}),
            "/b unexpected property \"b\"",
        ),
        (
            json!({"propertyNames": {"maxLength": 1}}),
            json!({"ab": 1}),
            " property name \"ab\": expected at most 1 character, found 2",
        ),
        (
            json!({"dependentRequired": {"a": ["b"]}}),
            json!({"a": 1}),
            " missing required property \"b\"",
        ),
        (
            json!({"contains": {"type": "null"}}),
            json!([1]),
            " expected at least 1 item matching contains, found 0",
        ),
        (
            json!({"contains": true, "maxContains": 1}),
            json!([1, 2]),
            " expected at most 1 item matching contains, found more",
        ),
        (
            json!({"uniqueItems": true}),
            json!([{"a": 1, "b": 2}, 3, {"b": 2.0, "a": 1}]),
            " expected unique items, found items 0 and 2 equal",
        ),
        (
            json!({"anyOf": [{"type": "null"}, {"items": {"type": "null"}, "minItems": 1}]}),
            json!([1]),
            " expected an alternative of anyOf to match: expected null, found array of 1 item; at /0 expected null, found number 1",
        ),
        (
            json!({"oneOf": [true, false, {}]}),
            json!(1),
            " expected exactly one alternative of oneOf to match, found that 0 and 2 both do",
        ),
        (
            json!({"oneOf": [false, {"const": 2}]}),
            json!(1),
            " expected an alternative of oneOf to match: expected no value here, found number 1; expected 2, found number 1",
        ),
        (
            json!({"not": {}}),
            json!(null),
            " expected no match with the schema of not, found null",
        ),
        (
            json!({"type": "null"}),
            json!(long),
            &format!(" expected null, found string \"{}\"…", "x".repeat(60)),
        ),
    ];
    for (schema, instance, expected) in cases {
        assert_eq!(
            violations(&schema, &instance),
            [expected],
            "{schema} on {instance}"
        );
    }
}

#[test]
fn verdicts_follow_the_specification() {
    let tree =
        json!({"type": "object", "properties": {"kids": {"items": {"$ref": "#"}}}, "required": ["kids"]});
    let cases = [
        (json!(true), json!(1), true),
        (json!({"type": "integer"}), json!(1.0), true),
        (json!({"type": "number"}), json!(1), true),
        (json!({"const": 1}), json!(1.0), true),
        (json!({"const": 0}), json!(false), false),
        (json!({"const": -0.0}), json!(0), true),
        (
            json!({"const": 9_007_199_254_740_992_u64}),
            json!(9_007_199_254_740_993_u64),
            false,
        ),
        (
            json!({"const": 9_007_199_254_740_993_u64}),
            json!(9_007_199_254_740_992.0),
            false,
        ),
        (json!({"maximum": u64::MAX}), json!(1e300), false),
        (json!({"minimum": i64::MIN}), json!(-1e300), false),
        (json!({"minimum": 1.5}), json!(1), false),
        (json!({"maximum": -1.5}), json!(-1), false),
        (json!({"multipleOf": 0.01}), json!(19.99), true),
        (json!({"multipleOf": 0.0001}), json!(0.0075), true),
        (json!({"multipleOf": 0.0001}), json!(0.00751), false),
        (json!({"multipleOf": 3}), json!(u64::MAX), true),
        (json!({"multipleOf": 2}), json!(u64::MAX), false),
        (json!({"multipleOf": 0.5}), json!(1e308), true),
        (json!({"multipleOf": 1e308}), json!(1e-308), false),
        (json!({"multipleOf": 1e308}), json!(0), true),
        (json!({"multipleOf": 10.0}), json!(100), true),
        (json!({"maxLength": 1}), json!("💡"), true),
        (json!({"minLength": 2.0}), json!("💡"), false),
        (json!({"pattern": "b"}), json!("abc"), true),
        (
            json!({"contains": {"const": 1}, "minContains": 0}),
            json!([]),
            true,
        ),
        (
            json!({"contains": {"const": 1}, "minContains": 2}),
            json!([1, 2, 1.0]),
            true,
        ),
        (json!({"maxContains": 0}), json!([1]), true),
        (
            json!({"prefixItems": [{"const": 1}], "items": false}),
            json!([1]),
            true,
        ),
        (
            json!({"prefixItems": [{"const": 1}], "items": false}),
            json!([1, 2]),
            false,
        ),
        (
            json!({"properties": {"a": true}, "patternProperties": {"^x": {"type": "null"}}, "additionalProperties": {"type": "string"}}),
            json!({"a": 1, "xa": null, "b": "s"}),
            true,
        ),
        (
            json!({"patternProperties": {"^x": false}}),
            json!({"xa": null}),
            false,
        ),
        (
            json!({"dependentSchemas": {"a": {"required": ["b"]}}}),
            json!({"a": 1}),
            false,
        ),
        (
            json!({"if": {"type": "null"}, "then": false, "else": {"const": 1}}),
            json!(1),
            true,
        ),
        (json!({"then": false, "else": false}), json!(1), true),
        (json!({"enum": []}), json!(1), false),
        (
            json!({"$ref": "#/$defs/a%25~1b", "$defs": {"a%/b": {"const": 1}}}),
            json!(2),
            false,
        ),
        (
            json!({"$ref": "#/definitions/a", "maximum": 1, "definitions": {"a": {"minimum": 0}}}),
            json!(2),
            false,
        ),
        (
            json!({"properties": {"a": {"const": 1}, "b": {"$ref": "#/properties/a"}}}),
            json!({"b": 2}),
            false,
        ),
        (
            json!({"allOf": [{"const": 1}], "not": {"$ref": "#/allOf/0"}}),
            json!(1),
            false,
        ),
        (tree.clone(), json!({"kids": [{"kids": []}]}), true),
        (tree, json!({"kids": [{"kids": [{}]}]}), false),
        (
            json!({"$id": "https://example.com/a", "$ref": "#/$defs/a", "$defs": {"a": {}}}),
            json!(2),
            true,
        ),
        (
            json!({"format": "email", "title": "t", "default": 1, "examples": [], "readOnly": true}),
            json!("x"),
            true,
        ),
    ];
    for (schema, instance, valid) in cases {
        let violations = violations(&schema, &instance);
        assert_eq!(
            violations.is_empty(),
            valid,
            "{schema} on {instance}: {violations:?}"
        );
    }
}
