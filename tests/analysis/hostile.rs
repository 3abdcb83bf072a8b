//! Documents that nobody writes: the analysis neither panics nor takes long. Its steps grow with the size of the graph and not with
//! the number of its paths.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::analysis_of;
use crate::definition::{examples, mutate};
use crate::run::generator;
use curfew::simulate::Rng;

const NODES: usize = 500;
const TRANSITIONS: usize = 2_000;

/// The most steps for a graph of so many nodes and transitions: the number of walks over the whole graph does not grow with it.
fn steps_max(nodes: usize, transitions: usize) -> u64 {
    let graph = (nodes + transitions) as u64;
    graph * 700 + 50_000
}

fn node(rng: &mut Rng, index: usize) -> Value {
    let id = format!("n{index}");
    match rng.below(8) {
        // Not a pass-through: loops of them are refused.
        0 => json!({"id": id, "wait": {"sleep_ms": 7}}),
        1 => json!({"id": id, "gate": {"timeout_ms": 1000}}),
        2 => json!({"id": id, "wait": {"signal": "go"}}),
        3 => json!({"id": id, "wait": {"sleep_ms": 5}}),
        4 => json!({"id": id, "action_id": "work", "timeout_ms": 1000, "on_timeout": "retry"}),
        5 => {
            json!({"id": id, "action_id": "work", "output_mapping": {"state.x": format!("${{state.n{}}}", rng.below(NODES as u64))}})
        }
        6 => {
            json!({"id": id, "action_id": "work", "output_mapping": {format!("state.v{index}"): "${result}"},
            "compensate": {"action_id": "work"}})
        }
        _other => {
            json!({"id": id, "action_id": "set", "input_mapping": {"a": format!("${{state.v{}}}", rng.below(NODES as u64))}})
        }
    }
}

fn document(nodes: Vec<Value>, transitions: Vec<Value>) -> Value {
    json!({"id": "w", "nodes": nodes, "transitions": transitions, "actions": [
        {"id": "work", "kind": "http_request", "implementation": {"method": "POST", "url": "https://example.com"}},
        {"id": "set", "kind": "update_context", "implementation": {"set": {"x": 1}}},
    ]})
}

/// A graph of a size, with as many groups and joins as `shape` asks for.
fn graph(rng: &mut Rng, nodes: usize, transitions: usize, shape: u64) -> Value {
    let built: Vec<Value> = (0..nodes).map(|index| node(rng, index)).collect();
    let mut edges: Vec<Value> = Vec::new();
    let mut groups: Vec<String> = Vec::new();
    while edges.len() < transitions {
        let (from, to) = (rng.below(nodes as u64), rng.below(nodes as u64));
        let id = format!("e{}", edges.len());
        let mut edge = json!({"id": id, "from_node_id": format!("n{from}"), "to_node_id": format!("n{to}"),
            "priority": rng.below(3), "on": *rng.pick(&["success", "success", "failure"])});
        match rng.below(10) {
            number if number < shape => {
                edge["spawn_count"] = json!(1 + rng.below(1000));
                groups.push(id);
            }
            number if number < 2 * shape && !groups.is_empty() => {
                let group = rng.pick(&groups).clone();
                edge["synchronization"] = json!({"sibling_group": group});
            }
            5 => edge["loop_config"] = json!({"max_iterations": 1 + rng.below(1000)}),
            6 => edge["condition"] = json!("has(state.x)"),
            _plain => {}
        }
        edges.push(edge);
    }
    document(built, edges)
}

/// Every node leads to both nodes of the next row: 2^250 paths.
fn ladder() -> Value {
    let nodes: Vec<Value> = (0..NODES)
        .map(|index| json!({"id": format!("n{index}")}))
        .collect();
    let mut edges = Vec::new();
    for row in 0..NODES / 2 - 1 {
        for from in [2 * row, 2 * row + 1] {
            for to in [2 * row + 2, 2 * row + 3] {
                edges.push(json!({"from_node_id": format!("n{from}"), "to_node_id": format!("n{to}")}));
            }
        }
    }
    edges.push(json!({"from_node_id": "n0", "to_node_id": "n1", "priority": 1}));
    document(nodes, edges)
}

/// A thousand groups with a join each, over one long chain.
fn groups() -> Value {
    let nodes: Vec<Value> = (0..NODES)
        .map(|index| json!({"id": format!("n{index}"), "action_id": "work"}))
        .collect();
    let mut edges = Vec::new();
    for index in 0..TRANSITIONS / 2 {
        let (from, to) = (index % (NODES - 1), index % (NODES - 1) + 1);
        edges.push(json!({"id": format!("g{index}"), "from_node_id": format!("n{from}"), "to_node_id": format!("n{to}"),
            "spawn_count": 2}));
        edges.push(
            json!({"from_node_id": format!("n{to}"), "to_node_id": format!("n{from}"),
            "synchronization": {"sibling_group": format!("g{index}"), "strategy": "any"}}),
        );
    }
    document(nodes, edges)
}

/// One group that every node fans out, and that joins in every node.
fn one_group() -> Value {
    let nodes: Vec<Value> = (0..NODES)
        .map(|index| json!({"id": format!("n{index}"), "action_id": "work"}))
        .collect();
    let edges = (0..TRANSITIONS).map(|index| {
        let (from, to) = (index % NODES, (index * 7 + index / NODES) % NODES);
        let mut edge = json!({"from_node_id": format!("n{from}"), "to_node_id": format!("n{to}")});
        match index % 2 {
            0 => edge["sibling_group"] = json!("g"),
            _join => edge["synchronization"] = json!({"sibling_group": "g", "strategy": {"m_of_n": 2}}),
        }
        edge
    });
    document(nodes, edges.collect())
}

