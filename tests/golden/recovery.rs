//! API views of runs that timed out, failed or were cancelled, and of deliverables.

use curfew::api::{recovery, rejection};
use curfew::run::{HistoryEvent, RetryMode, Run, RunEvent, RunStatus};
use serde_json::{Value, json};

use super::check_json;
use super::time::{at_the_gate, late};
use crate::run::driver::Driver;
use crate::run::graphs::three;
use crate::why::{records, why};

/// The event in row `number` of those that have a row of their own.
fn entry(run: &Driver, number: usize) -> RunEvent {
    let found = run.store.entries().into_iter().nth(number - 1);
    found.expect("the event was recorded")
}

fn past(run: &Driver) -> curfew::run::Past {
    run.store.past().expect("saved rows can be read")
}

fn deliverable(run: &Driver, timeouts: u64) -> Value {
    run.deliverable(timeouts)
}

/// Aborted by a person.
fn aborted() -> Driver {
    let mut run = at_the_gate();
    run.at(70_000).decide("run1", "abort");
    assert_eq!(run.run.header.status, RunStatus::TimedOut);
    run
}

#[test]
fn views_of_a_timeout() {
    let run = late();
    let (entry, ended) = (entry(&run, 2), past(&run).tokens);
    let full = recovery::timeout(&run.run, &entry, &ended);
    check_json("view_timeout_full.json", &json!(full));
    let line = recovery::timeout_line(&run.run.header, &entry);
    check_json("view_timeout_line.json", &json!(line));
}

#[test]
fn views_of_the_timeout_of_a_run() {
    let run = at_the_gate();
    let ended = past(&run).tokens;
    let of_run = |entry: &RunEvent| recovery::timeout(&run.run, entry, &ended);
    let records: Vec<Value> = run.store.entries().iter().filter_map(of_run).collect();
    assert_eq!(records.len(), 2, "one of the step, one of the run");
    check_json("view_timeout_of_run.json", &records[1]);
    let none = entry(&run, 1);
    assert_eq!(
        recovery::timeout(&run.run, &none, &ended),
        None,
        "a warning is none"
    );
    assert_eq!(recovery::timeout_line(&run.run.header, &none), None);
}

/// Records as `GET /v1/runs/{id}/timeouts/{n}` shows them, of each layer.
#[test]
fn views_of_timeouts_with_their_cause() {
    let single = |name: &str, run: &Driver, number: usize| {
        let record = records(run).swap_remove(number);
        let mut view = recovery::timeout(&run.run, &record, &past(run).tokens).expect("a record");
        view["why"] = why(run, number);
        check_json(&format!("view_timeout_why_{name}.json"), &view);
    };
    single("step", &late(), 0);
    single("run", &at_the_gate(), 1);
    let mut join = Driver::start(three(
        json!({"timeout": "5s", "on_timeout": "proceed_with_available"}),
    ));
    join.at(2_000)
        .succeed("t2@1", json!(1))
        .at(7_000)
        .wake("t3@1 t4@1");
    join.at(8_000)
        .succeed("t3@1", json!(2))
        .at(9_500)
        .succeed("t4@1", json!(3));
    single("join", &join, 0);
    let mut gate = Driver::start(json!({"nodes": [{"id": "ask", "gate": {"timeout": "10s"}}]}));
    gate.at(8_500).wake("").at(11_000).wake("");
    single("gate", &gate, 0);
}

#[test]
fn views_of_events() {
    let run = late();
    check_json(
        "view_event_warning.json",
        &recovery::event("run-1", HistoryEvent::of_log(&entry(&run, 1))),
    );
    check_json(
        "view_event_timeout.json",
        &recovery::event("run-1", HistoryEvent::of_log(&entry(&run, 2))),
    );
}

#[test]
fn views_of_another_version() {
    let document =
        |mapping: &str| json!({"nodes": [{"id": "a", "action_id": "work", "input_mapping": {"n": mapping}}]});
    let mut run = Driver::start(document("${input.x.y.z}"));
    assert_eq!(run.run.header.status, RunStatus::Failed);
    check_json("view_resume_on_another_version.json", &run.resume_view());
    run.at(5_000).retry_on(
        RetryMode::RetryStep,
        2,
        json!({"nodes": [{"id": "b", "action_id": "work"}]}),
    );
    let rejected = rejection::response(&run.answer.clone().expect_err("it does not fit"));
    assert_eq!((rejected.status, rejected.code), (409, "version_does_not_fit"));
    check_json("view_version_does_not_fit.json", &rejected.body());
    run.retry_on(RetryMode::RetryStep, 2, document("${input.x}"));
    check_json(
        "view_event_retried_on_another_version.json",
        &recovery::event("run-1", HistoryEvent::of_log(&entry(&run, 2))),
    );
}

#[test]
fn views_of_restart_points() {
    let ended = aborted();
    check_json("view_resume_timed_out.json", &ended.resume_view());
    let paused = at_the_gate();
    let view = paused.resume_view();
    check_json("view_resume_at_the_gate.json", &view);
}

#[test]
fn views_of_deliverables() {
    let timed_out = aborted();
    check_json("view_deliverable_timed_out.json", &deliverable(&timed_out, 2));
    let mut failed = late();
    failed.at(33_000).fail("t2@2");
    check_json("view_deliverable_failed.json", &deliverable(&failed, 1));
    let mut cancelled = late();
    cancelled.at(33_000).cancel(Some("not needed"));
    check_json("view_deliverable_cancelled.json", &deliverable(&cancelled, 1));
    let mut completed = late();
    completed.at(33_000).succeed("t2@2", json!("sent"));
    check_json("view_deliverable_completed.json", &deliverable(&completed, 1));
    let running: &Run = &late().run;
    let refused = recovery::deliverable(running, &[], &Default::default(), 0).expect_err("it has not ended");
    assert_eq!((refused.status, refused.code), (409, "run_not_ended"));
}
