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
