//! The watches of a token with the default settings: when each fires, what it does, and the resulting token and events.

use curfew::protocol::task::{ReportStatus, TaskReport};
use curfew::run::{Routes, RunEventKind, Settings};
use serde_json::{Value, json};

use super::driver::{Driver, START, succeeded};

fn one_node() -> Value {
    json!({"nodes": [{"id": "a", "action_id": "work"}], "timeout_ms": 840_000})
}

fn by_queue() -> Driver {
    let settings = Settings {
        queue: true,
        ..Settings::default()
    };
    Driver::start_with(settings, one_node(), json!({}))
}

/// Fires the alarm whenever it is set, up to `millis` after the start.
fn wait(run: &mut Driver, millis: u64) {
    while let Some(at) = run.run.alarm_at().filter(|at| *at <= START + millis) {
        run.at(at).wake("");
    }
    run.at(START + millis);
}

fn events_of(run: &Driver, kind: RunEventKind) -> usize {
    run.events().iter().filter(|entry| entry.kind == kind).count()
}

/// Status, epoch and reason of the first token.
#[track_caller]
fn is(run: &Driver, status: &str, epoch: u64, reason: Option<&str>) {
    let row = run.row("t1");
    let found = (run.store.tokens[&1].0.as_str(), row.epoch, row.reason.as_deref());
    assert_eq!(found, (status, epoch, reason), "at {}", run.now);
}

#[test]
fn pending_not_dispatched_5_s_and_unroutable_300_s() {
    let routes = Routes {
        executor: false,
        queue: false,
    };
    let settings = Settings {
        routes,
        ..Settings::default()
    };
    let mut run = Driver::start_with(settings, one_node(), json!({}));
    wait(&mut run, 4_999);
    assert_eq!(events_of(&run, RunEventKind::DispatchRungAgain), 0);
    wait(&mut run, 5_000);
    assert_eq!(events_of(&run, RunEventKind::DispatchRungAgain), 1);
    wait(&mut run, 299_999);
    is(&run, "pending", 0, Some("no_route"));
    wait(&mut run, 300_000);
    is(&run, "failed", 0, Some("no_route"));
    assert_eq!(events_of(&run, RunEventKind::DispatchRungAgain), 1);
    assert_eq!(events_of(&run, RunEventKind::RunFailed), 1);
}

#[test]
fn dispatched_not_claimed_10_s_and_30_s_three_times() {
    let mut run = by_queue();
    for round in 0..3 {
        let began = round * 30_000;
        wait(&mut run, began + 9_999);
        let epoch = round + 1;
        is(&run, "dispatched", epoch, None);
        assert_eq!(events_of(&run, RunEventKind::DispatchRungAgain), round as usize);
        // Only the message is re-sent: the attempt and the time of its dispatch stay.
        wait(&mut run, began + 10_000);
        is(&run, "dispatched", epoch, None);
        assert_eq!(run.row("t1").dispatched_at, Some(START + began));
        assert_eq!(
            events_of(&run, RunEventKind::DispatchRungAgain),
            round as usize + 1
        );
        wait(&mut run, began + 29_999);
        is(&run, "dispatched", epoch, None);
    }
    wait(&mut run, 90_000);
    is(&run, "timed_out", 3, Some("dispatch_timeout"));
}

#[test]
fn executing_without_a_heartbeat_300_s() {
    let mut run = by_queue();
    run.claim("t1@1");
    wait(&mut run, 299_999);
    is(&run, "executing", 1, None);
    wait(&mut run, 300_000);
    is(&run, "failed", 2, Some("timeout_reaped_by_watchdog"));
    assert_eq!(events_of(&run, RunEventKind::AttemptReaped), 1);
    // The executor reports after all.
    run.succeed("t1@1", json!(1));
    assert!(run.answer.is_err());
    is(&run, "failed", 2, Some("timeout_reaped_by_watchdog"));
}

#[test]
fn suspended_past_its_deadline_30_s() {
    let action = json!({"id": "work", "kind": "http_request", "implementation": {"url": "https://peer.test/"},
        "execution": {"mode": "async"}});
    let mut document = one_node();
    document["actions"] = json!([action]);
    let mut run = Driver::start_with(Settings::default(), document, json!({}));
    run.report(TaskReport {
        status: ReportStatus::Suspended,
        ..succeeded("t1@1", json!({"status": 202}))
    });
    wait(&mut run, 29_999);
    is(&run, "suspended", 1, None);
    wait(&mut run, 30_000);
    is(&run, "timed_out", 1, None);
    assert_eq!(run.row("t1").error.map(|it| it.code), Some("tool_timeout".into()));
    assert_eq!(events_of(&run, RunEventKind::TokenTimedOut), 1);
}
