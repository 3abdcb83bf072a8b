//! The names in a simulation: a mock, a decision or a signal for something that the workflow does not have would never be used.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::api::error::Error;
use crate::base::suggest::closest;
use crate::definition::snapshot::StoredSnapshot;
use crate::simulate::body::SimulateBody;
use crate::simulate::mocked_world::TIMEOUT_GATE;

/// How many known names a message shows.
const SHOWN: usize = 20;

/// Of the workflow and of those that it calls.
#[derive(Default)]
struct Names {
    nodes: BTreeSet<String>,
    actions: BTreeSet<String>,
    steps: BTreeSet<String>,
    /// Only the run itself gets signals.
    signals: BTreeSet<String>,
}

/// The first name that nothing has.
pub fn check(body: &SimulateBody, workflow: &StoredSnapshot) -> Result<(), Error> {
    if body.mocks.is_empty() && body.people.is_empty() && body.signals.is_empty() {
        return Ok(());
    }
    let mut names = Names::default();
    names.add(workflow);
    workflow.children.iter().for_each(|child| names.add(child));
    names.signals = strings(&workflow.workflow["nodes"], "/wait/signal").collect();
    for (number, mock) in body.mocks.iter().enumerate() {
        for (field, name, known) in [
            ("node", &mock.node, &names.nodes),
            ("action", &mock.action, &names.actions),
            ("step", &mock.step, &names.steps),
        ] {
            if let Some(name) = name {
                find(known, name, field, &format!("/mocks/{number}/{field}"))?;
            }
        }
    }
    let mut gates = names.nodes;
    gates.insert(TIMEOUT_GATE.to_string());
    for (number, person) in body.people.iter().enumerate() {
        find(&gates, &person.gate, "gate", &format!("/people/{number}/gate"))?;
    }
    for (number, signal) in body.signals.iter().enumerate() {
        let pointer = format!("/signals/{number}/name");
        find(&names.signals, &signal.name, "signal", &pointer)?;
    }
    Ok(())
}

impl Names {
    fn add(&mut self, stored: &StoredSnapshot) {
        let nodes = &stored.workflow["nodes"];
        for node in nodes.as_array().into_iter().flatten() {
            let Some(id) = node["id"].as_str() else { continue };
            self.nodes.insert(id.to_string());
            if !node["compensate"].is_null() {
                self.nodes.insert(format!("{id}~compensate"));
            }
        }
        let handlers = stored.workflow["on_end"].as_array().map_or(0, Vec::len);
        self.nodes
            .extend((1..=handlers).map(|number| format!("on_end~{number}")));
        for task in &stored.tasks {
            self.steps.extend(strings(&task["steps"], "/ref"));
            self.actions.extend(strings(&task["steps"], "/action/id"));
        }
    }
}

fn strings(list: &Value, pointer: &str) -> impl Iterator<Item = String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(move |item| item.pointer(pointer)?.as_str().map(str::to_string))
}

fn find(known: &BTreeSet<String>, name: &str, what: &str, pointer: &str) -> Result<(), Error> {
    if known.contains(name) {
        return Ok(());
    }
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    let nearest =
        closest(&names, name).map_or_else(String::new, |nearest| format!("; did you mean \"{nearest}\"?"));
    let shown = names[..names.len().min(SHOWN)].join(", ");
    let listed = match (names.len(), names.len().saturating_sub(SHOWN)) {
        (0, _) => "it has none".to_string(),
        (_, 0) => format!("known: {shown}"),
        (_, more) => format!("known: {shown}, and {more} more"),
    };
    let name: String = name.chars().take(100).collect();
    let message = format!("the workflow has no {what} \"{name}\"{nearest} ({listed})");
    Err(Error::invalid_request(pointer, message))
}
