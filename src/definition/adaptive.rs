//! Limits that follow the durations of a node's last runs, and the defaults that apply before there are enough samples.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::base::time::{Limit, format_duration};
use crate::definition::node::NodeKind;
use crate::definition::snapshot::{Snapshot, StoredSnapshot};
use crate::definition::timeouts::{Preset, TimeoutLayer};

/// A p99 of fewer samples means nothing.
const SAMPLES_NEEDED: u64 = 20;
/// The limit is this multiple of the p99.
const FACTOR: u64 = 3;

/// An adaptive limit is at least this long, so that the cold start of a quick task is not a timeout.
const MIN_MS: u64 = 1_000;

/// The durations of a node's last runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    pub samples: u64,
    pub p99_ms: u64,
}

impl Latency {
    /// From the durations of the last runs, in any order.
    pub fn of(mut samples: Vec<u64>) -> Latency {
        samples.sort_unstable();
        // The nearest-rank percentile.
        let rank = (samples.len() * 99).div_ceil(100);
        Latency {
            samples: samples.len() as u64,
            p99_ms: rank
                .checked_sub(1)
                .and_then(|at| samples.get(at))
                .copied()
                .unwrap_or(0),
        }
    }
}

impl StoredSnapshot {
    /// The workflow's own preset, else the deployment's.
    pub fn effective_preset(&self) -> Preset {
        let own = self.workflow["timeouts"]["preset"].as_str();
        own.and_then(Preset::parse).unwrap_or(self.preset)
    }
}

impl Snapshot {
    /// The layer whose default and hard limit apply to `node`.
    pub fn layer_of(&self, node: usize) -> TimeoutLayer {
        match self.workflow.nodes[node].kind {
            NodeKind::Workflow { .. } => TimeoutLayer::Flow,
            NodeKind::Task { .. } | NodeKind::Action { .. } => self
                .task_of(node)
                .and_then(|task| task.task.only_action())
                .map_or(TimeoutLayer::Step, |action| action.kind.layer()),
            NodeKind::Gate(_) | NodeKind::Wait(_) | NodeKind::PassThrough => TimeoutLayer::Step,
        }
    }

    /// The limit that applies if a document sets none.
    pub fn default_limit(&self, layer: TimeoutLayer) -> Limit {
        self.workflow.timeouts.default_limit(layer, self.stored.preset)
    }

    /// The limit of a node with an adaptive timeout, and its explanation.
    pub fn adaptive_limit(&self, node: usize) -> (Limit, String) {
        let layer = self.layer_of(node);
        let node = &self.workflow.nodes[node];
        let known = self.stored.latencies.get(&node.id);
        let Some(known) = known.filter(|known| known.samples >= SAMPLES_NEEDED) else {
            let samples = known.map_or(0, |known| known.samples);
            let (limit, fallback) = self.limit_without_samples(layer);
            let reason = format!("adaptive: {samples} of {SAMPLES_NEEDED} samples, so {fallback}");
            return (limit, reason);
        };
        let reason = format!(
            "adaptive: {FACTOR} x p99 {} of {} samples",
            format_duration(known.p99_ms),
            known.samples
        );
        let adaptive = known.p99_ms.saturating_mul(FACTOR);
        let millis = adaptive.max(MIN_MS);
        let reason = match adaptive < MIN_MS {
            true => format!("{reason}, raised to {}", format_duration(MIN_MS)),
            false => reason,
        };
        match self.upper_bound(layer, node.allow_exceed_hard) {
            Some((max, name)) if millis > max => (
                Limit::After(max),
                format!("{reason}, cut to the {name} of {}", format_duration(max)),
            ),
            Some(_) | None => (Limit::After(millis), reason),
        }
    }

    fn limit_without_samples(&self, layer: TimeoutLayer) -> (Limit, String) {
        // The default of this workflow must not replace the limit of the called workflow.
        if layer == TimeoutLayer::Flow {
            return (Limit::Unset, "the called workflow's own limit".into());
        }
        let limit = self.default_limit(layer);
        let fallback = match limit {
            Limit::After(millis) => format!("the default of {}", format_duration(millis)),
            Limit::Unset | Limit::Never => "no limit".into(),
        };
        (limit, fallback)
    }

    /// The longest adaptive limit: the hard limit, or the default if there is none.
    fn upper_bound(&self, layer: TimeoutLayer, may_exceed_hard: bool) -> Option<(u64, &'static str)> {
        match self.stored.effective_preset().hard_limit(layer) {
            Some(_) if may_exceed_hard => None,
            Some(hard) => Some((hard, "hard limit")),
            None => Some((self.default_limit(layer).millis()?, "default")),
        }
    }
}

/// Workflow id and node id of every adaptive node in the workflow and in those it calls, each once.
pub fn adaptive_nodes(stored: &StoredSnapshot) -> Vec<(String, String)> {
    let mut found = BTreeSet::new();
    for workflow in std::iter::once(stored)
        .chain(&stored.children)
        .map(|one| &one.workflow)
    {
        for node in workflow["nodes"].as_array().into_iter().flatten() {
            if node["timeout"].as_str() == Some("adaptive")
                && let (Some(workflow), Some(node)) = (workflow["id"].as_str(), node["id"].as_str())
            {
                found.insert((workflow.to_string(), node.to_string()));
            }
        }
    }
    found.into_iter().collect()
}
