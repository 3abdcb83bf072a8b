//! Checks every limit in a document against the hard limits of its preset.
//!
//! It reads the JSON and not the parsed types, because a problem needs the pointer of its value, and parsing reorders and
//! drops steps. Values that are not limits are reported by the readers. `allow_exceed_hard` of a node or step also covers
//! what it runs, so documents are checked where they are used.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::base::ordered::set_of;
use crate::base::time::{Limit, parse_duration};
use crate::definition::action::layer_of_kind;
use crate::definition::problem::{Problems, pointer_to};
use crate::definition::snapshot::{DocumentKind, Library, Reference};
use crate::definition::timeouts::{Preset, TimeoutLayer};

pub(super) fn check_workflow(document: &Value, library: &Library, problems: &Problems) {
    Checker::new(document, library, problems).workflow();
}

/// Checks a task of the catalogue: the preset is the deployment's, and only its steps can have `allow_exceed_hard`.
pub(super) fn check_task(document: &Value, library: &Library, problems: &Problems) {
    Checker::new(&Value::Null, library, problems).task(
        document,
        &Place::new(""),
        Allowance::TASK_WITHOUT_NODE,
    );
}

pub(super) fn check_action(document: &Value, problems: &Problems) {
    let library = Library::new();
    Checker::new(&Value::Null, &library, problems).action(
        document,
        &Place::new(""),
        Allowance::ACTION_WITHOUT_STEP,
    );
}

/// Whether a hard limit may be exceeded, and where `allow_exceed_hard` belongs.
#[derive(Clone, Copy)]
struct Allowance {
    may_exceed: bool,
    place: &'static str,
}

impl Allowance {
    const TASK_WITHOUT_NODE: Allowance = Allowance {
        may_exceed: false,
        place: "in one of its steps",
    };
    const ACTION_WITHOUT_STEP: Allowance = Allowance {
        may_exceed: false,
        place: "and a \"timeout_override\" in the step that uses it",
    };

    fn of(object: &Value, place: &'static str) -> Allowance {
        Allowance {
            may_exceed: object["allow_exceed_hard"] == Value::Bool(true),
            place,
        }
    }

    fn or(self, outer: Allowance) -> Allowance {
        Allowance {
            may_exceed: self.may_exceed || outer.may_exceed,
            ..self
        }
    }
}

/// Where a value is: in the checked document, or in a document of the catalogue that it references.
#[derive(Clone)]
struct Place {
    pointer: String,
    referenced: Option<ReferencedPlace>,
}

#[derive(Clone)]
struct ReferencedPlace {
    document: String,
    pointer: String,
}

impl Place {
    fn new(pointer: impl Into<String>) -> Place {
        Place {
            pointer: pointer.into(),
            referenced: None,
        }
    }

    fn child(&self, key: &str) -> Place {
        let mut place = self.clone();
        match &mut place.referenced {
            Some(referenced) => referenced.pointer = pointer_to(&referenced.pointer, key),
            None => place.pointer = pointer_to(&place.pointer, key),
        }
        place
    }

    /// A document of the catalogue that is referenced here.
    fn referenced(&self, reference: &Reference) -> Place {
        let kind = reference.kind.singular();
        Place {
            pointer: self.pointer.clone(),
            referenced: Some(ReferencedPlace {
                document: format!("{kind} \"{}\"", reference.id),
                pointer: String::new(),
            }),
        }
    }
}

struct Checker<'a> {
    document: &'a Value,
    library: &'a Library,
    problems: &'a Problems,
    preset: Preset,
    /// The indices of the inline documents.
    inline: BTreeMap<(DocumentKind, &'a str), usize>,
}

