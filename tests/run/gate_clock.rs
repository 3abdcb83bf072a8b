//! The clock of the run's limit stands still while every live token stands in front of a person.

use curfew::api::views;
use curfew::index::run_summary::RunSummary;
use curfew::run::{RetryMode, TokenStatus};
use serde_json::{Value, json};

use super::driver::Driver;
use super::graphs::{three, with};

/// `a` works, `ask` is a gate, `b` works. The run may take 20 s.
fn approval(gate: Value) -> Value {
    json!({
        "timeout_ms": 20_000,
        "nodes": [{"id": "a", "action_id": "work"}, {"id": "ask", "gate": gate}, {"id": "b", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "ask"}, {"from_node_id": "ask", "to_node_id": "b"}],
    })
}

/// At the gate since 6 000, with 15 s left.
fn at_gate(gate: Value) -> Driver {
    at_gate_of(approval(gate))
}

fn at_gate_of(document: Value) -> Driver {
    let mut run = Driver::start(document);
    run.at(6_000)
        .succeed("t1@1", json!(1))
        .assert_status("waiting ask:awaiting_human");
    run
}

fn limit(run: &Driver) -> Value {
    let deadlines = views::run(&run.run, run.now)["deadlines"].take();
    let mut list = deadlines.as_array().expect("a list").iter();
    let workflow = list.find(|it| it["kind"] == "workflow");
    workflow.expect("the run has a limit").clone()
}

fn left(millis: u64) -> Value {
    json!({"kind": "workflow", "remaining_ms": millis})
}

fn due(at: u64) -> Value {
    json!({"kind": "workflow", "due_at": at})
}

#[test]
fn an_approval_may_take_longer_than_the_run() {
    let mut run = Driver::start(approval(json!({})));
    run.at(6_000).succeed("t1@1", json!(1)).check(
        "
        run waiting 15000 left
        token t1 a completed@1 1 keeps state.a
        token t2 ask awaiting_human@1
        gate g2 open null approve|reject
        announce
        announce g2 open
    ",
    );
    assert_eq!(
        run.run.next_deadline(),
        None,
        "the run waits for a person and for nothing else"
    );
    // The alarm that was set before finds nothing to do, and is not set again.
    run.at(17_000).fire_alarm("").check("");
    run.at(500_000).reload().wake("").check("");
    run.at(600_000).decide("g2", "approve").check(
        r#"
        run running until 615000
        token t2 ask completed@1 {"by":"ada","choice":"approve","comment":null,"input":null} keeps state.ask
        token t3 b executing@1 watch 630000
        gate g2 decided null approve|reject approve by ada at 600000
        alarm 611000
        dispatch t3@1 {"x":1}
        announce
        announce g2 decided
    "#,
    );
    run.at(614_999).wake("t3@1").assert_status("running b:executing");
    run.at(615_000)
        .wake("t3@1")
        .assert_status("timed_out workflow_timeout/timeout: Workflow execution timed out after 20s");
    let record = &run.records()[0].timeout_event;
    assert_eq!((record.elapsed_ms, record.lateness_ms), (20_000, 0));
}

#[test]
fn the_clock_runs_at_gates_where_the_workflow_says_so() {
    let mut run = at_gate_of(with(approval(json!({})), json!({"clock": "runs"})));
    assert_eq!(limit(&run), due(21_000));
    run.at(21_000)
        .wake("")
        .assert_status("timed_out workflow_timeout/timeout: Workflow execution timed out after 20s");
}

#[test]
fn a_run_without_a_limit_has_no_clock() {
    let run = at_gate_of(with(approval(json!({})), json!({"timeout_ms": null})));
    assert_eq!(run.run.header.stopped_at, None);
    assert_eq!(run.lines_of("run"), ["run waiting"]);
}

