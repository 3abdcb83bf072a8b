//! The schemas that editors use and the reader of documents agree: on every example, and on thousands of mutated documents.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use curfew::api::contract;
use curfew::base::limits::TIMEOUT_CEILING_MS;
use curfew::definition::problem::Problem;
use curfew::definition::snapshot::{CheckError, DocumentKind, Library, check};
use curfew::definition::timeouts::TimeoutRules;
use jsonschema::Validator;
use serde_json::{Value, json};

use super::mutations::{examples, mutate};
use crate::docs::blocks;
use crate::run::generator;
use curfew::simulate::Rng;

const MUTATIONS: u64 = 10_200;
pub(super) const KINDS: [DocumentKind; 3] = [
    DocumentKind::Workflows,
    DocumentKind::Tasks,
    DocumentKind::Actions,
];

/// What a schema cannot say, by the code of the problem: names that refer to others, graphs, languages inside of texts, rules that
/// need a calculation or the deployment.
const BEYOND: &[&str] = &[
    "async_not_alone",
    "different_joins",
    "duplicate",
    "duplicate_id",
    "empty_loop",
    "inline_not_pure",
    "invalid_expression",
    "over_hard_limit",
    "quorum_too_large",
    "under_minimum",
    "unknown_group",
    "unknown_name",
    "unknown_node",
    "unknown_reference",
    "workflow_call_not_alone",
];

fn is_beyond(problem: &Problem, document: &Value) -> bool {
    let value = document.pointer(&problem.pointer).unwrap_or(&Value::Null);
    let text = value.as_str().unwrap_or_default();
    let holds_expression = text.contains("${");
    match problem.code {
        // The length of a duration that is a text: "0.5ms", "99999h".
        "out_of_range" => text.contains(|c: char| ('1'..='9').contains(&c)),
        // A text that begins an expression, and does not end it.
        "wrong_type" | "invalid_method" => holds_expression,
        // Where a secret may stand is a rule of expressions.
        "invalid_secret" => holds_expression,
        // The host, the port and a password of an address.
        "invalid_url" => holds_expression || text.trim_start().to_ascii_lowercase().starts_with("http"),
        // The grammar of regular expressions, and references of a schema into itself.
        "invalid_schema" => [
            "pattern",
            "$ref",
            "leads to nothing",
            "refers back",
            "nests deeper",
        ]
        .iter()
        .any(|part| problem.message.contains(part)),
        // A timeout is retried by `on_timeout` only.
        "invalid_choice" => problem.pointer.contains("/retry_on/") && value == "timeout",
        code => BEYOND.contains(&code),
    }
}

