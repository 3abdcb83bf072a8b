//! Child runs: a child does a token's work, and the messages between parent and child survive losses.

use curfew::run::{Command, Message, RunStatus};
use serde_json::{Value, json};

use super::driver::{Driver, SETTINGS, WORKFLOW_TIMEOUT_MS, create_run, start_among, store_document};
use super::graphs::with;

/// `p` calls workflow `child`, then `b` uses its result.
fn calling(node: Value) -> Value {
    json!({
        "nodes": [with(json!({"id": "p", "workflow_id": "child"}), node),
                  {"id": "b", "action_id": "work", "input_mapping": "${state.p}"}],
        "transitions": [{"from_node_id": "p", "to_node_id": "b"}],
    })
}

#[test]
fn the_parent_chooses_the_id_of_its_child() {
    Driver::start(calling(json!({"input_mapping": {"n": "${input.x}"}}))).check(
        r#"
        snapshot
        input {"x":1}
        run running until 1001000
        token t1 p waiting_for_subworkflow@1
        message 1 start run-1~t1 {"n":1}
        alarm 11000
        deliver 1 start run-1~t1 {"n":1}
        announce
    "#,
    );
}

#[test]
fn a_start_is_saved_and_re_sent_until_it_is_delivered() {
    let mut run = Driver::start(calling(json!({})));
    run.at(11_000).wake("");
    assert_eq!(run.lines_of("deliver"), ["deliver 1 start run-1~t1 {\"x\":1}"]);
    assert_eq!(
        run.run.next_deadline(),
        Some(31_000),
        "twice as long the second time"
    );
    // After a failed delivery the message is re-sent sooner than after none.
    run.at(12_000).delivery_failed(1, false);
    assert_eq!(run.run.next_deadline(), Some(16_000));
    // After a reload it is unknown whether the message was delivered, so it is sent immediately.
    run.reload();
    assert_eq!(run.run.next_deadline(), Some(0));
    run.at(13_000).wake("");
    assert_eq!(run.lines_of("deliver").len(), 1);
    run.delivered(1);
    assert_eq!(run.lines_of("unmessage"), ["unmessage 1"]);
    assert_eq!(
        run.run.next_deadline(),
        Some(801_000),
        "when the run's limit is warned of"
    );
    run.delivered(1).check("");
    run.assert_status("running p:waiting_for_subworkflow");
}

#[test]
fn input_and_result_are_passed_between_parent_and_child() {
    let mut parent = Driver::start(calling(json!({})));
    let mut child = Driver::start_child(&parent);
    assert_eq!(
        child
            .run
            .header
            .parent
            .as_ref()
            .map(|parent| parent.token_id.as_str()),
        Some("t1")
    );
    assert_eq!(
        (child.run.header.root_run_id.as_str(), child.run.header.depth),
        ("run-1", 1)
    );
    assert_eq!(child.run.header.version, 4, "the version the catalogue had");
    child.at(2_000).succeed("t1@1", json!("done")).check(
        r#"
        run completed "done"
        token t1 c completed@1 "done" keeps state.c
        message 1 notify run-1 t1@1 completed "done"
        alarm 12000
        deliver 1 notify run-1 t1@1 completed "done"
        announce
        ended
    "#,
    );
    parent.delivered(1);
    parent
        .child_ended("t1@1", RunStatus::Completed, Some(json!("done")))
        .assert_status("running b:executing");
    assert_eq!(parent.lines_of("dispatch"), ["dispatch t2@1 \"done\""]);
}

#[test]
fn a_child_re_sends_its_result_until_it_is_delivered() {
    let parent = Driver::start(calling(json!({})));
    let mut child = Driver::start_child(&parent);
    child.at(2_000).fail("t1@1");
    let told = "notify run-1 t1@1 failed peer_failed/server_error: status 500";
    assert_eq!(child.lines_of("deliver"), [format!("deliver 1 {told}")]);
    child.at(12_000).wake("");
    assert_eq!(child.lines_of("deliver"), [format!("deliver 1 {told}")]);
    child.reload().at(20_000).wake("");
    assert_eq!(child.lines_of("deliver"), [format!("deliver 1 {told}")]);
    child.delivered(1);
    assert_eq!(child.run.next_deadline(), Some(2_000 + SETTINGS.retention_ms));
}

