//! The alarm of a run: when it is written, retention after the run's end, and clocks that go back.

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
fn the_alarm_is_rewritten_only_when_the_next_deadline_is_earlier_or_has_passed() {
    let mut run = Driver::start(json!({
        "nodes": [{"id": "a", "action_id": "work"}, {"id": "b", "action_id": "work", "timeout_ms": 1_000},
                  {"id": "c", "action_id": "work"}],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}, {"from_node_id": "b", "to_node_id": "c"}],
    }));
    assert_eq!(run.lines_of("alarm"), ["alarm 31000"]);
    // b's deadline plus grace is earlier than the watch that the alarm is set to.
    run.at(2_000).succeed("t1@1", json!(1));
    assert_eq!(run.lines_of("alarm"), ["alarm 3500"]);
    // Later than the alarm: a spurious alarm costs less than a write.
    run.at(2_500).succeed("t2@1", json!(1));
    assert_eq!(run.lines_of("alarm"), Vec::<String>::new());
    assert_eq!(
        (run.run.alarm_at(), run.run.next_deadline()),
        (Some(3_500), Some(32_500))
    );
    // A request before the alarm's time does not change the alarm.
    run.at(3_499).wake("t3@1");
    assert_eq!(run.lines_of("alarm"), Vec::<String>::new());
    run.at(3_500).wake("t3@1").check(
        "
        alarm 32500
    ",
    );
    // The run ends before the alarm, which will then schedule the retention.
    run.at(4_000).succeed("t3@1", json!(1));
    assert_eq!(run.lines_of("alarm"), Vec::<String>::new());
    run.at(32_500).wake("").check(
        "
        alarm 10004000
    ",
    );
}

/// The platform clears an alarm before it fires. Other wakes leave the alarm unchanged, because a write costs.
#[test]
fn an_alarm_that_fires_early_is_set_again() {
    let mut run = Driver::start(one_node(json!(4_000)));
    assert_eq!(run.lines_of("alarm"), ["alarm 5500"]);
    run.at(5_499).wake("t1@1").check("");
    run.at(5_499).fire_alarm("t1@1").check(
        "
        alarm 5500
    ",
    );
    run.at(5_500)
        .fire_alarm("t1@1")
        .assert_status("failed execution_timeout/timeout: step a timed out: context deadline exceeded");
}

#[test]
fn any_event_after_the_alarm_time_sets_the_alarm_again() {
    let mut run = Driver::start(one_node(Value::Null));
    // The alarm of 31000 is late; a rejected report arrives first.
    run.at(40_000).succeed("t9@1", json!(1)).check(
        "
        rejected stale_attempt t9@1
        event late_result_discarded t9
        alarm 31000
    ",
    );
}

#[test]
fn an_ended_run_is_deleted_after_its_retention() {
    let mut run = Driver::start(json!({"nodes": [{"id": "a"}]}));
    run.at(10_000_999).wake("").check("");
    run.at(10_001_000).wake("").check(
        "
        delete
    ",
    );
}

#[test]
fn a_clock_that_goes_back_does_not_move_the_run_back() {
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

/// The watch of a completed attempt does not wake the object during a wait.
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
