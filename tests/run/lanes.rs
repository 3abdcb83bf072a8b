//! Lanes: which one an attempt takes, inline execution, and the call budget.

use curfew::base::limits::QUEUE_MAX_MS;
use curfew::run::{AttemptOrder, BatchKind, Command, Lane, Settings, TokenStatus, invocations};
use serde_json::{Value, json};

use super::driver::{Driver, SETTINGS, START};

const WITH_QUEUE: Settings = Settings {
    queue: true,
    ..SETTINGS
};

fn with(mut object: Value, more: Value) -> Value {
    for (key, value) in more.as_object().into_iter().flatten() {
        object[key] = value.clone();
    }
    object
}

fn calling() -> Value {
    json!({"kind": "service_call", "implementation": {"binding": "PEER"}})
}

fn pure() -> Value {
    json!({"kind": "update_context", "implementation": {"set": {"x": "${input.x}"}}})
}

/// One node, one task of one step.
fn one_task(action: Value, node: Value, task: Value) -> Value {
    json!({
        "nodes": [with(json!({"id": "a", "task_id": "t"}), node)],
        "tasks": [with(json!({"id": "t", "steps": [{"ref": "s", "action": action}]}), task)],
    })
}

fn lane(settings: Settings, mut document: Value) -> Lane {
    if document.get("timeout_ms").is_none() {
        document["timeout_ms"] = json!(QUEUE_MAX_MS);
    }
    let run = Driver::start_with(settings, document, json!({"x": 1}));
    run.row("t1").lane.expect("its attempt has a lane")
}

/// A sequence of pure nodes without results in the context.
fn chain(nodes: usize) -> Value {
    let ids: Vec<String> = (0..nodes).map(|index| format!("n{index}")).collect();
    let routes = ids.windows(2);
    json!({
        "nodes": ids.iter().map(|id| json!({"id": id, "task_id": "t", "output_mapping": {}})).collect::<Vec<_>>(),
        "transitions": routes.map(|pair| json!({"from_node_id": pair[0], "to_node_id": pair[1]})).collect::<Vec<_>>(),
        "tasks": [{"id": "t", "steps": [{"ref": "s", "action": pure()}]}],
    })
}

/// A node that repeats while `condition` holds.
fn spin(condition: &str, more: Value) -> Value {
    let document = json!({
        "nodes": [{"id": "a", "task_id": "t", "input_mapping": {"n": "${has(state.n) ? state.n : 0}"},
            "output_mapping": {"state.n": "${result.n}"}}],
        "transitions": [{"from_node_id": "a", "to_node_id": "a", "condition": condition}],
        "on_no_match": "end",
        "tasks": [{"id": "t", "steps": [{"ref": "s", "action":
            {"kind": "update_context", "implementation": {"set": {"n": "${input.n + 1}"}}}}]}],
    });
    with(document, more)
}

/// `count` branches of one task each.
fn fan(count: usize, action: Value, task: Value, join: Value) -> Value {
    let join = with(
        json!({"sibling_group": "each", "merge": {"target": "state.all"}}),
        join,
    );
    json!({
        "nodes": [{"id": "start"}, {"id": "work", "task_id": "t"}, {"id": "done"}],
        "transitions": [
            {"id": "each", "from_node_id": "start", "to_node_id": "work", "spawn_count": count},
            {"from_node_id": "work", "to_node_id": "done", "synchronization": join},
        ],
        "tasks": [with(json!({"id": "t", "steps": [{"ref": "s", "action": action}]}), task)],
    })
}

fn orders(run: &Driver) -> Vec<AttemptOrder> {
    let orders = run
        .decision
        .commands()
        .iter()
        .filter_map(|command| match command {
            Command::DispatchTask(order) => Some(order.clone()),
            _others => None,
        });
    orders.collect()
}

/// The numbers of the tokens whose attempts began.
fn begun(run: &Driver) -> Vec<u64> {
    orders(run).iter().map(|order| order.token.0).collect()
}

