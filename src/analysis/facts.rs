//! What is known of every run of a workflow before it starts.

use serde::Serialize;

use crate::analysis::bounds::UNBOUNDED;
use crate::analysis::called::Called;
use crate::analysis::graph::Graph;
use crate::analysis::node_bounds::{NodeBounds, without_end};
use crate::analysis::price::{Awake, dollars};
use crate::analysis::run_bounds::RunBounds;
use crate::base::time::format_duration;
use crate::definition::snapshot::Snapshot;
use crate::run::Settings;

/// One attempt of the run, which nobody pauses, extends, retries or restarts, with executors and messages that are on time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Facts {
    pub ends: Ends,
    /// `None`: no bound is known; `ends` says why.
    pub duration_max_ms: Option<u64>,
    /// Tokens that live at once.
    pub tokens_alive_max: u64,
    /// Tokens that are created.
    pub tokens_max: u64,
    pub rows_written: Range<u64>,
    pub dollars: Range<f64>,
    pub longest_wait: LongestWait,
}

/// Whether every run ends without help.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ends {
    pub surely: bool,
    pub reason: String,
    /// The node that makes it unsure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
}

/// For a run in which all goes well, and for the dearest one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Range<T> {
    pub happy: Option<T>,
    pub worst: Option<T>,
}

/// The longest time in which nothing is decided.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LongestWait {
    pub ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
}

impl Facts {
    pub fn of(
        snapshot: &Snapshot,
        settings: &Settings,
        called: &Called,
        graph: &Graph,
        bounds: &RunBounds,
        nodes: &[NodeBounds],
    ) -> Facts {
        let duration_ms = bounds.duration_ms();
        let tags = snapshot.workflow.tags.len();
        Facts {
            ends: ends(snapshot, called, graph, bounds, nodes),
            duration_max_ms: known(duration_ms),
            tokens_alive_max: bounds.width,
            tokens_max: bounds.cost.tokens.min(snapshot.workflow.limits.tokens_total),
            rows_written: Range {
                happy: known(bounds.happy.rows),
                worst: known(bounds.cost.rows),
            },
            dollars: Range {
                happy: dollars(bounds.happy, tags, settings.queue, Awake::DuringCalls),
                worst: dollars(
                    bounds.cost,
                    tags,
                    settings.queue,
                    Awake::AfterEvents {
                        run_ms: bounds.longest_run_ms,
                    },
                ),
            },
            longest_wait: longest_wait(graph, bounds, nodes),
        }
    }
}

fn known(value: u64) -> Option<u64> {
    (value != UNBOUNDED).then_some(value)
}

fn ends(
    snapshot: &Snapshot,
    called: &Called,
    graph: &Graph,
    bounds: &RunBounds,
    nodes: &[NodeBounds],
) -> Ends {
    let is_sure = bounds.duration_ms() != UNBOUNDED;
    let surely = |reason: String| Ends {
        surely: true,
        reason,
        pointer: None,
    };
    if let (true, Some(limit_ms)) = (
        is_sure,
        bounds.limit_ms.filter(|_| bounds.may_pass(bounds.limit_ms)),
    ) {
        let limit = format_duration(limit_ms);
        let stopped = match bounds.stops_at_gates && bounds.path.person_ms > 0 {
            true => format!(
                ", and {} at gates, where its clock stands,",
                format_duration(bounds.path.person_ms)
            ),
            false => String::new(),
        };
        return surely(match bounds.opens_gate {
            true => format!(
                "its limit of {limit}{stopped} opens a gate, whose deadline of {} ends the run",
                format_duration(bounds.gate_ms)
            ),
            false => format!("its limit of {limit}{stopped} ends it"),
        });
    }
    if is_sure {
        return surely("every path has an end, and everything it waits for has a deadline".into());
    }
    let reached = (0..graph.node_count).filter(|node| graph.reachable[*node]);
    let stops = bounds.limit_ms.is_some() && bounds.stops_at_gates;
    let is_cause = |node: &usize| match stops {
        // The limit ends everything else.
        true => nodes[*node].person_ms == UNBOUNDED,
        false => nodes[*node].time_ms == UNBOUNDED,
    };
    let cause = reached.into_iter().find(is_cause);
    let sentence = cause.and_then(|node| match called.is_recursive(node) {
        true => Some(format!(
            "node \"{}\" calls a workflow that may call itself",
            snapshot.workflow.nodes[node].id
        )),
        false => without_end(&snapshot.workflow.nodes[node], &nodes[node]),
    });
    let sentence = sentence.unwrap_or_else(|| "the sum of its waits has no bound".into());
    let around = match stops {
        true => "the clock of the run stands still meanwhile",
        false => "the workflow has no timeout",
    };
    Ends {
        surely: false,
        reason: format!("{sentence}, and {around}"),
        pointer: cause.map(|node| format!("/nodes/{node}")),
    }
}

fn longest_wait(graph: &Graph, bounds: &RunBounds, nodes: &[NodeBounds]) -> LongestWait {
    let reached = (0..graph.node_count).filter(|node| graph.reachable[*node]);
    let longest = reached.max_by_key(|node| (nodes[*node].wait_ms, std::cmp::Reverse(*node)));
    let pointer = |node: Option<usize>| node.map(|node| format!("/nodes/{node}"));
    // The end of the run is a decision.
    let of_node = longest
        .map_or(0, |node| nodes[node].wait_ms)
        .min(match bounds.limit_ms {
            Some(limit_ms) => bounds.at_limit_ms(limit_ms),
            None => UNBOUNDED,
        });
    let ending = &bounds.ending;
    let mut waits = vec![
        (of_node, pointer(longest)),
        (ending.wait_ms, ending.pointer.clone()),
    ];
    if bounds.may_pass(bounds.limit_ms) {
        waits.push((ending.settling_ms, pointer(ending.settling_node)));
        if bounds.opens_gate {
            waits.push((bounds.gate_ms, Some("/gate".into())));
        }
    }
    // The first of the longest.
    let (ms, pointer) = waits
        .into_iter()
        .rev()
        .max_by_key(|(ms, _)| *ms)
        .unwrap_or_default();
    LongestWait {
        ms: known(ms),
        pointer: pointer.filter(|_| ms > 0),
    }
}
