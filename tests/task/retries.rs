//! Infrastructure retry: which failures are retried, when, and what is reported.

use curfew::base::failure::FailureClass::{self, *};
use curfew::definition::step::StepAction;
use curfew::definition::task::Task;
use curfew::task::retry::{End, Ends, NotRetried, RetryDecision, Situation, after, retry_after_ms};
use curfew::task::task_cache::TaskCache;
use serde_json::{Value, json};

use super::fake_runtime::PeerResponse::{After, Endless, Fails, Result};
use super::fake_runtime::{FakeRuntime, START, TaskRun, call, check, order, set, trace_of, with};

/// A step that calls the peer, with this `execution`.
fn calling(reference: &str, execution: Value) -> Value {
    let mut step = call(reference);
    step["action"]["execution"] = execution;
    step
}

fn retrying(policy: Value) -> Value {
    json!({"steps": [calling("a", json!({"retry_policy": policy}))]})
}

const TRANSIENT: [FailureClass; 4] = [Network, ServerError, ProviderTransient, Unknown];

#[test]
fn transient_failures_are_retried_three_times() {
    for class in TRANSIENT {
        let run = order(
            json!({"steps": [call("a")]}),
            json!({}),
            &[
                ("a", Fails(class, None)),
                ("a", Fails(class, None)),
                ("a", Fails(class, None)),
                ("a", Result(json!("at last"))),
            ],
        );
        let name = json!(class);
        let retry = format!("retry a {} peer_failed", name.as_str().unwrap_or_default());
        check(
            &run.trace(),
            &format!(
                r#"
                    call a {{"n":1}}
                    {retry}
                    sleep 1000
                    call a {{"n":1}}
                    {retry}
                    sleep 2000
                    call a {{"n":1}}
                    {retry}
                    sleep 4000
                    call a {{"n":1}}
                    step a completed x4 7000 ms
                    completed "at last"
                "#
            ),
        );
        let delays: Vec<_> = run.result.steps[0]
            .retries
            .iter()
            .map(|it| (it.class, it.delay_ms))
            .collect();
        assert_eq!(delays, [(class, 1_000), (class, 2_000), (class, 4_000)]);
    }
    let failing = ("a", Fails(Network, None));
    check(
        trace_of(
            json!({"steps": [call("a")]}),
            None,
            &[failing.clone(), failing.clone(), failing.clone(), failing],
        )
        .split_once("step")
        .map_or("", |(_, end)| end),
        "
            a failed x4 7000 ms
            failed peer_failed/network at a: no luck
        ",
    );
}

#[test]
fn jitter_adds_up_to_half_of_a_delay() {
    let failing = ("a", Fails(Network, None));
    let answers = [failing.clone(), failing.clone(), failing, ("a", Result(json!(1)))];
    let mut runtime = FakeRuntime::new(&answers);
    runtime.random = 0.5;
    let run = runtime.order(json!({"steps": [call("a")]}), json!({}));
    let delays: Vec<_> = run.result.steps[0].retries.iter().map(|it| it.delay_ms).collect();
    assert_eq!(delays, [1_250, 2_500, 5_000]);
}

#[test]
fn permanent_failures_are_not_retried() {
    for class in [BadRequest, Auth, NotFound, Validation, Assertion, Permanent] {
        let trace = trace_of(json!({"steps": [call("a")]}), None, &[("a", Fails(class, None))]);
        assert!(trace.contains("step a failed x1 0 ms"), "{class:?}: {trace}");
    }
}

#[test]
fn a_rate_limit_waits_for_retry_after() {
    let limited = |seconds| ("a", Fails(RateLimited, seconds));
    let answers = [
        limited(Some(7)),
        limited(None),
        limited(Some(900)),
        limited(Some(0)),
        limited(Some(1)),
        limited(Some(1)),
    ];
    check(
        &trace_of(json!({"steps": [call("a")]}), None, &answers),
        r#"
            call a {"n":1}
            retry a rate_limited peer_failed
            sleep 7000
            call a {"n":1}
            retry a rate_limited peer_failed
            sleep 60000
            call a {"n":1}
            retry a rate_limited peer_failed
            sleep 300000
            call a {"n":1}
            retry a rate_limited peer_failed
            call a {"n":1}
            retry a rate_limited peer_failed
            sleep 1000
            call a {"n":1}
            step a failed x6 368000 ms
            failed peer_failed/rate_limited at a: no luck
        "#,
    );
}

