//! Events that tasks emit: posted once, in the commit that completes their token, and never by failed or stale attempts.

use curfew::protocol::task::{Emitted, TaskReport};
use curfew::run::{Event, EventRef, Message, ParentLink, RunEventKind, StartRequest, TriggeredBy, Write};
use serde_json::{Value, json};

use super::driver::{Driver, SETTINGS, START, Start, complete_document, failed, store_document, succeeded};

fn one_node() -> Value {
    json!({"nodes": [{"id": "a", "action_id": "work"}]})
}

fn emitted(name: &str, payload: Value) -> Emitted {
    Emitted {
        name: name.into(),
        payload,
    }
}

fn emitting(attempt: &str, names: &[&str]) -> TaskReport {
    TaskReport {
        events: names
            .iter()
            .map(|name| emitted(name, json!({"of": name})))
            .collect(),
        ..succeeded(attempt, json!("done"))
    }
}

/// The first event of a chain.
fn root() -> EventRef {
    EventRef {
        event: "outside".into(),
        key: "k0".into(),
    }
}

/// The roots of the events that the last decision posts.
fn posted_roots(run: &Driver) -> Vec<Option<EventRef>> {
    let posted = run
        .decision
        .writes()
        .iter()
        .filter_map(|write| match write.message() {
            Some(Message::Emit { root, .. }) => Some(root.clone()),
            _other => None,
        });
    posted.collect()
}

/// A run at the end of a chain of `hops` events.
fn after_hops(hops: u32, document: Value) -> Driver {
    let start = Start {
        id: "run-1".into(),
        stored: store_document(&complete_document(document)),
        input: json!({}),
        request: StartRequest::default(),
        parent: None,
        triggered_by: Some(TriggeredBy {
            event: "first".into(),
            key: "k".into(),
            hops,
            root: (hops > 1).then(root),
        }),
        started_by: None,
    };
    let (run, decision) = start.run(START, SETTINGS);
    Driver::of(run, decision, SETTINGS)
}

fn inline_emitter() -> Value {
    json!({"nodes": [{"id": "a", "task_id": "t", "output_mapping": {}}], "tasks": [{"id": "t", "steps": [
        {"action": {"kind": "emit_event", "implementation": {"name": "x-${input.x}", "payload": {"x": "${input.x}"}}}}]}]})
}

#[test]
fn an_event_is_posted_when_its_token_completes() {
    let mut run = Driver::start(one_node());
    run.at(2_000)
        .report(emitting("t1@1", &["first", "second"]))
        .check(
            r#"
            run completed {}
            token t1 a completed@1 "done" keeps state.a
            message 1 emit first {"of":"first"} as run-1/1000/t1/0 hops 1
            message 2 emit second {"of":"second"} as run-1/1000/t1/1 hops 1
            alarm 12000
            deliver 1 emit first {"of":"first"} as run-1/1000/t1/0 hops 1
            deliver 2 emit second {"of":"second"} as run-1/1000/t1/1 hops 1
            announce
            ended
        "#,
        );
    run.at(2_100).report(emitting("t1@1", &["again"]));
    assert!(run.answer.is_err(), "the token is done");
    assert!(run.lines_of("message").is_empty());
    run.delivered(1).check("unmessage 1");
    run.at(12_000).wake("").check(
        r#"
            alarm 32000
            deliver 2 emit second {"of":"second"} as run-1/1000/t1/1 hops 1
        "#,
    );
}

