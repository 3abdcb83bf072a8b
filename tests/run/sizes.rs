//! Size limits: no input leads to a row over the limit (the store of these scenarios refuses one). A value that is too large
//! fails its token or is refused, and the error names the value, its size and the limit.

use curfew::protocol::task::{Checkpoint, Emitted};
use curfew::run::{CallbackResult, Command, Event, Message, Rejection, RunStatus};
use serde_json::{Value, json};

use super::driver::{Driver, SETTINGS, failed, succeeded, timed_out};

/// A string of this many bytes as JSON.
fn text(bytes: usize) -> Value {
    json!("x".repeat(bytes - 2))
}

const RESULT: usize = 512 << 10;

/// The code and the message of the error of the run's only failed token.
fn error(run: &Driver) -> String {
    let rows = run.store.tokens.values();
    let failed: Vec<&String> = rows
        .filter(|(status, _)| status == "failed")
        .map(|(_, row)| row)
        .collect();
    assert_eq!(failed.len(), 1, "{:.2000?}", run.store.tokens);
    let row: Value = serde_json::from_str(failed[0]).expect("a row is JSON");
    format!(
        "{}: {}",
        row["error"]["code"].as_str().unwrap_or_default(),
        row["error"]["message"].as_str().unwrap_or_default()
    )
}

fn one_node() -> Value {
    json!({"nodes": [{"id": "a", "action_id": "work"}]})
}

fn listening() -> Value {
    json!({"nodes": [{"id": "a", "action_id": "work"}, {"id": "w", "wait": {"signal": "go"}}],
        "transitions": [{"from_node_id": "a", "to_node_id": "w"}]})
}

#[test]
fn a_signal_too_large_for_a_token_is_refused_without_a_change() {
    let too_large = "rejected too_large: the signal is 524289 bytes; the limit is 524288";
    // No token waits for it yet.
    let mut run = Driver::start(listening());
    run.signal("go", text(RESULT + 1)).check(too_large);
    // A token waits for it.
    run.succeed("t1@1", json!(1));
    run.signal("go", text(RESULT + 1)).check(too_large);
    run.signal("go", text(RESULT));
    assert_eq!(run.run.header.status, RunStatus::Completed);
}

#[test]
fn buffered_signals_are_bounded_by_their_bytes() {
    let mut run = Driver::start(listening());
    run.signal("go", text(RESULT));
    assert_eq!(run.answer, Ok(()));
    run.signal("go", text(RESULT)).check("rejected too_many_signals");
    run.signal("go", text(RESULT - 2_000));
    assert_eq!(run.answer, Ok(()));
    for _ in 0..9 {
        run.signal("go", text(100_000)).check("rejected too_many_signals");
    }
    run.reload().succeed("t1@1", json!(1));
    assert_eq!(
        run.run.header.status,
        RunStatus::Completed,
        "the first was delivered"
    );
}

#[test]
fn a_callback_too_large_for_a_token_is_refused() {
    let action = json!({"id": "hand-out", "kind": "http_request", "execution": {"mode": "async"},
        "implementation": {"url": "https://peer.example"}});
    let mut run =
        Driver::start(json!({"nodes": [{"id": "a", "action_id": "hand-out"}], "actions": [action]}));
    let capability = run.order().capability.clone().expect("an async action has one");
    let bring = |run: &mut Driver, output: Value| {
        run.feed(Event::CallbackReceived {
            capability: Box::new(curfew::run::Capability::parse(&capability).expect("ours")),
            result: Box::new(CallbackResult::read(output)),
        });
    };
    bring(&mut run, text(RESULT + 1));
    run.check("rejected too_large: the result is 524289 bytes; the limit is 524288");
    // The code and the message of a failure are cut to their limits.
    let long = "m".repeat(100_000);
    bring(&mut run, json!({"error": {"code": long, "message": long}}));
    let failure = run.run.header.error.as_ref().expect("the run failed");
    assert_eq!((failure.code.len(), failure.message.len()), (128, 4_096));
}

#[test]
fn a_decision_that_is_too_large_is_refused_and_the_gate_stays_open() {
    let mut run = Driver::start(json!({"nodes": [{"id": "ask", "gate": {}}]}));
    run.decide_with("g1", "approve", text(RESULT));
    assert!(
        matches!(run.answer, Err(Rejection::TooLarge(_))),
        "{:?}",
        run.answer
    );
    assert!(run.decision.is_empty());
    run.decide_with("g1", "approve", text(RESULT - 1_000));
    assert_eq!(run.run.header.status, RunStatus::Completed);
}

