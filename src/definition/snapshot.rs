//! The self-contained snapshot a run keeps: every task with its actions written into the steps, so that a run never
//! reads the catalogue again and an executor needs nothing else. `resolve` makes it.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::definition::action::{Action, ActionKind};
pub use crate::definition::adaptive::{Latency, adaptive_nodes};
use crate::definition::problem::{Problem, Problems};
pub use crate::definition::resolve::{CheckError, Resolution, check, resolve};
use crate::definition::task::Task;
use crate::definition::timeouts::Preset;
use crate::definition::workflow::{ChildFailurePolicy, NodeKind, Workflow};

/// The three kinds of documents.
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

    /// A document of the kind, in a sentence.
    pub fn one(self) -> &'static str {
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

/// Says that a document is not in the catalogue, or not in this version. `newest`: the newest version there is.
pub fn missing_document(kind: DocumentKind, id: &str, version: Option<u64>, newest: Option<u64>) -> String {
    let what = kind.one();
    match (version, newest) {
        (Some(version), Some(newest)) => {
            format!("version {version} of {what} \"{id}\" does not exist; the newest is {newest}")
        }
        (_, None) | (None, Some(_)) => format!("{what} \"{id}\" does not exist"),
    }
}

/// A document another one points at. Without a version: the newest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    pub kind: DocumentKind,
    pub id: String,
    pub version: Option<u64>,
}

/// The catalogue documents at hand, by the reference they answer. `None`: looked up, not there.
pub type Library = BTreeMap<Reference, Option<CatalogueDocument>>;

#[derive(Clone, Debug, PartialEq)]
pub struct CatalogueDocument {
    pub version: u64,
    pub content: Value,
}

/// The snapshot as it is stored: documents, not engine types, so that one parser reads both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredSnapshot {
    pub version: u64,
    pub workflow: Value,
    pub tasks: Vec<Value>,
    /// For each node the index of its task.
    pub node_tasks: Vec<Option<usize>>,
    /// For each node the index of the workflow it calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_children: Vec<Option<usize>>,
    /// Every workflow that can be called from here, however deep: flat, because workflows may call each other in
    /// circles. The entries' own lists are empty; their `node_children` point into this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<StoredSnapshot>,
    /// The deployment's preset when the run was created: a later change of it does not reach runs that live.
    #[serde(default, skip_serializing_if = "is_standard")]
    pub preset: Preset,
    /// By node id, what is known of its last runs. A child has its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub latencies: BTreeMap<String, Latency>,
}

/// Standard is what a snapshot without the field means.
fn is_standard(preset: &Preset) -> bool {
    *preset == Preset::Standard
}

impl StoredSnapshot {
    /// Some action's result comes by a callback, here or in a workflow that is called from here.
    pub fn has_async(&self) -> bool {
        let is_async = |step: &Value| step["action"]["execution"]["mode"] == "async";
        let has_async = |task: &Value| {
            task["steps"]
                .as_array()
                .is_some_and(|steps| steps.iter().any(is_async))
        };
        self.tasks.iter().any(has_async) || self.children.iter().any(StoredSnapshot::has_async)
    }

    /// The snapshot of the workflow that `node` calls, as self-contained as this one.
    pub fn child(&self, node: usize) -> Option<StoredSnapshot> {
        let index = (*self.node_children.get(node)?)?;
        let mut child = self.children.get(index)?.clone();
        // One that calls nothing needs none of the others.
        if child.node_children.iter().any(Option::is_some) {
            child.children = self.children.clone();
        }
        Some(child)
    }
}

/// Whether another look into the catalogue could not change what was resolved: every reference names its version, and no
/// limit is learnt.
pub fn is_final(stored: &StoredSnapshot, library: &Library) -> bool {
    library.keys().all(|reference| reference.version.is_some()) && adaptive_nodes(stored).is_empty()
}

/// The snapshot as the engine uses it.
#[derive(Debug)]
pub struct Snapshot {
    pub version: u64,
    pub workflow: Workflow,
    pub tasks: Vec<ResolvedTask>,
    pub node_tasks: Vec<Option<usize>>,
    /// For each node its outgoing transitions, lowest priority number first.
    routes: Vec<Vec<usize>>,
    /// What was read: children are started from it.
    pub stored: StoredSnapshot,
    /// The same as text, as it is saved.
    pub text: Rc<str>,
}

#[derive(Debug)]
pub struct ResolvedTask {
    pub task: Task,
    /// The task's JSON, ready to be sent.
    pub text: Box<RawValue>,
    pub is_pure: bool,
}

impl Snapshot {
    /// A snapshot as it was saved.
    pub fn parse(text: &str) -> Result<Snapshot, String> {
        let stored: StoredSnapshot = serde_json::from_str(text).map_err(|error| error.to_string())?;
        Snapshot::build(stored, text.into()).map_err(|problems| {
            let first = problems.first().map(ToString::to_string);
            first.unwrap_or_default()
        })
    }

    pub fn read(stored: StoredSnapshot) -> Result<Snapshot, Vec<Problem>> {
        // Documents have text for keys, which is all that could go wrong.
        let text = serde_json::to_string(&stored).unwrap_or_default();
        Snapshot::build(stored, text.into())
    }

    fn build(stored: StoredSnapshot, text: Rc<str>) -> Result<Snapshot, Vec<Problem>> {
        let problems = Problems::prechecked();
        let workflow = Workflow::read(&stored.workflow, &problems);
        let mut tasks = Vec::new();
        for value in &stored.tasks {
            // Documents have text for keys, which is all that could go wrong.
            let text = to_raw_value(value).ok();
            let task = Task::read(value, "/tasks", &problems).zip(text);
            tasks.extend(task.map(|(task, text)| ResolvedTask {
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
                stored,
                text,
            }),
            Some(_) | None => Err(problems.into_sorted()),
        }
    }

    pub fn routes_from(&self, node: usize) -> &[usize] {
        self.routes.get(node).map_or(&[], Vec::as_slice)
    }

    /// The workflow that a token at `node` calls, by a node of its own or by the action of a one-step task.
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

    /// Some action's result comes by a callback.
    pub fn has_async(&self) -> bool {
        let mut tasks = self.tasks.iter();
        tasks.any(|task| task.task.only_action().is_some_and(Action::is_async))
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
        // Stable: within a tier the order of the document.
        outgoing.sort_by_key(|&index| workflow.transitions[index].priority);
    }
    routes
}
