//! Problems of fan-outs, joins, gates, waits and workflow calls.

use curfew::definition::snapshot::{CheckError, DocumentKind, Library, Reference, check};
use curfew::definition::timeouts::TimeoutRules;
use serde_json::{Value, json};

use super::documents::workflow;
use crate::run::graphs::{fan, with};

/// Without a join, because an invalid fan-out would be reported there too.
fn spawning(spawn: Value) -> Value {
    let mut document = fan(spawn, json!({}));
    document["transitions"][1]["synchronization"] = json!(null);
    document
}

fn node(work: Value) -> Value {
    json!({"nodes": [with(json!({"id": "a"}), work)]})
}

#[test]
fn a_join_names_a_group_that_is_spawned() {
    let join = |join: Value| fan(json!({"spawn_count": 3}), join);
    workflow(join(json!({})), &[]);
    workflow(
        join(json!({"sibling_group": "nobody"})),
        &["/transitions/1/synchronization/sibling_group unknown_group"],
    );
    let mut document = join(json!({}));
    document["transitions"][1]["synchronization"] = json!({});
    workflow(
        document,
        &["/transitions/1/synchronization/sibling_group missing_field"],
    );
}

#[test]
fn a_quorum_is_at_most_the_size_of_its_group() {
    let quorum = |spawn: Value, m: Value| fan(spawn, json!({"strategy": {"m_of_n": m}}));
    workflow(quorum(json!({"spawn_count": 3}), json!(3)), &[]);
    workflow(
        quorum(json!({"spawn_count": 3}), json!(4)),
        &["/transitions/1/synchronization/strategy/m_of_n quorum_too_large"],
    );
    // The number of branches is not known.
    workflow(
        quorum(json!({"foreach": {"collection": "input.list"}}), json!(4)),
        &[],
    );
    workflow(
        quorum(json!({"spawn_count": 3}), json!(0)),
        &["/transitions/1/synchronization/strategy/m_of_n out_of_range"],
    );
    workflow(
        fan(json!({"spawn_count": 3}), json!({"strategy": {}})),
        &["/transitions/1/synchronization/strategy/m_of_n missing_field"],
    );
    workflow(
        fan(json!({"spawn_count": 3}), json!({"strategy": "most"})),
        &["/transitions/1/synchronization/strategy invalid_choice"],
    );
}

#[test]
fn a_merge_writes_to_state_output_or_the_branch() {
    let merge = |merge: Value| fan(json!({"spawn_count": 2}), json!({"merge": merge}));
    for target in ["state.a", "output.b.c", "_branch.output", "_branch.output.d"] {
        workflow(merge(json!({"target": target})), &[]);
    }
    for target in ["input.x", "run.id", "all", "state", "_branch", "_branch.item", ""] {
        workflow(
            merge(json!({"target": target})),
            &["/transitions/1/synchronization/merge/target invalid_target"],
        );
    }
    workflow(
        merge(json!({})),
        &["/transitions/1/synchronization/merge/target missing_field"],
    );
    workflow(
        merge(json!({"target": "state.a", "strategy": "sum", "source": "state.x"})),
        &[
            "/transitions/1/synchronization/merge/source unknown_name",
            "/transitions/1/synchronization/merge/strategy invalid_choice",
        ],
    );
    let late = json!({"merge": {"target": "_branch.output"}, "on_early_complete": "allow_late_merge"});
    workflow(
        fan(json!({"spawn_count": 2}), late),
        &["/transitions/1/synchronization/merge/target invalid_target"],
    );
}

#[test]
fn transitions_of_one_join_are_equal() {
    let mut document = fan(json!({"spawn_count": 2}), json!({}));
    let other = json!({"from_node_id": "a", "to_node_id": "z", "priority": 1,
        "synchronization": {"sibling_group": "out", "strategy": "any"}});
    document["transitions"]
        .as_array_mut()
        .expect("transitions")
        .push(other);
    workflow(document, &["/transitions/2/synchronization different_joins"]);
}