#[test]
fn a_gate_with_all_it_may_hold_is_one_row() {
    let schema = json!({"type": "string", "description": "d".repeat(400_000)});
    let gate = json!({"prompt": "${input.text}", "input_schema": schema});
    let document = json!({"nodes": [{"id": "ask", "gate": gate}]});
    let mut run = Driver::start_with(SETTINGS, document, json!({"text": "p".repeat((256 << 10) - 2)}));
    run.decide_with("g1", "approve", text(500_000));
    let Err(Rejection::TooLarge(too_large)) = &run.answer else {
        panic!("{:?}", run.answer);
    };
    assert_eq!(too_large.what, "the gate with its decision");
    run.decide_with("g1", "approve", text(300_000));
    assert_eq!(run.run.header.status, RunStatus::Completed);
}

#[test]
fn a_prompt_over_its_limit_fails_the_token() {
    let document = json!({"nodes": [{"id": "ask", "gate": {"prompt": "${input.text}"}}]});
    let run = Driver::start_with(SETTINGS, document, json!({"text": "p".repeat(256 << 10)}));
    assert_eq!(
        error(&run),
        "limit_exceeded: the prompt of gate ask is 262146 bytes; the limit is 262144"
    );
}

#[test]
fn the_input_of_a_child_fits_its_message() {
    let document = json!({"nodes": [{"id": "call", "workflow_id": "child"}]});
    let run = Driver::start_with(SETTINGS, document.clone(), text(1 << 20));
    assert_eq!(
        error(&run),
        "limit_exceeded: the input of the workflow that node call calls is 1048576 bytes; the limit is 1044480"
    );
    let run = Driver::start_with(SETTINGS, document, text((1 << 20) - (4 << 10)));
    assert_eq!(
        run.run.header.status,
        RunStatus::Running,
        "exactly the limit is within it"
    );
}

/// A thousand calls with large inputs would not fit into the memory that runs share.
#[test]
fn calls_begin_as_fast_as_their_inputs_are_delivered() {
    let mut document = json!({
        "nodes": [{"id": "begin"}, {"id": "call", "workflow_id": "child", "input_mapping": "${input}"}],
        "transitions": [{"from_node_id": "begin", "to_node_id": "call", "spawn_count": 40}],
    });
    let mut run = Driver::start_with(SETTINGS, document.clone(), text(1_000_000));
    // The ninth one passes the limit of 8 MiB.
    run.assert_status("running 31xcall:pending 9xcall:waiting_for_subworkflow");
    for id in 1..=5 {
        run.delivered(id);
    }
    run.assert_status("running 26xcall:pending 14xcall:waiting_for_subworkflow");
    // During a pause nothing begins, and what waits is known after a restart.
    run.pause().delivered(6).delivered(7);
    run.assert_status("paused 26xcall:pending 14xcall:waiting_for_subworkflow");
    run.resume();
    run.assert_status("running 24xcall:pending 16xcall:waiting_for_subworkflow");
    run.reload();
    // Also the messages of the pause.
    for id in 8..=80 {
        run.delivered(id);
    }
    run.assert_status("running 40xcall:waiting_for_subworkflow");

    // Other work goes on beside them.
    document["nodes"][1] = json!({"id": "call"});
    let run = Driver::start_with(SETTINGS, document, text(1_000_000));
    assert_eq!(run.run.header.status, RunStatus::Completed);
}

#[test]
fn a_child_with_an_output_too_large_for_a_token_completes_and_fails_its_parents_token() {
    let mut parent = Driver::start(json!({"nodes": [{"id": "call", "workflow_id": "middle"}]}));
    let mut child = Driver::start_child(&parent);
    // `middle` wraps the output of its child: `{"inner": ...}`.
    child.child_ended("t1@1", RunStatus::Completed, Some(text(RESULT)));
    assert_eq!(child.run.header.status, RunStatus::Completed);
    let report = child
        .decision
        .commands()
        .iter()
        .find_map(|command| match command {
            Command::DeliverMessage {
                message: Message::NotifyParent { report, .. },
                ..
            } => Some(report.clone()),
            _others => None,
        });
    let report = report.expect("the child reports its end");
    assert_eq!(report.output, None);
    parent.feed(Event::ChildEnded(Box::new(report)));
    assert_eq!(
        error(&parent),
        "limit_exceeded: the output of child run run-1~t1 is 524298 bytes; the limit is 524288"
    );
}

