//! Nothing of the code is missing on its page: fields of documents, functions of expressions, codes,
//! variables, routes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use curfew::api::routes::Route;
use curfew::base::failure::FailureClass;
use curfew::cel::Expression;
use curfew::definition::snapshot::{CheckError, DocumentKind, Library, check};
use curfew::definition::timeouts::TimeoutRules;
use curfew::run::{RunStatus, TokenStatus};
use serde_json::{Value, json};

use super::{blocks, read, root};

/// A name that nothing knows: the answer lists what is known in its place.
pub(super) const PROBE: &str = "zzzzzzzzzz";

/// The text between a heading and the next one.
fn section(page: &str, heading: &str) -> String {
    let text = read(page);
    let mut lines = text.lines().skip_while(|line| *line != heading);
    assert!(lines.next().is_some(), "{page} has no heading \"{heading}\"");
    let is_heading = |line: &str| line.trim_start_matches('#').len() < line.len();
    let lines: Vec<&str> = lines.take_while(|line| !is_heading(line)).collect();
    lines.join("\n")
}

/// The fields that the reader knows where `document` holds the probe.
fn known_fields(kind: DocumentKind, document: &Value) -> Vec<String> {
    let checked = check(kind, document, &Library::new(), &TimeoutRules::default());
    let Err(CheckError::Invalid(problems)) = checked else {
        panic!("{document} was not refused");
    };
    let probe = format!("/{PROBE}");
    let problem = problems.iter().find(|problem| problem.pointer.ends_with(&probe));
    let problem =
        problem.unwrap_or_else(|| panic!("{document}: the probe was not reported, but {problems:?}"));
    let (_, known) = problem.message.split_once("(known: ").expect("the known fields");
    let known = known.trim_end_matches(')').split(", ");
    known.map(str::to_string).collect()
}

fn probe() -> Value {
    json!({PROBE: 1})
}

/// `object` with the probe in it.
fn probed(mut object: Value) -> Value {
    object[PROBE] = json!(1);
    object
}

fn workflow_with(field: &str, value: Value) -> Value {
    json!({"id": "w", "nodes": [{"id": "a"}, {"id": "b"}], field: value})
}

fn node_with(field: &str, value: Value) -> Value {
    workflow_with("nodes", json!([{"id": "a", field: value}]))
}

fn transition_with(field: &str, value: Value) -> Value {
    workflow_with(
        "transitions",
        json!([{"from_node_id": "a", "to_node_id": "b", field: value}]),
    )
}

fn action() -> Value {
    json!({"id": "a", "kind": "update_context", "implementation": {"set": {}}})
}

fn task_with(field: &str, value: Value) -> Value {
    json!({"id": "t", "steps": [{"action": action()}], field: value})
}

/// A part of a document: the page and the heading that tell of it, and a document that has the probe there.
struct Part {
    page: &'static str,
    heading: String,
    kind: DocumentKind,
    document: Value,
}

fn parts() -> Vec<Part> {
    let of_page = |page, kind, parts: Vec<(&str, Value)>| {
        let part = move |(heading, document): (&str, Value)| Part {
            page,
            heading: heading.to_string(),
            kind,
            document,
        };
        parts.into_iter().map(part).collect::<Vec<_>>()
    };
    let join = |value: Value| transition_with("synchronization", value);
    let step = |value: Value| task_with("steps", json!([value]));
    let execution = |value: Value| {
        let request = json!({"url": "https://example.com"});
        json!({"id": "a", "kind": "http_request", "implementation": request, "execution": value})
    };
    let workflows = vec![
        ("## Workflow", probed(json!({"id": "w"}))),
        ("### gate of a workflow", workflow_with("gate", probe())),
        ("### timeouts", workflow_with("timeouts", probe())),
        ("### limits of a run", workflow_with("limits", probe())),
        ("### trigger", workflow_with("trigger", probe())),
        ("## Node", node_with(PROBE, json!(1))),
        ("### gate", node_with("gate", probe())),
        ("### wait", node_with("wait", probe())),
        ("## Transition", transition_with(PROBE, json!(1))),
        ("## Transition", transition_with("loop_config", probe())),
        ("### foreach", transition_with("foreach", probe())),
        ("### synchronization", join(probe())),
        ("### synchronization", join(json!({"strategy": probe()}))),
        ("### merge", join(json!({"merge": probe()}))),
    ];
    let tasks = vec![
        ("## The document", task_with(PROBE, json!(1))),
        ("### retry", task_with("retry", probe())),
        ("### Step", step(probe())),
        (
            "### condition",
            step(json!({"action": action(), "condition": probe()})),
        ),
    ];
    let format = json!({"response_format": probe()});
    let actions = vec![
        ("## The document", probed(action())),
        ("### execution", execution(probe())),
        (
            "## Retries of a call",
            execution(json!({"retry_policy": probe()})),
        ),
        (
            "### llm_call",
            json!({"id": "a", "kind": "llm_call", "implementation": format}),
        ),
    ];
    let ends = vec![
        ("## compensation", workflow_with("compensation", probe())),
        ("## on_end", workflow_with("on_end", json!([probe()]))),
        ("## compensate", node_with("compensate", probe())),
    ];
    let notifications = vec![("## notify", workflow_with("notify", json!([probe()])))];
    let mut parts = of_page("docs/documents.md", DocumentKind::Workflows, workflows);
    parts.extend(of_page(
        "docs/notifications.md",
        DocumentKind::Workflows,
        notifications,
    ));
    parts.extend(of_page("docs/ends.md", DocumentKind::Workflows, ends));
    parts.extend(of_page("docs/tasks.md", DocumentKind::Tasks, tasks));
    parts.extend(of_page("docs/actions.md", DocumentKind::Actions, actions));
    parts.extend(action_kinds().into_iter().map(|kind| Part {
        page: "docs/actions.md",
        heading: format!("### {kind}"),
        kind: DocumentKind::Actions,
        document: json!({"id": "a", "kind": kind, "implementation": probe()}),
    }));
    parts
}

