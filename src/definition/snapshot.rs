//! The self-contained snapshot that a run stores: the workflow and every task with its actions inline, so that a run never
//! reads the catalogue again and an executor needs nothing else. `resolve` creates it.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::base::from_json::from_json;
use crate::base::ordered::sort_by_key;
use crate::definition::action::ActionKind;
pub use crate::definition::adaptive::{Latency, adaptive_nodes};
use crate::definition::node::{ChildFailurePolicy, NodeKind};
use crate::definition::problem::{Problem, Problems};
pub use crate::definition::resolve::{CheckError, Resolution, check, check_workflow, resolve};
use crate::definition::task::Task;
use crate::definition::timeouts::Preset;
use crate::definition::workflow::Workflow;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentKind {
    Actions,
    Tasks,
    Workflows,
}

impl DocumentKind {
    pub fn name(self) -> &'static str {
        match self {
            DocumentKind::Actions => "actions",
            DocumentKind::Tasks => "tasks",
            DocumentKind::Workflows => "workflows",
        }
    }

    /// The kind in a message about one document.
    pub fn singular(self) -> &'static str {
        match self {
            DocumentKind::Actions => "action",
            DocumentKind::Tasks => "task",
            DocumentKind::Workflows => "workflow",
        }
    }

    pub fn parse(name: &str) -> Option<DocumentKind> {
        [
            DocumentKind::Actions,
            DocumentKind::Tasks,
            DocumentKind::Workflows,
        ]
        .into_iter()
        .find(|kind| kind.name() == name)
    }
}

/// The message for a document or a version that is not in the catalogue. `newest` is its newest version.
pub fn missing_document(kind: DocumentKind, id: &str, version: Option<u64>, newest: Option<u64>) -> String {
    let what = kind.singular();
    match (version, newest) {
        (Some(version), Some(newest)) => {
            format!("version {version} of {what} \"{id}\" does not exist; the newest is {newest}")
        }
        (_, None) | (None, Some(_)) => format!("{what} \"{id}\" does not exist"),
    }
}

/// A reference to a document. Without a version it means the newest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    pub kind: DocumentKind,
    pub id: String,
    pub version: Option<u64>,
}

/// The documents that were looked up in the catalogue so far, by reference. `None` if the catalogue has no such document.
pub type Library = BTreeMap<Reference, Option<CatalogueDocument>>;

#[derive(Clone, Debug, PartialEq)]
pub struct CatalogueDocument {
    pub version: u64,
    pub content: Value,
}

/// The snapshot as it is stored. It contains documents, so that the same readers parse both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredSnapshot {
    pub version: u64,
    pub workflow: Value,
    pub tasks: Vec<Value>,
    /// The index of each node's task.
    pub node_tasks: Vec<Option<usize>>,
    /// The index in `children` of the workflow that each node calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_children: Vec<Option<usize>>,
    /// Every workflow that is called from here, directly or indirectly. The list is flat, because workflows may call each
    /// other recursively. The `children` of its entries are empty; their `node_children` refer to this list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<StoredSnapshot>,
    /// The deployment's preset when the run was created. Later changes do not affect the run.
    #[serde(default, skip_serializing_if = "is_standard")]
    pub preset: Preset,
    /// The durations of the last runs, by node id. Each child has its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub latencies: BTreeMap<String, Latency>,
}

/// A snapshot without the field means standard.
fn is_standard(preset: &Preset) -> bool {
    *preset == Preset::Standard
}

impl StoredSnapshot {
    /// Whether an action here or in a called workflow waits for a callback.
    pub fn has_async(&self) -> bool {
        let is_async = |step: &Value| step["action"]["execution"]["mode"] == "async";
        let has_async = |task: &Value| {
            task["steps"]
                .as_array()
                .is_some_and(|steps| steps.iter().any(is_async))
        };
        self.tasks.iter().any(has_async) || self.children.iter().any(StoredSnapshot::has_async)
    }

    /// Whether every task and called workflow that it refers to is there.
    pub fn is_whole(&self) -> bool {
        let has =
            |indices: &[Option<usize>], count: usize| indices.iter().flatten().all(|index| *index < count);
        let of = |stored: &StoredSnapshot| {
            has(&stored.node_tasks, stored.tasks.len()) && has(&stored.node_children, self.children.len())
        };
        of(self) && self.children.iter().all(of)
    }

    /// Whether the called workflow `index`, or one that it may call, has compensations or end handlers.
    fn child_has_ending(&self, index: usize) -> bool {
        let mut seen = vec![false; self.children.len()];
        let mut open = vec![index];
        while let Some(index) = open.pop() {
            let Some(child) = self.children.get(index) else {
                continue;
            };
            if std::mem::replace(&mut seen[index], true) {
                continue;
            }
            let nodes = child.workflow["nodes"].as_array();
            let compensates =
                nodes.is_some_and(|nodes| nodes.iter().any(|node| !node["compensate"].is_null()));
            if compensates || !child.workflow["on_end"].is_null() {
                return true;
            }
            open.extend(child.node_children.iter().flatten());
        }
        false
    }

    /// The self-contained snapshot of the workflow that `node` calls.
    pub fn child(&self, node: usize) -> Option<StoredSnapshot> {
        let index = (*self.node_children.get(node)?)?;
        let mut child = self.children.get(index)?.clone();
        // A workflow without calls needs no children.
        if child.node_children.iter().any(Option::is_some) {
            child.children = self.children.clone();
        }
        Some(child)
    }
}

