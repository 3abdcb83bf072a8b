//! The deadlines of a run: the workflow's and an attempt's, the alarm that enforces them, and which wins at the same moment.

use serde_json::{Value, json};

use super::driver::Driver;

fn one_node(node: Value) -> Value {
    let mut full = json!({"id": "a", "action_id": "work"});
    for (key, value) in node.as_object().into_iter().flatten() {
        full[key] = value.clone();
    }
    json!({"nodes": [full]})
}

#[test]
fn a_workflow_timeout_with_cancel_all_ends_live_tokens_and_aborts_their_calls() {
    Driver::start(json!({
        "timeout": "5m",
        "nodes": [{"id": "a"}, {"id": "b", "action_id": "work"}, {"id": "c", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}, {"from_node_id": "a", "to_node_id": "c"}],
    }))
    .at(2_000)
    .lose("t3@1")
    .lose("t3@2")
    .check(
        "
        token t3 c pending@2 lost 2 watch 3000 (attempt_lost)
        alarm 3000
    ",
    )
    .at(301_000)
    .wake("t2@1")
    .check(
        "
        run timed_out workflow_timeout/timeout: Workflow execution timed out after 5m0s
        token t2 b timed_out@1 (workflow_timeout)
        token t3 c timed_out@2 lost 2 (workflow_timeout)
        event run_timed_out workflow_timeout {flow late 0 cancel}
        alarm 10301000
        abort t2@1
        announce
        ended
    ",
    );
}

#[test]
fn a_workflow_timeout_with_fail_fails_the_run_with_its_message() {
    Driver::start(
        json!({"timeout": "5m", "on_timeout": "fail", "nodes": [{"id": "a", "action_id": "work"}]}),
    )
    .at(301_000)
    .wake("t1@1")
    .check(
        "
            run failed workflow_timeout/timeout: Workflow execution timed out after 5m0s
            token t1 a timed_out@1 (workflow_timeout)
            event run_failed workflow_timeout {flow late 0 fail}
            alarm 10301000
            abort t1@1
            announce
            ended
        ",
    );
}

#[test]
fn a_run_without_a_limit_of_its_own_gets_the_setting_and_null_means_none() {
    Driver::start(json!({"nodes": [{"id": "a", "action_id": "work"}]})).check(
        r#"
        snapshot
        input {"x":1}
        run running until 1001000
        token t1 a executing@1 watch 31000
        alarm 31000
        dispatch t1@1 {"x":1}
        announce
    "#,
    );
    Driver::start(json!({"timeout_ms": null, "nodes": [{"id": "a", "action_id": "work"}]})).check(
        r#"
        snapshot
        input {"x":1}
        run running
        token t1 a executing@1 watch 31000
        alarm 31000
        dispatch t1@1 {"x":1}
        announce
    "#,
    );
}

#[test]
fn the_workflow_wins_where_its_deadline_and_an_attempts_are_the_same_moment() {
    let mut document = one_node(json!({"timeout_ms": 4_000}));
    document["timeout_ms"] = json!(4_000);
    Driver::start(document.clone())
        .check(
            r#"
            snapshot
            input {"x":1}
            run running until 5000
            token t1 a executing@1 until 5000 watch 31000
            alarm 5000
            dispatch t1@1 {"x":1} by 5500
            announce
        "#,
        )
        .at(5_000)
        .time_out("t1@1")
        .check(
            "
            rejected stale_attempt t1@1
            run timed_out workflow_timeout/timeout: Workflow execution timed out after 4s
            token t1 a timed_out@1 (workflow_timeout)
            event run_timed_out workflow_timeout {flow late 0 cancel}
            event late_result_discarded t1
            alarm 10005000
            abort t1@1
            announce
            ended
        ",
        );
    Driver::start(document).at(5_000).wake("").check(
        "
        run timed_out workflow_timeout/timeout: Workflow execution timed out after 4s
        token t1 a timed_out@1 (workflow_timeout)
        event run_timed_out workflow_timeout {flow late 0 cancel}
        alarm 10005000
        abort t1@1
        announce
        ended
    ",
    );
}

#[test]
fn a_result_in_the_millisecond_of_the_workflow_deadline_is_too_late() {
    let mut document = one_node(json!({}));
    document["timeout_ms"] = json!(4_000);
    Driver::start(document.clone())
        .at(4_999)
        .succeed("t1@1", json!(1))
        .check(
            "
        run completed {}
        token t1 a completed@1 1 keeps state.a
        announce
        ended
    ",
        );
    Driver::start(document).at(5_000).succeed("t1@1", json!(1)).check(
        "
        rejected stale_attempt t1@1
        run timed_out workflow_timeout/timeout: Workflow execution timed out after 4s
        token t1 a timed_out@1 (workflow_timeout)
        event run_timed_out workflow_timeout {flow late 0 cancel}
        event late_result_discarded t1
        alarm 10005000
        abort t1@1
        announce
        ended
    ",
    );
}

