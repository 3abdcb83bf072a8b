//! The computation budget of a turn: work beyond it continues in the next turn, a unit larger than a whole turn fails its
//! token, and no report is lost and no deadline bypassed.

use curfew::base::compute::{DECISION_STEPS, RESERVE_STEPS, TOKEN_STEPS, UNIT_STEPS};
use curfew::run::{DecisionBatch, Event, Rejection, RunStatus, TokenStatus, Write};
use serde_json::{Value, json};

use super::driver::{Driver, ROOM, SETTINGS, START, succeeded};
use super::worst;

/// Two nested loops over a list of this length take about 100 000 operations, close to the limit of one expression.
const LIST: usize = 120;

/// Steps that a unit takes even beyond its budget: the rows of a thousand tokens that end with it.
const ROWS: u64 = 1_000 * TOKEN_STEPS;

fn input() -> Value {
    json!({"list": (0..LIST).collect::<Vec<_>>()})
}

/// A small value that takes many steps to compute.
fn expensive() -> String {
    "${input.list.map(a, input.list.exists(b, a + b > 1000)).size()}".into()
}

fn set(paths: usize) -> Value {
    let set: serde_json::Map<String, Value> = (0..paths)
        .map(|path| (format!("p{path}"), json!(expensive())))
        .collect();
    json!({"id": "t", "steps": [{"ref": "s", "action": {"kind": "update_context", "implementation": {"set": set}}}]})
}

/// A sequence of inline nodes with `paths` expensive values each.
fn chain(nodes: usize, paths: usize) -> Value {
    let ids: Vec<String> = (0..nodes).map(|index| format!("n{index}")).collect();
    let routes = ids.windows(2);
    json!({
        "nodes": ids.iter().map(|id| json!({"id": id, "task_id": "t", "output_mapping": {"state.last": "${result.p0}"}})).collect::<Vec<_>>(),
        "transitions": routes.map(|pair| json!({"from_node_id": pair[0], "to_node_id": pair[1]})).collect::<Vec<_>>(),
        "tasks": [set(paths)],
        "output_mapping": "${state.last}",
    })
}

fn start(document: Value) -> Driver {
    Driver::start_with(SETTINGS, document, input())
}

/// Reloads and wakes the run until nothing is due. Returns the steps of each decision.
fn wake_until_done(run: &mut Driver) -> Vec<u64> {
    let mut steps = vec![run.run.steps()];
    while run.run.header.ended_at.is_none() && run.run.is_due(run.now) {
        assert!(
            run.run.alarm_at().is_some_and(|at| at <= run.now),
            "the alarm rings at once"
        );
        run.reload().wake("");
        steps.push(run.run.steps());
    }
    steps
}

#[test]
fn work_beyond_the_budget_continues_in_the_next_turn() {
    let mut run = start(chain(30, 2));
    assert_eq!(run.run.header.status, RunStatus::Running);
    let pending = run.run.live_tokens().next().expect("one is left");
    assert_eq!((pending.status, pending.epoch), (TokenStatus::Pending, 0));
    let done_at_first = run.run.counts()[&TokenStatus::Completed];
    assert!((2..30).contains(&done_at_first), "{done_at_first}");
    let steps = wake_until_done(&mut run);
    run.assert_status(&format!("completed {LIST}"));
    assert!(steps.len() > 2, "{steps:?}");
    for (turn, taken) in steps.iter().enumerate() {
        assert!(*taken < DECISION_STEPS + UNIT_STEPS, "turn {turn} took {taken}");
        let is_last = turn == steps.len() - 1;
        assert!(
            is_last || *taken >= DECISION_STEPS,
            "turn {turn} ended after {taken}"
        );
    }
}

#[test]
fn the_same_history_takes_the_same_steps() {
    let taken = || wake_until_done(&mut start(chain(30, 2)));
    assert_eq!(taken(), taken());
}

#[test]
fn a_unit_larger_than_a_turn_fails_its_token_with_advice() {
    let mut document = chain(1, 400);
    document["nodes"] = json!([document["nodes"][0], {"id": "rescue", "output_mapping": {"state.code": "${error.code}",
        "state.class": "${error.class}", "state.message": "${error.message}"}}]);
    document["transitions"] = json!([{"from_node_id": "n0", "to_node_id": "rescue", "on": "failure",
        "condition": "error.code == 'limit_exceeded'"}]);
    document["output_mapping"] = json!("${state}");
    let mut run = start(document);
    assert!(
        run.run.steps() <= UNIT_STEPS + RESERVE_STEPS + ROWS,
        "{}",
        run.run.steps()
    );
    wake_until_done(&mut run);
    let output = run
        .run
        .header
        .output
        .clone()
        .expect("the failure route was taken");
    assert_eq!(
        (&output["code"], &output["class"]),
        (&json!("limit_exceeded"), &json!("validation"))
    );
    let message = output["message"].as_str().unwrap_or_default();
    for part in [
        "set of step s",
        "too much computation for one token",
        &UNIT_STEPS.to_string(),
        "several nodes",
    ] {
        assert!(message.contains(part), "{message}");
    }
    assert!(
        run.run.steps() <= UNIT_STEPS + RESERVE_STEPS + ROWS,
        "{}",
        run.run.steps()
    );
}

