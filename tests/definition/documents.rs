//! Reading documents: all problems are reported together, each with its pointer and code.

use curfew::definition::problem::{Problem, Severity};
use curfew::definition::snapshot::{CheckError, DocumentKind, Library, check};
use curfew::definition::timeouts::TimeoutRules;
use serde_json::{Value, json};

use crate::run::driver::complete_document;

pub fn problems_of(kind: DocumentKind, document: &Value, library: &Library) -> Vec<Problem> {
    problems_under(&TimeoutRules::default(), kind, document, library)
}

pub fn problems_under(
    rules: &TimeoutRules,
    kind: DocumentKind,
    document: &Value,
    library: &Library,
) -> Vec<Problem> {
    match check(kind, document, library, rules) {
        Ok(warnings) => warnings,
        Err(CheckError::Invalid(problems)) => problems,
        Err(CheckError::Missing(references)) => panic!("{references:?} were not looked up for {document}"),
    }
}

fn lines(problems: &[Problem]) -> Vec<String> {
    let line = |problem: &Problem| {
        let mark = match problem.severity {
            Severity::Error => "",
            Severity::Warning => "warning ",
        };
        format!("{mark}{} {}: {}", problem.pointer, problem.code, problem.message)
    };
    problems.iter().map(line).collect()
}

/// Each expected line is a prefix of a problem's `pointer code: message`.
#[track_caller]
pub fn expect(kind: DocumentKind, document: Value, expected: &[&str]) {
    expect_under(
        &TimeoutRules::default(),
        kind,
        document,
        &Library::new(),
        expected,
    );
}

#[track_caller]
pub fn expect_under(
    rules: &TimeoutRules,
    kind: DocumentKind,
    document: Value,
    library: &Library,
    expected: &[&str],
) {
    let found = lines(&problems_under(rules, kind, &document, library));
    let fits = found.len() == expected.len()
        && found
            .iter()
            .zip(expected)
            .all(|(line, start)| line.starts_with(start));
    assert!(
        fits,
        "expected\n    {}\nbut found\n    {}\nin {document}",
        expected.join("\n    "),
        found.join("\n    ")
    );
}

#[track_caller]
pub fn workflow(document: Value, expected: &[&str]) {
    expect(DocumentKind::Workflows, complete_document(document), expected);
}

#[track_caller]
fn node(fields: Value, expected: &[&str]) {
    let mut node = json!({"id": "a", "action_id": "work"});
    for (key, value) in fields.as_object().into_iter().flatten() {
        node[key] = value.clone();
    }
    workflow(json!({"nodes": [node]}), expected);
}

#[track_caller]
fn transition(fields: Value, expected: &[&str]) {
    let mut transition = json!({"from_node_id": "a", "to_node_id": "b"});
    for (key, value) in fields.as_object().into_iter().flatten() {
        transition[key] = value.clone();
    }
    let nodes = json!([{"id": "a", "action_id": "work"}, {"id": "b"}]);
    workflow(json!({"nodes": nodes, "transitions": [transition]}), expected);
}

#[test]
fn a_valid_document_has_no_problem() {
    node(json!({}), &[]);
    transition(
        json!({"condition": "state.a.ok && error == null", "priority": -3}),
        &[],
    );
}

#[test]
fn every_problem_is_reported_in_the_order_of_pointers() {
    workflow(
        json!({
            "id": "Not An Id",
            "nodes": [
                {"id": "a", "action_id": "work", "timeout": "30"},
                {"id": "a"},
                {"id": "b", "output_mapping": {"input.x": 1, "state.y": "${nothing}"}},
            ],
            "transitions": [
                {"from_node_id": "a", "to_node_id": "c", "condition": "1 +"},
                {"from_node_id": "a"},
            ],
            "tags": [""],
            "surprise": 1,
        }),
        &[
            "/id invalid_id: \"Not An Id\" is no id",
            "/nodes/0/timeout invalid_duration: invalid duration \"30\": a number needs its unit",
            "/nodes/1/id duplicate_id: another node is named \"a\"",
            "/nodes/2/output_mapping/input.x invalid_target: \"input.x\" is not a target",
            "/nodes/2/output_mapping/state.y unknown_name: \"nothing\" is not a name here; the names are input, state",
            "/surprise unknown_field: unknown field",
            "/tags/0 wrong_type: a tag is a string of 1-64 bytes",
            "/transitions/0/condition invalid_expression: column",
            "/transitions/0/to_node_id unknown_node: no node is named \"c\"",
            "/transitions/1/to_node_id missing_field: \"to_node_id\" is required",
        ],
    );
}

#[test]
fn an_unknown_field_is_reported_with_a_suggestion() {
    node(
        json!({"timout_ms": 5, "zzz": 1}),
        &[
            "/nodes/0/timout_ms unknown_field: unknown field; did you mean \"timeout_ms\"? (known: id, ",
            "/nodes/0/zzz unknown_field: unknown field",
        ],
    );
}

