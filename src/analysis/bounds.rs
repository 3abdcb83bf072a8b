//! The most that all tokens of a run can take, from what each takes at its node: the sum over all tokens, and how many live at
//! once. The longest way to the end is in `longest`.
//!
//! Every part of the graph is looked at once, those that others lead to first. A part with a cycle is taken as often as its
//! transitions may fire; where that says nothing, the run's own limit of tokens is the bound.

use crate::analysis::graph::{Graph, Tier};
use crate::analysis::loops::{Loops, Part};
use crate::definition::transition::TransitionOn;

/// No bound is known.
pub const UNBOUNDED: u64 = u64::MAX;

/// What tokens cost. Sums never overflow; a sum without a bound is `UNBOUNDED`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    pub tokens: u64,
    /// Rows written in the object of the run, and of the runs it calls.
    pub rows: u64,
    /// How long calls to executors are open, which keeps the object in memory.
    pub open_ms: u64,
    /// Attempts, each with a call to an executor.
    pub calls: u64,
    /// Alarms that look after attempts, and heartbeats of attempts.
    pub checks: u64,
    /// Changes that the index of runs learns of.
    pub publications: u64,
    /// Runs, with all that are called.
    pub runs: u64,
}

impl Cost {
    fn map2(self, other: Cost, apply: impl Fn(u64, u64) -> u64) -> Cost {
        Cost {
            tokens: apply(self.tokens, other.tokens),
            rows: apply(self.rows, other.rows),
            open_ms: apply(self.open_ms, other.open_ms),
            calls: apply(self.calls, other.calls),
            checks: apply(self.checks, other.checks),
            publications: apply(self.publications, other.publications),
            runs: apply(self.runs, other.runs),
        }
    }

    pub fn plus(self, other: Cost) -> Cost {
        self.map2(other, u64::saturating_add)
    }

    pub fn max(self, other: Cost) -> Cost {
        self.map2(other, u64::max)
    }

    pub fn min(self, other: Cost) -> Cost {
        self.map2(other, u64::min)
    }

    pub fn times(self, count: u64) -> Cost {
        self.map2(self, |value, _| value.saturating_mul(count))
    }

    pub const UNBOUNDED: Cost = Cost {
        tokens: UNBOUNDED,
        rows: UNBOUNDED,
        open_ms: UNBOUNDED,
        calls: UNBOUNDED,
        checks: UNBOUNDED,
        publications: UNBOUNDED,
        runs: UNBOUNDED,
    };
}

/// What a sum assumes about a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assume {
    /// Every transition that may fire fires, every loop runs as often as it may.
    Worst,
    /// Only success transitions, no transition closes a loop, and a list of unknown length has one item.
    Happy,
}

pub struct Bounds<'a> {
    pub graph: &'a Graph<'a>,
    pub loops: Loops,
}

