//! Compares our JSON Schema verdicts with those of a complete validator, over
//! random schemas that use every supported keyword. Keys, strings and numbers
//! come from small pools, so that schemas and instances often interact. Patterns
//! and divisors stay within what both validators define equally.

use std::cell::Cell;

use curfew::json_schema::Schema;
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::BoxedStrategy;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::{Map, Value, json};

const CASES: u32 = 512;
const INSTANCES: usize = 12;
const KEYS: [&str; 5] = ["a", "b", "ab", "x1", "é"];
const PATTERNS: [&str; 6] = ["^a", "b$", "[0-9]", "^.{2}$", "^(a|é)+$", "\\w-?\\d"];

fn scalar() -> impl Strategy<Value = Value> {
    select(vec![
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(-0.0),
        json!(1),
        json!(1.0),
        json!(-1),
        json!(1.5),
        json!(0.25),
        json!(2),
        json!(6),
        json!(-3.5),
        json!(9_007_199_254_740_992_u64),
        json!(9_007_199_254_740_993_u64),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1e300),
        json!(""),
        json!("a"),
        json!("b"),
        json!("ab"),
        json!("x1"),
        json!("é💡"),
        json!("aéa"),
    ])
}

fn instance() -> BoxedStrategy<Value> {
    scalar()
        .prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                vec(inner.clone(), 0..5).prop_map(Value::from),
                vec((select(&KEYS), inner), 0..5).prop_map(object),
            ]
        })
        .boxed()
}

fn object(entries: Vec<(&str, Value)>) -> Value {
    let entries = entries.into_iter();
    Value::Object(entries.map(|(key, value)| (key.to_owned(), value)).collect())
}

fn names() -> impl Strategy<Value = Value> {
    btree_set(select(&KEYS), 0..3).prop_map(|names| json!(names))
}

fn types() -> impl Strategy<Value = Value> {
    let name = select(vec![
        "null", "boolean", "object", "array", "number", "string", "integer",
    ]);
    prop_oneof![
        name.clone().prop_map(Value::from),
        btree_set(name, 1..5).prop_map(|names| json!(names)),
    ]
}

fn pair<K, V>(keywords: K, values: V) -> BoxedStrategy<(&'static str, Value)>
where
    K: Into<Vec<&'static str>>,
    V: Strategy<Value = Value> + 'static,
{
    (select(keywords.into()), values).boxed()
}

/// Keywords whose values contain no subschema.
fn assertion() -> BoxedStrategy<(&'static str, Value)> {
    let bound = scalar().prop_filter("a bound is a number", Value::is_number);
    let unit = select(vec![json!(1), json!(2), json!(0.5), json!(0.25), json!(4)]);
    let count = select(vec![json!(0), json!(1), json!(2), json!(2.0), json!(3)]);
    prop_oneof![
        4 => pair(["type"], types()),
        1 => pair(["enum"], vec(instance(), 1..5).prop_map(Value::from)),
        1 => pair(["const"], instance()),
        2 => pair(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], bound),
        1 => pair(["multipleOf"], unit),
        2 => pair(
            ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"],
            count,
        ),
        1 => pair(["pattern"], select(&PATTERNS).prop_map(Value::from)),
        1 => pair(["required"], names()),
        1 => pair(["dependentRequired"], vec((select(&KEYS), names()), 0..3).prop_map(object)),
        1 => pair(["uniqueItems"], any::<bool>().prop_map(Value::from)),
        1 => pair(["format", "title", "default"], Just(json!("email"))),
    ]
    .boxed()
}

/// Keywords that apply `inner` to the instance or to parts of it.
fn applicator(inner: BoxedStrategy<Value>) -> BoxedStrategy<(&'static str, Value)> {
    let list = vec(inner.clone(), 1..4).prop_map(Value::from);
    let by_name = vec((select(&KEYS), inner.clone()), 0..4).prop_map(object);
    let by_pattern = vec((select(&PATTERNS), inner.clone()), 0..3).prop_map(object);
    prop_oneof![
        2 => pair(["properties", "dependentSchemas"], by_name),
        1 => pair(["patternProperties"], by_pattern),
        3 => pair(["additionalProperties", "propertyNames", "items", "contains", "not"], inner.clone()),
        3 => pair(["if", "then", "else"], inner),
        2 => pair(["allOf", "anyOf", "oneOf", "prefixItems"], list),
    ]
    .boxed()
}

