//! The worst documents within all limits: each makes the engine compute as much as it can in one turn, in one way.
//!
//! Shared by `bench/engine.rs`, which prints what they take, and by a native test that holds their steps to the budget.

use std::rc::Rc;
use std::time::{Duration, Instant};

use curfew::definition::snapshot::{Library, Resolution, Snapshot, resolve};
use curfew::definition::timeouts::TimeoutRules;
use curfew::protocol::task::{ReportStatus, TaskReport};
use curfew::run::{
    AttemptOrder, CallbackSecret, Command, Decision, Event, NewRun, Run, RunStatus, Settings, StartRequest,
};
use curfew::storage::commit::Commit;
use serde_json::{Value, json};

/// One document, its input, and what an executor answers to every order.
pub struct Worst {
    pub name: &'static str,
    document: Value,
    input: Value,
    answer: Value,
}

/// What the longest decision of a run took, and how the run ended.
pub struct Longest {
    pub steps: u64,
    /// Deciding and making the rows.
    pub time: Duration,
    pub decisions: usize,
    pub status: RunStatus,
    pub error: Option<String>,
    /// Steps and time of all decisions.
    pub steps_in_all: u64,
    pub time_in_all: Duration,
}

fn chain(nodes: usize, node: impl Fn(usize) -> Value, more: Value) -> Value {
    let nodes: Vec<Value> = (0..nodes).map(node).collect();
    let ids: Vec<&Value> = nodes.iter().map(|node| &node["id"]).collect();
    let edges: Vec<Value> = ids
        .windows(2)
        .map(|pair| json!({"from_node_id": pair[0], "to_node_id": pair[1]}))
        .collect();
    let mut document = json!({"id": "worst", "nodes": nodes, "transitions": edges});
    for (key, value) in more.as_object().into_iter().flatten() {
        document[key] = value.clone();
    }
    document
}

fn inline_task(set: Value) -> Value {
    json!({"id": "t", "steps": [{"ref": "s", "action": {"kind": "update_context", "implementation": {"set": set}}}]})
}

fn paths(count: usize, value: &str) -> Value {
    Value::Object(
        (0..count)
            .map(|index| (format!("p{index}"), json!(value)))
            .collect(),
    )
}

/// Ten inline nodes of 400 paths each.
fn mapping(value: &str) -> Value {
    let node = |index| json!({"id": format!("n{index}"), "task_id": "t", "output_mapping": {}});
    chain(10, node, json!({"tasks": [inline_task(paths(400, value))]}))
}

/// Eight nodes in a row whose inline tasks are checked against `schema`.
fn checks(schema: Value) -> Value {
    let mut task = inline_task(json!({"ok": true}));
    task["input_schema"] = schema;
    let node = |index| json!({"id": format!("n{index}"), "task_id": "t", "output_mapping": {}});
    chain(8, node, json!({"tasks": [task]}))
}

fn fan(width: Value, work: Value, merge: Value, tasks: Value) -> Value {
    let mut each = json!({"id": "each", "from_node_id": "start", "to_node_id": "work"});
    for (key, value) in width.as_object().into_iter().flatten() {
        each[key] = value.clone();
    }
    json!({
        "id": "worst",
        "nodes": [{"id": "start"}, work, {"id": "done"}],
        "transitions": [each, {"from_node_id": "work", "to_node_id": "done",
            "synchronization": {"sibling_group": "each", "strategy": "all", "merge": merge}}],
        "limits": {"tokens_active": 5_000, "tokens_total": 10_000},
        "tasks": tasks,
    })
}

fn small_objects(count: usize) -> Value {
    json!(vec![json!({"a": 1, "b": "text"}); count])
}

