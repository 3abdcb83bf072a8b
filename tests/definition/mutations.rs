//! Mutated documents: parts of valid ones are replaced, removed, renamed, duplicated and nested. Reading never panics, and
//! an accepted document can be stored, read again and run.

use std::fs;
use std::path::PathBuf;

use curfew::definition::snapshot::{
    CatalogueDocument, CheckError, DocumentKind, Library, Reference, Resolution, Snapshot, check, resolve,
};
use curfew::definition::timeouts::{Preset, TimeoutRules};
use serde_json::{Value, json};

use crate::run::driver::{SETTINGS, create_run};
use crate::run::generator;
use curfew::simulate::Rng;

const MUTATIONS: u64 = 2_000;

pub fn examples() -> Vec<Value> {
    let paths = crate::docs::example_documents();
    let read = |path: &PathBuf| fs::read_to_string(path).expect("an example is text");
    paths
        .iter()
        .map(|path| serde_json::from_str(&read(path)).expect("an example is JSON"))
        .collect()
}

fn garbage(rng: &mut Rng) -> Value {
    match rng.below(16) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(u64::MAX),
        4 => json!(1e300),
        5 => json!(""),
        6 => json!("${"),
        7 => json!("${input.x + }"),
        8 => json!("state.x.y"),
        9 => json!("é\u{0}\u{10FFFF}".repeat(200)),
        10 => json!([]),
        11 => json!({}),
        12 => json!([[{}], null, "x"]),
        13 => json!({"id": {}, "": [], "a/b~c": 1}),
        14 => deeply_nested(100),
        _other => json!("${".repeat(50) + &"(".repeat(300)),
    }
}

/// `depth` levels deep.
fn deeply_nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, level| match level % 2 {
        0 => json!([inner]),
        _odd => json!({"x": inner}),
    })
}

/// Descends at random and changes the value there.
pub fn mutate(value: &mut Value, rng: &mut Rng) {
    let deeper = rng.chance(75);
    match value {
        Value::Object(fields) if deeper && !fields.is_empty() => {
            let keys: Vec<String> = fields.keys().cloned().collect();
            let key = rng.pick(&keys).clone();
            match rng.below(12) {
                0 => {
                    fields.remove(&key);
                }
                1 => {
                    let moved = fields.remove(&key).unwrap_or_default();
                    fields.insert(rng.pick(&keys).clone(), moved);
                }
                2 => {
                    fields.insert(format!("{key}s"), garbage(rng));
                }
                _deeper => {
                    if let Some(inner) = fields.get_mut(&key) {
                        mutate(inner, rng);
                    }
                }
            }
        }
        Value::Array(items) if deeper && !items.is_empty() => {
            let index = rng.below(items.len() as u64) as usize;
            match rng.below(8) {
                0 => {
                    items.remove(index);
                }
                1 => items.push(items[index].clone()),
                _deeper => mutate(&mut items[index], rng),
            }
        }
        other => *other = garbage(rng),
    }
}

#[test]
fn the_examples_are_valid() {
    let examples = examples();
    assert!(!examples.is_empty());
    // One example may call another.
    let library: Library = examples
        .iter()
        .map(|content| {
            let reference = Reference {
                kind: DocumentKind::Workflows,
                id: content["id"].as_str().unwrap_or_default().into(),
                version: None,
            };
            let content = content.clone();
            (reference, Some(CatalogueDocument { version: 1, content }))
        })
        .collect();
    for document in examples {
        let checked = check(
            DocumentKind::Workflows,
            &document,
            &library,
            &TimeoutRules::default(),
        );
        assert!(
            matches!(&checked, Ok(warnings) if warnings.is_empty()),
            "{checked:?}"
        );
    }
}

#[test]
fn mutated_documents_never_panic_and_accepted_ones_run() {
    let examples = examples();
    let (mut passed, mut refused) = (0, 0);
    for seed in 0..MUTATIONS {
        let mut rng = Rng::seeded(seed);
        let mut document = match rng.chance(50) {
            true => generator::workflow(&mut rng),
            false => rng.pick(&examples).clone(),
        };
        for _ in 0..=rng.below(3) {
            mutate(&mut document, &mut rng);
        }
        // Half of them with hard limits.
        let rules = TimeoutRules {
            preset: *rng.pick(&[Preset::Standard, Preset::Flow]),
            ..TimeoutRules::default()
        };
        for kind in [DocumentKind::Actions, DocumentKind::Tasks] {
            check(kind, &document, &Library::new(), &rules).ok();
        }
        let checked = check(DocumentKind::Workflows, &document, &Library::new(), &rules);
        match &checked {
            Ok(_) => passed += 1,
            Err(CheckError::Invalid(problems)) => {
                assert!(!problems.is_empty(), "seed {seed}: refused without a reason");
                refused += 1;
            }
            Err(CheckError::Missing(references)) => assert!(!references.is_empty(), "seed {seed}"),
        }
        // `resolve` does not check expressions again, so it accepts more. It must not panic either.
        let Resolution::Resolved(stored) = resolve(&document, 1, &Library::new(), &rules) else {
            assert!(
                checked.is_err(),
                "seed {seed}: valid, and yet it cannot be resolved"
            );
            continue;
        };
        let text = serde_json::to_string(&*stored).expect("a snapshot is JSON");
        assert!(Snapshot::parse(&text).is_ok(), "seed {seed}: {text}");
        create_run(1_000, SETTINGS, *stored, json!({}));
    }
    assert!(
        passed > MUTATIONS / 50 && refused > MUTATIONS / 4,
        "{passed} passed, {refused} refused"
    );
}
