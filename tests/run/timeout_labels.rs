//! How a timeout labels what it ended: the statuses and reasons of siblings after the deadline of a join, the nodes that a record
//! names, and the policy that an event says was applied.

use serde_json::{Value, json};

use super::driver::Driver;
use super::graphs::{and, fan, joining, three, with};

/// `status reason` of each token.
fn labels(run: &Driver, ids: &[u64]) -> Vec<String> {
    let label = |id: &u64| {
        let token = run.row(&format!("t{id}"));
        let reason = token
            .reason
            .map_or_else(String::new, |reason| format!(" {reason}"));
        format!("{}{reason}", token.status.name())
    };
    ids.iter().map(label).collect()
}

/// Three branches; the second is late when the join's deadline passes and it goes on with the others.
fn proceeded(early_complete: &str) -> Driver {
    let join = json!({"timeout_ms": 5_000, "on_timeout": "proceed_with_available", "on_early_complete": early_complete});
    let mut run = Driver::start(three(join));
    run.succeed("t2@1", json!("a")).succeed("t4@1", json!("c"));
    run.at(6_000).wake("t3@1");
    run
}

#[test]
fn branches_that_had_finished_complete_and_late_ones_time_out() {
    let mut run = proceeded("abandon");
    assert_eq!(
        labels(&run, &[2, 3, 4]),
        ["completed", "timed_out sync_timeout", "completed"]
    );
    assert_eq!(run.lines_of("abort"), [""; 0], "an abandoned call runs on");
    run.at(7_000).succeed("t3@1", json!("b")).check(
        "
        rejected stale_attempt t3@1
        event late_result_discarded t3",
    );
    assert_eq!(run.state(), &json!({"all": ["a", "c"]}));
}

#[test]
fn the_calls_of_late_branches_are_aborted_by_cancel() {
    let run = proceeded("cancel");
    assert_eq!(
        labels(&run, &[2, 3, 4]),
        ["completed", "timed_out sync_timeout", "completed"]
    );
    assert_eq!(run.lines_of("abort"), ["abort t3@1"]);
}

/// They are not late for the merge: they go on, and have a status of their own.
#[test]
fn late_branches_go_on_under_allow_late_merge() {
    let mut run = proceeded("allow_late_merge");
    assert_eq!(labels(&run, &[2, 3, 4]), ["completed", "executing", "completed"]);
    run.at(7_000).succeed("t3@1", json!("b"));
    assert_eq!(labels(&run, &[3]), ["completed late_merge"]);
    assert_eq!(run.state(), &json!({"all": ["a", "c", "b"]}));
}

/// A branch that arrived by its failure route waited, and has failed.
#[test]
fn a_failed_branch_that_waited_stays_failed() {
    let join = json!({"timeout_ms": 5_000, "on_timeout": "proceed_with_available",
        "on_branch_failure": "proceed_with_available"});
    let document = and(
        fan(json!({"spawn_count": 3}), join.clone()),
        json!({"from_node_id": "b", "to_node_id": "z", "on": "failure", "synchronization": joining("out", join)}),
    );
    let mut run = Driver::start(document);
    run.succeed("t2@1", json!(1)).fail("t3@1").at(6_000).wake("t4@1");
    assert_eq!(
        labels(&run, &[2, 3, 4]),
        ["completed", "failed", "timed_out sync_timeout"]
    );
}

/// A late branch ends with everything in it.
#[test]
fn what_a_late_branch_had_spawned_times_out_with_it() {
    let join = joining(
        "out",
        json!({"timeout_ms": 5_000, "on_timeout": "proceed_with_available"}),
    );
    let mut run = Driver::start(json!({
        "nodes": [{"id": "a"}, {"id": "b", "action_id": "work"}, {"id": "c", "action_id": "work"}, {"id": "d", "action_id": "work"},
            {"id": "z", "action_id": "work"}],
        "transitions": [
            {"id": "out", "from_node_id": "a", "to_node_id": "b", "spawn_count": 2},
            {"id": "inner", "from_node_id": "b", "to_node_id": "c", "spawn_count": 2, "condition": "_branch.index == 1"},
            {"from_node_id": "c", "to_node_id": "d", "synchronization": joining("inner", json!({}))},
            {"from_node_id": "d", "to_node_id": "z", "synchronization": join},
            {"from_node_id": "b", "to_node_id": "z", "condition": "_branch.index == 0",
                "synchronization": join},
        ],
    }));
    run.succeed("t2@1", json!(0))
        .succeed("t3@1", json!(1))
        .succeed("t4@1", json!(2));
    run.at(6_000).wake("t5@1").assert_status("running z:executing");
    assert_eq!(
        labels(&run, &[2, 4, 5]),
        ["completed", "timed_out sync_timeout", "timed_out sync_timeout"]
    );
    assert_eq!(
        run.records()[0].last_known_state.progress["at_work"],
        json!([
            {"token_id": "t4", "node_id": "c", "status": "waiting_for_siblings", "branch": 0},
            {"token_id": "t5", "node_id": "c", "status": "executing", "branch": 1},
        ])
    );
}

