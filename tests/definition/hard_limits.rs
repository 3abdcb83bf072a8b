//! Hard limits: a limit that exceeds one is rejected at its field or at the reference, unless `allow_exceed_hard` is set.

use curfew::api::start::{ResolvedWorkflow, StartBody, StartRun};
use curfew::definition::snapshot::{
    CatalogueDocument, DocumentKind, Library, Reference, Resolution, StoredSnapshot, resolve,
};
use curfew::definition::timeouts::{Preset, TimeoutRules};
use serde_json::{Value, json};

use super::documents::{expect, expect_under};
use crate::run::graphs::with;

fn under(preset: Preset) -> TimeoutRules {
    TimeoutRules {
        preset,
        ..TimeoutRules::default()
    }
}

fn action(execution: Value) -> Value {
    json!({"id": "work", "kind": "service_call", "implementation": {"binding": "PEER"}, "execution": execution})
}

fn task(steps: Value) -> Value {
    json!({"id": "two", "steps": steps})
}

/// A library with these documents.
fn library(documents: &[(DocumentKind, Value)]) -> Library {
    let entry = |(kind, content): &(DocumentKind, Value)| {
        let reference = Reference {
            kind: *kind,
            id: content["id"].as_str().unwrap_or_default().into(),
            version: None,
        };
        let content = content.clone();
        (reference, Some(CatalogueDocument { version: 1, content }))
    };
    documents.iter().map(entry).collect()
}

#[track_caller]
fn flow_with(document: Value, library: &Library, expected: &[&str]) {
    let document = with(json!({"id": "w"}), document);
    expect_under(
        &under(Preset::Flow),
        DocumentKind::Workflows,
        document,
        library,
        expected,
    );
}

#[track_caller]
fn flow(document: Value, expected: &[&str]) {
    flow_with(document, &Library::new(), expected);
}

fn node(fields: Value) -> Value {
    json!([with(json!({"id": "a", "action_id": "work"}), fields)])
}

#[test]
fn limits_of_the_workflow_itself() {
    let top = |fields: Value| with(json!({"nodes": [{"id": "a"}]}), fields);
    flow(top(json!({"timeout": "45m"})), &[]);
    flow(
        top(json!({"timeout": "45m1s"})),
        &[
            "/timeout over_hard_limit: 45m1s is over the hard limit of 45m0s for a flow under preset \"flow\"; \
           write less, or \"allow_exceed_hard\": true at the top of the workflow",
        ],
    );
    flow(
        top(json!({"timeout_ms": null})),
        &["/timeout_ms over_hard_limit: no limit (null) is over the hard limit of 45m0s"],
    );
    let all = json!({"timeouts": {"flow_ms": 2_700_001, "step": "15m1s", "llm_call": null, "tool": "10m1s"}});
    flow(
        top(all.clone()),
        &[
            "/timeouts/flow_ms over_hard_limit: 45m0.001s is over the hard limit of 45m0s for a flow",
            "/timeouts/llm_call over_hard_limit: no limit (null) is over the hard limit of 3m0s for a llm_call",
            "/timeouts/step over_hard_limit: 15m1s is over the hard limit of 15m0s for a step",
            "/timeouts/tool over_hard_limit: 10m1s is over the hard limit of 10m0s for a tool",
        ],
    );
    let allowed = json!({"timeout": "2h", "allow_exceed_hard": true});
    flow(top(with(all, allowed)), &[]);
    flow(
        top(json!({"timeouts": {"step": 900_001}})),
        &["/timeouts/step over_hard_limit: 15m0.001s is over the hard limit of 15m0s for a step"],
    );
    flow(
        top(json!({"timeouts": {"step": "15m", "llm_call": "3m", "tool": "10m"}})),
        &[],
    );
}

#[test]
fn the_preset_of_the_workflow_overrides_that_of_the_deployment() {
    let document = |preset: &str| json!({"id": "w", "nodes": [{"id": "a"}], "timeout": "50m", "timeouts": {"preset": preset}});
    let over =
        "/timeout over_hard_limit: 50m0s is over the hard limit of 45m0s for a flow under preset \"flow\"";
    for (deployment, preset, expected) in [
        (Preset::Standard, "flow", [over].as_slice()),
        (Preset::Flow, "service", &[]),
        (Preset::Flow, "standard", &[]),
    ] {
        let kind = DocumentKind::Workflows;
        expect_under(
            &under(deployment),
            kind,
            document(preset),
            &Library::new(),
            expected,
        );
    }
    // An unknown preset is one problem, and the deployment's preset still applies.
    flow(
        with(document("fast"), json!({})),
        &["/timeout over_hard_limit", "/timeouts/preset invalid_choice"],
    );
}