#[test]
fn the_gates_own_deadline_runs_on() {
    let gate = json!({"timeout_ms": 100_000, "on_timeout": "approve", "remind_at": []});
    let mut run = at_gate(gate);
    let warned_at = 86_000;
    assert_eq!(run.run.next_deadline(), Some(warned_at));
    run.at(warned_at).fire_alarm("");
    // The alarm is late. The time until it rang does not count either: nothing worked.
    run.at(150_000)
        .fire_alarm("")
        .assert_status("running b:executing");
    assert_eq!(run.run.header.timeout_at, Some(165_000));
}

#[test]
fn work_after_the_gate_gets_what_was_left() {
    let document = with(approval(json!({})), json!({"on_timeout": "fail"}));
    let mut run = at_gate_of(document);
    run.at(100_000).decide("g2", "approve");
    assert_eq!(run.order().run_ends_at, Some(115_000));
    let mut document = approval(json!({}));
    document["nodes"][2] = json!({"id": "b", "workflow_id": "child"});
    document["timeouts"] = json!({"inherit_budget": true});
    let mut run = at_gate_of(document);
    run.at(100_000).decide("g2", "approve");
    assert_eq!(
        run.lines_of("deliver"),
        ["deliver 1 start run-1~t3 {\"x\":1} budget 15000"]
    );
}

#[test]
fn a_gate_that_leads_to_a_gate_keeps_the_clock_stopped() {
    let mut document = approval(json!({}));
    document["nodes"][2] = json!({"id": "b", "gate": {}});
    let mut run = at_gate_of(document);
    run.at(100_000).decide("g2", "approve");
    assert_eq!(run.lines_of("run"), [""; 0], "no row for that");
    run.reload().at(200_000).decide("g3", "approve");
    assert_eq!(run.run.header.timeout_at, Some(215_000));
}

#[test]
fn the_clock_runs_while_another_branch_works() {
    let mut document = approval(json!({}));
    document["nodes"][0] = json!({"id": "a"});
    document["transitions"]
        .as_array_mut()
        .expect("a list")
        .push(json!({"from_node_id": "a", "to_node_id": "b"}));
    let mut run = Driver::start(document.clone());
    run.assert_status("running ask:awaiting_human b:executing");
    assert_eq!(limit(&run), due(21_000));
    run.at(11_000).succeed("t3@1", json!(1));
    assert_eq!(limit(&run), left(10_000));
    run.at(400_000)
        .decide("g2", "approve")
        .assert_status("running b:executing");
    assert_eq!(limit(&run), due(410_000));
    let mut run = Driver::start(document);
    run.at(21_000).wake("t3@1");
    assert_eq!(run.run.header.status.name(), "timed_out");
}

#[test]
fn with_several_gates_the_first_that_leads_to_work_starts_the_clock() {
    let mut document = three(json!({"timeout_ms": null}));
    document["timeout_ms"] = json!(20_000);
    document["nodes"][1] = json!({"id": "b", "gate": {}});
    document["nodes"]
        .as_array_mut()
        .expect("a list")
        .push(json!({"id": "c", "action_id": "work"}));
    document["transitions"][1]["from_node_id"] = json!("c");
    document["transitions"]
        .as_array_mut()
        .expect("a list")
        .push(json!({"from_node_id": "b", "to_node_id": "c"}));
    let mut run = Driver::start(document);
    run.assert_status("waiting 3xb:awaiting_human");
    run.at(100_000)
        .decide("g2", "approve")
        .assert_status("running 2xb:awaiting_human c:executing");
    assert_eq!(limit(&run), due(120_000));
    // Its work is done, and it waits at the join for branches that stand at gates.
    run.at(105_000)
        .succeed("t5@1", json!(1))
        .assert_status("waiting 2xb:awaiting_human c:waiting_for_siblings");
    assert_eq!(limit(&run), left(15_000));
    run.reload().at(200_000).decide("g3", "approve");
    assert_eq!(limit(&run), due(215_000));
    // The gate in the other branch is still open when the limit passes.
    run.at(215_000).wake("t6@1");
    assert_eq!(run.run.header.status.name(), "timed_out");
}

