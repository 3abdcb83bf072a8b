//! Run summaries and probe responses.

use curfew::index::run_summary::{ProbeResponse, RunSummary, newest};
use curfew::run::RunStatus;
use serde_json::{Value, json};

use crate::run::driver::Driver;

fn one_node(more: Value) -> Value {
    let mut document = json!({"nodes": [{"id": "a", "action_id": "work"}]});
    for (key, value) in more.as_object().into_iter().flatten() {
        document[key] = value.clone();
    }
    document
}

#[test]
fn a_run_is_due_at_its_deadline_or_at_the_deadline_of_its_gate() {
    let gated = json!({"timeout_ms": 60_000, "on_timeout": "human_gate", "gate": {"timeout_ms": 100_000}});
    let mut run = Driver::start(one_node(gated));
    let due_at = |run: &Driver| RunSummary::of(&run.run, run.now).due_at;
    assert_eq!(due_at(&run), Some(61_000));
    // A paused run is never due.
    run.at(11_000).pause();
    assert_eq!(due_at(&run), None);
    run.at(21_000).resume();
    assert_eq!(due_at(&run), Some(71_000));
    run.at(71_000).wake("t1@1").assert_status("paused a:executing");
    assert_eq!(due_at(&run), Some(171_000));
    // A pause does not move the deadline of the run's gate.
    run.at(80_000).pause();
    assert_eq!(due_at(&run), Some(171_000));
    run.at(171_000).wake("t1@1");
    assert!(run.run.header.status.is_terminal());
    assert_eq!(due_at(&run), None);
}

#[test]
fn a_run_without_a_timeout_is_never_due() {
    let run = Driver::start(one_node(json!({"timeout": null})));
    assert_eq!(RunSummary::of(&run.run, run.now).due_at, None);
}

fn summary(id: &str, started_at: u64, revision: u64, at: u64) -> RunSummary {
    RunSummary {
        revision,
        at,
        due_at: None,
        parked_since: None,
        metrics: None,
        summary: json!({"id": id, "status": RunStatus::Running, "started_at": started_at}),
        ends: 0,
    }
}

#[test]
fn the_newest_summary_of_each_run_counts() {
    let summaries = [
        summary("a", 1, 2, 10),
        summary("b", 1, 1, 5),
        summary("a", 1, 3, 9),
        summary("a", 1, 1, 99),
        summary("b", 1, 1, 6),
        summary("b", 1, 1, 4),
        // The id is reused, with new revisions.
        summary("c", 1, 9, 50),
        summary("c", 2, 1, 60),
        summary("c", 1, 8, 70),
    ];
    let newest_of = newest(summaries.into_iter().enumerate().collect());
    let expected = [
        (2, summary("a", 1, 3, 9)),
        (4, summary("b", 1, 1, 6)),
        (7, summary("c", 2, 1, 60)),
    ];
    assert_eq!(newest_of, expected);
    assert_eq!(newest::<()>(Vec::new()), []);
}

#[test]
fn a_probe_response_lists_open_gates_first() {
    let document = json!({
        "nodes": [{"id": "a"}, {"id": "b", "gate": {"prompt": "b?", "choices": ["yes"]}}, {"id": "c"}],
        "transitions": [
            {"id": "each", "from_node_id": "a", "to_node_id": "b", "spawn_count": 150},
            {"from_node_id": "b", "to_node_id": "c", "synchronization": {"sibling_group": "each"}},
        ],
    });
    let mut run = Driver::start(document);
    run.decide("g2", "yes");
    let response = ProbeResponse::of(&run.run, RunSummary::of(&run.run, run.now));
    assert_eq!(response.gates.len(), 100);
    assert!(response.gates.iter().all(|gate| gate["status"] == "open"));
    for id in 3..=120 {
        run.decide(&format!("g{id}"), "yes");
    }
    let open = |gate: &&Value| gate["status"] == "open";
    let response = ProbeResponse::of(&run.run, RunSummary::of(&run.run, run.now));
    assert_eq!(response.gates.iter().take_while(open).count(), 31);
    assert_eq!(response.gates.len(), 100);
}
