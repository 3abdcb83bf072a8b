//! Messages from runs that are neither parent nor child are rejected and change nothing.

use curfew::run::{
    ChildIds, ChildReport, ChildStatusUpdate, Command, Event, Message, ParentLink, ParentSender, Rejection,
    RunStatus, StartRefusal, StartRequest,
};
use serde_json::{Value, json};

use super::driver::{Driver, child_of, parse_attempt};
use super::time_steps::asked_by_parent;

fn calling() -> Value {
    json!({"nodes": [{"id": "call", "workflow_id": "child"}]})
}

fn sender(run_id: &str, token_id: Option<&str>) -> ParentSender {
    ParentSender {
        run_id: run_id.into(),
        token_id: token_id.map(str::to_string),
    }
}

fn holding() -> Event {
    Event::ParentHolds {
        number: 1,
        held: true,
        budget_ms: None,
    }
}

#[track_caller]
fn ask(run: &mut Driver, sender: ParentSender, event: Event) {
    let event = Box::new(event);
    run.feed(Event::FromParent { sender, event });
}

#[test]
fn only_the_parent_may_pause_and_cancel_as_a_parent() {
    let parent = Driver::start(calling());
    let mut alone = Driver::start(calling());
    let mut child = Driver::start_child(&parent);
    for (is_child, stranger) in [
        (false, sender("run-1", Some("t1"))),
        (false, sender("run-1", None)),
        (true, sender("run-2", Some("t1"))),
        (true, sender("run-1", Some("t2"))),
        (true, sender("", None)),
    ] {
        let run = if is_child { &mut child } else { &mut alone };
        let before = run.status_line();
        let cancel = Event::CancelRequested {
            reason: None,
            by: None,
        };
        for event in [holding(), cancel] {
            ask(run, stranger.clone(), event);
            let run_id = stranger.run_id.clone();
            assert_eq!(run.answer, Err(Rejection::NotParent { run_id }));
            assert!(run.decision.is_empty(), "{:?}", run.decision);
            assert_eq!(run.status_line(), before);
        }
    }
    // The parent itself. Messages saved by an older build carry no token.
    ask(&mut child, sender("run-1", Some("t1")), holding());
    assert_eq!(child.answer, Ok(()));
    assert_eq!(child.run.header.status, RunStatus::Paused);
    let reason = Some("enough".to_string());
    ask(
        &mut child,
        sender("run-1", None),
        Event::CancelRequested { reason, by: None },
    );
    assert_eq!(child.run.header.status, RunStatus::Cancelled);
}

#[test]
fn only_the_awaited_child_may_report() {
    let mut parent = Driver::start(calling());
    let (token, epoch) = parse_attempt("t1@1");
    let report = |run_id: &str| {
        Event::ChildEnded(Box::new(ChildReport {
            token_id: token.to_string(),
            epoch,
            run_id: run_id.into(),
            status: RunStatus::Completed,
            output: Some(json!("not theirs to say")),
            error: None,
        }))
    };
    let news = |run_id: &str| {
        Event::ChildStatusUpdate(Box::new(ChildStatusUpdate {
            token_id: token.to_string(),
            epoch,
            run_id: run_id.into(),
            number: 1,
            paused: true,
        }))
    };
    for stranger in ["run-1.t1", "run-1~t2", "run-1~t1~2", "run-2~t1", "run-1", ""] {
        for event in [report(stranger), news(stranger)] {
            parent.feed(event);
            let run_id = stranger.to_string();
            assert_eq!(parent.answer, Err(Rejection::NotChild { run_id }));
            assert!(parent.decision.is_empty(), "{:?}", parent.decision);
        }
    }
    let child = child_of(&parent.run, token, epoch);
    parent.feed(news(&child));
    assert_eq!(parent.answer, Ok(()));
    parent.feed(report(&child)).assert_status("completed {}");
}

#[test]
fn a_repeated_start_must_come_from_the_same_parent() {
    let parent = Driver::start(calling());
    let child = Driver::start_child(&parent);
    let link = child.run.header.parent.clone().expect("it is a child");
    let same = |input: &Value, request: &StartRequest, parent: Option<&ParentLink>| {
        child
            .run
            .was_started_by(&child.run.header.workflow_id, input, request, parent)
    };
    let (input, request) = (json!({"x": 1}), child.run.header.request.clone());
    assert!(same(&input, &request, Some(&link)));
    assert!(!same(&input, &request, None), "nobody's child");
    assert!(!same(&json!({"x": 2}), &request, Some(&link)));
    let other = StartRequest {
        timeout_ms: Some(77),
        ..request.clone()
    };
    assert!(!same(&input, &other, Some(&link)));
    for change in 0..3 {
        let mut of = link.clone();
        match change {
            0 => of.run_id = "run-2".into(),
            1 => of.token_id = "t2".into(),
            _epoch => of.epoch = 2,
        }
        assert!(!same(&input, &request, Some(&of)), "{of:?}");
    }
    assert!(!child.run.was_started_by("another", &input, &request, Some(&link)));
}