/// Not the first similar name: `timeout` is two edits from the misspelling, `timeouts` is one.
#[test]
fn the_closest_name_is_suggested() {
    expect(
        DocumentKind::Workflows,
        complete_document(
            json!({"nodes": [{"id": "a"}], "timeoutz": {}, "timeoutts": {}, "output_maping": {}}),
        ),
        &[
            "/output_maping unknown_field: unknown field; did you mean \"output_mapping\"?",
            "/timeoutts unknown_field: unknown field; did you mean \"timeouts\"?",
            "/timeoutz unknown_field: unknown field; did you mean \"timeout\"?",
        ],
    );
}

/// The response to an invalid document must not be many times its size.
#[test]
fn the_list_of_known_fields_is_not_repeated_endlessly() {
    let fields: serde_json::Map<String, Value> =
        (0..5_000).map(|n| (format!("wrong{n}"), json!(1))).collect();
    let problems = problems_of(DocumentKind::Workflows, &json!(fields), &Library::new());
    assert!(problems.len() > 5_000);
    let listing = problems
        .iter()
        .filter(|problem| problem.message.contains("known: "));
    assert!(listing.count() <= 100);
}

#[test]
fn durations_have_two_forms_and_one_at_a_time() {
    for (fields, problem) in [
        (json!({"timeout_ms": 5}), None),
        (json!({"timeout": "1h30m"}), None),
        (json!({"timeout": null}), None),
        (
            json!({"timeout": "1s", "timeout_ms": 5}),
            Some("/nodes/0/timeout both_forms: write either"),
        ),
        (
            json!({"timeout": 5}),
            Some("/nodes/0/timeout wrong_type: expected a duration"),
        ),
        (
            json!({"timeout_ms": "5"}),
            Some("/nodes/0/timeout_ms wrong_type: expected a whole number of milliseconds, found a string"),
        ),
        (
            json!({"timeout_ms": -5}),
            Some("/nodes/0/timeout_ms out_of_range: -5 must not be negative"),
        ),
        (json!({"timeout_ms": 1.5}), Some("/nodes/0/timeout_ms wrong_type")),
        (
            json!({"timeout_ms": 0}),
            Some("/nodes/0/timeout_ms out_of_range: 0s is outside 1ms to 720h0m0s"),
        ),
        (json!({"timeout": "721h"}), Some("/nodes/0/timeout out_of_range")),
        (
            json!({"timeout": "5 s"}),
            Some("/nodes/0/timeout invalid_duration"),
        ),
    ] {
        node(fields, problem.as_slice());
    }
}

#[test]
fn expressions_are_checked_in_their_own_scope() {
    for (fields, problem) in [
        (
            json!({"condition": "1 +"}),
            "/transitions/0/condition invalid_expression: column",
        ),
        (
            json!({"condition": "result == 1"}),
            "/transitions/0/condition unknown_name: \"result\" is not a name here",
        ),
        (
            json!({"condition": true}),
            "/transitions/0/condition wrong_type: expected a string, found a boolean",
        ),
        (
            json!({"condition": "x".repeat(5_000)}),
            "/transitions/0/condition invalid_expression",
        ),
    ] {
        transition(fields, &[problem]);
    }
    node(
        json!({"input_mapping": {"deep": ["${1 +}", "${result}", "text ${oops"]}}),
        &["/nodes/0/input_mapping/deep/2 invalid_expression: `${` at column 6 is not closed"],
    );
    node(
        json!({"input_mapping": {"deep": ["${1 +}", "${result}"]}}),
        &["/nodes/0/input_mapping/deep/0 invalid_expression: expression `1 +`"],
    );
    node(
        json!({"input_mapping": "${result}"}),
        &["/nodes/0/input_mapping unknown_name: \"result\""],
    );
    workflow(
        json!({"nodes": [{"id": "a"}], "output_mapping": "${error}"}),
        &["/output_mapping unknown_name: \"error\""],
    );
    // The present moment is known everywhere.
    transition(json!({"condition": "now > run.started_at"}), &[]);
    transition(json!({"foreach": {"collection": "[now]"}}), &[]);
    node(
        json!({"input_mapping": "${now}", "output_mapping": {"state.at": "${now}"}}),
        &[],
    );
    workflow(json!({"nodes": [{"id": "a"}], "output_mapping": "${now}"}), &[]);
}

#[test]
fn targets_are_paths_below_state_and_output() {
    for (target, code) in [
        ("state", "would replace everything"),
        ("input.x", "is not a target"),
        ("state..x", "has an empty name"),
        ("x", "is not a target"),
        ("", "is not a target"),
    ] {
        let document = json!({"nodes": [{"id": "a", "output_mapping": {target: 1}}]});
        let problems = problems_of(
            DocumentKind::Workflows,
            &complete_document(document),
            &Library::new(),
        );
        assert_eq!(problems.len(), 1, "{target}");
        assert_eq!(problems[0].code, "invalid_target");
        assert!(problems[0].message.contains(code), "{}", problems[0]);
    }
}

