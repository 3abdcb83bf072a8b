//! Exports of runs that somebody has changed. Whatever a replay is given, it ends within its bounds, with an answer or a
//! refusal.
//!
//! `tests/fuzz/corpus/what_if` has requests that once broke it.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use curfew::engine;
use curfew::run::Settings;
use curfew::simulate::Rng;
use serde_json::{Value, json};

use super::number;
use crate::replay::recorded;
use crate::simulate::chain;

/// For the normal test run: about two seconds.
const CASES: u64 = 600;

/// Far more than any bound allows, also on a busy machine and without optimisation: a case that takes longer does not end.
const ENDLESS: Duration = Duration::from_secs(120);

fn calls() -> Value {
    let child = json!({"id": "child", "nodes": [{"id": "rest", "wait": {"sleep": "1m"}}], "transitions": []});
    let nodes = json!([
        {"id": "first", "action_id": "work", "timeout": "2s", "on_timeout": "retry", "max_retries": 2},
        {"id": "call", "workflow_id": "child", "timeout": "5m"},
        {"id": "go", "wait": {"signal": "go", "timeout": "1h"}},
        {"id": "last", "action_id": "work", "timeout": "10s", "compensate": {"action_id": "work"}},
        {"id": "bad", "action_id": "work"},
    ]);
    let more = json!({"on_end": [{"action_id": "work"}]});
    recorded(json!({
        "workflow": chain(nodes, more),
        "documents": {"workflows": [child]},
        "signals": [{"name": "go", "at": "90s", "payload": {"n": 1}}],
        "mocks": [
            {"node": "first", "times": 1, "hang": true},
            {"node": "first", "after": "1s", "result": {"n": 7}},
            {"node": "bad", "after": "1s", "fail": "server_error"},
            {"action": "work", "after": "2s", "result": {}},
        ],
    }))
}

fn branches() -> Value {
    let workflow = json!({
        "id": "fan", "timeout": "1h",
        "actions": [{"id": "work", "kind": "service_call", "implementation": {"binding": "PEER"}}],
        "nodes": [{"id": "split"}, {"id": "work", "action_id": "work", "timeout": "1m"}, {"id": "join"}],
        "transitions": [
            {"id": "out", "from_node_id": "split", "to_node_id": "work", "spawn_count": 3},
            {"from_node_id": "work", "to_node_id": "join", "synchronization": {
                "strategy": "all", "sibling_group": "out", "timeout": "4s", "on_timeout": "proceed_with_available",
                "merge": {"target": "state.all", "strategy": "append"}}},
        ],
    });
    recorded(json!({
        "workflow": workflow,
        "mocks": [
            {"node": "work", "times": 2, "after": "1s", "result": 1},
            {"node": "work", "times": 1, "after": "30s", "result": 3},
        ],
    }))
}

/// A gate, an async action by the queue, and a long sleep.
fn waits() -> Value {
    let nodes = json!([
        {"id": "ask", "gate": {"timeout": "1h"}},
        {"id": "work", "action_id": "slow"},
        {"id": "rest", "wait": {"sleep": "48h"}},
    ]);
    let slow = json!({
        "id": "slow", "kind": "service_call", "implementation": {"binding": "PEER"},
        "execution": {"mode": "async", "timeout": "10m"},
    });
    let mut export = recorded(json!({
        "workflow": chain(nodes, json!({"timeout": "90h", "actions": [slow]})),
        "queue": true,
        "people": [{"gate": "ask", "after": "5m", "choice": "approve"}],
        "mocks": [{"node": "work", "after": "2m", "result": {"n": 7}}],
    }));
    export["settings"] = json!({"queue": true});
    export
}

/// With every setting, so that each of them is changed.
fn exports() -> Vec<Value> {
    let mut exports = vec![calls(), branches(), waits()];
    for export in &mut exports {
        let queue = export["settings"]["queue"].as_bool().unwrap_or(false);
        export["settings"] = json!(Settings {
            queue,
            ..Settings::default()
        });
    }
    exports
}

