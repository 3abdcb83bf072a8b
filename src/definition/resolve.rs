//! From a workflow document and the catalogue to the self-contained snapshot a run keeps.
//!
//! References are resolved once, when the run is created.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::definition::action::Action;
use crate::definition::hard_limits;
use crate::definition::inline;
use crate::definition::problem::{Problem, Problems, pointer_to};
use crate::definition::snapshot::{DocumentKind, Library, Reference, StoredSnapshot, missing_document};
use crate::definition::task::{Dispatch, Task, report_crowded_call};
use crate::definition::timeouts::{Preset, TimeoutRules};
use crate::definition::workflow::{NodeKind, Workflow};

/// What a resolution came to.
pub enum Resolution {
    Resolved(Box<StoredSnapshot>),
    /// Look these up, add them to the library and resolve again.
    Missing(Vec<Reference>),
    Invalid(Vec<Problem>),
}

/// Checks a document of any kind; `Ok` carries its warnings.
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
        DocumentKind::Workflows => match resolve_reporting(document, 0, library, Problems::new(*rules)) {
            Resolution::Resolved(_) => {
                Workflow::read(document, &problems);
            }
            Resolution::Missing(references) => missing = references,
            Resolution::Invalid(found) => return Err(CheckError::Invalid(found)),
        },
    }
    match (missing.is_empty(), problems.has_errors()) {
        (false, _) => Err(CheckError::Missing(missing)),
        (true, true) => Err(CheckError::Invalid(problems.into_sorted())),
        (true, false) => Ok(problems.into_sorted()),
    }
}

/// Why a document did not pass.
#[derive(Debug)]
pub enum CheckError {
    Invalid(Vec<Problem>),
    Missing(Vec<Reference>),
}

/// Resolves a stored workflow against its inline documents and the library, to start a run: expressions and limits
/// were checked when it was stored and are not judged again, so that what was accepted once can always be started.
pub fn resolve(workflow: &Value, version: u64, library: &Library, rules: &TimeoutRules) -> Resolution {
    let mut resolution = resolve_reporting(workflow, version, library, Problems::prechecked());
    if let Resolution::Resolved(stored) = &mut resolution {
        stored.preset = rules.preset;
        for child in &mut stored.children {
            child.preset = rules.preset;
        }
    }
    resolution
}

fn resolve_reporting(workflow: &Value, version: u64, library: &Library, problems: Problems) -> Resolution {
    let mut resolver = Resolver::new(workflow, library, &problems);
    resolver.check_inline();
    let parsed = Workflow::read(workflow, &problems);
    if !problems.is_prechecked() {
        hard_limits::check_workflow(workflow, library, &problems);
    }
    let mut root = resolver.resolve_graph(workflow, version, parsed.as_ref());
    let mut missing = resolver.missing;
    let mut calls = resolver.calls;
    for (index, node) in parsed.iter().flat_map(|it| it.nodes.iter().enumerate()) {
        let task = root.node_tasks.get(index).copied().flatten();
        if let (Some(Dispatch::Inline), Some(task)) = (node.dispatch, task.and_then(|it| root.tasks.get(it)))
        {
            inline::check_node(task, &node_pointer(workflow, &node.id), &problems);
        }
    }
    // The workflows this one calls, the ones those call, and so on; each reference once.
    let mut done = 0;
    while let Some(call) = calls.get(done).cloned() {
        done += 1;
        let is_itself = call.version.is_none() && workflow["id"].as_str() == Some(&call.id);
        let found = match library.get(&call) {
            _ if is_itself => Some((workflow, version)),
            Some(Some(document)) => Some((&document.content, document.version)),
            Some(None) => {
                if let Some(what) = say_missing(&call, library, &mut missing) {
                    problems.report(
                        &call_pointer(workflow, &call.id),
                        "unknown_reference",
                        format!("{what}; store it first"),
                    );
                }
                None
            }
            None => {
                missing.push(call);
                continue;
            }
        };
        let Some((document, version)) = found else {
            continue;
        };
        // It was checked when it was stored: what is wrong with it now can only be what it refers to.
        let prechecked = Problems::prechecked();
        let parsed = Workflow::read(document, &prechecked);
        let mut resolver = Resolver::new(document, library, &prechecked);
        resolver.calls = std::mem::take(&mut calls);
        root.children
            .push(resolver.resolve_graph(document, version, parsed.as_ref()));
        missing.append(&mut resolver.missing);
        calls = resolver.calls;
        for problem in prechecked.into_sorted() {
            problems.report(
                &call_pointer(workflow, &call.id),
                problem.code,
                format!("in workflow \"{}\": {problem}", call.id),
            );
        }
    }
    // Missing goes before invalid: an answer names every problem, also those only the catalogue can show.
    if !missing.is_empty() {
        return Resolution::Missing(missing);
    }
    if problems.has_errors() {
        return Resolution::Invalid(problems.into_sorted());
    }
    Resolution::Resolved(Box::new(root))
}

