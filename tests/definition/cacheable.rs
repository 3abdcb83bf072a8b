//! A resolved workflow may be cached only if resolving it again would give the same result.

use curfew::definition::snapshot::{
    CatalogueDocument, DocumentKind, Library, Reference, Resolution, is_cacheable, resolve,
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

fn is_resolution_cacheable(workflow: &Value, library: &Library) -> bool {
    match resolve(workflow, 1, library, &TimeoutRules::default()) {
        Resolution::Resolved(stored) => is_cacheable(&stored, library),
        Resolution::Missing(references) => panic!("missing: {references:?}"),
        Resolution::Invalid(problems) => panic!("invalid: {problems:?}"),
    }
}

#[test]
fn a_workflow_with_inline_documents_is_cacheable() {
    assert!(is_resolution_cacheable(
        &json!({"id": "w", "nodes": [{"id": "a"}]}),
        &Library::new()
    ));
}

#[test]
fn a_reference_with_a_version_is_cacheable() {
    let workflow = json!({"id": "w", "nodes": [{"id": "a", "task_id": "work", "task_version": 1}]});
    assert!(is_resolution_cacheable(&workflow, &library(Some(1))));
}

#[test]
fn a_reference_to_the_newest_version_is_not_cacheable() {
    let workflow = json!({"id": "w", "nodes": [{"id": "a", "task_id": "work"}]});
    assert!(!is_resolution_cacheable(&workflow, &library(None)));
}

#[test]
fn an_adaptive_limit_is_not_cacheable() {
    let workflow = json!({"id": "w", "nodes": [{"id": "a", "task_id": "work", "task_version": 1, "timeout": "adaptive"}]});
    assert!(!is_resolution_cacheable(&workflow, &library(Some(1))));
}