struct Schemas(BTreeMap<&'static str, Validator>);

impl Schemas {
    fn new() -> Schemas {
        let schemas = KINDS.map(|kind| {
            let schema: Value = serde_json::from_str(contract::schema(kind)).expect("a schema is JSON");
            let validator = jsonschema::draft202012::new(&schema).expect("a valid schema");
            (kind.name(), validator)
        });
        Schemas(schemas.into_iter().collect())
    }

    fn problems(&self, kind: DocumentKind, document: &Value) -> Vec<String> {
        let problems = self.0[kind.name()].iter_errors(document);
        problems
            .map(|problem| format!("{}: {problem}", problem.instance_path()))
            .collect()
    }

    /// How the two differ about the document, or whether both accept it.
    fn compare(&self, kind: DocumentKind, document: &Value) -> Result<bool, String> {
        let of_schema = self.problems(kind, document);
        let of_reader = problems_of_reader(kind, document);
        let kind = kind.name();
        if !of_schema.is_empty() {
            return match of_reader.is_empty() {
                true => Err(format!(
                    "the reader of {kind} accepts {document}, but {of_schema:#?}"
                )),
                false => Ok(false),
            };
        }
        let mut missed = of_reader.iter().filter(|problem| !is_beyond(problem, document));
        match missed.next() {
            Some(missed) => Err(format!("the schema of {kind} accepts {document}, but {missed:?}")),
            None => Ok(true),
        }
    }

    fn assert_accepted(&self, kind: DocumentKind, document: &Value, place: &str) {
        let problems = self.problems(kind, document);
        assert!(problems.is_empty(), "{place}: {problems:#?}");
        assert_eq!(self.compare(kind, document), Ok(true), "{place}");
    }
}

/// All errors, with every reference looked up in an empty catalogue.
pub(super) fn problems_of_reader(kind: DocumentKind, document: &Value) -> Vec<Problem> {
    // The widest bounds that an operator can set.
    let rules = TimeoutRules {
        max_ms: TIMEOUT_CEILING_MS,
        ..TimeoutRules::default()
    };
    let mut library = Library::new();
    loop {
        match check(kind, document, &library, &rules) {
            Ok(_) => return Vec::new(),
            Err(CheckError::Invalid(problems)) => {
                let is_error = |problem: &Problem| json!(problem.severity) == "error";
                return problems.into_iter().filter(is_error).collect();
            }
            Err(CheckError::Missing(references)) => {
                library.extend(references.into_iter().map(|reference| (reference, None)));
            }
        }
    }
}

/// The documents of the pages, and what they show parts of.
fn of_pages() -> Vec<(DocumentKind, Value, String)> {
    let mut documents = Vec::new();
    for block in blocks() {
        let place = format!("{}:{}", block.page, block.line);
        let Some(shown) = block.info.strip_prefix("json ") else {
            continue;
        };
        let Ok(value) = serde_json::from_str::<Value>(&block.text) else {
            continue;
        };
        let (kind, document) = match shown.split_once(' ').unwrap_or((shown, "")) {
            ("workflow", "") => (DocumentKind::Workflows, value),
            ("workflow", "fields") => {
                let mut document = json!({"id": "w", "nodes": [{"id": "a"}]});
                for (name, field) in value.as_object().into_iter().flatten() {
                    document[name] = field.clone();
                }
                (DocumentKind::Workflows, document)
            }
            ("node", _) => (DocumentKind::Workflows, json!({"id": "w", "nodes": [value]})),
            ("transitions", _) => {
                let transitions = json!({"id": "w", "nodes": [{"id": "a"}], "transitions": value});
                (DocumentKind::Workflows, transitions)
            }
            ("task", _) => (DocumentKind::Tasks, value),
            ("step", _) => (DocumentKind::Tasks, json!({"id": "t", "steps": [value]})),
            ("action", _) => (DocumentKind::Actions, value),
            ("implementation", kind) => {
                let action = json!({"id": "a", "kind": kind, "implementation": value});
                (DocumentKind::Actions, action)
            }
            _other => continue,
        };
        documents.push((kind, document, place));
    }
    documents
}

fn corpus() -> Vec<Value> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus/documents");
    let entries = fs::read_dir(folder).expect("the corpus is there");
    let texts = entries.map(|entry| fs::read_to_string(entry.expect("an entry").path()).expect("a text"));
    texts
        .filter_map(|text| serde_json::from_str(&text).ok())
        .collect()
}

/// Valid documents of a kind, to begin with.
pub(super) fn seeds(kind: DocumentKind) -> Vec<Value> {
    let of_kind = of_pages().into_iter().filter(|(other, ..)| *other == kind);
    let mut seeds: Vec<Value> = of_kind.map(|(_, document, _)| document).collect();
    match kind {
        DocumentKind::Workflows => seeds.extend(examples()),
        DocumentKind::Tasks | DocumentKind::Actions => {
            let inline = examples().into_iter().filter_map(|mut example| {
                let documents = example[kind.name()].take();
                documents.as_array().cloned()
            });
            seeds.extend(inline.flatten());
        }
    }
    seeds
}

#[test]
fn examples_fit_their_schemas() {
    let schemas = Schemas::new();
    let mut count = 0;
    for example in examples() {
        schemas.assert_accepted(DocumentKind::Workflows, &example, &example["id"].to_string());
        count += 1;
    }
    for (kind, document, place) in of_pages() {
        schemas.assert_accepted(kind, &document, &place);
        count += 1;
    }
    for document in corpus() {
        for kind in KINDS {
            schemas.compare(kind, &document).expect("they agree");
        }
    }
    assert!(count > 40, "{count} examples");
}

