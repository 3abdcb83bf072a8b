//! Versions of the first run's workflow that operators store while it runs: other limits, more nodes, fewer nodes.

use std::rc::Rc;

use curfew::protocol::start::ResolvedVersion;
use curfew::simulate::World;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::environment::Environment;
use super::simulation::{FIRST_RUN, Simulation};
use crate::run::driver::{callback_key, try_store};

impl Simulation {
    /// The next version, for some of the requests to the first run. `None`: the run keeps its version.
    pub(super) fn some_version(&mut self, run_id: &str) -> Option<ResolvedVersion> {
        if run_id != FIRST_RUN || !self.environment.chance(60) {
            return None;
        }
        let mut document = self.document.clone();
        vary(&mut document, &self.environment);
        // Without one of its nodes a document may be invalid: such a version cannot be stored.
        let mut stored = try_store(&document).ok()?;
        self.version += 1;
        stored.version = self.version;
        self.document = document;
        self.versions.insert(self.version, json!(stored));
        self.environment
            .note(run_id, &format!("version {}: {}", self.version, self.document));
        let stored = to_raw_value(&stored).expect("a snapshot is JSON");
        Some(ResolvedVersion {
            stored: Rc::from(stored),
            callback_secret: Some(callback_key().secret_of(run_id)),
        })
    }
}

fn vary(document: &mut Value, environment: &Environment) {
    let first = document["nodes"][0]["id"].clone();
    if document["initial_node_id"].is_null() {
        document["initial_node_id"] = first;
    }
    match environment.below(8) {
        0 => document["timeout_ms"] = environment.pick(&[json!(9_000), json!(90_000), Value::Null]),
        1 => document["limits"] = json!({"tokens_total": 300, "tokens_active": 50, "loop_iterations": 30}),
        2 => add_node(document),
        _remove => remove_node(document, environment),
    }
}

/// In front of all others, so that every other node and every transition without an id has another number.
fn add_node(document: &mut Value) {
    let initial = document["initial_node_id"].clone();
    let nodes = document["nodes"].as_array_mut().expect("a list");
    let id = format!("more{}", nodes.len());
    if nodes.iter().any(|node| node["id"] == id.as_str()) {
        return;
    }
    nodes.insert(0, json!({"id": id}));
    let transition = json!({"from_node_id": id, "to_node_id": initial});
    let transitions = document["transitions"].as_array_mut().expect("a list");
    transitions.insert(0, transition);
}

fn remove_node(document: &mut Value, environment: &Environment) {
    let initial = document["initial_node_id"].clone();
    let nodes = document["nodes"].as_array_mut().expect("a list");
    let removed = environment.below(nodes.len() as u64) as usize;
    let id = nodes[removed]["id"].clone();
    if id == initial {
        return;
    }
    nodes.remove(removed);
    let transitions = document["transitions"].as_array_mut().expect("a list");
    transitions.retain(|transition| transition["from_node_id"] != id && transition["to_node_id"] != id);
}
