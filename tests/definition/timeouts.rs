//! Presets, defaults and bounds of limits, and the timeout gate.

use curfew::base::time::{DAY, HOUR, Limit, MINUTE, SECOND};
use curfew::definition::problem::Problems;
use curfew::definition::snapshot::{DocumentKind, Library, Snapshot};
use curfew::definition::timeouts::{
    Preset, TimeoutGate, TimeoutGatePolicy, TimeoutLayer, TimeoutRules, Timeouts,
};
use curfew::definition::workflow::{Workflow, WorkflowTimeoutPolicy};
use serde_json::{Value, json};

use super::documents::{expect_under, workflow};
use crate::run::driver::{complete_document, store_document};
use crate::run::graphs::with;

pub fn read(document: Value) -> Workflow {
    let document = complete_document(with(
        json!({"nodes": [{"id": "a", "action_id": "work"}]}),
        document,
    ));
    read_prechecked(&document)
}

fn read_prechecked(document: &Value) -> Workflow {
    let problems = Problems::default();
    let workflow = Workflow::read(document, &problems);
    assert!(!problems.has_errors(), "{:?}", problems.into_sorted());
    workflow.expect("no errors, so a workflow")
}

#[track_caller]
pub fn top(fields: Value, expected: &[&str]) {
    workflow(with(json!({"nodes": [{"id": "a"}]}), fields), expected);
}

#[test]
fn deployment_variables_are_parsed() {
    let rules = TimeoutRules::from_variables;
    assert_eq!(rules(None, None, None), Ok(TimeoutRules::default()));
    assert_eq!(rules(Some(""), Some(" "), Some("")), Ok(TimeoutRules::default()));
    let written = TimeoutRules {
        preset: Preset::Service,
        min_ms: 1_000,
        max_ms: 90_000,
    };
    assert_eq!(rules(Some("service"), Some("1000"), Some(" 90000 ")), Ok(written));
    for (preset, min_ms, max_ms, message) in [
        (
            Some("fast"),
            None,
            None,
            "CURFEW_PRESET is \"fast\"; write \"standard\", \"service\" or \"flow\"",
        ),
        (
            None,
            Some("1s"),
            None,
            "CURFEW_TIMEOUT_MIN_MS is \"1s\"; write whole milliseconds from 1 to",
        ),
        (
            None,
            Some("0"),
            None,
            "CURFEW_TIMEOUT_MIN_MS is \"0\"; write whole",
        ),
        (
            None,
            None,
            Some("0"),
            "CURFEW_TIMEOUT_MAX_MS is \"0\"; write whole",
        ),
        (
            None,
            None,
            Some("-5"),
            "CURFEW_TIMEOUT_MAX_MS is \"-5\"; write whole",
        ),
        (
            None,
            None,
            Some("9223372036854775808"),
            "CURFEW_TIMEOUT_MAX_MS is \"9223372036854775808\"; write",
        ),
        (
            None,
            Some("20"),
            Some("10"),
            "CURFEW_TIMEOUT_MIN_MS is 20 and CURFEW_TIMEOUT_MAX_MS is 10; write a minimum that is not above",
        ),
        // A single bound is checked against the default of the other.
        (
            None,
            Some("2592000001"),
            None,
            "CURFEW_TIMEOUT_MIN_MS is 2592000001 and",
        ),
    ] {
        let refused = rules(preset, min_ms, max_ms).expect_err(message);
        assert!(refused.starts_with(message), "{refused}");
    }
}

