//! Static analysis: what will go wrong in runs of a workflow, and what they can take at most, known before one starts.
//!
//! Documents are untrusted. Every check counts its steps (`graph::Steps`) and looks at each part of the graph a bounded number of
//! times; nothing follows single paths, of which there may be exponentially many.

mod bounds;
mod called;
mod data_flow;
mod deadlines;
mod ending;
mod facts;
mod fans;
mod graph;
mod input_schema;
mod lint;
mod longest;
mod loops;
mod node_bounds;
mod price;
mod quickest;
mod routes;
mod run_bounds;
mod run_input;
mod secrets;
mod shared_writes;
mod span;
mod task_flow;
mod unreachable;
mod uses;

use serde::Serialize;
use serde_json::Value;

use crate::definition::problem::{Problem, Problems, Severity};
use crate::definition::snapshot::{CheckError, DocumentKind, Library, Reference, Snapshot, check_workflow};
use crate::definition::timeouts::TimeoutRules;
use crate::run::Settings;

pub use facts::{Ends, Facts, LongestWait, Range};

use bounds::Bounds;
use called::{Around, Called};
use graph::{Graph, Steps};
use lint::Lint;
use run_bounds::RunBounds;

/// The codes of all warnings, with those of the readers of documents.
pub const WARNINGS: &[&str] = &[
    "deadline_cannot_fit",
    "gate_cut_by_limit",
    "join_without_merge",
    "losers_not_cancelled",
    "may_not_match",
    "more_warnings",
    "no_timeout",
    "no_way_to_end",
    "null_timeout",
    "queue_too_long",
    "quorum_too_large",
    "runs_twice",
    "secret_in_clear",
    "secret_to_any_host",
    "shared_write",
    "sync_outlives_run",
    "unbounded_cycle",
    "unknown_secret",
    "unreachable_node",
    "unwritten_path",
];

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
    let (found, stored) = match check_workflow(document, library, &deployment.rules) {
        Ok(checked) => checked,
        Err(CheckError::Missing(references)) => return Err(references),
        Err(CheckError::Invalid(problems)) => return Ok(refused(problems)),
    };
    let snapshot = match Snapshot::read(stored) {
        Ok(snapshot) => snapshot,
        Err(problems) => return Ok(refused(problems)),
    };
    let steps = Steps::default();
    let graph = Graph::new(&snapshot.workflow, document.get("input_schema"), &steps);
    let called = Called::of(&snapshot, &deployment.settings);
    let bounds = Bounds::new(&graph);
    let (run, nodes) = RunBounds::in_graph(
        &snapshot,
        &deployment.settings,
        &called,
        Around::default(),
        &bounds,
    );
    let problems = Problems::new(deployment.rules);
    for problem in found {
        problems.warn(&problem.pointer, problem.code, problem.message);
    }
    let lint = Lint::new(&snapshot, document, &graph, &called, &run, &problems);
    routes::check(&lint, &bounds);
    unreachable::check(&lint);
    fans::check(&lint);
    shared_writes::check(&lint);
    deadlines::check(&lint, &deployment.settings, &bounds);
    data_flow::check(&lint);
    run_input::check(&lint);
    secrets::check(&lint, deployment.secrets.as_deref());
    let report = |pointer: &str, code, message: String| lint.warn(pointer, code, message);
    deadlines::warn_of_null(document, "", &report);
    for (index, task) in document["tasks"].as_array().into_iter().flatten().enumerate() {
        task_flow::check(task, &format!("/tasks/{index}"), &document["actions"], &report);
    }
    lint.finish();
    let facts = Facts::of(&snapshot, &deployment.settings, &called, &graph, &run, &nodes);
    Ok(Analysis {
        errors: Vec::new(),
        warnings: problems.into_sorted(),
        facts: Some(facts),
        steps: steps.count(),
    })
}

/// Warnings about a task or an action that was checked. What depends on the graph is known of workflows only.
pub fn warnings_of_part(kind: DocumentKind, document: &Value, found: Vec<Problem>) -> Vec<Problem> {
    let problems = Problems::default();
    for problem in found {
        problems.warn(&problem.pointer, problem.code, problem.message);
    }
    let report = |pointer: &str, code, message: String| problems.warn(pointer, code, message);
    deadlines::warn_of_null(document, "", &report);
    match kind {
        DocumentKind::Tasks => task_flow::check(document, "", &Value::Null, &report),
        DocumentKind::Actions | DocumentKind::Workflows => {}
    }
    problems.into_sorted()
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
