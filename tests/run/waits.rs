//! Tokens that wait for a moment or a signal. A run that only sleeps needs nothing but its alarm.

use serde_json::{Value, json};

use super::driver::{Driver, SETTINGS, complete_document, create_run, store_document};
use super::graphs::with;

/// `w` waits, then `b` works with the payload.
fn waiting(wait: Value) -> Value {
    json!({
        "nodes": [{"id": "w", "wait": wait}, {"id": "b", "action_id": "work", "input_mapping": "${has(state.w) ? state.w : null}"}],
        "transitions": [{"from_node_id": "w", "to_node_id": "b"}],
    })
}

fn until(value: Value) -> Driver {
    Driver::start_with(
        SETTINGS,
        waiting(json!({"until": value})),
        json!({"at": 9_000, "iso": "1970-01-01T00:00:09Z"}),
    )
}

#[test]
fn a_sleep_ends_at_its_moment_without_an_earlier_alarm() {
    let mut run = Driver::start(waiting(json!({"sleep_ms": 60_000})));
    run.check(
        r#"
        snapshot
        input {"x":1}
        run running until 1001000
        token t1 w suspended@1 watch 61000
        alarm 61000
        announce
    "#,
    );
    run.at(60_999).wake("").check("");
    run.at(61_000).wake("").check(
        "
        token t1 w completed@1 null
        token t2 b executing@1 watch 91000
        alarm 91000
        dispatch t2@1 null
    ",
    );
}

#[test]
fn a_sleep_may_be_written_as_a_duration() {
    let run = Driver::start(waiting(json!({"sleep": "1m30s"})));
    assert_eq!(run.run.next_deadline(), Some(91_000));
}

#[test]
fn a_moment_may_be_a_number_a_date_or_an_expression() {
    for value in [
        json!(9_000),
        json!("1970-01-01T00:00:09Z"),
        json!("${input.at}"),
        json!("${input.iso}"),
        json!("${now + 8000}"),
    ] {
        let mut run = until(value.clone());
        assert_eq!(run.run.next_deadline(), Some(9_000), "{value}");
        run.reload()
            .at(9_000)
            .wake("")
            .assert_status("running b:executing");
    }
}

#[test]
fn a_moment_in_the_past_does_not_wait() {
    let mut run = until(json!(500));
    assert_eq!(run.run.next_deadline(), Some(1_000));
    run.wake("").assert_status("running b:executing");
}

#[test]
fn an_invalid_moment_fails_the_token() {
    for (value, expected) in [
        (
            "${input.iso + \"?\"}",
            "invalid_moment/validation: until of node w: expression `input.iso + \"?\"`: \"1970-01-01T00:00:09Z?\" is no moment",
        ),
        (
            "${input.iso}${input.at}",
            "invalid_moment/validation: until of node w: expression `input.iso`, `input.at`: \"1970-01-01T00:00:09Z9000\" is no",
        ),
        (
            "${-4}",
            "invalid_moment/validation: until of node w: expression `-4`: -4 is no moment",
        ),
        (
            "${input.nowhere.at}",
            "expression_failed/validation: until of node w",
        ),
    ] {
        let said = until(json!(value)).status_line();
        assert!(said.starts_with(&format!("failed {expected}")), "{value}: {said}");
    }
}

/// Earlier builds stored any constant.
#[test]
fn an_invalid_constant_of_an_earlier_build_fails_the_token() {
    let mut stored = store_document(&complete_document(waiting(json!({"until": 9_000}))));
    stored.workflow["nodes"][0]["wait"]["until"] = json!("tomorrow");
    let (run, decision) = create_run(1_000, SETTINGS, stored, json!({}));
    let run = Driver::of(run, decision, SETTINGS);
    assert!(
        run.status_line()
            .starts_with("failed invalid_moment/validation: until of node w: \"tomorrow\" is no moment"),
        "{}",
        run.status_line()
    );
}

fn sleeping(sleep: Value, input: Value) -> Driver {
    Driver::start_with(SETTINGS, waiting(sleep), input)
}

#[test]
fn a_sleep_may_be_computed_when_a_token_comes_there() {
    for (delay, wakes_at) in [
        (json!(4_000), 5_000),
        (json!(1_500.5), 2_501),
        (json!("1m30s"), 91_000),
        (json!(0), 1_000),
        (json!("30ms"), 1_030),
        (json!(SETTINGS.timeout_max_ms), 1_000 + SETTINGS.timeout_max_ms),
    ] {
        for field in ["sleep", "sleep_ms"] {
            let mut run = sleeping(json!({ field: "${input.delay}" }), json!({"delay": delay}));
            run.assert_status("running w:suspended");
            assert_eq!(run.row("t1").watch_at, Some(wakes_at), "{field} {delay}");
        }
    }
    // Decided once: what is computed from changes later.
    let mut run = sleeping(json!({"sleep": "${has(state.b) ? 1 : 60000}"}), json!({}));
    run.reload()
        .at(60_999)
        .wake("")
        .assert_status("running w:suspended");
    run.at(61_000).wake("").assert_status("running b:executing");
}