#[test]
fn a_fan_out_is_a_number_or_a_list() {
    workflow(spawning(json!({"spawn_count": 1_000})), &[]);
    for (spawn, problem) in [
        (
            json!({"spawn_count": 0}),
            "/transitions/0/spawn_count out_of_range",
        ),
        (
            json!({"spawn_count": 1_001}),
            "/transitions/0/spawn_count out_of_range",
        ),
        (
            json!({"spawn_count": 2, "foreach": {"collection": "input.x"}}),
            "/transitions/0/foreach both_forms",
        ),
        (
            json!({"foreach": {"collection": "nonsense.x"}}),
            "/transitions/0/foreach/collection unknown_name",
        ),
        (
            json!({"foreach": {"collection": "input.x", "item_var": "state"}}),
            "/transitions/0/foreach/item_var invalid_id",
        ),
        (
            json!({"foreach": {"collection": "input.x", "item_var": "now"}}),
            "/transitions/0/foreach/item_var invalid_id",
        ),
        (
            json!({"foreach": {"collection": "input.x", "item_var": "a b"}}),
            "/transitions/0/foreach/item_var invalid_id",
        ),
    ] {
        workflow(spawning(spawn), &[problem]);
    }
}

#[test]
fn gates_are_read_and_checked() {
    let gate = |gate: Value| node(json!({"gate": gate}));
    workflow(gate(json!({})), &[]);
    for (written, problem) in [
        (json!({"choices": []}), "/nodes/0/gate/choices missing_field"),
        (
            json!({"choices": ["yes", "yes"]}),
            "/nodes/0/gate/choices/1 wrong_type",
        ),
        (
            json!({"choices": ["yes"], "on_timeout": "approve"}),
            "/nodes/0/gate/on_timeout invalid_choice",
        ),
        (
            json!({"remind_at": [1.5]}),
            "/nodes/0/gate/remind_at/0 out_of_range",
        ),
        (
            json!({"prompt": "${nobody}"}),
            "/nodes/0/gate/prompt unknown_name",
        ),
        (
            json!({"timeout_ms": 1, "timeout": "1s"}),
            "/nodes/0/gate/timeout both_forms",
        ),
    ] {
        workflow(gate(written), &[problem]);
    }
}

#[test]
fn waits_are_read_and_checked() {
    let wait = |wait: Value| node(json!({"wait": wait}));
    for good in [
        json!({"sleep_ms": 5}),
        json!({"sleep": "1h"}),
        json!({"sleep": "${state.delay}"}),
        json!({"sleep_ms": "${ min([60000, state.delay * 2]) }"}),
        json!({"until": 5}),
        json!({"until": "2026-11-16T09:30:00+01:00"}),
        json!({"until": "${input.date}T09:00:00Z"}),
        json!({"signal": "go", "timeout": "1h"}),
    ] {
        workflow(wait(good), &[]);
    }
    for (written, problem) in [
        (json!({}), "/nodes/0/wait missing_field"),
        (json!({"sleep_ms": 5, "signal": "go"}), "/nodes/0/wait both_forms"),
        (
            json!({"sleep_ms": 5, "timeout_ms": 5}),
            "/nodes/0/wait/timeout_ms unknown_field: \"timeout_ms\" means nothing here: only a wait for a signal",
        ),
        (
            json!({"until": 5, "on_timeout": "continue"}),
            "/nodes/0/wait/on_timeout unknown_field",
        ),
        (
            json!({"sleep": null}),
            "/nodes/0/wait/sleep missing_field: a sleep has an end",
        ),
        (
            json!({"sleep": "${state.delay}", "sleep_ms": 5}),
            "/nodes/0/wait/sleep both_forms",
        ),
        (
            json!({"sleep": "${state.delay}", "until": 5}),
            "/nodes/0/wait both_forms",
        ),
        (
            json!({"sleep": "${state.delay}s"}),
            "/nodes/0/wait/sleep invalid_expression: a computed sleep is one ${...} and nothing around it",
        ),
        (
            json!({"sleep_ms": "$${5}"}),
            "/nodes/0/wait/sleep_ms invalid_expression: a computed sleep is one",
        ),
        (
            json!({"sleep": "${state.delay +}"}),
            "/nodes/0/wait/sleep invalid_expression",
        ),
        (
            json!({"sleep": "${delay}"}),
            "/nodes/0/wait/sleep unknown_name: \"delay\" is not a name here",
        ),
        (json!({"sleep_ms": "5s"}), "/nodes/0/wait/sleep_ms wrong_type"),
        (
            json!({"until": "tomorrow"}),
            "/nodes/0/wait/until invalid_moment: \"tomorrow\" is no moment; write Unix milliseconds or ISO 8601",
        ),
        (json!({"until": -5}), "/nodes/0/wait/until invalid_moment"),
        (json!({"until": 1e300}), "/nodes/0/wait/until invalid_moment"),
        (json!({"until": true}), "/nodes/0/wait/until invalid_moment"),
        (
            json!({"until": ["${input.at}"]}),
            "/nodes/0/wait/until invalid_moment",
        ),
        (json!({"signal": "a b"}), "/nodes/0/wait/signal invalid_id"),
        (
            json!({"signal": "go", "on_timeout": "approve"}),
            "/nodes/0/wait/on_timeout invalid_choice",
        ),
    ] {
        workflow(wait(written), &[problem]);
    }
}

