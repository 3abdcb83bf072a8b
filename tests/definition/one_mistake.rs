//! One mistake is one problem: what follows from it is left out, and its message says what to write instead.

use curfew::definition::snapshot::{DocumentKind, Library, Reference};
use serde_json::{Value, json};

use super::documents::problems_of;

/// A fan-out, a join and an action: enough for one mistake to have consequences elsewhere.
fn document() -> Value {
    json!({
        "id": "w",
        "timeout": "1h",
        "nodes": [{"id": "a", "action_id": "call"}, {"id": "b", "action_id": "call"}, {"id": "c"}],
        "transitions": [
            {"id": "go", "from_node_id": "a", "to_node_id": "b", "spawn_count": 2},
            {"id": "on", "from_node_id": "b", "to_node_id": "c", "synchronization": {"sibling_group": "go", "strategy": "all",
                "merge": {"target": "state.all", "strategy": "append"}}},
        ],
        "actions": [{"id": "call", "kind": "http_request", "implementation": {"url": "https://x.example/"},
            "execution": {"timeout": "30s"}}],
    })
}

/// The problems after `value` was written at `pointer`, as `pointer code: message`.
fn problems_with(pointer: &str, value: Value) -> Vec<String> {
    let mut document = document();
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    match document.pointer_mut(parent).expect("it is there") {
        Value::Array(items) => items[key.parse::<usize>().expect("an index")] = value,
        Value::Object(fields) => {
            if key == "timeout_ms" {
                fields.remove("timeout");
            }
            fields.insert(key.to_string(), value);
        }
        other => panic!("{other} has no parts"),
    }
    // The catalogue has none of the actions.
    let mut library = Library::new();
    for id in ["call", "kall"] {
        let reference = Reference {
            kind: DocumentKind::Actions,
            id: id.into(),
            version: None,
        };
        library.insert(reference, None);
    }
    let problems = problems_of(DocumentKind::Workflows, &document, &library);
    let line =
        |it: &curfew::definition::problem::Problem| format!("{} {}: {}", it.pointer, it.code, it.message);
    problems.iter().map(line).collect()
}

#[track_caller]
fn expect_one(pointer: &str, value: Value, expected: &str) {
    let found = problems_with(pointer, value.clone());
    let fits = found.len() == 1 && found[0].contains(expected);
    assert!(fits, "{pointer} = {value}: expected {expected}, found {found:#?}");
}

#[test]
fn the_document_without_a_mistake_has_no_problem() {
    assert_eq!(problems_with("/timeout", json!("1h")), [""; 0]);
}

#[test]
fn what_cannot_be_read_makes_nothing_else_unknown() {
    for (pointer, value, expected) in [
        (
            "/transitions/0/to_node_id",
            json!("bb"),
            "/transitions/0/to_node_id unknown_node: no node is named \"bb\"",
        ),
        (
            "/transitions/0/from_node_id",
            json!("aa"),
            "/transitions/0/from_node_id unknown_node",
        ),
        (
            "/transitions/1/to_node_id",
            json!("cc"),
            "/transitions/1/to_node_id unknown_node",
        ),
        ("/transitions/0/id", json!("G O"), "/transitions/0/id invalid_id"),
        (
            "/transitions/0/spawn_count",
            json!("two"),
            "/transitions/0/spawn_count wrong_type",
        ),
        (
            "/transitions/1/synchronization/sibling_group",
            json!("gone"),
            "unknown_group: nothing spawns a group \"gone\"",
        ),
        ("/nodes/0/id", json!("A b"), "/nodes/0/id invalid_id"),
        ("/nodes/1/id", json!("B!"), "/nodes/1/id invalid_id"),
        ("/nodes/0", json!("a"), "/nodes/0 wrong_type"),
        (
            "/nodes/2/wait",
            json!({"sleep": "5"}),
            "/nodes/2/wait/sleep invalid_duration",
        ),
        (
            "/nodes/2/wait",
            json!({"until": "tomorrow"}),
            "/nodes/2/wait/until invalid_moment",
        ),
        (
            "/nodes/2/gate",
            json!({"timeout": "5 minutes"}),
            "/nodes/2/gate/timeout invalid_duration",
        ),
        ("/initial_node_id", json!("zz"), "/initial_node_id unknown_node"),
        ("/actions/0/id", json!("CALL"), "/actions/0/id invalid_id"),
        ("/actions/0/kind", json!("http"), "/actions/0/kind invalid_choice"),
        (
            "/nodes/0/action_id",
            json!("kall"),
            "/nodes/0/action_id unknown_reference",
        ),
        (
            "/actions/0/implementation",
            json!({"uri": "https://x.example/"}),
            "unknown_field: unknown field; did you mean \"url\"?",
        ),
        (
            "/actions/0/implementation",
            json!({}),
            "/actions/0/implementation/url missing_field",
        ),
    ] {
        expect_one(pointer, value, expected);
    }
}

