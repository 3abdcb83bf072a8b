//! Resuming a run that ended during a fan-out: siblings keep their results and their order, joins wait again, and exactly
//! one token continues after each.

use curfew::run::{RetryMode, TokenStatus};
use serde_json::{Value, json};

use super::driver::Driver;
use super::graphs::{fan, joining, nested, three, with};

pub(super) fn limited(document: Value) -> Value {
    with(document, json!({"timeout_ms": 60_000}))
}

pub(super) fn tokens_at(run: &Driver, node: &str) -> usize {
    let tokens = run.past().tokens.into_iter();
    tokens.filter(|token| &*token.node_id == node).count()
}

#[test]
fn a_join_of_all_that_failed_waits_for_the_failed_branch_again() {
    let mut run = Driver::start(limited(three(json!({"timeout_ms": 20_000}))));
    run.succeed("t4@1", json!("c")).at(2_000).fail("t2@1");
    run.assert_status(
        "failed fan_in_failed/server_error: fan-in at node z cannot be met: 1 of 3 branches completed, 1 may still and it needs 3; last error: status 500",
    );
    run.reload().at(9_000).retry(RetryMode::RetryStep).check(
        r#"
        run running until 69000
        token t5 b executing@1 [1.0] watch 39000 (resumed)
        token t6 b executing@1 [1.1] watch 39000 (resumed)
        token t7 b waiting_for_siblings@1 [1.2] (resumed) "c"
        instance 1 out of 3 join z from 1000 until 29000
        event run_retried retry_step
        dispatch t5@1 {"x":1}
        dispatch t6@1 {"x":1}
        announce
    "#,
    );
    run.reload()
        .succeed("t6@1", json!("b"))
        .succeed("t5@1", json!("a"));
    run.assert_status("running z:executing");
    assert_eq!(run.state()["all"], json!(["a", "b", "c"]));
    assert_eq!(tokens_at(&run, "z"), 1);
    run.succeed("t8@1", json!(0)).assert_status("completed {}");
}

/// `last_wins` goes by the original order of arrivals, not by that of the retry.
#[test]
fn waiting_siblings_keep_their_order() {
    let merge = json!({"merge": {"target": "state.last", "strategy": "last_wins"}});
    let mut run = Driver::start(limited(fan(json!({"spawn_count": 3}), merge)));
    run.succeed("t4@1", json!("first"))
        .succeed("t2@1", json!("second"))
        .fail("t3@1");
    run.reload().retry(RetryMode::RetryStep);
    run.assert_status("running b:executing 2xb:waiting_for_siblings");
    run.fail("t6@1").reload().retry(RetryMode::RetryStep);
    run.succeed("t9@1", json!("third"))
        .assert_status("running z:executing");
    assert_eq!(run.state()["last"], json!("third"));
    let mut run = Driver::start(limited(fan(
        json!({"spawn_count": 3}),
        json!({"on_branch_failure": "proceed_with_available",
            "merge": {"target": "state.last", "strategy": "last_wins"}}),
    )));
    run.succeed("t4@1", json!("first"))
        .succeed("t2@1", json!("second"));
    run.at(61_000).wake("").reload().retry(RetryMode::RetryStep);
    run.fail("t6@1").assert_status("running z:executing");
    assert_eq!(run.state()["last"], json!("second"));
}

#[test]
fn a_join_that_timed_out_waits_again_from_the_retry_on() {
    let mut run = Driver::start(limited(three(json!({"timeout_ms": 5_000}))));
    run.succeed("t3@1", json!("b")).at(6_000).wake("t2@1 t4@1");
    run.assert_status("failed sync_timeout/timeout: Synchronization timeout exceeded");
    run.reload().at(20_000).retry(RetryMode::RetryStep);
    run.assert_status("running 2xb:executing b:waiting_for_siblings");
    assert_eq!(
        run.lines_of("instance"),
        ["instance 1 out of 3 join z from 1000 until 25000"]
    );
    run.at(25_000).wake("t5@1 t7@1");
    run.assert_status("failed sync_timeout/timeout: Synchronization timeout exceeded");
    let waited: Vec<u64> = run
        .records()
        .iter()
        .map(|it| it.timeout_event.elapsed_ms)
        .collect();
    assert_eq!(
        waited,
        [5_000, 5_000],
        "a wait is measured from its own beginning"
    );
    run.reload().at(30_000).retry(RetryMode::RetryStep);
    run.succeed("t8@1", json!("a"))
        .succeed("t10@1", json!("c"))
        .assert_status("running z:executing");
    assert_eq!(run.state()["all"], json!(["a", "b", "c"]));
    assert_eq!(tokens_at(&run, "z"), 1);
}

#[test]
fn an_inner_join_that_failed_is_resumed_inside_its_branch() {
    let mut run = Driver::start(limited(nested(json!({}), json!({}))));
    run.succeed("t4@1", json!("a"))
        .succeed("t6@1", json!("c"))
        .succeed("t7@1", json!("d"));
    run.assert_status("running c:executing c:waiting_for_siblings d:waiting_for_siblings");
    run.fail("t5@1");
    assert!(
        run.status_line().starts_with("failed fan_in_failed"),
        "{}",
        run.status_line()
    );
    run.reload().retry(RetryMode::RetryStep);
    run.assert_status("running c:executing c:waiting_for_siblings d:waiting_for_siblings");
    let failed = run
        .past()
        .tokens
        .into_iter()
        .find(|token| token.status == TokenStatus::Executing);
    let again = failed.expect("one is under way").id;
    run.reload()
        .succeed(&format!("{again}@1"), json!("b"))
        .assert_status("running z:executing");
    assert_eq!(run.state()["all"], json!([["a", "b"], ["c", "d"]]));
    assert_eq!(
        (tokens_at(&run, "z"), tokens_at(&run, "d")),
        (1, 3),
        "t6, t7 are not joined again"
    );
}