#[test]
fn the_lane_depends_on_the_setting_the_task_and_its_limit() {
    let (auto, inline) = (json!({"dispatch": "auto"}), json!({"dispatch": "inline"}));
    let (direct, queue) = (json!({"dispatch": "direct"}), json!({"dispatch": "queue"}));
    let (none, brief, long) = (json!({}), json!({"timeout": "1m"}), json!({"timeout_ms": 60_001}));
    for (action, word, limit, without, with_queue) in [
        (pure(), &none, &none, Lane::Inline, Lane::Inline),
        (pure(), &auto, &long, Lane::Inline, Lane::Inline),
        (pure(), &inline, &none, Lane::Inline, Lane::Inline),
        (pure(), &direct, &none, Lane::Direct, Lane::Direct),
        (pure(), &queue, &none, Lane::Direct, Lane::Queue),
        (calling(), &none, &none, Lane::Direct, Lane::Queue),
        (calling(), &none, &brief, Lane::Direct, Lane::Direct),
        (calling(), &none, &long, Lane::Direct, Lane::Queue),
        (calling(), &auto, &long, Lane::Direct, Lane::Queue),
        (calling(), &direct, &long, Lane::Direct, Lane::Direct),
        (calling(), &queue, &brief, Lane::Direct, Lane::Queue),
    ] {
        for (node, task) in [(word, &none), (&none, word)] {
            let document = one_task(action.clone(), with(node.clone(), limit.clone()), task.clone());
            let what = format!("{document}");
            assert_eq!(
                lane(SETTINGS, document.clone()),
                without,
                "without a queue: {what}"
            );
            assert_eq!(lane(WITH_QUEUE, document), with_queue, "with a queue: {what}");
        }
    }
    // The node's setting takes precedence over the task's, also an explicit null.
    for (node, task, expected) in [
        (&direct, &queue, Lane::Direct),
        (&queue, &direct, Lane::Queue),
        (&auto, &direct, Lane::Queue),
    ] {
        let document = one_task(calling(), with(node.clone(), long.clone()), task.clone());
        assert_eq!(lane(WITH_QUEUE, document), expected, "{node} over {task}");
    }
}

#[test]
fn the_runs_remaining_time_bounds_an_attempt() {
    for (timeout_ms, expected) in [(60_000, Lane::Direct), (60_001, Lane::Queue)] {
        let document = with(
            one_task(calling(), json!({}), json!({})),
            json!({"timeout_ms": timeout_ms}),
        );
        assert_eq!(lane(WITH_QUEUE, document), expected, "{timeout_ms}");
    }
}

/// The platform ends a consumer after 15 minutes.
#[test]
fn a_task_that_may_outlive_a_queue_consumer_is_not_queued() {
    let (fits, too_long) = (json!(QUEUE_MAX_MS), json!(QUEUE_MAX_MS + 1));
    for (of_run, of_node, expected) in [
        (&fits, &Value::Null, Lane::Queue),
        (&too_long, &Value::Null, Lane::Direct),
        (&too_long, &fits, Lane::Queue),
        (&too_long, &too_long, Lane::Direct),
        (&fits, &too_long, Lane::Queue),
        (&Value::Null, &Value::Null, Lane::Direct),
        (&Value::Null, &fits, Lane::Queue),
    ] {
        for word in ["auto", "queue"] {
            let node = json!({"timeout_ms": of_node, "dispatch": word});
            let document = with(
                one_task(calling(), node, json!({})),
                json!({"timeout_ms": of_run}),
            );
            assert_eq!(lane(WITH_QUEUE, document.clone()), expected, "{document}");
        }
    }
}

#[test]
fn a_task_with_retry_delays_is_not_pure() {
    for (retry, expected) in [
        (json!({"backoff": "linear"}), Lane::Direct),
        (
            json!({"backoff": "linear", "initial_delay_ms": 1, "max_delay_ms": 1}),
            Lane::Direct,
        ),
        (json!({"backoff": "none"}), Lane::Inline),
    ] {
        let document = one_task(pure(), json!({}), json!({"retry": retry}));
        assert_eq!(lane(SETTINGS, document), expected, "{retry}");
    }
}