/// What a schema can say is said there, so that an editor marks it while it is written.
#[test]
fn schemas_refuse_what_an_editor_can_mark() {
    let node = |node: Value| (DocumentKind::Workflows, json!({"id": "w", "nodes": [node]}));
    let workflow = |more: Value| {
        let mut document = json!({"id": "w", "nodes": [{"id": "a"}]});
        for (name, field) in more.as_object().into_iter().flatten() {
            document[name] = field.clone();
        }
        (DocumentKind::Workflows, document)
    };
    let schema = |schema: Value| workflow(json!({ "input_schema": schema }));
    let target = |target: &str| node(json!({"id": "a", "output_mapping": {target: 1}}));
    let written = |target: &str| {
        let action = json!({"kind": "update_context", "implementation": {"set": {target: 1}}});
        (
            DocumentKind::Tasks,
            json!({"id": "t", "steps": [{"action": action, "output_mapping": {target: 1}}]}),
        )
    };
    let notified = |more: Value| {
        let mut notify = json!({"on": ["run_failed"], "url": "https://a.example/"});
        for (name, field) in more.as_object().into_iter().flatten() {
            notify[name] = field.clone();
        }
        workflow(json!({"notify": [notify]}))
    };
    let wait = |wait: Value| node(json!({"id": "a", "wait": wait}));
    let action = |kind: &str, implementation: Value| {
        let document = json!({"id": "a", "kind": kind, "implementation": implementation});
        (DocumentKind::Actions, document)
    };
    let deep = |names: usize| vec!["x"; names].join(".");
    let schemas = Schemas::new();
    for (kind, document) in [
        schema(json!({"type": "objekt"})),
        schema(json!({"typo": 1})),
        schema(json!({"minLength": -1})),
        schema(json!({"items": [{}]})),
        schema(json!({"unevaluatedProperties": false})),
        schema(json!({"format": 5})),
        schema(json!({"properties": {"a": {"minimum": "1"}}})),
        schema(json!({"$ref": "other.json"})),
        schema(json!({"anyOf": []})),
        target("x.y"),
        target("state"),
        target("input.x"),
        target("state.a..b"),
        target(&format!("state.{}", deep(17))),
        written("input.x"),
        written("state"),
        written("_branch.output"),
        written("a..b"),
        written(&deep(17)),
        wait(json!({"until": "tomorrow"})),
        wait(json!({"until": "2026-12-01"})),
        wait(json!({"sleep": "0s"})),
        wait(json!({"sleep": "${input.x}s"})),
        wait(json!({"signal": ".."})),
        notified(json!({"url": "ftp://a.example/"})),
        notified(json!({"secret": "plain"})),
        notified(json!({"headers": {"Content-Type": "text/plain"}})),
        notified(json!({"headers": {"x": "a\nb"}})),
        workflow(json!({"notify": []})),
        workflow(json!({"timeout": "0s"})),
        workflow(json!({"compensation": {"on": []}})),
        workflow(json!({"trigger": {"event": "."}})),
        workflow(json!({"trigger": {"event": "x", "timezone": "UTC"}})),
        node(json!({"id": "a", "gate": {"timeout": "1h"}, "timeout": "2h"})),
        action("http_request", json!({"url": "x y"})),
        action("http_request", json!({"url": "https://a.example/", "body": {}})),
        action(
            "http_request",
            json!({"url": "https://a.example/", "headers": {"Host": "x"}}),
        ),
        action(
            "llm_call",
            json!({"provider": "openai", "model": "m", "prompt": "p", "base_url": "x y"}),
        ),
        action(
            "llm_call",
            json!({"provider": "openai", "model": "m", "prompt": "p", "api_key": "sk-live"}),
        ),
    ] {
        assert!(
            !schemas.problems(kind, &document).is_empty(),
            "the schema accepts {document}"
        );
        assert!(
            !problems_of_reader(kind, &document).is_empty(),
            "the reader accepts {document}"
        );
    }
    for (kind, document) in [
        schema(
            json!({"$schema": "x", "type": ["object", "null"], "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": true},
            "additionalProperties": false, "dependentRequired": {"a": ["b"]}, "items": {"const": 1}, "enum": []}),
        ),
        target("state.x y.z"),
        target("_branch.output"),
        target(&format!("output.{}", deep(16))),
        written("y"),
        written("inputs.x"),
        written(&deep(16)),
        wait(json!({"until": "2026-12-01T09:00:00.5+01:00"})),
        wait(json!({"until": "${input.date}T09:00:00Z"})),
        wait(json!({"sleep": "${input.x}"})),
        wait(json!({"sleep": "0.5s"})),
        wait(json!({"signal": "..."})),
        notified(json!({"url": "${secret.URL}", "secret": "${ secret.KEY }", "headers": {"X-Team": "a\tb"}})),
        action(
            "http_request",
            json!({"url": "HTTP://a.example/", "method": "Put", "body": {}}),
        ),
        action(
            "http_request",
            json!({"url": "${input.url}", "headers": "${input.headers}", "body": "${input.body}"}),
        ),
    ] {
        assert_eq!(schemas.compare(kind, &document), Ok(true));
    }
}

