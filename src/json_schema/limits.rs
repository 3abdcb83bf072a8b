//! The bounds that make validation safe on any input: steps bound time, nesting
//! and depth bound the stack, violations and pattern sizes bound memory.

/// Nesting of arrays and objects in a schema or an instance. The parser of
/// `serde_json` stops at the same depth, so only values built in memory can
/// exceed it. It bounds every recursion over a value.
pub(super) const NESTING: usize = 128;

/// Nesting of subschemas during validation: four for each level of the deepest
/// instance, as a recursive schema with a `$ref` and an `anyOf` needs. The
/// deepest chains measured in wasm took 75 KB of its 1 MiB stack.
pub(super) const DEPTH: usize = 512;

/// Steps of one validation. The same as one unit of a decision, so that the API
/// and the executors have the same bound as a run.
pub(super) const STEPS: usize = crate::base::compute::UNIT_STEPS as usize;

pub(super) const VIOLATIONS_MAX: usize = 20;
pub(super) const COMPILE_VIOLATIONS_MAX: usize = 100;

/// Longest pattern source. The regex parser nests one heap value for each
/// stacked repetition operator and frees them recursively.
pub(super) const PATTERN_BYTES: usize = 2_048;

/// Compiled size that costs `PATTERN_STEPS` for each byte matched.
pub(super) const PATTERN_UNIT: usize = 1_024;

/// The most expensive patterns visit every state of the compiled form at each byte.
pub(super) const PATTERN_STEPS: usize = 30;

/// One state of a pattern at one byte.
pub(super) const STATE_STEPS: usize = 8;

/// Largest compiled pattern, and the total for one schema, in units.
pub(super) const PATTERN_UNITS: usize = 256;
pub(super) const SCHEMA_PATTERN_UNITS: usize = 8_192;

/// Formatting one message.
pub(super) const MESSAGE_STEPS: usize = 60;

/// Bytes of text compared or copied for one step.
pub(super) const TEXT_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use serde_json::{Value, json};

    use crate::json_schema::limits;
    use crate::json_schema::tests::{compile_violations, violations};

    /// Nests `levels` arrays, or wraps a schema in as many keywords.
    fn nested(levels: usize, innermost: Value, wrap: impl Fn(Value) -> Value) -> Value {
        (0..levels).fold(innermost, |inner, _| wrap(inner))
    }

    #[test]
    fn validation_is_bounded() {
        let array = |inner| json!([inner]);
        let doubling = {
            let mut definitions = serde_json::Map::new();
            for level in 0..60 {
                let next = format!("#/$defs/{}", level + 1);
                let twice = json!({"allOf": [{"$ref": next}, {"$ref": next}]});
                definitions.insert(level.to_string(), twice);
            }
            definitions.insert("60".to_owned(), json!({"type": "null"}));
            json!({"$ref": "#/$defs/0", "$defs": definitions})
        };
        let mut chain = serde_json::Map::new();
        for level in 0..2_000 {
            let next = json!({"$ref": format!("#/$defs/{}", level + 1)});
            chain.insert(level.to_string(), next);
        }
        chain.insert("2000".to_owned(), json!(true));
        let chain = json!({"$ref": "#/$defs/0", "$defs": chain});
        let expensive = " schema too expensive to check: ";
        let text = "a".repeat(200_000);
        let many = Value::from_iter(0..400_000);
        let cases = [
            (doubling, json!(null), expensive),
            (chain, json!(null), " schema nests too deeply to check"),
            (
                json!({"items": {"$ref": "#"}}),
                nested(500, json!(1), array),
                " instance nests too deeply to check",
            ),
            (json!({"pattern": "(a|aa|b{900})*c"}), json!(text), expensive),
            (json!({"uniqueItems": true}), many.clone(), expensive),
            (
                json!({"items": {"enum": (0..7_000).collect::<Vec<_>>()}}),
                many.clone(),
                expensive,
            ),
            (
                json!({"not": {"items": {"allOf": [{"not": {"items": {}}}, {}]}}, "allOf": [{"items": {"minimum": -1}}, {"items": {"minimum": -1}}], "items": {"minimum": -1}, "contains": {"allOf": [{"minimum": -1}, {"maximum": -1}]}}),
                many,
                expensive,
            ),
        ];
        for (schema, instance, expected) in cases {
            let started = Instant::now();
            let found = violations(&schema, &instance);
            assert!(
                matches!(&found[..], [only] if only.starts_with(expected)),
                "{found:?}"
            );
            // Generous for a debug build on a busy machine.
            assert!(started.elapsed() < Duration::from_secs(20), "{expected}");
        }
    }

    #[test]
    fn deep_recursion_fits_a_small_stack() {
        let schema = json!({"anyOf": [{"type": "null"}, {"$ref": "#/$defs/list"}], "$defs": {"list": {"type": "array", "items": {"$ref": "#"}}}});
        let deepest = nested(limits::NESTING - 1, json!(null), |inner| json!([inner]));
        let deep_schema = nested(limits::NESTING / 2, json!({}), |inner| json!({"not": inner}));
        let too_deep = nested(limits::NESTING, json!({}), |inner| json!({"not": inner}));
        // Debug frames are several times those of the wasm build.
        let small = std::thread::Builder::new().stack_size(4 << 20);
        let checked = small.spawn(move || {
            assert_eq!(violations(&schema, &deepest), [""; 0]);
            let violations = compile_violations(&deep_schema);
            assert_eq!(violations, [""; 0]);
            assert_eq!(
                compile_violations(&too_deep),
                [" schema nests deeper than 128 levels"]
            );
        });
        let joined = checked.expect("a thread can be started in a test").join();
        assert!(joined.is_ok());
    }

    #[test]
    fn violations_are_capped_and_ordered() {
        let schema = json!({"items": {"type": "null"}});
        let found = violations(&schema, &Value::from_iter(0..1_000));
        assert_eq!(found.len(), limits::VIOLATIONS_MAX);
        assert_eq!(found[19], "/19 expected null, found number 19");
        let unknown = Value::from_iter((0..1_000).map(|index| (index.to_string(), json!(1))));
        assert_eq!(compile_violations(&unknown).len(), limits::COMPILE_VIOLATIONS_MAX);
    }
}
