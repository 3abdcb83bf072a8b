//! Rows and views of attempts in the queue, and of attempts that were claimed from it.

use curfew::api::views;
use curfew::run::{Routes, RunEvent, Settings};
use curfew::storage::rows::{TokenRow, parse_status};
use serde_json::json;

use super::{check_json, read};
use crate::run::driver::{Driver, SETTINGS};
use crate::run::progress::progress;

fn start() -> Driver {
    let settings = Settings {
        queue: true,
        ..SETTINGS
    };
    let document = json!({"id": "letter", "nodes": [{"id": "write", "action_id": "work", "timeout": "10m"}]});
    Driver::start_with(settings, document, json!({"to": "Ada"}))
}

/// In the queue for the second time.
fn unclaimed() -> Driver {
    let mut run = start();
    run.at(11_000).wake("").at(31_000).wake("");
    run
}

/// Claimed, and without a report while the object was evicted.
fn claimed_without_report() -> Driver {
    let mut run = unclaimed();
    run.at(32_000).claim("t1@2");
    run.reload().at(400_000).load();
    run
}

/// Claimed, and working on its second step.
fn progressed() -> Driver {
    let mut run = start();
    run.at(2_000).claim("t1@1");
    run.at(32_000).progress("t1@1", progress(2, "Dear A"));
    run.reload();
    run
}

/// Waits for a deployment with an executor.
fn unroutable() -> Driver {
    let routes = Routes {
        executor: false,
        queue: true,
    };
    let settings = Settings { routes, ..SETTINGS };
    let document = json!({"id": "letter", "nodes": [{"id": "write", "action_id": "work"}]});
    let mut run = Driver::start_with(settings, document, json!({"to": "Ada"}));
    run.at(6_000).wake("");
    run
}

#[test]
fn rows_and_views_of_the_queue_lane() {
    for (name, run) in [
        ("in_queue", unclaimed()),
        ("claimed", claimed_without_report()),
        ("progressed", progressed()),
        ("unroutable", unroutable()),
    ] {
        let (status, row) = run.store.tokens[&1].clone();
        check_json(
            &format!("token_{name}.json"),
            &serde_json::from_str(&row).expect("rows are JSON"),
        );
        let read_row = || -> TokenRow {
            serde_json::from_str(&read(&format!("token_{name}.json"))).expect("a stored token can be read")
        };
        let status_read = parse_status(&status).expect("a known status");
        let again = read_row().into_token(1, status_read, run.run.snapshot());
        assert_eq!(
            again.as_ref().ok(),
            run.run.live_tokens().next(),
            "{name} loses nothing"
        );
        let view = views::token(1, status_read, read_row(), run.run.header.timeout_at);
        check_json(&format!("view_token_{name}.json"), &view);
    }
}

/// No heartbeat came: the record has what came before.
#[test]
fn the_row_of_a_reaped_attempt() {
    let mut run = progressed();
    run.at(340_000).wake("");
    let reaped = run.events().into_iter().map(|entry| json!(entry));
    let row = reaped
        .into_iter()
        .find(|row| row["kind"] == json!("attempt_reaped"));
    let row = row.expect("the attempt was reaped");
    check_json("row_event_attempt_reaped.json", &row);
    let again: RunEvent =
        serde_json::from_str(&read("row_event_attempt_reaped.json")).expect("it can be read");
    assert_eq!(json!(again), row);
}

#[test]
fn events_of_the_queue() {
    let mut run = claimed_without_report();
    run.at(700_000).wake("");
    let events: Vec<_> = run.events().into_iter().map(|entry| json!(entry)).collect();
    check_json("events_of_the_queue.json", &json!(events));
}
