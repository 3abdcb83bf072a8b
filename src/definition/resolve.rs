//! Resolves a workflow document and the catalogue to the self-contained snapshot that a run stores.
//!
//! References are resolved once, when the run is created.

use serde_json::Value;

use crate::definition::action::Action;
use crate::definition::hard_limits;
use crate::definition::inline;
use crate::definition::problem::{Problem, Problems, Severity};
use crate::definition::resolver::{Resolver, describe_missing, node_pointer};
use crate::definition::snapshot::{DocumentKind, Library, Reference, StoredSnapshot};
use crate::definition::task::Dispatch;
use crate::definition::timeouts::TimeoutRules;
use crate::definition::workflow::Workflow;

pub enum Resolution {
    Resolved(Box<StoredSnapshot>),
    /// The caller must look these up, add them to the library and resolve again.
    Missing(Vec<Reference>),
    Invalid(Vec<Problem>),
}

/// Why a document is not accepted.
#[derive(Debug)]
pub enum CheckError {
    Invalid(Vec<Problem>),
    /// The caller must look these up, add them to the library and check again.
    Missing(Vec<Reference>),
}

/// Checks a document of any kind. `Ok` contains its warnings.
pub fn check(
    kind: DocumentKind,
    document: &Value,
    library: &Library,
    rules: &TimeoutRules,
) -> Result<Vec<Problem>, CheckError> {
    let problems = Problems::new(*rules);
    let mut missing = Vec::new();
    match kind {
        DocumentKind::Actions => {
            Action::read(document, "", true, &problems);
            hard_limits::check_action(document, &problems);
        }
        DocumentKind::Tasks => {
            let mut resolver = Resolver::new(&Value::Null, library, &problems);
            let resolved = resolver.resolve_task(document, "");
            missing = resolver.missing;
            if let Some(resolved) = resolved {
                inline::check_task(&resolved, "", &problems);
            }
            hard_limits::check_task(document, library, &problems);
        }
        DocumentKind::Workflows => {
            return check_workflow(document, library, rules).map(|(warnings, _)| warnings);
        }
    }
    match (missing.is_empty(), problems.has_errors()) {
        (false, _) => Err(CheckError::Missing(missing)),
        (true, true) => Err(CheckError::Invalid(problems.into_sorted())),
        (true, false) => Ok(problems.into_sorted()),
    }
}

/// Checks a workflow, and resolves it in the same go: reading a large document takes a while.
pub fn check_workflow(
    document: &Value,
    library: &Library,
    rules: &TimeoutRules,
) -> Result<(Vec<Problem>, StoredSnapshot), CheckError> {
    let problems = Problems::new(*rules);
    let (stored, missing) = resolve_reporting(document, 0, library, &problems);
    match (missing.is_empty(), problems.has_errors()) {
        (false, _) => Err(CheckError::Missing(missing)),
        (true, true) => Err(CheckError::Invalid(problems.into_sorted())),
        (true, false) => Ok((problems.into_sorted(), with_preset(stored, rules))),
    }
}

/// Resolves a stored workflow with its inline documents and the library, to start a run. Expressions and limits were checked
/// when it was stored and are not checked again, so that an accepted workflow can always be started.
pub fn resolve(workflow: &Value, version: u64, library: &Library, rules: &TimeoutRules) -> Resolution {
    let problems = Problems::prechecked();
    let (stored, missing) = resolve_reporting(workflow, version, library, &problems);
    if !missing.is_empty() {
        return Resolution::Missing(missing);
    }
    if problems.has_errors() {
        return Resolution::Invalid(problems.into_sorted());
    }
    Resolution::Resolved(Box::new(with_preset(stored, rules)))
}

fn with_preset(mut stored: StoredSnapshot, rules: &TimeoutRules) -> StoredSnapshot {
    stored.preset = rules.preset;
    for child in &mut stored.children {
        child.preset = rules.preset;
    }
    stored
}

