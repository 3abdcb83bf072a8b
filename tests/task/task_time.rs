//! What a task does with its time: deadlines of steps and of the task, and attempts that would not fit.

use serde_json::{Value, json};

use super::fake_runtime::PeerResponse::{After, Failure, Result};
use super::fake_runtime::{START, call, check, order, set, tell, with};

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
        &tell(task, None, &answers),
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
        &tell(task, None, &[("a", Failure("status 500"))]),
        r#"
            call a {"n":1}
            step a failed x1 0 ms
            failed peer_failed/bad_request at a: status 500
        "#,
    );
}

#[test]
fn delays_grow_as_the_policy_says_until_the_attempts_are_spent() {
    for (backoff, sleeps) in [
        ("none", ""),
        ("linear", "sleep 100, sleep 200, sleep 250"),
        ("exponential", "sleep 100, sleep 200, sleep 250"),
    ] {
        let retry =
            json!({"max_attempts": 4, "backoff": backoff, "initial_delay_ms": 100, "max_delay_ms": 250});
        let attempt = [("a", Result(json!(1))), ("b", Failure("status 500"))];
        let answers: Vec<_> = std::iter::repeat_n(attempt, 4).flatten().collect();
        let story = tell(retrying(retry), None, &answers);
        let slept: Vec<&str> = story.lines().filter(|line| line.starts_with("sleep")).collect();
        assert_eq!(slept.join(", "), sleeps, "{backoff}");
        let end = story.lines().last().unwrap_or_default();
        assert_eq!(end, "failed peer_failed/bad_request at b: status 500");
    }
}

#[test]
fn an_attempt_that_could_not_start_before_the_deadline_is_not_made_and_says_so() {
    let retry = json!({"max_attempts": 3, "backoff": "linear", "initial_delay_ms": 1_000});
    let answers = [("a", Result(json!(1))), ("b", Failure("status 500"))];
    // The clock shows 1000; the second attempt would start in the very millisecond of the deadline.
    check(
        &tell(retrying(retry.clone()), Some(2_000), &answers),
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
        &tell(retrying(retry), Some(2_001), &both),
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
fn the_deadline_of_a_step_is_the_nearest_of_its_own_and_the_tasks() {
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
    let story = tell(json!({"steps": steps}), Some(61_000), &answers);
    check(
        &story,
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
    let story = tell(json!({"steps": [call("free")]}), None, &[answered("free")]);
    check(
        &story,
        r#"
            call free {"n":1}
            step free completed x1 0 ms
            completed 1
        "#,
    );
}

#[test]
fn a_default_limit_holds_where_nothing_is_written_about_the_time_of_a_call() {
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
        let story = order(json!({"steps": steps}), more, &answers).story();
        let calls = story.lines().filter(|line| line.starts_with("call"));
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
    // The task's own deadline stays above all of them.
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
    // A limit of calls to models is none of other calls.
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
        &order(task, json!({"action_timeouts": {"tool_ms": 300}}), &answers).story(),
        r#"
            call b {"n":1} by 1300
            step a completed x1 0 ms
            step b timed_out x1 300 ms
            timed_out tool_timeout/timeout at b: step b timed out: context deadline exceeded
        "#,
    );
    // No time at all for calls: a step that makes none does not mind.
    let task = json!({"steps": [set("a", json!({"x": 1}))]});
    let run = order(task, json!({"action_timeouts": {"tool_ms": 0}}), &[]);
    check(
        &run.story(),
        r#"
        step a completed x1 0 ms
        completed {"x":1}
    "#,
    );
}

#[test]
fn a_step_that_runs_out_of_its_own_time_may_be_passed_over() {
    let steps = json!([
        with(
            call("slow"),
            json!({"timeout_override_ms": 300, "on_failure": "continue"})
        ),
        call("next"),
    ]);
    let answers = [("slow", After(900, json!(1))), ("next", After(100, json!(2)))];
    check(
        &tell(json!({"steps": steps}), Some(5_000), &answers),
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
fn when_the_tasks_time_is_up_nothing_is_passed_over() {
    let steps = json!([
        with(call("slow"), json!({"on_failure": "continue"})),
        call("next")
    ]);
    let answers = [("slow", After(900, json!(1)))];
    check(
        &tell(json!({"steps": steps}), Some(1_300), &answers),
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
        &tell(json!({"steps": steps}), Some(1_300), &answers),
        r#"
            call a {"n":1} by 1300
            call b {"n":1} by 1300
            step a completed x1 299 ms
            step b timed_out x1 1 ms
            timed_out tool_timeout/timeout at b: step b timed out: context deadline exceeded
        "#,
    );
    check(
        &tell(json!({"steps": steps}), Some(1_000), &[]),
        "
            step a timed_out x1 0 ms
            timed_out tool_timeout/timeout at a: step a timed out: context deadline exceeded
        ",
    );
}

#[test]
fn a_timeout_that_is_retried_and_spent_is_reported_as_a_timeout() {
    let steps = json!([with(
        call("a"),
        json!({"timeout_override_ms": 100, "on_failure": "retry"})
    )]);
    let answers = [("a", After(900, json!(1))), ("a", After(900, json!(1)))];
    check(
        &tell(
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
fn a_tasks_own_limit_holds_for_all_its_steps_and_retries() {
    let slow = |step| (step, After(400, json!(1)));
    let steps = json!([call("a"), call("b"), call("c")]);
    let task = json!({"timeout_ms": 1_000, "steps": steps});
    for deadline_at in [None, Some(START + 5_000)] {
        check(
            &tell(task.clone(), deadline_at, &[slow("a"), slow("b"), slow("c")]),
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
    // The token's, where that is the nearer one.
    let story = tell(
        json!({"timeout": "1s", "steps": [call("a")]}),
        Some(START + 300),
        &[slow("a")],
    );
    assert!(story.contains("by 1300"), "{story}");
    // A retry of the task is within its limit, not another one.
    let again = with(call("a"), json!({"on_failure": "retry"}));
    let policy = json!({"max_attempts": 9, "backoff": "linear", "initial_delay_ms": 600});
    check(
        &tell(
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
