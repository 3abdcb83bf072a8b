//! Limits that follow what a node's last runs took, and the defaults they fall back to.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::base::time::{Limit, format_duration};
use crate::definition::snapshot::{Snapshot, StoredSnapshot};
use crate::definition::timeouts::{Preset, TimeoutLayer};
use crate::definition::workflow::NodeKind;

/// Fewer say nothing about a p99.
const SAMPLES_NEEDED: u64 = 20;
/// How many times the p99 a run may take.
const FACTOR: u64 = 3;

/// No learnt limit is shorter: a cold start of a quick task is not a timeout.
const LEAST_MS: u64 = 1_000;

/// What is known of a node's last runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    pub samples: u64,
    pub p99_ms: u64,
}

impl Latency {
    /// From what the last runs took, in any order.
    pub fn of(mut samples: Vec<u64>) -> Latency {
        samples.sort_unstable();
        // Nearest rank: the least that 99 of 100 did not exceed.
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
    /// The preset that counts for this workflow: its own, else the deployment's.
    pub fn effective_preset(&self) -> Preset {
        let own = self.workflow["timeouts"]["preset"].as_str();
        own.and_then(Preset::parse).unwrap_or(self.preset)
    }
}

impl Snapshot {
    /// Whose default and hard limit count for what `node` runs.
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

    /// What counts where a document says nothing.
    pub fn default_limit(&self, layer: TimeoutLayer) -> Limit {
        self.workflow.timeouts.default_limit(layer, self.stored.preset)
    }

    /// The limit of a node with `adaptive`, and why it is this one.
    pub fn adaptive_limit(&self, node: usize) -> (Limit, String) {
        let layer = self.layer_of(node);
        let node = &self.workflow.nodes[node];
        let known = self.stored.latencies.get(&node.id);
        let Some(known) = known.filter(|known| known.samples >= SAMPLES_NEEDED) else {
            let samples = known.map_or(0, |known| known.samples);
            let (limit, word) = self.limit_without_samples(layer);
            let reason = format!("adaptive: {samples} of {SAMPLES_NEEDED} samples, so {word}");
            return (limit, reason);
        };
        let reason = format!(
            "adaptive: {FACTOR} x p99 {} of {} samples",
            format_duration(known.p99_ms),
            known.samples
        );
        let learnt = known.p99_ms.saturating_mul(FACTOR);
        let millis = learnt.max(LEAST_MS);
        let reason = match learnt < LEAST_MS {
            true => format!("{reason}, raised to {}", format_duration(LEAST_MS)),
            false => reason,
        };
        match self.most_of(layer, node.allow_exceed_hard) {
            Some((most, name)) if millis > most => (
                Limit::After(most),
                format!("{reason}, cut to the {name} of {}", format_duration(most)),
            ),
            Some(_) | None => (Limit::After(millis), reason),
        }
    }

    fn limit_without_samples(&self, layer: TimeoutLayer) -> (Limit, String) {
        // The default of this workflow's own runs would replace the limit that the called one sets itself.
        if layer == TimeoutLayer::Flow {
            return (Limit::Unset, "the called workflow's own limit".into());
        }
        let limit = self.default_limit(layer);
        let word = match limit {
            Limit::After(millis) => format!("the default of {}", format_duration(millis)),
            Limit::Unset | Limit::Never => "no limit".into(),
        };
        (limit, word)
    }

    /// What an adaptive limit may come to at most: the hard limit, or the default where there is none.
    fn most_of(&self, layer: TimeoutLayer, exceeding: bool) -> Option<(u64, &'static str)> {
        match self.stored.effective_preset().hard_limit(layer) {
            Some(_) if exceeding => None,
            Some(hard) => Some((hard, "hard limit")),
            None => Some((self.default_limit(layer).millis()?, "default")),
        }
    }
}

/// Workflow and node id of every adaptive node, of the workflow and of those it calls, each once.
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
