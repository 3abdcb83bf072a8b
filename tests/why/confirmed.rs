//! The smallest limit holds: a simulation of the same calls under the changed document does not time out, and one under a limit that
//! is a millisecond shorter does.

use serde_json::{Value, json};

use super::why;
use super::workflows::changed;
use crate::run::driver::{Driver, complete_document};
use crate::run::graphs::three;
use crate::simulate::simulated;

/// Status and number of timeouts.
fn outcome(document: &Value, mocks: &Value) -> (String, usize) {
    let answer = simulated(json!({"workflow": document, "input": {}, "mocks": mocks}));
    let timeouts = answer["timeouts"].as_array().map_or(0, Vec::len);
    (
        answer["run"]["status"].as_str().unwrap_or_default().to_string(),
        timeouts,
    )
}

#[track_caller]
fn check(run: &Driver, document: Value, mocks: Value) {
    let document = complete_document(document);
    let why = why(run, 0);
    assert!(outcome(&document, &mocks).1 > 0, "it timed out before");
    let patch = why["change"].as_array().expect("a patch");
    let millis = why["smallest_limit_ms"].as_u64().expect("a limit");
    let held = outcome(&changed(&document, patch, millis), &mocks);
    assert_eq!(held, ("completed".to_string(), 0), "{why:#}");
    let short = outcome(&changed(&document, patch, millis - 1), &mocks);
    assert!(short.1 > 0, "a millisecond less: {short:?}");
}

#[test]
fn of_a_run_that_was_extended() {
    let document = json!({
        "timeout": "10s", "on_timeout": "human_gate",
        "nodes": [{"id": "a", "action_id": "work"}, {"id": "b", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}],
    });
    let mut run = Driver::start(document.clone());
    run.at(5_000).succeed("t1@1", json!(1)).at(11_000).wake("t2@1");
    run.at(14_000).succeed("t2@1", json!(1));
    run.at(500_000).decide_with("run1", "extend", json!({"by": "1m"}));
    let mocks = json!([{"node": "a", "after": "4s", "result": 1}, {"node": "b", "after": "9s", "result": 1}]);
    check(&run, document, mocks);
}

#[test]
fn of_an_attempt_whose_result_came_late() {
    let document = json!({"nodes": [{"id": "a", "action_id": "work", "timeout_ms": 5_000}]});
    let mut run = Driver::start(document.clone());
    run.at(6_500).wake("t1@1").at(8_300).succeed("t1@1", json!(1));
    check(
        &run,
        document,
        json!([{"node": "a", "after": "7300ms", "result": 1}]),
    );
}

#[test]
fn of_a_join_that_went_on_without_its_branches() {
    let document = three(json!({"timeout": "5s", "on_timeout": "proceed_with_available"}));
    let mut run = Driver::start(document.clone());
    run.at(2_000)
        .succeed("t2@1", json!(1))
        .at(7_000)
        .wake("t3@1 t4@1");
    run.at(8_000)
        .succeed("t3@1", json!(2))
        .at(9_500)
        .succeed("t4@1", json!(3));
    let branch = |after: &str| json!({"node": "b", "after": after, "result": 1, "times": 1});
    let mocks = json!([branch("1s"), branch("7s"), branch("8500ms"), {"node": "z", "result": 1}]);
    check(&run, document, mocks);
}
