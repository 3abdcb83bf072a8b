//! Limits of a run: exceeding one ends the run or fails the token, with a message that names the limit.

use serde_json::{Value, json};

use super::driver::{Driver, SETTINGS};
use curfew::simulate::Store;
use curfew::storage::commit::Commit;

fn endless(limits: Value) -> Value {
    json!({
        "nodes": [{"id": "a", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "a"}],
        "limits": limits,
    })
}

#[test]
fn loop_iterations_exceeded() {
    let mut run = Driver::start(endless(json!({"loop_iterations": 2})));
    run.succeed("t1@1", json!(1));
    run.succeed("t2@1", json!(1));
    run.succeed("t3@1", json!(1)).check(
        "
        run failed limit_exceeded/permanent: limit loop_iterations exceeded: the run may have 2
        context state.a = 1
        token t3 a completed@1 1
        event limit_exceeded loop_iterations
        event run_failed
        announce
        ended
    ",
    );
}

#[test]
fn tokens_total_exceeded() {
    let mut run = Driver::start(endless(json!({"tokens_total": 2})));
    run.succeed("t1@1", json!(1));
    run.succeed("t2@1", json!(1)).check(
        "
        run failed limit_exceeded/permanent: limit tokens_total exceeded: the run may have 2
        context state.a = 1
        token t2 a completed@1 1
        event limit_exceeded tokens_total
        event run_failed
        announce
        ended
    ",
    );
}

#[test]
fn tokens_active_exceeded_in_the_commit_of_the_fan_out() {
    Driver::start(json!({
        "nodes": [{"id": "a", "action_id": "work"}, {"id": "b", "action_id": "work"}],
        "transitions": [
            {"id": "x", "from_node_id": "a", "to_node_id": "b"},
            {"id": "y", "from_node_id": "a", "to_node_id": "b"},
            {"id": "z", "from_node_id": "a", "to_node_id": "b"},
        ],
        "limits": {"tokens_active": 2},
    }))
    .succeed("t1@1", json!(1))
    .check(
        "
        run failed limit_exceeded/permanent: limit tokens_active exceeded: the run may have 2
        token t1 a completed@1 1 keeps state.a
        token t2 b cancelled@0 (run_failed)
        token t3 b cancelled@0 (run_failed)
        event limit_exceeded tokens_active
        event run_failed
        announce
        ended
    ",
    );
}

#[test]
fn a_loop_of_pass_through_nodes_ends_at_its_limit() {
    let run = Driver::start(json!({
        "nodes": [{"id": "a"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "a", "condition": "true"}],
    }));
    let error = run.run.header.error.as_ref().map(|error| error.message.as_str());
    assert_eq!(
        error,
        Some("limit loop_iterations exceeded: the run may have 1000")
    );
}

#[test]
fn a_result_over_its_limit_fails_the_token_and_writes_nothing() {
    let mut run = Driver::start(json!({"nodes": [{"id": "a", "action_id": "work"}]}));
    run.succeed("t1@1", json!("x".repeat((512 << 10) - 1))).check("
        run failed limit_exceeded/validation: the result of node a is 524289 bytes; the limit is 524288
        token t1 a failed@1 limit_exceeded/validation: the result of node a is 524289 bytes; the limit is 524288
        event run_failed t1 a
        announce
        ended
    ");
    let mut run = Driver::start(json!({"nodes": [{"id": "a", "action_id": "work"}]}));
    run.succeed("t1@1", json!("x".repeat((512 << 10) - 2)));
    assert!(
        run.lines_of("token")[0].ends_with("keeps state.a"),
        "exactly the limit is within it"
    );
}

#[test]
fn a_context_over_its_limit_fails_the_token_and_is_unchanged() {
    let mut run = Driver::start(json!({
        "nodes": [
            {"id": "a", "action_id": "work"},
            {"id": "b", "action_id": "work", "output_mapping": {
                "state.a": 1, "state.b": "${result}", "output.c": "${result}", "output.d": "${result}"}},
            {"id": "mend", "action_id": "work", "input_mapping": {"a": "${size(state.a)}", "b": "${has(state.b)}"}},
        ],
        "transitions": [
            {"from_node_id": "a", "to_node_id": "b"},
            {"from_node_id": "b", "to_node_id": "mend", "on": "failure"},
        ],
    }));
    let large = json!("x".repeat(400_000));
    run.succeed("t1@1", large.clone());
    run.succeed("t2@1", large).check(r#"
        token t2 b failed@1 (400002 bytes) limit_exceeded/validation: the context would hold 1200007 bytes; the limit is 1048576
        token t3 mend executing@1 watch 31000
        dispatch t3@1 {"a":400000,"b":false}
    "#);
    // The rejected value does not count towards the size of the context.
    run.succeed("t3@1", json!("x".repeat(500_000)));
    assert!(run.lines_of("token")[0].ends_with("keeps state.mend"));
}

#[test]
fn an_output_over_its_limit_fails_the_run() {
    let mut run = Driver::start(json!({
        "nodes": [{"id": "a", "action_id": "work"}],
        "output_mapping": ["${state.a}", "${state.a}", "${state.a}"],
    }));
    run.succeed("t1@1", json!("x".repeat(400_000)));
    assert_eq!(
        run.lines_of("run"),
        ["run failed limit_exceeded/validation: the run's output is 1200010 bytes; the limit is 1032192"]
    );
}

/// Values of the maximum depth, written to the deepest target, can be read again although rows nest JSON in JSON.
#[test]
fn saved_rows_can_always_be_read_again() {
    let target = format!("state.{}", vec!["x"; 16].join("."));
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    let mut run = Driver::start(json!({
        "nodes": [
            {"id": "a", "action_id": "work", "output_mapping": {target: "${result}"}},
            {"id": "b", "action_id": "work"},
        ],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}],
    }));
    let mut store = Store::default();
    store
        .apply(&Commit::of(run.decision.writes(), &run.run).unwrap())
        .unwrap();
    run.succeed("t1@1", deep);
    assert_eq!(
        run.run.live_tokens().count(),
        1,
        "the result was accepted: b is under way"
    );
    store
        .apply(&Commit::of(run.decision.writes(), &run.run).unwrap())
        .unwrap();
    assert!(store.recall(SETTINGS).is_ok());
}

#[test]
fn a_run_that_exceeded_a_limit_creates_no_more_tokens() {
    let route = |to: &str| json!({"from_node_id": "a", "to_node_id": to});
    let mut run = Driver::start(json!({
        "nodes": [{"id": "a"}, {"id": "b", "action_id": "work"}, {"id": "c", "action_id": "work"},
                  {"id": "d", "action_id": "work"}, {"id": "e", "action_id": "work"}],
        "transitions": [route("b"), route("c"), route("d"),
                        {"from_node_id": "a", "to_node_id": "e", "spawn_count": 2}],
        "limits": {"tokens_active": 1},
    }));
    run.assert_status("failed limit_exceeded/permanent: limit tokens_active exceeded: the run may have 1");
    assert_eq!(run.lines_of("dispatch"), [""; 0]);
    assert_eq!(run.lines_of("instance"), [""; 0]);
}
