//! Fan-outs inside branches: an inner join merges into its enclosing branch, and enclosing joins handle inner failures.

use serde_json::{Value, json};

use super::driver::Driver;
use super::graphs::{joining, nested, with};

// Tokens of `nested`: t2, t3 are the outer branches at b; t4, t5 the inner ones of branch 0 at c, t6, t7 of branch 1.

#[test]
fn an_inner_join_merges_into_its_parent_branch() {
    let mut run = Driver::start(nested(json!({}), json!({})));
    run.assert_status("running 4xc:executing");
    assert_eq!(
        run.lines_of("instance"),
        [
            "instance 1 outer of 2",
            "instance 2 inner of 2",
            "instance 3 inner of 2"
        ]
    );
    run.succeed("t7@1", json!("d"))
        .succeed("t4@1", json!("a"))
        .succeed("t5@1", json!("b"));
    run.assert_status("running c:executing c:waiting_for_siblings d:waiting_for_siblings");
    run.succeed("t6@1", json!("c"))
        .assert_status("running z:executing");
    assert_eq!(run.state(), &json!({"all": [["a", "b"], ["c", "d"]]}));
}

#[test]
fn nested_joins_continue_after_a_reload_at_every_step() {
    let mut run = Driver::start(nested(json!({}), json!({})));
    for (attempt, result) in [("t7@1", "d"), ("t4@1", "a"), ("t5@1", "b"), ("t6@1", "c")] {
        run.reload().succeed(attempt, json!(result));
    }
    run.reload().assert_status("running z:executing");
    assert_eq!(run.state(), &json!({"all": [["a", "b"], ["c", "d"]]}));
    let last = run.run.live_tokens().next().expect("z is under way").id;
    run.succeed(&format!("{last}@1"), json!(1))
        .assert_status("completed {}");
}

#[test]
fn an_inner_failure_ends_the_outer_branch_and_the_outer_join_decides() {
    let mut run = Driver::start(nested(
        json!({}),
        json!({"on_branch_failure": "proceed_with_available"}),
    ));
    run.succeed("t4@1", json!("a")).fail("t5@1");
    // Branch 0 has ended; branch 1 continues.
    run.assert_status("running 2xc:executing");
    run.succeed("t6@1", json!("c"))
        .succeed("t7@1", json!("d"))
        .assert_status("running z:executing");
    assert_eq!(run.state(), &json!({"all": [["c", "d"]]}));
    let mut run = Driver::start(nested(json!({}), json!({})));
    run.fail("t4@1").assert_status(
        "failed fan_in_failed/server_error: fan-in at node z cannot be met: 0 of 2 branches completed, 1 may still and it needs 2; last error: fan-in at node d cannot be met: 0 of 2 branches completed, 1 may still and it needs 2; last error: status 500",
    );
}

#[test]
fn nested_joins_have_deadlines_of_their_own() {
    let inner = json!({"timeout_ms": 2_000, "on_timeout": "proceed_with_available"});
    let outer = json!({"timeout_ms": 10_000});
    let mut run = Driver::start(nested(inner, outer));
    run.succeed("t4@1", json!("a"))
        .at(2_000)
        .succeed("t6@1", json!("c"));
    assert_eq!(run.run.next_deadline(), Some(3_000));
    run.at(3_000)
        .wake("t5@1 t7@1")
        .assert_status("running c:executing c:waiting_for_siblings d:waiting_for_siblings");
    assert_eq!(run.run.next_deadline(), Some(4_000));
    run.reload()
        .at(4_000)
        .wake("t7@1")
        .assert_status("running z:executing");
    assert_eq!(run.state(), &json!({"all": [["a"], ["c"]]}));
}

#[test]
fn an_inner_deadline_that_fails_ends_only_its_branch() {
    let inner = json!({"timeout_ms": 2_000});
    let outer = json!({"strategy": "any"});
    let mut run = Driver::start(nested(inner, outer));
    run.succeed("t4@1", json!("a"))
        .at(3_000)
        .wake("t5@1 t6@1 t7@1")
        .assert_status("running 2xc:executing");
    run.succeed("t6@1", json!("c"))
        .succeed("t7@1", json!("d"))
        .assert_status("running z:executing");
    assert_eq!(run.state(), &json!({"all": [["c", "d"]]}));
}

#[test]
fn an_outer_join_that_fires_ends_all_tokens_of_the_other_branches() {
    for (policy, aborted) in [("abandon", 0), ("cancel", 2)] {
        let outer = json!({"strategy": "any", "on_early_complete": policy});
        let mut run = Driver::start(nested(json!({}), outer));
        run.succeed("t4@1", json!("a"))
            .succeed("t5@1", json!("b"))
            .assert_status("running z:executing");
        assert_eq!(run.lines_of("abort").len(), aborted, "{policy}");
        assert_eq!(run.run.instances().count(), 0, "nothing is left to decide");
        run.succeed("t6@1", json!("c")).check(
            "
                rejected stale_attempt t6@1
                event late_result_discarded t6",
        );
    }
}

