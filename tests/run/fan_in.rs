//! When a join fires or fails, and what happens to late branches. A join creates exactly one continuation.

use curfew::run::TokenStatus;
use serde_json::{Value, json};

use super::driver::Driver;
use super::graphs::{and, fan, joining, three};

/// The number of tokens ever created at `z`, the node after the join.
pub fn continuations(run: &Driver) -> usize {
    let at_z = |(_, row): &&(String, String)| row.contains("\"node_id\":\"z\"");
    run.store.tokens.values().filter(at_z).count()
}

pub fn status_of(run: &Driver, token: u64) -> &str {
    &run.store.tokens[&token].0
}

#[test]
fn all_waits_for_the_last_branch_then_merges_and_continues_with_one_token() {
    let mut run = Driver::start(three(json!({"timeout_ms": 5_000})));
    run.at(2_000).succeed("t3@1", json!("two")).check(
        "
        token t3 b waiting_for_siblings@1 [1.1] \"two\"
        instance 1 out of 3 join z from 2000 until 7000
        alarm 7000
    ",
    );
    run.at(3_000).succeed("t2@1", json!("one")).check(
        "
        token t2 b waiting_for_siblings@1 [1.0] \"one\"
    ",
    );
    run.at(4_000).succeed("t4@1", json!("three"));
    assert_eq!(
        run.lines_of("context"),
        ["context state.all = [\"one\",\"two\",\"three\"]"]
    );
    assert_eq!(
        run.lines_of("instance"),
        ["instance 1 out of 3 join z from 2000 until 7000 fired 4000 closed"]
    );
    assert_eq!(run.lines_of("dispatch"), ["dispatch t5@1 {\"x\":1}"]);
    for token in [2, 3, 4] {
        assert_eq!(status_of(&run, token), "completed");
    }
    run.assert_status("running z:executing")
        .succeed("t5@1", json!("end"));
    run.assert_status("completed {}");
}

#[test]
fn any_fires_with_the_first_and_abandons_the_rest() {
    let mut run = Driver::start(three(json!({"strategy": "any"})));
    run.succeed("t3@1", json!("fast"))
        .assert_status("running z:executing");
    // Their calls are not aborted, and their reports are ignored.
    assert_eq!(run.lines_of("abort"), [""; 0]);
    assert_eq!(
        [status_of(&run, 2), status_of(&run, 4)],
        ["cancelled", "cancelled"]
    );
    run.succeed("t2@1", json!("late")).check(
        "
            rejected stale_attempt t2@1
            event late_result_discarded t2",
    );
    assert_eq!(run.state(), &json!({"all": ["fast"]}));
    assert_eq!(continuations(&run), 1);
}

#[test]
fn m_of_n_fires_with_the_mth() {
    let mut run = Driver::start(three(json!({"strategy": {"m_of_n": 2}})));
    run.succeed("t4@1", json!("c"))
        .assert_status("running 2xb:executing b:waiting_for_siblings");
    run.fail("t3@1")
        .assert_status("running b:executing b:waiting_for_siblings");
    run.succeed("t2@1", json!("a"))
        .assert_status("running z:executing");
    assert_eq!(run.state(), &json!({"all": ["a", "c"]}));
}

#[test]
fn an_unreachable_quorum_fails_immediately_and_stops_the_rest() {
    let mut run = Driver::start(three(json!({"strategy": {"m_of_n": 2}})));
    run.succeed("t2@1", json!(1))
        .fail("t3@1")
        .assert_status("running b:executing b:waiting_for_siblings");
    run.fail("t4@1").assert_status(
        "failed fan_in_failed/server_error: fan-in at node z cannot be met: 1 of 3 branches completed, 0 may still and it needs 2; last error: status 500",
    );
    assert_eq!(continuations(&run), 0);
    let mut run = Driver::start(three(json!({"strategy": {"m_of_n": 2}})));
    run.fail("t3@1").fail("t4@1");
    assert_eq!(run.lines_of("abort"), ["abort t2@1"]);
    assert!(
        run.status_line().starts_with("failed fan_in_failed"),
        "{}",
        run.status_line()
    );
}

