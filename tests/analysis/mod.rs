//! Static analysis: its warnings and facts, its bounds in time, and the documents of `docs/analysis.md`.

mod conditions;
mod examples;
mod facts;
mod hostile;
mod tasks;
mod warnings;
mod worst_cases;

use curfew::analysis::{Analysis, Deployment, analyze};
use curfew::definition::snapshot::Library;
use curfew::definition::timeouts::TimeoutRules;
use curfew::run::Settings;
use serde_json::Value;

/// A deployment with the default settings that has the secret `KEY`.
pub fn deployment() -> Deployment {
    Deployment {
        rules: TimeoutRules::default(),
        settings: Settings::default(),
        secrets: Some(vec!["KEY".into()]),
    }
}

/// The analysis of a document that refers only to what `library` has; everything else does not exist.
pub fn analysis_in(document: &Value, library: &Library) -> Analysis {
    let mut library = library.clone();
    loop {
        match analyze(document, &library, &deployment()) {
            Ok(analysis) => return analysis,
            Err(missing) => library.extend(missing.into_iter().map(|reference| (reference, None))),
        }
    }
}

pub fn analysis_of(document: &Value) -> Analysis {
    analysis_in(document, &Library::new())
}

/// Codes with their pointers.
pub fn codes(analysis: &Analysis) -> Vec<(&'static str, &str)> {
    let problems = analysis.errors.iter().chain(&analysis.warnings);
    problems
        .map(|problem| (problem.code, problem.pointer.as_str()))
        .collect()
}