#[test]
fn the_service_preset_has_a_maximum_and_a_minimum() {
    let expect = |fields: Value, expected: &[&str]| {
        let document = with(json!({"id": "w", "nodes": [{"id": "a"}]}), fields);
        let kind = DocumentKind::Workflows;
        expect_under(&under(Preset::Service), kind, document, &Library::new(), expected);
    };
    for good in ["1s", "1h"] {
        expect(json!({ "timeout": good }), &[]);
    }
    expect(
        json!({"timeout": "999ms", "timeouts": {"flow": "1h1ms"}}),
        &[
            "/timeout under_minimum: 999ms is under the minimum of 1s for a flow under preset \"service\"; write at least that",
            "/timeouts/flow over_hard_limit: 1h0m0.001s is over the hard limit of 1h0m0s",
        ],
    );
    // The flag lifts the maximum, not the minimum.
    expect(
        json!({"timeout": "999ms", "allow_exceed_hard": true}),
        &["/timeout under_minimum"],
    );
    // Steps have neither under this preset.
    let nodes = json!([{"id": "a", "action_id": "work", "timeout": "2h"}]);
    expect(
        json!({"nodes": nodes, "actions": [action(json!({"timeout_ms": 5}))]}),
        &[],
    );
}

#[test]
fn limits_of_a_node_depend_on_what_it_runs() {
    let set = json!({"id": "set", "kind": "update_context", "implementation": {"set": {"state.x": 1}}});
    let call = json!({"id": "call", "kind": "workflow_call", "implementation": {"workflow_id": "w"}});
    let work = action(json!({}));
    let two =
        json!({"id": "two", "steps": [{"ref": "x", "action_id": "work"}, {"ref": "y", "action_id": "set"}]});
    let one = json!({"id": "one", "steps": [{"ref": "x", "action_id": "work"}]});
    for (runs, name, most, over) in [
        (json!({"action_id": "work"}), "tool", "10m", "10m1s"),
        (json!({"task_id": "one"}), "tool", "10m", "10m1s"),
        (json!({"action_id": "set"}), "step", "15m", "15m1s"),
        (json!({"task_id": "two"}), "step", "15m", "15m1s"),
        (json!({"workflow_id": "w"}), "flow", "45m", "45m1s"),
        (json!({"action_id": "call"}), "flow", "45m", "45m1s"),
    ] {
        let document = |timeout: Value| {
            let node = with(with(json!({"id": "a"}), runs.clone()), timeout);
            json!({"nodes": [node], "tasks": [one, two], "actions": [set, call, work]})
        };
        flow(document(json!({ "timeout": most })), &[]);
        let line = format!(
            "/nodes/0/timeout over_hard_limit: {over} is over the hard limit of {most}0s for a {name} under"
        );
        flow(document(json!({ "timeout": over })), &[&line]);
        flow(document(json!({"timeout": over, "allow_exceed_hard": true})), &[]);
        flow(
            document(json!({"timeout_ms": null})),
            &["/nodes/0/timeout_ms over_hard_limit: no limit (null)"],
        );
    }
    for waits in [
        json!({"gate": {"timeout": "72h"}}),
        json!({"gate": {}, "timeout": "72h"}),
        json!({"wait": {"sleep": "72h"}, "timeout": null}),
    ] {
        flow(json!({"nodes": [with(json!({"id": "a"}), waits)]}), &[]);
    }
    flow(
        json!({"nodes": node(json!({"timeout": "adaptive"})), "actions": [work]}),
        &[],
    );
}

