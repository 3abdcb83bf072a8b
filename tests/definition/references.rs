//! How references to tasks and actions are resolved: inline or in the catalogue, with or without a version.

use curfew::definition::snapshot::{
    CatalogueDocument, CheckError, DocumentKind, Library, Reference, Resolution, StoredSnapshot, check,
    resolve,
};
use curfew::definition::timeouts::TimeoutRules;
use serde_json::{Value, json};

use super::documents::{expect, problems_of};

fn action(binding: &str) -> Value {
    json!({"id": "work", "kind": "service_call", "implementation": {"binding": binding}})
}

fn reference(kind: DocumentKind, id: &str, version: Option<u64>) -> Reference {
    Reference {
        kind,
        id: id.into(),
        version,
    }
}

fn stored(version: u64, content: Value) -> Option<CatalogueDocument> {
    Some(CatalogueDocument { version, content })
}

fn resolved(document: &Value, library: &Library) -> StoredSnapshot {
    match resolve(document, 7, library, &TimeoutRules::default()) {
        Resolution::Resolved(stored) => *stored,
        Resolution::Missing(references) => panic!("missing {references:?}"),
        Resolution::Invalid(problems) => panic!("{problems:?}"),
    }
}

fn binding(stored: &StoredSnapshot, task: usize) -> &Value {
    &stored.tasks[task]["steps"][0]["action"]["implementation"]["binding"]
}

#[test]
fn an_inline_document_overrides_the_catalogue_unless_a_version_is_named() {
    let mut document = json!({
        "id": "flow",
        "nodes": [{"id": "a", "action_id": "work"}, {"id": "b", "action_id": "work", "action_version": 2},
                  {"id": "c", "action_id": "work"}, {"id": "d"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}, {"from_node_id": "b", "to_node_id": "c"},
                        {"from_node_id": "c", "to_node_id": "d"}],
        "actions": [action("INLINE")],
    });
    let library = Library::from([
        (
            reference(DocumentKind::Actions, "work", None),
            stored(3, action("NEWEST")),
        ),
        (
            reference(DocumentKind::Actions, "work", Some(2)),
            stored(2, action("SECOND")),
        ),
    ]);
    let stored = resolved(&document, &library);
    assert_eq!(stored.version, 7);
    // Nodes with the same reference share one task.
    assert_eq!(stored.node_tasks, [Some(0), Some(1), Some(0), None]);
    assert_eq!(
        (binding(&stored, 0), binding(&stored, 1)),
        (&json!("INLINE"), &json!("SECOND"))
    );
    assert_eq!(
        stored.workflow["actions"],
        Value::Null,
        "the snapshot holds each document once"
    );
    document["actions"] = Value::Null;
    let stored = resolved(&document, &library);
    assert_eq!(binding(&stored, 0), &json!("NEWEST"));
}

#[test]
fn actions_of_a_catalogue_task_are_resolved() {
    let document = json!({"id": "flow", "nodes": [{"id": "a", "task_id": "task", "task_version": 3}]});
    let task = reference(DocumentKind::Tasks, "task", Some(3));
    let Resolution::Missing(missing) = resolve(&document, 1, &Library::new(), &TimeoutRules::default())
    else {
        panic!("the catalogue was never asked");
    };
    assert_eq!(missing, std::slice::from_ref(&task));
    let steps = json!({"id": "task", "steps": [{"ref": "s", "action_id": "work", "action_version": 4}]});
    let mut library = Library::from([(task, stored(3, steps))]);
    let work = reference(DocumentKind::Actions, "work", Some(4));
    let Resolution::Missing(missing) = resolve(&document, 1, &library, &TimeoutRules::default()) else {
        panic!("the action is still to be looked up");
    };
    assert_eq!(missing, std::slice::from_ref(&work));
    library.insert(work, stored(4, action("FOURTH")));
    let stored = resolved(&document, &library);
    assert_eq!(binding(&stored, 0), &json!("FOURTH"));
    assert_eq!(stored.tasks[0]["steps"][0]["action_id"], Value::Null);
}

#[test]
fn a_missing_document_is_reported_at_its_reference() {
    let document = json!({
        "id": "flow",
        "nodes": [{"id": "a", "action_id": "work", "action_version": 9}, {"id": "b", "task_id": "task"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}],
        "tasks": [{"id": "task", "steps": [{"ref": "s", "action_id": "gone"}]}],
    });
    let library = Library::from([
        (reference(DocumentKind::Actions, "work", Some(9)), None),
        (reference(DocumentKind::Actions, "work", None), None),
        (reference(DocumentKind::Actions, "gone", None), None),
    ]);
    let problems = problems_of(DocumentKind::Workflows, &document, &library);
    let found: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "/nodes/0/action_id: action \"work\" does not exist; store it first or write it into this document",
            "/tasks/0/steps/0/action_id: action \"gone\" does not exist; store it first or write it into this document",
        ]
    );
}