/// The snapshot, and what has to be looked up first. Missing counts before invalid: some problems are only found once the
/// catalogue was read, and a response lists all.
fn resolve_reporting(
    workflow: &Value,
    version: u64,
    library: &Library,
    problems: &Problems,
) -> (StoredSnapshot, Vec<Reference>) {
    let mut resolver = Resolver::new(workflow, library, problems);
    resolver.check_inline();
    let parsed = Workflow::read(workflow, problems);
    if !problems.is_prechecked() {
        hard_limits::check_workflow(workflow, library, problems);
    }
    let mut root = resolver.resolve_graph(workflow, version, parsed.as_ref());
    let mut missing = resolver.missing;
    for (index, node) in parsed.iter().flat_map(|it| it.nodes.iter().enumerate()) {
        let task = root.node_tasks.get(index).copied().flatten();
        if let (Some(Dispatch::Inline), Some(task)) = (node.dispatch, task.and_then(|it| root.tasks.get(it)))
        {
            inline::check_node(task, &node_pointer(workflow, &node.id), problems);
        }
    }
    let calls = resolver.calls;
    root.children = resolve_children(workflow, version, calls, library, problems, &mut missing);
    (root, missing)
}

/// Every workflow that is called from `workflow`, directly or indirectly, once each.
fn resolve_children(
    workflow: &Value,
    version: u64,
    mut calls: Vec<Reference>,
    library: &Library,
    problems: &Problems,
    missing: &mut Vec<Reference>,
) -> Vec<StoredSnapshot> {
    let mut children = Vec::new();
    let mut next = 0;
    while let Some(call) = calls.get(next).cloned() {
        next += 1;
        let is_itself = call.version.is_none() && workflow["id"].as_str() == Some(&call.id);
        let (document, version) = match library.get(&call) {
            _ if is_itself => (workflow, version),
            Some(Some(document)) => (&document.content, document.version),
            Some(None) => {
                if let Some(message) = describe_missing(&call, library, missing) {
                    problems.report(
                        &call_pointer(workflow, &call.id),
                        "unknown_reference",
                        format!("{message}; store it first"),
                    );
                }
                continue;
            }
            None => {
                missing.push(call);
                continue;
            }
        };
        // The child was checked when it was stored. Only its references can have become invalid.
        let prechecked = Problems::prechecked();
        let parsed = Workflow::read(document, &prechecked);
        let mut resolver = Resolver::new(document, library, &prechecked);
        resolver.calls = std::mem::take(&mut calls);
        children.push(resolver.resolve_graph(document, version, parsed.as_ref()));
        missing.append(&mut resolver.missing);
        calls = resolver.calls;
        let errors = prechecked.into_sorted().into_iter();
        for problem in errors.filter(|problem| problem.severity == Severity::Error) {
            problems.report(
                &call_pointer(workflow, &call.id),
                problem.code,
                format!("in workflow \"{}\": {problem}", call.id),
            );
        }
    }
    children
}

/// The place in `workflow` that calls another workflow, or `/nodes` if the call is in another document.
fn call_pointer(workflow: &Value, id: &str) -> String {
    let position =
        |field: &str, matches: &dyn Fn(&Value) -> bool| workflow[field].as_array()?.iter().position(matches);
    if let Some(node) = position("nodes", &|node| node["workflow_id"].as_str() == Some(id)) {
        return format!("/nodes/{node}/workflow_id");
    }
    if let Some(node) = position("nodes", &|node| {
        node["compensate"]["workflow_id"].as_str() == Some(id)
    }) {
        return format!("/nodes/{node}/compensate/workflow_id");
    }
    if let Some(handler) = position("on_end", &|handler| handler["workflow_id"].as_str() == Some(id)) {
        return format!("/on_end/{handler}/workflow_id");
    }
    let calls = |action: &Value| action["implementation"]["workflow_id"].as_str() == Some(id);
    if let Some(action) = position("actions", &calls) {
        return format!("/actions/{action}/implementation/workflow_id");
    }
    if let Some(task) = position("tasks", &|task| calls(&task["steps"][0]["action"])) {
        return format!("/tasks/{task}/steps/0/action/implementation/workflow_id");
    }
    "/nodes".to_string()
}
