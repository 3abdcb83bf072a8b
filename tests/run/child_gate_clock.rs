//! A child that stands in front of a person: its clock, the clock of the node that called it, and the clocks of the runs above.

use curfew::api::views;
use serde_json::{Value, json};

use super::driver::{Driver, SETTINGS, Start, complete_document, start_among, store_document};
use super::graphs::with;

/// `p` calls `approving`: a gate, then work, 3 s in all. The parent has 20 s.
fn calling(node: Value) -> Value {
    json!({
        "timeout_ms": 20_000,
        "nodes": [with(json!({"id": "p", "workflow_id": "approving"}), node), {"id": "b", "action_id": "work"}],
        "transitions": [{"from_node_id": "p", "to_node_id": "b"}],
    })
}

fn sharing(node: Value) -> Value {
    with(calling(node), json!({"timeouts": {"inherit_budget": true}}))
}

/// A parent and the child it has just started, which stands at its gate. The parent knows.
fn pair(document: Value) -> (Driver, Driver) {
    let mut parent = Driver::start(document);
    let child = Driver::child_of(&parent);
    child_stands(&child);
    parent.delivered(1);
    parent.receive_from(&child);
    (parent, child)
}

fn child_stands(child: &Driver) {
    assert_eq!(child.status_line(), "waiting ask:awaiting_human");
    assert_eq!(child.lines_of("deliver"), ["deliver 1 tell run-1 t1@1 paused #1"]);
}

fn limit(run: &Driver) -> Value {
    views::run(&run.run, run.now)["deadlines"][0].take()
}

fn left(millis: u64) -> Value {
    json!({"kind": "workflow", "remaining_ms": millis})
}

fn due(at: u64) -> Value {
    json!({"kind": "workflow", "due_at": at})
}

#[test]
fn the_parents_clock_stops_with_its_childs() {
    let mut parent = Driver::start(calling(json!({})));
    let mut child = Driver::child_of(&parent);
    child_stands(&child);
    parent.delivered(1).at(1_500).receive_from(&child).check(
        "
        run waiting 19500 left
        token t1 p waiting_for_subworkflow@1 (child_paused)
        event subworkflow_paused t1
        announce
    ",
    );
    assert_eq!(parent.run.next_deadline(), None);
    child.delivered(1).at(25_000).decide("g1", "approve").check(
        r#"
        run running until 28000
        token t1 ask completed@1 {"by":"ada","choice":"approve","comment":null,"input":null} keeps state.ask
        token t2 c executing@1 watch 55000
        gate g1 decided null approve|reject until 31000 approve by ada at 25000
        message 2 tell run-1 t1@1 goes on #2
        alarm 28000
        dispatch t2@1 {"x":1}
        deliver 2 tell run-1 t1@1 goes on #2
        announce
        announce g1 decided
    "#,
    );
    parent.reload().at(25_100).receive_from(&child).check(
        "
        run running until 44600
        token t1 p waiting_for_subworkflow@1
        event subworkflow_resumed t1
        alarm 40600
        announce
    ",
    );
    child.at(26_000).succeed("t2@1", json!(7));
    parent
        .at(26_100)
        .receive_from(&child)
        .assert_status("running b:executing");
}

#[test]
fn the_report_of_an_end_starts_the_clock() {
    let (mut parent, mut child) = pair(calling(json!({"timeout_ms": 30_000})));
    child.at(11_000).cancel(None);
    assert_eq!(child.lines_of("message").len(), 1, "the end says it all");
    parent.at(12_000).receive_from(&child);
    assert_eq!(parent.run.header.status.name(), "failed");
    let token = parent.row("t1");
    assert_eq!((token.reason, token.deadline.stopped_at), (None, None));
    assert_eq!(token.stopped_ms, 11_000);
}

/// The limit of the child is that of the node. Both stand still, or the node would end its child at the gate.
#[test]
fn the_limit_of_the_calling_node_stands_still_with_its_child() {
    let (mut parent, mut child) = pair(calling(json!({"timeout_ms": 5_000})));
    assert_eq!(limit(&child), left(5_000));
    assert_eq!(
        views::run(&parent.run, 2_000)["deadlines"],
        json!([left(20_000), {"kind": "execution", "remaining_ms": 5_000, "token_id": "t1", "node_id": "p"}])
    );
    parent.reload().at(20_000).wake("").check("");
    child.at(25_000).decide("g1", "approve");
    parent.at(25_000).receive_from(&child);
    assert_eq!(parent.row("t1").deadline.at, Some(30_000));
    // The child does not end in time after all: its own limit comes first, then the node's.
    child.at(30_000).wake("t2@1");
    parent
        .at(30_010)
        .receive_from(&child)
        .assert_status("failed execution_timeout/timeout: step p timed out: context deadline exceeded");
    let record = &parent.records()[0].timeout_event;
    assert_eq!((record.timeout_ms, record.elapsed_ms), (Some(5_000), 5_010));
}