#[test]
fn every_field_is_on_its_page_with_an_example() {
    let blocks = blocks();
    for part in parts() {
        let Part { page, heading, .. } = &part;
        let text = section(page, heading);
        let examples: String = blocks
            .iter()
            .filter(|block| block.page == *page && block.info.starts_with("json "))
            .map(|block| block.text.as_str())
            .collect();
        let known = known_fields(part.kind, &part.document);
        for field in &known {
            // A duration's second spelling is told of once, for all of them.
            let is_spelling = field
                .strip_suffix("_ms")
                .is_some_and(|stem| known.iter().any(|other| other == stem));
            if is_spelling || RESERVED.contains(&field.as_str()) {
                continue;
            }
            assert!(
                text.contains(&format!("`{field}`")),
                "{page}, \"{heading}\": `{field}` is missing"
            );
            let has_example = examples.contains(&format!("\"{field}\":"));
            assert!(
                has_example,
                "{page}: no example has the field \"{field}\" of \"{heading}\""
            );
        }
    }
}

/// Fields that are known only to be refused.
const RESERVED: &[&str] = &["cron", "timezone"];

/// All kinds of actions, from the refusal of one that is none.
fn action_kinds() -> Vec<String> {
    let document = json!({"id": "a", "kind": PROBE, "implementation": {}});
    let checked = check(
        DocumentKind::Actions,
        &document,
        &Library::new(),
        &TimeoutRules::default(),
    );
    let Err(CheckError::Invalid(problems)) = checked else {
        panic!("an unknown kind was accepted");
    };
    let told = problems
        .iter()
        .find_map(|problem| problem.message.split_once(" is none of "));
    let (_, kinds) = told.expect("the known kinds");
    kinds.split(", ").map(str::to_string).collect()
}

#[test]
fn every_function_has_an_example() {
    let refused = Expression::new(format!("{PROBE}()"))
        .check()
        .expect_err("no such function");
    let (_, known) = refused.split_once("known are ").expect("the known functions");
    let known: Vec<&str> = known.split(", ").collect();
    assert!(
        known.contains(&"parse_json") && known.contains(&"exists_one"),
        "{refused}"
    );
    let cel = blocks().into_iter().filter(|block| block.info == "cel");
    let examples: String = cel.map(|block| block.text).collect();
    for function in known {
        let is_called = [format!("{function}("), format!(".{function}(")]
            .iter()
            .any(|call| examples.contains(call));
        assert!(is_called, "docs/expressions.md has no example of {function}");
    }
}

/// The sources in a directory of the repository, without their unit tests.
fn sources(directory: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            text += &sources(&path);
        } else {
            let source = fs::read_to_string(&path).expect("a source file");
            text += source.split("#[cfg(test)]").next().unwrap_or_default();
        }
    }
    text
}

/// Names that begin with `CURFEW_`.
fn variables_in(text: &str) -> BTreeSet<String> {
    let starts = text.match_indices("CURFEW_").map(|(at, _)| &text[at..]);
    let name = |rest: &str| -> String {
        let letters = rest
            .chars()
            .take_while(|c| c.is_ascii_uppercase() || *c == '_' || c.is_ascii_digit());
        letters.collect()
    };
    starts.map(name).collect()
}

#[test]
fn every_variable_is_on_the_page_for_operators() {
    let used = variables_in(&sources(&root().join("src")));
    let told = variables_in(&read("docs/operations.md"));
    let missing: Vec<_> = used.difference(&told).collect();
    assert!(
        missing.is_empty(),
        "docs/operations.md does not tell of {missing:?}"
    );
    let invented: Vec<_> = told.difference(&used).collect();
    assert!(
        invented.is_empty(),
        "docs/operations.md tells of {invented:?}, which nothing reads"
    );
}