#[test]
fn the_deadline_of_a_join_runs_on_at_gates() {
    let mut document = three(json!({"timeout_ms": 30_000, "on_timeout": "proceed_with_available"}));
    document["timeout_ms"] = json!(20_000);
    document["nodes"][1] = json!({"id": "b", "gate": {}});
    let mut run = Driver::start(document);
    run.at(2_000)
        .decide("g2", "approve")
        .assert_status("waiting 2xb:awaiting_human b:waiting_for_siblings");
    assert_eq!(limit(&run), left(20_000));
    run.at(26_000)
        .wake("")
        .at(32_000)
        .wake("")
        .assert_status("running z:executing");
    assert_eq!(limit(&run), due(52_000));
}

#[test]
fn sleeps_signals_and_callbacks_do_not_stop_the_clock() {
    let waits = [
        (json!({"wait": {"signal": "go"}}), "waiting"),
        (json!({"wait": {"sleep_ms": 50_000}}), "running"),
    ];
    for (wait, status) in waits {
        let mut document = approval(json!({}));
        document["nodes"][0] = json!({"id": "a"});
        document["nodes"][2] = with(json!({"id": "b"}), wait.clone());
        document["transitions"][1]["from_node_id"] = json!("a");
        let mut run = Driver::start(document);
        run.assert_status(&format!("{status} ask:awaiting_human b:suspended"));
        assert_eq!(limit(&run), due(21_000), "{wait}");
        run.at(21_000).wake("");
        assert_eq!(run.run.header.status.name(), "timed_out", "{wait}");
    }
    // The signal was the last thing that the clock ran for.
    let mut document = approval(json!({}));
    document["nodes"][0] = json!({"id": "a"});
    document["nodes"][2] = json!({"id": "b", "wait": {"signal": "go"}});
    document["transitions"][1]["from_node_id"] = json!("a");
    let mut run = Driver::start(document);
    run.at(5_000).signal("go", json!(1)).check(
        "
        run waiting 16000 left
        token t3 b completed@1 1 keeps state.b
        announce
    ",
    );
}

#[test]
fn a_pause_at_a_gate_takes_over_and_gives_back() {
    let mut run = at_gate(json!({"timeout_ms": 100_000, "remind_at": []}));
    run.at(16_000).pause();
    assert_eq!(run.lines_of("run"), ["run paused until 31000 held by person"]);
    assert_eq!(limit(&run), left(15_000));
    run.at(116_000).reload().resume();
    assert_eq!(run.lines_of("run"), ["run waiting 15000 left"]);
    assert_eq!(
        run.row("t2").deadline.at,
        Some(206_000),
        "the pause stopped the gate, too"
    );
    run.at(120_000).decide("g2", "approve");
    assert_eq!(limit(&run), due(135_000));
    // Decided while paused: the clock goes on with the resume.
    let mut run = at_gate(json!({}));
    run.at(16_000).pause();
    run.at(50_000)
        .decide("g2", "approve")
        .assert_status("paused b:pending");
    assert_eq!(limit(&run), left(15_000));
    run.at(60_000).resume().assert_status("running b:executing");
    assert_eq!(limit(&run), due(75_000));
}

#[test]
fn an_extension_while_the_clock_stands_counts_from_what_is_left() {
    let mut run = at_gate(json!({}));
    run.at(100_000).extend(5_000).check(
        "
        run waiting 20000 left
        event run_extended by_ms 5000
        announce
    ",
    );
    // As if the clock went on now.
    run.at(200_000).extend_until(230_000);
    assert_eq!(limit(&run), left(30_000));
    run.extend_until(230_000)
        .check("rejected invalid_extension the run may take as long as that already; name a later moment");
    run.at(300_000).reload().decide("g2", "approve");
    assert_eq!(limit(&run), due(330_000));
    assert_eq!(run.run.header.timeout_ms, Some(35_000));
}

