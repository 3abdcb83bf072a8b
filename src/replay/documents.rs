//! The documents of a recorded run: its snapshot has them without what they were called, and a changed workflow finds them again.

use serde_json::{Value, json};

use crate::definition::snapshot::{CatalogueDocument, DocumentKind, Library, Reference, StoredSnapshot};

/// The workflow of a snapshot with its tasks and actions inline, as one document.
pub fn self_contained(stored: &StoredSnapshot) -> Value {
    let mut document = stored.workflow.clone();
    let (mut tasks, mut actions): (Vec<Value>, Vec<Value>) = (Vec::new(), Vec::new());
    each_executed(&mut document, stored, |work, task| {
        let named = match work.contains_key("task_id") {
            true => &mut tasks,
            false => &mut actions,
        };
        let content = content_of(work, task);
        if !named.contains(&content) {
            named.push(content);
        }
        // Inline documents have no versions.
        work.remove("task_version");
        work.remove("action_version");
    });
    if let Value::Object(fields) = &mut document {
        for (name, inline) in [("tasks", tasks), ("actions", actions)] {
            if !inline.is_empty() {
                fields.insert(name.into(), json!(inline));
            }
        }
    }
    document
}

/// The documents that the run refers to, as it has them.
pub fn library_of(stored: &StoredSnapshot) -> Library {
    let mut library = Library::new();
    let mut document = stored.workflow.clone();
    each_executed(&mut document, stored, |work, task| {
        let (kind, id, version) = match work.contains_key("task_id") {
            true => (DocumentKind::Tasks, "task_id", "task_version"),
            false => (DocumentKind::Actions, "action_id", "action_version"),
        };
        let version = work.get(version).and_then(Value::as_u64);
        let reference = Reference {
            kind,
            id: work
                .get(id)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_string(),
            version,
        };
        let content = CatalogueDocument {
            version: version.unwrap_or(1),
            content: content_of(work, task),
        };
        library.insert(reference, Some(content));
    });
    for child in &stored.children {
        let content = self_contained(child);
        let id = content["id"].as_str().unwrap_or_default().to_string();
        for version in [None, Some(child.version)] {
            let reference = Reference {
                kind: DocumentKind::Workflows,
                id: id.clone(),
                version,
            };
            let document = CatalogueDocument {
                version: child.version,
                content: content.clone(),
            };
            library.insert(reference, Some(document));
        }
    }
    library
}

fn content_of(work: &serde_json::Map<String, Value>, task: &Value) -> Value {
    let (id, mut content) = match work.get("task_id") {
        Some(id) => (id.clone(), task.clone()),
        None => {
            let id = work.get("action_id").cloned().unwrap_or_default();
            (id, task["steps"][0]["action"].clone())
        }
    };
    if let Value::Object(fields) = &mut content {
        fields.insert("id".into(), id);
    }
    content
}

/// Every place that names a task or an action, with the task of the snapshot: nodes, their compensations, end handlers. They are
/// in the order in which the snapshot has its tasks.
fn each_executed(
    document: &mut Value,
    stored: &StoredSnapshot,
    mut each: impl FnMut(&mut serde_json::Map<String, Value>, &Value),
) {
    let mut tasks = stored.node_tasks.iter();
    let mut visit = |work: &mut Value, tasks: &mut dyn Iterator<Item = &Option<usize>>| {
        let task = tasks
            .next()
            .copied()
            .flatten()
            .and_then(|index| stored.tasks.get(index));
        if let (Some(task), Value::Object(work)) = (task, work) {
            each(work, task);
        }
    };
    let mut nodes = document.get_mut("nodes").and_then(Value::as_array_mut);
    for node in nodes.iter_mut().flat_map(|nodes| nodes.iter_mut()) {
        visit(node, &mut tasks);
    }
    for node in nodes.into_iter().flatten() {
        if let Some(work) = node.get_mut("compensate").filter(|work| !work.is_null()) {
            visit(work, &mut tasks);
        }
    }
    if let Some(handlers) = document.get_mut("on_end").and_then(Value::as_array_mut) {
        for handler in handlers {
            visit(handler, &mut tasks);
        }
    }
}
