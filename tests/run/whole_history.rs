//! The whole history of a run: every event, in the order of commits, with numbers that rise and never change.

use curfew::api::recovery;
use curfew::storage::rows::TokenRow;
use serde_json::{Value, json};

use super::driver::{Driver, SETTINGS};
use super::graphs::three;

/// Every event as `/events` shows it, in order.
fn history(run: &Driver) -> Vec<Value> {
    let all = run.store.history(0).into_iter();
    let all: Vec<Value> = all.map(|event| recovery::event("run-1", event)).collect();
    let numbers: Vec<u64> = all.iter().filter_map(|event| event["seq"].as_u64()).collect();
    let expected: Vec<u64> = (1..=all.len() as u64).collect();
    assert_eq!(numbers, expected, "each number once, none left out");
    all
}

/// One line for each event: its kind and what it happened to.
fn lines(run: &Driver) -> Vec<String> {
    let line = |event: &Value| {
        let mut line = event["kind"].as_str().expect("a kind").to_string();
        for name in [
            "token_id",
            "node_id",
            "gate_id",
            "epoch",
            "by",
            "status",
            "choice",
            "reason",
            "timeout_type",
        ] {
            match &event[name] {
                Value::Null => {}
                Value::String(text) => line += &format!(" {text}"),
                other => line += &format!(" {other}"),
            }
        }
        line
    };
    history(run).iter().map(line).collect()
}

fn chain() -> Value {
    json!({
        "actions": [{"id": "work", "kind": "http_request", "implementation": {"url": "https://peer.example"}}],
        "nodes": [{"id": "a", "action_id": "work"}, {"id": "b", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}],
    })
}

#[test]
fn a_chain_that_goes_well() {
    let mut run = Driver::start(chain());
    run.at(2_000)
        .succeed("t1@1", json!(1))
        .at(3_000)
        .succeed("t2@1", json!(2));
    let expected = [
        "run_started",
        "token_created t1 a",
        "token_dispatched t1 a 1",
        "token_completed t1 a",
        "token_created t2 b",
        "token_dispatched t2 b 1",
        "token_completed t2 b",
        "run_completed",
    ];
    assert_eq!(lines(&run), expected);
    assert!(run.store.entries().is_empty(), "no event has a row of its own");
    let times: Vec<u64> = history(&run)
        .iter()
        .filter_map(|event| event["at"].as_u64())
        .collect();
    assert_eq!(times, [1_000, 1_000, 1_000, 2_000, 2_000, 2_000, 3_000, 3_000]);
}

/// `LOAD_SUMMARY` reads the number of the last event from its place in the text.
#[test]
fn the_row_of_a_token_begins_with_the_number_of_its_last_event() {
    let mut run = Driver::start(chain());
    run.succeed("t1@1", json!(1));
    let (_, row) = &run.store.tokens[&1];
    assert!(row.starts_with("{\"seq\":4,"), "{row}");
    let row: TokenRow = serde_json::from_str(row).expect("a row");
    assert_eq!(row.seq, 4);
}

#[test]
fn numbers_go_on_after_a_reload() {
    let mut run = Driver::start(chain());
    // Only the row of an ended token has the last number of this commit, and of the next one only a live token's.
    run.reload()
        .succeed("t1@1", json!(1))
        .reload()
        .lose("t2@1")
        .reload();
    run.succeed("t2@2", json!(2));
    let expected = [
        "run_started",
        "token_created t1 a",
        "token_dispatched t1 a 1",
        "token_completed t1 a",
        "token_created t2 b",
        "token_dispatched t2 b 1",
        "token_dispatched t2 b 2",
        "token_completed t2 b",
        "run_completed",
    ];
    assert_eq!(lines(&run), expected);
}

