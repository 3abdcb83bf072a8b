//! Routing: chains, tiers of priorities, conditions, failure routes, loops.

use serde_json::json;

use super::driver::{Driver, SETTINGS, START, complete_document, create_run, store_document};

#[test]
fn a_chain_runs_node_after_node_and_completes_with_its_output() {
    Driver::start(json!({
        "nodes": [
            {"id": "a", "action_id": "work"},
            {"id": "b", "action_id": "work", "input_mapping": {"n": "${state.a.n + 1}"},
             "output_mapping": {"output.n": "${result.n}"}},
        ],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}],
    }))
    .check(
        r#"
        snapshot
        input {"x":1}
        run running until 1001000
        token t1 a executing@1 watch 31000
        alarm 31000
        dispatch t1@1 {"x":1}
        announce
    "#,
    )
    .at(1_100)
    .succeed("t1@1", json!({"n": 1}))
    .check(
        r#"
        token t1 a completed@1 {"n":1} keeps state.a
        token t2 b executing@1 watch 31100
        dispatch t2@1 {"n":2}
    "#,
    )
    .at(1_200)
    .succeed("t2@1", json!({"n": 5}))
    .check(
        r#"
        run completed {"n":5}
        token t2 b completed@1 {"n":5} keeps output.n = 5
        announce
        ended
    "#,
    );
}

#[test]
fn a_chain_of_pass_through_nodes_runs_in_one_commit() {
    Driver::start(json!({
        "nodes": [
            {"id": "a", "output_mapping": {"state.seen": ["a"]}},
            {"id": "b", "output_mapping": {"state.seen": "${state.seen + [\"b\"]}"}},
            {"id": "c"},
        ],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}, {"from_node_id": "b", "to_node_id": "c"}],
        "output_mapping": {"seen": "${state.seen}"},
    }))
    .check(
        r#"
        snapshot
        input {"x":1}
        run completed {"seen":["a","b"]}
        token t1 a completed@0 null
        token t2 b completed@0 null keeps state.seen = ["a","b"]
        token t3 c completed@0 null
        alarm 10001000
        announce
        ended
    "#,
    );
}

#[test]
fn the_first_tier_with_a_match_fires_all_its_matches_and_no_later_tier() {
    Driver::start(json!({
        "nodes": [
            {"id": "a"},
            {"id": "early", "action_id": "work"}, {"id": "one", "action_id": "work"},
            {"id": "two", "action_id": "work"}, {"id": "late", "action_id": "work"},
        ],
        "transitions": [
            {"from_node_id": "a", "to_node_id": "late", "priority": 2},
            {"from_node_id": "a", "to_node_id": "two", "priority": 1},
            {"from_node_id": "a", "to_node_id": "early", "priority": -1, "condition": "input.x == 7"},
            {"from_node_id": "a", "to_node_id": "one", "priority": 1, "condition": "input.x == 1"},
        ],
    }))
    .check(
        r#"
        snapshot
        input {"x":1}
        run running until 1001000
        token t1 a completed@0 null
        token t2 two executing@1 watch 31000
        token t3 one executing@1 watch 31000
        alarm 31000
        dispatch t2@1 {"x":1}
        dispatch t3@1 {"x":1}
        announce
    "#,
    );
}

