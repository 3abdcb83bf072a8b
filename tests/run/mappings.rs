//! Input and output mappings, the run's output, and reports without a result or reason.

use serde_json::json;

use super::driver::{Driver, SETTINGS, complete_document, create_run, failed, store_document, succeeded};

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
        event run_failed t1 a
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
        event run_failed
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
        event run_failed
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
        event run_failed t1 a
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
        event run_failed t3 c
        alarm 10001000
        abort t2@1
        announce
        ended
    "#,
    );
}

/// `now` is the moment of the decision, in every expression of the workflow.
#[test]
fn now_is_the_moment_of_the_decision() {
    let mut run = Driver::start(json!({
        "nodes": [
            {"id": "a", "action_id": "work", "input_mapping": {"at": "${now}"},
                "output_mapping": {"state.at": "${now}", "state.waited": "${now - run.started_at}"}},
            {"id": "b", "action_id": "work", "input_mapping": ["${item}", "${now}"]},
            {"id": "early"},
            {"id": "c", "gate": {"prompt": "since ${now}"}},
        ],
        "transitions": [
            {"from_node_id": "a", "to_node_id": "early", "condition": "now < 5000", "priority": 0},
            {"id": "each", "from_node_id": "a", "to_node_id": "b", "condition": "now >= 5000", "priority": 1,
                "foreach": {"collection": "[now, now + 1]"}},
            {"from_node_id": "b", "to_node_id": "c", "synchronization": {"sibling_group": "each",
                "merge": {"source": "[_branch.item, now]", "target": "state.all"}}},
        ],
        "output_mapping": "${[state.at, state.waited, state.all, now]}",
    }));
    assert_eq!(run.lines_of("dispatch"), [r#"dispatch t1@1 {"at":1000}"#]);
    run.at(5_000).succeed("t1@1", json!(null));
    assert_eq!(
        run.lines_of("dispatch"),
        ["dispatch t2@1 [5000,5000]", "dispatch t3@1 [5001,5000]"]
    );
    run.at(6_000).succeed("t2@1", json!(1));
    // A run that is loaded again decides the same.
    run.reload().at(7_000).succeed("t3@1", json!(1));
    assert_eq!(
        run.run.gates().next().map(|gate| gate.prompt.clone()),
        Some(json!("since 7000"))
    );
    let gate = run.run.gates().next().expect("it is open").id.clone();
    run.at(8_000).decide(&gate, "approve");
    run.assert_status("completed [5000,4000,[[5000,7000],[5001,7000]],8000]");
}

/// Builds without `now` allowed it as the name of an item. A run that began then keeps its meaning.
#[test]
fn an_item_of_a_stored_workflow_may_be_named_now() {
    let document = json!({
        "nodes": [{"id": "a"}, {"id": "b", "action_id": "work", "input_mapping": "${each}"}],
        "transitions": [{"id": "out", "from_node_id": "a", "to_node_id": "b",
            "foreach": {"collection": "['x', 'y']", "item_var": "each"}}],
    });
    let mut stored = store_document(&complete_document(document));
    stored.workflow["transitions"][0]["foreach"]["item_var"] = json!("now");
    stored.workflow["nodes"][1]["input_mapping"] = json!("${now}");
    let (run, decision) = create_run(1_000, SETTINGS, stored, json!({}));
    let run = Driver::of(run, decision, SETTINGS);
    assert_eq!(
        run.lines_of("dispatch"),
        [r#"dispatch t2@1 "x""#, r#"dispatch t3@1 "y""#]
    );
}

#[test]
fn now_in_an_inline_task_and_in_the_input_of_a_child_is_that_of_the_decision() {
    let mut run = Driver::start(json!({
        "nodes": [{"id": "a", "action_id": "work"}, {"id": "b", "task_id": "set"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}],
        "tasks": [{"id": "set", "steps": [
            {"action": {"kind": "update_context", "implementation": {"set": {"at": "${now}"}}}, "condition": "now == 3000"},
        ]}],
        "output_mapping": "${state.b}",
    }));
    run.at(3_000).succeed("t1@1", json!(null));
    run.assert_status(r#"completed {"at":3000}"#);
    let call = json!({"kind": "workflow_call", "implementation": {"workflow_id": "child"}});
    let run = Driver::start(json!({
        "nodes": [{"id": "p", "task_id": "call"}],
        "tasks": [{"id": "call", "steps": [{"action": call, "input_mapping": {"at": "${now}"}}]}],
    }));
    assert_eq!(
        run.lines_of("deliver"),
        [r#"deliver 1 start run-1~t1 {"at":1000}"#]
    );
}