/// A schema that refers only to the given targets.
fn schema(targets: &'static [&'static str]) -> BoxedStrategy<Value> {
    let reference = match targets {
        [] => assertion(),
        targets => pair(["$ref"], select(targets).prop_map(Value::from)),
    };
    let leaf = prop_oneof![
        1 => any::<bool>().prop_map(Value::from),
        6 => vec(assertion(), 0..3).prop_map(object),
        2 => vec(reference.clone(), 1..2).prop_map(object),
    ];
    let nested = leaf.prop_recursive(3, 24, 4, move |inner| {
        let keyword = prop_oneof![
            4 => applicator(inner),
            2 => assertion(),
            1 => reference.clone(),
        ];
        vec(keyword, 1..5).prop_map(object)
    });
    nested.boxed()
}

/// A root with definitions. Every reference cycle passes through `items` or
/// `additionalProperties`, so that none is rejected as endless.
fn document() -> impl Strategy<Value = Value> {
    const TARGETS: &[&str] = &["#/$defs/plain", "#/definitions/tree", "#/$defs/a~1b%25"];
    let root = schema(TARGETS).prop_map(|root| match root {
        Value::Object(root) => root,
        other => Map::from_iter([("allOf".to_owned(), json!([other]))]),
    });
    (root, schema(&[]), schema(&["#/$defs/plain"])).prop_map(|(mut root, plain, odd)| {
        let tree = json!({
            "type": ["object", "array", "number", "string"],
            "additionalProperties": {"$ref": "#/definitions/tree"},
            "items": {"anyOf": [{"$ref": "#"}, {"$ref": "#/definitions/tree"}]},
        });
        root.insert("$defs".to_owned(), json!({"plain": plain, "a/b%": odd}));
        root.insert("definitions".to_owned(), json!({ "tree": tree }));
        Value::Object(root)
    })
}

#[test]
fn verdicts_equal_those_of_a_complete_validator() {
    let (valid, invalid) = (Cell::new(0_u32), Cell::new(0_u32));
    let mut runner = TestRunner::new(Config {
        cases: CASES,
        failure_persistence: None,
        ..Config::default()
    });
    let cases = (document(), vec(instance(), INSTANCES));
    let outcome = runner.run(&cases, |(schema, instances)| {
        let ours = Schema::compile(&schema)
            .map_err(|problems| TestCaseError::fail(format!("refused as {problems:?}: {schema}")))?;
        let oracle = jsonschema::draft202012::new(&schema)
            .map_err(|error| TestCaseError::fail(format!("oracle refused {schema}: {error}")))?;
        for instance in instances {
            let problems = ours.validate(&instance);
            let expected = oracle.is_valid(&instance);
            prop_assert_eq!(
                problems.is_empty(),
                expected,
                "{} on {}: {:?}",
                schema,
                instance,
                problems
            );
            let tally = if expected { &valid } else { &invalid };
            tally.set(tally.get() + 1);
        }
        Ok(())
    });
    assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
    // Agreement means little if nearly all verdicts are the same.
    let fewest = CASES * INSTANCES as u32 / 10;
    let (valid, invalid) = (valid.get(), invalid.get());
    assert!(valid > fewest && invalid > fewest, "{valid} {invalid}");
}

/// Any value for any keyword. Most of these do not compile.
fn junk() -> impl Strategy<Value = Value> {
    let keywords = select(vec![
        "$ref",
        "$defs",
        "$id",
        "type",
        "enum",
        "const",
        "items",
        "prefixItems",
        "contains",
        "minContains",
        "maxContains",
        "uniqueItems",
        "properties",
        "patternProperties",
        "additionalProperties",
        "propertyNames",
        "required",
        "dependentRequired",
        "dependentSchemas",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "then",
        "else",
        "multipleOf",
        "minimum",
        "maxLength",
        "pattern",
        "a",
    ]);
    let texts = select(vec![
        "#",
        "#/items",
        "#/$defs/a",
        "#/allOf/0",
        "#/not/not",
        "#/%",
        "(",
        "a{9}{9}",
        "[",
        "array",
        "object",
        "integer",
    ]);
    let leaf = prop_oneof![scalar(), texts.prop_map(Value::from)];
    leaf.prop_recursive(5, 32, 4, move |inner| {
        prop_oneof![
            1 => vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => vec((keywords.clone(), inner), 0..4).prop_map(object),
        ]
    })
}

proptest! {
    #![proptest_config(Config { cases: CASES, failure_persistence: None, ..Config::default() })]

    #[test]
    fn no_schema_or_instance_panics(schema in junk(), instance in instance(), odd in junk()) {
        match Schema::compile(&schema) {
            Ok(compiled) => {
                prop_assert!(compiled.validate(&instance).len() <= 20);
                prop_assert!(compiled.validate(&odd).len() <= 20);
            }
            Err(problems) => prop_assert!(!problems.is_empty()),
        }
    }
}
