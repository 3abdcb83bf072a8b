//! What may be kept of a resolved workflow: only what another look into the catalogue could not change.

use curfew::definition::snapshot::{
    CatalogueDocument, DocumentKind, Library, Reference, Resolution, is_final, resolve,
};
use curfew::definition::timeouts::TimeoutRules;
use serde_json::{Value, json};

fn library(version: Option<u64>) -> Library {
    let reference = Reference {
        kind: DocumentKind::Tasks,
        id: "work".into(),
        version,
    };
    let document = CatalogueDocument {
        version: 1,
        content: json!({"id": "work", "steps": [{"ref": "a", "action": {"kind": "assert", "implementation": {"condition": "true"}}}]}),
    };
    Library::from([(reference, Some(document))])
}

fn finality(workflow: &Value, library: &Library) -> bool {
    match resolve(workflow, 1, library, &TimeoutRules::default()) {
        Resolution::Resolved(stored) => is_final(&stored, library),
        Resolution::Missing(references) => panic!("missing: {references:?}"),
        Resolution::Invalid(problems) => panic!("invalid: {problems:?}"),
    }
}

#[test]
fn a_workflow_that_brings_everything_along_stays_as_it_is() {
    assert!(finality(
        &json!({"id": "w", "nodes": [{"id": "a"}]}),
        &Library::new()
    ));
}

#[test]
fn a_reference_with_a_version_stays_as_it_is() {
    let workflow = json!({"id": "w", "nodes": [{"id": "a", "task_id": "work", "task_version": 1}]});
    assert!(finality(&workflow, &library(Some(1))));
}

#[test]
fn a_reference_to_the_newest_may_be_another_tomorrow() {
    let workflow = json!({"id": "w", "nodes": [{"id": "a", "task_id": "work"}]});
    assert!(!finality(&workflow, &library(None)));
}

#[test]
fn a_limit_that_is_learnt_may_be_another_tomorrow() {
    let workflow = json!({"id": "w", "nodes": [{"id": "a", "task_id": "work", "task_version": 1, "timeout": "adaptive"}]});
    assert!(!finality(&workflow, &library(Some(1))));
}
