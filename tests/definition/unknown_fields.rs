//! Every object of a document refuses fields that it does not know, and names the nearest known field and all known ones. What
//! the reader knows is compared with the closed objects of the schemas, so that no object is left out.

use std::collections::BTreeSet;

use curfew::api::contract;
use curfew::definition::problem::{Problem, UNKNOWN_FIELD};
use curfew::definition::snapshot::DocumentKind;
use serde_json::{Value, json};

use super::schemas::{KINDS, problems_of_reader, seeds};

/// Objects that no example has.
fn rare(kind: DocumentKind) -> Vec<Value> {
    match kind {
        DocumentKind::Workflows => vec![json!({
            "id": "w",
            "nodes": [
                {"id": "a", "action_id": "x", "compensate": {"action_id": "x", "timeout": "5s"}},
                {"id": "b", "wait": {"signal": "go", "timeout": "1h"}},
                {"id": "c", "gate": {"timeout": "1h"}},
            ],
            "transitions": [
                {"id": "each", "from_node_id": "a", "to_node_id": "b", "foreach": {"collection": "input.list", "item_var": "it"}},
                {"from_node_id": "b", "to_node_id": "c", "synchronization": {"sibling_group": "each",
                    "strategy": {"m_of_n": 1}, "merge": {"target": "state.all"}}},
                {"from_node_id": "c", "to_node_id": "a", "condition": "false", "loop_config": {"max_iterations": 2}},
            ],
            "gate": {"timeout": "1d"},
            "timeouts": {"preset": "flow"},
            "limits": {"tokens_total": 100},
            "trigger": {"event": "made"},
            "compensation": {"timeout": "1m"},
            "notify": [{"on": ["run_failed"], "url": "https://example.com"}],
            "on_end": [{"action_id": "x"}],
            "tasks": rare(DocumentKind::Tasks),
            "actions": rare(DocumentKind::Actions),
        })],
        DocumentKind::Tasks => {
            let conditional = json!({"action_id": "x", "condition": {"if": "true", "then": "skip"}});
            let inline = rare(DocumentKind::Actions).into_iter();
            let mut steps: Vec<Value> = inline.map(|action| json!({"action": action})).collect();
            steps.push(conditional);
            vec![json!({"id": "t", "retry": {"max_attempts": 2}, "steps": steps})]
        }
        DocumentKind::Actions => [
            ("http_request", json!({"url": "https://example.com"})),
            ("service_call", json!({"binding": "PEER"})),
            (
                "llm_call",
                json!({"provider": "openai", "model": "m", "prompt": "p",
                "response_format": {"type": "json_schema", "schema": {}}}),
            ),
            (
                "mcp_tool",
                json!({"server_url": "https://example.com", "tool": "search"}),
            ),
            ("shell", json!({"binding": "RUNNER", "command": "ls"})),
            ("update_context", json!({"set": {"state.x": 1}})),
            ("assert", json!({"condition": "true"})),
            ("emit_event", json!({"name": "made"})),
            ("workflow_call", json!({"workflow_id": "w"})),
        ]
        .into_iter()
        .flat_map(|(kind, implementation)| {
            let plain = json!({"id": "a", "kind": kind, "implementation": implementation});
            let mut policed = plain.clone();
            policed["execution"] = json!({"retry_policy": {"max_attempts": 2}});
            [plain, policed]
        })
        .collect(),
    }
}

/// The pointers of all objects in a document.
fn objects(value: &Value, pointer: String, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let escaped = name.replace('~', "~0").replace('/', "~1");
                objects(field, format!("{pointer}/{escaped}"), found);
            }
            found.push(pointer);
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                objects(element, format!("{pointer}/{index}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The reader's problem about a field that was added to an object of the document, if it has one.
fn refusal(kind: DocumentKind, document: &Value, object: &str, field: &str) -> Option<Problem> {
    let mut changed = document.clone();
    let fields = changed.pointer_mut(object)?.as_object_mut()?;
    fields.insert(field.to_string(), json!("1s"));
    let place = format!("{object}/{field}");
    let problems = problems_of_reader(kind, &changed).into_iter();
    problems
        .filter(|problem| problem.code == UNKNOWN_FIELD)
        .find(|problem| problem.pointer == place)
}

/// The known fields that a message lists.
fn listed(message: &str) -> BTreeSet<String> {
    let (_, list) = message
        .split_once("(known: ")
        .unwrap_or_else(|| panic!("no list in: {message}"));
    let list = list.strip_suffix(')').expect("the list ends the message");
    list.split(", ").map(str::to_string).collect()
}

/// The fields of every closed object of a schema.
fn closed_objects(schema: &Value, found: &mut BTreeSet<BTreeSet<String>>) {
    match schema {
        Value::Object(fields) => {
            if fields.get("additionalProperties") == Some(&json!(false)) {
                let properties = fields.get("properties").and_then(Value::as_object);
                found.insert(
                    properties
                        .into_iter()
                        .flatten()
                        .map(|(name, _)| name.clone())
                        .collect(),
                );
            }
            fields.values().for_each(|field| closed_objects(field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| closed_objects(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_object_names_the_nearest_field_and_lists_the_known_ones() {
    for kind in KINDS {
        let mut read = BTreeSet::new();
        for document in seeds(kind).into_iter().chain(rare(kind)) {
            let mut places = Vec::new();
            objects(&document, String::new(), &mut places);
            for object in places {
                // An object without a refusal has names that its author chooses: a mapping, headers, a schema.
                let Some(unknown) = refusal(kind, &document, &object, "qqqqqqqqqqqq") else {
                    continue;
                };
                let known = listed(&unknown.message);
                assert!(!unknown.message.contains("did you mean"), "{unknown:?}");
                // One letter too many in the longest name.
                let meant = known.iter().max_by_key(|name| name.len()).expect("a known field");
                let misspelt = format!("{meant}q");
                let problem = refusal(kind, &document, &object, &misspelt)
                    .unwrap_or_else(|| panic!("{misspelt} is accepted at \"{object}\" of {document}"));
                let suggestion = format!("did you mean \"{meant}\"?");
                assert!(problem.message.contains(&suggestion), "{problem:?}");
                assert_eq!(listed(&problem.message), known, "{problem:?}");
                read.insert(known);
            }
        }
        let mut schema: Value = serde_json::from_str(contract::schema(kind)).expect("a schema is JSON");
        // The room of JSON Schemas reads it, with messages of its own.
        schema["$defs"]["schema"].take();
        let mut closed = BTreeSet::new();
        closed_objects(&schema, &mut closed);
        let unread: Vec<_> = closed.difference(&read).collect();
        let unwritten: Vec<_> = read.difference(&closed).collect();
        assert!(
            unread.is_empty() && unwritten.is_empty(),
            "{}: only in the schema {unread:?}, only in the reader {unwritten:?}",
            kind.name()
        );
    }
}
