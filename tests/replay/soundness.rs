//! A what-if never guesses: where it claims to know everything, a simulation of the changed document with the same answers of its
//! calls has the same outcome.
//!
//! `CURFEW_WHAT_IF_SEEDS=20000` tries more workflows, `CURFEW_WHAT_IF_SEED=17` prints one.

use curfew::simulate::Rng;
use serde_json::{Value, json};

use super::{recorded, try_what_if};
use crate::simulate::try_simulate;

const SEEDS: u64 = 400;

/// Times that differ by so much are the same: `docs/simulation.md`.
const SAME_MS: u64 = 50;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// No two lengths are alike, so that nothing happens at the same moment by chance.
fn length(rng: &mut Rng, least: u64, most: u64) -> u64 {
    least + rng.below(most - least) * 7 % (most - least) + rng.below(13)
}

fn action(rng: &mut Rng, id: &str) -> Value {
    let mut execution = json!({"retry_policy": {
        "max_attempts": 1 + rng.below(3),
        "backoff": "linear",
        "initial_delay_ms": length(rng, 50, 900),
        "jitter": false,
    }});
    if rng.chance(40) {
        execution["timeout_ms"] = json!(length(rng, 200, 3_000));
        if rng.chance(40) {
            execution["on_timeout"] = json!("retry");
        }
    }
    if rng.chance(20) {
        execution["retry_policy"]["total_timeout_ms"] = json!(length(rng, 300, 4_000));
    }
    json!({"id": id, "kind": "http_request", "execution": execution, "implementation": {"method": "GET", "url": "https://peer.example.com"}})
}

fn node(rng: &mut Rng, id: &str) -> Value {
    let mut node = json!({"id": id});
    match rng.below(8) {
        0 => {
            let choices = ["approve", "reject"];
            node["gate"] = json!({"timeout_ms": length(rng, 300, 3_000), "on_timeout": rng.pick(&["approve", "reject", "fail", "cancel_all"]), "choices": choices});
            return node;
        }
        1 => {
            node["wait"] = json!({"sleep_ms": length(rng, 100, 2_000)});
            return node;
        }
        2 => node["task_id"] = json!(format!("t{}", rng.below(2))),
        3 => node["workflow_id"] = json!("child"),
        _other => node["action_id"] = json!(format!("c{}", rng.below(2))),
    }
    if rng.chance(40) {
        node["timeout_ms"] = json!(length(rng, 300, 5_000));
        if rng.chance(40) {
            node["on_timeout"] = json!("retry");
            node["max_retries"] = json!(rng.below(3));
        }
    }
    node
}

fn task(rng: &mut Rng, id: &str) -> Value {
    let mut steps = vec![
        json!({"ref": "s1", "action_id": "c0"}),
        json!({"ref": "s2", "action_id": "c1"}),
    ];
    for step in &mut steps {
        if rng.chance(40) {
            step["on_failure"] = json!(rng.pick(&["retry", "continue"]));
        }
        if rng.chance(20) {
            step["timeout_override_ms"] = json!(length(rng, 200, 2_000));
        }
    }
    let mut task = json!({"id": id, "steps": steps});
    if rng.chance(40) {
        task["retry"] = json!({"max_attempts": 1 + rng.below(3), "initial_delay_ms": length(rng, 20, 500), "backoff": "none"});
    }
    if rng.chance(20) {
        task["timeout_ms"] = json!(length(rng, 300, 4_000));
    }
    task
}

/// A row of nodes, in some of which branches work and join.
fn workflow(rng: &mut Rng) -> Value {
    let ids = ["a", "b", "c", "d"];
    let count = 1 + rng.below(4) as usize;
    let mut nodes: Vec<Value> = ids[..count].iter().map(|id| node(rng, id)).collect();
    let mut transitions: Vec<Value> = (1..count)
        .map(|at| json!({"from_node_id": ids[at - 1], "to_node_id": ids[at]}))
        .collect();
    if rng.chance(30) {
        nodes.push(json!({"id": "join"}));
        let last = ids[count - 1];
        nodes.insert(0, json!({"id": "split"}));
        transitions.push(
            json!({"id": "out", "from_node_id": "split", "to_node_id": "a", "spawn_count": 1 + rng.below(3)}),
        );
        transitions.push(
            json!({"from_node_id": last, "to_node_id": "join", "synchronization": {
                "strategy": rng.pick(&["all", "any"]),
                "sibling_group": "out",
                "timeout_ms": length(rng, 300, 3_000),
                "on_timeout": rng.pick(&["fail", "proceed_with_available"]),
                "on_early_complete": rng.pick(&["abandon", "cancel"]),
            }}),
        );
    }
    if rng.chance(30) {
        let from = ids[rng.below(count as u64) as usize];
        let on = rng.pick(&["failure", "timeout"]);
        nodes.push(json!({"id": "elsewhere"}));
        transitions.push(json!({"from_node_id": from, "to_node_id": "elsewhere", "on": on}));
    }
    let mut workflow = json!({
        "id": "flow",
        "on_timeout": rng.pick(&["fail", "cancel_all", "human_gate"]),
        "gate": {"timeout_ms": length(rng, 500, 3_000)},
        "timeout_ms": length(rng, 1_000, 12_000),
        "nodes": nodes,
        "transitions": transitions,
        "actions": [action(rng, "c0"), action(rng, "c1")],
        "tasks": [task(rng, "t0"), task(rng, "t1")],
    });
    if rng.chance(20) {
        for node in workflow["nodes"].as_array_mut().expect("a list") {
            if node["action_id"].is_string() && rng.chance(50) {
                node["compensate"] = json!({"action_id": "c0"});
            }
        }
    }
    workflow
}

