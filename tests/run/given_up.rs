//! Runs that are given up (`Event::Abandoned`) after their end was decided: they end as they were going to, without the rest of
//! their compensations and end handlers, and only what no compensation has touched can go on.

use curfew::run::{Event, RetryMode, RunEventKind, TokenStatus, Write};
use serde_json::{Value, json};

use super::driver::Driver;

/// One branch, whose work can be undone, and a join behind it.
fn branch() -> Value {
    json!({
        "nodes": [
            {"id": "a"},
            {"id": "b", "action_id": "work", "compensate": {"action_id": "work"}},
            {"id": "z", "action_id": "work"},
        ],
        "transitions": [
            {"id": "out", "from_node_id": "a", "to_node_id": "b", "spawn_count": 1},
            {"from_node_id": "b", "to_node_id": "z", "synchronization": {"sibling_group": "out"}},
        ],
    })
}

/// `b` and `c` side by side; the work of `b` can be undone.
fn pair(more: Value) -> Value {
    let mut document = json!({
        "nodes": [
            {"id": "a", "action_id": "work", "compensate": {"action_id": "work"}},
            {"id": "b", "action_id": "work", "compensate": {"action_id": "work"}},
            {"id": "c", "action_id": "work"},
            {"id": "z", "action_id": "work"},
        ],
        "transitions": [
            {"from_node_id": "a", "to_node_id": "b", "sibling_group": "out"},
            {"from_node_id": "a", "to_node_id": "c", "sibling_group": "out"},
            {"from_node_id": "b", "to_node_id": "z", "synchronization": {"sibling_group": "out"}},
            {"from_node_id": "c", "to_node_id": "z", "synchronization": {"sibling_group": "out"}},
        ],
    });
    for (field, value) in more.as_object().expect("fields") {
        document[field] = value.clone();
    }
    document
}

fn give_up(run: &mut Driver) -> &mut Driver {
    run.reload().feed(Event::Abandoned)
}

fn shown(run: &Driver) -> Value {
    json!(run.run.header.compensation)
}

fn last_event(run: &Driver) -> (RunEventKind, Value) {
    let mut events = run.decision.writes().iter().filter_map(Write::event);
    let last = events.next_back().expect("an end is logged");
    (last.kind, json!(last.fields))
}

/// The decision to cancel closes every join, and no resume reopens them.
#[test]
fn a_cancelled_run_that_is_given_up_does_not_go_on() {
    let mut run = Driver::start(branch());
    run.at(2_000).cancel(Some("enough"));
    run.assert_status("compensating b:executing");
    give_up(run.at(3_000)).check(
        "
        run cancelled (enough)
        token t2 b cancelled@1 [1.0] (run_cancelled)
        event run_cancelled
        abort t2@1
        announce
        ended
    ",
    );
    assert_eq!(run.run.header.reason.as_deref(), Some("enough"));
    assert_eq!(shown(&run), json!({"status": "failed", "done": [], "failed": []}));
    let (kind, fields) = last_event(&run);
    assert_eq!(
        (kind, &fields["given_up"]),
        (RunEventKind::RunCancelled, &json!("internal_error"))
    );
    run.reload().retry(RetryMode::RetryStep);
    assert!(
        format!("{:?}", run.answer).contains("the run was cancelled"),
        "{:?}",
        run.answer
    );
}

/// Nothing was undone: the branches go on, and the next end undoes what was done before the first.
#[test]
fn a_failed_run_that_is_given_up_before_it_compensates_goes_on() {
    let mut run = Driver::start(pair(json!({})));
    run.succeed("t1@1", json!("one")).fail("t3@1");
    run.assert_status("compensating b:executing");
    give_up(&mut run);
    assert!(
        run.status_line().starts_with("failed fan_in_failed"),
        "{}",
        run.status_line()
    );
    assert_eq!(shown(&run)["status"], "failed");
    run.reload().retry(RetryMode::RetryStep);
    assert_eq!(run.answer, Ok(()));
    run.assert_status("running b:executing c:executing");
    run.reload().fail("t4@1").fail("t5@1").provide();
    run.assert_status("compensating a~compensate:executing");
    assert_eq!(run.lines_of("dispatch"), [r#"dispatch t6@1 "one""#]);
}

#[test]
fn a_run_that_is_given_up_while_it_compensates_does_not_go_on() {
    let mut run = Driver::start(pair(
        json!({"on_end": [{"action_id": "work"}, {"on": ["completed"], "action_id": "work"}]}),
    ));
    run.succeed("t1@1", json!("one")).succeed("t2@1", json!("two"));
    run.fail("t3@1").provide();
    run.assert_status("compensating b~compensate:executing");
    // Between two compensations nothing in memory says what was undone.
    let mut between = Driver::start(pair(json!({})));
    between
        .succeed("t1@1", json!("one"))
        .succeed("t2@1", json!("two"));
    between.fail("t3@1").provide();
    between.succeed("t4@1", json!(1));
    for run in [&mut run, &mut between] {
        give_up(run);
        assert!(
            run.status_line().starts_with("failed fan_in_failed"),
            "{}",
            run.status_line()
        );
        assert_eq!(shown(run)["status"], "failed");
        run.reload().retry(RetryMode::RetryStep);
        assert!(
            format!("{:?}", run.answer).contains("has compensated"),
            "{:?}",
            run.answer
        );
    }
    assert_eq!(run.row("t4").status, TokenStatus::Cancelled);
    assert_eq!(
        run.row("t4").interrupted,
        None,
        "a compensation is no work of the run"
    );
    let shown = shown(&run);
    assert_eq!(shown["failed"][0]["token_id"], "t2");
    assert_eq!(shown["failed"][0]["error"]["code"], "internal_error");
    let on_end = json!(run.run.header.on_end);
    assert_eq!(on_end.as_array().map(Vec::len), Some(1), "{on_end}");
    assert_eq!(on_end[0]["error"]["code"], "internal_error");
}

#[test]
fn a_completed_run_that_is_given_up_in_its_end_handlers_stays_completed() {
    let mut run = Driver::start(json!({
        "nodes": [{"id": "a", "action_id": "work", "output_mapping": {"output.n": "${result}"}}],
        "on_end": [{"action_id": "work"}, {"action_id": "work"}, {"action_id": "work"}],
    }));
    run.succeed("t1@1", json!(5)).succeed("t2@1", json!(1));
    run.assert_status("compensating on_end~2:executing");
    give_up(&mut run).assert_status(r#"completed {"n":5}"#);
    assert_eq!(run.lines_of("abort"), ["abort t3@1"]);
    let on_end = json!(run.run.header.on_end);
    let results: Vec<(&Value, &Value)> = on_end
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| (&it["status"], &it["error"]["code"]))
        .collect();
    let given_up = (&json!("cancelled"), &json!("internal_error"));
    assert_eq!(results, [(&json!("completed"), &Value::Null), given_up, given_up]);
}

/// A failed run whose end handler was cut off: the handler is no token that goes on.
#[test]
fn an_end_handler_does_not_go_on_with_the_run() {
    let mut run = Driver::start(json!({
        "nodes": [{"id": "a", "action_id": "work"}], "transitions": [], "on_end": [{"action_id": "work"}],
    }));
    run.fail("t1@1").assert_status("compensating on_end~1:executing");
    give_up(&mut run).assert_status("failed peer_failed/server_error: status 500");
    run.reload().retry(RetryMode::RetryStep);
    run.assert_status("running a:executing");
}