/// The newest version is looked up before a missing version is reported.
#[test]
fn a_missing_version_is_distinguished_from_a_missing_document() {
    let document = json!({
        "id": "flow",
        "nodes": [{"id": "a", "action_id": "work", "action_version": 9}, {"id": "b", "workflow_id": "child", "workflow_version": 4}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}],
    });
    let versions = [
        reference(DocumentKind::Actions, "work", Some(9)),
        reference(DocumentKind::Workflows, "child", Some(4)),
    ];
    let mut library: Library = versions.into_iter().map(|reference| (reference, None)).collect();
    let rules = TimeoutRules::default();
    let Err(CheckError::Missing(missing)) = check(DocumentKind::Workflows, &document, &library, &rules)
    else {
        panic!("the newest were not looked up yet");
    };
    let newest = [
        reference(DocumentKind::Actions, "work", None),
        reference(DocumentKind::Workflows, "child", None),
    ];
    assert_eq!(missing, newest);
    let found = |version, content| Some(CatalogueDocument { version, content });
    let action =
        json!({"id": "work", "kind": "http_request", "implementation": {"url": "https://example.com"}});
    let [work, child] = newest;
    library.insert(work, found(3, action));
    library.insert(child, found(2, json!({"id": "child", "nodes": [{"id": "c"}]})));
    let problems = problems_of(DocumentKind::Workflows, &document, &library);
    let found: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "/nodes/0/action_id: version 9 of action \"work\" does not exist; the newest is 3; store it first or write it into this document",
            "/nodes/1/workflow_id: version 4 of workflow \"child\" does not exist; the newest is 2; store it first",
        ]
    );
}

#[test]
fn all_missing_references_are_returned_at_once() {
    let document = json!({
        "id": "flow",
        "nodes": [{"id": "a", "action_id": "x"}, {"id": "b", "task_id": "y"}, {"id": "c", "action_id": "x"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}, {"from_node_id": "b", "to_node_id": "c"}],
    });
    let Err(CheckError::Missing(missing)) = check(
        DocumentKind::Workflows,
        &document,
        &Library::new(),
        &TimeoutRules::default(),
    ) else {
        panic!("nothing was looked up yet");
    };
    let expected = [
        reference(DocumentKind::Actions, "x", None),
        reference(DocumentKind::Tasks, "y", None),
    ];
    assert_eq!(missing, expected);
}

#[test]
fn unused_inline_documents_are_checked_too() {
    expect(
        DocumentKind::Workflows,
        json!({
            "id": "flow",
            "nodes": [{"id": "a"}],
            "tasks": [{"id": "empty", "steps": []}],
            "actions": [action("ONE"), action("TWO"), {"id": "odd", "kind": "magic", "implementation": {}}],
        }),
        &[
            "/actions/1/id duplicate_id: another document of this kind has the same id",
            "/actions/2/kind invalid_choice: \"magic\" is none of http_request, service_call",
            "/tasks/0/steps missing_field: a task needs at least one step",
        ],
    );
    expect(
        DocumentKind::Workflows,
        json!({"id": "flow", "nodes": [{"id": "a"}], "tasks": {}}),
        &["/tasks wrong_type: expected an array of documents"],
    );
}

#[test]
fn a_node_and_a_step_have_exactly_one_form() {
    let node = json!({"id": "a", "task_id": "x", "action_id": "x"});
    expect(
        DocumentKind::Workflows,
        json!({"id": "flow", "nodes": [node]}),
        &["/nodes/0/action_id both_forms"],
    );
    let step = json!({"ref": "s", "action_id": "work", "action": action("A")});
    expect(
        DocumentKind::Workflows,
        json!({
            "id": "flow",
            "nodes": [{"id": "a"}],
            "tasks": [{"id": "task", "steps": [step, {"ref": "s"}, {"ref": "r"}]}],
            "actions": [action("A")],
        }),
        &[
            "/tasks/0/steps/0/action both_forms",
            "/tasks/0/steps/1/action_id missing_field",
            "/tasks/0/steps/2/action_id missing_field",
        ],
    );
    let step = json!({"ref": "s", "action": action("A")});
    expect(
        DocumentKind::Tasks,
        json!({"id": "task", "steps": [step, step], "retry": {"max_attempts": 0, "backoff": "odd"}}),
        &[
            "/retry/backoff invalid_choice",
            "/retry/max_attempts out_of_range",
            "/steps/1/ref duplicate_id",
        ],
    );
}

#[test]
fn a_task_has_at_most_a_hundred_steps() {
    let steps = |count: usize| -> Vec<Value> {
        (0..count)
            .map(|index| json!({"ref": format!("s{index}"), "action": action("A")}))
            .collect()
    };
    expect(
        DocumentKind::Tasks,
        json!({"id": "task", "steps": steps(100)}),
        &[],
    );
    expect(
        DocumentKind::Tasks,
        json!({"id": "task", "steps": steps(101)}),
        &["/steps limit_exceeded: 101 steps; the limit is 100"],
    );
}

#[test]
fn an_unknown_workflow_is_reported_at_the_field_that_names_it() {
    let library = Library::from([(reference(DocumentKind::Workflows, "gone", None), None)]);
    let call = json!({"workflow_id": "gone"});
    let action = json!({"id": "set", "kind": "update_context", "implementation": {"set": {"x": 1}}});
    for (document, pointer) in [
        (
            json!({"nodes": [{"id": "a"}], "on_end": [{"action_id": "set"}, call]}),
            "/on_end/1/workflow_id",
        ),
        (
            json!({"nodes": [{"id": "a", "action_id": "set", "compensate": call}]}),
            "/nodes/0/compensate/workflow_id",
        ),
        (
            json!({"nodes": [{"id": "a", "workflow_id": "gone"}]}),
            "/nodes/0/workflow_id",
        ),
    ] {
        let mut document = document;
        document["id"] = json!("w");
        document["actions"] = json!([action]);
        let problems = problems_of(DocumentKind::Workflows, &document, &library);
        let found: Vec<(&str, &str)> = problems.iter().map(|it| (it.pointer.as_str(), it.code)).collect();
        assert_eq!(found, [(pointer, "unknown_reference")]);
    }
}
