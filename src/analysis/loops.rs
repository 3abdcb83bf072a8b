//! The cycles of a graph: how often a path can go through one, and the order of its nodes without the transitions that close it.
//!
//! Every transition of a cycle is counted along each path, by `max_iterations` or by the run's `loop_iterations`. Without a set of
//! transitions that closes every cycle, a path through the nodes of a component is as long as their longest acyclic path; each
//! firing of one of that set begins another one. So the number of rounds is one more than the sum of their firings.

use crate::analysis::graph::Graph;
use crate::base::ordered::sort_by_key;
use crate::definition::graph::components;

/// The strongly connected parts of a graph, those that others lead to first.
pub struct Loops {
    pub parts: Vec<Part>,
    /// The number of each node's part.
    pub part_of: Vec<usize>,
}

pub struct Part {
    pub nodes: Vec<usize>,
    /// Edges between its nodes. None: the part is a single node without a cycle.
    pub inner: Vec<InnerEdge>,
    /// The order in which nodes finish if the closing edges are left out: a node comes after all it leads to.
    pub finished: Vec<usize>,
    /// Which of `inner` close a cycle.
    pub closing: Vec<bool>,
    /// How often a path can go through the part.
    pub rounds: u64,
    /// No transition with `max_iterations` closes one of its cycles.
    pub is_implicit: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct InnerEdge {
    pub from: usize,
    pub to: usize,
    pub via: Via,
}

#[derive(Clone, Copy, Debug)]
pub enum Via {
    Step {
        transition: usize,
    },
    /// Into a branch.
    Spawn {
        transition: usize,
    },
    /// From the node of a fan-out to the node of its join.
    Join {
        tier: usize,
        fan: usize,
    },
}

impl Part {
    pub fn is_loop(&self) -> bool {
        !self.inner.is_empty()
    }
}

impl Loops {
    pub fn new(graph: &Graph) -> Loops {
        let edges: Vec<InnerEdge> = (0..graph.node_count)
            .filter(|node| graph.reachable[*node])
            .flat_map(|node| edges_from(graph, node))
            .collect();
        graph.steps.add(graph.node_count + edges.len() * 3);
        let numbers = components(graph.node_count, edges.iter().map(|edge| (edge.from, edge.to)));
        // `components` numbers parts in the order of a walk along the edges, and leaves numbers out.
        let mut ordered: Vec<usize> = (0..graph.node_count).collect();
        sort_by_key(&mut ordered, |node| std::cmp::Reverse(numbers[*node]));
        let mut parts: Vec<Part> = Vec::new();
        let mut part_of = vec![0; graph.node_count];
        for node in ordered {
            let is_same = |part: &Part| numbers[part.nodes[0]] == numbers[node];
            match parts.last_mut().filter(|part| is_same(part)) {
                Some(part) => part.nodes.push(node),
                None => parts.push(Part {
                    nodes: vec![node],
                    inner: Vec::new(),
                    finished: vec![node],
                    closing: Vec::new(),
                    rounds: 1,
                    is_implicit: false,
                }),
            }
            part_of[node] = parts.len() - 1;
        }
        for edge in edges {
            if part_of[edge.from] == part_of[edge.to] {
                parts[part_of[edge.from]].inner.push(edge);
            }
        }
        for part in parts.iter_mut().filter(|part| part.is_loop()) {
            close(graph, part);
        }
        Loops { parts, part_of }
    }
}

fn edges_from(graph: &Graph, from: usize) -> Vec<InnerEdge> {
    let mut edges = Vec::new();
    for (tier, found) in graph.tiers[from].iter().enumerate() {
        for &(transition, to) in &found.plain {
            let via = Via::Step { transition };
            edges.push(InnerEdge { from, to, via });
        }
        for (fan, found) in found.fans.iter().enumerate() {
            for spawn in &found.spawns {
                let via = Via::Spawn {
                    transition: spawn.transition,
                };
                edges.push(InnerEdge {
                    from,
                    to: spawn.to,
                    via,
                });
            }
            for &to in found.join_nodes.iter() {
                let via = Via::Join { tier, fan };
                edges.push(InnerEdge { from, to, via });
            }
        }
    }
    edges
}

/// The transitions that are counted when an edge is followed. Of a join it is one of those that spawned the branches.
fn counted<'a>(graph: &'a Graph, edge: &InnerEdge) -> impl Iterator<Item = usize> + 'a {
    let (one, spawns) = match edge.via {
        Via::Step { transition } | Via::Spawn { transition } => (Some(transition), &[][..]),
        Via::Join { tier, fan } => (None, &graph.tiers[edge.from][tier].fans[fan].spawns[..]),
    };
    one.into_iter().chain(spawns.iter().map(|spawn| spawn.transition))
}

/// Chooses the edges that close the cycles of a part: those with `max_iterations`, then what a depth-first walk still finds.
fn close(graph: &Graph, part: &mut Part) {
    let is_written = |edge: &InnerEdge| {
        counted(graph, edge).all(|index| graph.workflow.transitions[index].iterations_max.is_some())
    };
    part.closing = part.inner.iter().map(is_written).collect();
    let mut from: Vec<Vec<usize>> = vec![Vec::new(); graph.node_count];
    for (index, edge) in part.inner.iter().enumerate() {
        if !part.closing[index] {
            from[edge.from].push(index);
        }
    }
    graph.steps.add(graph.node_count + part.inner.len() * 2);
    #[derive(Clone, Copy, PartialEq)]
    enum Visit {
        Open,
        Begun,
        Finished,
    }
    let mut visits = vec![Visit::Open; graph.node_count];
    part.finished.clear();
    for &start in &part.nodes {
        if visits[start] != Visit::Open {
            continue;
        }
        visits[start] = Visit::Begun;
        let mut stack = vec![(start, 0)];
        while let Some((node, next)) = stack.pop() {
            let Some(&index) = from[node].get(next) else {
                visits[node] = Visit::Finished;
                part.finished.push(node);
                continue;
            };
            stack.push((node, next + 1));
            let to = part.inner[index].to;
            match visits[to] {
                Visit::Open => {
                    visits[to] = Visit::Begun;
                    stack.push((to, 0));
                }
                Visit::Begun => {
                    part.closing[index] = true;
                    part.is_implicit = true;
                }
                Visit::Finished => {}
            }
        }
    }
    let closing = part
        .inner
        .iter()
        .zip(&part.closing)
        .filter(|(_, is_closing)| **is_closing);
    let mut is_counted = vec![false; graph.workflow.transitions.len()];
    for (edge, _) in closing {
        counted(graph, edge).for_each(|transition| is_counted[transition] = true);
    }
    let transitions = (0..is_counted.len()).filter(|transition| is_counted[*transition]);
    let firings = transitions.map(|index| graph.firings_max(index));
    part.rounds = firings.fold(1, u64::saturating_add);
}
