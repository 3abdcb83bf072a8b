//! Time between a run and its children: whose limit ends what, who stands still with whom, and how much is left.

use curfew::run::{PauseReason, Rejection, RunStatus};
use serde_json::{Value, json};

use super::driver::Driver;
use super::graphs::with;

/// `p` calls a workflow, then `b` works.
fn calling(node: Value) -> Value {
    json!({
        "timeout_ms": 60_000,
        "nodes": [with(json!({"id": "p", "workflow_id": "child"}), node), {"id": "b", "action_id": "work"}],
        "transitions": [{"from_node_id": "p", "to_node_id": "b"}],
    })
}

fn sharing(node: Value) -> Value {
    with(
        calling(node),
        json!({"timeouts": {"inherit_budget": true}, "on_timeout": "human_gate"}),
    )
}

/// A parent and the child it has just started.
fn pair(document: Value) -> (Driver, Driver) {
    let mut parent = Driver::start(document);
    let child = Driver::child_of(&parent);
    parent.delivered(1);
    (parent, child)
}

fn pause_reasons(run: &Driver) -> Vec<PauseReason> {
    run.run.header.pause_reasons.iter().copied().collect()
}

/// The limit is the node's, so the child does not ask anybody: it ends, and the node says what that means.
#[test]
fn a_sub_workflow_longer_than_its_parents_node_fails_the_node() {
    let (mut parent, mut child) = pair(calling(json!({"timeout_ms": 5_000})));
    child.at(6_000).wake("t1@1").check(
        "
        run timed_out workflow_timeout/timeout: Workflow execution timed out after 5s
        token t1 c timed_out@1 (workflow_timeout)
        event 1 run_timed_out workflow_timeout {flow late 0 cancel}
        message 1 notify run-1 t1@1 timed_out workflow_timeout/timeout: Workflow execution timed out after 5s
        alarm 16000
        abort t1@1
        deliver 1 notify run-1 t1@1 timed_out workflow_timeout/timeout: Workflow execution timed out after 5s
        announce
        ended
    ",
    );
    parent.at(6_010).hear(&child);
    parent.stands("failed execution_timeout/timeout: step p timed out: context deadline exceeded");
    // The child's word was in time: the alarm of the parent finds nothing left.
    parent.at(6_500).wake("");
    assert_eq!(parent.kinds(), "token_timed_out run_failed");
}

#[test]
fn a_sub_workflow_longer_than_its_parents_node_is_tried_again() {
    let (mut parent, mut child) = pair(calling(
        json!({"timeout_ms": 5_000, "on_timeout": "retry", "max_retries": 1}),
    ));
    child.at(6_000).wake("t1@1");
    parent.at(6_010).hear(&child).stands("running p:pending");
    parent.at(7_010).wake("");
    assert_eq!(
        parent.lines_of("deliver"),
        ["deliver 2 start run-1~t1~2 {\"x\":1} within 5000"]
    );
    let mut again = Driver::child_of(&parent);
    again.at(12_010).wake("t1@1");
    parent.at(12_020).hear(&again);
    parent.stands("failed execution_timeout/timeout: step p timed out: context deadline exceeded");
    assert_eq!(parent.row("t1").retry_count, 1);
}

#[test]
fn a_sub_workflow_longer_than_its_parents_node_takes_the_timeout_route() {
    let mut document = calling(json!({"timeout_ms": 5_000}));
    document["transitions"][0]["on"] = json!("timeout");
    document["nodes"][1]["input_mapping"] = json!("${error.code}");
    let (mut parent, mut child) = pair(document);
    child.at(6_000).wake("t1@1");
    parent.at(6_010).hear(&child).stands("running b:executing");
    assert_eq!(
        parent.lines_of("dispatch"),
        ["dispatch t2@1 \"execution_timeout\""]
    );
}

#[test]
fn the_childs_policy_counts_where_the_limit_is_its_own() {
    let mut document = calling(json!({}));
    document["nodes"][0]["workflow_id"] = json!("brief");
    let (mut parent, mut child) = pair(document);
    child.at(21_000).wake("t1@1");
    parent.at(21_010).hear(&child);
    parent.stands("failed workflow_timeout/timeout: Workflow execution timed out after 20s");
}