impl<'a> Bounds<'a> {
    pub fn new(graph: &'a Graph<'a>) -> Bounds<'a> {
        Bounds {
            graph,
            loops: Loops::new(graph),
        }
    }

    pub(super) fn tokens_total(&self) -> u64 {
        self.graph.workflow.limits.tokens_total
    }

    pub(super) fn is_inner(&self, part: &Part, node: usize) -> bool {
        self.loops.part_of[node] == self.loops.part_of[part.nodes[0]]
    }

    /// The sum over all tokens of what each costs at its node.
    pub fn total(&self, costs: &[Cost], assume: Assume) -> Cost {
        let mut total = vec![Cost::default(); self.graph.node_count];
        for part in &self.loops.parts {
            self.count_steps(part);
            if !part.is_loop() {
                let node = part.nodes[0];
                let after = self.graph.tiers[node]
                    .iter()
                    .filter(|tier| is_assumed(tier, assume))
                    .map(|tier| cost_of_tier(tier, &total, assume, &|_| true))
                    .fold(Cost::default(), Cost::max);
                total[node] = costs[node].plus(after);
                continue;
            }
            match assume {
                Assume::Worst => {
                    let value = self.total_of_loop(part, costs, &total);
                    for &node in &part.nodes {
                        total[node] = value;
                    }
                }
                Assume::Happy => self.one_round(part, costs, &mut total),
            }
        }
        let reachable = (0..self.graph.node_count).filter(|node| self.graph.reachable[*node]);
        let dearest = reachable.map(|node| costs[node]).fold(Cost::default(), Cost::max);
        total[self.graph.workflow.initial_node].min(dearest.times(self.tokens_total()))
    }

    fn total_of_loop(&self, part: &Part, costs: &[Cost], total: &[Cost]) -> Cost {
        let mut longest = Cost::default();
        let mut per_visit = vec![Cost::default(); self.graph.node_count];
        for &node in &part.nodes {
            let mut leaving = Cost::default();
            for tier in &self.graph.tiers[node] {
                if self.inner_tokens(part, tier) > 1 {
                    return Cost::UNBOUNDED;
                }
                let is_outer = |to: usize| !self.is_inner(part, to);
                leaving = leaving.max(cost_of_tier(tier, total, Assume::Worst, &is_outer));
            }
            per_visit[node] = costs[node].plus(leaving);
        }
        let mut best = vec![Cost::default(); self.graph.node_count];
        let mut after = vec![Cost::default(); self.graph.node_count];
        let mut kept: Vec<Vec<usize>> = vec![Vec::new(); self.graph.node_count];
        for (edge, is_closing) in part.inner.iter().zip(&part.closing) {
            if !is_closing {
                kept[edge.from].push(edge.to);
            }
        }
        for &node in &part.finished {
            for &to in &kept[node] {
                after[node] = after[node].max(best[to]);
            }
            best[node] = per_visit[node].plus(after[node]);
            longest = longest.max(best[node]);
        }
        longest.times(part.rounds)
    }

    /// Each node of a loop once, in the order of its transitions.
    fn one_round(&self, part: &Part, costs: &[Cost], total: &mut [Cost]) {
        let mut closing: Vec<Vec<usize>> = vec![Vec::new(); self.graph.node_count];
        for (edge, is_closing) in part.inner.iter().zip(&part.closing) {
            if *is_closing {
                closing[edge.from].push(edge.to);
            }
        }
        let mut is_closed = vec![false; self.graph.node_count];
        for &node in &part.finished {
            self.graph.steps.add(closing[node].len());
            closing[node].iter().for_each(|&to| is_closed[to] = true);
            let follows = |to: usize| !is_closed[to];
            let after = self.graph.tiers[node]
                .iter()
                .filter(|tier| is_assumed(tier, Assume::Happy))
                .map(|tier| cost_of_tier(tier, total, Assume::Happy, &follows))
                .fold(Cost::default(), Cost::max);
            total[node] = costs[node].plus(after);
            closing[node].iter().for_each(|&to| is_closed[to] = false);
        }
    }

    /// How many tokens of the part a tier creates at most from one.
    pub(super) fn inner_tokens(&self, part: &Part, tier: &Tier) -> u64 {
        let plain = tier
            .plain
            .iter()
            .filter(|(_, to)| self.is_inner(part, *to))
            .count() as u64;
        let fans = tier.fans.iter().map(|fan| {
            let spawns = fan.spawns.iter().filter(|spawn| self.is_inner(part, spawn.to));
            let joins = fan.join_nodes.iter().filter(|to| self.is_inner(part, **to));
            spawns.map(|spawn| spawn.count).sum::<u64>() + joins.count() as u64
        });
        plain + fans.sum::<u64>()
    }

    /// The most tokens that live at once. `tokens` is the most that are created.
    pub fn width(&self, tokens: u64) -> u64 {
        let mut width = vec![0u64; self.graph.node_count];
        for part in &self.loops.parts {
            self.count_steps(part);
            let widths = part.nodes.iter().map(|&node| self.width_at(part, node, &width));
            let value = widths.max().unwrap_or(1);
            for &node in &part.nodes {
                width[node] = value;
            }
        }
        let limits = self.graph.workflow.limits;
        let width = width[self.graph.workflow.initial_node];
        width
            .min(tokens)
            .min(limits.tokens_active)
            .min(limits.tokens_total)
    }

    fn width_at(&self, part: &Part, node: usize, width: &[u64]) -> u64 {
        let is_inner = |to: usize| part.is_loop() && self.is_inner(part, to);
        let outer = |to: usize| match is_inner(to) {
            true => 0,
            false => width[to],
        };
        let mut widest = 1u64;
        for tier in &self.graph.tiers[node] {
            let inner = match part.is_loop() {
                true => self.inner_tokens(part, tier),
                false => 0,
            };
            let mut sum = u64::from(tier.may_wait);
            for &(_, to) in &tier.plain {
                sum = sum.saturating_add(outer(to));
            }
            let mut branches_at_once = 0u64;
            for fan in &tier.fans {
                let of_spawns = fan
                    .spawns
                    .iter()
                    .map(|spawn| outer(spawn.to).saturating_mul(spawn.count));
                let branches = of_spawns.fold(0u64, u64::saturating_add);
                let joined = fan.join_nodes.iter().map(|&to| outer(to)).max().unwrap_or(0);
                let goes_on_inside = fan.join_nodes.iter().any(|&to| is_inner(to));
                match (goes_on_inside, fan.merges_late) {
                    // The branches are over when the token goes on.
                    (true, false) => branches_at_once = branches_at_once.max(branches),
                    (_, true) => sum = sum.saturating_add(branches).saturating_add(joined),
                    (false, false) => sum = sum.saturating_add(branches.max(joined)),
                }
            }
            widest = widest.max(match inner {
                0 => sum,
                // One token goes on in the loop and leaves nothing behind.
                1 if sum == 0 => branches_at_once.max(1),
                _leaves_tokens_behind => UNBOUNDED,
            });
        }
        widest
    }

    pub(super) fn count_steps(&self, part: &Part) {
        let routes = part.nodes.iter().map(|&node| self.graph.routes[node].len());
        self.graph
            .steps
            .add(part.nodes.len() + routes.sum::<usize>() + part.inner.len());
    }
}

fn is_assumed(tier: &Tier, assume: Assume) -> bool {
    match assume {
        Assume::Worst => true,
        Assume::Happy => tier.on == TransitionOn::Success,
    }
}

/// The cost of what a tier creates, as far as `follows` accepts where it leads.
fn cost_of_tier(tier: &Tier, total: &[Cost], assume: Assume, follows: &dyn Fn(usize) -> bool) -> Cost {
    let at = |to: usize| match follows(to) {
        true => total[to],
        false => Cost::default(),
    };
    let mut cost = Cost::default();
    for &(_, to) in &tier.plain {
        cost = cost.plus(at(to));
    }
    for fan in &tier.fans {
        for spawn in &fan.spawns {
            let count = match (assume, spawn.is_from_data) {
                (Assume::Happy, true) => 1,
                (Assume::Happy, false) | (Assume::Worst, _) => spawn.count,
            };
            cost = cost.plus(at(spawn.to).times(count));
        }
        for &to in fan.join_nodes.iter() {
            cost = cost.plus(at(to));
        }
    }
    cost
}
