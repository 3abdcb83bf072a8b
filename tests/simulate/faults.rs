//! Faults around a workflow of a user: every run ends as it would without them, and nothing that must hold breaks.

use serde_json::{Value, json};

use super::{chain, refused, simulated};

fn order() -> Value {
    chain(
        json!([
            {"id": "reserve", "action_id": "work", "compensate": {"action_id": "work"}},
            {"id": "ask", "gate": {"timeout": "168h", "on_timeout": "reject"}},
            {"id": "pay", "action_id": "work", "max_retries": 2},
            {"id": "ship", "workflow_id": "shipping"},
        ]),
        json!({"timeout": "240h", "output_mapping": "${state.ship}"}),
    )
}

fn body(seed: u64, faults: Value) -> Value {
    let mut shipping = chain(
        json!([{"id": "pack", "action_id": "work"}, {"id": "rest", "wait": {"sleep": "10h"}}]),
        json!({"output_mapping": {"shipped": true}}),
    );
    shipping["id"] = json!("shipping");
    json!({
        "workflow": order(), "documents": {"workflows": [shipping]}, "seed": seed, "faults": faults,
        "mocks": [{"action": "work", "after": "2s", "result": {"ok": true}}],
        "people": [{"gate": "ask", "after": "26h", "choice": "approve"}],
    })
}

#[test]
fn nothing_breaks_whatever_happens_around_the_run() {
    let mut completed = 0;
    let mut lines = 0;
    for seed in 0..200 {
        let mut body = body(seed, json!({}));
        body["queue"] = json!(seed % 2 == 0);
        let answer = simulated(body);
        assert_eq!(answer["violations"], json!([]), "seed {seed}");
        assert_ne!(
            answer["run"]["ended_at"],
            json!(null),
            "seed {seed}: {:#}",
            answer["waits_for"]
        );
        completed += u64::from(answer["run"]["output"] == json!({"shipped": true}));
        lines += answer["faults"].as_array().map_or(0, Vec::len);
    }
    // Executors that are lost again and again fail a run.
    assert!(completed > 100, "{completed} of 200");
    assert!(lines > 1_000, "{lines} faults");
}

#[test]
fn crashes_alone_change_nothing_but_repeat_calls() {
    for seed in 0..50 {
        let answer = simulated(body(
            seed,
            json!({"crash_before_commit": 4, "crash_after_commit": 4, "eviction": 4}),
        ));
        assert_eq!(
            answer["run"]["output"],
            json!({"shipped": true}),
            "seed {seed}: {:#}",
            answer["run"]
        );
        assert_eq!(answer["violations"], json!([]));
    }
}

#[test]
fn no_events_with_faults_are_no_faults() {
    let answer = simulated(body(3, json!({"events": 0, "lost": 100})));
    assert_eq!(answer["run"]["output"], json!({"shipped": true}));
    assert_eq!(answer["faults"], json!([]), "{:#}", answer["faults"]);
}

#[test]
fn faults_that_never_let_a_run_start_are_an_error() {
    let (status, code, message) = refused(body(1, json!({"crash_before_commit": 100})));
    assert_eq!((status, code), (422, "limit_exceeded"));
    assert!(message.contains("lower the odds"), "{message}");
}

/// How many of the runs completed, whatever happened around them.
fn completed(seeds: u64, body: impl Fn(u64) -> Value) -> u64 {
    let runs = (0..seeds).map(|seed| simulated(body(seed)));
    let completed = runs.filter(|answer| {
        let message = answer["run"]["error"]["message"].as_str().unwrap_or_default();
        assert!(!message.contains("a bug of Curfew"), "{:#}", answer["run"]);
        answer["run"]["status"] == "completed"
    });
    let count = completed.count() as u64;
    println!("{count} of {seeds} completed");
    count
}

#[test]
fn most_runs_of_a_sensible_workflow_complete() {
    const SEEDS: u64 = 300;
    for is_queued in [false, true] {
        let found = completed(SEEDS, |seed| {
            let mut body = body(seed, json!({}));
            body["queue"] = json!(is_queued);
            body
        });
        assert!(
            found >= SEEDS * 95 / 100,
            "{found} of {SEEDS}, queued: {is_queued}"
        );
    }
}

/// Limits of half a minute leave less room.
#[test]
fn most_runs_complete_under_short_limits() {
    const SEEDS: u64 = 300;
    let found = completed(SEEDS, |seed| {
        let mut body = body(seed, json!({}));
        for node in [0, 2] {
            body["workflow"]["nodes"][node]["timeout"] = json!("30s");
        }
        body
    });
    assert!(found >= SEEDS * 85 / 100, "{found} of {SEEDS}");
}

#[test]
fn a_database_that_refuses_commits_is_no_bug_of_a_run() {
    completed(20, |seed| body(seed, json!({"commit_fails": 100})));
    let found = completed(20, |seed| body(seed, json!({"commit_fails": 15})));
    assert!(found >= 19, "{found} of 20");
}