#[test]
fn limits_of_inline_actions_and_tasks() {
    let slow = action(json!({"timeout": "11m"}));
    let over = "/actions/0/execution/timeout over_hard_limit: 11m0s is over the hard limit of 10m0s for a tool \
                under preset \"flow\"; write less, or \"allow_exceed_hard\": true in the node";
    flow(json!({"nodes": node(json!({})), "actions": [slow]}), &[over]);
    flow(
        json!({"nodes": node(json!({"allow_exceed_hard": true})), "actions": [slow]}),
        &[],
    );
    // The flag of one user does not cover another user.
    let both = json!([
        {"id": "a", "action_id": "work", "allow_exceed_hard": true},
        {"id": "b", "action_id": "work"},
    ]);
    let way = json!([{"from_node_id": "a", "to_node_id": "b"}]);
    flow(
        json!({"nodes": both, "transitions": way, "actions": [slow]}),
        &[over],
    );
    // An unused document is checked too.
    flow(
        json!({"nodes": [{"id": "a"}], "actions": [slow], "tasks": [with(task(json!([{"action": slow}])), json!({"timeout": "16m"}))]}),
        &[
            "/actions/0/execution/timeout over_hard_limit",
            "/tasks/0/steps/0/action/execution/timeout over_hard_limit",
            "/tasks/0/timeout over_hard_limit",
        ],
    );
    let quick = action(json!({}));
    let nodes = |more: Value| json!([with(json!({"id": "a", "task_id": "two"}), more)]);
    // Pointers follow the document, not the order in which steps run.
    let steps = json!([
        {"ref": "x", "ordinal": 2, "action_id": "work", "timeout_override": "11m"},
        {"ref": "y", "ordinal": 1, "action": slow, "allow_exceed_hard": true},
        {"ref": "z", "ordinal": 0, "action": slow},
    ]);
    let document = |more: Value, steps: &Value| {
        let task = with(task(steps.clone()), json!({"timeout": "16m"}));
        json!({"nodes": nodes(more), "tasks": [task], "actions": [quick]})
    };
    flow(
        document(json!({}), &steps),
        &[
            "/tasks/0/steps/0/timeout_override over_hard_limit: 11m0s is over the hard limit of 10m0s for a tool \
             under preset \"flow\"; write less, or \"allow_exceed_hard\": true in the step",
            "/tasks/0/steps/2/action/execution/timeout over_hard_limit",
        ],
    );
    flow(document(json!({"allow_exceed_hard": true}), &steps), &[]);
    flow(
        document(json!({}), &json!([{"action": quick}, {"action_id": "work"}])),
        &["/tasks/0/timeout over_hard_limit: 16m0s is over the hard limit of 15m0s for a step"],
    );
}

#[test]
fn limits_of_catalogue_documents_are_reported_at_their_reference() {
    let slow = (DocumentKind::Actions, action(json!({"timeout_ms": 660_000})));
    let over = |pointer: &str, inner: &str| {
        format!(
            "{pointer} over_hard_limit: in {inner}: 11m0s is over the hard limit of 10m0s for a tool under preset \"flow\""
        )
    };
    let catalogue = library(std::slice::from_ref(&slow));
    flow_with(
        json!({"nodes": node(json!({}))}),
        &catalogue,
        &[&over(
            "/nodes/0/action_id",
            "action \"work\" at /execution/timeout_ms",
        )],
    );
    flow_with(
        json!({"nodes": node(json!({"allow_exceed_hard": true}))}),
        &catalogue,
        &[],
    );
    // An inline task with an action of the catalogue.
    let nodes = json!([{"id": "a", "task_id": "two"}]);
    flow_with(
        json!({"nodes": nodes, "tasks": [task(json!([{"action_id": "work"}]))]}),
        &catalogue,
        &[&over(
            "/tasks/0/steps/0/action_id",
            "action \"work\" at /execution/timeout_ms",
        )],
    );
    // A task of the catalogue, with an inline action and one of the catalogue.
    let quick = action(json!({}));
    let steps =
        json!([{"ref": "x", "action_id": "work"}, {"ref": "y", "action": quick, "timeout_override": "11m"}]);
    let catalogue = library(&[
        slow,
        (DocumentKind::Tasks, with(task(steps), json!({"timeout": "16m"}))),
    ]);
    flow_with(
        json!({ "nodes": nodes }),
        &catalogue,
        &[
            &over("/nodes/0/task_id", "action \"work\" at /execution/timeout_ms"),
            &over("/nodes/0/task_id", "task \"two\" at /steps/1/timeout_override"),
            "/nodes/0/task_id over_hard_limit: in task \"two\" at /timeout: 16m0s is over the hard limit of 15m0s for a step",
        ],
    );
}