impl<'a> Checker<'a> {
    fn new(document: &'a Value, library: &'a Library, problems: &'a Problems) -> Self {
        let mut inline = BTreeMap::new();
        for kind in [DocumentKind::Tasks, DocumentKind::Actions] {
            for (index, inline_document) in elements(document, kind.name()).iter().enumerate() {
                if let Some(id) = inline_document["id"].as_str() {
                    inline.entry((kind, id)).or_insert(index);
                }
            }
        }
        let own = document["timeouts"]["preset"].as_str();
        Checker {
            document,
            library,
            problems,
            preset: own.and_then(Preset::parse).unwrap_or(problems.rules().preset),
            inline,
        }
    }

    fn workflow(&self) {
        let top = Place::new("");
        let allowance = Allowance::of(self.document, "at the top of the workflow");
        self.check(self.document, &top, "timeout", TimeoutLayer::Flow, allowance);
        for layer in [
            TimeoutLayer::Flow,
            TimeoutLayer::Step,
            TimeoutLayer::LlmCall,
            TimeoutLayer::Tool,
        ] {
            let place = top.child("timeouts");
            self.check(&self.document["timeouts"], &place, layer.name(), layer, allowance);
        }
        for (index, node) in elements(self.document, "nodes").iter().enumerate() {
            let place = Place::new(format!("/nodes/{index}"));
            self.node(node, &place);
            self.node(&node["compensate"], &place.child("compensate"));
        }
        for (index, handler) in elements(self.document, "on_end").iter().enumerate() {
            self.node(handler, &Place::new(format!("/on_end/{index}")));
        }
        self.check_unused();
    }

    fn node(&self, node: &Value, place: &Place) {
        let allowance = Allowance::of(node, "in the node");
        let layer = if node["workflow_id"].is_string() {
            Some(TimeoutLayer::Flow)
        } else if let Some((task, at)) = self.find(DocumentKind::Tasks, node, place) {
            self.task(task, &at, allowance);
            Some(self.layer_of_task(task))
        } else if let Some((action, at)) = self.find(DocumentKind::Actions, node, place) {
            self.action(action, &at, allowance);
            layer_of_action(action)
        } else {
            // Gates and waits have no hard limits.
            None
        };
        if let Some(layer) = layer {
            self.check(node, place, "timeout", layer, allowance);
        }
    }

    fn task(&self, task: &Value, place: &Place, outer: Allowance) {
        let steps = elements(task, "steps");
        // A task takes as long as its steps together, so one step that may exceed lets the task exceed.
        let allowance = Allowance {
            may_exceed: outer.may_exceed || steps.iter().any(|step| Allowance::of(step, "").may_exceed),
            ..outer
        };
        let layer = match self.layer_of_task(task) {
            TimeoutLayer::Flow => TimeoutLayer::Flow,
            TimeoutLayer::Step | TimeoutLayer::LlmCall | TimeoutLayer::Tool => TimeoutLayer::Step,
        };
        self.check(task, place, "timeout", layer, allowance);
        for (index, step) in steps.iter().enumerate() {
            let place = place.child("steps").child(&index.to_string());
            let allowance = Allowance::of(step, "in the step").or(outer);
            let Some((action, at)) = self.action_of(step, &place) else {
                continue;
            };
            self.action(action, &at, allowance);
            if let Some(layer) = layer_of_action(action) {
                self.check(step, &place, "timeout_override", layer, allowance);
            }
        }
    }

    fn action(&self, action: &Value, place: &Place, allowance: Allowance) {
        if let Some(layer) = layer_of_action(action) {
            let place = place.child("execution");
            let execution = &action["execution"];
            self.check(execution, &place, "timeout", layer, allowance);
            // All attempts together are bounded like a step.
            let place = place.child("retry_policy");
            self.check(
                &execution["retry_policy"],
                &place,
                "total_timeout",
                TimeoutLayer::Step,
                allowance,
            );
        }
    }

