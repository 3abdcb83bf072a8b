//! Limits, pauses and time budgets between a run and its children.

use curfew::run::{PauseReason, Rejection, RunStatus};
use serde_json::{Value, json};

use super::driver::Driver;
use super::graphs::with;

/// `p` calls a workflow, followed by `b`.
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

/// The limit was set by the node, so the child opens no gate: it ends, and the node's policy applies.
#[test]
fn a_sub_workflow_longer_than_its_parents_node_fails_the_node() {
    let (mut parent, mut child) = pair(calling(json!({"timeout_ms": 5_000})));
    child.at(6_000).wake("t1@1").check(
        "
        run timed_out workflow_timeout/timeout: Workflow execution timed out after 5s
        token t1 c timed_out@1 (workflow_timeout)
        event run_timed_out workflow_timeout {flow late 0 cancel}
        message 1 notify run-1 t1@1 timed_out workflow_timeout/timeout: Workflow execution timed out after 5s
        alarm 16000
        abort t1@1
        deliver 1 notify run-1 t1@1 timed_out workflow_timeout/timeout: Workflow execution timed out after 5s
        announce
        ended
    ",
    );
    parent.at(6_010).receive_from(&child);
    parent.assert_status("failed execution_timeout/timeout: step p timed out: context deadline exceeded");
    // The child reported in time, so the parent's alarm finds nothing due.
    parent.at(6_500).wake("");
    assert_eq!(parent.kinds(), "token_timed_out run_failed");
}

#[test]
fn a_sub_workflow_longer_than_its_parents_node_is_retried() {
    let (mut parent, mut child) = pair(calling(
        json!({"timeout_ms": 5_000, "on_timeout": "retry", "max_retries": 1}),
    ));
    child.at(6_000).wake("t1@1");
    parent
        .at(6_010)
        .receive_from(&child)
        .assert_status("running p:pending");
    parent.at(7_010).wake("");
    assert_eq!(
        parent.lines_of("deliver"),
        ["deliver 2 start run-1~t1~2 {\"x\":1} within 5000"]
    );
    let mut again = Driver::child_of(&parent);
    again.at(12_010).wake("t1@1");
    parent.at(12_020).receive_from(&again);
    parent.assert_status("failed execution_timeout/timeout: step p timed out: context deadline exceeded");
    assert_eq!(parent.row("t1").retry_count, 1);
}

#[test]
fn a_sub_workflow_longer_than_its_parents_node_takes_the_timeout_route() {
    let mut document = calling(json!({"timeout_ms": 5_000}));
    document["transitions"][0]["on"] = json!("timeout");
    document["nodes"][1]["input_mapping"] = json!("${error.code}");
    let (mut parent, mut child) = pair(document);
    child.at(6_000).wake("t1@1");
    parent
        .at(6_010)
        .receive_from(&child)
        .assert_status("running b:executing");
    assert_eq!(
        parent.lines_of("dispatch"),
        ["dispatch t2@1 \"execution_timeout\""]
    );
}

#[test]
fn the_childs_policy_applies_to_its_own_limit() {
    let mut document = calling(json!({}));
    document["nodes"][0]["workflow_id"] = json!("brief");
    let (mut parent, mut child) = pair(document);
    child.at(21_000).wake("t1@1");
    parent.at(21_010).receive_from(&child);
    parent.assert_status("failed workflow_timeout/timeout: Workflow execution timed out after 20s");
}

#[test]
fn a_child_is_paused_and_resumed_with_its_parent() {
    let (mut parent, mut child) = pair(calling(json!({})));
    parent.at(11_000).pause();
    assert_eq!(parent.lines_of("deliver"), ["deliver 2 hold run-1~t1 #1"]);
    child.at(11_000).receive_from(&parent).check(
        "
        run paused until 1001000 held by parent
        event run_paused parent
        announce
    ",
    );
    child.resume().check("rejected held_by parent -");
    child
        .at(12_000)
        .succeed("t1@1", json!("kept"))
        .assert_status("paused");
    parent.at(100_000).resume();
    child
        .at(100_000)
        .reload()
        .receive_from(&parent)
        .assert_status("completed \"kept\"");
    parent.receive_from(&child).assert_status("running b:executing");
}