/// Whether resolving again would give the same result: every reference names its version, and no limit is adaptive.
pub fn is_cacheable(stored: &StoredSnapshot, library: &Library) -> bool {
    library.keys().all(|reference| reference.version.is_some()) && adaptive_nodes(stored).is_empty()
}

/// The snapshot, parsed.
#[derive(Debug)]
pub struct Snapshot {
    pub version: u64,
    pub workflow: Workflow,
    pub tasks: Vec<ResolvedTask>,
    pub node_tasks: Vec<Option<usize>>,
    /// Whether the workflow that each node calls has an ending of its own.
    children_with_ending: Vec<bool>,
    /// The outgoing transitions of each node, lowest priority number first.
    routes: Vec<Vec<usize>>,
    /// The source of this snapshot. Child runs are created from it.
    pub stored: StoredSnapshot,
    /// `stored` as text, as it is persisted.
    pub text: Rc<str>,
    /// As `StoredSnapshot::has_async`.
    pub has_async: bool,
}

#[derive(Debug)]
pub struct ResolvedTask {
    pub task: Task,
    /// The task's JSON, as it is sent to executors.
    pub text: Box<RawValue>,
    pub is_pure: bool,
}

impl Snapshot {
    /// Parses a persisted snapshot.
    pub fn parse(text: &str) -> Result<Snapshot, String> {
        let stored: StoredSnapshot = from_json(text).map_err(|error| error.to_string())?;
        Snapshot::build(stored, text.into()).map_err(|problems| {
            let first = problems.first().map(ToString::to_string);
            first.unwrap_or_default()
        })
    }

    pub fn read(stored: StoredSnapshot) -> Result<Snapshot, Vec<Problem>> {
        let text = serde_json::to_string(&stored).expect("every map of a snapshot has string keys");
        Snapshot::build(stored, text.into())
    }

    fn build(stored: StoredSnapshot, text: Rc<str>) -> Result<Snapshot, Vec<Problem>> {
        let problems = Problems::prechecked();
        let workflow = Workflow::read(&stored.workflow, &problems);
        let mut tasks = Vec::new();
        for value in &stored.tasks {
            let text = to_raw_value(value).expect("the keys of a JSON value are strings");
            tasks.extend(Task::read(value, "/tasks", &problems).map(|task| ResolvedTask {
                is_pure: task.is_pure(),
                task,
                text,
            }));
        }
        match workflow {
            Some(workflow) if !problems.has_errors() && tasks.len() == stored.tasks.len() => Ok(Snapshot {
                version: stored.version,
                routes: routes_of(&workflow),
                workflow,
                tasks,
                node_tasks: stored.node_tasks.clone(),
                has_async: stored.has_async(),
                children_with_ending: stored
                    .node_children
                    .iter()
                    .map(|child| child.is_some_and(|child| stored.child_has_ending(child)))
                    .collect(),
                stored,
                text,
            }),
            Some(_) | None => Err(problems.into_sorted()),
        }
    }

    /// Whether the run that `node` calls may compensate or handle its end.
    pub fn child_has_ending(&self, node: usize) -> bool {
        self.children_with_ending.get(node).copied().unwrap_or(false)
    }

    pub fn routes_from(&self, node: usize) -> &[usize] {
        self.routes.get(node).map_or(&[], Vec::as_slice)
    }

    /// The failure policy of the call, if `node` calls a workflow itself or by the action of a one-step task.
    pub fn call_of(&self, node: usize) -> Option<ChildFailurePolicy> {
        if let NodeKind::Workflow { on_failure, .. } = &self.workflow.nodes[node].kind {
            return Some(*on_failure);
        }
        match &self.task_of(node)?.task.only_action()?.kind {
            ActionKind::WorkflowCall(call) => Some(call.on_failure),
            ActionKind::HttpRequest(_)
            | ActionKind::McpTool(_)
            | ActionKind::ServiceCall(_)
            | ActionKind::LlmCall(_)
            | ActionKind::Shell(_)
            | ActionKind::UpdateContext(_)
            | ActionKind::Assert(_)
            | ActionKind::EmitEvent(_) => None,
        }
    }

    /// The joins of a sibling group.
    pub fn joins_of<'a>(&'a self, group: &'a str) -> impl Iterator<Item = usize> + 'a {
        let transitions = self.workflow.transitions.iter().enumerate();
        transitions
            .filter(move |(_, transition)| {
                transition
                    .synchronization
                    .as_ref()
                    .is_some_and(|join| join.group == group)
            })
            .map(|(index, _)| index)
    }

    pub fn task_of(&self, node: usize) -> Option<&ResolvedTask> {
        let index = (*self.node_tasks.get(node)?)?;
        self.tasks.get(index)
    }
}

fn routes_of(workflow: &Workflow) -> Vec<Vec<usize>> {
    let mut routes = vec![Vec::new(); workflow.nodes.len()];
    for (index, transition) in workflow.transitions.iter().enumerate() {
        routes[transition.from].push(index);
    }
    for outgoing in &mut routes {
        // A stable sort keeps the document's order within one priority.
        sort_by_key(outgoing, |&index| workflow.transitions[index].priority);
    }
    routes
}