#[test]
fn items_of_a_fan_out_are_bounded_each_and_together() {
    let document = json!({
        "nodes": [{"id": "a"}, {"id": "b", "action_id": "work"}],
        "transitions": [{"id": "each", "from_node_id": "a", "to_node_id": "b",
            "foreach": {"collection": "input.items", "item_var": "item"}}],
    });
    let one = Driver::start_with(
        SETTINGS,
        document.clone(),
        json!({"items": [1, text(RESULT + 1)]}),
    );
    assert_eq!(
        error(&one),
        "limit_exceeded: foreach of transition each: item 1 is 524289 bytes; the limit is 524288"
    );
    let document = json!({
        "nodes": [{"id": "a"}, {"id": "b", "action_id": "work"}],
        "transitions": [{"id": "each", "from_node_id": "a", "to_node_id": "b",
            "foreach": {"collection": "input.items + input.items", "item_var": "item"}}],
    });
    let all = Driver::start_with(SETTINGS, document, json!({"items": [text(RESULT), text(100)]}));
    assert_eq!(
        error(&all),
        "limit_exceeded: foreach of transition each: the list is 1048776 bytes; the limit is 1048576"
    );
}

#[test]
fn a_long_error_message_is_cut_on_a_failure_route() {
    let mut run = Driver::start(json!({
        "nodes": [{"id": "a", "action_id": "work"},
                  {"id": "mend", "action_id": "work", "input_mapping": {"why": "${error.message}"}}],
        "transitions": [{"from_node_id": "a", "to_node_id": "mend", "on": "failure"}],
    }));
    let mut report = failed("t1@1");
    let message = "m".repeat(4 << 20);
    let wire = json!({"code": "assertion_failed", "class": "assertion", "message": message});
    report.error = Some(serde_json::from_value(wire).expect("a failure"));
    run.report(report);
    let why = run.order().input["why"].as_str().expect("a text").to_string();
    assert_eq!(why.len(), 4_096);
    assert!(why.ends_with("m… [cut, 4194304 bytes in all]"));
}

#[test]
fn work_with_a_checkpoint_that_is_too_large_starts_over() {
    let checkpoint = |bytes: usize| Checkpoint {
        next: "two".into(),
        state: text(bytes),
        output: json!({}),
        wrote_output: false,
        last_result: json!(null),
        steps: Vec::new(),
        events: Vec::new(),
        rounds_before: 0,
    };
    for (bytes, is_kept) in [(500_000, true), (600_000, false)] {
        let mut run = Driver::start(one_node());
        let mut report = timed_out("t1@1");
        report.checkpoint = Some(Box::new(checkpoint(bytes)));
        run.report(report);
        let row = &run.store.tokens[&1].1;
        assert_eq!(row.contains("\"checkpoint\""), is_kept, "{bytes}");
    }
}

/// A result, an item and an overwritten value are each within their limit, but together too large for a row.
#[test]
fn a_token_too_large_for_its_row_fails_and_writes_nothing() {
    let mut run = Driver::start_with(
        SETTINGS,
        json!({
            "nodes": [{"id": "a", "action_id": "work", "output_mapping": {"state.big": "${result}"}},
                      {"id": "b", "action_id": "work", "output_mapping": {"state.big": "small", "_branch.output": "${result + \"!\"}"}},
                      {"id": "mend", "action_id": "work", "input_mapping": {"n": "${size(state.big)}", "own": "${_branch.output}"}}],
            "transitions": [
                {"id": "each", "from_node_id": "a", "to_node_id": "b", "foreach": {"collection": "[input.item]", "item_var": "item"}},
                {"from_node_id": "b", "to_node_id": "mend", "on": "failure"}],
        }),
        json!({"item": text(400_000)}),
    );
    run.succeed("t1@1", text(400_000));
    run.succeed("t2@1", text(400_000));
    assert!(
        error(&run).starts_with("limit_exceeded: the token with its result, its branch and what it overwrote in the context, at node b, is "),
        "{}",
        error(&run)
    );
    assert_eq!(
        *run.order().input,
        json!({"n": 399_998, "own": null}),
        "as it was before"
    );
    run.reload();
    assert_eq!(run.state()["big"].as_str().map(str::len), Some(399_998));
}

