//! Input and output mappings, the run's output, and reports without a result or reason.

use serde_json::json;

use super::driver::{Driver, SETTINGS, failed, succeeded};

#[test]
fn a_failing_mapping_takes_the_failure_transition() {
    Driver::start(json!({
        "nodes": [
            {"id": "a", "action_id": "work", "input_mapping": {"n": "${state.nothing.deep}"}},
            {"id": "b", "action_id": "work", "input_mapping": "${error.message}"},
        ],
        "transitions": [{"from_node_id": "a", "to_node_id": "b", "on": "failure"}],
    }))
    .check(r#"
        snapshot
        input {"x":1}
        run running until 1001000
        token t1 a failed@0 expression_failed/validation: input_mapping of node a: expression `state.nothing.deep`: no such key: nothing
        token t2 b executing@1 watch 31000
        alarm 31000
        dispatch t2@1 "input_mapping of node a: expression `state.nothing.deep`: no such key: nothing"
        announce
    "#);
}

#[test]
fn an_output_mapping_writes_all_of_its_targets_or_none() {
    Driver::start(json!({
        "nodes": [{"id": "a", "action_id": "work", "output_mapping": {
            "state.first": "${result.n}",
            "state.second": "${result.nothing}",
        }}],
    }))
    .succeed("t1@1", json!({"n": 1}))
    .check("
        run failed expression_failed/validation: output_mapping of node a: expression `result.nothing`: no such key: nothing
        token t1 a failed@1 {\"n\":1} expression_failed/validation: output_mapping of node a: expression `result.nothing`: no such key: nothing
        event 1 run_failed t1 a
        announce
        ended
    ");
}

#[test]
fn an_empty_output_mapping_drops_the_result_but_the_token_keeps_it() {
    Driver::start(json!({"nodes": [{"id": "a", "action_id": "work", "output_mapping": {}}]}))
        .succeed("t1@1", json!({"n": 1}))
        .check(
            r#"
            run completed {}
            token t1 a completed@1 {"n":1}
            announce
            ended
        "#,
        );
}

#[test]
fn a_failing_output_mapping_of_the_workflow_fails_the_run() {
    Driver::start(json!({"nodes": [{"id": "a"}], "output_mapping": {"n": "${state.a.n}"}})).check(r#"
        snapshot
        input {"x":1}
        run failed expression_failed/validation: output_mapping of the workflow: expression `state.a.n`: no such key: a
        token t1 a completed@0 null
        event 1 run_failed
        alarm 10001000
        announce
        ended
    "#);
}

#[test]
fn an_output_that_violates_its_schema_fails_the_run() {
    Driver::start(json!({
        "nodes": [{"id": "a", "output_mapping": {"output.n": "many"}}],
        "output_schema": {"properties": {"n": {"type": "integer"}}},
    }))
    .check(r#"
        snapshot
        input {"x":1}
        run failed invalid_output/validation: the output does not fit output_schema at "/n": expected integer, found string "many"
        token t1 a completed@0 null keeps output.n = "many"
        event 1 run_failed
        alarm 10001000
        announce
        ended
    "#);
}

#[test]
fn a_report_without_a_result_is_null() {
    let mut run = Driver::start(json!({"nodes": [{"id": "a", "action_id": "work"}]}));
    let mut report = succeeded("t1@1", json!(null));
    report.output = None;
    run.report(report).check(
        "
        run completed {}
        token t1 a completed@1 null keeps state.a
        announce
        ended
    ",
    );
}

#[test]
fn a_failed_report_without_a_reason_gets_a_default_reason() {
    let mut run = Driver::start_with(
        SETTINGS,
        json!({"nodes": [{"id": "a", "action_id": "work"}]}),
        json!(null),
    );
    let mut report = failed("t1@1");
    report.error = None;
    run.report(report).check(
        "
        run failed task_failed/unknown: the executor gave no reason
        token t1 a failed@1 task_failed/unknown: the executor gave no reason
        event 1 run_failed t1 a
        announce
        ended
    ",
    );
}

#[test]
fn a_commit_that_ends_the_run_dispatches_nothing() {
    Driver::start(json!({
        "nodes": [
            {"id": "a"},
            {"id": "b", "action_id": "work"},
            {"id": "c", "action_id": "work", "input_mapping": "${state.nothing}"},
        ],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}, {"from_node_id": "a", "to_node_id": "c"}],
    }))
    .check(
        r#"
        snapshot
        input {"x":1}
        run failed expression_failed/validation: input_mapping of node c: expression `state.nothing`: no such key: nothing
        token t1 a completed@0 null
        token t3 c failed@0 expression_failed/validation: input_mapping of node c: expression `state.nothing`: no such key: nothing
        token t2 b cancelled@1 (run_failed)
        event 1 run_failed t3 c
        alarm 10001000
        abort t2@1
        announce
        ended
    "#,
    );
}