#[test]
fn the_warning_comes_at_its_share_of_running_time() {
    let mut run = at_gate(json!({}));
    run.at(17_000).wake("").at(100_000).wake("");
    assert_eq!(run.warnings(), []);
    run.at(200_000).decide("g2", "approve");
    run.at(211_000).wake("t3@1");
    assert_eq!(run.warnings(), [(211_000, json!("workflow"))]);
    // One that was sent before the gate is not sent again.
    let mut run = Driver::start(approval(json!({})));
    run.at(17_000).wake("t1@1").at(18_000).succeed("t1@1", json!(1));
    run.at(50_000).decide("g2", "approve").at(52_000).wake("t3@1");
    assert_eq!(run.warnings(), [(17_000, json!("workflow"))]);
}

#[test]
fn an_escalation_stops_the_clock() {
    let mut document = approval(json!({}));
    document["nodes"][0]["escalate_on"] = json!(["server_error"]);
    document["gate"] = json!({"timeout_ms": 500_000});
    let mut run = Driver::start(document);
    run.at(6_000)
        .fail("t1@1")
        .assert_status("waiting a:awaiting_human");
    assert_eq!(limit(&run), left(15_000));
    run.at(300_000)
        .decide("g1.1", "retry")
        .assert_status("running a:executing");
    assert_eq!(limit(&run), due(315_000));
}

#[test]
fn what_the_api_and_the_index_show_while_the_clock_stands() {
    let mut run = at_gate(json!({"timeout_ms": 100_000}));
    let view = views::run(&run.run, 50_000);
    assert_eq!(
        (&view["timeout_at"], &view["timeout_ms"]),
        (&Value::Null, &json!(20_000))
    );
    assert_eq!(
        view["deadlines"],
        json!([
            {"kind": "workflow", "remaining_ms": 15_000},
            {"kind": "gate", "due_at": 106_000, "token_id": "t2", "node_id": "ask", "gate_id": "g2"},
        ])
    );
    let summary = RunSummary::of(&run.run, 50_000);
    assert_eq!(summary.summary["timeout_at"], Value::Null);
    assert_eq!(summary.due_at, Some(106_000), "something happens by then");
    run.at(60_000).decide("g2", "approve");
    let summary = RunSummary::of(&run.run, 60_000);
    assert_eq!(
        (&summary.summary["timeout_at"], summary.due_at),
        (&json!(75_000), Some(75_000))
    );
    let run = at_gate(json!({}));
    assert_eq!(
        RunSummary::of(&run.run, 50_000).due_at,
        None,
        "only a person ends the wait"
    );
}

#[test]
fn the_end_at_a_gate_and_the_ways_back() {
    let mut run = at_gate(json!({}));
    run.at(100_000).cancel(None).assert_status("cancelled");
    assert_eq!(run.run.header.stopped_at, None);
    // A restart has the whole limit.
    let mut run = at_gate(json!({}));
    run.at(100_000).restart().assert_status("running a:executing");
    assert_eq!(limit(&run), due(120_000));
    // So has a retry, also of a run whose gate was not decided in time.
    let mut run = at_gate(json!({"timeout_ms": 50_000, "remind_at": []}));
    run.at(46_000).wake("").at(56_000).wake("");
    run.assert_status("failed gate_timeout/timeout: nobody decided in time");
    run.at(60_000)
        .retry(RetryMode::RetryStep)
        .assert_status("waiting ask:awaiting_human");
    assert_eq!(limit(&run), left(20_000));
    run.reload().at(90_000).decide("g3", "approve");
    assert_eq!(limit(&run), due(110_000));
}

#[test]
fn a_run_that_begins_at_a_gate_has_its_whole_limit() {
    let document = json!({"timeout_ms": 20_000, "nodes": [{"id": "ask", "gate": {}}]});
    let mut run = Driver::start(document);
    assert_eq!(run.lines_of("alarm"), [""; 0]);
    run.at(900_000)
        .decide("g1", "approve")
        .assert_status("completed {}");
    assert_eq!(run.row("t1").status, TokenStatus::Completed);
}