#[test]
fn messages_to_a_missing_parent_are_dropped() {
    let parent = Driver::start(calling(json!({})));
    let mut child = Driver::start_child(&parent);
    child.at(2_000).succeed("t1@1", json!(1));
    for _ in 0..5 {
        child.delivery_failed(1, true);
        let next = child
            .run
            .next_deadline()
            .expect("a message or the end of the storage is due");
        child.at(next).wake("");
        if child.lines_of("deliver").is_empty() {
            break;
        }
    }
    child.delivery_failed(1, true);
    assert_eq!(child.run.next_deadline(), Some(2_000 + SETTINGS.retention_ms));
}

#[test]
fn a_failed_child_fails_its_token_with_the_childs_error() {
    let mut run = Driver::start(calling(json!({})));
    run.child_ended("t1@1", RunStatus::Failed, None)
        .assert_status("failed broken/server_error: the child broke");
    let mut document = calling(json!({}));
    document["transitions"][0]["on"] = json!("failure");
    document["nodes"][1]["input_mapping"] = json!("${error.code}");
    let mut run = Driver::start(document);
    run.reload()
        .child_ended("t1@1", RunStatus::Failed, None)
        .assert_status("running b:executing");
    assert_eq!(run.lines_of("dispatch"), ["dispatch t2@1 \"broken\""]);
}

#[test]
fn a_child_reports_that_it_was_cancelled_or_timed_out() {
    let mut run = Driver::start(calling(json!({})));
    run.child_ended("t1@1", RunStatus::Cancelled, None);
    run.assert_status("failed child_ended/permanent: child run run-1~t1 ended cancelled");
    let mut document = calling(json!({}));
    document["transitions"][0]["on"] = json!("timeout");
    document["nodes"][1]["input_mapping"] = json!("${error.message}");
    let mut run = Driver::start(document);
    run.child_ended("t1@1", RunStatus::TimedOut, None)
        .assert_status("running b:executing");
}

#[test]
fn catch_turns_a_failure_into_a_result() {
    let mut run = Driver::start(calling(json!({"on_failure": "catch"})));
    run.child_ended("t1@1", RunStatus::Failed, None)
        .assert_status("running b:executing");
    assert_eq!(run.state()["p"]["status"], json!("failed"));
    assert_eq!(run.state()["p"]["error"]["message"], json!("the child broke"));
    let mut run = Driver::start(calling(json!({"on_failure": "catch"})));
    run.child_ended("t1@1", RunStatus::Completed, Some(json!(5)))
        .assert_status("running b:executing");
    assert_eq!(run.state()["p"], json!(5));
}

#[test]
fn a_report_of_another_attempt_changes_nothing() {
    let mut run = Driver::start(calling(json!({})));
    for attempt in ["t1@2", "t1@0", "t2@1"] {
        run.child_ended(attempt, RunStatus::Completed, Some(json!(1)));
        run.check(&format!("rejected stale_attempt {attempt}"));
    }
    run.succeed("t1@1", json!(1)).check(
        "
        rejected stale_attempt t1@1
        event late_result_discarded t1",
    );
    run.child_ended("t1@1", RunStatus::Completed, Some(json!(1)));
    run.child_ended("t1@1", RunStatus::Completed, Some(json!(2)));
    run.check("rejected stale_attempt t1@1");
    assert_eq!(run.state()["p"], json!(1));
}

#[test]
fn a_token_that_times_out_cancels_its_child() {
    let mut run = Driver::start(calling(json!({"timeout_ms": 5_000})));
    assert_eq!(
        run.lines_of("deliver"),
        ["deliver 1 start run-1~t1 {\"x\":1} within 5000"]
    );
    run.delivered(1);
    // The child has the same limit, and the grace to report its timeout itself.
    assert_eq!(run.run.next_deadline(), Some(6_500));
    run.reload().at(6_500).wake("");
    run.assert_status("failed execution_timeout/timeout: step p timed out: context deadline exceeded");
    let sent = run.lines_of("deliver");
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert!(
        sent[0].ends_with("cancel run-1~t1 (execution_timeout)"),
        "{sent:?}"
    );
    run.child_ended("t1@1", RunStatus::Completed, None)
        .check("rejected stale_attempt t1@1");
}

