//! The engine alone: events a second of a chain, and as many decisions under an instruction counter as anywhere else.
//!
//! `engine chain 200` makes 200 runs of 50 nodes and prints what it did; scripts/engine.mjs counts its instructions.
//! `engine simulate 200` times simulations of a workflow that takes a day.
//! `engine worst` prints what the worst documents within the limits take in a turn, a line each.

#[path = "worst.rs"]
mod worst;

use std::rc::Rc;
use std::time::Instant;

use curfew::definition::snapshot::{Library, Resolution, Snapshot, resolve};
use curfew::definition::timeouts::TimeoutRules;
use curfew::protocol::task::{ReportStatus, TaskReport};
use curfew::run::{
    AttemptOrder, CallbackSecret, Command, Decision, Event, NewRun, Run, RunStatus, Settings, StartRequest,
};
use curfew::storage::commit::Commit;
use serde_json::{Value, json};

const NODES: usize = 50;
const ROOM: u32 = 24;

fn document(kind: &str) -> Value {
    let action = json!({"kind": "update_context", "implementation": {"set": {"node": "${input.node}"}}});
    let task = json!({"id": "step", "dispatch": "direct", "steps": [{"ref": "s0", "action": action}]});
    match kind {
        "fan" => json!({
            "id": "fan",
            "nodes": [{"id": "start"}, {"id": "work", "task_id": "step", "input_mapping": {"node": "${_branch.index}"}}, {"id": "done"}],
            "transitions": [
                {"id": "each", "from_node_id": "start", "to_node_id": "work", "spawn_count": NODES},
                {"from_node_id": "work", "to_node_id": "done", "synchronization": {"sibling_group": "each", "strategy": "all",
                    "merge": {"target": "state.results", "strategy": "append"}}},
            ],
            "tasks": [task],
        }),
        _chain => {
            let node = |index| json!({"id": format!("n{index}"), "task_id": "step", "input_mapping": {"node": index}});
            let edge =
                |index| json!({"from_node_id": format!("n{}", index - 1), "to_node_id": format!("n{index}")});
            json!({
                "id": "chain",
                "nodes": (0..NODES).map(node).collect::<Vec<_>>(),
                "transitions": (1..NODES).map(edge).collect::<Vec<_>>(),
                "tasks": [task],
            })
        }
    }
}

fn snapshot(kind: &str) -> Snapshot {
    match resolve(&document(kind), 1, &Library::new(), &TimeoutRules::default()) {
        Resolution::Resolved(stored) => Snapshot::read(*stored).expect("what was resolved can be read"),
        Resolution::Missing(_) | Resolution::Invalid(_) => panic!("the document of this bench is not valid"),
    }
}

fn report(order: &AttemptOrder) -> Event {
    Event::TaskReported(Box::new(TaskReport {
        token_id: order.token.to_string(),
        epoch: order.epoch,
        status: ReportStatus::Completed,
        output: Some(json!({"node": order.input["node"]})),
        error: None,
        steps: Vec::new(),
        partial: Vec::new(),
        checkpoint: None,
        events: Vec::new(),
        gave_up_before: None,
    }))
}

/// One run to its end: how many events it took, and how many bytes were to be saved.
fn run(snapshot: &Rc<Snapshot>, settings: Settings, number: usize) -> (usize, usize) {
    let new = NewRun {
        id: format!("run-{number}"),
        snapshot: Rc::clone(snapshot),
        input: json!({}),
        request: StartRequest::default(),
        parent: None,
        triggered_by: None,
        callback_secret: CallbackSecret::Random(String::new()),
        started_by: None,
        traceparent: None,
    };
    let (mut run, mut decision) = Run::create(1_000, ROOM, settings, new);
    let (mut events, mut bytes) = (1, 0);
    let mut orders = Vec::new();
    loop {
        let commit = Commit::of(decision.writes(), &run).expect("what was decided can be saved");
        bytes += commit
            .run
            .iter()
            .map(|(key, value)| key.len() + value.len())
            .sum::<usize>();
        bytes += commit.tokens.iter().map(|(_, _, row)| row.len()).sum::<usize>();
        if let Decision::Update { commands, .. } = decision {
            for command in commands {
                if let Command::DispatchTask(order) = command {
                    orders.push(order);
                }
            }
        }
        let Some(order) = orders.pop() else { break };
        let (answer, next) = run.handle(1_000 + events as u64, ROOM, report(&order));
        assert!(answer.is_ok(), "a report that was ordered is taken");
        events += 1;
        decision = next;
    }
    assert_eq!(run.header.status, RunStatus::Completed);
    (events, bytes)
}

fn print_worst() {
    for document in worst::documents() {
        let longest = worst::longest(&document);
        let millis = longest.time.as_secs_f64() * 1_000.0;
        let nanos_per_step = longest.time_in_all.as_nanos() as f64 / longest.steps_in_all as f64;
        println!(
            "{}",
            json!({"document": document.name, "steps": longest.steps, "millis": (millis * 10.0).round() / 10.0,
                "decisions": longest.decisions, "status": longest.status, "error": longest.error,
                "nanos_per_step": (nanos_per_step * 10.0).round() / 10.0})
        );
    }
}

/// A day with three retries of a call and a gate, from its text to its answer, without and with faults.
fn print_simulations(runs: u64) {
    let action = json!({"id": "charge", "kind": "http_request", "implementation": {"method": "POST", "url": "https://pay.example/"},
        "execution": {"retry_policy": {"max_attempts": 4, "initial_delay": "1m"}}});
    let workflow = json!({
        "id": "day", "timeout": "72h", "actions": [action],
        "nodes": [{"id": "ask", "gate": {"timeout": "48h"}}, {"id": "rest", "wait": {"sleep": "20h"}}, {"id": "pay", "action_id": "charge"}],
        "transitions": [{"from_node_id": "ask", "to_node_id": "rest"}, {"from_node_id": "rest", "to_node_id": "pay"}],
    });
    for faults in [json!(null), json!({})] {
        let started = Instant::now();
        for seed in 0..runs {
            let request = json!({"op": "simulate", "workflow": workflow, "seed": seed, "faults": faults,
                "mocks": [{"node": "pay", "times": 3, "after": "2s", "fail": "server_error"}, {"node": "pay", "result": {}}],
                "people": [{"gate": "ask", "after": "4h", "choice": "approve"}]});
            let answer = curfew::engine::call(&request.to_string());
            assert!(answer.contains("\"virtual_ms\""), "{answer}");
        }
        let millis = started.elapsed().as_secs_f64() * 1_000.0 / runs as f64;
        println!(
            "{}",
            json!({"kind": "simulate", "faults": !faults.is_null(), "ms_per_simulation": (millis * 1_000.0).round() / 1_000.0})
        );
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with("--"))
        .collect();
    let kind = arguments.first().map_or("chain", String::as_str);
    let runs: usize = arguments
        .get(1)
        .and_then(|word| word.parse().ok())
        .unwrap_or(1_000);
    if kind == "worst" {
        return print_worst();
    }
    if kind == "simulate" {
        return print_simulations(runs as u64);
    }
    let settings = Settings::default();
    let snapshot = Rc::new(snapshot(kind));
    let started = Instant::now();
    let (mut events, mut bytes) = (0, 0);
    for number in 0..runs {
        let (more, saved) = run(&snapshot, settings, number);
        events += more;
        bytes += saved;
    }
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{}",
        json!({"kind": kind, "runs": runs, "events": events, "bytes": bytes, "events_per_second": (events as f64 / seconds).round()})
    );
}