#[test]
fn a_document_may_name_its_schema() {
    let schemas = Schemas::new();
    for kind in KINDS {
        for seed in seeds(kind) {
            let mut document = seed;
            document["$schema"] = json!("https://curfew.example.com/schema/x.json");
            schemas.assert_accepted(kind, &document, "$schema");
            let problems = problems_of_reader(kind, &document);
            assert!(problems.iter().all(|problem| problem.pointer != "/$schema"));
        }
    }
}

#[test]
fn schemas_and_reader_agree_on_mutated_documents() {
    let schemas = Schemas::new();
    let (mut accepted, mut refused) = (0, 0);
    let mut differences = Vec::new();
    for kind in KINDS {
        let seeds = seeds(kind);
        for number in 0..MUTATIONS / 3 {
            let mut rng = Rng::seeded(number);
            let mut document = match kind {
                DocumentKind::Workflows if rng.chance(30) => generator::workflow(&mut rng),
                DocumentKind::Workflows | DocumentKind::Tasks | DocumentKind::Actions => {
                    rng.pick(&seeds).clone()
                }
            };
            for _ in 0..=rng.below(2) {
                mutate(&mut document, &mut rng);
            }
            match schemas.compare(kind, &document) {
                Ok(true) => accepted += 1,
                Ok(false) => refused += 1,
                Err(difference) => differences.push(format!("seed {number}: {difference}")),
            }
        }
    }
    let count = differences.len();
    differences.truncate(20);
    assert!(differences.is_empty(), "{count} differences: {differences:#?}");
    assert!(
        accepted > MUTATIONS / 20 && refused > MUTATIONS / 4,
        "{accepted} accepted, {refused} refused"
    );
}

/// Every field of a schema has a sentence, and no schema allows a field that the reader does not know.
#[test]
fn every_field_has_a_sentence() {
    fn visit(value: &Value, place: &str, missing: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::Object(properties)) = fields.get("properties")
                    && fields.get("additionalProperties") == Some(&json!(false))
                {
                    for (name, field) in properties {
                        let sentence = field["description"].as_str().unwrap_or_default();
                        let has_reference =
                            field["$ref"].is_string() || field["anyOf"][0]["$ref"].is_string();
                        if !sentence.ends_with('.') && !has_reference {
                            missing.push(format!("{place}/{name}"));
                        }
                    }
                }
                for (name, field) in fields {
                    visit(field, &format!("{place}/{name}"), missing);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| visit(item, place, missing)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut missing = Vec::new();
    for kind in KINDS {
        let schema: Value = serde_json::from_str(contract::schema(kind)).expect("a schema is JSON");
        visit(&schema, kind.name(), &mut missing);
    }
    assert!(missing.is_empty(), "{missing:#?}");
}