#[test]
fn the_next_attempt_has_another_child() {
    let node = json!({"timeout_ms": 5_000, "on_timeout": "retry", "max_retries": 1});
    let mut run = Driver::start(calling(node));
    run.delivered(1)
        .at(6_500)
        .wake("")
        .assert_status("running p:pending");
    assert_eq!(
        run.lines_of("deliver"),
        ["deliver 2 cancel run-1~t1 (execution_timeout)"]
    );
    run.reload()
        .at(7_500)
        .wake("")
        .assert_status("running p:waiting_for_subworkflow");
    let sent = run.lines_of("deliver");
    assert_eq!(
        sent,
        [
            "deliver 2 cancel run-1~t1 (execution_timeout)",
            "deliver 3 start run-1~t1~2 {\"x\":1} within 5000"
        ],
        "the cancellation goes out again: nobody knows whether it arrived"
    );
    run.child_ended("t1@1", RunStatus::Cancelled, None)
        .check("rejected stale_attempt t1@1");
    run.child_ended("t1@2", RunStatus::Completed, Some(json!(1)))
        .assert_status("running b:executing");
}

#[test]
fn limits_take_precedence_from_node_to_action_to_child() {
    let limit = |document: Value| {
        let parent = Driver::start(document);
        Driver::start_child(&parent).run.header.timeout_ms
    };
    let call = |execution: Value, node: Value| {
        json!({
            "nodes": [with(json!({"id": "p", "action_id": "call"}), node)],
            "actions": [{"id": "call", "kind": "workflow_call", "implementation": {"workflow_id": "brief"}, "execution": execution}],
        })
    };
    assert_eq!(
        limit(call(json!({"timeout_ms": 7_000}), json!({"timeout_ms": 5_000}))),
        Some(5_000)
    );
    assert_eq!(limit(call(json!({"timeout_ms": 7_000}), json!({}))), Some(7_000));
    assert_eq!(limit(call(json!({}), json!({}))), Some(20_000));
    assert_eq!(limit(calling(json!({}))), Some(WORKFLOW_TIMEOUT_MS));
}

#[test]
fn a_child_has_its_own_limit_unless_the_budget_is_inherited() {
    let mut document = calling(json!({}));
    document["nodes"]
        .as_array_mut()
        .expect("nodes")
        .push(json!({"id": "first", "action_id": "work"}));
    document["transitions"]
        .as_array_mut()
        .expect("transitions")
        .push(json!({"from_node_id": "first", "to_node_id": "p"}));
    document["initial_node_id"] = json!("first");
    document["timeout_ms"] = json!(30_000);
    let mut run = Driver::start(document.clone());
    run.at(11_000).succeed("t1@1", json!(1));
    assert_eq!(Driver::start_child(&run).run.header.timeout_ms, Some(1_000_000));
    document["timeouts"] = json!({"inherit_budget": true});
    let mut run = Driver::start(document.clone());
    run.at(11_000).succeed("t1@1", json!(1));
    assert_eq!(
        run.lines_of("deliver"),
        ["deliver 1 start run-1~t2 {\"x\":1} budget 20000"]
    );
    assert_eq!(Driver::start_child(&run).run.header.timeout_ms, Some(20_000));
    document["nodes"][0]["timeout_ms"] = json!(5_000);
    let mut run = Driver::start(document);
    run.at(11_000).succeed("t1@1", json!(1));
    assert_eq!(
        Driver::start_child(&run).run.header.timeout_ms,
        Some(5_000),
        "the smaller of both"
    );
}