/// The first string literals after each `call` in the sources, behind what `skip` takes away.
fn literals_after(call: &str, skip: impl Fn(&str) -> Option<&str>) -> BTreeSet<String> {
    let text = sources(&root().join("src"));
    let arguments = text
        .match_indices(call)
        .map(|(at, _)| text[at + call.len()..].trim_start());
    let literals = arguments.filter_map(|rest| skip(rest)?.trim_start().strip_prefix('"')?.split('"').next());
    literals.map(str::to_string).collect()
}

fn assert_codes_are_told(page: &str, codes: &BTreeSet<String>) {
    let text = read(page);
    let missing: Vec<_> = codes
        .iter()
        .filter(|code| !text.contains(&format!("`{code}`")))
        .collect();
    assert!(missing.is_empty(), "{page} does not tell of {missing:?}");
}

/// Codes whose source is not `Error::new(409, "run_exists", ...)`: a constant, a table, or JavaScript.
const OTHER_CODES: &[&str] = &[
    "409 event_limit",
    "422 over_hard_limit",
    "422 under_minimum",
    "429 too_many_watchers",
];

/// Every `status code` of the API.
pub(super) fn error_codes() -> BTreeSet<String> {
    let text = sources(&root().join("src"));
    let calls = text
        .match_indices("Error::new(")
        .map(|(at, call)| &text[at + call.len()..]);
    let codes = calls.filter_map(|rest| {
        let (status, rest) = rest.split_once(',')?;
        let status: u16 = status.trim().parse().ok()?;
        let code = rest.trim_start().strip_prefix('"')?.split('"').next()?;
        Some(format!("{status} {code}"))
    });
    let mut codes: BTreeSet<String> = codes.collect();
    for other in OTHER_CODES {
        let code = other.split(' ').nth(1).expect("a code");
        assert!(
            text.contains(&format!("\"{code}\"")),
            "nothing has the code {code}"
        );
        codes.insert(other.to_string());
    }
    codes
}

#[test]
fn every_error_code_is_on_the_page_for_callers() {
    let codes = error_codes();
    let codes: BTreeSet<String> = codes
        .iter()
        .filter_map(|code| code.split(' ').nth(1))
        .map(str::to_string)
        .collect();
    assert!(
        codes.contains("run_exists") && codes.contains("unauthorized"),
        "{codes:?}"
    );
    assert_codes_are_told("docs/api.md", &codes);
}

#[test]
fn every_failure_code_is_on_the_page_for_authors() {
    let mut codes = BTreeSet::new();
    for call in ["Failure::new(", "Failure::validation(", "Failure::permanent("] {
        codes.extend(literals_after(call, |rest| Some(rest)));
    }
    assert!(
        codes.contains("attempt_lost") && codes.contains("exit_code"),
        "{codes:?}"
    );
    assert_codes_are_told("docs/actions.md", &codes);
}

/// The variants of an enum, from its source.
pub(super) fn variants_of(path: &str, name: &str) -> BTreeSet<String> {
    let text = read(path);
    let (_, body) = text
        .split_once(&format!("pub enum {name} {{\n"))
        .expect("an enum");
    let (body, _) = body.split_once("\n}").expect("its end");
    let variants = body.lines().filter_map(|line| line.strip_prefix("    "));
    let variants = variants.filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()));
    variants.map(variant_name).collect()
}

/// The name at the beginning of a variant, as its source or `Debug` writes it.
pub(super) fn variant_name(text: &str) -> String {
    text.chars().take_while(char::is_ascii_alphanumeric).collect()
}

/// Rows that begin with a method and a path.
#[test]
fn calls_on_the_page_are_the_routes() {
    let text = read("docs/api.md");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    let calls = rows
        .filter_map(|row| row.split_once('`'))
        .filter_map(|(call, _)| call.split_once(' '))
        .filter(|(_, path)| path.starts_with('/'));
    let mut seen = BTreeSet::new();
    for (method, path) in calls {
        let filled = path.split('/').map(|part| match part {
            "{kind}" => "workflows",
            "{n}" => "1",
            "{file}" => "task.json",
            part if part.starts_with('{') => "x",
            part => part,
        });
        let path = filled.collect::<Vec<_>>().join("/");
        let route = Route::parse(method, &path).unwrap_or_else(|error| panic!("{method} {path}: {error:?}"));
        for parameter in route.rules().parameters.unwrap_or_default() {
            let is_told =
                text.contains(&format!("`{parameter}`")) || text.contains(&format!("`?{parameter}="));
            assert!(
                is_told,
                "docs/api.md does not tell of the parameter {parameter} of {path}"
            );
        }
        seen.insert(variant_name(&format!("{route:?}")));
    }
    assert_eq!(seen, variants_of("src/api/routes.rs", "Route"));
}

#[test]
fn every_class_and_status_is_told() {
    let has = |page: &str, name: &str| {
        assert!(
            read(page).contains(&format!("`{name}`")),
            "{page} does not tell of {name}"
        );
    };
    for class in FailureClass::NAMES {
        has("docs/actions.md", class);
    }
    for status in RunStatus::ALL {
        has("docs/api.md", status.name());
    }
    for status in TokenStatus::ALL {
        has("docs/api.md", status.name());
    }
}