#[test]
fn a_pause_moves_a_computed_sleep_and_a_retry_sleeps_for_the_rest() {
    let document = with(
        waiting(json!({"sleep": "${input.delay}"})),
        json!({"timeout_ms": 20_000}),
    );
    let mut run = Driver::start_with(SETTINGS, document, json!({"delay": "30s"}));
    run.at(6_000).pause().at(106_000).resume();
    assert_eq!(run.row("t1").watch_at, Some(131_000));
    run.at(121_000).wake("");
    assert_eq!(run.run.header.status.name(), "timed_out");
    run.at(200_000).retry(curfew::run::RetryMode::RetryStep);
    assert_eq!(run.row("t2").watch_at, Some(210_000), "10 s of 30 were left");
}

#[test]
fn an_invalid_length_of_a_sleep_fails_the_token() {
    let most = SETTINGS.timeout_max_ms;
    for (delay, code, message) in [
        (json!(-5), "invalid_duration", "-5 must not be negative"),
        (json!("-5s"), "invalid_duration", "\"-5s\" must not be negative"),
        (
            json!("30"),
            "invalid_duration",
            "invalid duration \"30\": a number needs its unit; write it like",
        ),
        (
            json!(null),
            "invalid_duration",
            "null is no duration; write milliseconds or text like \"30s\"",
        ),
        (json!([1]), "invalid_duration", "[1] is no duration"),
        (
            json!(most + 1),
            "limit_exceeded",
            "720h0m0.001s is over the limit of 720h0m0s",
        ),
        (
            json!("10000h"),
            "limit_exceeded",
            "10000h0m0s is over the limit of 720h0m0s",
        ),
    ] {
        let said = sleeping(json!({"sleep": "${input.delay}"}), json!({"delay": delay})).status_line();
        let expected =
            format!("failed {code}/validation: sleep of node w: expression `input.delay`: {message}");
        assert!(said.starts_with(&expected), "{delay}: {said}");
    }
    let said = sleeping(json!({"sleep_ms": "${input.delay}"}), json!({})).status_line();
    assert!(
        said.starts_with("failed expression_failed/validation: sleep of node w"),
        "{said}"
    );
    // Its failure transitions follow.
    let mut document = waiting(json!({"sleep": "${-1}"}));
    document["transitions"][0]["on"] = json!("failure");
    let run = Driver::start(document);
    assert_eq!(run.status_line(), "running b:executing");
}

#[test]
fn a_signal_resumes_its_token_and_its_body_is_the_result() {
    let mut run = Driver::start(waiting(json!({"signal": "paid"})));
    run.assert_status("waiting w:suspended");
    run.signal("other", json!(1))
        .check("rejected unknown_signal other: paid");
    run.at(2_000).signal("paid", json!({"sum": 3})).check(
        r#"
        run running until 1001000
        token t1 w completed@1 {"sum":3} keeps state.w
        token t2 b executing@1 watch 32000
        alarm 32000
        dispatch t2@1 {"sum":3}
        announce
    "#,
    );
}

#[test]
fn a_waiting_run_has_no_alarm_before_its_deadline() {
    let mut document = waiting(json!({"signal": "paid"}));
    document["timeout_ms"] = json!(null);
    let run = Driver::start(document);
    assert_eq!((run.run.next_deadline(), run.lines_of("alarm").len()), (None, 0));
    let mut document = waiting(json!({"signal": "paid", "timeout": "240h"}));
    document["timeout_ms"] = json!(null);
    let mut run = Driver::start(document);
    assert_eq!(run.lines_of("alarm"), ["alarm 691201000"], "the warning");
    run.at(691_201_000).wake("").check(
        "
        token t1 w suspended@1 until 864001000
        event deadline_warning t1 w wait
        alarm 864001000
    ",
    );
}

