//! Holds every written limit against the hard limits of the preset in force.
//!
//! Walks the documents as they are written and not as they were read: a problem stands where its number does, and a
//! step that was sorted or dropped has lost its place. Values that are no limit at all are the readers' business.
//! What a node or step allows covers what it runs, so documents are judged by their uses.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::base::time::{Limit, parse_duration};
use crate::definition::action::layer_of_kind;
use crate::definition::problem::{Problems, pointer_to};
use crate::definition::snapshot::{DocumentKind, Library, Reference};
use crate::definition::timeouts::{Preset, TimeoutLayer};

pub(super) fn check_workflow(document: &Value, library: &Library, problems: &Problems) {
    Walk::new(document, library, problems).workflow();
}

/// A task of its own: the preset is the deployment's, and only its steps can allow anything.
pub(super) fn check_task(document: &Value, library: &Library, problems: &Problems) {
    Walk::new(&Value::Null, library, problems).task(document, &Place::written(""), Allowance::NO_NODE);
}

pub(super) fn check_action(document: &Value, problems: &Problems) {
    let library = Library::new();
    Walk::new(&Value::Null, &library, problems).action(document, &Place::written(""), Allowance::NO_STEP);
}

/// Whether a hard limit may be passed here, and where one would write so.
#[derive(Clone, Copy)]
struct Allowance {
    given: bool,
    place: &'static str,
}

impl Allowance {
    const NO_NODE: Allowance = Allowance {
        given: false,
        place: "in one of its steps",
    };
    const NO_STEP: Allowance = Allowance {
        given: false,
        place: "and a \"timeout_override\" in the step that uses it",
    };

    fn written_in(object: &Value, place: &'static str) -> Allowance {
        Allowance {
            given: object["allow_exceed_hard"] == Value::Bool(true),
            place,
        }
    }

    fn or(self, outer: Allowance) -> Allowance {
        Allowance {
            given: self.given || outer.given,
            ..self
        }
    }
}

/// Where a document stands: in the one that is checked, or in the catalogue behind a reference of it.
#[derive(Clone)]
struct Place {
    pointer: String,
    behind: Option<Behind>,
}

#[derive(Clone)]
struct Behind {
    document: String,
    pointer: String,
}

impl Place {
    fn written(pointer: impl Into<String>) -> Place {
        Place {
            pointer: pointer.into(),
            behind: None,
        }
    }

    fn inside(&self, part: &str) -> Place {
        let mut place = self.clone();
        match &mut place.behind {
            Some(behind) => behind.pointer = pointer_to(&behind.pointer, part),
            None => place.pointer = pointer_to(&place.pointer, part),
        }
        place
    }

    /// A catalogue document that is named here.
    fn behind(&self, reference: &Reference) -> Place {
        let kind = match reference.kind {
            DocumentKind::Actions => "action",
            DocumentKind::Tasks => "task",
            DocumentKind::Workflows => "workflow",
        };
        Place {
            pointer: self.pointer.clone(),
            behind: Some(Behind {
                document: format!("{kind} \"{}\"", reference.id),
                pointer: String::new(),
            }),
        }
    }
}

struct Walk<'a> {
    document: &'a Value,
    library: &'a Library,
    problems: &'a Problems,
    preset: Preset,
    /// The places of the documents written into this one.
    inline: BTreeMap<(DocumentKind, &'a str), usize>,
}

impl<'a> Walk<'a> {
    fn new(document: &'a Value, library: &'a Library, problems: &'a Problems) -> Self {
        let mut inline = BTreeMap::new();
        for kind in [DocumentKind::Tasks, DocumentKind::Actions] {
            for (index, written) in elements(document, kind.name()).iter().enumerate() {
                if let Some(id) = written["id"].as_str() {
                    inline.entry((kind, id)).or_insert(index);
                }
            }
        }
        let own = document["timeouts"]["preset"].as_str();
        Walk {
            document,
            library,
            problems,
            preset: own.and_then(Preset::parse).unwrap_or(problems.rules().preset),
            inline,
        }
    }

