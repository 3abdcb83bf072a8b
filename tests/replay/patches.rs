//! JSON Patch, by the examples of RFC 6902 and by what users write wrongly.

use curfew::replay::json_patch::{CHANGES_MAX, apply};
use serde_json::{Value, json};

#[track_caller]
fn patched(document: Value, changes: Value) -> Value {
    let mut document = document;
    if let Err(error) = apply(&mut document, &changes) {
        panic!("{:?}: {}", error.pointer, error.message);
    }
    document
}

#[track_caller]
fn refused(document: Value, changes: Value) -> (String, String) {
    let mut changed = document.clone();
    let error = apply(&mut changed, &changes).expect_err("it is refused");
    assert_eq!(changed, document, "nothing of it was applied");
    (error.pointer.unwrap_or_default(), error.message)
}

#[test]
fn the_examples_of_the_standard() {
    let cases = [
        (
            json!({"foo": "bar"}),
            json!([{"op": "add", "path": "/baz", "value": "qux"}]),
            json!({"baz": "qux", "foo": "bar"}),
        ),
        (
            json!({"foo": ["bar", "baz"]}),
            json!([{"op": "add", "path": "/foo/1", "value": "qux"}]),
            json!({"foo": ["bar", "qux", "baz"]}),
        ),
        (
            json!({"baz": "qux", "foo": "bar"}),
            json!([{"op": "remove", "path": "/baz"}]),
            json!({"foo": "bar"}),
        ),
        (
            json!({"foo": ["bar", "qux", "baz"]}),
            json!([{"op": "remove", "path": "/foo/1"}]),
            json!({"foo": ["bar", "baz"]}),
        ),
        (
            json!({"baz": "qux"}),
            json!([{"op": "replace", "path": "/baz", "value": "boo"}]),
            json!({"baz": "boo"}),
        ),
        (
            json!({"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}}),
            json!([{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}]),
            json!({"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}}),
        ),
        (
            json!({"foo": ["all", "grass", "cows", "eat"]}),
            json!([{"op": "move", "from": "/foo/1", "path": "/foo/3"}]),
            json!({"foo": ["all", "cows", "eat", "grass"]}),
        ),
        (
            json!({"baz": "qux", "foo": ["a", 2]}),
            json!([{"op": "test", "path": "/baz", "value": "qux"}, {"op": "test", "path": "/foo/1", "value": 2}]),
            json!({"baz": "qux", "foo": ["a", 2]}),
        ),
        (
            json!({"foo": "bar"}),
            json!([{"op": "add", "path": "/child", "value": {"grandchild": {}}}]),
            json!({"foo": "bar", "child": {"grandchild": {}}}),
        ),
        (
            json!({"/": 9, "~1": 10}),
            json!([{"op": "test", "path": "/~01", "value": 10}]),
            json!({"/": 9, "~1": 10}),
        ),
        (
            json!({"foo": ["bar"]}),
            json!([{"op": "add", "path": "/foo/-", "value": ["abc"]}]),
            json!({"foo": ["bar", ["abc"]]}),
        ),
        (
            json!({"a": [1]}),
            json!([{"op": "copy", "from": "/a", "path": "/b"}]),
            json!({"a": [1], "b": [1]}),
        ),
        (
            json!({"a": 1}),
            json!([{"op": "replace", "path": "", "value": 2}]),
            json!(2),
        ),
    ];
    for (document, changes, wanted) in cases {
        assert_eq!(patched(document, changes.clone()), wanted, "{changes}");
    }
}

#[test]
fn what_is_wrong_is_named_at_its_place() {
    let document = json!({"nodes": [{"id": "a"}], "id": "flow"});
    let cases = [
        (json!({"op": "add"}), "/changes", "expected a list"),
        (
            json!([{"op": "ad", "path": "/x", "value": 1}]),
            "/changes/0/op",
            "did you mean \"add\"",
        ),
        (
            json!([{"op": "add", "path": "x", "value": 1}]),
            "/changes/0/path",
            "begins with",
        ),
        (json!([{"op": "add", "path": "/x"}]), "/changes/0", "\"value\""),
        (
            json!([{"op": "add", "path": "/nodes/2", "value": 1}]),
            "/changes/0/path",
            "no place in a list of 1",
        ),
        (
            json!([{"op": "add", "path": "/nodes/01", "value": 1}]),
            "/changes/0/path",
            "no place",
        ),
        (
            json!([{"op": "add", "path": "/nodes/4/timeout", "value": 1}]),
            "/changes/0/path",
            "nothing at \"/nodes/4\"",
        ),
        (
            json!([{"op": "add", "path": "/id/x", "value": 1}]),
            "/changes/0/path",
            "only a list or an object",
        ),
        (
            json!([{"op": "test", "path": "/id", "value": "flow"}, {"op": "test", "path": "/id", "value": "other"}]),
            "/changes/1/path",
            "another one",
        ),
        (
            json!([{"op": "replace", "path": "/no", "value": 1}]),
            "/changes/0/path",
            "nothing at",
        ),
        (
            json!([{"op": "remove", "path": "/no"}]),
            "/changes/0/path",
            "nothing at",
        ),
        (
            json!([{"op": "move", "from": "/nodes", "path": "/nodes/0"}]),
            "/changes/0/path",
            "into itself",
        ),
        (
            json!([{"op": "copy", "from": "/no", "path": "/x"}]),
            "/changes/0/from",
            "nothing at",
        ),
        (json!([7]), "/changes/0/path", "\"path\""),
        (
            Value::Array(vec![json!({}); CHANGES_MAX + 1]),
            "",
            "the limit is 1000",
        ),
    ];
    for (changes, pointer, message) in cases {
        let (found, text) = refused(document.clone(), changes);
        assert_eq!(found, pointer, "{text}");
        assert!(text.contains(message), "{text}");
    }
}

#[test]
fn copies_of_copies_are_bounded() {
    let doubling: Vec<Value> = (0..40)
        .map(|_| json!({"op": "copy", "from": "/a", "path": "/a/-"}))
        .collect();
    let (_, message) = refused(json!({"a": [1, 2, 3, 4, 5, 6, 7, 8]}), Value::Array(doubling));
    assert!(message.contains("4194304 bytes"), "{message}");
}

#[test]
fn a_long_text_is_not_copied_without_end() {
    let document = json!({"text": "x".repeat(100_000), "list": []});
    let copies = vec![json!({"op": "copy", "from": "/text", "path": "/list/-"}); 100];
    let (_, message) = refused(document, Value::Array(copies));
    assert!(message.contains("4194304 bytes"), "{message}");
}

/// Each operation is small, and together they would nest far deeper than any recursion can follow.
#[test]
fn a_document_does_not_become_deeper_than_the_limit() {
    let doubled: Vec<Value> = (0..18)
        .map(|power| json!({"op": "copy", "from": "", "path": "/a".repeat(1 << power)}))
        .collect();
    let moved: Vec<Value> = (0..200)
        .flat_map(|_| {
            [
                json!({"op": "add", "path": "/b", "value": {}}),
                json!({"op": "move", "from": "/a", "path": "/b/a"}),
                json!({"op": "move", "from": "/b", "path": "/a"}),
            ]
        })
        .collect();
    let replaced: Vec<Value> = (0..200)
        .map(|level| json!({"op": "replace", "path": "/a".repeat(level + 1), "value": {"a": 1}}))
        .collect();
    for changes in [doubled, moved, replaced] {
        let (_, message) = refused(json!({"a": 1}), Value::Array(changes));
        assert!(
            message.contains("nested deeper than the limit of 100"),
            "{message}"
        );
    }
}

#[test]
fn a_long_path_is_shortened_in_the_message() {
    let (_, message) = refused(
        json!({}),
        json!([{"op": "remove", "path": format!("/{}", "x".repeat(100_000))}]),
    );
    assert!(message.len() < 400, "{} bytes", message.len());
}

#[test]
fn a_changed_document_has_the_limit_of_a_stored_one() {
    let workflow = crate::simulate::chain(json!([{"id": "a"}]), json!({}));
    let export = super::recorded(json!({"workflow": workflow}));
    let described = |bytes: usize| json!({"changes": super::set("/description", "x".repeat(bytes))});
    let error = super::try_what_if(&export, described(512 << 10)).expect_err("it is refused");
    assert_eq!((error.status, error.code), (422, "limit_exceeded"));
    assert!(error.message.contains("the limit is 524288"), "{}", error.message);
    super::try_what_if(&export, described(1_000)).expect("it is small enough");
}