#[test]
fn early_signals_are_buffered_and_taken_in_order() {
    let mut document = waiting(json!({"signal": "go"}));
    document["nodes"] = json!([{"id": "a", "action_id": "work"}, {"id": "w", "wait": {"signal": "go"}},
        {"id": "v", "wait": {"signal": "go"}, "output_mapping": {"output.v": "${result}", "output.w": "${state.w}"}}]);
    document["transitions"] =
        json!([{"from_node_id": "a", "to_node_id": "w"}, {"from_node_id": "w", "to_node_id": "v"}]);
    let mut run = Driver::start(document);
    run.signal("go", json!("first"))
        .check("event signal_received\n signals go = [\"first\"]");
    run.signal("go", json!("second"))
        .check("event signal_received\n signals go = [\"first\",\"second\"]");
    run.reload()
        .succeed("t1@1", json!(1))
        .assert_status("completed {\"v\":\"second\",\"w\":\"first\"}");
    assert_eq!(run.lines_of("signals"), ["signals go = []"]);
}

#[test]
fn of_two_waiting_tokens_the_first_gets_the_first_signal() {
    let mut document = super::graphs::three(json!({}));
    document["nodes"][1] = json!({"id": "b", "wait": {"signal": "go"}});
    let mut run = Driver::start(document);
    run.assert_status("waiting 3xb:suspended");
    run.signal("go", json!(1))
        .reload()
        .signal("go", json!(2))
        .signal("go", json!(3));
    run.assert_status("running z:executing");
    assert_eq!(run.state()["all"], json!([1, 2, 3]));
    // No token waits any more: the next signal is buffered.
    run.signal("go", json!(4))
        .check("event signal_received\n signals go = [4]");
}

#[test]
fn a_missing_signal_fails_the_token_or_lets_it_continue() {
    let wait = json!({"signal": "paid", "timeout_ms": 5_000});
    let mut run = Driver::start(waiting(wait.clone()));
    run.at(6_000)
        .wake("")
        .assert_status("failed signal_timeout/timeout: the signal did not come in time");
    let mut run = Driver::start(waiting(with(wait.clone(), json!({"on_timeout": "continue"}))));
    run.reload()
        .at(6_000)
        .wake("")
        .assert_status("running b:executing");
    // It arrives after all and is buffered.
    run.signal("paid", json!(1))
        .check("event signal_received\n signals paid = [1]");
    let mut document = waiting(wait);
    document["transitions"][0]["on"] = json!("timeout");
    let mut run = Driver::start(document);
    run.at(6_000).wake("").assert_status("running b:executing");
}

#[test]
fn a_signal_just_before_the_deadline_is_in_time_and_only_one_of_both_counts() {
    let wait = json!({"signal": "paid", "timeout_ms": 5_000, "on_timeout": "continue"});
    let mut run = Driver::start(waiting(wait));
    run.at(6_000)
        .signal("paid", json!("just"))
        .assert_status("running b:executing");
    run.wake("t2@1").assert_status("running b:executing");
    assert_eq!(run.state()["w"], json!("just"));
}

#[test]
fn a_hundred_signals_are_buffered_and_no_more() {
    let nodes = json!([{"id": "a", "action_id": "work"}, {"id": "even", "wait": {"signal": "even"}},
        {"id": "odd", "wait": {"signal": "odd"}}]);
    let transitions =
        json!([{"from_node_id": "a", "to_node_id": "even"}, {"from_node_id": "even", "to_node_id": "odd"}]);
    let mut run = Driver::start(json!({"nodes": nodes, "transitions": transitions}));
    for number in 0..100 {
        run.signal(if number % 2 == 0 { "even" } else { "odd" }, json!(number));
        assert_eq!(run.answer, Ok(()), "{number}");
    }
    run.signal("even", json!(100)).check("rejected too_many_signals");
}

#[test]
fn an_ended_run_takes_no_signal() {
    let mut run = Driver::start(json!({"nodes": [{"id": "a"}]}));
    run.signal("go", json!(1)).check("rejected run_finished");
}

#[test]
fn a_run_that_sleeps_is_running_and_one_that_waits_for_signals_is_waiting() {
    let document = json!({
        "nodes": [{"id": "a"}, {"id": "s", "wait": {"sleep_ms": 5_000}}, {"id": "w", "wait": {"signal": "go"}}],
        "transitions": [{"from_node_id": "a", "to_node_id": "s"}, {"from_node_id": "a", "to_node_id": "w"}],
    });
    let mut run = Driver::start(document);
    run.assert_status("running s:suspended w:suspended");
    run.reload()
        .at(6_000)
        .wake("")
        .assert_status("waiting w:suspended");
    run.signal("go", json!(1)).assert_status("completed {}");
}

#[test]
fn the_body_of_a_signal_keeps_to_the_limits_of_a_result() {
    let mut run = Driver::start(waiting(json!({"signal": "paid"})));
    run.signal("paid", json!("x".repeat(600_000)))
        .check("rejected too_large: the signal is 600002 bytes; the limit is 524288")
        .assert_status("waiting w:suspended");
}
