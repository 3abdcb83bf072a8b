//! Resuming a run whose joins had decided: a join that fired is not repeated, branches it did not wait for stay ended, and a
//! join that cannot fire fails again instead of looking like a success.

use curfew::run::{RetryMode, TokenStatus};
use serde_json::json;

use super::driver::Driver;
use super::graphs::{joining, nested, three};
use super::resume_joins::{limited, tokens_at};

#[test]
fn a_run_that_failed_after_a_join_continues_after_it() {
    let mut run = Driver::start(limited(three(json!({}))));
    for attempt in ["t2@1", "t3@1", "t4@1"] {
        run.succeed(attempt, json!(0));
    }
    run.fail("t5@1")
        .reload()
        .retry(RetryMode::RetryStep)
        .assert_status("running z:executing");
    assert_eq!(run.state()["all"], json!([0, 0, 0]));
    run.succeed("t6@1", json!(1)).assert_status("completed {}");
}

/// The join fires and the run ends in one commit: the instance stays closed.
#[test]
fn a_run_that_failed_in_the_commit_of_a_join_continues_after_it() {
    let mut document = limited(three(json!({})));
    document["nodes"][2] = json!({"id": "z", "action_id": "work", "input_mapping": "${state.missing.part}"});
    let mut run = Driver::start(document);
    for attempt in ["t2@1", "t3@1", "t4@1"] {
        run.succeed(attempt, json!(0));
    }
    assert!(
        run.status_line().starts_with("failed expression_failed"),
        "{}",
        run.status_line()
    );
    run.reload().retry(RetryMode::RetryStep);
    assert!(
        run.status_line().starts_with("failed expression_failed"),
        "{}",
        run.status_line()
    );
    assert_eq!(run.run.instances().count(), 0);
    assert!(run.instance_row(1).is_closed());
    assert_eq!(tokens_at(&run, "z"), 2, "one for each end, none twice");
}

/// The same inside a branch: the inner join has fired, and the branch that failed after it has ended.
#[test]
fn an_inner_join_that_had_fired_does_not_keep_its_branch_open() {
    let mut document = limited(nested(
        json!({}),
        json!({"on_branch_failure": "proceed_with_available"}),
    ));
    document["nodes"][3] = json!({"id": "d", "action_id": "work"});
    let mut run = Driver::start(document);
    // t2, t3 outer; t4..t7 inner. The first branch is joined and fails after its join.
    run.succeed("t4@1", json!(0))
        .succeed("t5@1", json!(0))
        .fail("t8@1")
        .assert_status("running 2xc:executing");
    run.at(61_000)
        .wake("")
        .reload()
        .at(62_000)
        .retry(RetryMode::RetryStep);
    // The outer join does not need it and had not failed, so the branch is not resumed.
    run.assert_status("running 2xc:executing");
    let inner: Vec<String> = run
        .run
        .live_tokens()
        .map(|token| format!("{}@1", token.id))
        .collect();
    run.succeed(&inner[0], json!(1)).succeed(&inner[1], json!(2));
    run.assert_status("running d:executing");
    let last = run.run.live_tokens().next().expect("d").id;
    run.succeed(&format!("{last}@1"), json!("second"))
        .assert_status("running z:executing");
    assert_eq!(run.state()["all"], json!(["second"]));
}

/// In one commit the inner join fires, the token after it fails, and with it the outer join and the run.
#[test]
fn an_inner_join_that_fired_in_the_commit_of_the_end_stays_closed() {
    let mut document = limited(nested(json!({}), json!({})));
    document["nodes"][3] =
        json!({"id": "d", "output_mapping": {"state.d": "${_branch.index == 0 ? state.missing : 0}"}});
    let mut run = Driver::start(document);
    run.succeed("t6@1", json!(0))
        .succeed("t7@1", json!(0))
        .succeed("t4@1", json!(0));
    run.assert_status("running c:executing c:waiting_for_siblings d:waiting_for_siblings");
    run.succeed("t5@1", json!(0));
    assert!(
        run.status_line().starts_with("failed fan_in_failed"),
        "{}",
        run.status_line()
    );
    // It fails again at once: nothing keeps its branch open.
    run.reload().retry(RetryMode::RetryStep);
    assert!(
        run.status_line().starts_with("failed fan_in_failed"),
        "{}",
        run.status_line()
    );
    assert_eq!(tokens_at(&run, "c"), 4);
}

#[test]
fn branches_that_a_fired_join_did_not_wait_for_are_not_resumed() {
    let mut document = limited(three(json!({"on_branch_failure": "proceed_with_available"})));
    document["nodes"][2] = json!({"id": "z", "action_id": "work", "input_mapping": "${state.missing.part}"});
    let mut run = Driver::start(document);
    run.succeed("t2@1", json!(0))
        .succeed("t3@1", json!(0))
        .fail("t4@1");
    assert!(
        run.status_line().starts_with("failed expression_failed"),
        "{}",
        run.status_line()
    );
    run.reload().retry(RetryMode::RetryStep);
    assert_eq!(tokens_at(&run, "b"), 3);
    assert_eq!(run.run.instances().count(), 0);
}