/// A syntax error is not followed by names that the rest of the expression has.
#[test]
fn an_expression_has_its_first_problem_only() {
    for (pointer, value, expected) in [
        (
            "/transitions/0/condition",
            json!("inputt.x > 1 && foo =="),
            "column 23: unexpected end of expression",
        ),
        (
            "/actions/0/implementation/url",
            json!("${inputt.}"),
            "invalid_expression",
        ),
        (
            "/actions/0/implementation/url",
            json!("${inputt.x}"),
            "unknown_name: \"inputt\" is not a name here",
        ),
    ] {
        expect_one(pointer, value, expected);
    }
}

#[test]
fn braces_around_an_expression_are_left_out() {
    for (pointer, value, expected) in [
        (
            "/transitions/0/condition",
            json!("${input.x > 1}"),
            "leave out ${}: this field is an expression already; write \"input.x > 1\"",
        ),
        (
            "/transitions/0/condition",
            json!(" ${ input.x > 1 } "),
            "write \"input.x > 1\"",
        ),
    ] {
        expect_one(pointer, value, expected);
    }
    let mut each = document();
    each["transitions"][0] = json!({"id": "go", "from_node_id": "a", "to_node_id": "b",
        "foreach": {"collection": "${input.items}", "item_var": "it"}});
    let found = problems_of(DocumentKind::Workflows, &each, &Library::new());
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].message.starts_with("leave out ${}"), "{found:?}");
}

#[test]
fn a_duration_or_a_count_must_not_be_negative() {
    for (pointer, value) in [
        ("/timeout", json!("-5s")),
        ("/timeout_ms", json!(-5)),
        ("/timeouts", json!({"step": -5})),
        ("/gate", json!({"timeout_ms": -1})),
        ("/limits", json!({"tokens_total": -1})),
        ("/nodes/0/max_retries", json!(-1)),
        ("/nodes/0/timeout", json!("-1s")),
        ("/nodes/2/wait", json!({"sleep": "-5s"})),
        ("/nodes/2/wait", json!({"sleep_ms": -5})),
        ("/transitions/0/spawn_count", json!(-1)),
        ("/transitions/0/loop_config", json!({"max_iterations": -1})),
        ("/transitions/1/synchronization/timeout_ms", json!(-1)),
        ("/transitions/1/synchronization/strategy", json!({"m_of_n": -1})),
        ("/actions/0/execution", json!({"timeout": "-3s"})),
        (
            "/actions/0/execution",
            json!({"timeout": "30s", "retry_policy": {"max_attempts": -1}}),
        ),
        (
            "/actions/0/execution",
            json!({"timeout": "30s", "retry_policy": {"initial_delay_ms": -1}}),
        ),
    ] {
        expect_one(pointer, value, "must not be negative");
    }
}

/// Independent mistakes are all reported.
#[test]
fn two_mistakes_are_two_problems() {
    let mut two = document();
    two["transitions"][0]["to_node_id"] = json!("bb");
    two["transitions"][1]["synchronization"]["sibling_group"] = json!("gone");
    let found = problems_of(DocumentKind::Workflows, &two, &Library::new());
    let codes: Vec<&str> = found.iter().map(|problem| problem.code).collect();
    assert_eq!(codes, ["unknown_node", "unknown_group"]);
}

/// As everywhere a duration is text or has `_ms`, except in `timeouts`.
#[test]
fn a_bare_number_in_timeouts_is_milliseconds() {
    assert_eq!(
        problems_with(
            "/timeouts",
            json!({"step": 900_000, "tool": "2m", "llm_call_ms": 60_000})
        ),
        [""; 0]
    );
    let found = problems_with("/timeouts", json!({"preset": "flow", "step": 16 * 60_000}));
    assert!(
        found
            .iter()
            .any(|line| line.contains("/timeouts/step over_hard_limit")),
        "{found:?}"
    );
}

#[test]
fn a_name_that_two_nodes_have_says_nothing_about_their_compensations() {
    let mut document = document();
    let nodes = json!([{"id": "a", "action_id": "call"}, {"id": "c", "wait": {"sleep": "1s"}},
        {"id": "c", "action_id": "call", "compensate": {"action_id": "call"}}, {"id": "b", "action_id": "call"}]);
    document["nodes"] = nodes;
    let problems = problems_of(DocumentKind::Workflows, &document, &Library::new());
    let codes: Vec<_> = problems.iter().map(|it| (it.code, it.pointer.as_str())).collect();
    assert_eq!(codes, [("duplicate_id", "/nodes/2/id")]);
}
