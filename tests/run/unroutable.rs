//! A deployment that lacks the binding a token needs: the token waits for the next deployment, but not forever.

use curfew::run::{Lane, Routes, Settings, TokenStatus, Write};
use serde_json::{Value, json};

use super::driver::{Driver, SETTINGS};

const WITHOUT_EXECUTOR: Settings = Settings {
    routes: Routes {
        executor: false,
        queue: true,
    },
    ..SETTINGS
};

const WITHOUT_QUEUE: Settings = Settings {
    queue: true,
    routes: Routes {
        executor: true,
        queue: false,
    },
    ..SETTINGS
};

const EXECUTOR_ADVICE: &str = "nothing could be dispatched for 5m0s: no service binding EXECUTOR is configured: \
     add [[services]] binding = \"EXECUTOR\" to the coordinator's wrangler.toml and deploy it";

fn start(settings: Settings, mut document: Value) -> Driver {
    if document.get("timeout_ms").is_none() {
        document["timeout_ms"] = json!(840_000);
    }
    Driver::start_with(settings, document, json!({"x": 1}))
}

fn one_node(more: Value) -> Value {
    let mut node = json!({"id": "a", "action_id": "work"});
    for (key, value) in more.as_object().into_iter().flatten() {
        node[key] = value.clone();
    }
    json!({"nodes": [node]})
}

/// Fires the alarm whenever it is set, up to `end`.
fn wake_until(run: &mut Driver, end: u64) -> u64 {
    let mut wakes = 0;
    while let Some(at) = run.run.alarm_at().filter(|at| *at <= end) {
        run.at(at).wake("");
        wakes += 1;
        assert!(wakes < 1_000, "the alarm never stops");
    }
    wakes
}