fn child(rng: &mut Rng) -> Value {
    let ends = rng.pick(&["fail", "cancel_all"]);
    json!({
        "id": "child", "timeout_ms": length(rng, 300, 3_000), "on_timeout": ends,
        "nodes": [{"id": "rest", "wait": {"sleep_ms": length(rng, 100, 3_000)}}],
    })
}

/// What calls answer, in order for each node.
///
/// Branches ask in an order that follows from their limits, and all get the same.
fn mocks(rng: &mut Rng, workflow: &Value) -> Vec<Value> {
    let mut mocks = Vec::new();
    let has_branches = workflow["transitions"]
        .as_array()
        .expect("a list")
        .iter()
        .any(|it| it["id"] == "out");
    let ok = json!({"status": 200, "headers": {}, "body": {}});
    for node in workflow["nodes"].as_array().expect("a list") {
        let id = node["id"].as_str().expect("an id");
        if !node["action_id"].is_string() && !node["task_id"].is_string() {
            continue;
        }
        for _ in 0..if has_branches { 0 } else { rng.below(5) } {
            let after = length(rng, 5, 1_500);
            mocks.push(match rng.below(10) {
                0 | 1 => json!({"node": id, "times": 1, "hang": true}),
                2 | 3 => json!({"node": id, "times": 1, "after": after, "fail": "server_error"}),
                4 => json!({"node": id, "times": 1, "after": after, "fail": "bad_request"}),
                _other => json!({"node": id, "times": 1, "after": after, "result": ok}),
            });
        }
        mocks.push(json!({"node": id, "after": length(rng, 5, 1_500), "result": ok}));
        if node["compensate"].is_object() {
            mocks.push(
                json!({"node": format!("{id}~compensate"), "after": length(rng, 5, 800), "result": ok}),
            );
        }
    }
    mocks
}

fn people(rng: &mut Rng, workflow: &Value) -> Vec<Value> {
    let mut people = Vec::new();
    for node in workflow["nodes"].as_array().expect("a list") {
        if node["gate"].is_object() && rng.chance(60) {
            people.push(json!({"gate": node["id"], "after": length(rng, 50, 3_000), "choice": "approve"}));
        }
    }
    if workflow["on_timeout"] == "human_gate" && rng.chance(50) {
        people.push(json!({"gate": "timeout", "after": length(rng, 50, 3_000), "choice": rng.pick(&["abort", "fail"])}));
    }
    people
}

/// One limit of the document is another one.
fn change(rng: &mut Rng, workflow: &Value) -> Value {
    let mut pointers = vec!["/timeout_ms".to_string()];
    let list = |field: &str| workflow[field].as_array().map_or(0, Vec::len);
    for at in 0..list("nodes") {
        let node = &workflow["nodes"][at];
        match (node["gate"].is_object(), node["wait"].is_object()) {
            (true, _) => pointers.push(format!("/nodes/{at}/gate/timeout_ms")),
            (_, true) => pointers.push(format!("/nodes/{at}/wait/sleep_ms")),
            (_, _) if node.as_object().is_some_and(|fields| fields.len() > 1) => {
                pointers.push(format!("/nodes/{at}/timeout_ms"));
            }
            (_, _) => {}
        }
    }
    for at in 0..list("actions") {
        pointers.push(format!("/actions/{at}/execution/timeout_ms"));
        pointers.push(format!("/actions/{at}/execution/retry_policy/total_timeout_ms"));
        pointers.push(format!("/actions/{at}/execution/retry_policy/initial_delay_ms"));
    }
    for at in 0..list("tasks") {
        pointers.push(format!("/tasks/{at}/timeout_ms"));
        if workflow["tasks"][at]["retry"].is_object() {
            pointers.push(format!("/tasks/{at}/retry/initial_delay_ms"));
        }
    }
    for at in 0..list("transitions") {
        if workflow["transitions"][at]["synchronization"].is_object() {
            pointers.push(format!("/transitions/{at}/synchronization/timeout_ms"));
        }
    }
    let path = rng.pick(&pointers).clone();
    json!([{"op": "add", "path": path, "value": length(rng, 60, 6_000)}])
}

fn changed(workflow: &Value, change: &Value) -> Value {
    let mut workflow = workflow.clone();
    let path = change[0]["path"].as_str().expect("a path");
    let (holder, field) = path.rsplit_once('/').expect("a pointer");
    let holder = workflow.pointer_mut(holder).expect("it is there");
    holder[field] = change[0]["value"].clone();
    workflow
}