#[test]
fn a_parent_whose_clock_runs_ends_its_child_at_the_gate() {
    let document = with(calling(json!({"timeout_ms": 5_000})), json!({"clock": "runs"}));
    let (mut parent, mut child) = pair(document);
    parent.assert_status("waiting p:waiting_for_subworkflow");
    parent
        .at(6_500)
        .wake("")
        .assert_status("failed execution_timeout/timeout: step p timed out: context deadline exceeded");
    child.at(6_600).receive_from(&parent).assert_status("cancelled");
    let (mut parent, _) = pair(with(calling(json!({})), json!({"clock": "runs"})));
    assert_eq!(limit(&parent), due(21_000));
    parent.at(21_000).wake("");
    assert_eq!(parent.run.header.status.name(), "timed_out");
}

#[test]
fn a_pause_of_the_parent_stops_what_stands_and_gives_it_back() {
    let (mut parent, mut child) = pair(calling(json!({"timeout_ms": 5_000})));
    parent.at(10_000).pause();
    child.at(10_100).receive_from(&parent);
    assert_eq!((limit(&parent), limit(&child)), (left(20_000), left(5_000)));
    assert_eq!(
        views::run(&parent.run, 20_000)["deadlines"][1]["remaining_ms"],
        json!(5_000)
    );
    parent.at(110_000).reload().resume();
    child.at(110_100).reload().receive_from(&parent);
    parent.assert_status("waiting p:waiting_for_subworkflow");
    assert_eq!((limit(&parent), limit(&child)), (left(20_000), left(5_000)));
    child.at(120_000).decide("g1", "approve");
    parent.at(120_100).receive_from(&child);
    assert_eq!((limit(&parent), limit(&child)), (due(140_100), due(125_000)));
    assert_eq!(parent.row("t1").deadline.at, Some(125_100));
}

#[test]
fn a_child_may_go_on_while_its_parent_is_paused() {
    let (mut parent, _) = pair(calling(json!({"timeout_ms": 5_000})));
    parent.at(10_000).pause();
    // The message was under way.
    parent.at(15_000).child_news("t1@1", 2, false);
    assert_eq!((limit(&parent), parent.row("t1").reason), (left(20_000), None));
    parent.at(20_000).child_news("t1@1", 3, true);
    parent.at(30_000).resume();
    parent.at(40_000).reload().child_news("t1@1", 4, false);
    // 1 000 to 10 000, 30 000 to 40 000, and all of the pause.
    assert_eq!(parent.row("t1").deadline.at, Some(45_000));
    assert_eq!(limit(&parent), due(60_000));
}

#[test]
fn a_child_on_its_parents_budget_keeps_it_while_both_stand() {
    let (mut parent, mut child) = pair(with(sharing(json!({})), json!({"timeout_ms": 2_000})));
    assert_eq!((limit(&child), child.run.limit_source()), (left(2_000), "parent"));
    parent.at(10_000).extend(500);
    child.at(10_000).receive_from(&parent);
    assert_eq!((limit(&parent), limit(&child)), (left(2_500), left(2_500)));
    child.delivered(1).at(25_000).decide("g1", "approve");
    assert_eq!(limit(&child), due(27_500));
    parent.at(25_200).receive_from(&child);
    assert_eq!(limit(&parent), due(27_700));
    assert_eq!(
        parent.lines_of("deliver"),
        ["deliver 3 release run-1~t1 #2 budget 2500"]
    );
    child.at(25_300).receive_from(&parent);
    assert_eq!(limit(&child), due(27_800));
}