#[test]
fn a_chain_of_pure_tasks_is_one_commit_with_one_row_per_token() {
    let run = Driver::start(chain(50));
    assert_eq!(run.status_line(), "completed {}");
    let tokens = run.lines_of("token");
    assert_eq!(tokens.len(), 50);
    assert!(
        tokens.iter().all(|line| line.contains(" completed@1 {\"x\":1}")),
        "{tokens:?}"
    );
    assert!(run.lines_of("context").is_empty(), "they keep nothing");
    assert!(run.lines_of("dispatch").is_empty());
    assert_eq!(run.row("t50").lane, Some(Lane::Inline));
    let mut kept = chain(3);
    kept["nodes"][1] = json!({"id": "n1", "task_id": "t"});
    let run = Driver::start(kept);
    assert!(run.lines_of("context").is_empty(), "it stands on its token");
    assert_eq!(
        run.lines_of("token")[1],
        "token t2 n1 completed@1 {\"x\":1} keeps state.n1"
    );
    assert_eq!(run.lines_of("token").len(), 3);
}

#[test]
fn inline_tasks_beyond_two_hundred_wait_for_the_alarm() {
    let mut run = Driver::start(chain(450));
    run.assert_status("running n200:pending");
    assert_eq!(run.lines_of("token").len(), 201);
    assert_eq!(run.lines_of("alarm"), [format!("alarm {START}")]);
    // A request triggers it as well as the alarm.
    run.at(START + 1).wake("");
    run.assert_status("running n400:pending");
    run.reload()
        .at(START + 2)
        .load()
        .assert_status("running n400:pending");
    run.wake("").assert_status("completed {}");
}

#[test]
fn a_failed_inline_task_fails_its_run_or_takes_its_failure_transition() {
    let assert = json!({"kind": "assert", "implementation": {"condition": "input.x > 1", "message": "x is ${input.x}"}});
    let mut document = one_task(assert, json!({}), json!({}));
    let run = Driver::start(document.clone());
    assert_eq!(run.status_line(), "failed assertion_failed/assertion: x is 1");
    assert_eq!(run.row("t1").status, TokenStatus::Failed);
    document["nodes"]
        .as_array_mut()
        .expect("nodes")
        .push(json!({"id": "b", "output_mapping": {"output.why": "${error.message}"}}));
    document["transitions"] = json!([{"from_node_id": "a", "to_node_id": "b", "on": "failure"}]);
    let run = Driver::start(document);
    assert_eq!(run.status_line(), "completed {\"why\":\"x is 1\"}");
}

#[test]
fn schemas_apply_to_inline_tasks() {
    let needs = json!({"required": ["y"]});
    for (field, place) in [("input_schema", "input"), ("output_schema", "output")] {
        let run = Driver::start(one_task(pure(), json!({}), json!({field: needs})));
        let status_line = run.status_line();
        assert!(
            status_line.starts_with("failed ") && status_line.contains("/validation: "),
            "{status_line}"
        );
        assert!(status_line.contains(place), "{status_line}");
    }
}

#[test]
fn a_failing_input_mapping_fails_before_the_task_runs() {
    let run = Driver::start(one_task(
        pure(),
        json!({"input_mapping": "${state.missing}"}),
        json!({}),
    ));
    assert!(
        run.status_line()
            .starts_with("failed expression_failed/validation"),
        "{}",
        run.status_line()
    );
    assert_eq!(run.row("t1").epoch, 0);
}

#[test]
fn a_fan_out_of_inline_tasks_joins_in_the_same_commit() {
    let run = Driver::start(fan(3, pure(), json!({}), json!({})));
    assert_eq!(run.status_line(), "completed {}");
    assert_eq!(run.state()["all"], json!([{"x": 1}, {"x": 1}, {"x": 1}]));
    assert_eq!(run.lines_of("token").len(), 5);
}

#[test]
fn an_inline_task_retries_within_its_attempt_if_the_retry_has_no_delay() {
    let assert = json!({"kind": "assert", "implementation": {"condition": "false", "message": "never"}});
    let mut document = one_task(
        assert,
        json!({}),
        json!({"retry": {"max_attempts": 3, "backoff": "none"}}),
    );
    document["tasks"][0]["steps"][0]["on_failure"] = json!("retry");
    let run = Driver::start(document);
    assert_eq!(run.status_line(), "failed assertion_failed/assertion: never");
    assert_eq!(run.row("t1").epoch, 1, "to the run it is one attempt");
}

