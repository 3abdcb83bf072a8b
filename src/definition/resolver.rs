//! Resolves the references of one document, against its inline documents first and the library second. References that the
//! library does not contain yet are collected in `missing`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::base::ids::is_id;
use crate::definition::action::Action;
use crate::definition::ending;
use crate::definition::inline;
use crate::definition::node::NodeKind;
use crate::definition::problem::{Problems, pointer_to};
use crate::definition::snapshot::{DocumentKind, Library, Reference, StoredSnapshot, missing_document};
use crate::definition::step::report_call_not_alone;
use crate::definition::task::Task;
use crate::definition::timeouts::Preset;
use crate::definition::workflow::Workflow;

pub(super) struct Resolver<'a> {
    document: &'a Value,
    library: &'a Library,
    problems: &'a Problems,
    pub(super) missing: Vec<Reference>,
    /// Called workflows, in the order of the snapshot's list of children.
    pub(super) calls: Vec<Reference>,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(document: &'a Value, library: &'a Library, problems: &'a Problems) -> Self {
        Resolver {
            document,
            library,
            problems,
            missing: Vec::new(),
            calls: Vec::new(),
        }
    }

    /// The graph with the tasks of its nodes, and the indices of the workflows it calls.
    pub(super) fn resolve_graph(
        &mut self,
        workflow: &Value,
        version: u64,
        parsed: Option<&Workflow>,
    ) -> StoredSnapshot {
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
            // Explicit, so that a later build's default does not change a stored run.
            fields.entry("on_timeout").or_insert_with(|| json!("human_gate"));
            fields.entry("on_no_match").or_insert_with(|| json!("fail"));
            fields.entry("clock").or_insert_with(|| json!("stops_at_gates"));
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

    /// The index of a called workflow in the list of children.
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

    /// Reads the inline documents of the workflow, including unused ones.
    pub(super) fn check_inline(&mut self) {
        for field in ["tasks", "actions"] {
            let Some(inline_documents) = self.document.get(field).filter(|value| !value.is_null()) else {
                continue;
            };
            let Some(documents) = inline_documents.as_array() else {
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
            // `check_inline` has checked an inline task.
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

    /// The task with the referenced actions copied into its steps.
    pub(super) fn resolve_task(&mut self, value: &Value, pointer: &str) -> Option<Value> {
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
            // `Task::read` checked inline actions only.
            let is_bare = value["steps"].as_array().is_some_and(|steps| steps.len() == 1)
                && step["condition"].is_null()
                && step["output_mapping"].is_null();
            if action["kind"] == "workflow_call" && !is_bare {
                report_call_not_alone(&format!("{pointer}/steps/{index}"), self.problems);
            }
            if let Some(Value::Object(step)) = resolved["steps"].get_mut(index) {
                step.remove("action_id");
                step.remove("action_version");
                step.insert("action".into(), action);
            }
        }
        Some(resolved)
    }

    /// The document and its pointer: that of an inline document, or `pointer` for one of the library.
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
            // One of its own has an invalid id, which is reported there, and may be meant.
            Some(None) if version.is_none() && has_nameless(&self.document[kind.name()]) => None,
            Some(None) => {
                if let Some(message) = describe_missing(&reference, self.library, &mut self.missing) {
                    let message = format!("{message}; store it first or write it into this document");
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

fn has_nameless(documents: &Value) -> bool {
    let mut documents = documents.as_array().into_iter().flatten();
    documents.any(|document| !document["id"].as_str().is_some_and(is_id))
}

/// The message for a reference that is not in the catalogue. If it names a version, the message also states the newest one:
/// `None` until that was looked up.
pub(super) fn describe_missing(
    reference: &Reference,
    library: &Library,
    missing: &mut Vec<Reference>,
) -> Option<String> {
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

pub(super) fn node_pointer(workflow: &Value, id: &str) -> String {
    if let Some(pointer) = ending::pointer_of(id, |node| node_pointer(workflow, node)) {
        return pointer;
    }
    let position = workflow["nodes"]
        .as_array()
        .and_then(|nodes| nodes.iter().position(|node| node["id"].as_str() == Some(id)));
    format!("/nodes/{}", position.unwrap_or(0))
}
