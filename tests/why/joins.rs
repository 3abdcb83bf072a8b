//! Joins whose wait was too short.

use serde_json::{Value, json};

use super::{limit, reason, records, smallest, why};
use crate::run::driver::Driver;
use crate::run::graphs::{nested, three};

/// Branch 0 arrives at 2 s, the others are late at 7 s.
fn late(join: Value) -> Driver {
    let mut run = Driver::start(three(join));
    run.at(2_000)
        .succeed("t2@1", json!(1))
        .at(7_000)
        .wake("t3@1 t4@1");
    run
}

#[test]
fn a_join_names_the_branches_that_were_missing() {
    let run = late(json!({"timeout": "5s"}));
    let why = why(&run, 0);
    assert_eq!(
        limit(&why),
        json!(["join", "join", "/transitions/1/synchronization/timeout"])
    );
    assert_eq!(
        why["used"],
        json!({
            "elapsed_ms": 5_000, "stopped_ms": 0, "first_arrival_at": 2_000, "branches": 3, "arrived": 1, "needed": 2,
            "missing": [{"index": 1, "token_id": "t3", "node_id": "b", "came_at": null},
                {"index": 2, "token_id": "t4", "node_id": "b", "came_at": null}],
            "missing_left_out": 0,
        })
    );
    assert_eq!(smallest(&why), json!([null, 5_000, null]));
    assert!(reason(&why).contains("2 were stopped"), "{why}");
}

#[test]
fn results_that_came_after_the_join_gave_up_are_the_smallest_limit() {
    let mut run = late(json!({"timeout": "5s", "on_timeout": "proceed_with_available"}));
    run.at(8_000).succeed("t3@1", json!(2));
    assert_eq!(
        smallest(&why(&run, 0)),
        json!([null, 5_000, null]),
        "the last one is missing"
    );
    run.at(9_500).succeed("t4@1", json!(3));
    let why = why(&run, 0);
    assert_eq!(
        smallest(&why),
        json!([7_501, 7_500, [{"op": "replace", "path": "/transitions/1/synchronization/timeout", "value": "7501ms"}]])
    );
    assert_eq!(
        reason(&why),
        "the last result that was needed came 7.5s after the first arrival, and was discarded"
    );
}

#[test]
fn branches_that_were_merged_late_are_the_smallest_limit() {
    let join = json!({"timeout_ms": 5_000, "on_timeout": "proceed_with_available", "on_early_complete": "allow_late_merge",
        "strategy": {"m_of_n": 2}});
    let mut run = late(join);
    run.at(8_000)
        .succeed("t4@1", json!(2))
        .at(9_000)
        .succeed("t3@1", json!(2));
    let why = why(&run, 0);
    assert_eq!(why["used"]["needed"], 1);
    assert_eq!(why["smallest_limit_ms"], 6_001, "one more was enough");
    assert_eq!(
        reason(&why),
        "the last branch that was needed arrived 6s after the first one"
    );
}

#[test]
fn the_default_wait_of_a_join_is_computed() {
    let mut document = three(json!({}));
    document["nodes"][1] =
        json!({"id": "b", "action_id": "work", "timeout_ms": 2_000, "on_timeout": "retry", "max_retries": 9});
    let mut run = Driver::start(document);
    run.at(2_000).succeed("t2@1", json!(1));
    // The others hang in every attempt. One and a half times 2 s, times three.
    for now in (2_500..=11_000).step_by(500) {
        let open: Vec<String> = (1..9)
            .flat_map(|epoch| [format!("t3@{epoch}"), format!("t4@{epoch}")])
            .collect();
        run.at(now).wake(&open.join(" "));
    }
    let of_join = records(&run).len() - 1;
    let why = why(&run, of_join);
    assert_eq!(limit(&why), json!(["join", "join_default", null]), "{why}");
    assert_eq!(why["limit"]["timeout_ms"], 9_000);
    assert!(
        why["limit"]["reason"]
            .as_str()
            .expect("a sentence")
            .starts_with("computed"),
        "{why}"
    );
}

#[test]
fn an_inner_join_is_told_from_an_outer_one() {
    let mut run = Driver::start(nested(json!({"timeout_ms": 3_000}), json!({})));
    run.at(2_000)
        .succeed("t4@1", json!(1))
        .at(3_000)
        .succeed("t6@1", json!(1));
    run.at(5_000).wake("t5@1 t7@1");
    let why = why(&run, 0);
    assert_eq!(why["used"]["first_arrival_at"], 2_000, "{why}");
    assert_eq!(why["used"]["branches"], 2);
    assert_eq!(
        why["limit"]["pointer"],
        "/transitions/2/synchronization/timeout_ms"
    );
}
