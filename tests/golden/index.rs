//! Messages from a run's object to the index. Objects, queue consumer and sweep may be of different versions.

use curfew::index::batch::RemovedRun;
use curfew::index::run_summary::{ProbeResponse, RunSummary};
use serde_json::json;

use super::time::at_the_gate;
use super::{check_json, read};

#[test]
fn run_summaries_and_probe_responses() {
    let run = at_the_gate();
    check_json("run_summary.json", &json!(RunSummary::of(&run.run, 61_000)));
    check_json("probe_response.json", &json!(ProbeResponse::of(&run.run, 61_000)));
    check_json(
        "probe_response_without_run.json",
        &json!(ProbeResponse::default()),
    );
    check_json("removed.json", &json!({"removed": RemovedRun::of(&run.run)}));
    for name in ["probe_response.json", "probe_response_without_run.json"] {
        let response: ProbeResponse = serde_json::from_str(&read(name)).expect("a response can be read");
        check_json(name, &json!(response));
    }
    let summary: RunSummary = serde_json::from_str(&read("run_summary.json")).expect("a summary can be read");
    check_json("run_summary.json", &json!(summary));
}

/// The format before the sweep existed. Such messages may still be in the queue.
#[test]
fn messages_of_the_first_build_can_be_read() {
    let first = r#"{"revision": 3, "summary": {"id": "run-1", "status": "running"}}"#;
    let summary: RunSummary = serde_json::from_str(first).expect("an older message can be read");
    assert_eq!((summary.revision, summary.at, summary.due_at), (3, 0, None));
}
