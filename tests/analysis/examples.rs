//! The analysis of the examples: no warning that a reader would call wrong, and facts that a reader can check by hand.

use std::collections::BTreeMap;

use curfew::definition::snapshot::{CatalogueDocument, DocumentKind, Library, Reference};

use super::{analysis_in, codes};
use crate::definition::examples;

/// All examples, as if they were stored.
fn stored() -> Library {
    let entries = examples().into_iter().map(|content| {
        let reference = Reference {
            kind: DocumentKind::Workflows,
            id: content["id"].as_str().expect("an id").to_string(),
            version: None,
        };
        (reference, Some(CatalogueDocument { version: 1, content }))
    });
    entries.collect()
}

#[test]
fn examples_have_only_the_warnings_that_they_deserve() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let library = stored();
    for example in examples() {
        let analysis = analysis_in(&example, &library);
        assert!(analysis.errors.is_empty(), "{:?}", analysis.errors);
        let id = example["id"].as_str().expect("an id").to_string();
        let warnings = codes(&analysis).into_iter();
        let warnings: Vec<String> = warnings
            .map(|(code, pointer)| format!("{code} {pointer}"))
            .collect();
        if !warnings.is_empty() {
            found.insert(id, warnings);
        }
    }
    assert_eq!(found, BTreeMap::new());
}
