//! The one alarm of a run: when it is written, what an ended run still needs it for, and clocks that cannot be
//! trusted.

use serde_json::{Value, json};

use super::driver::Driver;

fn one_node(limit: Value) -> Value {
    let mut document = json!({"nodes": [{"id": "a", "action_id": "work"}]});
    if !limit.is_null() {
        document["nodes"][0]["timeout_ms"] = limit;
    }
    document
}

#[test]
fn the_alarm_is_rewritten_only_when_the_next_moment_moves_earlier_or_has_passed() {
    let mut run = Driver::start(json!({
        "nodes": [{"id": "a", "action_id": "work"}, {"id": "b", "action_id": "work", "timeout_ms": 1_000},
                  {"id": "c", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}, {"from_node_id": "b", "to_node_id": "c"}],
    }));
    assert_eq!(run.lines_of("alarm"), ["alarm 31000"]);
    // b's deadline with its grace is earlier than the watch the alarm stands at.
    run.at(2_000).succeed("t1@1", json!(1));
    assert_eq!(run.lines_of("alarm"), ["alarm 3500"]);
    // Later than the alarm: it may ring once for nothing, which costs less than a write.
    run.at(2_500).succeed("t2@1", json!(1));
    assert_eq!(run.lines_of("alarm"), Vec::<String>::new());
    assert_eq!(
        (run.run.alarm_at(), run.run.next_deadline()),
        (Some(3_500), Some(32_500))
    );
    // A knock before its moment leaves it where it is.
    run.at(3_499).wake("t3@1");
    assert_eq!(run.lines_of("alarm"), Vec::<String>::new());
    run.at(3_500).wake("t3@1").check(
        "
        alarm 32500
    ",
    );
    // The end comes before the alarm: the retention waits for it to ring.
    run.at(4_000).succeed("t3@1", json!(1));
    assert_eq!(run.lines_of("alarm"), Vec::<String>::new());
    run.at(32_500).wake("").check(
        "
        alarm 10004000
    ",
    );
}

/// The platform cleared it before it rang. Whoever else wakes the object leaves it where it stands: a row would cost.
#[test]
fn an_alarm_that_rings_early_is_set_again() {
    let mut run = Driver::start(one_node(json!(4_000)));
    assert_eq!(run.lines_of("alarm"), ["alarm 5500"]);
    run.at(5_499).wake("t1@1").check("");
    run.at(5_499).ring("t1@1").check(
        "
        alarm 5500
    ",
    );
    run.at(5_500)
        .ring("t1@1")
        .stands("failed execution_timeout/timeout: step a timed out: context deadline exceeded");
}

#[test]
fn whatever_comes_in_after_the_alarms_moment_arms_it_again() {
    let mut run = Driver::start(one_node(Value::Null));
    // The alarm of 31000 is late; a wrong answer comes first.
    run.at(40_000).succeed("t9@1", json!(1)).check(
        "
        rejected stale_attempt t9@1
        event 1 late_result_discarded t9
        alarm 31000
    ",
    );
}

#[test]
fn an_ended_run_is_deleted_when_its_retention_is_over_and_not_before() {
    let mut run = Driver::start(json!({"nodes": [{"id": "a"}]}));
    run.at(10_000_999).wake("").check("");
    run.at(10_001_000).wake("").check(
        "
        delete
    ",
    );
}

#[test]
fn a_clock_that_jumps_back_makes_nothing_younger() {
    Driver::start(one_node(json!(4_000)))
        .at(3_000)
        .lose("t1@1")
        .check(
            r#"
            token t1 a executing@2 lost 1 until 7000 watch 33000 (attempt_lost)
            dispatch t1@2 {"x":1} by 7000
        "#,
        )
        .at(10)
        .lose("t1@2")
        .check(
            "
            token t1 a pending@2 lost 2 until 7000 watch 4000 (attempt_lost)
            alarm 4000
        ",
        )
        .at(20)
        .wake("")
        .check("")
        .at(4_000)
        .wake("")
        .check(
            r#"
            token t1 a executing@3 lost 2 until 8000 watch 34000 (attempt_lost)
            alarm 8500
            dispatch t1@3 {"x":1} by 8000
        "#,
        );
}

#[test]
fn a_clock_before_the_start_counts_as_the_start() {
    Driver::start(one_node(Value::Null))
        .at(0)
        .succeed("t1@1", json!(1))
        .check(
            "
        run completed {}
        token t1 a completed@1 1 keeps state.a
        announce
        ended
    ",
        );
}

/// The watch over an attempt that is done would wake the object for nothing: a wait is left alone until its time.
#[test]
fn a_run_that_only_waits_is_not_woken_before_its_time() {
    let mut run = Driver::start(json!({
        "nodes": [
            {"id": "a", "action_id": "work"},
            {"id": "nap", "wait": {"sleep_ms": 600_000}},
            {"id": "b", "action_id": "work"},
        ],
        "transitions": [
            {"from_node_id": "a", "to_node_id": "nap"},
            {"from_node_id": "nap", "to_node_id": "b"},
        ],
    }));
    assert_eq!(run.lines_of("alarm"), ["alarm 31000"]);
    run.at(2_000).succeed("t1@1", json!(1));
    assert_eq!(run.lines_of("alarm"), ["alarm 602000"]);
    run.reload().at(602_000).wake("");
    assert_eq!(run.lines_of("alarm"), ["alarm 632000"], "b is watched over");
}