#[test]
fn a_child_stands_still_and_goes_on_with_its_parent() {
    let (mut parent, mut child) = pair(calling(json!({})));
    parent.at(11_000).pause();
    assert_eq!(parent.lines_of("deliver"), ["deliver 2 hold run-1~t1 #1"]);
    child.at(11_000).hear(&parent).check(
        "
        run paused until 1001000 held by parent
        event 1 run_paused parent
        announce
    ",
    );
    child.resume().check("rejected held_by parent -");
    child.at(12_000).succeed("t1@1", json!("kept")).stands("paused");
    parent.at(100_000).resume();
    child
        .at(100_000)
        .reload()
        .hear(&parent)
        .stands("completed \"kept\"");
    parent.hear(&child).stands("running b:executing");
}

#[test]
fn a_child_keeps_what_was_left_of_its_time() {
    let (mut parent, mut child) = pair(calling(json!({"timeout_ms": 30_000})));
    parent.at(11_000).pause();
    child.at(11_000).hear(&parent);
    parent.at(111_000).resume();
    child.at(111_000).hear(&parent).stands("running c:executing");
    assert_eq!(child.run.header.timeout_at, Some(131_000), "20 s were left");
    assert_eq!(
        parent.row("t1").timeout_at,
        Some(131_000),
        "and the node that waits knows it"
    );
}

/// Words may overtake each other on their way.
#[test]
fn the_later_word_counts_whichever_arrives_first() {
    let (_, mut child) = pair(calling(json!({})));
    child.parent_holds(2, false, None).stands("running c:executing");
    child
        .parent_holds(1, true, None)
        .check("")
        .stands("running c:executing");
    // Heard twice is heard once.
    child.parent_holds(3, true, None).stands("paused c:executing");
    child.parent_holds(3, true, None).check("");
    child.reload().parent_holds(2, false, None).check("");
    child.stands("paused c:executing");
    child.parent_holds(4, false, None).stands("running c:executing");
}

#[test]
fn a_word_that_was_not_heard_yet_is_replaced_by_the_next() {
    let (mut parent, _) = pair(calling(json!({})));
    parent.pause().resume();
    assert_eq!(parent.lines_of("unmessage"), ["unmessage 2"]);
    assert_eq!(parent.lines_of("deliver"), ["deliver 3 release run-1~t1 #2"]);
    parent.reload().at(20_000).wake("");
    assert_eq!(parent.lines_of("deliver"), ["deliver 3 release run-1~t1 #2"]);
}

#[test]
fn a_child_paused_by_a_person_stays_paused_when_its_parent_goes_on() {
    let (mut parent, mut child) = pair(calling(json!({})));
    child.at(5_000).pause();
    assert_eq!(
        child.lines_of("deliver"),
        [""; 0],
        "a person's pause is the person's matter"
    );
    parent.at(11_000).pause();
    child.at(11_000).hear(&parent);
    assert_eq!(pause_reasons(&child), [PauseReason::Person, PauseReason::Parent]);
    parent.at(20_000).resume();
    child.at(20_000).hear(&parent).stands("paused c:executing");
    assert_eq!(pause_reasons(&child), [PauseReason::Person]);
    child.at(25_000).resume().stands("running c:executing");
    assert_eq!(
        child.run.header.timeout_at,
        Some(1_021_000),
        "20 s of pause in all"
    );
}

/// It says so to its parent, who goes on living: its own limit still counts.
#[test]
fn a_child_in_front_of_a_person_tells_its_parent() {
    let mut document = calling(json!({}));
    document["nodes"][0]["workflow_id"] = json!("asking");
    let (mut parent, mut child) = pair(document);
    child.at(21_000).wake("t1@1").stands("paused c:executing");
    assert_eq!(child.lines_of("deliver"), ["deliver 1 tell run-1 t1@1 paused #1"]);
    parent.at(21_010).hear(&child).check(
        "
        token t1 p waiting_for_subworkflow@1 (child_paused)
        event 1 subworkflow_paused t1
        alarm 49000
    ",
    );
    parent.stands("running p:waiting_for_subworkflow");
    child
        .at(30_000)
        .grant("run1", 5_000)
        .stands("running c:executing");
    assert_eq!(
        child.lines_of("deliver"),
        ["deliver 2 tell run-1 t1@1 goes on #2"]
    );
    parent.at(30_010).hear(&child);
    assert_eq!(parent.row("t1").reason, None);
    // News that was overtaken changes nothing.
    parent.child_news("t1@1", 1, true).check("");
    child.at(35_000).wake("t1@1").stands("paused c:executing");
    parent.at(35_010).hear(&child);
    // The parent's own end ends the child at its gate.
    parent.at(61_000).wake("");
    assert_eq!(parent.run.header.status, RunStatus::TimedOut);
    child.at(61_010).hear(&parent).stands("cancelled");
    assert_eq!(
        child.lines_of("announce"),
        ["announce", "announce run2 cancelled"]
    );
}