#[test]
fn a_field_that_means_nothing_on_its_node_is_reported() {
    let only_work = "only a node with a \"task_id\", an \"action_id\" or a \"workflow_id\" has it";
    let (gate, pass) = (json!({"gate": {}}), json!({}));
    let (sleep, signal) = (
        json!({"wait": {"sleep": "5s"}}),
        json!({"wait": {"signal": "go"}}),
    );
    let work = json!({"action_id": "work"});
    for (kind, field, value, reason) in [
        (
            &gate,
            "on_timeout",
            json!("retry"),
            "what follows a gate's timeout is \"on_timeout\" inside \"gate\"",
        ),
        (&gate, "max_retries", json!(2), only_work),
        (&gate, "input_mapping", json!({}), only_work),
        (
            &sleep,
            "timeout",
            json!("5s"),
            "a wait for a moment ends at it; only a wait for a signal can time out",
        ),
        (&sleep, "timeout_ms", json!(5), "a wait for a moment ends at it"),
        (
            &sleep,
            "on_timeout",
            json!("fail"),
            "a wait for a moment ends at it",
        ),
        (
            &signal,
            "timeout",
            json!("5s"),
            "a wait for a signal has it inside \"wait\"",
        ),
        (
            &signal,
            "dispatch",
            json!("queue"),
            "only a node with a \"task_id\" or an \"action_id\" has it",
        ),
        (&pass, "timeout", json!("5s"), only_work),
        (&pass, "on_timeout", json!("fail"), only_work),
        (
            &work,
            "task_version",
            json!(1),
            "it is the version of a \"task_id\"",
        ),
        (
            &gate,
            "workflow_version",
            json!(1),
            "it is the version of a \"workflow_id\"",
        ),
    ] {
        let written = with(kind.clone(), json!({ field: value }));
        let problem = format!("/nodes/0/{field} unknown_field: \"{field}\" means nothing here: {reason}");
        workflow(node(written), &[&problem]);
    }
    // Where they mean something, or are not written.
    workflow(node(json!({"gate": {}, "timeout": "5s"})), &[]);
    workflow(
        node(json!({"wait": {"sleep": "5s"}, "timeout": null, "dispatch": null})),
        &[],
    );
}

#[test]
fn a_node_has_at_most_one_kind() {
    workflow(
        node(json!({"wait": {"sleep_ms": 5}, "gate": {}})),
        &["/nodes/0/wait both_forms"],
    );
    workflow(
        node(json!({"action_id": "work", "on_failure": "catch"})),
        &["/nodes/0/on_failure unknown_field"],
    );
}

/// The call may be in a node or in an action.
#[test]
fn an_unknown_workflow_is_reported_at_its_call() {
    let call = json!({"kind": "workflow_call", "implementation": {"workflow_id": "nobody"}});
    let named = with(json!({"id": "call"}), call.clone());
    for (document, place) in [
        (
            json!({"nodes": [{"id": "a", "workflow_id": "nobody"}]}),
            "/nodes/0/workflow_id",
        ),
        (
            json!({"nodes": [{"id": "a", "action_id": "call"}], "actions": [named]}),
            "/actions/0/implementation/workflow_id",
        ),
        (
            json!({"nodes": [{"id": "a", "task_id": "t"}], "tasks": [{"id": "t", "steps": [{"action": call}]}]}),
            "/tasks/0/steps/0/action/implementation/workflow_id",
        ),
    ] {
        let reference = Reference {
            kind: DocumentKind::Workflows,
            id: "nobody".into(),
            version: None,
        };
        let library = Library::from([(reference, None)]);
        let document = with(json!({"id": "flow"}), document);
        let Err(CheckError::Invalid(problems)) = check(
            DocumentKind::Workflows,
            &document,
            &library,
            &TimeoutRules::default(),
        ) else {
            panic!("{document} must be refused");
        };
        let places: Vec<&str> = problems.iter().map(|problem| problem.pointer.as_str()).collect();
        assert_eq!(places, [place]);
    }
}