#[test]
fn catalogue_tasks_and_actions_follow_the_preset_of_the_deployment() {
    let slow = action(json!({"timeout": "11m"}));
    let check = |kind: DocumentKind, document: &Value, expected: &[&str]| {
        expect_under(
            &under(Preset::Standard),
            kind,
            document.clone(),
            &Library::new(),
            &[],
        );
        expect_under(
            &under(Preset::Flow),
            kind,
            document.clone(),
            &Library::new(),
            expected,
        );
    };
    check(
        DocumentKind::Actions,
        &slow,
        &[
            "/execution/timeout over_hard_limit: 11m0s is over the hard limit of 10m0s for a tool under preset \"flow\"; \
           write less, or \"allow_exceed_hard\": true and a \"timeout_override\" in the step that uses it",
        ],
    );
    let step = json!({"action": slow, "timeout_override": null});
    let long = json!({"timeout": "16m"});
    check(
        DocumentKind::Tasks,
        &with(task(json!([step])), long.clone()),
        &[
            "/steps/0/action/execution/timeout over_hard_limit",
            "/steps/0/timeout_override over_hard_limit: no limit (null)",
            "/timeout over_hard_limit: 16m0s is over the hard limit of 15m0s for a step under preset \"flow\"; \
             write less, or \"allow_exceed_hard\": true in one of its steps",
        ],
    );
    let allowed = with(step, json!({"allow_exceed_hard": true}));
    check(DocumentKind::Tasks, &with(task(json!([allowed])), long), &[]);
    expect(
        DocumentKind::Tasks,
        task(json!([{"action": action(json!({})), "allow_exceed_hard": "yes"}])),
        &["/steps/0/allow_exceed_hard wrong_type"],
    );
}

fn stored(document: Value, preset: Preset) -> StoredSnapshot {
    let document = with(json!({"id": "w", "nodes": [{"id": "a"}]}), document);
    match resolve(&document, 1, &Library::new(), &under(preset)) {
        Resolution::Resolved(stored) => *stored,
        Resolution::Missing(references) => panic!("{references:?}"),
        Resolution::Invalid(problems) => panic!("{problems:?}"),
    }
}

#[test]
fn a_workflow_stored_before_a_preset_change_can_still_be_started() {
    let before = stored(
        json!({"timeout": "20h", "nodes": [{"id": "a", "workflow_id": "w"}]}),
        Preset::Flow,
    );
    assert_eq!(
        (before.preset, before.children[0].preset),
        (Preset::Flow, Preset::Flow)
    );
}

#[test]
fn the_timeout_of_a_start_request_obeys_the_hard_limit() {
    let ask = |body: Value, workflow: Value, preset: Preset| {
        let body = StartBody::read(&body, &under(preset))?;
        StartRun::new(
            "run-1".into(),
            body,
            &ResolvedWorkflow::new(stored(workflow, preset))?,
        )
    };
    let most = json!({"timeout_ms": 2_700_000});
    let over = json!({"timeout": "46m"});
    assert!(ask(most, json!({}), Preset::Flow).is_ok());
    assert!(ask(over.clone(), json!({}), Preset::Standard).is_ok());
    assert!(
        ask(
            over.clone(),
            json!({"timeouts": {"preset": "service"}}),
            Preset::Flow
        )
        .is_ok()
    );
    assert!(ask(over.clone(), json!({"allow_exceed_hard": true}), Preset::Flow).is_ok());
    for (body, workflow, preset, code, message) in [
        (
            &over,
            json!({}),
            Preset::Flow,
            "over_hard_limit",
            "46m0s is over the hard limit of 45m0s",
        ),
        (
            &over,
            json!({"timeouts": {"preset": "flow"}}),
            Preset::Standard,
            "over_hard_limit",
            "46m0s is over",
        ),
        (
            &json!({"timeout_ms": 5}),
            json!({}),
            Preset::Service,
            "under_minimum",
            "5ms is under the minimum of 1s",
        ),
    ] {
        let error = ask(body.clone(), workflow, preset).expect_err(message);
        assert_eq!(
            (error.status, error.code, error.pointer.as_deref()),
            (422, code, Some("/timeout_ms"))
        );
        assert!(error.message.starts_with(message), "{}", error.message);
    }
}

#[test]
fn the_timeout_of_a_start_request_obeys_the_bounds_of_the_deployment() {
    let rules = TimeoutRules {
        max_ms: 60_000,
        ..TimeoutRules::default()
    };
    let error = StartBody::read(&json!({"timeout_ms": 60_001}), &rules).expect_err("over the bound");
    assert_eq!(
        (error.status, error.pointer.as_deref()),
        (422, Some("/timeout_ms"))
    );
    assert!(
        error.message.ends_with("1m0.001s is outside 1ms to 1m0s"),
        "{}",
        error.message
    );
}