    fn workflow(&self) {
        let top = Place::written("");
        let allowance = Allowance::written_in(self.document, "at the top of the workflow");
        self.judge(self.document, &top, "timeout", TimeoutLayer::Flow, allowance);
        for layer in [
            TimeoutLayer::Flow,
            TimeoutLayer::Step,
            TimeoutLayer::LlmCall,
            TimeoutLayer::Tool,
        ] {
            let place = top.inside("timeouts");
            self.judge(&self.document["timeouts"], &place, layer.name(), layer, allowance);
        }
        for (index, node) in elements(self.document, "nodes").iter().enumerate() {
            self.node(node, &Place::written(format!("/nodes/{index}")));
        }
        self.unused();
    }

    fn node(&self, node: &Value, place: &Place) {
        let allowance = Allowance::written_in(node, "in the node");
        let layer = if node["workflow_id"].is_string() {
            Some(TimeoutLayer::Flow)
        } else if let Some((task, at)) = self.find(DocumentKind::Tasks, node, place) {
            self.task(task, &at, allowance);
            Some(self.layer_of_task(task))
        } else if let Some((action, at)) = self.find(DocumentKind::Actions, node, place) {
            self.action(action, &at, allowance);
            layer_of_action(action)
        } else {
            // Gates and waits are there to take their time.
            None
        };
        if let Some(layer) = layer {
            self.judge(node, place, "timeout", layer, allowance);
        }
    }

    fn task(&self, task: &Value, place: &Place, outer: Allowance) {
        let steps = elements(task, "steps");
        // A task is as long as its steps together: one that may be longer makes the task longer.
        let allowance = Allowance {
            given: outer.given || steps.iter().any(|step| Allowance::written_in(step, "").given),
            ..outer
        };
        let layer = match self.layer_of_task(task) {
            TimeoutLayer::Flow => TimeoutLayer::Flow,
            TimeoutLayer::Step | TimeoutLayer::LlmCall | TimeoutLayer::Tool => TimeoutLayer::Step,
        };
        self.judge(task, place, "timeout", layer, allowance);
        for (index, step) in steps.iter().enumerate() {
            let place = place.inside("steps").inside(&index.to_string());
            let allowance = Allowance::written_in(step, "in the step").or(outer);
            let Some((action, at)) = self.action_of(step, &place) else {
                continue;
            };
            self.action(action, &at, allowance);
            if let Some(layer) = layer_of_action(action) {
                self.judge(step, &place, "timeout_override", layer, allowance);
            }
        }
    }

    fn action(&self, action: &Value, place: &Place, allowance: Allowance) {
        if let Some(layer) = layer_of_action(action) {
            let place = place.inside("execution");
            let execution = &action["execution"];
            self.judge(execution, &place, "timeout", layer, allowance);
            // All attempts together are what a step is.
            let place = place.inside("retry_policy");
            self.judge(
                &execution["retry_policy"],
                &place,
                "total_timeout",
                TimeoutLayer::Step,
                allowance,
            );
        }
    }