#[test]
fn a_deployment_bounds_every_limit_and_reports_its_bounds() {
    let rules = TimeoutRules {
        min_ms: 2_000,
        max_ms: 60_000,
        ..TimeoutRules::default()
    };
    let expect = |document: Value, expected: &[&str]| {
        let document = complete_document(document);
        expect_under(
            &rules,
            DocumentKind::Workflows,
            document,
            &Library::new(),
            expected,
        );
    };
    let narrow = json!({
        "timeout": "61s",
        "timeouts": {"step_ms": 1_999},
        "gate": {"timeout": "1h"},
        "nodes": [{"id": "a", "action_id": "work", "timeout_ms": 60_001}],
    });
    expect(
        narrow.clone(),
        &[
            "/gate/timeout out_of_range: 1h0m0s is outside 2s to 1m0s",
            "/nodes/0/timeout_ms out_of_range: 1m0.001s is outside 2s to 1m0s",
            "/timeout out_of_range: 1m1s is outside 2s to 1m0s",
            "/timeouts/step_ms out_of_range: 1.999s is outside 2s to 1m0s",
        ],
    );
    expect(
        json!({"timeout": "60s", "nodes": [{"id": "a", "wait": {"sleep_ms": 2_000}}]}),
        &[],
    );
    expect(json!({"timeout": null, "nodes": [{"id": "a"}]}), &[]);
    // A document that was stored under wider bounds stays readable.
    let stored = store_document(&complete_document(narrow));
    let snapshot = Snapshot::read(stored).expect("a stored document can be read");
    assert_eq!(snapshot.workflow.timeout, Limit::After(61_000));
}

#[test]
fn time_settings_of_a_workflow_are_read() {
    let workflow = read_prechecked(&json!({"id": "flow", "nodes": [{"id": "a"}]}));
    assert_eq!(workflow.timeouts, Timeouts::default());
    assert_eq!(
        (workflow.timeouts.inherit_budget, workflow.timeouts.warn_at),
        (false, 0.8)
    );
    assert_eq!(workflow.on_timeout, WorkflowTimeoutPolicy::HumanGate);
    assert!(!workflow.allow_exceed_hard);
    let workflow = read(json!({
        "timeouts": {"preset": "flow", "step": "9m", "flow_ms": 60_000, "llm_call": null, "tool_ms": 5_000,
                     "inherit_budget": true, "warn_at": 0.5},
        "on_timeout": "fail",
        "allow_exceed_hard": true,
    }));
    let expected = Timeouts {
        preset: Some(Preset::Flow),
        step: Limit::After(9 * MINUTE),
        flow: Limit::After(MINUTE),
        llm_call: Limit::Never,
        tool: Limit::After(5 * SECOND),
        inherit_budget: true,
        warn_at: 0.5,
    };
    assert_eq!(workflow.timeouts, expected);
    let millis = read(json!({
        "timeouts": {"step": 900_000, "flow": 60_000, "llm_call": 1, "tool": 5_000},
    }));
    let expected = Timeouts {
        step: Limit::After(15 * MINUTE),
        flow: Limit::After(MINUTE),
        llm_call: Limit::After(1),
        tool: Limit::After(5 * SECOND),
        ..Timeouts::default()
    };
    assert_eq!(millis.timeouts, expected);
    assert_eq!(workflow.on_timeout, WorkflowTimeoutPolicy::Fail);
    assert!(workflow.allow_exceed_hard);
}

#[test]
fn invalid_time_settings_of_a_workflow_are_reported() {
    for (timeouts, problem) in [
        (
            json!({"preset": "fast"}),
            "/timeouts/preset invalid_choice: \"fast\" is none of standard, service, flow",
        ),
        (
            json!({"step": true}),
            "/timeouts/step wrong_type: expected a duration like \"30s\", found a boolean",
        ),
        (
            json!({"step": -1}),
            "/timeouts/step out_of_range: -1 must not be negative",
        ),
        (
            json!({"flow": -0.5}),
            "/timeouts/flow out_of_range: -0.5 must not be negative",
        ),
        (
            json!({"tool_ms": -1}),
            "/timeouts/tool_ms out_of_range: -1 must not be negative",
        ),
        (
            json!({"tool": "-1s"}),
            "/timeouts/tool invalid_duration: \"-1s\" must not be negative",
        ),
        (
            json!({"llm_call": 1.5}),
            "/timeouts/llm_call wrong_type: expected a whole number of milliseconds, found a number",
        ),
        (
            json!({"step": 0}),
            "/timeouts/step out_of_range: 0s is outside 1ms to 720h0m0s",
        ),
        (
            json!({"step": true}),
            "/timeouts/step wrong_type: expected a duration like \"30s\", found a boolean",
        ),
        (json!({"step": 5, "step_ms": 5}), "/timeouts/step both_forms"),
        (json!({"tool": "5m", "tool_ms": 5}), "/timeouts/tool both_forms"),
        (json!({"warn_at": 0}), "/timeouts/warn_at out_of_range"),
        (json!({"warn_at": 1}), "/timeouts/warn_at out_of_range"),
        (json!({"warn_at": "80%"}), "/timeouts/warn_at out_of_range"),
        (
            json!({"llmcall": "2m"}),
            "/timeouts/llmcall unknown_field: unknown field; did you mean \"llm_call\"?",
        ),
        (json!(5), "/timeouts wrong_type"),
    ] {
        top(json!({ "timeouts": timeouts }), &[problem]);
    }
    top(
        json!({"on_timeout": "wait"}),
        &["/on_timeout invalid_choice: \"wait\" is none of human_gate, cancel_all, fail"],
    );
    top(
        json!({"clock": "stops"}),
        &["/clock invalid_choice: \"stops\" is none of stops_at_gates, runs"],
    );
    top(
        json!({"allow_exceed_hard": 1}),
        &["/allow_exceed_hard wrong_type"],
    );
}