#[test]
fn the_record_of_a_join_names_the_late_branches_and_their_nodes() {
    for policy in ["proceed_with_available", "fail"] {
        let mut run = Driver::start(three(json!({"timeout_ms": 5_000, "on_timeout": policy})));
        run.succeed("t3@1", json!(1)).at(6_000).wake("t2@1 t4@1");
        let state = &run.records()[0].last_known_state;
        assert_eq!(state.node_id.as_deref(), Some("z"));
        assert_eq!(state.progress["nodes"], json!({"b": 2}));
        assert_eq!(
            state.progress["at_work"],
            json!([
                {"token_id": "t2", "node_id": "b", "status": "executing", "branch": 0},
                {"token_id": "t4", "node_id": "b", "status": "executing", "branch": 2},
            ])
        );
    }
}

/// What a policy of a layer is called in the event of its timeout.
fn applied(run: &Driver) -> Vec<String> {
    let events = run.events();
    let policies = events.iter().filter_map(|event| {
        let policy = event.fields.get("policy_applied")?;
        Some(format!("{} {}", json!(event.kind), policy).replace('"', ""))
    });
    policies.collect()
}

fn working(node: Value, more: Value) -> Value {
    with(json!({"nodes": [with(json!({"id": "a"}), node)]}), more)
}

#[test]
fn the_policy_of_an_execution_timeout_is_what_was_done_this_time() {
    let node = json!({"action_id": "work", "timeout_ms": 4_000, "on_timeout": "retry", "max_retries": 1});
    let mut run = Driver::start(working(node.clone(), json!({})));
    run.at(5_000)
        .time_out("t1@1")
        .at(6_000)
        .wake("")
        .at(10_500)
        .wake("t1@2");
    assert_eq!(applied(&run), ["token_timed_out retry", "token_timed_out fail"]);
    // A person decides about it.
    let mut run = Driver::start(working(
        with(node, json!({"max_retries": 0, "escalate_on": ["timeout"]})),
        json!({}),
    ));
    run.at(5_500)
        .wake("t1@1")
        .assert_status("waiting a:awaiting_human");
    assert_eq!(applied(&run), ["token_timed_out human_gate"]);
    assert_eq!(json!(run.records()[0].final_action), json!("escalate"));
}

#[test]
fn the_policy_of_a_wait_for_a_signal() {
    for (policy, named) in [("fail", "fail"), ("continue", "proceed_with_available")] {
        let wait = json!({"wait": {"signal": "go", "timeout_ms": 5_000, "on_timeout": policy}});
        let mut run = Driver::start(working(wait, json!({})));
        run.at(6_000).wake("");
        assert_eq!(applied(&run), [format!("token_timed_out {named}")]);
    }
}

#[test]
fn the_policy_of_a_join() {
    for (policy, completed, named) in [
        ("proceed_with_available", true, "proceed_with_available"),
        ("proceed_with_available", false, "fail"),
        ("fail", true, "fail"),
    ] {
        let join = json!({"timeout_ms": 5_000, "on_timeout": policy, "strategy": {"m_of_n": 2}});
        let document = and(
            fan(json!({"spawn_count": 3}), join.clone()),
            json!({"from_node_id": "b", "to_node_id": "z", "on": "failure", "synchronization": joining("out", join)}),
        );
        let mut run = Driver::start(document);
        match completed {
            true => run.succeed("t2@1", json!(1)),
            false => run.fail("t2@1"),
        };
        run.at(6_000).wake("t3@1 t4@1");
        assert_eq!(applied(&run), [format!("sync_timed_out {named}")]);
    }
}

/// A limit that waits for a person is followed by the gate's own policy, if no person decides.
#[test]
fn the_policy_of_a_runs_limit_and_of_its_gate() {
    for (policy, kind) in [("cancel_all", "run_timed_out"), ("fail", "run_failed")] {
        let limit = json!({"timeout_ms": 4_000, "on_timeout": policy});
        let mut run = Driver::start(working(json!({"action_id": "work"}), limit));
        run.at(5_000).wake("t1@1");
        assert_eq!(applied(&run), [format!("{kind} {policy}")]);
        let limit = json!({"timeout_ms": 4_000, "on_timeout": "human_gate", "gate": {"timeout_ms": 9_000, "on_timeout": policy}});
        let mut run = Driver::start(working(json!({"action_id": "work"}), limit));
        run.at(5_000).wake("t1@1").at(14_000).wake("t1@1");
        assert_eq!(
            applied(&run),
            [
                "run_paused human_gate".to_string(),
                format!("gate_timed_out {policy}")
            ]
        );
    }
}

#[test]
fn the_policy_of_a_gate_that_no_person_decided() {
    for (policy, named) in [
        ("fail", "fail"),
        ("cancel_all", "cancel_all"),
        ("approve", "proceed_with_available"),
        ("reject", "proceed_with_available"),
    ] {
        let gate = json!({"gate": {"timeout_ms": 5_000, "on_timeout": policy}});
        let mut run = Driver::start(working(gate, json!({})));
        run.at(6_000).wake("");
        assert_eq!(applied(&run), [format!("gate_timed_out {named}")]);
    }
}