/// A unit has one reserve for handling its failure: conditions that exceed it end the run.
#[test]
fn too_expensive_failure_conditions_end_the_run() {
    let mut document = chain(1, 400);
    document["nodes"] = json!([document["nodes"][0], {"id": "z"}]);
    let route = |index: usize| {
        json!({"id": format!("r{index}"), "from_node_id": "n0", "to_node_id": "z", "on": "failure",
        "priority": index, "condition": "input.list.exists(a, input.list.exists(b, a + b > 1000))"})
    };
    document["transitions"] = json!((0..100).map(route).collect::<Vec<_>>());
    let run = start(document);
    let error = run.run.header.error.clone().expect("the run failed");
    assert_eq!(error.code, "limit_exceeded");
    assert!(
        error.message.starts_with("condition of transition r"),
        "{}",
        error.message
    );
    assert!(
        run.run.steps() <= UNIT_STEPS + RESERVE_STEPS + ROWS,
        "{}",
        run.run.steps()
    );
}

#[test]
fn a_limit_that_passes_between_two_turns_is_enforced() {
    let mut document = chain(60, 2);
    document["timeout_ms"] = json!(5_000);
    let mut run = start(document);
    assert_eq!(run.run.header.status, RunStatus::Running);
    run.at(START + 5_000).wake("");
    assert_eq!(run.run.header.status, RunStatus::TimedOut);
}

#[test]
fn deferred_work_waits_during_a_pause() {
    let mut run = start(chain(30, 2));
    run.at(START + 10).pause();
    assert_eq!(run.run.header.status, RunStatus::Paused);
    run.at(START + 20).wake("").reload().at(START + 1_000).resume();
    let steps = wake_until_done(&mut run);
    assert!(steps.iter().all(|taken| *taken < DECISION_STEPS + UNIT_STEPS));
    run.assert_status(&format!("completed {LIST}"));
}

/// Branches whose reports arrive together, each with a mapping that takes a fifth of the budget.
fn reporters(count: usize) -> Driver {
    start(json!({
        "nodes": [{"id": "a"}, {"id": "b", "action_id": "work", "timeout_ms": 5_000,
                "output_mapping": {"_branch.output": expensive(), "_branch.output.again": expensive()}},
            {"id": "c", "task_id": "t", "output_mapping": {"state.last": "${result.p0}"}}],
        "transitions": [{"id": "out", "from_node_id": "a", "to_node_id": "b", "spawn_count": count},
            {"from_node_id": "b", "to_node_id": "c"}],
        "tasks": [set(1)],
    }))
}

#[test]
fn reports_of_one_message_share_the_budget() {
    let mut run = reporters(20);
    run.at(2_000);
    let mut decided = DecisionBatch::default();
    for token in 2..=21 {
        let report = Event::TaskReported(Box::new(succeeded(&format!("t{token}@1"), json!(1))));
        assert_eq!(decided.decide(&mut run.run, 2_000, ROOM, report), Ok(()));
    }
    // Every report is accepted; the work after them waits for the next turn once the budget is exhausted.
    assert_eq!(run.run.counts()[&TokenStatus::Executing], 0);
    let begun = run.run.counts()[&TokenStatus::Completed] - 21;
    assert!((1..15).contains(&begun), "{begun} have gone on");
    run.decision = decided.into_decision(&run.run);
    let pending =
        |write: &&Write| matches!(write, Write::SaveToken(token) if token.status == TokenStatus::Pending);
    assert_eq!(
        run.decision.writes().iter().filter(pending).count() as u64,
        20 - begun
    );
    run.save();
    wake_until_done(&mut run);
    assert_eq!(
        run.run.header.status,
        RunStatus::Completed,
        "{:?}",
        run.run.header.error
    );
}

