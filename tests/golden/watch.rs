//! What a run's object tells the index: objects, queue consumer and sweep may be of different versions.

use curfew::index::batch::RemovedRun;
use curfew::index::run_summary::{ProbeResponse, RunSummary};
use serde_json::json;

use super::time::at_the_gate;
use super::{check_json, read};

#[test]
fn how_a_run_stands() {
    let run = at_the_gate();
    check_json("standing.json", &json!(RunSummary::of(&run.run, 61_000)));
    check_json("rung.json", &json!(ProbeResponse::of(&run.run, 61_000)));
    check_json("rung_nobody.json", &json!(ProbeResponse::default()));
    check_json("removed.json", &json!({"removed": RemovedRun::of(&run.run)}));
    for name in ["rung.json", "rung_nobody.json"] {
        let rung: ProbeResponse = serde_json::from_str(&read(name)).expect("what was answered can be read");
        check_json(name, &json!(rung));
    }
    let standing: RunSummary =
        serde_json::from_str(&read("standing.json")).expect("what was told can be read");
    check_json("standing.json", &json!(standing));
}

/// As it was told before there was a sweep: such words may lie in the queue.
#[test]
fn the_first_words() {
    let first = r#"{"revision": 3, "summary": {"id": "run-1", "status": "running"}}"#;
    let standing: RunSummary = serde_json::from_str(first).expect("older words are understood");
    assert_eq!((standing.revision, standing.at, standing.due_at), (3, 0, None));
}