#[test]
fn a_policy_overrides() {
    let failing = ("a", Fails(ServerError, None));
    let once = trace_of(
        retrying(json!({"max_attempts": 1})),
        None,
        std::slice::from_ref(&failing),
    );
    assert!(once.contains("step a failed x1"), "{once}");
    check(
        &trace_of(
            retrying(
                json!({"max_attempts": 4, "backoff": "linear", "initial_delay": "200ms", "max_delay_ms": 500, "jitter": false}),
            ),
            None,
            &[failing.clone(), failing.clone(), failing.clone(), failing.clone()],
        ),
        r#"
            call a {"n":1}
            retry a server_error peer_failed
            sleep 200
            call a {"n":1}
            retry a server_error peer_failed
            sleep 400
            call a {"n":1}
            retry a server_error peer_failed
            sleep 500
            call a {"n":1}
            step a failed x4 1100 ms
            failed peer_failed/server_error at a: no luck
        "#,
    );
    check(
        &trace_of(
            retrying(json!({"max_attempts": 2, "backoff": "none"})),
            None,
            &[failing.clone(), failing.clone()],
        ),
        r#"
            call a {"n":1}
            retry a server_error peer_failed
            call a {"n":1}
            step a failed x2 0 ms
            failed peer_failed/server_error at a: no luck
        "#,
    );
    // Without `Retry-After` a rate limit follows the delay of the policy.
    let limited = [
        ("a", Fails(RateLimited, None)),
        ("a", Fails(RateLimited, Some(5))),
    ];
    let trace = trace_of(
        retrying(json!({"max_attempts": 2, "initial_delay_ms": 300})),
        None,
        &limited,
    );
    assert!(trace.contains("sleep 300") && trace.contains("x2"), "{trace}");
}

#[test]
fn retry_on_lists_the_classes() {
    let tried = |retry_on: Value, class| {
        let answers = [("a", Fails(class, None)), ("a", Result(json!(1)))];
        let mut runtime = FakeRuntime::new(&answers);
        runtime.random = 0.9;
        let policy = json!({"retry_on": retry_on, "backoff": "none"});
        let action = action_of(json!({"retry_policy": policy}));
        matches!(after(&action, &situation(class)), RetryDecision::Retry { .. })
    };
    assert!(tried(json!(["not_found"]), NotFound));
    assert!(!tried(json!(["not_found"]), Network));
    assert!(!tried(json!([]), Network));
    for class in [
        Network,
        ServerError,
        RateLimited,
        BadRequest,
        Auth,
        NotFound,
        Validation,
        Unknown,
        BreakerOpen,
    ] {
        assert!(tried(json!(["*"]), class), "{class:?}");
    }
    assert!(!tried(json!(["*"]), Permanent));
    assert!(!tried(json!(["*"]), Timeout), "a timeout is on_timeout's");
}

fn action_of(execution: Value) -> curfew::definition::action::Action {
    let task = json!({"id": "t", "steps": [calling("a", execution)]});
    let task: std::rc::Rc<Task> = TaskCache::default()
        .task(&task.to_string())
        .expect("the task can be read");
    match &task.steps[0].action {
        StepAction::Inline(action) => (**action).clone(),
        StepAction::Reference { .. } => panic!("it is written inline"),
    }
}

fn situation(class: FailureClass) -> Situation {
    Situation {
        class,
        retry_after_ms: None,
        retries: 0,
        now: 1_000,
        ends: Ends::default(),
        random: 0.0,
    }
}

#[test]
fn a_retry_is_made_if_it_begins_before_every_end() {
    let action = action_of(json!({}));
    let decision = |ends: Ends| {
        let at = Situation {
            ends,
            ..situation(Network)
        };
        after(&action, &at)
    };
    let not_retried = |end| RetryDecision::NoTime(NotRetried { delay_ms: 1_000, end });
    let retry = RetryDecision::Retry { delay_ms: 1_000 };
    let ends = |total_at, attempt_at, run_at| Ends {
        total_at,
        attempt_at,
        run_at,
    };
    assert_eq!(decision(ends(Some(2_001), Some(2_001), Some(2_001))), retry);
    for (ends, end) in [
        (ends(Some(2_000), None, None), End::Total),
        (ends(None, Some(2_000), None), End::Attempt),
        (ends(None, None, Some(2_000)), End::Run),
        // A longer run would not help.
        (ends(None, Some(1_500), Some(1_200)), End::Attempt),
        (ends(Some(2_000), Some(2_001), Some(2_000)), End::Total),
    ] {
        assert_eq!(decision(ends), not_retried(end), "{ends:?}");
    }
}