/// Status, the end of each token and each timeout. Times come apart.
fn path(tokens: &Value, retries: impl Fn(&Value) -> Value) -> Vec<String> {
    let tokens = tokens.as_array().expect("a list");
    let mut path: Vec<String> = tokens
        .iter()
        .map(|token| format!("{} {} {}", token["node_id"], token["status"], retries(token)))
        .collect();
    path.sort();
    path
}

#[derive(Default)]
struct Count {
    known: u64,
    unknown: u64,
    refused: u64,
}

fn check(seed: u64, count: &mut Count) -> Result<(), String> {
    let mut rng = Rng::seeded(seed);
    let workflow = workflow(&mut rng);
    let child = child(&mut rng);
    let body = json!({
        "workflow": workflow,
        "documents": {"workflows": [child]},
        "mocks": mocks(&mut rng, &workflow),
        "people": people(&mut rng, &workflow),
    });
    let Ok(_) = try_simulate(&body) else {
        count.refused += 1;
        return Ok(());
    };
    let export = recorded(body.clone());
    // When a person who had no chance to decide would have decided is not recorded, and counts as never.
    let gates = export["gates"].as_array().expect("a list");
    let has_decided = |person: &&Value| {
        let is_of = |gate: &&Value| person["gate"] == gate["node_id"].as_str().unwrap_or("timeout");
        let is_by_person =
            |gate: &Value| gate["decision"]["choice"].is_string() && gate["decision"]["by"] != "timeout";
        gates.iter().filter(is_of).any(is_by_person)
    };
    let people = body["people"].as_array().expect("a list");
    let people: Vec<&Value> = people.iter().filter(has_decided).collect();
    if std::env::var("CURFEW_WHAT_IF_SEED").is_ok() {
        println!(
            "{:#}",
            json!([export["events"], export["timeouts"], export["tokens"]])
        );
    }
    let unchanged = try_what_if(&export, json!({})).map_err(|error| error.message)?;
    if unchanged["differences"] != json!([]) || unchanged["unknown"] != json!([]) {
        return Err(format!(
            "unchanged: {:#} {:#}",
            unchanged["differences"], unchanged["unknown"]
        ));
    }
    let renamed = json!([{"op": "add", "path": "/description", "value": "the same"}]);
    let same = try_what_if(&export, json!({"changes": renamed})).map_err(|error| error.message)?;
    if same["differences"] != json!([]) || same["unknown"] != json!([]) {
        let (differences, unknown) = (&same["differences"], &same["unknown"]);
        return Err(format!("another description: {differences:#} {unknown:#}"));
    }
    for _ in 0..4 {
        let change = change(&mut rng, &workflow);
        let Ok(answer) = try_what_if(&export, json!({"changes": change})) else {
            count.refused += 1;
            continue;
        };
        if answer["unknown"] != json!([]) {
            count.unknown += 1;
            continue;
        }
        count.known += 1;
        let mut again = body.clone();
        again["workflow"] = changed(&workflow, &change);
        again["people"] = json!(people);
        let truth = try_simulate(&again).map_err(|error| error.message)?;
        let replayed = &answer["replayed"];
        let expected = (
            truth["run"]["status"].clone(),
            path(&truth["tokens"], |token| token["retry_count"].clone()),
        );
        let found = (
            replayed["status"].clone(),
            path(&replayed["tokens"], |token| token["retry_count"].clone()),
        );
        let duration = |value: &Value| value["duration_ms"].as_u64().unwrap_or_default();
        let is_timely = duration(&truth["run"]).abs_diff(duration(replayed)) <= SAME_MS;
        if expected != found || !is_timely {
            if std::env::var("CURFEW_WHAT_IF_SEED").is_ok() {
                println!("TRUTH {}", truth["events"]);
            }
            return Err(format!(
                "{change}: replayed {found:?} in {}, in truth {expected:?} in {}",
                duration(replayed),
                duration(&truth["run"])
            ));
        }
    }
    Ok(())
}

#[test]
fn what_is_not_known_is_never_guessed() {
    let mut count = Count::default();
    if let Some(seed) = number("CURFEW_WHAT_IF_SEED") {
        let mut rng = Rng::seeded(seed);
        let workflow = workflow(&mut rng);
        let child = child(&mut rng);
        println!("{workflow}\n{child}\n{}", json!(mocks(&mut rng, &workflow)));
        println!("{}", json!(people(&mut rng, &workflow)));
        check(seed, &mut count).expect("the seed holds");
        return;
    }
    let seeds = number("CURFEW_WHAT_IF_SEEDS").unwrap_or(SEEDS);
    let mut wrong = Vec::new();
    for seed in 0..seeds {
        if let Err(why) = check(seed, &mut count) {
            wrong.push(format!("seed {seed}: {why}"));
        }
    }
    println!(
        "{} known, {} unknown, {} refused",
        count.known, count.unknown, count.refused
    );
    assert!(
        wrong.is_empty(),
        "{} of {seeds}:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(12)].join("\n")
    );
    assert!(
        count.known > seeds && count.unknown < count.known * 2,
        "it tries what it claims to"
    );
}
