//! Static analysis: what will go wrong in runs of a workflow, and what they can take at most, known before one starts.
//!
//! Documents are untrusted. Every check counts its steps (`graph::Steps`) and looks at each part of the graph a bounded number of
//! times; nothing follows single paths, of which there may be exponentially many.

mod bounds;
mod called;
mod facts;
mod graph;
mod input_schema;
mod loops;
mod node_bounds;
mod price;
mod run_bounds;

use serde::Serialize;
use serde_json::Value;

use crate::definition::problem::{Problem, Problems, Severity};
use crate::definition::snapshot::{
    CheckError, DocumentKind, Library, Reference, Resolution, Snapshot, check, resolve,
};
use crate::definition::timeouts::TimeoutRules;
use crate::run::Settings;

pub use facts::{Ends, Facts, LongestWait, Range};

use called::Called;
use graph::{Graph, Steps};

/// What the analysis knows of the deployment.
#[derive(Clone, Debug)]
pub struct Deployment {
    pub rules: TimeoutRules,
    pub settings: Settings,
    /// The secrets that the executor may use, where they are known here.
    pub secrets: Option<Vec<String>>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Analysis {
    pub errors: Vec<Problem>,
    pub warnings: Vec<Problem>,
    /// Only of a document without errors.
    pub facts: Option<Facts>,
    #[serde(skip)]
    pub steps: u64,
}

/// Analyses a workflow. The error lists what has to be looked up in the catalogue first.
pub fn analyze(
    document: &Value,
    library: &Library,
    deployment: &Deployment,
) -> Result<Analysis, Vec<Reference>> {
    let found = match check(DocumentKind::Workflows, document, library, &deployment.rules) {
        Ok(warnings) => warnings,
        Err(CheckError::Missing(references)) => return Err(references),
        Err(CheckError::Invalid(problems)) => return Ok(refused(problems)),
    };
    let stored = match resolve(document, 0, library, &deployment.rules) {
        Resolution::Resolved(stored) => *stored,
        Resolution::Missing(references) => return Err(references),
        Resolution::Invalid(problems) => return Ok(refused(problems)),
    };
    let snapshot = match Snapshot::read(stored) {
        Ok(snapshot) => snapshot,
        Err(problems) => return Ok(refused(problems)),
    };
    let steps = Steps::default();
    let graph = Graph::new(&snapshot.workflow, document.get("input_schema"), &steps);
    let called = Called::of(&snapshot, &deployment.settings);
    let problems = Problems::new(deployment.rules);
    let mut warnings = problems.into_sorted();
    warnings.extend(found);
    warnings.sort_by(|a, b| a.pointer.cmp(&b.pointer).then(a.message.cmp(&b.message)));
    let facts = Facts::of(&snapshot, &deployment.settings, &called, &graph);
    Ok(Analysis {
        errors: Vec::new(),
        warnings,
        facts: Some(facts),
        steps: steps.count(),
    })
}

fn refused(problems: Vec<Problem>) -> Analysis {
    let (errors, warnings) = problems
        .into_iter()
        .partition(|problem| problem.severity == Severity::Error);
    Analysis {
        errors,
        warnings,
        facts: None,
        steps: 0,
    }
}