/// Of what the recordings have, and some of anything else.
fn durations(rng: &mut Rng, export: &Value) -> Value {
    let lengths = [
        json!(0),
        json!("1ms"),
        json!("30s"),
        json!("26h"),
        json!("240000h"),
    ];
    let mut durations = Vec::new();
    for (field, name) in [("node", "work"), ("gate", "ask")] {
        let is_recorded = field == "node" || !export["gates"].as_array().is_none_or(Vec::is_empty);
        if rng.chance(if is_recorded { 60 } else { 5 }) {
            durations.push(json!({field: name, "after": rng.pick(&lengths)}));
        }
    }
    if rng.chance(20) {
        durations.push(json!({"node": hostile(rng), "gate": hostile(rng), "after": hostile(rng)}));
    }
    match rng.chance(5) {
        true => hostile(rng),
        false => json!(durations),
    }
}

fn hostile(rng: &mut Rng) -> Value {
    let deep = || (0..60).fold(json!(1), |inner, _| json!([inner]));
    match rng.below(3) {
        0 => hostile_number(rng),
        1 => hostile_text(rng),
        _other => rng
            .pick(&[
                json!(null),
                json!(true),
                json!([]),
                json!({}),
                json!([[], {}]),
                deep(),
            ])
            .clone(),
    }
}

fn hostile_number(rng: &mut Rng) -> Value {
    rng.pick(&[
        json!(0),
        json!(1),
        json!(2),
        json!(-1),
        json!(1.5),
        json!(u32::MAX),
        json!(253_402_300_799_999_u64),
        json!(1_u64 << 53),
        json!(i64::MAX),
        json!(u64::MAX),
        json!(u64::MAX - 1),
    ])
    .clone()
}

fn hostile_text(rng: &mut Rng) -> Value {
    let texts = [
        "",
        "t1",
        "t2",
        "t18446744073709551615",
        "x~y",
        "first",
        "last~compensate",
        "work",
        "ask",
        "completed",
        "cancelled",
        "failed",
        "running",
        "queue",
        "token_dispatched",
        "token_completed",
        "token_failed",
        "token_retried",
        "attempt_reaped",
        "attempt_lost",
        "gate_opened",
        "escalation",
        "run_retried",
        "run_restarted",
        "run_extended",
        "run_paused",
        "run_resumed",
        "run_cancelled",
        "run_compensating",
        "subworkflow_started",
        "signal_received",
        "retry_step",
        "${input.x}",
        "999999999d",
        "0s",
    ];
    json!(rng.pick(&texts))
}

/// Most changes keep the type, so that the export can still be read.
fn replacement(value: &Value, rng: &mut Rng) -> Value {
    match value {
        Value::Number(_) if rng.chance(90) => hostile_number(rng),
        Value::String(_) if rng.chance(90) => hostile_text(rng),
        Value::Null if rng.chance(50) => hostile_number(rng),
        Value::Array(_)
        | Value::Object(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_) => hostile(rng),
    }
}

/// Some value inside of `value`, often a small one.
fn some_place<'a>(value: &'a mut Value, rng: &mut Rng) -> &'a mut Value {
    let has_parts = match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    if !has_parts || rng.chance(2) {
        return value;
    }
    match value {
        Value::Array(items) => {
            let at = rng.below(items.len() as u64) as usize;
            some_place(&mut items[at], rng)
        }
        Value::Object(fields) => {
            let at = rng.below(fields.len() as u64) as usize;
            let (_, field) = fields.iter_mut().nth(at).expect("one of its fields");
            some_place(field, rng)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => unreachable!("it has parts"),
    }
}

fn change_list(items: &mut Vec<Value>, rng: &mut Rng) {
    let at = rng.below(items.len() as u64) as usize;
    let other = rng.below(items.len() as u64) as usize;
    match rng.below(4) {
        0 => drop(items.remove(at)),
        1 => items.swap(at, other),
        2 => {
            let again = items[at].clone();
            items.insert(other, again);
        }
        _many => {
            let again = items[at].clone();
            items.extend(vec![again; 50]);
        }
    }
}