#[test]
fn any_fails_only_when_every_branch_has() {
    let mut run = Driver::start(three(json!({"strategy": "any"})));
    run.fail("t2@1").fail("t3@1").assert_status("running b:executing");
    run.fail("t4@1").assert_status(
        "failed fan_in_failed/server_error: fan-in at node z cannot be met: 0 of 3 branches completed, 0 may still and it needs 1; last error: status 500",
    );
}

#[test]
fn all_fails_with_its_first_failed_branch() {
    let mut run = Driver::start(three(json!({})));
    run.succeed("t2@1", json!(1));
    run.fail("t3@1").assert_status(
        "failed fan_in_failed/server_error: fan-in at node z cannot be met: 1 of 3 branches completed, 1 may still and it needs 3; last error: status 500",
    );
    assert_eq!(run.lines_of("abort"), ["abort t4@1"]);
    assert_eq!(
        [status_of(&run, 2), status_of(&run, 3), status_of(&run, 4)],
        ["cancelled", "failed", "cancelled"]
    );
}

#[test]
fn all_may_proceed_with_the_completed_branches() {
    let mut run = Driver::start(three(json!({"on_branch_failure": "proceed_with_available"})));
    run.fail("t2@1")
        .succeed("t3@1", json!("b"))
        .assert_status("running b:executing b:waiting_for_siblings");
    run.time_out("t4@1").assert_status("running z:executing");
    assert_eq!(run.state(), &json!({"all": ["b"]}));
    let mut run = Driver::start(three(json!({"on_branch_failure": "proceed_with_available"})));
    run.fail("t2@1").fail("t3@1").fail("t4@1").assert_status(
        "failed fan_in_failed/server_error: fan-in at node z cannot be met: 0 of 3 branches completed, 0 may still and it needs 1; last error: status 500",
    );
}

/// A branch of several nodes counts as one branch.
#[test]
fn a_failed_branch_of_several_nodes_is_one_branch_less() {
    let document = |join: Value| {
        json!({
            "nodes": [{"id": "a"}, {"id": "b", "action_id": "work"}, {"id": "c", "action_id": "work"},
                      {"id": "d", "action_id": "work"}, {"id": "z", "action_id": "work"}],
            "transitions": [
                {"id": "out", "from_node_id": "a", "to_node_id": "b", "spawn_count": 2},
                {"from_node_id": "b", "to_node_id": "c"},
                {"from_node_id": "c", "to_node_id": "d"},
                {"from_node_id": "d", "to_node_id": "z", "synchronization": joining("out", join)},
            ],
        })
    };
    let walk = |run: &mut Driver| {
        run.succeed("t2@1", json!(1)).succeed("t3@1", json!(1));
        run.succeed("t4@1", json!(1)).succeed("t5@1", json!(1));
    };
    let mut run = Driver::start(document(json!({})));
    walk(&mut run);
    run.fail("t6@1");
    assert!(
        run.status_line().starts_with("failed fan_in_failed"),
        "{}",
        run.status_line()
    );
    let mut run = Driver::start(document(json!({"on_branch_failure": "proceed_with_available"})));
    walk(&mut run);
    run.succeed("t7@1", json!(1))
        .fail("t6@1")
        .assert_status("running z:executing");
}

#[test]
fn cancel_aborts_running_branches() {
    let mut run = Driver::start(three(json!({"strategy": "any", "on_early_complete": "cancel"})));
    run.succeed("t3@1", json!(1)).assert_status("running z:executing");
    assert_eq!(run.lines_of("abort"), ["abort t2@1", "abort t4@1"]);
    assert_eq!(
        [status_of(&run, 2), status_of(&run, 4)],
        ["cancelled", "cancelled"]
    );
}

