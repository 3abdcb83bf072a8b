//! Deadlines of steps and of the task, and retries that would not fit.

use serde_json::{Value, json};

use super::fake_runtime::PeerResponse::{After, Failure, Result};
use super::fake_runtime::{START, call, check, order, set, trace_of, with};

fn retrying(retry: Value) -> Value {
    json!({"retry": retry, "steps": [call("a"), with(call("b"), json!({"on_failure": "retry"}))]})
}

#[test]
fn retry_begins_again_with_the_first_step_and_a_fresh_context() {
    let count = json!({"ref": "count", "action": {"kind": "update_context", "implementation":
        {"set": {"state.seen": "${has(state.seen) ? state.seen + 1 : 1}"}}}});
    let task = json!({
        "retry": {"max_attempts": 2},
        "steps": [count, with(call("a"), json!({"on_failure": "retry", "input_mapping": "${state.seen}"}))],
    });
    let answers = [("a", Failure("first")), ("a", Result(json!("done")))];
    check(
        &trace_of(task, None, &answers),
        r#"
            call a 1
            call a 1
            step count completed x1 0 ms
            step a completed x1 0 ms
            completed "done"
        "#,
    );
}

#[test]
fn retry_without_a_policy_ends_the_task() {
    let task = json!({"steps": [with(call("a"), json!({"on_failure": "retry"}))]});
    check(
        &trace_of(task, None, &[("a", Failure("status 500"))]),
        r#"
            call a {"n":1}
            step a failed x1 0 ms
            failed peer_failed/bad_request at a: status 500
        "#,
    );
}

#[test]
fn delays_grow_until_no_attempt_is_left() {
    for (backoff, sleeps) in [
        ("none", ""),
        ("linear", "sleep 100, sleep 200, sleep 250"),
        ("exponential", "sleep 100, sleep 200, sleep 250"),
    ] {
        let retry =
            json!({"max_attempts": 4, "backoff": backoff, "initial_delay_ms": 100, "max_delay_ms": 250});
        let attempt = [("a", Result(json!(1))), ("b", Failure("status 500"))];
        let answers: Vec<_> = std::iter::repeat_n(attempt, 4).flatten().collect();
        let trace = trace_of(retrying(retry), None, &answers);
        let slept: Vec<&str> = trace.lines().filter(|line| line.starts_with("sleep")).collect();
        assert_eq!(slept.join(", "), sleeps, "{backoff}");
        let end = trace.lines().last().unwrap_or_default();
        assert_eq!(end, "failed peer_failed/bad_request at b: status 500");
    }
}

#[test]
fn a_retry_that_could_not_start_before_the_deadline_is_not_made() {
    let retry = json!({"max_attempts": 3, "backoff": "linear", "initial_delay_ms": 1_000});
    let answers = [("a", Result(json!(1))), ("b", Failure("status 500"))];
    // It is 1000. The second attempt would start in the millisecond of the deadline.
    check(
        &trace_of(retrying(retry.clone()), Some(2_000), &answers),
        r#"
            call a {"n":1} by 2000
            call b {"n":1} by 2000
            step a completed x1 0 ms
            step b failed x1 0 ms
            failed peer_failed/bad_request at b: status 500; not tried again: no time is left before the deadline
        "#,
    );
    let both: Vec<_> = std::iter::repeat_n(answers, 2).flatten().collect();
    check(
        &trace_of(retrying(retry), Some(2_001), &both),
        r#"
            call a {"n":1} by 2001
            call b {"n":1} by 2001
            sleep 1000
            call a {"n":1} by 2001
            call b {"n":1} by 2001
            step a completed x1 0 ms
            step b failed x1 0 ms
            failed peer_failed/bad_request at b: status 500; not tried again: no time is left before the deadline
        "#,
    );
}

