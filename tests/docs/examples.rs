//! Examples of the pages: documents are accepted by the reader, expressions give the values that stand behind them.

use std::fs;

use curfew::cel::{Expression, Scope};
use curfew::definition::snapshot::{CatalogueDocument, CheckError, DocumentKind, Library, Reference, check};
use curfew::definition::timeouts::TimeoutRules;
use serde_json::{Value, json};

use super::{Block, blocks, example_documents};

/// A document of the catalogue that an example refers to and does not show.
fn stand_in(reference: &Reference) -> CatalogueDocument {
    let id = &reference.id;
    let pure = json!({"kind": "update_context", "implementation": {"set": {"done": true}}});
    let content = match reference.kind {
        DocumentKind::Actions => {
            json!({"id": id, "kind": pure["kind"], "implementation": pure["implementation"]})
        }
        DocumentKind::Tasks => json!({"id": id, "steps": [{"action": pure}]}),
        DocumentKind::Workflows => json!({"id": id, "nodes": [{"id": "only"}]}),
    };
    CatalogueDocument { version: 1, content }
}

fn problems_of(kind: DocumentKind, document: &Value) -> Vec<String> {
    let mut library = Library::new();
    loop {
        match check(kind, document, &library, &TimeoutRules::default()) {
            Ok(_) => return Vec::new(),
            Err(CheckError::Invalid(problems)) => return problems.iter().map(ToString::to_string).collect(),
            Err(CheckError::Missing(references)) => {
                for reference in references {
                    let document = stand_in(&reference);
                    library.insert(reference, Some(document));
                }
            }
        }
    }
}

/// The document that a block shows or is a part of.
fn document_of(block: &Block) -> Option<(DocumentKind, Value)> {
    let words: Vec<&str> = block.info.split(' ').collect();
    let ["json", what, rest @ ..] = words.as_slice() else {
        return None;
    };
    let written: Value =
        serde_json::from_str(&block.text).unwrap_or_else(|error| panic!("{}: {error}", block.place()));
    Some(match (*what, rest) {
        ("workflow", []) => (DocumentKind::Workflows, written),
        ("workflow", ["fields"]) => {
            let mut workflow = json!({"id": "example", "nodes": [{"id": "only"}]});
            for (field, value) in written.as_object().expect("fields of a workflow") {
                workflow[field] = value.clone();
            }
            (DocumentKind::Workflows, workflow)
        }
        ("task", []) => (DocumentKind::Tasks, written),
        ("action", []) => (DocumentKind::Actions, written),
        ("step", []) => (DocumentKind::Tasks, json!({"id": "example", "steps": [written]})),
        ("node", []) => (
            DocumentKind::Workflows,
            json!({"id": "example", "nodes": [written]}),
        ),
        ("transitions", []) => {
            let mut ids: Vec<&Value> = Vec::new();
            for transition in written.as_array().expect("a list of transitions") {
                for id in [&transition["from_node_id"], &transition["to_node_id"]] {
                    if !ids.contains(&id) {
                        ids.push(id);
                    }
                }
            }
            // Nodes that do something: a loop of pass-through nodes is refused.
            let nodes: Vec<Value> = ids
                .iter()
                .map(|id| json!({"id": id, "task_id": "stands-in"}))
                .collect();
            let workflow = json!({"id": "example", "nodes": nodes, "transitions": written});
            (DocumentKind::Workflows, workflow)
        }
        ("implementation", [kind]) => {
            let action = json!({"kind": kind, "implementation": written});
            (
                DocumentKind::Tasks,
                json!({"id": "example", "steps": [{"action": action}]}),
            )
        }
        // `wrong` and `right` are those of the page about analysis.
        ("scope" | "right" | "simulate" | "simulated", []) | ("wrong", [_]) => return None,
        _ => panic!("{}: \"{}\" is no kind of example", block.place(), block.info),
    })
}

#[test]
fn documents_are_accepted() {
    let mut seen = 0;
    for block in blocks() {
        let Some((kind, document)) = document_of(&block) else {
            continue;
        };
        seen += 1;
        let problems = problems_of(kind, &document);
        assert!(problems.is_empty(), "{}: {}", block.place(), problems.join("; "));
    }
    assert!(seen > 15, "only {seen} examples were found");
}

#[test]
fn example_files_are_accepted() {
    let paths = example_documents();
    assert!(paths.len() > 15, "only {} example files were found", paths.len());
    for path in paths {
        let text = fs::read_to_string(&path).expect("an example");
        let document: Value = serde_json::from_str(&text).expect("JSON");
        let problems = problems_of(DocumentKind::Workflows, &document);
        assert!(problems.is_empty(), "{}: {}", path.display(), problems.join("; "));
    }
}

/// `expression // => value` or `expression // error: message`.
#[test]
fn expressions_give_what_is_written_behind_them() {
    let blocks = blocks();
    let scope_block = blocks.iter().find(|block| block.info == "json scope");
    let values: Value =
        serde_json::from_str(&scope_block.expect("values for the examples").text).expect("JSON");
    let mut scope = Scope::new();
    for (name, value) in values.as_object().expect("names and their values") {
        scope.bind(name, value);
    }
    let mut seen = 0;
    for block in blocks.iter().filter(|block| block.info == "cel") {
        for line in block.text.lines().filter(|line| !line.trim().is_empty()) {
            let (source, stated) = line
                .rsplit_once(" // ")
                .unwrap_or_else(|| panic!("{}: {line} states no value", block.place()));
            seen += 1;
            let found = Expression::new(source.trim()).evaluate(&scope);
            if let Some(message) = stated.strip_prefix("error: ") {
                let error = found.expect_err(line);
                assert!(error.message.contains(message), "{}: {error}", block.place());
                continue;
            }
            let stated = stated.strip_prefix("=> ").expect("a value behind `=>`");
            let stated: Value =
                serde_json::from_str(stated).unwrap_or_else(|error| panic!("{line}: {error}"));
            match found {
                // As text: 1 and 1.0 are different results.
                Ok(found) => assert_eq!(found.to_string(), stated.to_string(), "{}: {line}", block.place()),
                Err(error) => panic!("{}: {line}: {error}", block.place()),
            }
        }
    }
    assert!(seen > 50, "only {seen} expressions were found");
}