#[test]
fn a_child_whose_id_is_taken_fails_its_token() {
    let mut run = Driver::start(calling());
    run.feed(Event::ChildRefused {
        id: 1,
        refusal: StartRefusal::IdTaken,
    });
    assert!(
        run.status_line()
            .starts_with("failed child_id_taken/permanent: the run \"run-1~t1\" exists"),
        "{}",
        run.status_line()
    );
    // The run that has the id gets no message, and the outbox is empty.
    assert_eq!(run.lines_of("deliver"), Vec::<String>::new());
    assert_eq!(run.lines_of("unmessage"), ["unmessage 1"]);
    run.reload().feed(Event::ChildRefused {
        id: 1,
        refusal: StartRefusal::IdTaken,
    });
    assert!(run.decision.is_empty(), "it comes twice");
}

#[test]
fn a_taken_id_takes_the_failure_transition_and_is_not_caught() {
    let mut document = calling();
    document["nodes"][0]["on_failure"] = json!("catch");
    document["nodes"]
        .as_array_mut()
        .expect("nodes")
        .push(json!({"id": "sorry"}));
    document["transitions"] = json!([{"from_node_id": "call", "to_node_id": "sorry", "on": "failure"}]);
    let mut run = Driver::start(document);
    run.feed(Event::ChildRefused {
        id: 1,
        refusal: StartRefusal::IdTaken,
    })
    .assert_status("completed {}");
}

#[test]
fn a_taken_id_of_a_token_that_has_ended_changes_nothing() {
    let mut run = Driver::start(calling());
    run.reload().cancel(None).assert_status("cancelled");
    run.feed(Event::ChildRefused {
        id: 1,
        refusal: StartRefusal::IdTaken,
    });
    run.assert_status("cancelled");
    // The same for a message that is not a start.
    let mut run = Driver::start(calling());
    run.delivered(1).at(2_000).pause();
    run.feed(Event::ChildRefused {
        id: 2,
        refusal: StartRefusal::IdTaken,
    })
    .assert_status("paused call:waiting_for_subworkflow");
}

/// Runs of an older build keep the ids of their children.
#[test]
fn children_of_an_older_run_keep_their_dotted_ids() {
    let mut run = Driver::start(calling());
    let header = run.store.run.get_mut("header").expect("a header");
    assert!(header.contains(",\"child_ids\":\"reserved\""), "{header}");
    *header = header.replace(",\"child_ids\":\"reserved\"", "");
    run.reload();
    assert_eq!(run.run.header.child_ids, ChildIds::Dotted);
    run.at(2_000).pause();
    assert_eq!(run.lines_of("deliver"), ["deliver 2 hold run-1.t1 #1"]);
    run.at(3_000).resume();
    let report = |run_id: &str| {
        Event::ChildEnded(Box::new(ChildReport {
            token_id: "t1".into(),
            epoch: 1,
            run_id: run_id.into(),
            status: RunStatus::Completed,
            output: Some(json!(7)),
            error: None,
        }))
    };
    run.feed(report("run-1~t1"));
    assert!(matches!(run.answer, Err(Rejection::NotChild { .. })));
    run.feed(report("run-1.t1")).assert_status("completed {}");
    let row = &run.store.run["header"];
    assert!(!row.contains("child_ids"), "{row}");
}

/// A child can identify its parent from the fields of its messages.
#[test]
fn messages_of_a_parent_carry_its_id_and_token() {
    let mut parent = Driver::start(calling());
    let mut child = Driver::start_child(&parent);
    parent.delivered(1).at(2_000).pause();
    child.receive_from(&parent);
    assert_eq!(
        (&child.answer, child.run.header.status),
        (&Ok(()), RunStatus::Paused)
    );
    parent.at(3_000).cancel(Some("enough"));
    let sent: Vec<&Message> = parent
        .decision
        .commands()
        .iter()
        .filter_map(|command| match command {
            Command::DeliverMessage { message, .. } => Some(message),
            _other => None,
        })
        .collect();
    assert!(
        sent.iter()
            .all(|message| asked_by_parent("run-1", message).is_some())
    );
    child.receive_from(&parent).assert_status("cancelled");
}