#[test]
fn fan_out_and_fan_in() {
    let mut run = Driver::start(three(json!({})));
    let all = lines(&run);
    let place = |wanted: &str, all: &[String]| {
        let found = all.iter().position(|line| line.starts_with(wanted));
        found.unwrap_or_else(|| panic!("no {wanted} in {all:?}"))
    };
    assert!(place("fan_out_started", &all) < place("token_created t2", &all));
    run.succeed("t2@1", json!(1));
    run.succeed("t3@1", json!(2)).succeed("t4@1", json!(3));
    let all = lines(&run);
    let order = [
        "fan_in_started z",
        "fan_in_completed z",
        "token_completed t2 b",
        "token_created t5 z",
    ];
    let places: Vec<usize> = order.iter().map(|wanted| place(wanted, &all)).collect();
    assert!(places.is_sorted(), "{all:?}");
    let completed = history(&run)
        .into_iter()
        .find(|event| event["kind"] == json!("fan_in_completed"));
    assert_eq!(completed.expect("the join fired")["completed"], json!(3));
}

#[test]
fn a_gate_is_opened_reminded_and_decided() {
    let mut document = chain();
    document["nodes"][0] = json!({"id": "a", "gate": {"timeout_ms": 10_000, "remind_at": [0.5]}});
    let mut run = Driver::start(document);
    run.at(6_000).wake("").at(7_000).decide("g1", "approve");
    let expected = [
        "run_started",
        "token_created t1 a",
        "gate_opened t1 a g1",
        "gate_reminded t1 a g1",
        "gate_decided t1 a g1 ada approve",
        "token_completed t1 a",
        "token_created t2 b",
        "token_dispatched t2 b 1",
    ];
    assert_eq!(lines(&run), expected);
}

#[test]
fn a_signal_names_its_sender_and_stands_on_the_token_that_received_it() {
    let mut document = chain();
    document["nodes"][0] = json!({"id": "a", "wait": {"signal": "go"}});
    let mut run = Driver::start(document);
    run.named("bob").signal("go", json!(1));
    assert_eq!(lines(&run)[2], "signal_received t1 a bob");
    assert!(run.store.entries().is_empty());
}

#[test]
fn the_limit_of_the_run_times_out_each_of_its_tokens() {
    let mut document = three(json!({}));
    document["timeout_ms"] = json!(60_000);
    document["on_timeout"] = json!("fail");
    let mut run = Driver::start(document);
    run.succeed("t2@1", json!(1));
    run.at(61_000).wake("t3@1 t4@1");
    let all = history(&run);
    let timed_out: Vec<&Value> = all
        .iter()
        .filter(|event| event["kind"] == json!("token_timed_out"))
        .collect();
    assert_eq!(timed_out.len(), 3, "{all:?}");
    for event in timed_out {
        let fields = [
            "timeout_type",
            "timeout_duration_ms",
            "policy_applied",
            "workflow_run_id",
        ];
        assert_eq!(
            fields.map(|name| event[name].clone()),
            [json!("workflow"), json!(60_000), json!("fail"), json!("run-1")]
        );
    }
    assert_eq!(
        all.last().expect("events")["kind"],
        json!("run_failed"),
        "the end comes last"
    );
}

#[test]
fn events_beyond_what_a_row_holds_are_rows_of_their_own() {
    let mut document = chain();
    document["nodes"][0]["on_timeout"] = json!("retry");
    document["nodes"][0]["timeout_ms"] = json!(1_000);
    document["nodes"][0]["max_retries"] = json!(100);
    document["timeout_ms"] = json!(null);
    let mut run = Driver::start(document);
    for attempt in 1..=40 {
        let token = run.run.live_tokens().next().expect("a token").clone();
        let deadline = token.deadline.at.expect("a deadline");
        run.at(deadline + SETTINGS.grace_ms).wake("t1@1");
        assert_eq!(
            run.run.live_tokens().next().expect("a token").retry_count,
            attempt
        );
        let retry_at = run.run.live_tokens().next().and_then(|token| token.watch_at);
        run.at(retry_at.expect("the next attempt")).wake("");
    }
    let dispatched = history(&run)
        .into_iter()
        .filter(|event| event["kind"] == json!("token_dispatched"));
    let epochs: Vec<u64> = dispatched.filter_map(|event| event["epoch"].as_u64()).collect();
    assert_eq!(epochs, (1..=41).collect::<Vec<u64>>());
    let row: TokenRow = serde_json::from_str(&run.store.tokens[&1].1).expect("a row");
    assert_eq!(row.events.len(), 32);
}