    /// Documents written here that nothing here uses: wrong all the same, as with everything else in them.
    fn unused(&self) {
        let tasks = elements(self.document, "tasks");
        let named = |places: &'a [Value], field: &'static str, version: &'static str| {
            places
                .iter()
                .filter(move |place| place[version].is_null())
                .filter_map(move |place| place[field].as_str())
        };
        let nodes = elements(self.document, "nodes");
        let used_tasks: BTreeSet<&str> = named(nodes, "task_id", "task_version").collect();
        let used_actions: BTreeSet<&str> = tasks
            .iter()
            .flat_map(|task| named(elements(task, "steps"), "action_id", "action_version"))
            .chain(named(nodes, "action_id", "action_version"))
            .collect();
        let is_unused = |used: &BTreeSet<&str>, document: &Value| {
            document["id"].as_str().is_none_or(|id| !used.contains(id))
        };
        for (index, task) in tasks.iter().enumerate() {
            if is_unused(&used_tasks, task) {
                let place = Place::written(format!("/tasks/{index}"));
                self.task(task, &place, Allowance::NO_NODE);
            }
        }
        for (index, action) in elements(self.document, "actions").iter().enumerate() {
            if is_unused(&used_actions, action) {
                let place = Place::written(format!("/actions/{index}"));
                self.action(action, &place, Allowance::NO_STEP);
            }
        }
    }

    /// As `Snapshot::layer_of` has it: the action's of a task of one step, else a step's.
    fn layer_of_task(&self, task: &Value) -> TimeoutLayer {
        let layer = match elements(task, "steps") {
            [step] => self
                .action_of(step, &Place::written(""))
                .and_then(|(action, _)| layer_of_action(action)),
            [] | [_, _, ..] => None,
        };
        layer.unwrap_or(TimeoutLayer::Step)
    }

    fn action_of<'s>(&'s self, step: &'s Value, place: &Place) -> Option<(&'s Value, Place)> {
        match &step["action"] {
            Value::Null => self.find(DocumentKind::Actions, step, place),
            action => Some((action, place.inside("action"))),
        }
    }

    /// The document that `object` names, inline or in the catalogue. One that is not there is reported elsewhere.
    fn find(&self, kind: DocumentKind, object: &Value, place: &Place) -> Option<(&'a Value, Place)> {
        let (field, version) = match kind {
            DocumentKind::Tasks => ("task_id", "task_version"),
            DocumentKind::Actions => ("action_id", "action_version"),
            DocumentKind::Workflows => ("workflow_id", "workflow_version"),
        };
        let id = object[field].as_str()?;
        let version = object[version].as_u64();
        if version.is_none()
            && let Some(index) = self.inline.get(&(kind, id))
        {
            let document = elements(self.document, kind.name()).get(*index)?;
            return Some((document, Place::written(format!("/{}/{index}", kind.name()))));
        }
        let reference = Reference {
            kind,
            id: id.to_string(),
            version,
        };
        let document = self.library.get(&reference)?.as_ref()?;
        let place = place.inside(field).behind(&reference);
        Some((&document.content, place))
    }

    fn judge(&self, object: &Value, place: &Place, name: &str, layer: TimeoutLayer, allowance: Allowance) {
        let Some((field, limit)) = written_limit(object, name) else {
            return;
        };
        let Some(refusal) = self.preset.refuse(layer, limit, allowance.given) else {
            return;
        };
        let place = place.inside(&field);
        let message = refusal.message(allowance.place);
        let message = match &place.behind {
            Some(behind) => format!("in {} at {}: {message}", behind.document, behind.pointer),
            None => message,
        };
        self.problems.report(&place.pointer, refusal.code(), message);
    }
}

fn layer_of_action(action: &Value) -> Option<TimeoutLayer> {
    layer_of_kind(action["kind"].as_str()?)
}

fn elements<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value[field].as_array().map_or(&[], Vec::as_slice)
}

/// A limit under one of its two names, with the name.
fn written_limit(object: &Value, name: &str) -> Option<(String, Limit)> {
    let name_ms = format!("{name}_ms");
    match (object.get(name), object.get(&name_ms)) {
        (Some(Value::Null), None) => Some((name.to_string(), Limit::Never)),
        (None, Some(Value::Null)) => Some((name_ms, Limit::Never)),
        (Some(Value::String(text)), None) => {
            let millis = parse_duration(text).ok()?;
            Some((name.to_string(), Limit::After(millis)))
        }
        (None, Some(value)) => Some((name_ms, Limit::After(value.as_u64()?))),
        (None, None) | (Some(_), _) => None,
    }
}