#[test]
fn the_steps_are_bounded_by_the_size_of_the_graph() {
    for seed in 0..60 {
        let mut rng = Rng::seeded(seed);
        let nodes = 1 + rng.below(NODES as u64 / 2) as usize;
        let transitions = rng.below(4 * nodes as u64) as usize;
        let document = graph(&mut rng, nodes, transitions, seed % 5);
        let analysis = analysis_of(&document);
        assert!(analysis.errors.is_empty(), "seed {seed}: {:?}", analysis.errors);
        let most = steps_max(nodes, transitions);
        assert!(
            analysis.steps <= most,
            "seed {seed}: {} steps of {most}",
            analysis.steps
        );
    }
}

#[test]
fn the_largest_documents_are_analyzed_in_time() {
    let mut rng = Rng::seeded(7);
    let mut documents = vec![
        ("ladder", ladder()),
        ("groups", groups()),
        ("one group", one_group()),
    ];
    for (name, shape) in [("plain", 0), ("some groups", 2), ("many groups", 4)] {
        documents.push((name, graph(&mut rng, NODES, TRANSITIONS, shape)));
    }
    for (name, document) in documents {
        let began = Instant::now();
        let analysis = analysis_of(&document);
        let took = began.elapsed();
        assert!(analysis.errors.is_empty(), "{name}: {:?}", analysis.errors);
        println!(
            "{name}: {took:?}, {} steps, {} errors, {} warnings",
            analysis.steps,
            analysis.errors.len(),
            analysis.warnings.len()
        );
        let most = steps_max(NODES, TRANSITIONS);
        assert!(
            analysis.steps <= most,
            "{name}: {} steps of {most}",
            analysis.steps
        );
        // Not a measure of speed: a build without optimization on a busy machine takes long. Exponential would be forever.
        assert!(took.as_secs() < 30, "{name} took {took:?}");
        // Unreachable nodes are found when the document is read.
        let own = analysis
            .warnings
            .iter()
            .filter(|it| it.code != "unreachable_node");
        assert!(own.count() <= 201, "{name}");
    }
}

/// Every join, or every loop, has a problem of its own: finding their places takes no walk over the document for each.
#[test]
fn many_problems_take_no_longer_than_many_transitions() {
    let nodes = || {
        (0..NODES)
            .map(|index| json!({"id": format!("n{index}")}))
            .collect::<Vec<_>>()
    };
    let edge = |index: usize| json!({"from_node_id": format!("n{}", index % NODES), "to_node_id": format!("n{}", (index * 7 + 1) % NODES)});
    let timed = |change: &dyn Fn(&mut Value)| {
        let mut edges: Vec<Value> = (0..TRANSITIONS).map(edge).collect();
        edges.iter_mut().for_each(change);
        let document = document(nodes(), edges);
        let began = Instant::now();
        let analysis = analysis_of(&document);
        (began.elapsed(), analysis.errors.len())
    };
    let (usual, none) = timed(&|edge| edge["condition"] = json!("input.x"));
    let (joins, of_joins) = timed(&|edge| edge["synchronization"] = json!({"sibling_group": "missing"}));
    let (loops, of_loops) = timed(&|_| {});
    println!("{usual:?}, {of_joins} joins {joins:?}, {of_loops} loops {loops:?}");
    assert_eq!((none, of_joins, of_loops), (0, TRANSITIONS, NODES));
    let most = usual * 2 + Duration::from_millis(500);
    assert!(joins < most && loops < most, "{usual:?}, {joins:?}, {loops:?}");
}

#[test]
fn mutated_documents_and_the_corpus_do_no_harm() {
    let mut analyzed = 0;
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus/documents");
    for entry in fs::read_dir(folder).expect("the corpus is there") {
        let text = fs::read_to_string(entry.expect("an entry").path()).unwrap_or_default();
        if let Ok(document) = serde_json::from_str::<Value>(&text) {
            analysis_of(&document);
        }
    }
    let examples = examples();
    for seed in 0..1_500 {
        let mut rng = Rng::seeded(seed);
        let mut document = match rng.chance(50) {
            true => generator::workflow(&mut rng),
            false => rng.pick(&examples).clone(),
        };
        for _ in 0..rng.below(3) {
            mutate(&mut document, &mut rng);
        }
        let analysis = analysis_of(&document);
        assert_eq!(
            analysis.facts.is_some(),
            analysis.errors.is_empty(),
            "seed {seed}"
        );
        analyzed += u64::from(analysis.facts.is_some());
    }
    assert!(analyzed > 150, "only {analyzed} were accepted");
}

/// More warnings than anybody reads are counted.
#[test]
fn warnings_have_a_limit() {
    let nodes: Vec<Value> = (0..400)
        .map(|index| json!({"id": format!("n{index}"), "output_mapping": {"state.x": format!("${{state.missing{index}}}")}}))
        .collect();
    let edges: Vec<Value> = (1..400)
        .map(|to| json!({"from_node_id": format!("n{}", to - 1), "to_node_id": format!("n{to}")}))
        .collect();
    let analysis = analysis_of(&document(nodes, edges));
    assert_eq!(analysis.warnings.len(), 201);
    let more = analysis
        .warnings
        .iter()
        .find(|warning| warning.code == "more_warnings");
    assert!(
        more.is_some_and(|more| more.message.starts_with("200 further")),
        "{more:?}"
    );
}