fn change(export: &mut Value, rng: &mut Rng) {
    let field = [
        "events", "tokens", "timeouts", "gates", "settings", "snapshot", "run", "start",
    ];
    let field = *rng.pick(&field);
    let copied = some_place(export, rng).clone();
    // Most parts of a snapshot are large: what is changed more often is chosen first.
    let part = match rng.chance(90) && !export[field].is_null() {
        true => &mut export[field],
        false => export,
    };
    match rng.below(8) {
        0 => *some_place(part, rng) = copied,
        1 => {
            if let Value::Array(items) = part
                && !items.is_empty()
            {
                change_list(items, rng);
            }
        }
        2 => match some_place(part, rng) {
            Value::Array(items) if !items.is_empty() => change_list(items, rng),
            Value::Object(fields) if !fields.is_empty() => {
                let at = rng.below(fields.len() as u64) as usize;
                let name = fields.keys().nth(at).expect("one of its fields").clone();
                fields.remove(&name);
            }
            other => *other = Value::Null,
        },
        _other => {
            let place = some_place(part, rng);
            *place = replacement(place, rng);
        }
    }
}

fn changes(rng: &mut Rng) -> Value {
    let path = [
        "/nodes/0/timeout",
        "/timeout",
        "/nodes/1",
        "/transitions/0",
        "/nodes/0/max_retries",
    ];
    let path = *rng.pick(&path);
    match rng.below(5) {
        0 => json!([{"op": "add", "path": path, "value": "1s"}]),
        1 => json!([{"op": "remove", "path": path}]),
        2 => json!([{"op": "add", "path": path, "value": hostile(rng)}]),
        // A change that changes nothing, so that the document is resolved.
        _same => json!([{"op": "test", "path": "/id", "value": "flow"}]),
    }
}

/// The code of the answer.
fn check(request: &str) -> String {
    let began = Instant::now();
    let answer: Value = serde_json::from_str(&engine::call(request)).expect("an answer is JSON");
    assert!(began.elapsed() < ENDLESS, "it takes {:?}", began.elapsed());
    let error = &answer["error"];
    if answer["ok"].is_object() {
        return "ok".to_string();
    }
    let status = error["status"].as_u64().expect("a status");
    assert!((400..500).contains(&status), "{error}");
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|message| !message.is_empty()),
        "{error}"
    );
    error["code"].as_str().expect("a code").to_string()
}

#[test]
fn what_if() {
    for (name, request) in super::files("what_if") {
        let request = String::from_utf8(request).expect("text");
        let code = check(&request);
        let is_answered = code == "ok";
        assert_eq!(is_answered, name.starts_with("ok_"), "{name}: {code}");
    }
    let exports = exports();
    let mut rng = Rng::seeded(number("CURFEW_FUZZ_SEED").unwrap_or(1));
    let until = number("CURFEW_FUZZ_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut count = 0_u64;
    let mut codes: BTreeMap<String, u64> = BTreeMap::new();
    let mut slowest = Duration::ZERO;
    let mut broken = Vec::new();
    while until.map_or(count < CASES, |until| Instant::now() < until) {
        let mut export = rng.pick(&exports).clone();
        for _ in 0..=rng.below(3) {
            change(&mut export, &mut rng);
        }
        let mut request = json!({"op": "what_if", "export": export});
        if rng.chance(40) {
            request["changes"] = changes(&mut rng);
        }
        if rng.chance(10) {
            request["input"] = hostile(&mut rng);
        }
        if rng.chance(40) {
            request["durations"] = durations(&mut rng, &request["export"]);
        }
        let request = request.to_string();
        let began = Instant::now();
        match catch_unwind(AssertUnwindSafe(|| check(&request))) {
            Ok(code) => *codes.entry(code).or_default() += 1,
            Err(_) => broken.push(request.clone()),
        }
        slowest = slowest.max(began.elapsed());
        count += 1;
    }
    println!("what_if: {count} inputs, {codes:?}, the slowest took {slowest:?}");
    assert!(
        broken.is_empty(),
        "{} of {count} broke it; the shortest: {}",
        broken.len(),
        broken.iter().min_by_key(|request| request.len()).expect("one")
    );
    // Most would be refused at once if the exports could not be played.
    assert!(
        codes.get("ok").is_some_and(|played| played * 10 > count),
        "{codes:?}"
    );
}

/// The target would find little if what it changes could not be played.
#[test]
fn unchanged_exports_are_played_as_they_were() {
    for export in exports() {
        let request = json!({"op": "what_if", "export": export}).to_string();
        let answer: Value = serde_json::from_str(&engine::call(&request)).expect("JSON");
        assert_eq!(answer["ok"]["differences"], json!([]));
        assert_eq!(answer["ok"]["unknown"], json!([]));
    }
}
