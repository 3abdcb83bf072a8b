//! The longest way from the start of a run to its end.

use crate::analysis::bounds::Bounds;
use crate::analysis::graph::{Fan, Quorum, Tier};
use crate::analysis::loops::{Part, Via};
use crate::analysis::span::Span;

/// What every node takes, and what follows from a token at it as far as it is known.
struct Ways<'a> {
    nodes: &'a [Span],
    spans: Vec<Span>,
}

impl Bounds<'_> {
    /// The longest stretch from the start until no token is left, if a token takes `nodes` at its node.
    pub fn longest(&self, nodes: &[Span]) -> Span {
        let mut ways = Ways {
            nodes,
            spans: vec![Span::default(); self.graph.node_count],
        };
        for part in &self.loops.parts {
            self.count_steps(part);
            let span = match part.is_loop() {
                true => self.longest_in_loop(part, &ways),
                false => {
                    let node = part.nodes[0];
                    let tiers = self.graph.tiers[node].iter();
                    let after = tiers.map(|tier| ways.after_tier(tier, &|_| true));
                    nodes[node].then(after.fold(Span::default(), Span::max))
                }
            };
            for &node in &part.nodes {
                ways.spans[node] = span;
            }
        }
        let reachable = (0..self.graph.node_count).filter(|node| self.graph.reachable[*node]);
        let longest = reachable.map(|node| nodes[node]).fold(Span::default(), Span::max);
        let found = ways.spans[self.graph.workflow.initial_node];
        let found = found.min(longest.times(self.tokens_total()));
        Span {
            working_ms: found.working_ms.min(found.time_ms),
            ..found
        }
    }

    fn longest_in_loop(&self, part: &Part, ways: &Ways) -> Span {
        let (longest, is_nested) = self.longest_round(part, ways);
        let outer = |to: usize| !self.is_inner(part, to);
        let tiers = part.nodes.iter().flat_map(|&node| &self.graph.tiers[node]);
        let mut exit = Span::default();
        let mut is_one_token = !is_nested;
        for tier in tiers {
            exit = exit.max(ways.after_tier(tier, &outer));
            let inner = self.inner_tokens(part, tier);
            is_one_token &= inner == 0 || (inner == 1 && tier.plain.len() + tier.fans.len() == 1);
        }
        let rounds = match is_nested {
            true => self.tokens_total(),
            false => part.rounds.min(self.tokens_total()),
        };
        let found = longest.times(rounds).then(exit);
        match is_one_token {
            true => found,
            // What a round leaves behind works beside the next one.
            false => found.always_working(),
        }
    }

    /// The longest acyclic path, and whether branches of a join inside of the part lead back into it. Then a token goes on from a
    /// join with the counts of another branch, and only the number of tokens is a bound.
    fn longest_round(&self, part: &Part, ways: &Ways) -> (Span, bool) {
        let mut best = vec![Span::default(); self.graph.node_count];
        // Where an edge leads, and what lies between.
        let mut kept: Vec<Vec<(usize, Span)>> = vec![Vec::new(); self.graph.node_count];
        let mut widest = Span::default();
        let mut is_nested = false;
        // Edges of one fan-out follow each other.
        let mut last = None;
        for (edge, is_closing) in part.inner.iter().zip(&part.closing) {
            let between = match edge.via {
                Via::Step { .. } | Via::Spawn { .. } => Span::default(),
                Via::Join { tier, fan } => match last {
                    Some((known, span)) if known == (edge.from, tier, fan) => span,
                    Some(_) | None => {
                        let found = &self.graph.tiers[edge.from][tier].fans[fan];
                        is_nested |= found.spawns.iter().any(|spawn| self.is_inner(part, spawn.to));
                        // A join inside of the part whose branches are outside of it: the branches lie between.
                        let span = ways.branches(found, &|_| true);
                        last = Some(((edge.from, tier, fan), span));
                        span
                    }
                },
            };
            widest = widest.max(between);
            if !is_closing {
                kept[edge.from].push((edge.to, between));
            }
        }
        for &node in &part.finished {
            let after = kept[node].iter().map(|(to, between)| between.then(best[*to]));
            best[node] = ways.nodes[node].then(after.fold(Span::default(), Span::max));
        }
        let longest = part.nodes.iter().map(|&node| best[node]);
        // A round that begins at a join begins with its branches.
        (longest.fold(Span::default(), Span::max).then(widest), is_nested)
    }
}

impl Ways<'_> {
    /// The longest stretch after a tier has fired, as far as `follows` accepts where it leads.
    fn after_tier(&self, tier: &Tier, follows: &dyn Fn(usize) -> bool) -> Span {
        let plain = tier.plain.iter().map(|&(_, to)| (self.at(to, follows), 1));
        let fans = tier.fans.iter().map(|fan| (self.after_fan(fan, follows), 1));
        Span::parallel(plain.chain(fans))
    }

    fn at(&self, to: usize, follows: &dyn Fn(usize) -> bool) -> Span {
        match follows(to) {
            true => self.spans[to],
            false => Span::default(),
        }
    }

    fn after_fan(&self, fan: &Fan, follows: &dyn Fn(usize) -> bool) -> Span {
        let joins = fan.join_nodes.iter().map(|&to| self.at(to, follows));
        let joins = joins.fold(Span::default(), Span::max);
        let branches = self.branches(fan, follows);
        match self.fires_after(fan) {
            // The others go on beside what follows the join.
            Some((fires_ms, Quorum { cancels: false, .. })) => Span {
                time_ms: branches.time_ms.max(fires_ms.saturating_add(joins.time_ms)),
                ..branches.then(joins)
            },
            Some((_, Quorum { cancels: true, .. })) | None => branches.then(joins),
        }
    }

    /// The branches of a fan-out until the last one has ended.
    fn branches(&self, fan: &Fan, follows: &dyn Fn(usize) -> bool) -> Span {
        let spawns = fan.spawns.iter();
        let branches = Span::parallel(spawns.map(|spawn| (self.at(spawn.to, follows), spawn.count)));
        match self.fires_after(fan) {
            // Until then some branch sleeps, so the clock runs.
            Some((fires_ms, Quorum { cancels: true, .. })) if fires_ms <= branches.time_ms => Span {
                time_ms: fires_ms,
                working_ms: fires_ms,
                person_ms: 0,
                stops: 0,
            },
            Some(_) | None => branches,
        }
    }

    /// When the join of a fan-out has fired that does not wait for all branches, as far as branches surely complete.
    fn fires_after(&self, fan: &Fan) -> Option<(u64, Quorum)> {
        let quorum = fan.quorum?;
        let arrival = |way: &Vec<usize>| {
            let nodes = way.iter().map(|&node| self.nodes[node].time_ms);
            nodes.fold(0, u64::saturating_add)
        };
        let sure = fan
            .spawns
            .iter()
            .filter_map(|spawn| Some((arrival(spawn.sure_way.as_ref()?), spawn.count)));
        let mut arrivals: Vec<(u64, u64)> = sure.collect();
        arrivals.sort_unstable();
        let mut arrived = 0u64;
        for (moment, count) in arrivals {
            arrived = arrived.saturating_add(count);
            if arrived >= quorum.needed {
                return Some((moment, quorum));
            }
        }
        None
    }
}
