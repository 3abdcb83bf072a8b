//! The text that Prometheus scrapes, from the rows of one statement. Pure.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Deserialize;

use crate::base::failure::FailureClass;
use crate::base::from_json::from_json;
use crate::base::ordered::sort_by;
use crate::base::time::Millis;
use crate::index::metrics::{BREAKERS_MAX, STEP_MS, STEPS, samples};
use crate::run::{LATENESS_BOUNDS_MS, NODE_BOUNDS_MS, OTHER, RUN_BOUNDS_MS, RunStatus, TimeoutScope};

pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A row of `SCRAPE`.
#[derive(Clone, Debug, Deserialize)]
pub struct Row {
    pub kind: String,
    pub workflow: String,
    pub node: String,
    pub text: String,
    pub number: u64,
}

type Samples = BTreeMap<String, u64>;

/// The node of the sweep's row.
const SWEEP: &str = "sweep";

#[derive(Default)]
struct Scraped {
    runs: Samples,
    sweep: Samples,
    nodes: Vec<(String, String, Samples)>,
    breakers: Vec<(String, String)>,
    parked: u64,
    parked_since: Option<Millis>,
}

impl Scraped {
    fn of(rows: Vec<Row>) -> Scraped {
        let mut scraped = Scraped::default();
        for row in rows {
            match row.kind.as_str() {
                "breaker" => scraped.breakers.push((row.node, row.text)),
                "parked" => scraped.parked = row.number,
                "parked_since" => scraped.parked_since = Some(row.number),
                // `samples`. A row that is no map of totals is of a newer build, and left out.
                _samples => {
                    let samples: Samples = from_json(&row.text).unwrap_or_default();
                    match (row.workflow.as_str(), row.node.as_str()) {
                        ("", "") => scraped.runs = samples,
                        ("", SWEEP) => scraped.sweep = samples,
                        _node => scraped.nodes.push((row.workflow, row.node, samples)),
                    }
                }
            }
        }
        scraped
    }
}

/// The exposition of all metrics at `now`.
pub fn exposition(rows: Vec<Row>, now: Millis) -> String {
    let scraped = Scraped::of(rows);
    let (runs, sweep) = (&scraped.runs, &scraped.sweep);
    let mut text = Text::default();
    text.counter(
        "workflow_executions_started_total",
        "Runs that were started, retried or restarted.",
    );
    text.value("workflow_executions_started_total", &[], total(runs, "starts"));

    let name = "workflow_executions_total";
    text.counter(
        name,
        "Runs that ended, by status. A run that is retried or restarted ends once more.",
    );
    for status in RunStatus::ALL.into_iter().filter(|status| status.is_terminal()) {
        let ends = total(runs, &format!("ends/{}", status.name()));
        text.value(name, &[("status", status.name())], ends);
    }

    let name = "workflow_executions_timed_out_total";
    text.counter(
        name,
        "Deadlines that were enforced, by the layer of the deadline.",
    );
    for layer in TimeoutScope::LAYERS {
        let timeouts = total(runs, &format!("timeouts/{layer}"));
        text.value(name, &[("timeout_type", layer)], timeouts);
    }

    let name = "workflow_timeout_enforcement_latency_seconds";
    text.histogram(name, "How late deadlines were enforced: fired - due.");
    text.buckets(name, &[], LATENESS_BOUNDS_MS, runs, "lateness/");

    let name = "workflow_executions_timeout_rate";
    text.gauge(
        name,
        "Share of the runs that ended within the last hour that ended as timed_out, 0 to 1.",
    );
    text.line(name, &[], &timeout_rate(runs, now).to_string());

    let name = "workflow_execution_duration_seconds";
    text.histogram(name, "From the start, retry or restart of a run to its end.");
    text.buckets(name, &[], RUN_BOUNDS_MS, runs, "duration/");

    let name = "node_execution_duration_seconds";
    text.histogram(name, "From the beginning of a node's last attempt to its end.");
    for (workflow, node, samples) in &scraped.nodes {
        let labels = [("workflow", workflow.as_str()), ("node", node.as_str())];
        text.buckets(name, &labels, NODE_BOUNDS_MS, samples, "");
    }

    let name = "action_retries_total";
    text.counter(
        name,
        "Calls that were repeated, by the class of the failure; timeout also: attempts.",
    );
    for class in FailureClass::NAMES {
        text.value(
            name,
            &[("class", class)],
            total(runs, &format!("retries/{class}")),
        );
    }

    for (name, help, sample) in [
        (
            "late_results_total",
            "Results that came after their attempt was over.",
            "late_results",
        ),
        (
            "dispatch_redelivered_total",
            "Dispatches that were repeated because no executor took them.",
            "redelivered",
        ),
        (
            "rows_written_total",
            "Rows that the objects of runs have written, alarms included. A lower bound.",
            "rows_written",
        ),
    ] {
        text.counter(name, help);
        text.value(name, &[], total(runs, sample));
    }

    let name = "workflow_executions_parked";
    text.gauge(name, "Runs that are paused or wait for a person as a whole.");
    text.value(name, &[], scraped.parked);
    if let Some(at) = scraped.parked_since {
        let name = "workflow_executions_parked_oldest_timestamp_seconds";
        text.gauge(name, "Since when the run is parked that has been for longest.");
        text.line(name, &[], &seconds(at));
    }

    let name = "breaker_state";
    text.gauge(
        name,
        "State of a circuit breaker: 0 closed, 1 half open, 2 open, 3 escalated.",
    );
    for (key, state) in shown_breakers(scraped.breakers) {
        text.value(name, &[("key", &key)], state);
    }

    let name = "workflow_timeout_enforcer_cycle_duration_seconds";
    text.histogram(name, "How long passes of the sweep took.");
    text.buckets(name, &[], samples::PASS_BOUNDS_MS, sweep, "pass/");
    for (name, help, sample) in [
        (
            "workflow_timeout_enforcer_overdue_total",
            "Runs that the sweep found after their deadline: their own alarm had not fired.",
            "overdue",
        ),
        (
            "workflow_timeout_enforcer_woken_total",
            "Objects of runs that answered the sweep, also those without recent updates.",
            "woken",
        ),
    ] {
        text.counter(name, help);
        text.value(name, &[], total(sweep, sample));
    }
    if let Some(at) = sweep.get("last/pass") {
        let name = "workflow_timeout_enforcer_last_pass_timestamp_seconds";
        text.gauge(name, "When the last pass of the sweep ended.");
        text.line(name, &[], &seconds(*at));
    }
    text.0
}