#[test]
fn a_continuation_keeps_the_branch_output_from_before_the_inner_fan_out() {
    let mut document = nested(json!({"merge": {"target": "_branch.output.parts"}}), json!({}));
    document["nodes"][1] = json!({"id": "b", "output_mapping": {"_branch.output.name": "${\"branch \" + string(_branch.index)}"}});
    let mut run = Driver::start(document);
    for token in ["t4@1", "t5@1", "t6@1", "t7@1"] {
        run.succeed(token, json!(token));
    }
    run.assert_status("running z:executing");
    assert_eq!(
        run.state()["all"],
        json!([{"name": "branch 0", "parts": ["t4@1", "t5@1"]}, {"name": "branch 1", "parts": ["t6@1", "t7@1"]}])
    );
}

/// Tokens of an inner fan-out without a join belong to the outer branch.
#[test]
fn a_branch_lasts_until_its_last_token_ends() {
    let document = |join: Value| {
        json!({
            "nodes": [{"id": "a"}, {"id": "b", "action_id": "work"}, {"id": "c", "action_id": "work"},
                      {"id": "z", "action_id": "work"}],
            "transitions": [
                {"id": "outer", "from_node_id": "a", "to_node_id": "b", "spawn_count": 2},
                {"from_node_id": "b", "to_node_id": "z", "condition": "_branch.index == 0", "synchronization": joining("outer", join)},
                {"id": "inner", "from_node_id": "b", "to_node_id": "c", "condition": "_branch.index == 1", "spawn_count": 2},
            ],
        })
    };
    let join = json!({"on_branch_failure": "proceed_with_available"});
    let mut run = Driver::start(document(join));
    run.succeed("t2@1", json!(1))
        .succeed("t3@1", json!(1))
        .assert_status("running b:waiting_for_siblings 2xc:executing");
    run.succeed("t4@1", json!(1))
        .reload()
        .assert_status("running b:waiting_for_siblings c:executing");
    run.succeed("t5@1", json!(1)).assert_status("running z:executing");
    let mut run = Driver::start(document(json!({})));
    run.succeed("t2@1", json!(1))
        .succeed("t3@1", json!(1))
        .fail("t4@1");
    run.assert_status("running b:waiting_for_siblings c:executing");
    run.succeed("t5@1", json!(1));
    assert!(
        run.status_line().starts_with("failed fan_in_failed"),
        "{}",
        run.status_line()
    );
}

#[test]
fn a_fan_out_in_a_loop_inside_a_branch_creates_an_instance_per_iteration() {
    let mut document = nested(json!({}), json!({}));
    let again = json!({"id": "again", "from_node_id": "d", "to_node_id": "b", "priority": -1,
        "loop_config": {"max_iterations": 1}});
    document["transitions"]
        .as_array_mut()
        .expect("transitions")
        .push(again);
    let mut run = Driver::start(document);
    let mut rounds = 0;
    while run
        .run
        .live_tokens()
        .any(|token| run.run.snapshot().workflow.nodes[token.node].id == "c")
    {
        let next = run
            .run
            .live_tokens()
            .find(|token| token.status == curfew::run::TokenStatus::Executing);
        let next = next.expect("an inner branch is under way").id;
        run.reload().succeed(&format!("{next}@1"), json!(next.0));
        rounds += 1;
        assert!(rounds < 20, "{}", run.status_line());
    }
    // Two outer branches, two iterations each, two inner branches per iteration.
    assert_eq!(rounds, 8);
    run.assert_status("running z:executing");
    let outer = run.state()["all"].as_array().cloned().unwrap_or_default();
    assert_eq!(outer.len(), 2);
    assert!(
        outer
            .iter()
            .all(|parts| parts.as_array().map(Vec::len) == Some(2 + 2)),
        "{outer:?}"
    );
}

#[test]
fn conditions_in_an_inner_branch_see_the_inner_branch() {
    let mut document = nested(json!({}), json!({}));
    document["nodes"][2] = with(
        document["nodes"][2].clone(),
        json!({"input_mapping": "${[_branch.index, _branch.total]}"}),
    );
    document["transitions"][1]["spawn_count"] = json!(3);
    let run = Driver::start(document);
    let orders = run.lines_of("dispatch");
    assert_eq!(orders.len(), 6);
    assert!(orders[5].contains("[2,3]"), "{orders:?}");
}

/// The token that waits at the outer join is in an inner branch, and still counts as a waiting sibling.
#[test]
fn a_waiting_token_from_further_inside_is_timed_out_with_the_join() {
    let mut run = Driver::start(json!({
        "nodes": [{"id": "a"}, {"id": "b"}, {"id": "c", "action_id": "work"}, {"id": "z", "action_id": "work"}],
        "transitions": [
            {"id": "out", "from_node_id": "a", "to_node_id": "b", "spawn_count": 2},
            {"id": "inner", "from_node_id": "b", "to_node_id": "c", "spawn_count": 1},
            {"from_node_id": "c", "to_node_id": "z", "synchronization": joining("out", json!({"timeout_ms": 5_000}))},
        ],
    }));
    run.succeed("t4@1", json!(1)).reload().at(6_000).wake("t5@1");
    run.assert_status("failed sync_timeout/timeout: Synchronization timeout exceeded");
    assert_eq!(run.store.tokens[&4].0, "timed_out");
    assert_eq!(run.store.tokens[&5].0, "timed_out");
}