#[test]
fn a_token_without_a_matching_route_ends_its_path_and_the_last_one_the_run() {
    Driver::start(json!({
        "nodes": [{"id": "a"}, {"id": "b", "action_id": "work"}, {"id": "c", "action_id": "work"}, {"id": "d"}],
        "transitions": [
            {"from_node_id": "a", "to_node_id": "b"},
            {"from_node_id": "a", "to_node_id": "c"},
            {"from_node_id": "b", "to_node_id": "d", "condition": "state.b == 2"},
        ],
        "on_no_match": "end",
    }))
    .at(1_100)
    .succeed("t2@1", json!(1))
    .check("
        token t2 b completed@1 1 keeps state.b
    ")
    .succeed("t3@1", json!(2))
    .check("
        run completed {}
        token t3 c completed@1 2 keeps state.c
        announce
        ended
    ");
}

#[test]
fn a_condition_sees_what_the_node_before_it_wrote() {
    Driver::start(json!({
        "nodes": [{"id": "a", "action_id": "work"}, {"id": "big", "action_id": "work"}, {"id": "small"}],
        "transitions": [
            {"from_node_id": "a", "to_node_id": "big", "condition": "state.a > 10 && run.attempt == 1"},
            {"from_node_id": "a", "to_node_id": "small", "condition": "state.a <= 10"},
        ],
    }))
    .succeed("t1@1", json!(11))
    .check(
        r#"
        token t1 a completed@1 11 keeps state.a
        token t2 big executing@1 watch 31000
        dispatch t2@1 {"x":1}
    "#,
    );
}

#[test]
fn a_failure_takes_its_route_with_the_error_in_scope() {
    Driver::start(json!({
        "nodes": [
            {"id": "a", "action_id": "work"},
            {"id": "mend", "action_id": "work",
             "input_mapping": {"why": "${error.code} ${error.class} ${error.message} at ${error.node_id} ${error.token_id}"}},
            {"id": "next", "action_id": "work", "input_mapping": {"error": "${error}"}},
        ],
        "transitions": [
            {"from_node_id": "a", "to_node_id": "next"},
            {"from_node_id": "a", "to_node_id": "mend", "on": "failure", "condition": "error.class == \"server_error\""},
            {"from_node_id": "mend", "to_node_id": "next"},
        ],
    }))
    .at(1_100)
    .fail("t1@1")
    .check(r#"
        token t1 a failed@1 peer_failed/server_error: status 500
        token t2 mend executing@1 watch 31100
        dispatch t2@1 {"why":"peer_failed server_error status 500 at a t1"}
    "#)
    // The failure was handled: later nodes see no error.
    .succeed("t2@1", json!("ok"))
    .check(r#"
        token t2 mend completed@1 "ok" keeps state.mend
        token t3 next executing@1 watch 31100
        dispatch t3@1 {"error":null}
    "#);
}

#[test]
fn a_failure_without_a_route_fails_the_run_and_ends_every_token() {
    Driver::start(json!({
        "nodes": [{"id": "a"}, {"id": "b", "action_id": "work"}, {"id": "c", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}, {"from_node_id": "a", "to_node_id": "c"},
            {"from_node_id": "b", "to_node_id": "c", "on": "timeout"},
            {"from_node_id": "b", "to_node_id": "c", "on": "failure", "condition": "error.class == \"auth\""}],
    }))
    .at(1_100)
    .fail("t2@1")
    .check("
        run failed peer_failed/server_error: status 500
        token t2 b failed@1 peer_failed/server_error: status 500
        token t3 c cancelled@1 (run_failed)
        event run_failed t2 b
        abort t3@1
        announce
        ended
    ");
}

#[test]
fn a_condition_that_cannot_be_evaluated_fails_its_token_and_names_the_place() {
    Driver::start(json!({
        "nodes": [{"id": "a", "action_id": "work"}, {"id": "b"}],
        "transitions": [{"id": "to-b", "from_node_id": "a", "to_node_id": "b", "condition": "state.nothing > 1"}],
    }))
    .succeed("t1@1", json!(1))
    .check("
        run failed expression_failed/validation: condition of transition to-b: expression `state.nothing > 1`: no such key: nothing
        context state.a = 1
        token t1 a failed@1 1 expression_failed/validation: condition of transition to-b: expression `state.nothing > 1`: no such key: nothing
        event run_failed t1 a
        announce
        ended
    ");
}

#[test]
fn a_failing_condition_on_the_failure_route_fails_the_run() {
    Driver::start(json!({
        "nodes": [{"id": "a", "action_id": "work"}, {"id": "b"}],
        "transitions": [
            {"id": "mend", "from_node_id": "a", "to_node_id": "b", "on": "failure", "condition": "error.message > 1"},
        ],
    }))
    .fail("t1@1")
    .check("
        run failed expression_failed/validation: condition of transition mend: expression `error.message > 1`: cannot compare string with int
        token t1 a failed@1 peer_failed/server_error: status 500
        event run_failed
        announce
        ended
    ");
}

#[test]
fn a_loop_ends_after_its_iterations_and_a_later_tier_leaves_it() {
    let mut run = Driver::start(json!({
        "nodes": [{"id": "poll", "action_id": "work"}, {"id": "done", "action_id": "work"}],
        "transitions": [
            {"id": "again", "from_node_id": "poll", "to_node_id": "poll", "loop_config": {"max_iterations": 2},
             "condition": "state.poll != \"ready\""},
            {"id": "out", "from_node_id": "poll", "to_node_id": "done", "priority": 1},
        ],
    }));
    for attempt in ["t1@1", "t2@1"] {
        run.succeed(attempt, json!("wait"));
        assert_eq!(
            run.lines_of("dispatch").len(),
            1,
            "{attempt} leads back into the loop"
        );
    }
    run.succeed("t3@1", json!("wait")).check(
        r#"
        context state.poll = "wait"
        token t3 poll completed@1 "wait"
        token t4 done executing@1 watch 31000
        dispatch t4@1 {"x":1}
    "#,
    );
}

fn choice(more: serde_json::Value) -> serde_json::Value {
    let mut document = json!({
        "nodes": [{"id": "check", "action_id": "work"}, {"id": "small"}, {"id": "large"}, {"id": "mend", "action_id": "work"}],
        "transitions": [
            {"from_node_id": "check", "to_node_id": "small", "condition": "state.check < 10"},
            {"from_node_id": "check", "to_node_id": "large", "condition": "state.check > 100"},
        ],
    });
    for (field, value) in more.as_object().expect("fields") {
        document[field] = value.clone();
    }
    document
}

#[test]
fn a_token_whose_conditions_are_all_false_fails_and_says_which() {
    let mut run = Driver::start(choice(json!({})));
    run.succeed("t1@1", json!(50)).assert_status(
        "failed no_transition/validation: no transition of node check matched: t1 (state.check < 10 is false), \
         t2 (state.check > 100 is false). Add one without a condition and with a higher priority number, or write \
         \"on_no_match\": \"end\" if the path may end here",
    );
    assert_eq!(run.row("t1").output, Some(json!(50)), "its result is kept");
}

#[test]
fn the_message_of_a_dead_end_names_a_few_transitions() {
    let mut document = choice(json!({}));
    document["transitions"] = (0..20)
        .map(|n| json!({"from_node_id": "check", "to_node_id": "small", "condition": format!("state.check == {n}")}))
        .collect();
    let mut run = Driver::start(document);
    run.succeed("t1@1", json!(50));
    let line = run.status_line();
    assert!(
        line.contains("t8 (state.check == 7 is false), and 12 more."),
        "{line}"
    );
}

#[test]
fn a_dead_end_takes_the_failure_transitions() {
    let mut document = choice(json!({}));
    document["transitions"]
        .as_array_mut()
        .expect("transitions")
        .push(json!({"from_node_id": "check", "to_node_id": "mend", "on": "failure"}));
    let mut run = Driver::start(document);
    run.succeed("t1@1", json!(50))
        .assert_status("running mend:executing");
    run.succeed("t2@1", json!("mended")).assert_status("completed {}");
}

#[test]
fn a_node_decides_before_its_workflow_what_a_dead_end_does() {
    let mut document = choice(json!({"on_no_match": "end"}));
    Driver::start(document.clone())
        .succeed("t1@1", json!(50))
        .assert_status("completed {}");
    document["nodes"][0]["on_no_match"] = json!("fail");
    let mut run = Driver::start(document);
    run.succeed("t1@1", json!(50));
    assert!(run.status_line().starts_with("failed no_transition"));
}

#[test]
fn used_up_iterations_are_a_dead_end() {
    let document = json!({
        "nodes": [{"id": "poll", "action_id": "work"}],
        "transitions": [{"id": "again", "from_node_id": "poll", "to_node_id": "poll", "loop_config": {"max_iterations": 1}}],
    });
    let mut run = Driver::start(document);
    run.succeed("t1@1", json!(1)).succeed("t2@1", json!(1));
    let line = run.status_line();
    assert!(line.contains("again (its 1 iterations are used up)"), "{line}");
}

#[test]
fn an_empty_list_is_no_dead_end() {
    let mut run = Driver::start(json!({
        "nodes": [{"id": "a", "action_id": "work"}, {"id": "each", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "each", "foreach": {"collection": "state.a"}}],
    }));
    run.succeed("t1@1", json!([])).assert_status("completed {}");
}

/// Builds before `on_no_match` stored snapshots without it.
#[test]
fn a_snapshot_of_an_earlier_build_ends_the_path() {
    let mut stored = store_document(&complete_document(choice(json!({}))));
    stored
        .workflow
        .as_object_mut()
        .expect("a document")
        .remove("on_no_match");
    let (run, decision) = create_run(START, SETTINGS, stored, json!({"x": 1}));
    let mut run = Driver::of(run, decision, SETTINGS);
    run.succeed("t1@1", json!(50)).assert_status("completed {}");
}

#[test]
fn iterations_are_counted_per_path() {
    let mut run = Driver::start(json!({
        "nodes": [{"id": "a"}, {"id": "b", "action_id": "work"}, {"id": "c", "action_id": "work"}],
        "transitions": [
            {"from_node_id": "a", "to_node_id": "b"}, {"from_node_id": "a", "to_node_id": "c"},
            {"id": "back-b", "from_node_id": "b", "to_node_id": "b", "loop_config": {"max_iterations": 1}},
            {"id": "from-c", "from_node_id": "c", "to_node_id": "b"},
        ],
        "on_no_match": "end",
    }));
    run.succeed("t2@1", json!(1)); // t4, by back-b
    run.succeed("t3@1", json!(1)); // t5, by from-c: has not looped yet
    run.succeed("t4@1", json!(1));
    assert_eq!(run.lines_of("dispatch"), Vec::<String>::new());
    run.succeed("t5@1", json!(1)).check(
        r#"
        context state.b = 1
        token t5 b completed@1 1
        token t6 b executing@1 watch 31000
        dispatch t6@1 {"x":1}
    "#,
    );
}