/// All of them.
pub fn documents() -> Vec<Worst> {
    let large = json!({"text": "x".repeat(900_000), "list": (0..120).collect::<Vec<u32>>(), "objects": small_objects(3_000),
        "items": (0..1_000).map(|item| json!({"n": item, "pad": "y".repeat(40)})).collect::<Vec<_>>()});
    let wide = json!({"list": (0..20_000).collect::<Vec<u32>>(), "objects": small_objects(20_000)});
    let unique = json!({"items": (0..6_000).map(|n| json!({"id": format!("{n:08x}-1234-1234-1234-1234567890ab"), "n": n})).collect::<Vec<_>>()});
    let escaped = json!({"text": "\u{1}".repeat(120_000)});
    let words = json!({"words": vec!["a".repeat(900); 900], "objects": small_objects(4_000)});
    let one = |name, document, input: &Value| Worst {
        name,
        document,
        input: input.clone(),
        answer: json!({"x": 1}),
    };
    let nested = "${input.list.map(a, input.list.map(b, a + b)).size()}";
    let pure_fan = |set: Value| {
        fan(
            json!({"foreach": {"collection": "input.items", "item_var": "item"}}),
            json!({"id": "work", "task_id": "t", "input_mapping": {"item": "${item}", "all": "${input.text.size()}"}}),
            json!({"target": "state.all", "strategy": "append"}),
            json!([inline_task(set)]),
        )
    };
    let patterns = |pattern: &str| json!({"properties": {"words": {"items": {"pattern": pattern}}}});
    let alternatives: Vec<Value> = (0..40)
        .map(|index| json!({"properties": {"b": {"enum": ["u", "v", if index == 39 { "text" } else { "w" }]}}, "required": ["a", "b"]}))
        .collect();
    vec![
        one(
            "10 inline nodes, 400 paths of nested comprehensions",
            mapping(nested),
            &large,
        ),
        one(
            "10 inline nodes, 400 paths of a copied text",
            mapping("${input.text}"),
            &large,
        ),
        one(
            "10 inline nodes, 400 paths of copied objects",
            mapping("${input.objects}"),
            &large,
        ),
        one(
            "10 inline nodes, 400 paths of small numbers compared",
            mapping("${input.list == input.list}"),
            &wide,
        ),
        one(
            "10 inline nodes, 400 paths of text to JSON",
            mapping("${json(input.text).size()}"),
            &escaped,
        ),
        one(
            "10 inline nodes, 400 paths of objects to JSON",
            mapping("${json(input.objects).size()}"),
            &large,
        ),
        one(
            "10 inline nodes, 400 paths of JSON parsed",
            mapping("${parse_json(json(input.objects)).size()}"),
            &large,
        ),
        one(
            "10 inline nodes, 400 paths of text replaced",
            mapping("${input.text.replace('x', 'yy').size()}"),
            &large,
        ),
        one(
            "10 inline nodes, 400 paths of text split",
            mapping("${input.text.split('xxxxxxxx').size()}"),
            &large,
        ),
        one(
            "10 inline nodes, 4 000 constants",
            mapping(&"c".repeat(1_000)),
            &large,
        ),
        one(
            "8 schema checks, alternatives",
            checks(json!({"properties": {"objects": {"items": {"anyOf": alternatives}}}})),
            &words,
        ),
        one(
            "8 schema checks, a dense pattern",
            checks(patterns("(a|aa|aaa|b)*$")),
            &words,
        ),
        one(
            "8 schema checks, a wide pattern",
            checks(patterns("(a?){100}a{100}$")),
            &words,
        ),
        one(
            "8 schema checks, a short pattern",
            checks(patterns("^[a-z]+$")),
            &words,
        ),
        one(
            "8 schema checks, unique objects",
            checks(json!({"properties": {"items": {"uniqueItems": true}}})),
            &unique,
        ),
        one(
            "8 schema checks, a pattern of ids",
            checks(json!({"properties": {"items": {"items": {"properties": {"id":
            {"pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"}}}}}})),
            &unique,
        ),
        one(
            "8 schema checks, plain items",
            checks(
                json!({"properties": {"list": {"items": {"type": "integer", "minimum": 0, "maximum": 99_999, "multipleOf": 1}}}}),
            ),
            &wide,
        ),
        one(
            "a chain of 200 inline nodes over one large name",
            {
                let node = |index| {
                    json!({"id": format!("n{index}"), "task_id": "t", "output_mapping": {
                (if index == 0 { "state.big.text" } else { "state.big.n" }):
                    (if index == 0 { "${input.objects}".to_string() } else { format!("${{{index}}}") })}})
                };
                chain(200, node, json!({"tasks": [inline_task(json!({"ok": true}))]}))
            },
            &large,
        ),
        one(
            "a foreach of 1 000, inline",
            pure_fan(json!({"seen": "${input.item.pad + string(input.item.n)}"})),
            &large,
        ),
        one(
            "a foreach of 1 000, large results merged",
            pure_fan(
                json!({"seen": "${input.item.pad + input.item.pad + input.item.pad + input.item.pad + input.item.pad + input.item.pad + input.item.pad + input.item.pad + input.item.pad}"}),
            ),
            &large,
        ),
        one(
            "a fan of 1 000 ordered, with the whole input",
            fan(
                json!({"spawn_count": 1_000}),
                json!({"id": "work", "task_id": "t"}),
                json!({"target": "state.all", "strategy": "append"}),
                json!([{"id": "t", "dispatch": "direct", "steps": [{"ref": "s", "action":
                {"kind": "update_context", "implementation": {"set": {"x": 1}}}}]}]),
            ),
            &large,
        ),
        one(
            "a fan of 1 000 ordered, each with a mapping",
            fan(
                json!({"spawn_count": 1_000}),
                json!({"id": "work", "task_id": "t", "input_mapping": {"n": "${input.list.map(a, a + _branch.index)}"}}),
                json!({"target": "state.all", "strategy": "append"}),
                json!([{"id": "t", "dispatch": "direct", "steps": [{"ref": "s", "action":
                {"kind": "update_context", "implementation": {"set": {"x": 1}}}}]}]),
            ),
            &large,
        ),
        one(
            "1 000 conditions, each over a list",
            {
                let mut document = chain(100, |index| json!({"id": format!("n{index}")}), json!({}));
                let mut edges: Vec<Value> = Vec::new();
                for from in 0..99 {
                    for twin in 0..10 {
                        edges.push(json!({"id": format!("e{from}-{twin}"), "from_node_id": format!("n{from}"),
                        "to_node_id": format!("n{}", from + 1), "priority": twin,
                        "condition": format!("input.list.exists(a, input.list.exists(b, a + b > {})) ", if twin == 9 { -1 } else { 100_000 })}));
                    }
                }
                document["transitions"] = json!(edges);
                document
            },
            &json!({"list": (0..90).collect::<Vec<u32>>()}),
        ),
        Worst {
            name: "50 results of 400 KB, mapped",
            document: {
                let node = |index| {
                    json!({"id": format!("n{index}"), "task_id": "t",
                    "output_mapping": {"state.last": "${result}", "state.before": "${has(state.last) ? state.last.size() : 0}"}})
                };
                let task = json!({"id": "t", "dispatch": "direct", "steps": [{"ref": "s", "action":
                    {"kind": "update_context", "implementation": {"set": {"x": 1}}}}]});
                chain(50, node, json!({"tasks": [task]}))
            },
            input: json!({}),
            answer: small_objects(18_000),
        },
    ]
}

