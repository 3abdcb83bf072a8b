//! What a node usually takes. The object does not know it: the API adds it from the index.

use serde_json::{Value, json};

use crate::base::time::format_duration;

/// Fewer durations than these say nothing about a node.
pub const SAMPLES_NEEDED: u64 = 5;

/// Before the index was asked.
pub(super) fn unasked(workflow_id: &str, node_id: Option<&str>) -> Value {
    let reason = match node_id {
        Some(_) => "the index was not asked",
        None => "the timeout is of no node",
    };
    json!({
        "workflow_id": workflow_id,
        "node_id": node_id,
        "samples": 0,
        "p50_ms": null,
        "p99_ms": null,
        "source": null,
        "reason": reason,
    })
}

/// Workflow and node whose durations the index is to be asked for.
pub fn subject(view: &Value) -> Option<(String, String)> {
    let usual = &view["why"]["usual"];
    let text = |name: &str| usual[name].as_str().map(str::to_string);
    Some((text("workflow_id")?, text("node_id")?))
}

/// Durations of a node, from one of the two tables of the index that have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Percentiles {
    /// Exact, of its last runs that completed: only nodes with an adaptive limit have them.
    Latencies { samples: u64, p50_ms: u64, p99_ms: u64 },
    /// Upper bounds of the buckets of the metrics. `None`: above the last one.
    Metrics {
        samples: u64,
        p50_ms: Option<u64>,
        p99_ms: Option<u64>,
    },
}

impl Percentiles {
    fn samples(self) -> u64 {
        match self {
            Percentiles::Latencies { samples, .. } | Percentiles::Metrics { samples, .. } => samples,
        }
    }

    /// The exact ones where there are enough of them, else those with more samples. `None`: there are none.
    pub fn better(latencies: Percentiles, metrics: Option<Percentiles>) -> Option<Percentiles> {
        let metrics = metrics.filter(|metrics| {
            latencies.samples() < SAMPLES_NEEDED && metrics.samples() > latencies.samples()
        });
        metrics.or(Some(latencies)).filter(|it| it.samples() > 0)
    }

    /// From the last durations, in any order.
    pub fn of_latencies(mut millis: Vec<u64>) -> Percentiles {
        millis.sort_unstable();
        let nearest = |percent: usize| {
            let rank = (millis.len() * percent).div_ceil(100);
            rank.checked_sub(1)
                .and_then(|at| millis.get(at))
                .copied()
                .unwrap_or(0)
        };
        Percentiles::Latencies {
            samples: millis.len() as u64,
            p50_ms: nearest(50),
            p99_ms: nearest(99),
        }
    }

    /// From the samples of a node in the metrics: how many durations were up to each bound, and `inf`.
    pub fn of_metrics(samples: &Value) -> Percentiles {
        let mut counts: Vec<(u64, u64)> = samples
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(name, count)| {
                let bound = if name == "inf" {
                    Some(u64::MAX)
                } else {
                    name.parse().ok()
                };
                Some((bound?, count.as_u64()?))
            })
            .collect();
        counts.sort_unstable();
        let samples = counts.iter().map(|(_, count)| count).sum::<u64>();
        let bound_of = |percent: u64| {
            let rank = (samples * percent).div_ceil(100);
            let mut seen = 0;
            let bucket = counts.iter().find(|(_, count)| {
                seen += count;
                seen >= rank
            });
            bucket.map(|(bound, _)| *bound).filter(|bound| *bound != u64::MAX)
        };
        Percentiles::Metrics {
            samples,
            p50_ms: bound_of(50),
            p99_ms: bound_of(99),
        }
    }
}

/// Adds to the view of a record what the index answered. An error is said, and the rest of the view stays.
pub fn add_usual(view: &mut Value, found: Result<Option<Percentiles>, ()>) {
    let usual = &mut view["why"]["usual"];
    let (samples, p50_ms, p99_ms, source, reason) = match found {
        Err(()) => (
            0,
            None,
            None,
            None,
            Some("the index did not answer; ask again".to_string()),
        ),
        Ok(None) => (
            0,
            None,
            None,
            None,
            Some("the index has no durations of this node yet".to_string()),
        ),
        Ok(Some(Percentiles::Latencies { samples, .. } | Percentiles::Metrics { samples, .. }))
            if samples < SAMPLES_NEEDED =>
        {
            let reason = format!("the index has {samples} of the {SAMPLES_NEEDED} durations that are needed");
            (samples, None, None, None, Some(reason))
        }
        Ok(Some(Percentiles::Latencies {
            samples,
            p50_ms,
            p99_ms,
        })) => (samples, Some(p50_ms), Some(p99_ms), Some("latencies"), None),
        Ok(Some(Percentiles::Metrics {
            samples,
            p50_ms,
            p99_ms,
        })) => {
            let reason = "upper bounds: the metrics count durations in buckets, with those of attempts that timed out; a node with \
                 an adaptive limit has exact ones";
            (samples, p50_ms, p99_ms, Some("metrics"), Some(reason.to_string()))
        }
    };
    let p99_ms: Option<u64> = p99_ms;
    usual["samples"] = json!(samples);
    usual["p50_ms"] = json!(p50_ms);
    usual["p99_ms"] = json!(p99_ms);
    usual["source"] = json!(source);
    usual["reason"] = json!(reason);
    let why = &mut view["why"];
    if let (true, Some(p99_ms), Some(known)) = (
        why["smallest_limit_ms"].is_null(),
        p99_ms,
        why["smallest_limit_reason"].as_str(),
    ) {
        let most = format_duration(p99_ms);
        why["smallest_limit_reason"] = json!(format!(
            "{known}; 99 of 100 of the node's runs took {most} at most"
        ));
    }
}