#[test]
fn an_event_survives_a_reload() {
    let mut run = Driver::start(one_node());
    run.at(2_000).report(emitting("t1@1", &["first"]));
    run.reload().at(3_000).load();
    run.wake("");
    assert_eq!(
        run.lines_of("deliver"),
        [r#"deliver 1 emit first {"of":"first"} as run-1/1000/t1/0 hops 1"#],
        "the same key"
    );
    run.delivered(1).check("unmessage 1");
    run.reload().at(60_000).wake("");
    assert!(run.lines_of("deliver").is_empty());
}

#[test]
fn failed_and_late_attempts_emit_nothing() {
    let mut run = Driver::start(one_node());
    run.at(2_000).lose("t1@1");
    run.at(2_100).report(emitting("t1@1", &["stale"]));
    assert!(run.answer.is_err() && run.lines_of("message").is_empty());
    let mut report = failed("t1@2");
    report.events = vec![emitted("failed", json!(1))];
    run.at(3_000).report(report);
    assert!(run.lines_of("message").is_empty());
    run.assert_status("failed peer_failed/server_error: status 500");
    // The task completed, but its output mapping fails.
    let mut run = Driver::start(json!({"nodes": [{"id": "a", "action_id": "work",
        "output_mapping": {"state.x": "${result.missing}"}}]}));
    run.report(emitting("t1@1", &["unmapped"]));
    assert!(run.lines_of("message").is_empty());
}

/// A token that waits for its siblings has done its work, so its event is posted.
#[test]
fn a_branch_emits_when_it_arrives() {
    let mut run = Driver::start(json!({
        "nodes": [{"id": "a"}, {"id": "b", "action_id": "work"}, {"id": "c"}],
        "transitions": [{"id": "out", "from_node_id": "a", "to_node_id": "b", "spawn_count": 2},
            {"from_node_id": "b", "to_node_id": "c", "synchronization": {"sibling_group": "out", "strategy": "all"}}],
    }));
    run.report(emitting("t2@1", &["left"]));
    assert_eq!(
        run.lines_of("message"),
        [r#"message 1 emit left {"of":"left"} as run-1/1000/t2/0 hops 1"#]
    );
    run.report(emitting("t3@1", &["right"]));
    assert_eq!(
        run.lines_of("message"),
        [r#"message 2 emit right {"of":"right"} as run-1/1000/t3/0 hops 1"#]
    );
}

#[test]
fn the_inline_lane_emits_in_the_decision_that_runs_the_task() {
    let run = Driver::start(inline_emitter());
    assert_eq!(
        run.lines_of("message"),
        [r#"message 1 emit x-1 {"x":1} as run-1/1000/t1/0 hops 1"#]
    );
    assert_eq!(run.status_line(), "completed {}");
}

#[test]
fn a_restart_emits_with_a_new_key() {
    let mut run = Driver::start(inline_emitter());
    run.at(5_000).restart();
    assert_eq!(
        run.lines_of("message"),
        [r#"message 2 emit x-1 {"x":1} as run-1/1000/t2/0 hops 1"#]
    );
}

/// An event that exceeds the call budget continues in the next invocation where it stopped.
#[test]
fn an_event_for_many_workflows_is_delivered_in_parts() {
    let mut run = Driver::start(one_node());
    run.at(2_000).report(emitting("t1@1", &["first"]));
    let unfinished = |after: Option<&str>| Event::DeliveryUnfinished {
        id: 1,
        after: after.map(str::to_string),
    };
    run.at(2_100).feed(unfinished(Some("b"))).check(
        r#"
            message 1 emit first {"of":"first"} as run-1/1000/t1/0 hops 1 after b
            alarm 2100
        "#,
    );
    run.wake("").check(
        r#"
            alarm 22100
            deliver 1 emit first {"of":"first"} as run-1/1000/t1/0 hops 1 after b
        "#,
    );
    // No calls were left, or an older report arrives after a newer one: nothing is saved.
    run.at(2_200).feed(unfinished(None)).check("alarm 2200");
    run.reload().at(2_300).wake("");
    assert_eq!(
        run.lines_of("deliver"),
        [r#"deliver 1 emit first {"of":"first"} as run-1/1000/t1/0 hops 1 after b"#]
    );
    run.delivered(1).check("unmessage 1");
    run.feed(unfinished(Some("c"))).check("");
}

/// Two events without calls left must not keep waking the run.
#[test]
fn an_event_without_calls_left_waits_for_the_next_wake() {
    let mut run = Driver::start(one_node());
    run.room = 0;
    run.at(2_000).report(emitting("t1@1", &["first"]));
    assert_eq!(run.lines_of("message").len(), 1, "it is saved");
    assert!(run.lines_of("deliver").is_empty());
    assert_eq!(run.lines_of("alarm"), ["alarm 2000"]);
    run.wake("").check("alarm 2000");
    run.room = 1;
    run.wake("").check(
        r#"
            alarm 12000
            deliver 1 emit first {"of":"first"} as run-1/1000/t1/0 hops 1
        "#,
    );
}

#[test]
fn chains_of_events_are_bounded() {
    let mut run = after_hops(15, one_node());
    run.report(emitting("t1@1", &["next"]));
    assert_eq!(
        run.lines_of("message"),
        [r#"message 1 emit next {"of":"next"} as run-1/1000/t1/0 hops 16"#]
    );
    let mut run = after_hops(16, one_node());
    run.reload().report(emitting("t1@1", &["next"]));
    assert!(run.lines_of("message").is_empty());
    assert!(
        run.status_line()
            .starts_with("failed event_loop/permanent: event next was not emitted: 16 events")
    );
    // A task without events is not affected. The same holds for inline tasks.
    let mut run = after_hops(16, one_node());
    run.succeed("t1@1", json!(1)).assert_status("completed {}");
    let run = after_hops(16, inline_emitter_of_nothing());
    assert!(
        run.status_line()
            .starts_with("failed event_loop/permanent: event x")
    );
}

fn inline_emitter_of_nothing() -> Value {
    json!({"nodes": [{"id": "a", "task_id": "t"}], "tasks": [{"id": "t", "steps": [
        {"action": {"kind": "emit_event", "implementation": {"name": "x"}}}]}]})
}

#[test]
fn children_inherit_the_hops_of_their_parent() {
    let parent = after_hops(3, json!({"nodes": [{"id": "a", "workflow_id": "child"}]}));
    let mut child = Driver::start_child(&parent);
    assert_eq!(child.run.header.hops, 3);
    child.reload().report(emitting("t1@1", &["next"]));
    let [line] = &child.lines_of("message")[..1] else {
        panic!("one event and one word to the parent")
    };
    assert_eq!(
        line,
        r#"message 1 emit next {"of":"next"} as run-1~t1/1000/t1/0 hops 4"#
    );
    let link: ParentLink = serde_json::from_value(
        json!({"run_id": "r", "token_id": "t1", "epoch": 1, "root_run_id": "r", "depth": 1}),
    )
    .expect("a link of an earlier build");
    assert_eq!(link.hops, 0);
}

#[test]
fn an_event_carries_the_first_event_of_its_chain() {
    let report = || emitting("t1@1", &["next"]);
    // No event started the run: this one is the first of its chain.
    let mut run = Driver::start(one_node());
    assert_eq!(posted_roots(run.report(report())), [None]);
    // The event that started the run is the first.
    let mut run = after_hops(1, one_node());
    let first = EventRef {
        event: "first".into(),
        key: "k".into(),
    };
    assert_eq!(posted_roots(run.reload().report(report())), [Some(first)]);
    let mut run = after_hops(2, one_node());
    assert_eq!(posted_roots(run.reload().report(report())), [Some(root())]);
    // Children belong to the chain of their parent.
    let parent = after_hops(2, json!({"nodes": [{"id": "a", "workflow_id": "child"}]}));
    let mut child = Driver::start_child(&parent);
    assert_eq!(posted_roots(child.reload().report(report())), [Some(root())]);
}

#[test]
fn refused_starts_are_logged_by_the_emitting_run() {
    let mut run = after_hops(2, one_node());
    run.report(emitting("t1@1", &["next"]));
    let refused = |id| Event::StartsRefused {
        id,
        workflows: vec!["archive".into(), "bill".into()],
    };
    run.feed(refused(1));
    let entries: Vec<_> = run
        .decision
        .writes()
        .iter()
        .filter_map(|write| match write {
            Write::SaveEvent(entry) => Some((entry.kind, json!(entry.fields))),
            _other => None,
        })
        .collect();
    let fields = json!({
        "limit": "event_limit", "most": 1_000, "event_name": "next", "event_key": "run-1/1000/t1/0",
        "root_event": {"event": "outside", "key": "k0"}, "workflow_ids": ["archive", "bill"],
    });
    assert_eq!(entries, [(RunEventKind::LimitExceeded, fields)]);
    // An unknown or delivered message is not logged.
    run.feed(refused(7)).delivered(1).feed(refused(1));
    assert!(run.decision.is_empty(), "{:?}", run.decision);
}