#[test]
fn a_branch_that_ended_without_arriving_does_not_keep_the_join_open() {
    let document = limited(json!({
        "nodes": [{"id": "a"}, {"id": "b", "action_id": "work"}, {"id": "c", "action_id": "work"},
                  {"id": "z", "action_id": "work"}],
        "transitions": [
            {"id": "outer", "from_node_id": "a", "to_node_id": "b", "spawn_count": 2},
            // The first branch fans out once more, to a dead end.
            {"id": "inner", "from_node_id": "b", "to_node_id": "c", "spawn_count": 2, "condition": "_branch.index == 0"},
            {"id": "in", "from_node_id": "b", "to_node_id": "z", "priority": 1,
             "synchronization": joining("outer", json!({"on_branch_failure": "proceed_with_available"}))},
        ],
    }));
    let mut run = Driver::start(document);
    run.succeed("t2@1", json!(0))
        .assert_status("running b:executing 2xc:executing");
    run.succeed("t4@1", json!(0))
        .succeed("t5@1", json!(0))
        .assert_status("running b:executing");
    run.fail("t3@1");
    assert!(
        run.status_line().starts_with("failed fan_in_failed"),
        "{}",
        run.status_line()
    );
    run.reload()
        .retry(RetryMode::RetryStep)
        .assert_status("running b:executing");
    run.fail("t6@1");
    assert!(
        run.status_line().starts_with("failed fan_in_failed"),
        "{}",
        run.status_line()
    );
    run.reload()
        .retry(RetryMode::RetryStep)
        .succeed("t7@1", json!("in time"));
    run.assert_status("running z:executing");
}

/// Every branch had ended without arriving: nothing can be retried, and the run must not complete.
#[test]
fn a_join_without_possible_arrivals_fails_the_run_again() {
    let mut document = limited(three(json!({"on_branch_failure": "proceed_with_available"})));
    document["transitions"][1]["condition"] = json!("false");
    document["on_no_match"] = json!("end");
    document["nodes"]
        .as_array_mut()
        .expect("nodes")
        .push(json!({"id": "x", "action_id": "work"}));
    document["nodes"]
        .as_array_mut()
        .expect("nodes")
        .push(json!({"id": "s"}));
    document["initial_node_id"] = json!("s");
    for to in ["a", "x"] {
        document["transitions"]
            .as_array_mut()
            .expect("transitions")
            .push(json!({"from_node_id": "s", "to_node_id": to}));
    }
    let mut run = Driver::start(document);
    run.assert_status("running 3xb:executing x:executing");
    for attempt in ["t4@1", "t5@1", "t6@1"] {
        run.succeed(attempt, json!(0));
    }
    assert!(
        run.status_line().starts_with("failed fan_in_failed"),
        "{}",
        run.status_line()
    );
    assert_eq!(run.row("t6").status, TokenStatus::Completed);
    run.reload().retry(RetryMode::RetryStep);
    assert!(
        run.status_line().starts_with("failed fan_in_failed"),
        "{}",
        run.status_line()
    );
}

#[test]
fn late_arrivals_are_still_merged_after_a_retry() {
    let mut run = Driver::start(limited(three(
        json!({"strategy": "any", "on_early_complete": "allow_late_merge"}),
    )));
    run.succeed("t3@1", json!("b"))
        .assert_status("running 2xb:executing z:executing");
    run.fail("t5@1")
        .assert_status("failed peer_failed/server_error: status 500");
    run.reload()
        .retry(RetryMode::RetryStep)
        .assert_status("running 2xb:executing z:executing");
    run.succeed("t6@1", json!("a"))
        .assert_status("running b:executing z:executing");
    assert_eq!(run.state()["all"], json!(["b", "a"]));
    run.reload()
        .succeed("t7@1", json!("c"))
        .succeed("t8@1", json!(0))
        .assert_status("completed {}");
    assert_eq!(tokens_at(&run, "z"), 2, "the failed one and its replacement");
}

#[test]
fn a_straggler_that_failed_before_the_end_is_not_resumed() {
    let mut run = Driver::start(limited(three(
        json!({"strategy": "any", "on_early_complete": "allow_late_merge"}),
    )));
    run.succeed("t3@1", json!("b"))
        .fail("t2@1")
        .assert_status("running b:executing z:executing");
    run.fail("t5@1").reload().retry(RetryMode::RetryStep);
    run.assert_status("running b:executing z:executing");
    run.succeed("t6@1", json!("c"))
        .succeed("t7@1", json!(0))
        .assert_status("completed {}");
    assert_eq!(run.state()["all"], json!(["b", "c"]));
}

/// A straggler whose late merge fails ends the run; after a resume it repeats its work and is merged.
#[test]
fn a_late_merge_that_failed_is_retried() {
    let join = json!({"strategy": "any", "on_early_complete": "allow_late_merge",
        "merge": {"target": "state.all", "source": "_branch.output.n"}});
    let mut run = Driver::start(limited(three(join)));
    run.succeed("t3@1", json!({"n": "b"})).succeed("t2@1", json!({}));
    assert!(
        run.status_line().starts_with("failed expression_failed"),
        "{}",
        run.status_line()
    );
    run.reload()
        .retry(RetryMode::RetryStep)
        .assert_status("running 2xb:executing z:executing");
    run.succeed("t6@1", json!({"n": "a"}));
    assert_eq!(run.state()["all"], json!(["b", "a"]));
}