#[test]
fn a_paused_child_keeps_its_remaining_time() {
    let (mut parent, mut child) = pair(calling(json!({"timeout_ms": 30_000})));
    parent.at(11_000).pause();
    child.at(11_000).receive_from(&parent);
    parent.at(111_000).resume();
    child
        .at(111_000)
        .receive_from(&parent)
        .assert_status("running c:executing");
    assert_eq!(child.run.header.timeout_at, Some(131_000), "20 s were left");
    assert_eq!(
        parent.row("t1").deadline.at,
        Some(131_000),
        "and the node that waits knows it"
    );
}

/// Messages may arrive out of order.
#[test]
fn the_latest_pause_message_wins_in_any_order_of_arrival() {
    let (_, mut child) = pair(calling(json!({})));
    child
        .parent_holds(2, false, None)
        .assert_status("running c:executing");
    child
        .parent_holds(1, true, None)
        .check("")
        .assert_status("running c:executing");
    // A repeated message has no effect.
    child
        .parent_holds(3, true, None)
        .assert_status("paused c:executing");
    child.parent_holds(3, true, None).check("");
    child.reload().parent_holds(2, false, None).check("");
    child.assert_status("paused c:executing");
    child
        .parent_holds(4, false, None)
        .assert_status("running c:executing");
}

#[test]
fn an_undelivered_pause_message_is_replaced_by_the_next() {
    let (mut parent, _) = pair(calling(json!({})));
    parent.pause().resume();
    assert_eq!(parent.lines_of("unmessage"), ["unmessage 2"]);
    assert_eq!(parent.lines_of("deliver"), ["deliver 3 release run-1~t1 #2"]);
    parent.reload().at(20_000).wake("");
    assert_eq!(parent.lines_of("deliver"), ["deliver 3 release run-1~t1 #2"]);
}

#[test]
fn a_child_paused_by_a_person_stays_paused_when_its_parent_resumes() {
    let (mut parent, mut child) = pair(calling(json!({})));
    child.at(5_000).pause();
    assert_eq!(
        child.lines_of("deliver"),
        [""; 0],
        "a person's pause is the person's matter"
    );
    parent.at(11_000).pause();
    child.at(11_000).receive_from(&parent);
    assert_eq!(pause_reasons(&child), [PauseReason::Person, PauseReason::Parent]);
    parent.at(20_000).resume();
    child
        .at(20_000)
        .receive_from(&parent)
        .assert_status("paused c:executing");
    assert_eq!(pause_reasons(&child), [PauseReason::Person]);
    child.at(25_000).resume().assert_status("running c:executing");
    assert_eq!(
        child.run.header.timeout_at,
        Some(1_021_000),
        "20 s of pause in all"
    );
}

/// With `clock: runs` the parent's own limit still applies.
#[test]
fn a_child_that_waits_for_a_person_notifies_its_parent() {
    let mut document = with(calling(json!({})), json!({"clock": "runs"}));
    document["nodes"][0]["workflow_id"] = json!("asking");
    let (mut parent, mut child) = pair(document);
    child.at(21_000).wake("t1@1").assert_status("paused c:executing");
    assert_eq!(child.lines_of("deliver"), ["deliver 1 tell run-1 t1@1 paused #1"]);
    parent.at(21_010).receive_from(&child).check(
        "
        run waiting until 61000
        token t1 p waiting_for_subworkflow@1 (child_paused)
        event subworkflow_paused t1
        alarm 49000
        announce
    ",
    );
    child
        .at(30_000)
        .grant("run1", 5_000)
        .assert_status("running c:executing");
    assert_eq!(
        child.lines_of("deliver"),
        ["deliver 2 tell run-1 t1@1 goes on #2"]
    );
    parent.at(30_010).receive_from(&child);
    assert_eq!(parent.row("t1").reason, None);
    // An older message that arrives later changes nothing.
    parent.child_news("t1@1", 1, true).check("");
    child.at(35_000).wake("t1@1").assert_status("paused c:executing");
    parent.at(35_010).receive_from(&child);
    // The end of the parent ends the child at its gate.
    parent.at(61_000).wake("");
    assert_eq!(parent.run.header.status, RunStatus::TimedOut);
    child.at(61_010).receive_from(&parent).assert_status("cancelled");
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
    parent.at(22_000).receive_from(&child);
    parent.assert_status("failed workflow_timeout/timeout: Workflow execution timed out after 20s");
}