    /// Checks inline documents that are not used, like everything else in them.
    fn check_unused(&self) {
        let tasks = elements(self.document, "tasks");
        let named = |places: &'a [Value], field: &'static str, version: &'static str| {
            places
                .iter()
                .filter(move |place| place[version].is_null())
                .filter_map(move |place| place[field].as_str())
        };
        let nodes = elements(self.document, "nodes");
        let used_tasks: BTreeSet<&str> = set_of(named(nodes, "task_id", "task_version"));
        let used_actions: BTreeSet<&str> = set_of(
            tasks
                .iter()
                .flat_map(|task| named(elements(task, "steps"), "action_id", "action_version"))
                .chain(named(nodes, "action_id", "action_version")),
        );
        let is_unused = |used: &BTreeSet<&str>, document: &Value| {
            document["id"].as_str().is_none_or(|id| !used.contains(id))
        };
        for (index, task) in tasks.iter().enumerate() {
            if is_unused(&used_tasks, task) {
                let place = Place::new(format!("/tasks/{index}"));
                self.task(task, &place, Allowance::TASK_WITHOUT_NODE);
            }
        }
        for (index, action) in elements(self.document, "actions").iter().enumerate() {
            if is_unused(&used_actions, action) {
                let place = Place::new(format!("/actions/{index}"));
                self.action(action, &place, Allowance::ACTION_WITHOUT_STEP);
            }
        }
    }

    /// As in `Snapshot::layer_of`: the layer of the only action, or else a step.
    fn layer_of_task(&self, task: &Value) -> TimeoutLayer {
        let layer = match elements(task, "steps") {
            [step] => self
                .action_of(step, &Place::new(""))
                .and_then(|(action, _)| layer_of_action(action)),
            [] | [_, _, ..] => None,
        };
        layer.unwrap_or(TimeoutLayer::Step)
    }

    fn action_of<'s>(&'s self, step: &'s Value, place: &Place) -> Option<(&'s Value, Place)> {
        match &step["action"] {
            Value::Null => self.find(DocumentKind::Actions, step, place),
            action => Some((action, place.child("action"))),
        }
    }

    /// The document that `object` references, inline or in the catalogue. A missing one is reported elsewhere.
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
            return Some((document, Place::new(format!("/{}/{index}", kind.name()))));
        }
        let reference = Reference {
            kind,
            id: id.to_string(),
            version,
        };
        let document = self.library.get(&reference)?.as_ref()?;
        let place = place.child(field).referenced(&reference);
        Some((&document.content, place))
    }

    fn check(&self, object: &Value, place: &Place, name: &str, layer: TimeoutLayer, allowance: Allowance) {
        // Without a limit there is nothing to check.
        let Some((field, limit)) = limit_in(object, name) else {
            return;
        };
        let Some(rejection) = self.preset.reject(layer, limit, allowance.may_exceed) else {
            return;
        };
        let place = place.child(&field);
        let message = rejection.message(allowance.place);
        let message = match &place.referenced {
            Some(referenced) => format!("in {} at {}: {message}", referenced.document, referenced.pointer),
            None => message,
        };
        self.problems.report(&place.pointer, rejection.code(), message);
    }
}

fn layer_of_action(action: &Value) -> Option<TimeoutLayer> {
    layer_of_kind(action["kind"].as_str()?)
}

fn elements<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value[field].as_array().map_or(&[], Vec::as_slice)
}

/// A limit and the field that contains it, which is `name` or `<name>_ms`.
fn limit_in(object: &Value, name: &str) -> Option<(String, Limit)> {
    let name_ms = format!("{name}_ms");
    match (object.get(name), object.get(&name_ms)) {
        (Some(Value::Null), None) => Some((name.to_string(), Limit::Never)),
        (None, Some(Value::Null)) => Some((name_ms, Limit::Never)),
        (Some(Value::String(text)), None) => {
            let millis = parse_duration(text).ok()?;
            Some((name.to_string(), Limit::After(millis)))
        }
        (None, Some(value)) => Some((name_ms, Limit::After(value.as_u64()?))),
        // Only `timeouts` takes a bare number; elsewhere the reader has reported it.
        (Some(value @ Value::Number(_)), None) => Some((name.to_string(), Limit::After(value.as_u64()?))),
        (None, None) | (Some(_), _) => None,
    }
}