#[test]
fn a_token_without_a_route_is_tried_again_and_then_fails() {
    let mut run = start(WITHOUT_EXECUTOR, one_node(json!({})));
    run.check(
        "
        snapshot
        input {\"x\":1}
        run running until 841000
        token t1 a pending@0 watch 6000 (no_route)
        alarm 6000
        announce
    ",
    );
    run.at(6_000).wake("").check(
        "
        token t1 a pending@0 watch 11000 (no_route)
        event dispatch_rung_again t1
        alarm 11000
    ",
    );
    // It is logged once, and not saved again.
    run.at(11_000).wake("").check("alarm 16000");
    run.at(16_000).wake("").check("alarm 21000");
    assert_eq!(wake_until(&mut run, 300_999), 56);
    run.at(301_000).wake("").check(&format!(
        "
        run failed no_route/permanent: {EXECUTOR_ADVICE}
        token t1 a failed@0 (no_route) no_route/permanent: {EXECUTOR_ADVICE}
        event run_failed t1 a
        alarm 10301000
        announce
        ended
    "
    ));
    assert_eq!(run.kinds(), "dispatch_rung_again run_failed");
}

#[test]
fn each_lane_needs_its_own_binding() {
    let pure = json!({"nodes": [{"id": "a", "task_id": "t"}], "tasks": [{"id": "t", "steps": [
        {"ref": "s", "action": {"id": "u", "kind": "update_context", "implementation": {"set": {"output.x": 1}}}},
    ]}]});
    let direct = one_node(json!({"dispatch": "direct"}));
    let queue = one_node(json!({"dispatch": "queue"}));
    let both = Settings {
        routes: Routes {
            executor: false,
            queue: false,
        },
        ..WITHOUT_QUEUE
    };
    for (settings, document, goes) in [
        (WITHOUT_EXECUTOR, &direct, false),
        (WITHOUT_QUEUE, &direct, true),
        (WITHOUT_QUEUE, &queue, false),
        // Without CURFEW_QUEUE there is no queue lane that could lack anything.
        (
            Settings {
                queue: false,
                ..WITHOUT_QUEUE
            },
            &queue,
            true,
        ),
        // The consumer of the queue needs the executor as well.
        (
            Settings {
                queue: true,
                ..WITHOUT_EXECUTOR
            },
            &queue,
            false,
        ),
        (both, &pure, true),
    ] {
        let run = start(settings, document.clone());
        let waits = run
            .run
            .live_tokens()
            .any(|token| token.status == TokenStatus::Pending);
        assert_eq!(waits, !goes, "{settings:?} {document}");
    }
}

#[test]
fn the_error_names_what_is_missing() {
    let mut run = start(WITHOUT_QUEUE, one_node(json!({"dispatch": "queue"})));
    wake_until(&mut run, 301_000);
    let error = run.run.header.error.as_ref().expect("it failed");
    assert_eq!(error.code, "no_route");
    assert!(error.message.contains("TASK_QUEUE"), "{}", error.message);
    assert!(error.message.contains("CURFEW_QUEUE"), "{}", error.message);
}

#[test]
fn the_next_deployment_brings_the_route() {
    let mut run = start(WITHOUT_EXECUTOR, one_node(json!({})));
    wake_until(&mut run, 100_000);
    run.redeploy(SETTINGS).at(100_500).load();
    run.wake("").check(
        "
        token t1 a executing@1 watch 130500
        alarm 130500
        dispatch t1@1 {\"x\":1}
    ",
    );
    run.succeed("t1@1", json!(1)).assert_status("completed {}");
}

#[test]
fn the_time_without_a_route_survives_an_eviction() {
    let mut run = start(WITHOUT_EXECUTOR, one_node(json!({})));
    for at in [50_000, 150_000, 250_000] {
        wake_until(&mut run, at);
        run.reload().at(at).load();
    }
    wake_until(&mut run, 300_999);
    run.assert_status("running a:pending");
    assert_eq!(run.kinds(), "dispatch_rung_again");
    run.reload().at(301_000).load().wake("");
    assert_eq!(
        run.run.header.error.as_ref().map(|it| it.code.as_str()),
        Some("no_route")
    );
}

#[test]
fn an_unroutable_token_takes_the_failure_route_and_no_retries() {
    let mut document = one_node(json!({"on_timeout": "retry", "max_retries": 3, "timeout_ms": 5_000}));
    document["nodes"] = json!([document["nodes"][0], {"id": "b"}, {"id": "c"}]);
    document["transitions"] = json!([
        {"from_node_id": "a", "to_node_id": "b", "on": "failure"},
        {"from_node_id": "a", "to_node_id": "c", "on": "timeout"},
    ]);
    let mut run = start(WITHOUT_EXECUTOR, document);
    wake_until(&mut run, 301_000);
    run.assert_status("completed {}");
    let went_by: Vec<Value> = run.store.tokens.values().map(|(_, row)| node_of(row)).collect();
    assert_eq!(went_by, ["a", "b"]);
    assert_eq!(run.kinds(), "dispatch_rung_again");
}

fn node_of(row: &str) -> Value {
    let row: Value = serde_json::from_str(row).expect("rows are JSON");
    row["node_id"].clone()
}

#[test]
fn a_pause_does_not_count_as_time_without_a_route() {
    let mut run = start(WITHOUT_EXECUTOR, one_node(json!({})));
    wake_until(&mut run, 101_000);
    run.at(101_000).pause();
    run.at(501_000).wake("").assert_status("paused a:pending");
    run.resume().assert_status("running a:pending");
    // 100 s passed before the pause, which took 400 s.
    wake_until(&mut run, 700_999);
    run.assert_status("running a:pending");
    wake_until(&mut run, 701_000);
    assert_eq!(
        run.run.header.error.as_ref().map(|it| it.code.as_str()),
        Some("no_route")
    );
}

#[test]
fn a_deadline_that_passes_first_ends_the_run() {
    let mut document = one_node(json!({}));
    document["timeout_ms"] = json!(20_000);
    let mut run = start(WITHOUT_EXECUTOR, document);
    wake_until(&mut run, 21_000);
    assert!(
        run.status_line().starts_with("timed_out"),
        "{}",
        run.status_line()
    );
}

#[test]
fn a_person_may_retry_an_escalated_unroutable_token() {
    let mut run = start(WITHOUT_EXECUTOR, one_node(json!({"escalate_on": ["permanent"]})));
    wake_until(&mut run, 301_000);
    run.assert_status("waiting a:awaiting_human");
    run.at(400_000)
        .decide("g1.1", "retry")
        .assert_status("running a:pending");
    // The time without a route starts again.
    wake_until(&mut run, 699_999);
    run.assert_status("running a:pending");
    run.redeploy(SETTINGS).at(699_999).load().wake("");
    run.assert_status("running a:executing");
}

/// A run of many tokens costs a few rows for each, however long they wait.
#[test]
fn waiting_costs_no_rows_but_the_alarm() {
    let document = json!({
        "nodes": [{"id": "s"}, {"id": "a", "action_id": "work"}, {"id": "j"}],
        "transitions": [
            {"id": "each", "from_node_id": "s", "to_node_id": "a", "spawn_count": 50},
            {"from_node_id": "a", "to_node_id": "j", "synchronization": {"sibling_group": "each"}},
        ],
    });
    let mut run = start(WITHOUT_EXECUTOR, document);
    let mut saved = 0;
    while let Some(at) = run.run.alarm_at().filter(|at| *at < 301_000) {
        run.at(at).wake("");
        let is_row = |write: &&Write| matches!(write, Write::SaveToken(_) | Write::SaveEvent(_));
        saved += run.decision.writes().iter().filter(is_row).count();
    }
    assert_eq!(saved, 100);
}

#[test]
fn a_token_has_no_lane_before_its_dispatch() {
    let run = start(WITHOUT_EXECUTOR, one_node(json!({})));
    let lanes: Vec<Option<Lane>> = run.run.live_tokens().map(|token| token.lane).collect();
    assert_eq!(lanes, [None]);
}
