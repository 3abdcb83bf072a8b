//! What a node usually takes, as the API adds it.

use curfew::why::{Percentiles, add_usual, subject};
use serde_json::{Value, json};

fn view() -> Value {
    json!({"id": 7, "why": {
        "usual": {"workflow_id": "flow", "node_id": "a", "samples": 0, "p50_ms": null, "p99_ms": null, "source": null,
            "reason": "the index was not asked"},
        "smallest_limit_ms": null,
        "smallest_limit_reason": "more than 5s: the call had not answered when it was cut",
    }})
}

fn added(found: Result<Option<Percentiles>, ()>) -> Value {
    let mut view = view();
    add_usual(&mut view, found);
    let usual = &view["why"]["usual"];
    json!([
        usual["samples"],
        usual["p50_ms"],
        usual["p99_ms"],
        usual["source"],
        usual["reason"]
    ])
}

#[test]
fn exact_durations_give_the_nearest_rank() {
    let millis: Vec<u64> = (1..=200).rev().collect();
    assert_eq!(
        added(Ok(Some(Percentiles::of_latencies(millis)))),
        json!([200, 100, 198, "latencies", null])
    );
}

#[test]
fn buckets_of_the_metrics_give_upper_bounds() {
    let found = Percentiles::of_metrics(&json!({"100": 60, "500": 38, "5000": 1, "inf": 1, "sum": 99_999}));
    let [samples, p50, p99, source, reason] = added(Ok(Some(found)))
        .as_array()
        .cloned()
        .expect("a list")
        .try_into()
        .expect("five");
    assert_eq!(
        (samples, p50, p99, source),
        (json!(100), json!(100), json!(5_000), json!("metrics"))
    );
    assert!(reason.as_str().expect("a sentence").starts_with("upper bounds"));
    let slow = Percentiles::of_metrics(&json!({"inf": 10}));
    assert_eq!(added(Ok(Some(slow)))[2], Value::Null);
}

#[test]
fn too_few_none_and_no_answer_are_said() {
    for (found, reason) in [
        (
            Ok(Some(Percentiles::of_latencies(vec![1, 2]))),
            "the index has 2 of the 5 durations that are needed",
        ),
        (Ok(None), "the index has no durations of this node yet"),
        (Err(()), "the index did not answer; ask again"),
    ] {
        let usual = added(found);
        assert_eq!(
            (&usual[1], &usual[2], &usual[4]),
            (&Value::Null, &Value::Null, &json!(reason))
        );
    }
}

#[test]
fn the_p99_is_a_hint_where_there_is_no_smallest_limit() {
    let mut view = view();
    add_usual(&mut view, Ok(Some(Percentiles::of_latencies(vec![2_100; 20]))));
    assert_eq!(
        view["why"]["smallest_limit_reason"],
        "more than 5s: the call had not answered when it was cut; 99 of 100 of the node's runs took 2.1s at most"
    );
}

#[test]
fn the_index_is_asked_for_a_node_only() {
    assert_eq!(subject(&view()), Some(("flow".to_string(), "a".to_string())));
    let mut without = view();
    without["why"]["usual"]["node_id"] = Value::Null;
    assert_eq!(subject(&without), None);
    assert_eq!(subject(&json!({"id": 7})), None, "an object of an earlier build");
}