#[test]
fn a_loop_that_does_nothing_is_rejected_and_one_that_can_end_is_not() {
    let loops = |first: Value, second: Value| {
        let mut transitions = [
            json!({"from_node_id": "a", "to_node_id": "b"}),
            json!({"from_node_id": "b", "to_node_id": "a"}),
        ];
        for (transition, more) in transitions.iter_mut().zip([first, second]) {
            for (key, value) in more.as_object().into_iter().flatten() {
                transition[key] = value.clone();
            }
        }
        json!({"nodes": [{"id": "a"}, {"id": "b"}], "transitions": transitions})
    };
    workflow(
        loops(json!({}), json!({})),
        &[
            "/nodes/0 empty_loop: node \"a\" is part of a loop",
            "/nodes/1 empty_loop: node \"b\" is part of a loop",
        ],
    );
    workflow(
        loops(json!({}), json!({"loop_config": {"max_iterations": 2}})),
        &[],
    );
    workflow(loops(json!({"condition": "state.x"}), json!({})), &[]);
}

#[test]
fn an_unreachable_node_is_a_warning() {
    workflow(
        json!({"nodes": [{"id": "a"}, {"id": "b"}, {"id": "c"}], "initial_node_id": "b",
               "transitions": [{"from_node_id": "b", "to_node_id": "c"}]}),
        &["warning /nodes/0 unreachable_node: no path leads to node \"a\" from \"b\""],
    );
    workflow(
        json!({"nodes": [{"id": "a"}], "initial_node_id": "b"}),
        &["/initial_node_id unknown_node"],
    );
}

#[test]
fn a_queue_that_is_requested_but_not_used_is_a_warning() {
    let node = |node: Value, run: Value| {
        let mut document =
            json!({"nodes": [{"id": "a", "action_id": "work", "dispatch": "queue"}], "timeout": run});
        for (key, value) in node.as_object().into_iter().flatten() {
            document["nodes"][0][key] = value.clone();
        }
        document
    };
    let warning =
        "warning /nodes/0/dispatch queue_too_long: a task that may take longer than 14m0s is called directly";
    workflow(node(json!({"timeout_ms": 840_001}), json!("1h")), &[warning]);
    workflow(node(json!({"timeout_ms": null}), json!("1h")), &[warning]);
    workflow(node(json!({"timeout": "14m"}), json!("1h")), &[]);
    workflow(node(json!({"timeout": "1h"}), json!("14m")), &[]);
    // The remaining time of the run and the limit of the task are not known here.
    workflow(node(json!({}), json!("1h")), &[]);
}

#[test]
fn limits_are_exact_and_stated() {
    let nodes = |count: usize| -> Vec<Value> {
        (0..count)
            .map(|index| json!({"id": format!("n{index}")}))
            .collect()
    };
    let errors = |document: Value| {
        let problems = problems_of(
            DocumentKind::Workflows,
            &complete_document(document),
            &Library::new(),
        );
        let errors = problems
            .into_iter()
            .filter(|problem| problem.severity == Severity::Error);
        lines(&errors.collect::<Vec<_>>()).join("\n")
    };
    assert_eq!(errors(json!({"nodes": nodes(500)})), "");
    assert_eq!(
        errors(json!({"nodes": nodes(501)})),
        "/nodes limit_exceeded: 501 nodes; the limit is 500"
    );
    let transitions = |count: usize| vec![json!({"from_node_id": "n0", "to_node_id": "n1"}); count];
    assert_eq!(
        errors(json!({"nodes": nodes(2), "transitions": transitions(2_000)})),
        ""
    );
    assert_eq!(
        errors(json!({"nodes": nodes(2), "transitions": transitions(2_001)})),
        "/transitions limit_exceeded: 2001 transitions; the limit is 2000"
    );
    assert_eq!(errors(json!({"nodes": nodes(1), "tags": vec!["t"; 20]})), "");
    assert_eq!(
        errors(json!({"nodes": nodes(1), "tags": vec!["t"; 21]})),
        "/tags limit_exceeded: the limit is 20 tags"
    );
    assert_eq!(
        errors(json!({"nodes": nodes(1), "limits": {"tokens_total": 0, "tokens_active": 1_000_001}})),
        "/limits/tokens_active out_of_range: 1000001 is outside 1 to 1000000\n\
         /limits/tokens_total out_of_range: 0 is outside 1 to 1000000"
    );
    assert_eq!(errors(json!({"id": "x".repeat(64), "nodes": nodes(1)})), "");
    assert!(errors(json!({"id": "x".repeat(65), "nodes": nodes(1)})).starts_with("/id invalid_id"));
}

#[test]
fn unimplemented_fields_are_rejected_not_ignored() {
    workflow(
        json!({"nodes": [{"id": "a"}], "trigger": {"cron": "0 9 * * *"}}),
        &["/trigger/cron unsupported"],
    );
}

#[test]
fn documents_that_are_not_objects_are_reported() {
    for (value, kind) in [
        (json!(null), "null"),
        (json!([]), "an array"),
        (json!("x"), "a string"),
        (json!(1), "a number"),
        (json!(true), "a boolean"),
    ] {
        let line = format!(" wrong_type: expected an object, found {kind}");
        for document in [
            DocumentKind::Actions,
            DocumentKind::Tasks,
            DocumentKind::Workflows,
        ] {
            expect(document, value.clone(), &[&line]);
        }
    }
}