#[test]
fn the_deadline_of_a_step_is_the_earlier_of_its_own_and_the_tasks() {
    let timed = |name: &str, limit: u64| {
        let mut step = call(name);
        step["action"]["execution"] = json!({"timeout_ms": limit});
        step
    };
    let answered = |name| (name, Result(json!(1)));
    let steps = json!([
        call("free"),
        timed("own", 500),
        timed("long", 90_000),
        with(timed("overridden", 500), json!({"timeout_override_ms": 700})),
        with(timed("lifted", 500), json!({"timeout_override_ms": null})),
    ]);
    let answers = ["free", "own", "long", "overridden", "lifted"].map(answered);
    let trace = trace_of(json!({"steps": steps}), Some(61_000), &answers);
    check(
        &trace,
        r#"
            call free {"n":1} by 61000
            call own {"n":1} by 1500
            call long {"n":1} by 61000
            call overridden {"n":1} by 1700
            call lifted {"n":1} by 61000
            step free completed x1 0 ms
            step own completed x1 0 ms
            step long completed x1 0 ms
            step overridden completed x1 0 ms
            step lifted completed x1 0 ms
            completed 1
        "#,
    );
    let trace = trace_of(json!({"steps": [call("free")]}), None, &[answered("free")]);
    check(
        &trace,
        r#"
            call free {"n":1}
            step free completed x1 0 ms
            completed 1
        "#,
    );
}

#[test]
fn a_default_limit_applies_to_calls_without_a_timeout() {
    let own = |name: &str, limit: Value| {
        let mut step = call(name);
        step["action"]["execution"] = json!({"timeout_ms": limit});
        step
    };
    let steps = json!([
        call("default"),
        own("longer", json!(900)),
        own("unlimited", json!(null)),
        with(call("overridden"), json!({"timeout_override_ms": 30})),
        with(own("lifted", json!(30)), json!({"timeout_override_ms": null})),
    ]);
    let names = ["default", "longer", "unlimited", "overridden", "lifted"];
    let answers = names.map(|name| (name, Result(json!(1))));
    let calls = |more: Value| {
        let trace = order(json!({"steps": steps}), more, &answers).trace();
        let calls = trace.lines().filter(|line| line.starts_with("call"));
        calls.collect::<Vec<_>>().join("\n")
    };
    let limited = json!({"action_timeouts": {"tool_ms": 500}});
    check(
        &calls(limited.clone()),
        r#"
            call default {"n":1} by 1500
            call longer {"n":1} by 1900
            call unlimited {"n":1}
            call overridden {"n":1} by 1030
            call lifted {"n":1}
        "#,
    );
    // The task's deadline limits all of them.
    check(
        &calls(with(limited, json!({"deadline_at": 1_400}))),
        r#"
            call default {"n":1} by 1400
            call longer {"n":1} by 1400
            call unlimited {"n":1} by 1400
            call overridden {"n":1} by 1030
            call lifted {"n":1} by 1400
        "#,
    );
    // The limit of llm_call does not apply to other calls.
    check(
        &calls(json!({"action_timeouts": {"llm_call_ms": 500}})),
        r#"
            call default {"n":1}
            call longer {"n":1} by 1900
            call unlimited {"n":1}
            call overridden {"n":1} by 1030
            call lifted {"n":1}
        "#,
    );
}

#[test]
fn a_default_limit_stops_a_call_and_leaves_pure_steps_alone() {
    let task = json!({"steps": [set("a", json!({"x": 1})), call("b")]});
    let answers = [("b", After(900, json!(1)))];
    check(
        &order(task, json!({"action_timeouts": {"tool_ms": 300}}), &answers).trace(),
        r#"
            call b {"n":1} by 1300
            step a completed x1 0 ms
            step b timed_out x1 300 ms
            timed_out tool_timeout/timeout at b: step b timed out: context deadline exceeded
        "#,
    );
    // A limit of zero for calls does not affect a pure step.
    let task = json!({"steps": [set("a", json!({"x": 1}))]});
    let run = order(task, json!({"action_timeouts": {"tool_ms": 0}}), &[]);
    check(
        &run.trace(),
        r#"
        step a completed x1 0 ms
        completed {"x":1}
    "#,
    );
}