#[test]
fn a_loop_of_inline_tasks_ends_with_its_condition_or_limit() {
    let mut run = Driver::start(spin("state.n < 250", json!({})));
    run.assert_status("running a:pending");
    run.wake("").assert_status("completed {}");
    assert_eq!(run.state()["n"], json!(250));
    let mut run = Driver::start(spin("true", json!({"limits": {"loop_iterations": 300}})));
    run.wake("");
    let status_line = run.status_line();
    assert!(status_line.starts_with("failed limit_exceeded/"), "{status_line}");
    assert!(status_line.contains("loop_iterations"), "{status_line}");
}

#[test]
fn a_loop_of_inline_tasks_is_caught_by_the_workflow_deadline() {
    let mut run = Driver::start(spin("true", json!({"timeout_ms": 5_000})));
    for at in [2_000, 3_000, 4_000] {
        run.at(at).wake("").assert_status("running a:pending");
    }
    run.at(6_000).wake("");
    assert!(
        run.status_line()
            .starts_with("timed_out workflow_timeout/timeout"),
        "{}",
        run.status_line()
    );
    assert_eq!(run.state()["n"], json!(800), "what was done is kept");
}

#[test]
fn a_pause_between_two_decisions_stops_an_inline_chain() {
    let mut run = Driver::start(chain(300));
    run.at(START + 5).pause().assert_status("paused n200:pending");
    run.at(START + 10).wake("").assert_status("paused n200:pending");
    run.at(START + 20).resume();
    run.at(START + 30).wake("").assert_status("completed {}");
}

#[test]
fn without_calls_left_every_attempt_waits_and_no_row_is_rewritten() {
    let mut run = Driver::start_in(0, fan(3, calling(), json!({}), json!({})));
    run.assert_status("running 3xwork:pending");
    assert_eq!(run.lines_of("alarm"), [format!("alarm {START}")]);
    assert!(begun(&run).is_empty());
    // A request wakes an object whose call budget is spent.
    run.at(START + 1).wake("").assert_status("running 3xwork:pending");
    assert!(run.lines_of("token").is_empty(), "{:?}", run.lines_of("token"));
    run.room = 24;
    run.at(START + 2)
        .wake("")
        .assert_status("running 3xwork:executing");
    assert_eq!(begun(&run), [2, 3, 4]);
}

#[test]
fn calls_are_assigned_in_order_and_no_attempt_is_lost() {
    for (room, action, task, join, sizes) in [
        // Up to six calling tasks share an invocation.
        (1, calling(), json!({}), json!({}), vec![6, 6, 6, 2]),
        (2, calling(), json!({}), json!({}), vec![12, 8]),
        (24, calling(), json!({}), json!({}), vec![20]),
        // Branches that a join may cancel get an invocation each; pure tasks share one.
        (
            3,
            calling(),
            json!({}),
            json!({"strategy": "any", "on_early_complete": "cancel"}),
            vec![3, 3, 3, 3, 3, 3, 2],
        ),
        (1, pure(), json!({"dispatch": "direct"}), json!({}), vec![20]),
    ] {
        let mut run = Driver::start_in(room, fan(20, action, task, join));
        let mut expected = 2..;
        let mut taken = 0;
        for (wake, size) in sizes.iter().enumerate() {
            let wanted: Vec<u64> = expected.by_ref().take(*size).collect();
            assert_eq!(begun(&run), wanted, "room {room}, wake {wake}");
            assert!(invocations(orders(&run)).len() <= room as usize);
            taken += size;
            let waiting = 20 - taken;
            let pending = run
                .run
                .live_tokens()
                .filter(|token| token.status == TokenStatus::Pending);
            assert_eq!(pending.count(), waiting);
            if waiting > 0 {
                assert!(run.run.alarm_at() <= Some(run.now), "the alarm stands now");
                // Earlier calls are still open.
                let open: Vec<String> = (2..2 + taken as u64).map(|id| format!("t{id}@1")).collect();
                let next = run.now + 1;
                run.at(next).wake(&open.join(" "));
            }
        }
        assert_eq!(taken, 20);
    }
}

