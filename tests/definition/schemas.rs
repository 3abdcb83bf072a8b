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
    "invalid_moment",
    "invalid_schema",
    "invalid_secret",
    "invalid_target",
    "invalid_url",
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
    match problem.code {
        // The length of a duration that is a text: "0s".
        "out_of_range" => value.is_string(),
        // A text that begins an expression, and does not end it.
        "wrong_type" => value.as_str().is_some_and(|text| text.contains("${")),
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