fn total(samples: &Samples, name: &str) -> u64 {
    samples.get(name).copied().unwrap_or(0)
}

/// Samples `recent/<step>/<status>` are the ends within a step of five minutes.
fn timeout_rate(runs: &Samples, now: Millis) -> f64 {
    let oldest = (now / STEP_MS).saturating_sub(STEPS);
    let (mut ends, mut timed_out) = (0, 0);
    for (name, count) in runs {
        let parts = name.strip_prefix("recent/").and_then(|rest| rest.split_once('/'));
        let Some((step, status)) = parts else {
            continue;
        };
        if step.parse::<u64>().is_ok_and(|step| step >= oldest) {
            ends += count;
            if status == RunStatus::TimedOut.name() {
                timed_out += count;
            }
        }
    }
    match ends {
        0 => 0.0,
        ends => timed_out as f64 / ends as f64,
    }
}

/// Breakers that are not closed come first. The worst of those that have no series of their own is `other`.
fn shown_breakers(breakers: Vec<(String, String)>) -> Vec<(String, u64)> {
    let mut states: Vec<(String, u64)> = breakers
        .into_iter()
        .map(|(key, state)| (key, state_number(&state)))
        .collect();
    sort_by(&mut states, |(key, state), (other_key, other)| {
        (*state == 0, key).cmp(&(*other == 0, other_key))
    });
    let rest = states.split_off(states.len().min(BREAKERS_MAX));
    if let Some(worst) = rest.iter().map(|(_, state)| *state).max() {
        states.push((OTHER.to_string(), worst));
    }
    states
}

fn state_number(state: &str) -> u64 {
    match state {
        "closed" => 0,
        "half_open" => 1,
        "open" => 2,
        // `escalated`, or a state of a newer build.
        _worse => 3,
    }
}

fn seconds(millis: u64) -> String {
    match millis % 1_000 {
        0 => (millis / 1_000).to_string(),
        rest => {
            let text = format!("{}.{rest:03}", millis / 1_000);
            text.trim_end_matches('0').to_string()
        }
    }
}

/// The text format of Prometheus.
#[derive(Default)]
struct Text(String);

impl Text {
    fn counter(&mut self, name: &str, help: &str) {
        self.head(name, help, "counter");
    }

    fn gauge(&mut self, name: &str, help: &str) {
        self.head(name, help, "gauge");
    }

    fn histogram(&mut self, name: &str, help: &str) {
        self.head(name, help, "histogram");
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        // Writing to a text does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn value(&mut self, name: &str, labels: &[(&str, &str)], value: u64) {
        self.line(name, labels, &value.to_string());
    }

    /// A sample `<prefix><bound>` counts what is within its bound and above the one before; Prometheus wants all that is within.
    fn buckets(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        bounds: &[u64],
        samples: &Samples,
        prefix: &str,
    ) {
        let of_bound = |sample: &str| match sample.strip_prefix(prefix)? {
            "inf" => Some(u64::MAX),
            bound => bound.parse().ok(),
        };
        let counts: Vec<(u64, u64)> = samples
            .iter()
            .filter_map(|(sample, count)| Some((of_bound(sample)?, *count)))
            .collect();
        let within = |bound: u64| -> u64 {
            let counts = counts.iter().filter(|(of, _)| *of <= bound);
            counts.map(|(_, count)| count).sum()
        };
        let bucket = format!("{name}_bucket");
        for bound in bounds {
            let le = seconds(*bound);
            self.value(&bucket, &[labels, &[("le", &le)]].concat(), within(*bound));
        }
        let all = within(u64::MAX);
        self.value(&bucket, &[labels, &[("le", "+Inf")]].concat(), all);
        let sum = total(samples, &format!("{prefix}sum"));
        self.line(&format!("{name}_sum"), labels, &seconds(sum));
        self.value(&format!("{name}_count"), labels, all);
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: &str) {
        self.0.push_str(name);
        for (index, (label, text)) in labels.iter().enumerate() {
            self.0.push(if index == 0 { '{' } else { ',' });
            self.0.push_str(label);
            self.0.push_str("=\"");
            for character in text.chars() {
                match character {
                    '\\' => self.0.push_str("\\\\"),
                    '"' => self.0.push_str("\\\""),
                    '\n' => self.0.push_str("\\n"),
                    other => self.0.push(other),
                }
            }
            self.0.push('"');
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        self.0.push(' ');
        self.0.push_str(value);
        self.0.push('\n');
    }
}
