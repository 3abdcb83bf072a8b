//! Compensations and end handlers: what a run does between the decision to end and its end.

use curfew::run::{Event, RetryMode, RunEventKind, RunStatus, TokenStatus, Write};
use serde_json::{Value, json};

use super::driver::Driver;

/// Three nodes in a row; the first two can be undone.
fn order(more: Value) -> Value {
    let mut document = json!({
        "nodes": [
            {"id": "charge", "action_id": "work",
             "compensate": {"action_id": "work", "input_mapping": {"refund": "${result.id}", "for": "${input.x}"}}},
            {"id": "reserve", "action_id": "work", "compensate": {"action_id": "work", "timeout_ms": 5_000}},
            {"id": "ship", "action_id": "work"},
        ],
        "transitions": [{"from_node_id": "charge", "to_node_id": "reserve"}, {"from_node_id": "reserve", "to_node_id": "ship"}],
    });
    for (field, value) in more.as_object().expect("fields") {
        document[field] = value.clone();
    }
    document
}

/// The run stands at `ship`.
fn paid(more: Value) -> Driver {
    let mut run = Driver::start(order(more));
    run.succeed("t1@1", json!({"id": "ch-1"}))
        .succeed("t2@1", json!({"seat": 7}));
    run.assert_status("running ship:executing");
    run
}

fn shown(run: &Driver) -> Value {
    json!(run.run.header.compensation)
}