fn report(order: &AttemptOrder, answer: &Value) -> Event {
    Event::TaskReported(Box::new(TaskReport {
        token_id: order.token.to_string(),
        epoch: order.epoch,
        status: ReportStatus::Completed,
        output: Some(answer.clone()),
        error: None,
        steps: Vec::new(),
        partial: Vec::new(),
        checkpoint: None,
        events: Vec::new(),
        gave_up_before: None,
    }))
}

/// Runs a document to its end: whenever something is due the alarm rings, else the next order is answered.
pub fn longest(worst: &Worst) -> Longest {
    let snapshot = match resolve(&worst.document, 1, &Library::new(), &TimeoutRules::default()) {
        Resolution::Resolved(stored) => Snapshot::read(*stored).expect("what was resolved can be read"),
        Resolution::Missing(_) => panic!("{}: something is missing", worst.name),
        Resolution::Invalid(problems) => panic!("{}: {problems:?}", worst.name),
    };
    let new = NewRun {
        id: "run-1".into(),
        snapshot: Rc::new(snapshot),
        input: worst.input.clone(),
        request: StartRequest::default(),
        parent: None,
        triggered_by: None,
        callback_secret: CallbackSecret::Random(String::new()),
        started_by: None,
        traceparent: None,
    };
    let mut longest = Longest {
        steps: 0,
        time: Duration::ZERO,
        decisions: 0,
        status: RunStatus::Running,
        error: None,
        steps_in_all: 0,
        time_in_all: Duration::ZERO,
    };
    let mut now = 1_000;
    let mut orders: Vec<AttemptOrder> = Vec::new();
    let began = Instant::now();
    let (mut run, mut decision) = Run::create(now, ROOM, Settings::default(), new);
    longest.note(&run, &decision, began);
    loop {
        if let Decision::Update { commands, .. } = decision {
            for command in commands {
                if let Command::DispatchTask(order) = command {
                    orders.push(order);
                }
            }
        }
        if run.header.ended_at.is_some() {
            longest.status = run.header.status;
            longest.error = run
                .header
                .error
                .as_ref()
                .map(|error| format!("{}: {}", error.code, error.message));
            return longest;
        }
        now += 1;
        let event = match run.is_due(now) {
            true => Event::Woken {
                open_calls: orders.iter().map(|order| (order.token, order.epoch)).collect(),
            },
            false => {
                let order = orders
                    .pop()
                    .expect("a run that lives has something due or under way");
                report(&order, &worst.answer)
            }
        };
        let began = Instant::now();
        let (answer, next) = run.handle(now, ROOM, event);
        longest.note(&run, &next, began);
        assert_eq!(answer, Ok(()), "{}", worst.name);
        decision = next;
    }
}

/// Calls to executors that each decision may begin.
const ROOM: u32 = 24;

impl Longest {
    fn note(&mut self, run: &Run, decision: &Decision, began: Instant) {
        let commit = Commit::of(decision.writes(), run).expect("what was decided can be saved");
        let time = began.elapsed();
        drop(commit);
        self.steps = self.steps.max(run.steps());
        self.time = self.time.max(time);
        self.steps_in_all += run.steps();
        self.time_in_all += time;
        self.decisions += 1;
    }
}