#[test]
fn allow_late_merge_merges_late_branches_and_the_run_waits_for_them() {
    let join = json!({"strategy": "any", "on_early_complete": "allow_late_merge"});
    let mut run = Driver::start(three(join));
    run.succeed("t3@1", json!("first"))
        .assert_status("running 2xb:executing z:executing");
    run.succeed("t5@1", json!("z"))
        .assert_status("running 2xb:executing");
    run.reload()
        .succeed("t4@1", json!("late"))
        .assert_status("running b:executing");
    assert_eq!(run.state()["all"], json!(["first", "late"]));
    run.fail("t2@1").assert_status("completed {}");
    assert_eq!(continuations(&run), 1);
    assert_eq!(
        [status_of(&run, 2), status_of(&run, 3), status_of(&run, 4)],
        ["failed", "completed", "completed"]
    );
}

#[test]
fn an_arrival_by_a_failure_route_does_not_count() {
    let document = |join: Value| {
        and(
            fan(json!({"spawn_count": 2}), join.clone()),
            json!({"from_node_id": "b", "to_node_id": "z", "on": "failure", "synchronization": joining("out", join)}),
        )
    };
    let mut run = Driver::start(document(json!({})));
    run.fail("t2@1");
    assert!(
        run.status_line().starts_with("failed fan_in_failed"),
        "{}",
        run.status_line()
    );
    let join = json!({"on_branch_failure": "proceed_with_available", "merge": {"target": "state.all"}});
    let mut run = Driver::start(document(join));
    run.fail("t2@1")
        .reload()
        .succeed("t3@1", json!("good"))
        .assert_status("running z:executing");
    assert_eq!(run.state(), &json!({"all": ["good"]}));
    assert_eq!([status_of(&run, 2), status_of(&run, 3)], ["failed", "completed"]);
}

#[test]
fn a_branch_that_recovers_on_its_failure_transition_counts() {
    let mut document = and(
        and(
            three(json!({})),
            json!({"from_node_id": "b", "to_node_id": "mend", "on": "failure"}),
        ),
        json!({"from_node_id": "mend", "to_node_id": "z",
            "synchronization": joining("out", json!({"merge": {"target": "state.all"}}))}),
    );
    document["nodes"]
        .as_array_mut()
        .expect("nodes")
        .push(json!({"id": "mend", "action_id": "work",
        "input_mapping": "${error.message}"}));
    let mut run = Driver::start(document);
    run.succeed("t2@1", json!(1))
        .succeed("t4@1", json!(3))
        .fail("t3@1");
    assert_eq!(run.lines_of("dispatch"), ["dispatch t5@1 \"status 500\""]);
    run.assert_status("running 2xb:waiting_for_siblings mend:executing");
    run.succeed("t5@1", json!("mended"))
        .assert_status("running z:executing");
    assert_eq!(run.state(), &json!({"all": [1, "mended", 3]}));
}

#[test]
fn a_branch_that_ends_its_path_elsewhere_did_not_complete() {
    let mut document = three(json!({}));
    document["transitions"][1]["condition"] = json!("_branch.output != \"away\"");
    document["on_no_match"] = json!("end");
    let mut run = Driver::start(document);
    run.succeed("t2@1", json!(1)).succeed("t3@1", json!("away")).assert_status(
        "failed fan_in_failed/permanent: fan-in at node z cannot be met: 1 of 3 branches completed, 1 may still and it needs 3",
    );
}

#[test]
fn a_token_of_another_group_passes() {
    let document = json!({
        "nodes": [{"id": "a"}, {"id": "b", "action_id": "work"}, {"id": "c", "action_id": "work"},
                  {"id": "z", "action_id": "work"}],
        "transitions": [
            {"id": "out", "from_node_id": "a", "to_node_id": "b", "spawn_count": 2},
            {"id": "side", "from_node_id": "a", "to_node_id": "c"},
            {"from_node_id": "b", "to_node_id": "z", "synchronization": joining("out", json!({}))},
            {"from_node_id": "c", "to_node_id": "z", "synchronization": joining("out", json!({}))},
        ],
    });
    let mut run = Driver::start(document);
    let side = run
        .run
        .live_tokens()
        .find(|token| token.branch.is_none())
        .expect("one is in no branch")
        .id;
    run.succeed(&format!("{side}@1"), json!(1))
        .assert_status("running 2xb:executing z:executing");
}