#[test]
fn the_timeout_gate_always_has_a_deadline() {
    let gate = |gate: Value| read(json!({"on_timeout": "human_gate", "gate": gate})).gate;
    let default = TimeoutGate {
        timeout_ms: 7 * DAY,
        on_timeout: TimeoutGatePolicy::CancelAll,
    };
    assert_eq!(gate(json!(null)), default);
    assert_eq!(gate(json!({})), default);
    let written = TimeoutGate {
        timeout_ms: 2 * HOUR,
        on_timeout: TimeoutGatePolicy::Fail,
    };
    assert_eq!(gate(json!({"timeout": "2h", "on_timeout": "fail"})), written);
    assert_eq!(
        gate(json!({"timeout_ms": 7_200_000, "on_timeout": "fail"})),
        written
    );
    for (gate, problem) in [
        (
            json!({"timeout": null}),
            "/gate/timeout wrong_type: a timeout gate needs a deadline of its own",
        ),
        (json!({"timeout_ms": null}), "/gate/timeout_ms wrong_type"),
        (
            json!({"on_timeout": "approve"}),
            "/gate/on_timeout invalid_choice",
        ),
        (json!({"prompt": "x"}), "/gate/prompt unknown_field"),
    ] {
        top(json!({ "gate": gate }), &[problem]);
    }
    // With another policy the gate is unused but allowed.
    top(json!({"on_timeout": "fail", "gate": {"timeout": "1h"}}), &[]);
}

#[test]
fn defaults_come_from_the_workflow_then_its_preset_then_the_deployment() {
    let after = |minutes: u64| Limit::After(minutes * MINUTE);
    let half_a_minute = Limit::After(30 * SECOND);
    let none = [Limit::Unset; 3];
    let table = [
        (Preset::Standard, after(60), none),
        (Preset::Service, half_a_minute, none),
        (Preset::Flow, after(30), [after(10), after(2), after(5)]),
    ];
    let layers = [TimeoutLayer::Step, TimeoutLayer::LlmCall, TimeoutLayer::Tool];
    for (preset, flow, others) in table {
        let said_nothing = Timeouts::default();
        let said_preset = Timeouts {
            preset: Some(preset),
            ..Timeouts::default()
        };
        // The deployment's preset applies only if the workflow has none.
        for (timeouts, deployment) in [
            (&said_nothing, preset),
            (&said_preset, Preset::Standard),
            (&said_preset, Preset::Flow),
        ] {
            assert_eq!(timeouts.default_limit(TimeoutLayer::Flow, deployment), flow);
            assert_eq!(
                layers.map(|layer| timeouts.default_limit(layer, deployment)),
                others
            );
        }
    }
    let own = Timeouts {
        step: after(1),
        tool: Limit::Never,
        ..Timeouts::default()
    };
    let found = layers.map(|layer| own.default_limit(layer, Preset::Flow));
    assert_eq!(found, [after(1), after(2), Limit::Never]);
}
