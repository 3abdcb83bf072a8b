//! Many deadlines at the same time, and one that is a month away: the number and cost of wakes.

use std::time::{Duration, Instant};

use curfew::run::{Event, Write};
use curfew::storage::commit::Commit;
use serde_json::{Value, json};

use super::driver::{Driver, ROOM, SETTINGS, START};
use super::graphs::joining;

const CROWD: u64 = 1_000;

/// A thousand branches whose attempts have the same deadline; the join proceeds with what is available.
fn thousand_branches() -> Driver {
    let join = joining(
        "out",
        json!({"on_branch_failure": "proceed_with_available", "timeout": null}),
    );
    Driver::start(json!({
        "nodes": [{"id": "a"}, {"id": "b", "action_id": "work", "timeout_ms": 5_000}, {"id": "slow"}, {"id": "z"}],
        "transitions": [
            {"id": "out", "from_node_id": "a", "to_node_id": "b", "spawn_count": CROWD},
            {"from_node_id": "b", "to_node_id": "slow", "on": "timeout"},
            {"from_node_id": "slow", "to_node_id": "z", "synchronization": join},
        ],
        "limits": {"tokens_active": 5_000, "tokens_total": 10_000},
    }))
}

/// Wakes the run while its alarm is due. Returns the number of wakes, and the total time to decide and to encode the rows.
fn wake_until_done(run: &mut Driver) -> (usize, Duration) {
    let (mut wakes, mut spent) = (0, Duration::ZERO);
    while run.run.is_due(run.now) {
        assert!(run.run.alarm_at() <= Some(run.now), "the alarm rings at once");
        let began = Instant::now();
        let (answer, decision) = run.run.handle(
            run.now,
            ROOM,
            Event::Woken {
                open_calls: Vec::new(),
            },
        );
        let commit = Commit::of(decision.writes(), &run.run).expect("rows are JSON");
        spent += began.elapsed();
        assert_eq!(answer, Ok(()));
        run.store.apply(&commit).expect("no commit breaks a rule");
        run.store.alarm_at = run.run.alarm_at();
        let timed_out = decision.writes().iter().filter(|write| {
            matches!(write, Write::SaveToken(token) if token.reason.is_none() && token.error.is_some())
        });
        assert!(timed_out.count() <= 100, "a commit stays small");
        wakes += 1;
        // The object may be evicted between any two wakes.
        run.reload();
    }
    (wakes, spent)
}

#[test]
fn a_thousand_simultaneous_deadlines_are_handled_a_hundred_per_wake() {
    let mut run = thousand_branches();
    run.assert_status(&format!("running {CROWD}xb:executing"));
    run.at(START + 5_000 + SETTINGS.grace_ms);
    let (wakes, spent) = wake_until_done(&mut run);
    println!("{CROWD} deadlines: {wakes} wakes, {spent:?} to decide and to make the rows");
    assert_eq!(wakes, 10);
    run.assert_status("completed {}");
    let records = run
        .store
        .entries()
        .into_iter()
        .filter(|entry| entry.record.is_some());
    assert_eq!(records.count() as u64, CROWD, "each left its record");
    // Two orders of magnitude above the usual time: only quadratic work exceeds it.
    assert!(spent < Duration::from_secs(30), "{spent:?}");
}

/// A sleeping run writes nothing and wakes only for its alarm.
#[test]
fn a_sleep_of_thirty_days_costs_nothing() {
    let month_ms: u64 = 30 * 24 * 60 * 60 * 1_000;
    let mut run = Driver::start(json!({
        "timeout": Value::Null,
        "nodes": [{"id": "a", "action_id": "work"}, {"id": "nap", "wait": {"sleep": "720h"}}, {"id": "b"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "nap"}, {"from_node_id": "nap", "to_node_id": "b"}],
    }));
    run.at(2_000)
        .succeed("t1@1", json!(1))
        .assert_status("running nap:suspended");
    let rows = run.store.clone();
    let mut wakes = 0;
    while run.run.header.ended_at.is_none() {
        let alarm_at = run.run.alarm_at().expect("something wakes a run that sleeps");
        // The object has been evicted long before the alarm fires.
        run.reload().at(alarm_at).wake("");
        wakes += 1;
        if run.run.header.ended_at.is_none() {
            assert_eq!((&run.store.run, &run.store.tokens), (&rows.run, &rows.tokens));
        }
    }
    println!("30 days: {wakes} wakes");
    assert!(wakes <= 3, "{wakes} wakes");
    assert_eq!(run.run.header.ended_at, Some(2_000 + month_ms));
    run.assert_status("completed {}");
}
