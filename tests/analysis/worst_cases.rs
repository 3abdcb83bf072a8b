//! Workflows at their worst, simulated by the body of `POST /v1/simulate`: their runs stay within the facts, and come near to them.

use curfew::definition::timeouts::TimeoutRules;
use curfew::simulate::{Deployment, read_library, simulate_alone};
use serde_json::{Value, json};

use super::analysis_in;

const HOUR_MS: u64 = 3_600_000;

/// Facts of a workflow, and a run of it in which every call of the action `call` hangs.
struct Compared {
    facts: Value,
    run: Value,
}

#[track_caller]
fn hanging(workflow: Value, called: Value) -> Compared {
    let documents = json!({"workflows": called});
    let library = read_library(&documents, "/documents").expect("the documents can be read");
    let analysis = analysis_in(&workflow, &library);
    assert!(analysis.errors.is_empty(), "{:?}", analysis.errors);
    let body =
        json!({"workflow": workflow, "documents": documents, "mocks": [{"action": "call", "hang": true}]});
    let run = simulate_alone(&body, &TimeoutRules::default(), &Deployment::default());
    let run = run.expect("it can be simulated");
    assert!(!run["run"]["ended_at"].is_null(), "it ends: {}", run["run"]);
    Compared {
        facts: json!(analysis.facts),
        run,
    }
}

impl Compared {
    /// `found` is at most the bound, and at least 0.9 of it: a bound that nothing comes near proves little.
    #[track_caller]
    fn is_near(&self, found: &Value, bound: &Value) {
        let number = |value: &Value| value.as_f64().expect("a number");
        let (found, bound) = (number(found), number(bound));
        assert!(
            found <= bound,
            "{found} is more than {bound}: {} {}",
            self.facts,
            self.run["run"]
        );
        assert!(
            found >= 0.9 * bound,
            "{found} is far below {bound}: {}",
            self.facts
        );
    }

    #[track_caller]
    fn has_dollars(&self) {
        self.is_near(&self.run["dollars"], &self.facts["dollars"]["worst"]);
    }

    #[track_caller]
    fn has_duration(&self) {
        self.is_near(&self.run["virtual_ms"], &self.facts["duration_max_ms"]);
    }

    /// The longest time without an event.
    #[track_caller]
    fn has_wait(&self) {
        let events = self.run["events"].as_array().expect("a list of events");
        let moments: Vec<u64> = events.iter().filter_map(|event| event["at"].as_u64()).collect();
        let waits = moments.windows(2).map(|pair| pair[1] - pair[0]);
        self.is_near(&json!(waits.max()), &self.facts["longest_wait"]["ms"]);
    }
}

fn workflow(id: &str, nodes: Value, more: Value) -> Value {
    let mut document = json!({"id": id, "on_timeout": "fail", "nodes": nodes,
        "actions": [{"id": "call", "kind": "service_call", "implementation": {"binding": "SHOP"}}]});
    for (field, value) in more.as_object().expect("fields") {
        document[field] = value.clone();
    }
    document
}

#[test]
fn an_alarm_looks_after_an_open_call_again_and_again() {
    let node = json!([{"id": "a", "action_id": "call", "timeout": "9h"}]);
    let found = hanging(workflow("w", node, json!({"timeout": "10h"})), json!([]));
    found.has_duration();
    found.has_dollars();
    // One alarm every 30 s until the grace has passed.
    let rows = |timeout: &str| {
        let node = json!([{"id": "a", "action_id": "call", "timeout": timeout}]);
        let facts = hanging(workflow("w", node, json!({"timeout": "10h"})), json!([])).facts;
        facts["rows_written"]["worst"].as_u64().expect("a bound")
    };
    assert_eq!(rows("9h") - rows("10s"), 9 * HOUR_MS / 30_000);
    // Nobody looks after it while the run waits at the gate of its limit, but it stays open.
    let node = json!([{"id": "a", "action_id": "call"}]);
    let gated = json!({"timeout": "1h", "on_timeout": "human_gate", "gate": {"timeout": "100h"}});
    let found = hanging(workflow("w", node, gated), json!([]));
    found.has_dollars();
    assert!(
        found.facts["rows_written"]["worst"].as_u64() < Some(200),
        "{}",
        found.facts
    );
}

#[test]
fn a_called_run_may_take_longer_than_by_itself() {
    let call = json!([{"id": "a", "action_id": "call"}]);
    let called = json!([workflow("c", call, json!({"timeout": "20s"}))]);
    // The limit of the node takes the place of the workflow's own.
    let node = json!([{"id": "a", "workflow_id": "c", "timeout": "2h"}]);
    let found = hanging(workflow("w", node, json!({"timeout": "3h"})), called.clone());
    found.has_duration();
    found.has_dollars();
    // It is paused with its caller, and its call stays open.
    let node = json!([{"id": "a", "workflow_id": "c"}]);
    let gated = json!({"timeout": "10s", "on_timeout": "human_gate", "gate": {"timeout": "24h"}});
    let found = hanging(workflow("w", node, gated), called);
    found.has_duration();
    found.has_dollars();
}

#[test]
fn a_run_waits_for_the_ends_of_all_runs_below() {
    let call = json!([{"id": "a", "action_id": "call"}]);
    let handled = json!({"on_end": [{"action_id": "call"}], "compensation": {"timeout": "5m"}});
    let lowest = workflow("lowest", call, handled);
    let between = workflow(
        "between",
        json!([{"id": "b", "workflow_id": "lowest"}]),
        json!({}),
    );
    let node = json!([{"id": "c", "workflow_id": "between"}]);
    let found = hanging(
        workflow("w", node, json!({"timeout": "10s"})),
        json!([lowest, between]),
    );
    // The limit, then the handler of the lowest run, until its time is over.
    assert_eq!(found.run["virtual_ms"], 10_000 + 300_000);
    found.has_duration();
}

#[test]
fn the_delay_before_a_retry_is_a_wait() {
    let node =
        json!([{"id": "a", "action_id": "call", "timeout": "3s", "on_timeout": "retry", "max_retries": 5}]);
    let found = hanging(workflow("w", node, json!({})), json!([]));
    // The fifth.
    assert_eq!(found.facts["longest_wait"]["ms"], 16_000);
    found.has_wait();
}

#[test]
fn a_callback_under_an_adaptive_limit_without_samples_has_the_deadline_of_callbacks() {
    let node = json!([{"id": "a", "action_id": "render", "timeout": "adaptive"}]);
    let mut document = workflow("w", node, json!({"timeout": null}));
    document["actions"][0] = json!({"id": "render", "kind": "service_call", "implementation": {"binding": "SHOP"},
        "execution": {"mode": "async", "timeout": "10s"}});
    let found = analysis_in(&document, &Default::default());
    assert!(found.facts.expect("it has no errors").ends.surely);
}