#[test]
fn an_attempt_ends_with_its_run_and_the_executor_is_sent_its_own_deadline() {
    let mut document = one_node(json!({"timeout_ms": 9_000}));
    document["timeout_ms"] = json!(4_000);
    Driver::start(document).check(
        r#"
        snapshot
        input {"x":1}
        run running until 5000
        token t1 a executing@1 until 10000 watch 31000
        alarm 5000
        dispatch t1@1 {"x":1} by 10000
        announce
    "#,
    );
}

#[test]
fn a_result_within_the_grace_after_the_deadline_still_counts() {
    Driver::start(one_node(json!({"timeout_ms": 4_000})))
        .at(5_000)
        .wake("t1@1")
        .check("")
        .at(5_499)
        .succeed("t1@1", json!(1))
        .check(
            "
            run completed {}
            token t1 a completed@1 1 keeps state.a
            announce
            ended
        ",
        );
}

#[test]
fn a_result_and_the_end_of_grace_in_one_millisecond_have_one_outcome() {
    let document = one_node(json!({"timeout_ms": 4_000}));
    Driver::start(document.clone())
        .at(5_500)
        .succeed("t1@1", json!(1))
        .check(
            "
            run completed {}
            token t1 a completed@1 1 keeps state.a
            alarm 10005500
            announce
            ended
        ",
        )
        .wake("")
        .check("");
    Driver::start(document)
        .at(5_500)
        .wake("t1@1")
        .check(
            "
            run failed execution_timeout/timeout: step a timed out: context deadline exceeded
            token t1 a timed_out@1 execution_timeout/timeout: step a timed out: context deadline exceeded
            event token_timed_out t1 a {tool late 500 fail}
            event run_failed t1 a
            alarm 10005500
            abort t1@1
            announce
            ended
        ",
        )
        .succeed("t1@1", json!(1))
        .check(
            "
            rejected stale_attempt t1@1
            event late_result_discarded t1
        ",
        );
}

#[test]
fn an_attempt_that_times_out_is_retried_as_often_as_allowed_and_then_fails() {
    Driver::start(one_node(json!({"timeout_ms": 4_000, "on_timeout": "retry", "max_retries": 1})))
        .at(5_500)
        .wake("t1@1")
        .check(r#"
            token t1 a pending@1 retry 1 watch 6500 (execution_timeout)
            event token_timed_out t1 a {tool late 500 retry}
            event token_retried t1 retry_count 1 delay_ms 1000
            alarm 6500
            abort t1@1
        "#)
        .at(6_500)
        .wake("")
        .check(r#"
            token t1 a executing@2 retry 1 until 10500 watch 36500 (execution_timeout)
            alarm 11000
            dispatch t1@2 {"x":1} by 10500
        "#)
        // The executor of the second attempt reports its deadline itself: there is nothing to abort.
        .at(10_400)
        .time_out("t1@2")
        .check("
            run failed execution_timeout/timeout: step a timed out: context deadline exceeded
            token t1 a timed_out@2 retry 1 (execution_timeout) execution_timeout/timeout: step a timed out: context deadline exceeded
            event token_timed_out t1 a {tool late 0 fail}
            event run_failed t1 a
            announce
            ended
        ");
}

#[test]
fn retry_without_a_number_means_three_retries() {
    let mut run = Driver::start(one_node(json!({"timeout_ms": 1_000, "on_timeout": "retry"})));
    // Each backoff is twice as long as the one before.
    for (epoch, pause_ms) in [(1, 1_000), (2, 2_000), (3, 4_000)] {
        run.time_out(&format!("t1@{epoch}"))
            .assert_status("running a:pending");
        let begins_at = run.now + pause_ms;
        run.reload()
            .at(begins_at - 1)
            .wake("")
            .assert_status("running a:pending");
        run.at(begins_at).wake("");
        assert_eq!(run.lines_of("dispatch").len(), 1, "attempt {epoch}");
    }
    run.time_out("t1@4").check(
        "
        run failed execution_timeout/timeout: step a timed out: context deadline exceeded
        token t1 a timed_out@4 retry 3 (execution_timeout) execution_timeout/timeout: step a timed out: context deadline exceeded
        event token_timed_out t1 a {tool late 0 fail}
        event run_failed t1 a
        announce
        ended
    ",
    );
}

#[test]
fn a_timeout_takes_its_own_route_and_not_the_failures() {
    let mut document = one_node(json!({"timeout_ms": 4_000}));
    document["nodes"] = json!([
        document["nodes"][0],
        {"id": "slow", "action_id": "work", "input_mapping": "${error.code}: ${error.message}"},
        {"id": "broken", "action_id": "work"},
    ]);
    document["transitions"] = json!([
        {"from_node_id": "a", "to_node_id": "broken", "on": "failure"},
        {"from_node_id": "a", "to_node_id": "slow", "on": "timeout"},
    ]);
    Driver::start(document).at(5_500).wake("").check(
        r#"
        token t1 a timed_out@1 execution_timeout/timeout: step a timed out: context deadline exceeded
        token t2 slow executing@1 watch 35500
        event token_timed_out t1 a {tool late 500 fail}
        alarm 35500
        abort t1@1
        dispatch t2@1 "execution_timeout: step a timed out: context deadline exceeded"
    "#,
    );
}
