//! The limit of a whole run.

use curfew::run::RetryMode;
use serde_json::{Value, json};

use super::{limit, reason, smallest, why};
use crate::run::driver::Driver;

/// `a`, then `b`, under a limit of 10 s.
fn two(on_timeout: &str) -> Value {
    json!({
        "timeout": "10s", "on_timeout": on_timeout,
        "nodes": [{"id": "a", "action_id": "work"}, {"id": "b", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}],
    })
}

/// `a` takes 4 s; `b` is at work when the limit passes at 11 s.
fn late(on_timeout: &str) -> Driver {
    let mut run = Driver::start(two(on_timeout));
    run.at(5_000).succeed("t1@1", json!(1)).at(11_000).wake("t2@1");
    run
}

fn way(why: &Value) -> Vec<Value> {
    let way = why["used"]["critical_way"].as_array().expect("a list").iter();
    way.map(|part| json!([part["token_id"], part["node_id"], part["duration_ms"]]))
        .collect()
}

#[test]
fn a_run_that_was_ended_says_what_its_way_took() {
    for policy in ["cancel_all", "fail"] {
        let why = why(&late(policy), 0);
        assert_eq!(limit(&why), json!(["workflow", "workflow", "/timeout"]));
        assert_eq!(way(&why), [json!(["t1", "a", 4_000]), json!(["t2", "b", 6_000])]);
        assert_eq!(
            why["used"]["nodes"],
            json!([{"node_id": "b", "duration_ms": 6_000}, {"node_id": "a", "duration_ms": 4_000}])
        );
        assert_eq!(why["used"]["at_work"], json!({"b": 1}));
        assert_eq!(why["usual"]["node_id"], "b");
        assert_eq!(smallest(&why), json!([null, 10_000, null]));
        assert!(reason(&why).starts_with("the run did not complete"), "{why}");
    }
}

#[test]
fn work_in_flight_that_was_accepted_at_the_gate_counts_and_the_gate_does_not() {
    let mut run = late("human_gate");
    run.at(14_000).succeed("t2@1", json!(1));
    assert!(reason(&why(&run, 0)).starts_with("the run has not completed"));
    run.at(500_000).decide_with("run1", "extend", json!({"by": "1m"}));
    run.assert_status("completed {}");
    let why = why(&run, 0);
    assert_eq!(
        smallest(&why),
        json!([13_001, 13_000, [{"op": "replace", "path": "/timeout", "value": "13001ms"}]])
    );
}

#[test]
fn what_followed_the_extension_counts_as_well() {
    let mut document = two("human_gate");
    document["nodes"] = json!([{"id": "a", "action_id": "work"}, {"id": "b", "action_id": "work"}, {"id": "c", "action_id": "work"}]);
    document["transitions"] =
        json!([{"from_node_id": "a", "to_node_id": "b"}, {"from_node_id": "b", "to_node_id": "c"}]);
    let mut run = Driver::start(document);
    run.at(5_000).succeed("t1@1", json!(1)).at(11_000).wake("t2@1");
    run.at(14_000).succeed("t2@1", json!(1));
    run.at(100_000).decide_with("run1", "extend", json!({"by": "1m"}));
    run.at(102_500)
        .succeed("t3@1", json!(1))
        .assert_status("completed {}");
    // 4 s, 9 s of which 3 s at the gate, 2.5 s.
    assert_eq!(why(&run, 0)["smallest_limit_ms"], 15_501);
}

#[test]
fn an_extension_before_the_limit_is_said() {
    let mut run = Driver::start(two("cancel_all"));
    run.at(2_000).feed(curfew::run::Event::ExtendRequested {
        extension: curfew::run::Extension::By(5_000),
        by: None,
        operation: None,
    });
    run.at(16_000).wake("t1@1");
    let why = why(&run, 0);
    assert_eq!(why["limit"]["extended_ms"], 5_000);
    assert_eq!(why["limit"]["timeout_ms"], 15_000);
}

#[test]
fn a_retry_that_completes_repeats_the_work_that_was_cut() {
    let mut run = late("cancel_all");
    run.at(60_000).retry(RetryMode::RetryStep);
    run.at(67_000)
        .succeed("t3@1", json!(1))
        .assert_status("completed {}");
    let why = why(&run, 0);
    // `a` took 4 s and `b`, from its beginning, 7 s.
    assert_eq!(why["smallest_limit_ms"], 11_001);
    assert!(reason(&why).starts_with("retried, the run completed"), "{why}");
}