#[test]
fn completed_nodes_are_undone_in_reverse_order_with_their_results() {
    let mut run = paid(json!({}));
    run.fail("t3@1");
    run.assert_status("compensating");
    run.provide()
        .assert_status("compensating reserve~compensate:executing");
    assert_eq!(
        run.lines_of("dispatch"),
        [r#"dispatch t4@1 {"seat":7} by 6000"#],
        "without a mapping it gets the result"
    );
    run.at(2_000).succeed("t4@1", json!("released")).provide();
    assert_eq!(
        run.lines_of("dispatch"),
        [r#"dispatch t5@1 {"for":1,"refund":"ch-1"}"#]
    );
    run.succeed("t5@1", json!("refunded")).provide();
    run.assert_status("failed peer_failed/server_error: status 500");
    assert_eq!(
        shown(&run),
        json!({"status": "completed", "failed": [], "done": [
            {"node_id": "reserve", "token_id": "t2"}, {"node_id": "charge", "token_id": "t1"}]})
    );
    assert_eq!(run.row("t4").compensates.map(|it| it.result), Some(Value::Null));
}

#[test]
fn the_event_of_the_end_is_the_last_one() {
    let mut run = paid(json!({}));
    run.cancel(Some("enough"));
    let kinds = |run: &Driver| -> Vec<RunEventKind> {
        let events = run.decision.writes().iter().filter_map(Write::event);
        events.map(|event| event.kind).collect()
    };
    assert_eq!(kinds(&run), [RunEventKind::RunCompensating]);
    run.provide().succeed("t4@1", json!(1)).provide();
    run.succeed("t5@1", json!(1)).provide();
    run.assert_status("cancelled");
    assert_eq!(kinds(&run), [RunEventKind::RunCancelled]);
    assert_eq!(run.run.header.reason.as_deref(), Some("enough"));
}

#[test]
fn every_end_but_completion_compensates() {
    for (on_timeout, status) in [("cancel_all", "timed_out"), ("fail", "failed")] {
        let mut run = paid(json!({"timeout_ms": 20_000, "on_timeout": on_timeout}));
        run.at(21_000).wake("t3@1").provide();
        assert_eq!(run.lines_of("dispatch").len(), 1, "{on_timeout}");
        // The limit that has passed does not cut the compensation.
        run.at(25_000).wake("t4@1");
        run.succeed("t4@1", json!(1))
            .provide()
            .succeed("t5@1", json!(1))
            .provide();
        assert!(run.status_line().starts_with(status), "{}", run.status_line());
        assert_eq!(shown(&run)["status"], "completed");
    }
    let mut run = paid(json!({"timeout_ms": 20_000, "on_timeout": "human_gate"}));
    run.at(21_000).wake("t3@1").assert_status("paused ship:executing");
    run.decide("run1", "abort").provide();
    run.assert_status("compensating reserve~compensate:executing");
    assert_eq!(run.run.header.paused_at, None);
    let mut run = paid(json!({}));
    run.succeed("t3@1", json!(1)).assert_status("completed {}");
    assert_eq!(shown(&run), Value::Null);
}

#[test]
fn only_the_ends_named_by_compensation_on_compensate() {
    let mut run = paid(json!({"compensation": {"on": ["cancelled"]}}));
    run.fail("t3@1")
        .assert_status("failed peer_failed/server_error: status 500");
    run.retry(RetryMode::RetryStep);
    assert_eq!(run.answer, Ok(()), "nothing was undone");
    run.cancel(None).provide();
    run.assert_status("compensating reserve~compensate:executing");
}

#[test]
fn a_failed_compensation_is_recorded_and_the_others_go_on() {
    let mut run = paid(json!({}));
    run.fail("t3@1").provide();
    run.fail("t4@1").provide();
    run.assert_status("compensating charge~compensate:executing");
    run.succeed("t5@1", json!(1)).provide();
    let shown = shown(&run);
    assert_eq!(shown["status"], "partial");
    assert_eq!(shown["failed"][0]["node_id"], "reserve");
    assert_eq!(shown["failed"][0]["token_id"], "t2");
    assert_eq!(shown["failed"][0]["error"]["message"], "status 500");
    assert_eq!(shown["done"], json!([{"node_id": "charge", "token_id": "t1"}]));
}

#[test]
fn a_reload_at_any_point_changes_nothing() {
    let mut run = paid(json!({}));
    run.fail("t3@1").reload();
    run.provide().reload();
    run.assert_status("compensating reserve~compensate:executing");
    run.fail("t4@1").reload();
    run.provide().reload();
    run.assert_status("compensating charge~compensate:executing");
    run.succeed("t5@1", json!(1)).reload();
    run.provide();
    let shown = shown(&run);
    assert_eq!(shown["status"], "partial", "{shown}");
    assert_eq!(shown["done"], json!([{"node_id": "charge", "token_id": "t1"}]));
    assert_eq!(shown["failed"][0]["token_id"], "t2");
}

#[test]
fn a_second_cancel_stops_nothing() {
    let mut run = paid(json!({}));
    run.cancel(None).provide();
    run.cancel(Some("again"));
    assert_eq!(run.answer, Ok(()));
    run.assert_status("compensating reserve~compensate:executing");
    for event in [
        Event::PauseRequested { by: None },
        Event::ResumeRequested { by: None },
    ] {
        run.feed(event);
        assert_eq!(format!("{:?}", run.answer), "Err(Ending)");
    }
    run.succeed("t4@1", json!(1))
        .provide()
        .succeed("t5@1", json!(1))
        .provide();
    run.assert_status("cancelled");
}

#[test]
fn a_token_that_completes_after_the_decision_is_undone_first() {
    let mut document = order(json!({}));
    document["nodes"][2]["compensate"] =
        json!({"action_id": "work", "input_mapping": {"unship": "${result}"}});
    let mut run = Driver::start(document);
    run.succeed("t1@1", json!({"id": "ch-1"}))
        .succeed("t2@1", json!(2));
    run.cancel(None);
    run.assert_status("compensating ship:executing");
    assert_eq!(run.lines_of("abort"), Vec::<String>::new(), "its outcome counts");
    run.reload();
    run.succeed("t3@1", json!("parcel")).provide();
    assert_eq!(run.row("t3").status, TokenStatus::Completed);
    assert_eq!(run.lines_of("dispatch"), [r#"dispatch t4@1 {"unship":"parcel"}"#]);
}

#[test]
fn a_token_that_fails_after_the_decision_gets_no_further_attempt() {
    let mut document = order(json!({}));
    document["nodes"][2]["compensate"] = json!({"action_id": "work"});
    document["nodes"][2]["timeout_ms"] = json!(3_000);
    document["nodes"][2]["on_timeout"] = json!("retry");
    let mut run = Driver::start(document);
    run.succeed("t1@1", json!({"id": "ch-1"}))
        .succeed("t2@1", json!(2));
    run.cancel(None);
    run.at(4_500).wake("t3@1");
    assert_eq!(run.row("t3").status, TokenStatus::Cancelled);
    run.provide()
        .assert_status("compensating reserve~compensate:executing");
}

#[test]
fn a_result_without_a_route_is_undone_too() {
    let mut document = order(json!({}));
    document["transitions"][1]["condition"] = json!("false");
    let mut run = Driver::start(document);
    run.succeed("t1@1", json!({"id": "ch-1"}))
        .succeed("t2@1", json!("seat"));
    assert_eq!(run.row("t2").status, TokenStatus::Failed);
    run.provide();
    assert_eq!(run.lines_of("dispatch"), [r#"dispatch t3@1 "seat" by 6000"#]);
}

#[test]
fn every_branch_and_every_round_is_undone() {
    let mut run = Driver::start(json!({
        "nodes": [{"id": "a"}, {"id": "b", "action_id": "work", "compensate": {"action_id": "work"}}, {"id": "z", "action_id": "work"}],
        "transitions": [
            {"id": "out", "from_node_id": "a", "to_node_id": "b", "spawn_count": 3},
            {"from_node_id": "b", "to_node_id": "z", "synchronization": {"sibling_group": "out"}},
        ],
    }));
    // t2 waits at the join, t3 fails, t4 is under way: its outcome counts.
    run.succeed("t2@1", json!("two")).fail("t3@1");
    run.assert_status("compensating b:executing");
    run.succeed("t4@1", json!("four")).provide();
    assert_eq!(run.lines_of("dispatch"), [r#"dispatch t5@1 "four""#]);
    run.succeed("t5@1", json!(1)).provide();
    assert_eq!(run.lines_of("dispatch"), [r#"dispatch t6@1 "two""#]);
    run.succeed("t6@1", json!(1)).provide();
    assert!(
        run.status_line().starts_with("failed fan_in_failed"),
        "{}",
        run.status_line()
    );
}

#[test]
fn the_time_of_all_compensations_is_bounded() {
    let mut run = paid(json!({"compensation": {"timeout_ms": 8_000}, "on_end": [{"action_id": "work"}]}));
    run.fail("t3@1").provide();
    run.fail("t4@1").provide();
    run.assert_status("compensating charge~compensate:executing");
    run.at(9_000).wake("t5@1");
    assert_eq!(run.lines_of("abort"), ["abort t5@1"]);
    run.assert_status("compensating on_end~1:executing");
    run.succeed("t6@1", json!(1)).provide();
    let shown = shown(&run);
    assert_eq!(shown["status"], "failed");
    assert_eq!(shown["failed"][1]["error"]["code"], "compensation_timeout");
}

#[test]
fn compensations_without_time_are_recorded_untried() {
    let mut run = paid(json!({"compensation": {"timeout_ms": 2_000}}));
    run.fail("t3@1").provide();
    run.at(3_000).wake("t4@1").provide();
    let shown = shown(&run);
    let tokens: Vec<&str> = shown["failed"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|it| it["token_id"].as_str())
        .collect();
    assert_eq!(tokens, ["t2", "t1"], "{shown}");
    run.assert_status("failed peer_failed/server_error: status 500");
}

#[test]
fn a_compensated_run_does_not_go_on_but_begins_again() {
    let mut run = paid(json!({}));
    run.fail("t3@1").provide();
    run.succeed("t4@1", json!(1))
        .provide()
        .succeed("t5@1", json!(1))
        .provide();
    run.reload().retry(RetryMode::RetryStep);
    assert!(format!("{:?}", run.answer).contains("has compensated what it had done"));
    run.feed(Event::RestartRequested {
        from: None,
        by: None,
        version: None,
    });
    assert_eq!(run.answer, Ok(()));
    run.assert_status("running charge:executing");
    assert_eq!(shown(&run), Value::Null);
    run.succeed("t6@1", json!({"id": "ch-2"})).fail("t7@1").provide();
    assert_eq!(
        run.lines_of("dispatch"),
        [r#"dispatch t8@1 {"for":1,"refund":"ch-2"}"#],
        "the first charge was refunded before"
    );
}

#[test]
fn end_handlers_run_in_order_and_cannot_change_the_end() {
    let mut run = Driver::start(json!({
        "nodes": [{"id": "a", "action_id": "work", "output_mapping": {"output.n": "${result}"}}],
        "on_end": [
            {"on": ["failed"], "action_id": "work"},
            {"on": ["completed"], "action_id": "work", "input_mapping": {"was": "${run.status}", "n": "${run.output.n}", "x": "${input.x}"}},
            {"action_id": "work"},
        ],
    }));
    run.succeed("t1@1", json!(5));
    run.assert_status("compensating on_end~2:executing");
    assert_eq!(
        run.lines_of("dispatch"),
        [r#"dispatch t2@1 {"n":5,"was":"completed","x":1}"#]
    );
    run.reload();
    run.fail("t2@1").assert_status("compensating on_end~3:executing");
    run.succeed("t3@1", json!(1))
        .assert_status(r#"completed {"n":5}"#);
    let shown = json!(run.run.header.on_end);
    assert_eq!(shown[0]["status"], "failed");
    assert_eq!(shown[0]["error"]["message"], "status 500");
    assert_eq!(shown[1], json!({"status": "completed"}));
}

#[test]
fn a_child_ends_with_its_own_compensation_before_its_parent_goes_on() {
    let mut run = Driver::start(json!({
        "nodes": [
            {"id": "a", "action_id": "work", "compensate": {"action_id": "work"}},
            {"id": "call", "workflow_id": "child", "compensate": {"action_id": "work", "input_mapping": {"undo": "${result}"}}},
        ],
        "transitions": [{"from_node_id": "a", "to_node_id": "call"}],
    }));
    run.succeed("t1@1", json!("one"));
    run.assert_status("running call:waiting_for_subworkflow");
    run.delivered(1).cancel(None);
    run.assert_status("compensating call:waiting_for_subworkflow");
    assert_eq!(run.lines_of("message").len(), 1, "the child is cancelled");
    // It had completed meanwhile.
    run.child_ended("t2@1", RunStatus::Completed, Some(json!("done")))
        .provide();
    assert_eq!(run.lines_of("dispatch"), [r#"dispatch t3@1 {"undo":"done"}"#]);
    run.succeed("t3@1", json!(1)).provide();
    assert_eq!(run.lines_of("dispatch"), [r#"dispatch t4@1 "one""#]);
}