/// The result of a branch is written once, so it may be as large as any other.
#[test]
fn the_largest_result_fits_into_a_branch() {
    let mut run = Driver::start(json!({
        "nodes": [{"id": "a"}, {"id": "b", "action_id": "work"}, {"id": "c", "action_id": "work"}],
        "transitions": [
            {"id": "fan", "from_node_id": "a", "to_node_id": "b", "spawn_count": 2},
            {"from_node_id": "b", "to_node_id": "c",
             "synchronization": {"strategy": "all", "sibling_group": "fan", "merge": {"target": "state.all", "strategy": "last_wins"}}}],
    }));
    run.succeed("t2@1", text(RESULT));
    run.reload().load();
    run.succeed("t3@2", text(RESULT));
    assert_eq!(run.state()["all"].as_str().map(str::len), Some(RESULT - 2));
}

#[test]
fn results_that_wait_at_a_join_are_bounded_together() {
    let mut run = Driver::start(json!({
        "nodes": [{"id": "a"}, {"id": "b", "action_id": "work"}, {"id": "c", "action_id": "work"}],
        "transitions": [
            {"id": "fan", "from_node_id": "a", "to_node_id": "b", "spawn_count": 40},
            {"from_node_id": "b", "to_node_id": "c",
             "synchronization": {"strategy": "all", "sibling_group": "fan", "on_branch_failure": "proceed_with_available"}}],
    }));
    let mut waiting = 0;
    for token in 2..42 {
        run.succeed(&format!("t{token}@1"), text(500_000));
        if token == 20 {
            // Waiting results are counted again after a reload.
            run.reload().load();
            for token in 21..42 {
                run.succeed(&format!("t{token}@2"), text(500_000));
            }
            break;
        }
        waiting += 1;
    }
    assert_eq!(waiting, 18);
    let failed = run.store.tokens.values().filter(|(status, _)| status == "failed");
    assert_eq!(failed.count(), 40 - 32, "16 MiB hold 32 of them");
    let row = run.store.tokens.values().find(|(status, _)| status == "failed");
    assert!(row.is_some_and(|(_, row)| row.contains("all results that wait at joins is ")));
    assert_eq!(
        run.run.live_tokens().count(),
        1,
        "the join went on with what there was"
    );
}

#[test]
fn the_events_of_a_task_are_bounded() {
    let mut run = Driver::start(one_node());
    let mut report = succeeded("t1@1", json!(1));
    let event = |bytes| Emitted {
        name: "order.paid".into(),
        payload: text(bytes),
    };
    report.events = vec![event(300_000), event(300_000)];
    run.report(report);
    assert_eq!(
        error(&run),
        "limit_exceeded: what the task's events carry is 600000 bytes; the limit is 524288"
    );
    assert_eq!(run.lines_of("message"), [""; 0]);
}

#[test]
fn the_reason_of_a_cancellation_is_bounded() {
    let mut run = Driver::start(one_node());
    run.cancel(Some(&"r".repeat(4_097)))
        .check("rejected too_large: the reason is 4097 bytes; the limit is 4096");
    run.cancel(Some(&"r".repeat(4_096)));
    assert_eq!(run.run.header.status, RunStatus::Cancelled);
}

#[test]
fn the_largest_output_of_a_run_fits_its_row() {
    let mut run = Driver::start(json!({
        "nodes": [{"id": "a", "action_id": "work"}],
        "output_mapping": "${state.a + state.a}",
    }));
    run.succeed("t1@1", text((1_032_192 - 2) / 2 + 2));
    assert_eq!(
        run.run.header.status,
        RunStatus::Completed,
        "{}",
        run.status_line().len()
    );
}

mod failed_wakes {
    use super::*;

    /// The host records a wake that could not be saved.
    fn failed_times(run: &mut Driver, times: u32) {
        run.store.run.insert("failed_wakes".into(), times.to_string());
        run.reload();
    }

    #[test]
    fn five_failed_wakes_in_a_row_fail_the_run() {
        let mut run = Driver::start(one_node());
        failed_times(&mut run, 5);
        run.load();
        assert!(
            run.status_line().starts_with("failed internal_error/permanent: "),
            "{}",
            run.status_line()
        );
        assert!(
            !run.store.run.contains_key("failed_wakes"),
            "a restart starts over"
        );
    }