/// What to say of a reference that the catalogue has nothing for. Where a version was named the newest is looked up first:
/// `None` until that is done.
fn say_missing(reference: &Reference, library: &Library, missing: &mut Vec<Reference>) -> Option<String> {
    let (kind, id, version) = (reference.kind, &reference.id, reference.version);
    if version.is_none() {
        return Some(missing_document(kind, id, None, None));
    }
    let newest = Reference {
        version: None,
        ..reference.clone()
    };
    match library.get(&newest) {
        Some(found) => {
            let newest = found.as_ref().map(|document| document.version);
            Some(missing_document(kind, id, version, newest))
        }
        None => {
            if !missing.contains(&newest) {
                missing.push(newest);
            }
            None
        }
    }
}

/// The place a workflow is called from, as far as it is in this document.
fn call_pointer(workflow: &Value, id: &str) -> String {
    let position =
        |field: &str, matches: &dyn Fn(&Value) -> bool| workflow[field].as_array()?.iter().position(matches);
    if let Some(node) = position("nodes", &|node| node["workflow_id"].as_str() == Some(id)) {
        return format!("/nodes/{node}/workflow_id");
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

fn node_pointer(workflow: &Value, id: &str) -> String {
    let position = workflow["nodes"]
        .as_array()
        .and_then(|nodes| nodes.iter().position(|node| node["id"].as_str() == Some(id)));
    format!("/nodes/{}", position.unwrap_or(0))
}

struct Resolver<'a> {
    document: &'a Value,
    library: &'a Library,
    problems: &'a Problems,
    missing: Vec<Reference>,
    /// Workflows that are called, in the order of the snapshot's list of children.
    calls: Vec<Reference>,
}

impl<'a> Resolver<'a> {
    fn new(document: &'a Value, library: &'a Library, problems: &'a Problems) -> Self {
        Resolver {
            document,
            library,
            problems,
            missing: Vec::new(),
            calls: Vec::new(),
        }
    }

    /// The graph with the tasks of its nodes, and where its calls lead.
    fn resolve_graph(&mut self, workflow: &Value, version: u64, parsed: Option<&Workflow>) -> StoredSnapshot {
        let mut tasks = Vec::new();
        let mut node_tasks = Vec::new();
        let mut node_children = Vec::new();
        let mut known: BTreeMap<(bool, &str, Option<u64>), usize> = BTreeMap::new();
        for node in parsed.into_iter().flat_map(|workflow| &workflow.nodes) {
            let key = match &node.kind {
                NodeKind::Task { id, version } => (true, id.as_str(), *version),
                NodeKind::Action { id, version } => (false, id.as_str(), *version),
                NodeKind::Workflow { id, version, .. } => {
                    node_tasks.push(None);
                    node_children.push(Some(self.call(id, *version)));
                    continue;
                }
                NodeKind::Gate(_) | NodeKind::Wait(_) | NodeKind::PassThrough => {
                    node_tasks.push(None);
                    node_children.push(None);
                    continue;
                }
            };
            let index = match known.get(&key) {
                Some(&index) => index,
                None => {
                    let pointer = node_pointer(workflow, &node.id);
                    tasks.push(self.node_task(key, &pointer).unwrap_or(Value::Null));
                    known.insert(key, tasks.len() - 1);
                    tasks.len() - 1
                }
            };
            node_tasks.push(Some(index));
            let action = &tasks[index]["steps"][0]["action"];
            node_children.push(match action["kind"].as_str() {
                Some("workflow_call") => {
                    let called = &action["implementation"];
                    let id = called["workflow_id"].as_str().unwrap_or_default();
                    Some(self.call(id, called["version"].as_u64()))
                }
                Some(_) | None => None,
            });
        }
        if node_children.iter().all(Option::is_none) {
            node_children.clear();
        }
        let mut graph = workflow.clone();
        if let Value::Object(fields) = &mut graph {
            fields.remove("tasks");
            fields.remove("actions");
            // Written out: what a run means must not change with the default of a later build.
            fields.entry("on_timeout").or_insert_with(|| json!("human_gate"));
        }
        StoredSnapshot {
            version,
            workflow: graph,
            tasks,
            node_tasks,
            node_children,
            children: Vec::new(),
            preset: Preset::default(),
            latencies: BTreeMap::new(),
        }
    }

    /// The place of a called workflow in the list of children.
    fn call(&mut self, id: &str, version: Option<u64>) -> usize {
        let reference = Reference {
            kind: DocumentKind::Workflows,
            id: id.to_string(),
            version,
        };
        match self.calls.iter().position(|other| *other == reference) {
            Some(index) => index,
            None => {
                self.calls.push(reference);
                self.calls.len() - 1
            }
        }
    }

    /// Reads the documents written inside the workflow, used or not.
    fn check_inline(&mut self) {
        for field in ["tasks", "actions"] {
            let Some(written) = self.document.get(field).filter(|value| !value.is_null()) else {
                continue;
            };
            let Some(documents) = written.as_array() else {
                self.problems.report(
                    &format!("/{field}"),
                    "wrong_type",
                    "expected an array of documents",
                );
                continue;
            };
            for (index, document) in documents.iter().enumerate() {
                let pointer = format!("/{field}/{index}");
                if field == "tasks" {
                    if let Some(resolved) = self.resolve_task(document, &pointer) {
                        inline::check_task(&resolved, &pointer, self.problems);
                    }
                } else {
                    Action::read(document, &pointer, true, self.problems);
                }
                let id = document["id"].as_str();
                if id.is_some() && documents[..index].iter().any(|other| other["id"].as_str() == id) {
                    self.problems.report(
                        &pointer_to(&pointer, "id"),
                        "duplicate_id",
                        "another document of this kind has the same id",
                    );
                }
            }
        }
    }

    fn node_task(
        &mut self,
        (is_task, id, version): (bool, &str, Option<u64>),
        pointer: &str,
    ) -> Option<Value> {
        if is_task {
            let named_at = pointer_to(pointer, "task_id");
            let (task, at) = self.find(DocumentKind::Tasks, id, version, &named_at)?;
            let resolved = self.resolve_task(&task, &at)?;
            // One written here is judged where it stands.
            if at == named_at {
                inline::check_named_task(&resolved, &at, self.problems);
            }
            return Some(resolved);
        }
        let (action, _) = self.find(
            DocumentKind::Actions,
            id,
            version,
            &pointer_to(pointer, "action_id"),
        )?;
        Some(json!({"id": id, "steps": [{"ref": id, "action": action}]}))
    }

    /// The task with each step's action written into it.
    fn resolve_task(&mut self, value: &Value, pointer: &str) -> Option<Value> {
        Task::read(value, pointer, self.problems)?;
        let mut resolved = value.clone();
        for (index, step) in value["steps"].as_array()?.iter().enumerate() {
            let Some(id) = step["action_id"].as_str() else {
                continue;
            };
            let version = step["action_version"].as_u64();
            let at = format!("{pointer}/steps/{index}/action_id");
            let Some((action, _)) = self.find(DocumentKind::Actions, id, version, &at) else {
                continue;
            };
            // `Task::read` saw only what is written in its steps.
            let is_bare = value["steps"].as_array().is_some_and(|steps| steps.len() == 1)
                && step["condition"].is_null()
                && step["output_mapping"].is_null();
            if action["kind"] == "workflow_call" && !is_bare {
                report_crowded_call(&format!("{pointer}/steps/{index}"), self.problems);
            }
            if let Some(Value::Object(step)) = resolved["steps"].get_mut(index) {
                step.remove("action_id");
                step.remove("action_version");
                step.insert("action".into(), action);
            }
        }
        Some(resolved)
    }

    /// Inline first, then the library; what the library was never asked for becomes `missing`.
    fn find(
        &mut self,
        kind: DocumentKind,
        id: &str,
        version: Option<u64>,
        pointer: &str,
    ) -> Option<(Value, String)> {
        if version.is_none()
            && let Some(documents) = self.document[kind.name()].as_array()
            && let Some(index) = documents
                .iter()
                .position(|other| other["id"].as_str() == Some(id))
        {
            return Some((documents[index].clone(), format!("/{}/{index}", kind.name())));
        }
        let reference = Reference {
            kind,
            id: id.to_string(),
            version,
        };
        match self.library.get(&reference) {
            Some(Some(document)) => Some((document.content.clone(), pointer.to_string())),
            Some(None) => {
                if let Some(what) = say_missing(&reference, self.library, &mut self.missing) {
                    let message = format!("{what}; store it first or write it into this document");
                    self.problems.report(pointer, "unknown_reference", message);
                }
                None
            }
            None => {
                if !self.missing.contains(&reference) {
                    self.missing.push(reference);
                }
                None
            }
        }
    }
}