/// The branch failed first; the run ended later, when the quorum was out of reach.
#[test]
fn a_branch_that_failed_in_an_earlier_commit_is_resumed_as_well() {
    let mut run = Driver::start(limited(three(json!({"strategy": {"m_of_n": 2}}))));
    run.fail("t2@1").assert_status("running 2xb:executing");
    run.reload().at(2_000).fail("t3@1");
    assert!(
        run.status_line().starts_with("failed fan_in_failed"),
        "{}",
        run.status_line()
    );
    run.reload()
        .retry(RetryMode::RetryStep)
        .assert_status("running 3xb:executing");
    run.succeed("t5@1", json!("a"))
        .succeed("t6@1", json!("b"))
        .assert_status("running z:executing");
    assert_eq!(run.state()["all"], json!(["a", "b"]));
}

#[test]
fn a_branch_of_several_nodes_continues_from_the_failed_one() {
    let mut document = limited(three(json!({"strategy": {"m_of_n": 2}})));
    document["nodes"] = json!([{"id": "a"}, {"id": "s", "action_id": "work"}, {"id": "b", "action_id": "work"},
        {"id": "z", "action_id": "work"}]);
    document["transitions"][0]["to_node_id"] = json!("s");
    document["transitions"]
        .as_array_mut()
        .expect("transitions")
        .push(json!({"from_node_id": "s", "to_node_id": "b"}));
    let mut run = Driver::start(document);
    run.succeed("t2@1", json!(0)).fail("t5@1").fail("t3@1");
    run.reload()
        .retry(RetryMode::RetryStep)
        .assert_status("running b:executing 2xs:executing");
}

#[test]
fn a_merge_that_failed_is_retried_at_once() {
    let mut document = limited(three(
        json!({"merge": {"target": "state.all", "source": "_branch.output.n"}}),
    ));
    document["nodes"][1]["output_mapping"] = json!({"_branch.output": "${result}"});
    let mut run = Driver::start(document);
    run.succeed("t2@1", json!({"n": 1}))
        .succeed("t3@1", json!({"n": 2}))
        .succeed("t4@1", json!({}));
    assert!(
        run.status_line().starts_with("failed expression_failed"),
        "{}",
        run.status_line()
    );
    // All had arrived: the join is evaluated at once, fails again, and the run can be resumed again.
    run.reload().retry(RetryMode::RetryStep);
    assert!(
        run.status_line().starts_with("failed expression_failed"),
        "{}",
        run.status_line()
    );
    assert_eq!(run.kinds(), "run_failed run_retried run_failed");
    run.reload().retry(RetryMode::RetryStep);
    assert_eq!(run.run.header.ends, 3);
    assert_eq!(tokens_at(&run, "z"), 0);
}

/// A token that failed and took its failure route is not resumed, but what its route led to is.
#[test]
fn a_token_before_a_failure_route_into_a_fan_out_is_not_resumed() {
    let document = limited(json!({
        "nodes": [{"id": "a"}, {"id": "b", "action_id": "work"}, {"id": "c", "action_id": "work"}, {"id": "d"},
                  {"id": "z", "action_id": "work"}],
        "transitions": [
            {"id": "outer", "from_node_id": "a", "to_node_id": "b", "spawn_count": 2},
            {"id": "inner", "from_node_id": "b", "to_node_id": "c", "spawn_count": 2, "on": "failure"},
            {"from_node_id": "c", "to_node_id": "d", "synchronization": joining("inner", json!({}))},
            {"from_node_id": "b", "to_node_id": "z", "synchronization": joining("outer", json!({"strategy": "any"}))},
        ],
    }));
    let mut run = Driver::start(document);
    run.fail("t2@1")
        .assert_status("running b:executing 2xc:executing");
    // The inner join fails and with it the first branch; only the second branch is left.
    run.fail("t4@1")
        .assert_status("running b:executing")
        .fail("t3@1")
        .assert_status("running 2xc:executing");
    run.fail("t6@1");
    assert!(
        run.status_line().starts_with("failed fan_in_failed"),
        "{}",
        run.status_line()
    );
    run.reload()
        .retry(RetryMode::RetryStep)
        .assert_status("running 4xc:executing");
}

#[test]
fn a_restart_after_a_retry_leaves_no_branch_behind() {
    let mut run = Driver::start(limited(three(json!({}))));
    run.succeed("t2@1", json!(1))
        .fail("t3@1")
        .reload()
        .retry(RetryMode::RetryStep);
    run.restart().assert_status("running 3xb:executing").reload();
    let live: Vec<String> = run
        .run
        .live_tokens()
        .map(|token| format!("{}@1", token.id))
        .collect();
    for attempt in &live {
        run.succeed(attempt, json!(9));
    }
    run.assert_status("running z:executing");
    assert_eq!(run.state()["all"], json!([9, 9, 9]));
}