    #[test]
    fn a_saved_wake_resets_the_count() {
        let mut run = Driver::start(one_node());
        failed_times(&mut run, 4);
        run.load().wake("t1@2");
        assert_eq!(run.lines_of("forget"), ["forget failed wakes"]);
        assert_eq!(run.run.header.status, RunStatus::Running);
        run.reload().load();
        assert_eq!(run.run.header.status, RunStatus::Running);
    }

    /// Overdue timers are not handled first.
    #[test]
    fn a_run_can_be_cancelled_whatever_is_due() {
        let mut run =
            Driver::start(json!({"nodes": [{"id": "a", "action_id": "work"}], "timeout_ms": 5_000}));
        failed_times(&mut run, 9);
        run.at(900_000_000).cancel(None);
        assert_eq!(run.run.header.status, RunStatus::Cancelled);
    }
}

/// The undo patch of a large value has a row of its own beside the token's.
mod overwritten {
    use super::*;
    use crate::run::controls::{point, restart};
    use curfew::run::RetryMode;

    fn refining() -> Value {
        let refine = json!({"state.doc": "${result}"});
        json!({
            "nodes": [
                {"id": "a", "action_id": "work", "output_mapping": refine},
                {"id": "b", "action_id": "work", "output_mapping": refine},
                {"id": "c", "action_id": "work"},
            ],
            "transitions": [{"from_node_id": "a", "to_node_id": "b"}, {"from_node_id": "b", "to_node_id": "c"}],
        })
    }

    fn version(letter: &str) -> Value {
        json!(letter.repeat(RESULT - 2))
    }

    #[test]
    fn the_largest_value_overwritten_by_the_largest_result_and_restored() {
        let mut run = Driver::start(refining());
        run.succeed("t1@1", version("a")).succeed("t2@1", version("b"));
        assert_eq!(run.status_line(), "running c:executing");
        assert!(run.store.run.contains_key("undo/000000000002/exit"));
        assert!(run.store.tokens[&2].1.len() < RESULT + 2_000);
        run.reload().load();
        let back = point(&run, "b");
        restart(&mut run, Some(back));
        assert_eq!(run.state()["doc"], version("a"));
        assert_eq!(run.reload().state()["doc"], version("a"));
    }

    /// The writer of a large value fails after its write, and the write is undone.
    #[test]
    fn a_large_write_is_undone_with_its_failed_token() {
        let mut document = refining();
        document["transitions"][1]["condition"] = json!("state.nothing.there");
        let mut run = Driver::start(document);
        run.succeed("t1@1", version("a")).succeed("t2@1", version("b"));
        assert_eq!(run.run.header.status, RunStatus::Failed);
        run.reload().retry(RetryMode::DiscardAndRetry);
        assert_eq!(run.state()["doc"], version("a"));
    }

    /// The token after a join has the undo patch of the merge from its creation, and is saved again with its own result.
    #[test]
    fn a_large_value_overwritten_by_a_join() {
        let mut run = Driver::start(json!({
            "nodes": [
                {"id": "a", "action_id": "work", "output_mapping": {"state.doc": "${result}"}},
                {"id": "b", "action_id": "work"},
                {"id": "c", "action_id": "work"},
                {"id": "d", "action_id": "work"},
            ],
            "transitions": [
                {"id": "fan", "from_node_id": "a", "to_node_id": "b", "spawn_count": 2},
                {"from_node_id": "b", "to_node_id": "c", "synchronization": {"strategy": "all", "sibling_group": "fan",
                    "merge": {"target": "state.doc", "strategy": "last_wins"}}},
                {"from_node_id": "c", "to_node_id": "d"},
            ],
        }));
        run.succeed("t1@1", version("a"))
            .succeed("t2@1", json!("x"))
            .succeed("t3@1", json!("y"));
        assert!(run.store.run.contains_key("undo/000000000004/birth"));
        run.reload().load();
        run.succeed("t4@2", version("c"));
        assert_eq!(run.status_line(), "running d:executing");
        run.reload();
        let back = point(&run, "a");
        restart(&mut run, Some(back));
        assert_eq!(run.state(), &json!({}));
        assert_eq!(run.reload().state(), &json!({}));
    }
}
