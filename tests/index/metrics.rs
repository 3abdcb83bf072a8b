//! The metrics of a run, their samples, and the text of a scrape.

use std::collections::BTreeMap;

use curfew::index::batch::MESSAGE_BYTES;
use curfew::index::metrics::samples::{self, SweepPass};
use curfew::index::metrics::text::{Row, exposition};
use curfew::index::run_summary::RunSummary;
use curfew::protocol::task::TaskReport;
use curfew::run::{Histogram, RunMetrics};
use serde_json::{Value, json};

use crate::run::driver::Driver;

fn row(kind: &str, workflow: &str, node: &str, text: &str, number: u64) -> Row {
    Row {
        kind: kind.into(),
        workflow: workflow.into(),
        node: node.into(),
        text: text.into(),
        number,
    }
}

fn samples_row(workflow: &str, node: &str, samples: &Value) -> Row {
    row("samples", workflow, node, &samples.to_string(), 0)
}

fn has(text: &str, line: &str) {
    assert!(text.lines().any(|it| it == line), "no line {line} in\n{text}");
}

#[test]
fn a_histogram_counts_what_is_within_its_bounds() {
    let samples = json!({"lateness/5": 2, "lateness/1000": 3, "lateness/inf": 1, "lateness/sum": 65_250});
    let text = exposition(vec![samples_row("", "", &samples)], 0);
    let name = "workflow_timeout_enforcement_latency_seconds";
    for (bound, count) in [
        ("0.001", 0),
        ("0.005", 2),
        ("0.5", 2),
        ("1", 5),
        ("60", 5),
        ("+Inf", 6),
    ] {
        has(&text, &format!("{name}_bucket{{le=\"{bound}\"}} {count}"));
    }
    has(&text, &format!("{name}_sum 65.25"));
    has(&text, &format!("{name}_count 6"));
}

#[test]
fn label_values_are_escaped() {
    let rows = vec![
        samples_row("a\"b", "c\\d\ne", &json!({"10": 1})),
        row("breaker", "", "k\"", "open", 0),
    ];
    let text = exposition(rows, 0);
    has(
        &text,
        "node_execution_duration_seconds_count{workflow=\"a\\\"b\",node=\"c\\\\d\\ne\"} 1",
    );
    has(&text, "breaker_state{key=\"k\\\"\"} 2");
}

#[test]
fn breakers_that_are_not_closed_come_first_and_the_rest_is_one() {
    let closed = (0..201).map(|number| row("breaker", "", &format!("c{number:03}"), "closed", 0));
    let others = [("z", "escalated"), ("y", "half_open")];
    let others = others.map(|(key, state)| row("breaker", "", key, state, 0));
    let text = exposition(closed.chain(others).collect(), 0);
    assert_eq!(text.matches("breaker_state{").count(), 201);
    has(&text, "breaker_state{key=\"z\"} 3");
    has(&text, "breaker_state{key=\"y\"} 1");
    has(&text, "breaker_state{key=\"other\"} 0");
    assert!(!text.contains("c200"));
    let open = (0..201).map(|number| row("breaker", "", &format!("o{number:03}"), "open", 0));
    has(&exposition(open.collect(), 0), "breaker_state{key=\"other\"} 2");
}

#[test]
fn the_timeout_rate_is_of_the_last_hour() {
    let samples = json!({"recent/100/timed_out": 1, "recent/100/completed": 1, "recent/111/completed": 2, "recent/112/timed_out": 1});
    let rate = |step: u64| {
        let text = exposition(vec![samples_row("", "", &samples)], step * 300_000 + 1);
        let line = text
            .lines()
            .find(|line| line.starts_with("workflow_executions_timeout_rate "));
        line.and_then(|line| line.split(' ').nth(1)?.parse::<f64>().ok())
            .expect("a rate")
    };
    assert_eq!(rate(112), 0.4);
    assert_eq!(rate(113), 1.0 / 3.0);
    assert_eq!(rate(124), 1.0);
    assert_eq!(rate(125), 0.0);
}

#[test]
fn a_row_that_cannot_be_read_hides_no_other() {
    let rows = vec![
        row("samples", "w", "n", "no JSON", 0),
        samples_row("", "", &json!({"starts": 7})),
    ];
    has(&exposition(rows, 0), "workflow_executions_started_total 7");
}