#[test]
fn a_decision_at_the_childs_gate_ends_the_node() {
    let mut document = calling(json!({}));
    document["nodes"][0]["workflow_id"] = json!("asking");
    let (mut parent, mut child) = pair(document);
    child.at(21_000).wake("t1@1").at(22_000).decide("run1", "fail");
    parent.at(22_000).hear(&child);
    parent.stands("failed workflow_timeout/timeout: Workflow execution timed out after 20s");
}

#[test]
fn news_of_a_child_that_does_not_count_any_more_is_refused() {
    let (mut parent, _) = pair(calling(json!({})));
    parent
        .child_news("t1@2", 1, true)
        .check("rejected stale_attempt t1@2");
    parent
        .child_news("t9@1", 1, true)
        .check("rejected stale_attempt t9@1");
}

#[test]
fn on_a_budget_the_childs_limit_is_cut_to_what_is_left() {
    let (_, child) = pair(sharing(json!({})));
    assert_eq!(child.run.header.timeout_ms, Some(60_000));
    assert_eq!(child.run.limit_source(), "parent");
    // The parent has the first word when both have run out.
    assert_eq!(child.run.header.timeout_at, Some(61_000));
    let due = child.run.next_deadline().expect("a deadline");
    assert!(due <= 49_000, "the warning, or a look at the attempt: {due}");
    let (_, child) = pair(sharing(json!({"timeout_ms": 5_000})));
    assert_eq!(
        (child.run.header.timeout_ms, child.run.header.on_budget),
        (Some(5_000), false)
    );
}

#[test]
fn the_parents_extension_gives_the_child_more() {
    let (mut parent, mut child) = pair(sharing(json!({})));
    parent.at(11_000).extend(30_000);
    child.at(11_000).hear(&parent).stands("running c:executing");
    assert_eq!(child.run.header.timeout_at, Some(91_000));
    assert_eq!(child.run.header.timeout_ms, Some(90_000));
}

/// Its own limit is the most it gets, however much its parent has.
#[test]
fn more_time_for_the_parent_is_never_more_than_the_childs_own_limit() {
    let mut document = sharing(json!({}));
    document["nodes"][0]["workflow_id"] = json!("brief");
    document["timeout_ms"] = json!(15_000);
    let (mut parent, mut child) = pair(document);
    assert_eq!(child.run.header.timeout_at, Some(16_000));
    parent.at(6_000).extend(100_000);
    child.at(6_000).hear(&parent);
    assert_eq!(
        (child.run.header.timeout_at, child.run.header.timeout_ms),
        (Some(21_000), Some(20_000))
    );
    assert_eq!(child.run.limit_source(), "workflow");
}

#[test]
fn the_parents_gate_wins_over_the_childs() {
    let (mut parent, mut child) = pair(sharing(json!({})));
    // Both run out in the same moment. The parent says so within the grace: nobody is asked twice.
    child.at(61_000).wake("t1@1").stands("running c:executing");
    parent
        .at(61_000)
        .wake("")
        .stands("paused p:waiting_for_subworkflow");
    child.at(61_200).hear(&parent).stands("paused c:executing");
    assert_eq!(pause_reasons(&child), [PauseReason::Parent]);
    assert_eq!(child.run.gate_of_run(), None);
    parent.at(100_000).grant("run1", 20_000);
    child.at(100_010).hear(&parent).stands("running c:executing");
    assert_eq!(child.run.header.timeout_at, Some(120_010));
}