#[test]
fn a_retry_that_would_begin_too_late_is_not_made_and_the_error_says_what_to_write() {
    check(
        &trace_of(
            json!({"steps": [call("a")]}),
            Some(START + 900),
            &[("a", Fails(Network, None))],
        ),
        r#"
            call a {"n":1} by 1900
            step a failed x1 0 ms
            failed peer_failed/network at a: no luck; not tried again: the next call would begin in 1s, after the attempt's deadline; write a longer "timeout" on the node or the task
        "#,
    );
    let total = retrying(json!({"total_timeout": "900ms", "jitter": false}));
    let message = |run: &TaskRun| {
        let error = run.result.error.as_ref().expect("it failed");
        error.message.clone()
    };
    let run = order(total, json!({}), &[("a", Fails(Network, None))]);
    assert_eq!(
        message(&run),
        "no luck; not tried again: the next call would begin in 1s, after its \"total_timeout\"; \
         write a longer one in the action's \"retry_policy\""
    );
    let more = json!({"run_ends_at": START + 30_000});
    let run = order(
        json!({"steps": [call("a")]}),
        more,
        &[("a", Fails(RateLimited, Some(60)))],
    );
    assert_eq!(
        message(&run),
        "no luck; not tried again: the next call would begin in 1m0s, after the end of the run; \
         write a longer \"timeout\" on the workflow, or extend the run"
    );
    assert_eq!(run.result.gave_up_before, Some(START + 30_000));
}

/// A call that begins before the deadline is made, however little is left, and cut there.
#[test]
fn a_retry_gets_what_is_left_of_its_limit() {
    let execution = json!({"timeout": "5s"});
    check(
        &trace_of(
            json!({"steps": [calling("a", execution)]}),
            Some(START + 4_000),
            &[("a", Fails(ServerError, None)), ("a", Result(json!("done")))],
        ),
        r#"
            call a {"n":1} by 5000
            retry a server_error peer_failed
            sleep 1000
            call a {"n":1} by 5000
            step a completed x2 1000 ms
            completed "done"
        "#,
    );
}

#[test]
fn the_total_bounds_the_beginning_of_every_call() {
    let policy =
        json!({"total_timeout_ms": 3_000, "initial_delay_ms": 600, "jitter": false, "max_attempts": 9});
    let failing = ("a", Fails(ServerError, None));
    check(
        &trace_of(
            json!({"steps": [calling("a", json!({"timeout": "2s", "retry_policy": policy}))]}),
            None,
            &[failing.clone(), failing.clone(), failing],
        ),
        r#"
            call a {"n":1} by 3000
            retry a server_error peer_failed
            sleep 600
            call a {"n":1} by 3600
            retry a server_error peer_failed
            sleep 1200
            call a {"n":1} by 4000
            step a failed x3 1800 ms
            failed peer_failed/server_error at a: no luck; not tried again: the next call would begin in 2.4s, after its "total_timeout"; write a longer one in the action's "retry_policy"
        "#,
    );
}

#[test]
fn the_timeout_limits_one_call_and_the_total_all() {
    let execution = json!({"timeout_ms": 500, "on_timeout": "retry",
        "retry_policy": {"max_attempts": 9, "backoff": "none", "total_timeout": "1200ms"}});
    let slow = ("a", Endless("half".into()));
    let task = json!({"steps": [calling("a", execution)]});
    check(
        &trace_of(task, Some(START + 60_000), &[slow.clone(), slow.clone(), slow]),
        r#"
            call a {"n":1} by 1500
            retry a timeout tool_timeout
            call a {"n":1} by 2000
            retry a timeout tool_timeout
            call a {"n":1} by 2200
            step a timed_out x3 1200 ms
            timed_out tool_timeout/timeout at a: step a timed out: context deadline exceeded; not tried again: the next call would begin after its "total_timeout"; write a longer one in the action's "retry_policy"
        "#,
    );
    // A call without a limit has the rest of the total.
    let task = retrying(json!({"total_timeout_ms": 1_500, "jitter": false}));
    check(
        &trace_of(
            task,
            Some(START + 60_000),
            &[("a", Fails(Network, None)), ("a", After(900, json!(1)))],
        ),
        r#"
            call a {"n":1} by 2500
            retry a network peer_failed
            sleep 1000
            call a {"n":1} by 2500
            step a timed_out x2 1500 ms
            timed_out tool_timeout/timeout at a: step a timed out: context deadline exceeded
        "#,
    );
}