#[test]
fn the_end_of_the_parent_ends_its_children() {
    let both = || {
        json!({
            "nodes": [{"id": "a"}, {"id": "p", "workflow_id": "child"}, {"id": "q", "workflow_id": "child"},
                      {"id": "b", "action_id": "work"}],
            "transitions": [{"from_node_id": "a", "to_node_id": "p"}, {"from_node_id": "a", "to_node_id": "q"},
                            {"from_node_id": "a", "to_node_id": "b"}],
            "timeout_ms": 50_000,
        })
    };
    let cancelled = |run: &Driver, reason: &str| {
        let sent = run.lines_of("deliver");
        let expected = ["t2", "t3"].map(|token| format!("cancel run-1~{token} ({reason})"));
        assert_eq!(sent.len(), 2, "{sent:?}");
        for (line, expected) in sent.iter().zip(expected) {
            assert!(line.ends_with(&expected), "{line}");
        }
    };
    let mut run = Driver::start(both());
    run.delivered(1).delivered(2).at(2_000).cancel(Some("enough"));
    cancelled(&run, "run_cancelled");
    let mut run = Driver::start(both());
    run.delivered(1).delivered(2).at(51_000).wake("t4@1");
    cancelled(&run, "workflow_timeout");
    let mut run = Driver::start(both());
    run.delivered(1).delivered(2).fail("t4@1");
    cancelled(&run, "run_failed");
    // An ended run re-sends its cancellations until they are delivered.
    run.reload().at(60_000).wake("");
    cancelled(&run, "run_failed");
    run.delivered(3).delivered(4);
    assert_eq!(run.run.next_deadline(), Some(1_000 + SETTINGS.retention_ms));
}

/// The start may have been delivered, so a cancellation follows it.
#[test]
fn an_unconfirmed_start_is_retracted_and_cancelled() {
    let mut run = Driver::start(calling(json!({})));
    run.cancel(None);
    assert_eq!(run.lines_of("unmessage"), ["unmessage 1"]);
    assert_eq!(
        run.lines_of("deliver"),
        ["deliver 2 cancel run-1~t1 (run_cancelled)"]
    );
    // The child was never started: after a few failed deliveries the cancellation is dropped.
    for _ in 0..5 {
        run.delivery_failed(2, true);
        let next = run.run.next_deadline().expect("something is due");
        run.at(next).wake("");
    }
    run.delivery_failed(2, true);
    assert_eq!(run.run.next_deadline(), Some(1_000 + SETTINGS.retention_ms));
}

#[test]
fn a_cancelled_child_ends_and_reports_it() {
    let parent = Driver::start(calling(json!({})));
    let mut child = Driver::start_child(&parent);
    child.cancel(Some("run_cancelled")).assert_status("cancelled");
    assert_eq!(
        child.lines_of("deliver"),
        ["deliver 1 notify run-1 t1@1 cancelled"]
    );
    // A repeated cancellation has no effect.
    child.cancel(Some("run_cancelled")).check("");
}

#[test]
fn an_invalid_input_fails_the_child_and_is_reported_to_the_parent() {
    let parent = Driver::start(calling(json!({"workflow_id": "strict"})));
    let child = Driver::start_child(&parent);
    assert!(
        child
            .status_line()
            .starts_with("failed invalid_input/validation: the input does not fit"),
        "{}",
        child.status_line()
    );
    assert_eq!(child.lines_of("deliver").len(), 1);
    assert_eq!(child.run.live_tokens().count(), 0);
}

#[test]
fn children_nest_at_most_sixteen_deep() {
    let document = super::driver::complete_document(
        json!({"id": "down", "nodes": [{"id": "p", "workflow_id": "down"}]}),
    );
    let (mut run, mut decision) = create_run(1_000, SETTINGS, store_document(&document), json!({}));
    let mut depth = 1;
    while let Some(start) = start_among(&decision, &run) {
        (run, decision) = start.run(1_000, SETTINGS);
        depth += 1;
        assert!(depth < 20, "nothing stops it");
    }
    assert_eq!(depth, 16);
    assert_eq!(run.header.status, RunStatus::Failed);
    assert_eq!(
        run.header.error.map(|error| error.code),
        Some("depth_exceeded".into())
    );
    assert_eq!(run.header.root_run_id, "run-1");
}

#[test]
fn grandchildren_are_started_from_the_snapshot_of_their_grandparent() {
    let top = Driver::start(calling(json!({"workflow_id": "middle"})));
    let middle = Driver::start_child(&top);
    assert_eq!(
        middle.lines_of("deliver"),
        ["deliver 1 start run-1~t1~t1 {\"x\":1}"]
    );
    let mut bottom = Driver::start_child(&middle);
    assert_eq!(bottom.run.header.depth, 2);
    bottom
        .succeed("t1@1", json!("deep"))
        .assert_status("completed \"deep\"");
}

