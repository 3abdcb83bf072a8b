//! The totals of a run, and of a pass of the sweep, as the samples that the `metrics` table holds.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::base::time::Millis;
use crate::index::run_summary::RunSummary;
use crate::run::{Histogram, RunMetrics};

/// The name of a histogram's sample: its upper bound in milliseconds, or `inf`, or `sum` in milliseconds.
fn bound_name(bound: u64) -> String {
    match bound {
        u64::MAX => "inf".to_string(),
        bound => bound.to_string(),
    }
}

fn histogram_samples(prefix: &str, histogram: &Histogram) -> Vec<(String, u64)> {
    let mut samples: Vec<(String, u64)> = histogram
        .counts
        .iter()
        .map(|(bound, count)| (format!("{prefix}{}", bound_name(*bound)), *count))
        .collect();
    samples.push((format!("{prefix}sum"), histogram.sum_ms));
    samples
}

/// `[node, sample, total]` of each sample. Totals of zero are left out.
pub fn of_run(metrics: &RunMetrics) -> Vec<(String, String, u64)> {
    let mut samples: Vec<(String, u64)> = Vec::new();
    for (group, counts) in [
        ("ends", &metrics.ends),
        ("timeouts", &metrics.timeouts),
        ("retries", &metrics.retries),
    ] {
        samples.extend(
            counts
                .iter()
                .map(|(name, count)| (format!("{group}/{name}"), *count)),
        );
    }
    samples.extend([
        ("starts".to_string(), metrics.starts),
        ("late_results".to_string(), metrics.late_results),
        ("redelivered".to_string(), metrics.redelivered),
        ("rows_written".to_string(), metrics.rows_written),
    ]);
    samples.extend(histogram_samples("duration/", &metrics.duration));
    samples.extend(histogram_samples("lateness/", &metrics.lateness));
    let of_nodes = metrics.nodes.iter().flat_map(|(node, histogram)| {
        let samples = histogram_samples("", histogram).into_iter();
        samples.map(|(name, total)| (node.clone(), name, total))
    });
    let of_run = samples
        .into_iter()
        .map(|(name, total)| (String::new(), name, total));
    of_run
        .chain(of_nodes)
        .filter(|(_, _, total)| *total > 0)
        .collect()
}

/// A summary as the statements of the index read it.
pub fn row(summary: &RunSummary) -> Value {
    let mut row = json!(summary);
    if let Some(metrics) = &summary.metrics {
        row["metrics"] = json!(of_run(metrics));
    }
    row
}

/// One pass of the sweep.
#[derive(Clone, Copy, Debug, Default)]
pub struct SweepPass {
    pub ended_at: Millis,
    pub duration_ms: u64,
    /// Runs whose end was due.
    pub overdue: u64,
    /// Runs without recent updates, and runs whose retention is over.
    pub others: u64,
    /// Objects that responded.
    pub woken: u64,
}

/// Upper bounds of how long a pass takes. A pass starts no probe after 40 s.
pub const PASS_BOUNDS_MS: &[u64] = &[10, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000];

pub fn of_sweep(pass: SweepPass) -> Value {
    let mut duration = Histogram::default();
    duration.add(PASS_BOUNDS_MS, pass.duration_ms);
    let mut samples: BTreeMap<String, u64> = histogram_samples("pass/", &duration).into_iter().collect();
    samples.extend([
        ("overdue".to_string(), pass.overdue),
        ("others".to_string(), pass.others),
        ("woken".to_string(), pass.woken),
        ("last/pass".to_string(), pass.ended_at),
    ]);
    json!(samples)
}