#[test]
fn a_timeout_is_retried_only_with_on_timeout() {
    let slow = ("a", After(900, json!("late")));
    let task = |execution| json!({"steps": [calling("a", execution), set("b", json!({"x": 1}))]});
    check(
        &trace_of(
            task(json!({"timeout_ms": 500})),
            Some(START + 60_000),
            std::slice::from_ref(&slow),
        ),
        r#"
            call a {"n":1} by 1500
            step a timed_out x1 500 ms
            timed_out tool_timeout/timeout at a: step a timed out: context deadline exceeded
        "#,
    );
    check(
        &trace_of(
            task(json!({"timeout_ms": 500, "on_timeout": "retry"})),
            Some(START + 60_000),
            &[slow.clone(), ("a", After(100, json!("in time")))],
        ),
        r#"
            call a {"n":1} by 1500
            retry a timeout tool_timeout
            sleep 1000
            call a {"n":1} by 3000
            step a completed x2 1600 ms
            step b completed x1 0 ms
            completed {"x":1}
        "#,
    );
    // There is no time before the task's deadline: the error is that of the task.
    let alone = json!({"steps": [calling("a", json!({"timeout_ms": 500, "on_timeout": "retry"}))]});
    check(
        &trace_of(alone, Some(START + 500), &[slow]),
        r#"
            call a {"n":1} by 1500
            step a timed_out x1 500 ms
            timed_out tool_timeout/timeout at a: step a timed out: context deadline exceeded
        "#,
    );
}

#[test]
fn the_business_retry_comes_after_and_starts_over() {
    let steps = json!([
        call("first"),
        with(
            calling(
                "a",
                json!({"retry_policy": {"max_attempts": 2, "backoff": "none"}})
            ),
            json!({"on_failure": "retry"})
        ),
    ]);
    let failing = ("a", Fails(Network, None));
    let answers = [
        ("first", Result(json!(1))),
        failing.clone(),
        failing,
        ("first", Result(json!(2))),
        ("a", Result(json!("done"))),
    ];
    check(
        &trace_of(
            json!({"steps": steps, "retry": {"max_attempts": 2}}),
            None,
            &answers,
        ),
        r#"
            call first {"n":1}
            call a {"n":1}
            retry a network peer_failed
            call a {"n":1}
            call first {"n":1}
            call a {"n":1}
            step first completed x1 0 ms
            step a completed x1 0 ms
            completed "done"
        "#,
    );
}

#[test]
fn a_step_that_continues_notes_one_error_after_its_retries() {
    let failing = with(
        calling(
            "a",
            json!({"retry_policy": {"max_attempts": 2, "backoff": "none"}}),
        ),
        json!({"on_failure": "continue"}),
    );
    let steps = json!([failing, set("b", json!({"errors": "${size(state._errors)}"}))]);
    let answers = [("a", Fails(Network, None)), ("a", Fails(ServerError, None))];
    let run = order(json!({"steps": steps}), json!({}), &answers);
    assert_eq!(run.result.output, Some(json!({"errors": 1})));
    let attempts: Vec<_> = run
        .result
        .steps
        .iter()
        .map(|step| (step.attempts, step.retries.len()))
        .collect();
    assert_eq!(attempts, [(2, 1), (1, 0)], "retries belong to their step");
}

#[test]
fn an_invalid_result_is_not_retried() {
    let mut step = call("a");
    step["action"]["output_schema"] = json!({"type": "string"});
    let trace = trace_of(json!({"steps": [step]}), None, &[("a", Result(json!(5)))]);
    assert!(trace.contains("step a failed x1 0 ms"), "{trace}");
}

#[test]
fn retry_after_is_seconds_or_a_date() {
    let now = 784_111_777_000; // Sun, 06 Nov 1994 08:49:37 GMT
    for (header, millis) in [
        ("0", Some(0)),
        ("120", Some(120_000)),
        (" 5 ", Some(5_000)),
        ("99999999999999999999999", Some(u64::MAX)),
        ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60_000)),
        ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
        ("Sunday, 06-Nov-94 08:50:37 GMT", Some(60_000)),
        ("Sun Nov  6 08:50:37 1994", Some(60_000)),
        ("", None),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("GMT", None),
        ("Sun, 06 Nov 1994 08:49:37 CET", None),
        ("Sun, 06 Nov 94 08:49:37 GMT", None),
        ("Sun, 06 nov 1994 08:49:37 GMT", None),
        ("Sun, 6Ö Nov 1994 08:49:37 GMT", None),
        ("Sun, 99 Nov 1994 08:49:37 GMT", None),
        ("Sun, 06 Nov 1994 08:49 GMT", None),
        ("Sun, 06 Nov 1994 08:49:37.5 GMT", None),
        ("Sunday, 06-Nov-1994 08:49:37 GMT", None),
    ] {
        assert_eq!(retry_after_ms(header, now), millis, "{header}");
    }
}