#[test]
fn the_parents_gate_takes_the_place_of_one_the_child_had_opened() {
    let mut document = sharing(json!({}));
    document["nodes"][0]["workflow_id"] = json!("patient");
    let (mut parent, mut child) = pair(document);
    // The parent is slow to say it: after the grace the child asks by itself.
    child.at(61_500).wake("t1@1").stands("paused c:executing");
    assert_eq!(pause_reasons(&child), [PauseReason::WorkflowTimeout]);
    parent.at(61_700).wake("");
    child.at(61_800).hear(&parent).stands("paused c:executing");
    assert_eq!(pause_reasons(&child), [PauseReason::Parent]);
    assert_eq!(
        child.lines_of("announce"),
        ["announce", "announce run1 cancelled"]
    );
    parent.at(100_000).grant("run1", 20_000);
    child.at(100_000).hear(&parent).stands("running c:executing");
    assert_eq!(child.run.header.timeout_at, Some(120_000));
}

/// What ran out is the parent's time and not the node's: the child does not end as if the node had said so.
#[test]
fn a_budget_that_ran_out_before_the_nodes_limit_is_not_the_nodes_timeout() {
    let node = json!({"workflow_id": "patient", "timeout_ms": 100_000, "on_timeout": "fail"});
    let (mut parent, mut child) = pair(sharing(node));
    assert_eq!(child.run.header.timeout_at, Some(61_000));
    child.at(61_500).wake("t1@1").stands("paused c:executing");
    parent
        .at(61_600)
        .hear(&child)
        .stands("paused p:waiting_for_subworkflow");
    parent.at(70_000).grant("run1", 200_000);
    child.at(70_000).hear(&parent).stands("running c:executing");
    // With more than enough time left for both the node's own limit is the nearer one again.
    assert_eq!(child.run.header.timeout_ms, Some(100_000));
    assert_eq!(child.run.limit_source(), "request");
}

#[test]
fn more_time_goes_down_to_the_grandchildren() {
    let (mut parent, mut child) = pair(sharing(json!({"workflow_id": "handing"})));
    let mut grandchild = Driver::child_of(&child);
    child.delivered(1);
    assert_eq!(grandchild.run.header.timeout_at, Some(61_000));
    parent.at(11_000).extend(30_000);
    child.at(11_000).hear(&parent);
    grandchild.at(11_000).hear(&child).stands("running c:executing");
    assert_eq!(grandchild.run.header.timeout_at, Some(91_000));
    // And so does a pause, with what is left of it.
    parent.at(20_000).pause();
    child.at(20_000).hear(&parent);
    grandchild.at(20_000).hear(&child).stands("paused c:executing");
    parent.at(50_000).resume();
    child.at(50_000).hear(&parent);
    grandchild.at(50_000).hear(&child).stands("running c:executing");
    assert_eq!(grandchild.run.header.timeout_at, Some(121_000));
}

/// The parent heard that it stood in front of a person; it does not stand there any more.
#[test]
fn a_child_restarted_at_its_gate_tells_its_parent() {
    let (mut parent, mut child) = pair(calling(json!({"workflow_id": "asking"})));
    child.at(21_000).wake("t1@1");
    parent.at(21_000).hear(&child);
    child
        .delivered(1)
        .at(22_000)
        .restart()
        .stands("running c:executing");
    assert_eq!(
        child.lines_of("deliver"),
        ["deliver 2 tell run-1 t1@1 goes on #2"]
    );
    parent.at(22_000).hear(&child);
    assert_eq!(parent.row("t1").reason, None);
}

/// A pause of the parent moves nothing that was not moved before.
#[test]
fn a_pause_of_the_parent_does_not_warn_the_child_again() {
    let (mut parent, mut child) = pair(sharing(json!({})));
    child.at(49_000).wake("t1@1");
    assert_eq!(child.warnings().len(), 1);
    parent.at(50_000).pause();
    child.at(50_010).hear(&parent);
    parent.at(60_000).resume();
    child.at(60_010).hear(&parent).at(60_020).wake("t1@1");
    assert_eq!(child.warnings().len(), 1);
}

#[test]
fn an_ended_child_does_not_stand_still() {
    let (_, mut child) = pair(calling(json!({})));
    child.succeed("t1@1", json!(1)).parent_holds(1, true, None);
    child.check("rejected run_finished");
}

/// The parent's clock for the node would go on: the child would be told one thing and end by another.
#[test]
fn a_limit_of_the_node_is_not_extended_in_the_child() {
    let (_, mut child) = pair(calling(json!({"timeout_ms": 10_000})));
    child.at(2_000).extend(60_000);
    assert_eq!(child.answer, Err(Rejection::LimitOfParent));
}