/// Due deadlines are not checked in a turn whose budget is exhausted; a late report must not profit from that.
#[test]
fn a_report_cannot_bypass_its_deadline_in_an_exhausted_turn() {
    let late = START + 5_000 + SETTINGS.grace_ms;
    for (steps, expected) in [
        (0, Ok(())),
        (
            DECISION_STEPS,
            Err(Rejection::StaleAttempt {
                token: "t2".into(),
                epoch: 1,
            }),
        ),
    ] {
        let mut run = reporters(1);
        let report = Event::TaskReported(Box::new(succeeded("t2@1", json!(1))));
        let mut decided = DecisionBatch::after(steps);
        assert_eq!(decided.decide(&mut run.run, late, ROOM, report), expected);
        let is_over = run.run.header.status == RunStatus::Failed;
        assert_eq!(is_over, expected.is_err(), "{:?}", run.run.header.error);
    }
}

/// A wake in an exhausted turn only schedules the next one.
#[test]
fn a_wake_in_an_exhausted_turn_is_repeated_in_the_next() {
    let mut run = start(chain(30, 2));
    let before = run.status_line();
    let mut decided = DecisionBatch::after(DECISION_STEPS);
    let woken = Event::Woken {
        open_calls: Vec::new(),
    };
    assert_eq!(decided.decide(&mut run.run, START, ROOM, woken), Ok(()));
    assert_eq!(decided.steps(), DECISION_STEPS);
    run.decision = decided.into_decision(&run.run);
    run.save();
    run.assert_status(&before);
    assert_eq!(run.run.alarm_at(), Some(START));
    wake_until_done(&mut run);
    run.assert_status(&format!("completed {LIST}"));
}

/// Attempts lost by a reload begin again in turns that have budget for them.
#[test]
fn many_lost_attempts_begin_again_over_several_turns() {
    let mut run = start(json!({
        "nodes": [{"id": "a"}, {"id": "b", "action_id": "work", "input_mapping": {"n": expensive()}}],
        "transitions": [{"id": "out", "from_node_id": "a", "to_node_id": "b", "spawn_count": 40}],
    }));
    wake_until_done(&mut run);
    run.assert_status("running 40xb:executing").reload().load();
    let lost = run.run.counts()[&TokenStatus::Pending];
    assert!((1..40).contains(&lost), "{lost} wait for their turn");
    while run.run.is_due(run.now) {
        let attempts = run.run.live_tokens();
        let open: Vec<String> = attempts
            .filter(|token| token.status == TokenStatus::Executing)
            .map(|token| format!("{}@{}", token.id, token.epoch))
            .collect();
        run.wake(&open.join(" "));
        assert!(run.run.steps() < DECISION_STEPS + UNIT_STEPS);
    }
    run.assert_status("running 40xb:executing");
}

/// Large but legitimate documents.
#[test]
fn legitimate_documents_stay_within_the_budget() {
    let large = json!({"text": "x".repeat(900_000), "rows": (0..2_500).map(|n| json!({"id": n, "name": "somebody", "tags": ["a", "b"]})).collect::<Vec<_>>()});
    let node = |id: &str| {
        json!({"id": id, "task_id": "t", "input_mapping": {"rows": "${input.rows}"},
        "output_mapping": {(format!("state.{id}")): "${result.rows.filter(r, r.id % 30 == 0)}"}})
    };
    let document = json!({
        "input_schema": {"properties": {"rows": {"items": {"required": ["id", "name"], "properties": {"id": {"type": "integer"},
            "name": {"type": "string", "maxLength": 100}, "tags": {"items": {"type": "string"}, "uniqueItems": true}}}}}},
        "nodes": [node("a"), node("b"), node("c")],
        "transitions": [{"from_node_id": "a", "to_node_id": "b"}, {"from_node_id": "b", "to_node_id": "c"}],
        "tasks": [{"id": "t", "steps": [{"ref": "s", "action": {"kind": "update_context", "implementation":
            {"set": {"rows": "${input.rows}", "count": "${input.rows.size()}"}}}}]}],
        "output_mapping": {"text": "${input.text.size()}", "first": "${state.a[0]}", "sizes": ["${state.b.size()}", "${state.c.size()}"]},
    });
    let mut run = Driver::start_with(SETTINGS, document, large);
    wake_until_done(&mut run);
    assert_eq!(
        run.run.header.status,
        RunStatus::Completed,
        "{:?}",
        run.run.header.error
    );
}

#[test]
fn no_decision_of_the_worst_documents_takes_more_than_the_budget_and_one_unit() {
    for document in worst::documents() {
        let longest = worst::longest(&document);
        println!(
            "{}: {} steps, {} decisions, {:?}",
            document.name, longest.steps, longest.decisions, longest.status
        );
        assert!(
            longest.steps < DECISION_STEPS + UNIT_STEPS + RESERVE_STEPS,
            "{}: {}",
            document.name,
            longest.steps
        );
        assert!(
            matches!(longest.status, RunStatus::Completed | RunStatus::Failed),
            "{}",
            document.name
        );
    }
}