#[test]
fn messages_of_a_stale_child_are_rejected() {
    let (mut parent, _) = pair(calling(json!({})));
    parent
        .child_news("t1@2", 1, true)
        .check("rejected stale_attempt t1@2");
    parent
        .child_news("t9@1", 1, true)
        .check("rejected stale_attempt t9@1");
}

#[test]
fn an_inherited_budget_shortens_the_childs_limit() {
    let (_, child) = pair(sharing(json!({})));
    assert_eq!(child.run.header.timeout_ms, Some(60_000));
    assert_eq!(child.run.limit_source(), "parent");
    // When both limits pass, the parent's takes precedence.
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
fn an_extension_of_the_parent_extends_the_child() {
    let (mut parent, mut child) = pair(sharing(json!({})));
    parent.at(11_000).extend(30_000);
    child
        .at(11_000)
        .receive_from(&parent)
        .assert_status("running c:executing");
    assert_eq!(child.run.header.timeout_at, Some(91_000));
    assert_eq!(child.run.header.timeout_ms, Some(90_000));
}

/// The child's own limit is the maximum, however much time its parent has.
#[test]
fn an_extension_of_the_parent_never_exceeds_the_childs_own_limit() {
    let mut document = sharing(json!({}));
    document["nodes"][0]["workflow_id"] = json!("brief");
    document["timeout_ms"] = json!(15_000);
    let (mut parent, mut child) = pair(document);
    assert_eq!(child.run.header.timeout_at, Some(16_000));
    parent.at(6_000).extend(100_000);
    child.at(6_000).receive_from(&parent);
    assert_eq!(
        (child.run.header.timeout_at, child.run.header.timeout_ms),
        (Some(21_000), Some(20_000))
    );
    assert_eq!(child.run.limit_source(), "workflow");
}

#[test]
fn the_parents_gate_takes_precedence_over_the_childs() {
    let (mut parent, mut child) = pair(sharing(json!({})));
    // Both limits pass at the same time. The parent pauses the child within the grace, so only one gate opens.
    child.at(61_000).wake("t1@1").assert_status("running c:executing");
    parent
        .at(61_000)
        .wake("")
        .assert_status("paused p:waiting_for_subworkflow");
    child
        .at(61_200)
        .receive_from(&parent)
        .assert_status("paused c:executing");
    assert_eq!(pause_reasons(&child), [PauseReason::Parent]);
    assert_eq!(child.run.gate_of_run(), None);
    parent.at(100_000).grant("run1", 20_000);
    child
        .at(100_010)
        .receive_from(&parent)
        .assert_status("running c:executing");
    assert_eq!(child.run.header.timeout_at, Some(120_010));
}

#[test]
fn the_parents_gate_replaces_one_the_child_has_opened() {
    let mut document = sharing(json!({}));
    document["nodes"][0]["workflow_id"] = json!("patient");
    let (mut parent, mut child) = pair(document);
    // The parent's message is late: after the grace the child opens its own gate.
    child.at(61_500).wake("t1@1").assert_status("paused c:executing");
    assert_eq!(pause_reasons(&child), [PauseReason::WorkflowTimeout]);
    parent.at(61_700).wake("");
    child
        .at(61_800)
        .receive_from(&parent)
        .assert_status("paused c:executing");
    assert_eq!(pause_reasons(&child), [PauseReason::Parent]);
    assert_eq!(
        child.lines_of("announce"),
        ["announce", "announce run1 cancelled"]
    );
    parent.at(100_000).grant("run1", 20_000);
    child
        .at(100_000)
        .receive_from(&parent)
        .assert_status("running c:executing");
    assert_eq!(child.run.header.timeout_at, Some(120_000));
}

/// The parent's time ran out, not the node's limit, so the node's timeout policy does not apply to the child.
#[test]
fn an_exhausted_budget_is_not_a_timeout_of_the_node() {
    let node = json!({"workflow_id": "patient", "timeout_ms": 100_000, "on_timeout": "fail"});
    let (mut parent, mut child) = pair(sharing(node));
    assert_eq!(child.run.header.timeout_at, Some(61_000));
    child.at(61_500).wake("t1@1").assert_status("paused c:executing");
    parent
        .at(61_600)
        .receive_from(&child)
        .assert_status("paused p:waiting_for_subworkflow");
    parent.at(70_000).grant("run1", 200_000);
    child
        .at(70_000)
        .receive_from(&parent)
        .assert_status("running c:executing");
    // After an extension the node's own limit is the earlier one again.
    assert_eq!(child.run.header.timeout_ms, Some(100_000));
    assert_eq!(child.run.limit_source(), "request");
}

#[test]
fn an_extension_reaches_the_grandchildren() {
    let (mut parent, mut child) = pair(sharing(json!({"workflow_id": "handing"})));
    let mut grandchild = Driver::child_of(&child);
    child.delivered(1);
    assert_eq!(grandchild.run.header.timeout_at, Some(61_000));
    parent.at(11_000).extend(30_000);
    child.at(11_000).receive_from(&parent);
    grandchild
        .at(11_000)
        .receive_from(&child)
        .assert_status("running c:executing");
    assert_eq!(grandchild.run.header.timeout_at, Some(91_000));
    // A pause is propagated too, with the remaining budget.
    parent.at(20_000).pause();
    child.at(20_000).receive_from(&parent);
    grandchild
        .at(20_000)
        .receive_from(&child)
        .assert_status("paused c:executing");
    parent.at(50_000).resume();
    child.at(50_000).receive_from(&parent);
    grandchild
        .at(50_000)
        .receive_from(&child)
        .assert_status("running c:executing");
    assert_eq!(grandchild.run.header.timeout_at, Some(121_000));
}

/// The parent was notified that the child waits for a person, which is no longer true.
#[test]
fn a_child_restarted_at_its_gate_notifies_its_parent() {
    let (mut parent, mut child) = pair(calling(json!({"workflow_id": "asking"})));
    child.at(21_000).wake("t1@1");
    parent.at(21_000).receive_from(&child);
    child
        .delivered(1)
        .at(22_000)
        .restart()
        .assert_status("running c:executing");
    assert_eq!(
        child.lines_of("deliver"),
        ["deliver 2 tell run-1 t1@1 goes on #2"]
    );
    parent.at(22_000).receive_from(&child);
    assert_eq!(parent.row("t1").reason, None);
}

/// A pause moves the deadline and its warning together, so a warning that was sent is not repeated.
#[test]
fn a_pause_of_the_parent_does_not_warn_the_child_again() {
    let (mut parent, mut child) = pair(sharing(json!({})));
    child.at(49_000).wake("t1@1");
    assert_eq!(child.warnings().len(), 1);
    parent.at(50_000).pause();
    child.at(50_010).receive_from(&parent);
    parent.at(60_000).resume();
    child.at(60_010).receive_from(&parent).at(60_020).wake("t1@1");
    assert_eq!(child.warnings().len(), 1);
}

#[test]
fn an_ended_child_is_not_paused() {
    let (_, mut child) = pair(calling(json!({})));
    child.succeed("t1@1", json!(1)).parent_holds(1, true, None);
    child.check("rejected run_finished");
}

/// The parent's deadline for the node would not move, and would end the child despite its extension.
#[test]
fn a_limit_of_the_node_is_not_extended_in_the_child() {
    let (_, mut child) = pair(calling(json!({"timeout_ms": 10_000})));
    child.at(2_000).extend(60_000);
    assert_eq!(child.answer, Err(Rejection::LimitOfParent));
}