#[test]
fn two_last_arrivals_create_one_continuation() {
    let mut run = Driver::start(three(json!({"strategy": {"m_of_n": 2}})));
    run.succeed("t2@1", json!(1))
        .succeed("t3@1", json!(2))
        .succeed("t4@1", json!(3));
    run.check(
        "
        rejected stale_attempt t4@1
        event late_result_discarded t4",
    );
    run.succeed("t3@1", json!(2)).check(
        "
        rejected stale_attempt t3@1
        event late_result_discarded t3",
    );
    assert_eq!(continuations(&run), 1);
}

/// A branch with two tokens counts as one branch: the second arrival changes nothing.
#[test]
fn a_branch_arrives_once() {
    let document = json!({
        "nodes": [{"id": "a"}, {"id": "b"}, {"id": "c", "action_id": "work"}, {"id": "d", "action_id": "work"},
                  {"id": "z", "action_id": "work"}],
        "transitions": [
            {"id": "out", "from_node_id": "a", "to_node_id": "b", "spawn_count": 2},
            {"from_node_id": "b", "to_node_id": "c"},
            {"from_node_id": "b", "to_node_id": "d"},
            {"from_node_id": "c", "to_node_id": "z", "synchronization": joining("out", json!({"merge": {"target": "state.all"}}))},
            {"from_node_id": "d", "to_node_id": "z", "synchronization": joining("out", json!({"merge": {"target": "state.all"}}))},
        ],
    });
    let mut run = Driver::start(document);
    run.succeed("t4@1", json!("c0")).succeed("t5@1", json!("d0"));
    assert_eq!(
        run.lines_of("token"),
        ["token t5 d completed@1 [1.0] (branch_arrived_before) \"d0\""]
    );
    run.assert_status("running c:executing c:waiting_for_siblings d:executing");
    run.reload()
        .succeed("t7@1", json!("d1"))
        .assert_status("running z:executing");
    assert_eq!(run.state(), &json!({"all": ["c0", "d1"]}));
    assert_eq!(continuations(&run), 1);
}

#[test]
fn a_partly_filled_join_continues_after_a_reload() {
    let mut run = Driver::start(three(json!({"timeout_ms": 5_000})));
    run.succeed("t3@1", json!("b"))
        .at(2_000)
        .succeed("t2@1", json!("a"));
    run.reload()
        .at(3_000)
        .succeed("t4@1", json!("c"))
        .assert_status("running z:executing");
    assert_eq!(run.state(), &json!({"all": ["a", "b", "c"]}));
    // The deadline is still counted from the first arrival after a reload.
    let mut run = Driver::start(three(json!({"timeout_ms": 5_000})));
    run.succeed("t3@1", json!("b")).reload();
    assert_eq!(run.run.next_deadline(), Some(6_000));
    run.at(6_000)
        .wake("t2@1 t4@1")
        .assert_status("failed sync_timeout/timeout: Synchronization timeout exceeded");
}

/// The error of a failed join survives a reload of the object.
#[test]
fn the_reason_of_a_failed_branch_survives_a_reload() {
    // The last branch ends without a failure of its own, so the failed branch is the reason.
    let mut document = three(json!({"strategy": {"m_of_n": 2}}));
    document["transitions"][1]["condition"] = json!("_branch.output != \"away\"");
    document["on_no_match"] = json!("end");
    let mut run = Driver::start(document);
    run.fail("t2@1").reload().succeed("t4@1", json!("away")).assert_status(
        "failed fan_in_failed/server_error: fan-in at node z cannot be met: 0 of 3 branches completed, 1 may still and it needs 2; last error: status 500",
    );
}