#[test]
fn the_sweep_has_samples_of_its_own() {
    let pass = SweepPass {
        ended_at: 5_000,
        duration_ms: 70,
        overdue: 2,
        others: 3,
        woken: 4,
    };
    let text = exposition(vec![samples_row("", "sweep", &samples::of_sweep(pass))], 0);
    for line in [
        "workflow_timeout_enforcer_cycle_duration_seconds_bucket{le=\"0.05\"} 0",
        "workflow_timeout_enforcer_cycle_duration_seconds_bucket{le=\"0.1\"} 1",
        "workflow_timeout_enforcer_overdue_total 2",
        "workflow_timeout_enforcer_woken_total 4",
        "workflow_timeout_enforcer_last_pass_timestamp_seconds 5",
    ] {
        has(&text, line);
    }
}

#[test]
fn samples_of_a_run_leave_out_what_is_zero() {
    let mut duration = Histogram::default();
    duration.add(&[10, 100], 10);
    duration.add(&[10, 100], 101);
    let metrics = RunMetrics {
        starts: 1,
        ends: BTreeMap::from([("failed".to_string(), 2)]),
        nodes: BTreeMap::from([("a".to_string(), duration)]),
        ..RunMetrics::default()
    };
    let text = |node: &str, name: &str, total| (node.to_string(), name.to_string(), total);
    assert_eq!(
        samples::of_run(&metrics),
        [
            text("", "ends/failed", 2),
            text("", "starts", 1),
            text("a", "10", 1),
            text("a", "inf", 1),
            text("a", "sum", 111),
        ]
    );
}

#[test]
fn a_run_with_many_nodes_fits_into_a_message() {
    let id = |number: usize| format!("{}{number:03}", "n".repeat(61));
    let nodes: Vec<Value> = (0..500).map(|number| json!({"id": id(number)})).collect();
    let transitions: Vec<Value> = (1..500)
        .map(|to| json!({"from_node_id": id(to - 1), "to_node_id": id(to)}))
        .collect();
    let run = Driver::start(json!({"nodes": nodes, "transitions": transitions}));
    let mut summary = RunSummary::of(&run.run, run.now);
    // As many totals as the named nodes and `other` can have.
    let mut full = Histogram::default();
    for bound in curfew::run::NODE_BOUNDS_MS.iter().chain([&u64::MAX]) {
        full.counts.insert(*bound, 1_000_000);
    }
    let metrics = summary.metrics.as_mut().expect("a new run has metrics");
    assert!(metrics.nodes.len() <= 101, "{}", metrics.nodes.len());
    metrics.nodes = (0..101).map(|number| (id(number), full.clone())).collect();
    let bytes = json!(summary).to_string().len();
    assert!(bytes < MESSAGE_BYTES / 2, "{bytes}");
}

#[test]
fn retries_of_all_attempts_count_once() {
    let document = json!({"nodes": [{"id": "a", "action_id": "work", "timeout_ms": 1_000, "on_timeout": "retry", "max_retries": 2}]});
    let mut run = Driver::start(document);
    let step = |retries: usize| {
        let retry = json!({"class": "server_error", "code": "http_500", "delay_ms": 1});
        json!([{"ref": "work", "status": "failed", "attempts": 1, "duration_ms": 1, "retries": vec![retry; retries]}])
    };
    let report_of = |status: &str, epoch: u64, steps: Value| json!({"token_id": "t1", "epoch": epoch, "status": status, "steps": steps});
    let report = |run: &mut Driver, now: u64, value: Value| {
        let report: TaskReport = serde_json::from_value(value).expect("a report");
        run.at(now).report(report);
    };
    report(&mut run, 2_000, report_of("timed_out", 1, step(2)));
    run.at(3_000).wake("");
    report(&mut run, 3_100, report_of("failed", 2, step(3)));
    let metrics = run.run.metrics().expect("it was never loaded");
    let class = |name: &str| metrics.retries.get(name).copied();
    assert_eq!((class("server_error"), class("timeout")), (Some(5), Some(1)));
    assert_eq!(metrics.timeouts.get("execution"), Some(&1));
}