#[test]
fn an_action_that_calls_maps_its_input_and_catches() {
    let mut run = Driver::start(json!({
        "nodes": [{"id": "p", "task_id": "call"}],
        "tasks": [{"id": "call", "steps": [{"ref": "s", "input_mapping": {"n": "${input.x + 1}"},
            "action": {"kind": "workflow_call", "implementation": {"workflow_id": "child", "on_failure": "catch"}}}]}],
    }));
    assert_eq!(run.lines_of("deliver"), ["deliver 1 start run-1~t1 {\"n\":2}"]);
    run.child_ended("t1@1", RunStatus::Failed, None)
        .assert_status("completed {}");
}

#[test]
fn children_in_branches_are_joined() {
    let mut document =
        super::graphs::three(json!({"strategy": {"m_of_n": 2}, "on_early_complete": "cancel"}));
    document["nodes"][1] = json!({"id": "b", "workflow_id": "child", "input_mapping": "${_branch.index}"});
    let mut run = Driver::start(document);
    assert_eq!(run.lines_of("deliver").len(), 3);
    run.delivered(1).delivered(2).delivered(3);
    run.child_ended("t4@1", RunStatus::Completed, Some(json!("c")));
    run.reload()
        .child_ended("t2@1", RunStatus::Completed, Some(json!("a")))
        .assert_status("running z:executing");
    assert_eq!(run.state(), &json!({"all": ["a", "c"]}));
    let sent = run.lines_of("deliver");
    assert!(
        sent[0].ends_with("cancel run-1~t3 (fan_in_completed)"),
        "{sent:?}"
    );
}

/// Twenty children at once.
fn twenty() -> Driver {
    Driver::start(json!({
        "nodes": [{"id": "a"}, {"id": "p", "workflow_id": "child"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "p", "spawn_count": 20}],
    }))
}

fn starts(run: &Driver) -> Vec<u64> {
    run.decision
        .commands()
        .iter()
        .filter_map(|command| match command {
            Command::DeliverMessage { id, message } => {
                matches!(message, Message::StartChild { .. }).then_some(*id)
            }
            _other => None,
        })
        .collect()
}

#[test]
fn at_most_eight_starts_are_in_flight() {
    let mut run = twenty();
    assert_eq!(starts(&run), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(
        run.store
            .run
            .keys()
            .filter(|key| key.starts_with("outbox/"))
            .count(),
        20
    );
    assert_eq!(starts(run.delivered(3)), [9]);
    // A failed start is re-sent later; the next one takes its slot immediately.
    assert_eq!(starts(run.delivery_failed(1, false)), [10]);
    // Without a response the starts in flight are re-sent, and the failed one waits for a slot.
    assert_eq!(starts(run.at(60_000).wake("")), [2, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(starts(run.delivered(2)), [1]);
    for id in 4..=20 {
        run.delivered(id);
    }
    run.delivered(1);
    assert!(!run.store.run.keys().any(|key| key.starts_with("outbox/")));
}

#[test]
fn a_reloaded_object_sends_at_most_eight_starts() {
    let mut run = twenty();
    run.reload().at(2_000).load();
    run.wake("");
    assert_eq!(starts(&run), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(
        run.run.next_deadline().is_some_and(|at| at > 2_000),
        "nothing is due now"
    );
    assert_eq!(starts(run.delivered(8)), [9]);
}

/// Children that may have started are cancelled; starts that were never sent are dropped.
#[test]
fn a_start_that_was_never_sent_is_retracted_silently() {
    let mut run = twenty();
    run.cancel(None);
    assert_eq!(starts(&run), [0; 0]);
    let cancels = run.lines_of("deliver");
    assert_eq!(cancels.len(), 8, "{cancels:?}");
    let rows = run.store.run.iter().filter(|(key, _)| key.starts_with("outbox/"));
    assert!(rows.clone().all(|(_, row)| row.contains("cancel_child")));
    assert_eq!(rows.count(), 8);
    // After a crash it is unknown which starts were sent.
    let mut run = twenty();
    run.reload().at(2_000).load().cancel(None);
    assert_eq!(run.lines_of("deliver").len(), 20);
}