#[test]
fn rows_of_joined_tokens_keep_their_group() {
    let mut run = Driver::start(three(json!({})));
    for attempt in ["t2@1", "t3@1", "t4@1"] {
        run.succeed(attempt, json!(1));
    }
    for token in [2, 3, 4] {
        let row: Value = serde_json::from_str(&run.store.tokens[&token].1).expect("rows are JSON");
        assert_eq!(row["branch"]["group"], json!("out"), "t{token}");
        assert_eq!(row["branch"]["total"], json!(3), "t{token}");
    }
}

/// An attempt that begins and ends in one decision is neither dispatched nor aborted.
#[test]
fn an_attempt_that_ends_before_its_call_is_not_dispatched() {
    for (policy, form) in [
        ("abandon", "action_id"),
        ("cancel", "action_id"),
        ("abandon", "workflow_id"),
        ("cancel", "workflow_id"),
    ] {
        let join = json!({"strategy": "any", "on_early_complete": policy});
        let work = if form == "action_id" { "work" } else { "child" };
        let mut run = Driver::start(json!({
            "nodes": [{"id": "a"}, {"id": "b", form: work}, {"id": "c"}, {"id": "z", "action_id": "work"}],
            "transitions": [
                {"from_node_id": "a", "to_node_id": "b", "sibling_group": "g"},
                {"from_node_id": "a", "to_node_id": "c", "sibling_group": "g"},
                {"from_node_id": "b", "to_node_id": "z", "synchronization": joining("g", join.clone())},
                {"from_node_id": "c", "to_node_id": "z", "synchronization": joining("g", join)},
            ],
        }));
        run.assert_status("running z:executing");
        assert_eq!(
            run.lines_of("dispatch"),
            ["dispatch t4@1 {\"x\":1}"],
            "{policy} {form}"
        );
        for word in ["abort", "deliver", "message"] {
            assert_eq!(run.lines_of(word), [""; 0], "{policy} {form}");
        }
    }
}

/// Branches of an inner fan-out that may go to the outer join past the inner one.
fn past_the_inner_join(outer: serde_json::Value) -> serde_json::Value {
    json!({
        "nodes": [{"id": "a"}, {"id": "b"}, {"id": "c", "action_id": "work"}, {"id": "d"}, {"id": "z", "action_id": "work"}],
        "transitions": [
            {"id": "outer", "from_node_id": "a", "to_node_id": "b", "spawn_count": 2},
            {"id": "inner", "from_node_id": "b", "to_node_id": "c", "spawn_count": 2},
            {"from_node_id": "c", "to_node_id": "z", "synchronization": outer, "condition": "_branch.output == \"past\""},
            {"from_node_id": "c", "to_node_id": "d", "priority": 1, "synchronization": joining("inner", json!({}))},
            {"from_node_id": "d", "to_node_id": "z", "synchronization": outer},
        ],
    })
}

#[test]
fn a_failed_inner_join_takes_back_the_arrival_of_its_branch_at_the_outer_one() {
    let mut run = Driver::start(past_the_inner_join(joining("outer", json!({}))));
    run.succeed("t4@1", json!("past"));
    assert_eq!(run.row("t4").status, TokenStatus::WaitingForSiblings);
    run.fail("t5@1");
    assert_eq!(run.row("t4").status, TokenStatus::Cancelled);
    let line = run.status_line();
    assert!(
        line.starts_with("failed fan_in_failed") && line.contains("node z cannot be met: 0 of 2"),
        "{line}"
    );
}

#[test]
fn the_outer_join_goes_on_without_a_branch_whose_inner_join_failed() {
    let outer = joining("outer", json!({"on_branch_failure": "proceed_with_available"}));
    let mut run = Driver::start(past_the_inner_join(outer));
    run.succeed("t4@1", json!("past")).fail("t5@1").reload();
    run.succeed("t6@1", json!(1)).succeed("t7@1", json!(2));
    run.assert_status("running z:executing");
}