/// The parent's clock ran on, because another branch works: the child gets what is really left.
#[test]
fn a_child_on_a_budget_that_was_used_meanwhile_gets_the_rest() {
    let mut document = sharing(json!({}));
    document["timeout_ms"] = json!(25_000);
    document["nodes"] =
        json!([{"id": "a"}, {"id": "p", "workflow_id": "approving"}, {"id": "b", "action_id": "work"}]);
    document["transitions"] =
        json!([{"from_node_id": "a", "to_node_id": "p"}, {"from_node_id": "a", "to_node_id": "b"}]);
    document["actions"] =
        json!([{"id": "work", "kind": "service_call", "implementation": {"binding": "PEER"}}]);
    let mut parent = Driver::start(document);
    let mut child = Driver::child_of(&parent);
    // Its own 3 s are less than the budget.
    assert_eq!(child.run.limit_source(), "workflow");
    parent.delivered(1).receive_from(&child);
    parent.assert_status("running b:executing p:waiting_for_subworkflow");
    assert_eq!(limit(&parent), due(26_000));
    child.at(24_500).decide("g1", "approve");
    parent.at(24_500).receive_from(&child);
    assert_eq!(
        parent.lines_of("deliver"),
        ["deliver 2 release run-1~t2 #1 budget 1500"]
    );
    parent.at(26_000).wake("t3@1");
    assert_eq!(parent.run.header.status.name(), "timed_out");
    child.at(26_100).receive_from(&parent).assert_status("cancelled");
}

#[test]
fn the_news_goes_all_the_way_up() {
    let document = json!({"timeout_ms": 20_000, "nodes": [{"id": "p", "workflow_id": "thrifty"}]});
    let mut top = Driver::start(document);
    let mut middle = Driver::child_of(&top);
    let mut bottom = Driver::child_of(&middle);
    top.delivered(1);
    middle.delivered(1);
    // The gate of its own limit.
    bottom.at(4_000).wake("t1@1").assert_status("paused c:executing");
    middle.at(4_100).receive_from(&bottom);
    middle.assert_status("waiting m:waiting_for_subworkflow");
    assert_eq!(
        middle.lines_of("deliver"),
        ["deliver 2 tell run-1 t1@1 paused #1"]
    );
    top.at(4_200).receive_from(&middle);
    assert_eq!((limit(&top), limit(&middle)), (left(16_800), left(26_900)));
    bottom.delivered(1).at(14_000).grant("run1", 5_000);
    middle.delivered(2).at(14_100).receive_from(&bottom);
    assert_eq!(
        middle.lines_of("deliver"),
        [
            "deliver 3 release run-1~t1~t1 #2 budget 26900",
            "deliver 4 tell run-1 t1@1 goes on #3"
        ]
    );
    top.at(14_200).receive_from(&middle);
    assert_eq!(limit(&top), due(31_000));
}

#[test]
fn a_message_that_was_overtaken_changes_nothing() {
    let (mut parent, _) = pair(calling(json!({})));
    parent.at(5_000).child_news("t1@1", 3, true).check(
        "
        token t1 p waiting_for_subworkflow@1 (child_paused)
    ",
    );
    parent.child_news("t1@1", 2, false).check("");
    parent.child_news("t1@1", 4, false);
    parent.child_news("t1@1", 6, false).check(
        "
        token t1 p waiting_for_subworkflow@1
    ",
    );
    assert_eq!(parent.kinds(), "subworkflow_paused subworkflow_resumed");
}

#[test]
fn a_child_that_was_restarted_after_its_end_sends_no_message() {
    let (_, mut child) = pair(calling(json!({})));
    child.at(2_000).cancel(None).at(3_000).restart();
    child.assert_status("waiting ask:awaiting_human");
    assert_eq!(
        child.lines_of("message"),
        [""; 0],
        "its parent has the report of the end"
    );
}

#[test]
fn a_child_that_compensates_no_longer_waits_for_a_person() {
    let undo = json!({"nodes": [{"id": "a", "action_id": "work", "compensate": {"action_id": "work"}}, {"id": "ask", "gate": {}}],
        "transitions": [{"from_node_id": "a", "to_node_id": "ask"}]});
    let mut parent = Driver::start(calling(json!({"timeout_ms": 5_000})));
    let start = Start {
        stored: store_document(&complete_document(undo)),
        ..start_among(&parent.decision, &parent.run).expect("a child is to be started")
    };
    let (run, decision) = start.run(1_000, SETTINGS);
    let mut child = Driver::of(run, decision, SETTINGS);
    child.at(2_000).succeed("t1@1", json!(1));
    parent.delivered(1).at(2_000).receive_from(&child);
    assert_eq!(limit(&parent), left(19_000));
    child.delivered(1).at(50_000).cancel(None);
    assert_eq!(child.run.header.status.name(), "compensating");
    assert_eq!(
        child.lines_of("deliver"),
        ["deliver 2 tell run-1 t1@1 goes on #2"]
    );
    parent.at(50_000).receive_from(&child);
    assert_eq!(limit(&parent), due(69_000));
    assert_eq!(parent.row("t1").deadline.at, Some(54_000));
}