#[test]
fn a_chain_without_calls_left_continues_in_the_next_wake() {
    let mut document = chain(3);
    document["tasks"][0]["steps"][0]["action"] = calling();
    let mut run = Driver::start_in(1, document);
    run.room = 0;
    run.at(1_100).succeed("t1@1", json!(1)).check(
        "
        token t1 n0 completed@1 1
        token t2 n1 pending@0 watch 1100
        alarm 1100
    ",
    );
    run.room = 24;
    run.at(1_101).wake("").check(
        r#"
        token t2 n1 executing@1 watch 31101
        alarm 31101
        dispatch t2@1 {"x":1}
    "#,
    );
}

#[test]
fn an_attempt_that_fails_before_its_call_releases_the_call() {
    let mut document = fan(
        2,
        calling(),
        json!({}),
        json!({"on_branch_failure": "proceed_with_available", "on_early_complete": "cancel"}),
    );
    document["nodes"][1]["input_mapping"] = json!({"n": "${_branch.index == 0 ? state.missing : 1}"});
    let run = Driver::start_in(1, document);
    assert_eq!(begun(&run), [3]);
}

#[test]
fn a_reloaded_object_replaces_lost_attempts_within_its_call_budget() {
    let mut run = Driver::start(fan(10, calling(), json!({}), json!({})));
    run.room = 1;
    run.reload().at(2_000).load();
    assert_eq!(begun(&run), [2, 3, 4, 5, 6, 7]);
    run.wake("t2@2 t3@2 t4@2 t5@2 t6@2 t7@2");
    assert_eq!(begun(&run), [8, 9, 10, 11]);
    run.assert_status("running 10xwork:executing");
}

#[test]
fn an_order_carries_the_number_of_calls_of_its_task() {
    let set = json!({"kind": "update_context", "implementation": {"set": {"a": 1}}});
    let call = json!({"kind": "service_call", "implementation": {"binding": "PEER"}});
    for (actions, calls) in [(vec![&set], 0), (vec![&call, &set, &call], 2)] {
        let steps: Vec<Value> = actions.iter().map(|action| json!({"action": action})).collect();
        let task = json!({"id": "t", "dispatch": "direct", "steps": steps});
        let run = Driver::start(json!({"id": "w", "nodes": [{"id": "n", "task_id": "t"}], "tasks": [task]}));
        assert_eq!(orders(&run)[0].calls, calls, "{steps:?}");
    }
}

#[test]
fn a_short_last_task_uses_a_plain_request() {
    let call = json!({"id": "work", "kind": "service_call", "implementation": {"binding": "PEER"}});
    let limited = |id: &str, timeout: &str| json!({"id": id, "action_id": "work", "timeout": timeout});
    let on = json!([{"from_node_id": "a", "to_node_id": "b"}]);
    let out = json!([{"from_node_id": "s", "to_node_id": "a", "spawn_count": 2}]);
    for (what, nodes, transitions, alone) in [
        ("short and last", json!([limited("a", "1m")]), json!([]), true),
        ("it may take long", json!([limited("a", "61s")]), json!([]), false),
        (
            "another follows",
            json!([limited("a", "1m"), limited("b", "1m")]),
            on,
            false,
        ),
        ("a branch", json!([{"id": "s"}, limited("a", "1m")]), out, false),
    ] {
        let document = json!({"id": "w", "nodes": nodes, "transitions": transitions, "actions": [call]});
        let run = Driver::start(document);
        assert!(
            orders(&run).iter().all(|order| order.is_short_and_last == alone),
            "{what}"
        );
    }
}

#[test]
fn orders_share_invocations_by_batch_kind_and_keep_their_order() {
    let sample = orders(&Driver::start(one_task(calling(), json!({}), json!({})))).remove(0);
    let mut mixed = Vec::new();
    for (batch, count) in [
        (BatchKind::Calling, 13),
        (BatchKind::Alone, 2),
        (BatchKind::Pure, 51),
    ] {
        for _ in 0..count {
            mixed.push(AttemptOrder {
                batch,
                epoch: mixed.len() as u64,
                ..sample.clone()
            });
        }
    }
    let calls = invocations(mixed);
    let sizes: Vec<usize> = calls.iter().map(Vec::len).collect();
    assert_eq!(sizes, [50, 1, 6, 6, 1, 1, 1]);
    for call in &calls {
        assert!(call.iter().all(|order| order.batch == call[0].batch));
        assert!(call.is_sorted_by_key(|order| order.epoch));
    }
    assert!(invocations(Vec::new()).is_empty());
}