#[test]
fn time_in_front_of_a_person_is_stopped_time() {
    let document = json!({
        "timeout": "10s", "on_timeout": "human_gate",
        "nodes": [{"id": "a", "action_id": "work"}, {"id": "ask", "gate": {}}, {"id": "b", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "ask"}, {"from_node_id": "ask", "to_node_id": "b"}],
    });
    let mut run = Driver::start(document);
    run.at(5_000).succeed("t1@1", json!(1));
    run.at(3_605_000).decide("g2", "approve");
    run.at(3_611_000).wake("t3@1");
    let at_gate = why(&run, 0);
    assert_eq!(
        way(&at_gate),
        [
            json!(["t1", "a", 4_000]),
            json!(["t2", "ask", 0]),
            json!(["t3", "b", 6_000])
        ]
    );
    assert_eq!(at_gate["used"]["stopped_ms"], 3_600_000);
    run.at(3_612_000).succeed("t3@1", json!(1));
    run.at(3_700_000)
        .decide_with("run1", "extend", json!({"by": "1m"}));
    run.assert_status("completed {}");
    assert_eq!(why(&run, 0)["smallest_limit_ms"], 11_001);
}

#[test]
fn the_way_through_a_join_goes_by_the_branch_that_came_last() {
    let mut document = crate::run::graphs::three(json!({}));
    document["timeout"] = json!("10s");
    let mut run = Driver::start(document);
    run.at(2_000).succeed("t2@1", json!(1));
    run.at(6_000).succeed("t4@1", json!(1));
    run.at(3_000 + 4_000).succeed("t3@1", json!(1));
    run.at(11_000).wake("t5@1");
    assert_eq!(
        way(&why(&run, 0)),
        [
            json!(["t1", "a", 0]),
            json!(["t3", "b", 6_000]),
            json!(["t5", "z", 4_000])
        ]
    );
}

#[test]
fn a_run_on_its_parents_budget_was_cut_from_outside() {
    let document = json!({"timeouts": {"inherit_budget": true}, "timeout_ms": 8_000, "on_timeout": "cancel_all",
        "nodes": [{"id": "m", "workflow_id": "child"}]});
    let parent = Driver::start(document);
    let mut child = Driver::start_child(&parent);
    child.at(9_500).wake("t1@1");
    let why = why(&child, 0);
    assert_eq!(limit(&why), json!(["workflow", "parent_budget", null]));
    assert_eq!(
        why["outer"],
        json!({"layer": "parent", "run_id": "run-1", "token_id": "t1", "passed_first": true, "left_ms": null})
    );
    assert_eq!(why["change"], Value::Null);
}

#[test]
fn a_run_under_the_limit_of_the_calling_node() {
    let parent = Driver::start(json!({"nodes": [{"id": "m", "workflow_id": "child", "timeout_ms": 5_000}]}));
    let mut child = Driver::start_child(&parent);
    child.at(6_000).wake("t1@1");
    assert_eq!(limit(&why(&child, 0)), json!(["workflow", "calling_node", null]));
}

#[test]
fn a_long_way_is_cut_and_says_how_much_is_left_out() {
    let nodes: Vec<Value> = (0..150)
        .map(|n| json!({"id": format!("n{n}"), "action_id": "work"}))
        .collect();
    let ways: Vec<Value> = (1..150)
        .map(|n| json!({"from_node_id": format!("n{}", n - 1), "to_node_id": format!("n{n}")}))
        .collect();
    let mut run = Driver::start(json!({"timeout_ms": 20_000, "nodes": nodes, "transitions": ways}));
    for n in 1..=120 {
        run.at(1_000 + n * 100).succeed(&format!("t{n}@1"), json!(1));
    }
    run.at(21_000).wake("t121@1");
    let why = why(&run, 0);
    assert_eq!(why["used"]["critical_way"].as_array().map(Vec::len), Some(100));
    assert_eq!(why["used"]["critical_way_left_out"], 21);
    assert_eq!(why["used"]["nodes"].as_array().map(Vec::len), Some(100));
}

/// As many tokens as a run may have: the answer stays small, and is made in one reading of the rows.
#[test]
fn a_run_with_ten_thousand_tokens_has_a_bounded_answer() {
    let document = json!({
        "timeout": "10s", "on_timeout": "cancel_all", "limits": {"tokens_active": 10_000},
        "nodes": [{"id": "a"}, {"id": "b"}, {"id": "c", "action_id": "work"}],
        "transitions": [
            {"id": "outer", "from_node_id": "a", "to_node_id": "b", "spawn_count": 9},
            {"id": "inner", "from_node_id": "b", "to_node_id": "c", "spawn_count": 1_000},
        ],
    });
    let mut run = Driver::start(document);
    // What one decision may compute ends before all of them were made.
    for _ in 0..100 {
        run.wake("");
    }
    assert!(run.store.tokens.len() > 9_000, "{}", run.store.tokens.len());
    run.at(11_000).wake("");
    let why = why(&run, 0);
    assert_eq!(way(&why).len(), 3);
    assert!(why.to_string().len() < 8 << 10, "{}", why.to_string().len());
}