#[test]
fn a_task_may_continue_after_a_step_timed_out() {
    let steps = json!([
        with(
            call("slow"),
            json!({"timeout_override_ms": 300, "on_failure": "continue"})
        ),
        call("next"),
    ]);
    let answers = [("slow", After(900, json!(1))), ("next", After(100, json!(2)))];
    check(
        &trace_of(json!({"steps": steps}), Some(5_000), &answers),
        r#"
            call slow {"n":1} by 1300
            call next {"n":1} by 5000
            step slow timed_out x1 300 ms
            step next completed x1 100 ms
            completed 2
        "#,
    );
}

#[test]
fn at_the_tasks_deadline_no_step_continues() {
    let steps = json!([
        with(call("slow"), json!({"on_failure": "continue"})),
        call("next")
    ]);
    let answers = [("slow", After(900, json!(1)))];
    check(
        &trace_of(json!({"steps": steps}), Some(1_300), &answers),
        r#"
            call slow {"n":1} by 1300
            step slow timed_out x1 300 ms
            timed_out tool_timeout/timeout at slow: step slow timed out: context deadline exceeded
        "#,
    );
}

#[test]
fn a_step_that_would_start_at_the_deadline_does_not_start() {
    let steps = json!([call("a"), call("b")]);
    let answers = [("a", After(299, json!(1))), ("b", After(1, json!(1)))];
    check(
        &trace_of(json!({"steps": steps}), Some(1_300), &answers),
        r#"
            call a {"n":1} by 1300
            call b {"n":1} by 1300
            step a completed x1 299 ms
            step b timed_out x1 1 ms
            timed_out tool_timeout/timeout at b: step b timed out: context deadline exceeded
        "#,
    );
    check(
        &trace_of(json!({"steps": steps}), Some(1_000), &[]),
        "
            step a timed_out x1 0 ms
            timed_out tool_timeout/timeout at a: step a timed out: context deadline exceeded
        ",
    );
}

#[test]
fn a_retried_timeout_is_reported_as_a_timeout() {
    let steps = json!([with(
        call("a"),
        json!({"timeout_override_ms": 100, "on_failure": "retry"})
    )]);
    let answers = [("a", After(900, json!(1))), ("a", After(900, json!(1)))];
    check(
        &trace_of(
            json!({"retry": {"max_attempts": 2}, "steps": steps}),
            None,
            &answers,
        ),
        r#"
            call a {"n":1} by 1100
            call a {"n":1} by 1200
            step a timed_out x1 100 ms
            timed_out tool_timeout/timeout at a: step a timed out: context deadline exceeded
        "#,
    );
}

#[test]
fn a_tasks_own_limit_includes_all_steps_and_retries() {
    let slow = |step| (step, After(400, json!(1)));
    let steps = json!([call("a"), call("b"), call("c")]);
    let task = json!({"timeout_ms": 1_000, "steps": steps});
    for deadline_at in [None, Some(START + 5_000)] {
        check(
            &trace_of(task.clone(), deadline_at, &[slow("a"), slow("b"), slow("c")]),
            r#"
                call a {"n":1} by 2000
                call b {"n":1} by 2000
                call c {"n":1} by 2000
                step a completed x1 400 ms
                step b completed x1 400 ms
                step c timed_out x1 200 ms
                timed_out tool_timeout/timeout at c: step c timed out: context deadline exceeded
            "#,
        );
    }
    // The token's deadline, if it is earlier.
    let trace = trace_of(
        json!({"timeout": "1s", "steps": [call("a")]}),
        Some(START + 300),
        &[slow("a")],
    );
    assert!(trace.contains("by 1300"), "{trace}");
    // A business retry does not restart the limit.
    let again = with(call("a"), json!({"on_failure": "retry"}));
    let policy = json!({"max_attempts": 9, "backoff": "linear", "initial_delay_ms": 600});
    check(
        &trace_of(
            json!({"timeout_ms": 1_000, "retry": policy, "steps": [again]}),
            None,
            &[("a", Failure("first")), ("a", Failure("second"))],
        ),
        r#"
            call a {"n":1} by 2000
            sleep 600
            call a {"n":1} by 2000
            step a failed x1 0 ms
            failed peer_failed/bad_request at a: second; not tried again: no time is left before the deadline
        "#,
    );
}
