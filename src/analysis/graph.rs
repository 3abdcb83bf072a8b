//! The graph of a workflow as its tokens see it: which transitions fire together, which nodes are inside of a fan-out, and where
//! its join goes on.
//!
//! Tokens at a join wait; the token that goes on is created in the place of all of them. So for the analysis a fan-out with a join
//! leads from its node to the branches and, after them, to the node of the join. The transition into the join leads nowhere.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::analysis::input_schema::property_at;
use crate::base::limits::FAN_OUT_WIDTH;
use crate::base::ordered::sort_by_key;
use crate::cel::{Expression, Values};
use crate::definition::fan::{EarlyCompletePolicy, Spawn, Strategy};
use crate::definition::node::{Node, NodeKind, NodeRole};
use crate::definition::transition::{Transition, TransitionOn};
use crate::definition::wait::{SleepLength, Wait};
use crate::definition::workflow::Workflow;

/// Counts the elementary steps of an analysis, so that tests can bound them.
#[derive(Debug, Default)]
pub struct Steps(Cell<u64>);

impl Steps {
    pub fn add(&self, count: usize) {
        self.0.set(self.0.get().saturating_add(count as u64));
    }

    pub fn count(&self) -> u64 {
        self.0.get()
    }
}

/// Joined groups that are looked at one by one. Documents that people write have fewer.
const GROUPS_MAX: usize = 100;

pub struct Graph<'a> {
    pub workflow: &'a Workflow,
    /// Nodes of the document. Compensations and end handlers come after them.
    pub node_count: usize,
    /// The transitions out of each node, in the order of the document.
    pub routes: Vec<Vec<usize>>,
    pub tiers: Vec<Vec<Tier>>,
    pub groups: BTreeMap<&'a str, Group>,
    /// Nodes that a token can come to.
    pub reachable: Vec<bool>,
    /// Nodes that a token of any group can come to.
    pub in_branch: Vec<bool>,
    unjoined_targets: Vec<usize>,
    pub steps: &'a Steps,
}

/// A sibling group that a transition spawns.
#[derive(Debug, Default)]
pub struct Group {
    pub spawns: Vec<usize>,
    /// Transitions that join it.
    pub joins: Vec<usize>,
    /// Nodes that a token of the group can come to. Empty without a join.
    pub inside: Vec<bool>,
    /// Nodes that a token of no instance of the group can come to. Empty without a join.
    pub outside: Vec<bool>,
    /// Where tokens go on after a join, each node once.
    pub join_nodes: Rc<[usize]>,
    /// Branches may still be alive after their join has fired.
    pub merges_late: bool,
    /// The joins are written alike and do not wait for all branches.
    pub quorum: Option<Quorum>,
    /// False beyond `GROUPS_MAX`: then every reachable node counts as inside and as outside, which makes bounds wider and is of no
    /// use for warnings.
    pub is_exact: bool,
}

/// Transitions that may fire together: of one node, one `on` and one priority, without those that exclude each other.
#[derive(Debug)]
pub struct Tier {
    pub on: TransitionOn,
    /// Transitions that create one token of the same branch, with the node they lead to.
    pub plain: Vec<(usize, usize)>,
    pub fans: Vec<Fan>,
    /// A token may wait at a join, and its other transitions fire nevertheless.
    pub may_wait: bool,
}

/// The transitions of a tier that spawn one instance of a group.
#[derive(Debug)]
pub struct Fan {
    pub spawns: Vec<SpawnEdge>,
    /// Those of its group.
    pub join_nodes: Rc<[usize]>,
    pub merges_late: bool,
    /// There is one join, which does not wait for all branches.
    pub quorum: Option<Quorum>,
}

/// A join that fires when so many branches have arrived.
#[derive(Clone, Copy, Debug)]
pub struct Quorum {
    pub needed: u64,
    /// The other branches end then.
    pub cancels: bool,
}

#[derive(Clone, Debug)]
pub struct SpawnEdge {
    pub transition: usize,
    pub to: usize,
    /// The most branches.
    pub count: u64,
    /// The number of branches comes from data.
    pub is_from_data: bool,
    /// The nodes through which every branch comes to the join, where it surely does. Only looked for where a quorum waits.
    pub sure_way: Option<Vec<usize>>,
}

impl<'a> Graph<'a> {
    pub fn new(
        workflow: &'a Workflow,
        input_schema: Option<&serde_json::Value>,
        steps: &'a Steps,
    ) -> Graph<'a> {
        let is_declared = |role: NodeRole| role == NodeRole::Declared;
        let node_count = workflow
            .nodes
            .iter()
            .filter(|node| is_declared(node.role))
            .count();
        let mut routes = vec![Vec::new(); node_count];
        for (index, transition) in workflow.transitions.iter().enumerate() {
            routes[transition.from].push(index);
        }
        let mut graph = Graph {
            workflow,
            node_count,
            routes,
            tiers: Vec::new(),
            groups: BTreeMap::new(),
            reachable: Vec::new(),
            in_branch: Vec::new(),
            unjoined_targets: Vec::new(),
            steps,
        };
        graph.reachable = graph.reach([workflow.initial_node], |_| true);
        graph.find_groups();
        graph.tiers = (0..node_count)
            .map(|node| graph.tiers_of(node, input_schema))
            .collect();
        graph
    }

    /// The nodes that lead from `starts` over the transitions that `follows` accepts.
    pub fn reach(
        &self,
        starts: impl IntoIterator<Item = usize>,
        follows: impl Fn(usize) -> bool,
    ) -> Vec<bool> {
        let mut reached = vec![false; self.node_count];
        let mut stack: Vec<usize> = starts.into_iter().collect();
        while let Some(node) = stack.pop() {
            self.steps.add(1);
            if std::mem::replace(&mut reached[node], true) {
                continue;
            }
            self.steps.add(self.routes[node].len());
            for &index in self.routes[node].iter().filter(|index| follows(**index)) {
                stack.push(self.workflow.transitions[index].to);
            }
        }
        reached
    }

    fn find_groups(&mut self) {
        let transitions = &self.workflow.transitions;
        let mut groups: BTreeMap<&'a str, Group> = BTreeMap::new();
        for (index, transition) in transitions.iter().enumerate() {
            if let Some(group) = &transition.group {
                groups.entry(group).or_default().spawns.push(index);
            }
        }
        for (index, transition) in transitions.iter().enumerate() {
            let group = transition
                .synchronization
                .as_ref()
                .map(|join| join.group.as_str());
            if let Some(group) = group.and_then(|name| groups.get_mut(name)) {
                group.joins.push(index);
            }
        }
        // By number: comparing names for every step would take most of the time.
        let numbers: BTreeMap<&str, usize> = groups.keys().copied().zip(0..).collect();
        let number = |name: Option<&str>| name.and_then(|name| numbers.get(name).copied());
        let spawned: Vec<_> = transitions.iter().map(|it| number(it.group.as_deref())).collect();
        let joined: Vec<_> = transitions
            .iter()
            .map(|it| number(it.synchronization.as_ref().map(|join| join.group.as_str())))
            .collect();
        let mut joined_groups = 0;
        for (current, group) in groups.values_mut().enumerate() {
            let targets = group.spawns.iter().map(|&index| transitions[index].to);
            if group.joins.is_empty() {
                self.unjoined_targets.extend(targets);
                continue;
            }
            joined_groups += 1;
            group.is_exact = joined_groups <= GROUPS_MAX;
            if !group.is_exact {
                group.inside = self.reachable.clone();
                group.outside = self.reachable.clone();
                continue;
            }
            // A branch does not follow a transition that joins its own group.
            group.inside = self.reach(targets, |index| joined[index] != Some(current));
            let goes_on = group.joins.iter().map(|&index| transitions[index].to);
            let starts = goes_on.chain([self.workflow.initial_node]);
            group.outside = self.reach(starts, |index| spawned[index] != Some(current));
        }
        let targets = std::mem::take(&mut self.unjoined_targets);
        self.in_branch = self.reach(targets, |_| true);
        if joined_groups > GROUPS_MAX {
            self.in_branch = self.reachable.clone();
        }
        for group in groups.values().filter(|group| group.is_exact) {
            self.steps.add(self.node_count);
            for (node, is_inside) in group.inside.iter().enumerate() {
                self.in_branch[node] |= is_inside;
            }
        }
        for group in groups.values_mut() {
            self.find_joins(group);
        }
        self.groups = groups;
    }

    /// Once for each group: many nodes may fan it out, and many join it.
    fn find_joins(&self, group: &mut Group) {
        let mut known = BTreeSet::new();
        let mut join_nodes = Vec::new();
        let mut rules = Vec::new();
        self.steps.add(group.joins.len());
        for &index in &group.joins {
            let transition = &self.workflow.transitions[index];
            if group.inside[transition.from] && known.insert(transition.to) {
                join_nodes.push(transition.to);
            }
            if let Some(join) = &transition.synchronization {
                group.merges_late |= join.on_early_complete == EarlyCompletePolicy::AllowLateMerge;
                rules.push((join.strategy, join.on_early_complete));
            }
        }
        group.join_nodes = join_nodes.into();
        group.quorum = quorum_of(&rules);
    }

    fn tiers_of(&self, node: usize, input_schema: Option<&serde_json::Value>) -> Vec<Tier> {
        let mut together: BTreeMap<(u8, i64), Vec<usize>> = BTreeMap::new();
        for &index in &self.routes[node] {
            let transition = &self.workflow.transitions[index];
            let order = match transition.on {
                TransitionOn::Success => 0,
                TransitionOn::Failure => 1,
                TransitionOn::Timeout => 2,
            };
            together
                .entry((order, transition.priority))
                .or_default()
                .push(index);
        }
        let alternatives = together
            .into_values()
            .flat_map(|indices| self.alternatives(indices));
        alternatives
            .map(|indices| self.tier(node, &indices, input_schema))
            .collect()
    }

    /// Splits transitions of which some exclude each other by their conditions, into sets that may fire together.
    fn alternatives(&self, indices: Vec<usize>) -> Vec<Vec<usize>> {
        /// Enough for conditions that people write.
        const COMPARED: usize = 16;
        if indices.len() < 2 {
            return vec![indices];
        }
        let mut exclusive: Vec<usize> = Vec::new();
        let mut compared: Vec<Compared> = Vec::new();
        for &index in indices.iter().take(COMPARED) {
            self.steps.add(1 + exclusive.len());
            let Some(one) = &self.workflow.transitions[index].condition else {
                continue;
            };
            let one = Compared::new(one);
            if compared.iter().all(|other| one.excludes(other)) {
                exclusive.push(index);
                compared.push(one);
            }
        }
        if exclusive.len() < 2 {
            return vec![indices];
        }
        let with = |chosen: usize| {
            let fires = |index: &usize| *index == chosen || !exclusive.contains(index);
            indices.iter().copied().filter(fires).collect()
        };
        exclusive.iter().map(|&chosen| with(chosen)).collect()
    }

    fn tier(&self, node: usize, indices: &[usize], input_schema: Option<&serde_json::Value>) -> Tier {
        let mut tier = Tier {
            on: self.workflow.transitions[indices[0]].on,
            plain: Vec::new(),
            fans: Vec::new(),
            may_wait: false,
        };
        for &index in indices {
            self.steps.add(1);
            let transition = &self.workflow.transitions[index];
            let join = transition.synchronization.as_ref();
            if let Some(joined) = join.and_then(|join| self.groups.get(join.group.as_str())) {
                tier.may_wait |= joined.inside[node];
                // A token of another group passes.
                if !joined.outside[node] {
                    continue;
                }
            }
            let Some(name) = transition.group.as_deref() else {
                tier.plain.push((index, transition.to));
                continue;
            };
            let (count, is_from_data) = width_of(&transition.spawn, input_schema);
            let quorum = self.groups.get(name).and_then(|group| group.quorum);
            let spawn = SpawnEdge {
                transition: index,
                to: transition.to,
                count,
                is_from_data,
                sure_way: quorum
                    .filter(|_| !is_from_data && transition.always_matches())
                    .and_then(|_| self.sure_way(name, transition.to)),
            };
            let same = |fan: &&mut Fan| {
                let first = fan.spawns[0].transition;
                self.workflow.transitions[first].group.as_deref() == Some(name)
            };
            match tier.fans.iter_mut().find(same) {
                Some(fan) => fan.spawns.push(spawn),
                None => tier.fans.push(self.fan(name, spawn)),
            }
        }
        tier
    }

    fn fan(&self, name: &str, spawn: SpawnEdge) -> Fan {
        let group = &self.groups[name];
        Fan {
            spawns: vec![spawn],
            join_nodes: Rc::clone(&group.join_nodes),
            merges_late: group.merges_late,
            quorum: group.quorum.filter(|_| group.join_nodes.len() == 1),
        }
    }

    /// The nodes from `start` to the join of a group, if nothing on the way can fail or lead elsewhere.
    fn sure_way(&self, group: &str, start: usize) -> Option<Vec<usize>> {
        /// Enough for branches that people write.
        const NODES: usize = 8;
        let mut way = vec![start];
        while way.len() <= NODES {
            let node = *way.last()?;
            let found = &self.workflow.nodes[node];
            if !found.never_fails() || self.routes[node].len() > NODES {
                return None;
            }
            self.steps.add(self.routes[node].len());
            let routes = self.routes[node]
                .iter()
                .map(|&index| &self.workflow.transitions[index]);
            let mut success: Vec<&Transition> = routes.filter(|it| it.on == TransitionOn::Success).collect();
            sort_by_key(&mut success, |it| it.priority);
            let first = success
                .first()
                .filter(|it| it.always_matches() && it.group.is_none())?;
            if success
                .get(1)
                .is_some_and(|second| second.priority == first.priority)
            {
                return None;
            }
            match &first.synchronization {
                Some(join) if join.group == group => return Some(way),
                Some(_) => return None,
                None => way.push(first.to),
            }
        }
        None
    }

    /// How often a transition may fire on one path.
    pub fn firings_max(&self, transition: usize) -> u64 {
        let implicit = self.workflow.limits.loop_iterations;
        let written = self.workflow.transitions[transition].iterations_max;
        written.map_or(implicit, |written| written.min(implicit))
    }
}

impl Transition {
    /// Fires whenever its priority is reached.
    pub(super) fn always_matches(&self) -> bool {
        let is_unconditional = match &self.condition {
            None => true,
            Some(condition) => condition.is_true(),
        };
        is_unconditional && self.iterations_max.is_none()
    }
}

impl Node {
    /// Its own work always completes. Its transitions may fail nevertheless.
    pub(super) fn never_fails(&self) -> bool {
        let is_safe = match &self.kind {
            NodeKind::PassThrough => true,
            NodeKind::Wait(wait) => matches!(**wait, Wait::Sleep(SleepLength::Millis(_))),
            NodeKind::Task { .. }
            | NodeKind::Action { .. }
            | NodeKind::Workflow { .. }
            | NodeKind::Gate(_) => false,
        };
        is_safe && self.input_mapping.is_none() && self.output_mapping.is_none()
    }
}

/// A condition that is compared with others.
struct Compared<'a> {
    condition: &'a Expression,
    accepted: Option<(Vec<String>, Values)>,
}

impl Compared<'_> {
    fn new(condition: &Expression) -> Compared<'_> {
        Compared {
            condition,
            accepted: condition.accepted_values(),
        }
    }

    /// Whether the two never hold at once, by their form.
    fn excludes(&self, other: &Compared) -> bool {
        let by_value = match (&self.accepted, &other.accepted) {
            (Some((path, some)), Some((other, others))) => path == other && some.excludes(others),
            (Some(_), None) | (None, _) => false,
        };
        by_value || self.condition.is_opposite_of(other.condition)
    }
}

/// The quorum of joins that are written alike.
fn quorum_of(rules: &[(Strategy, EarlyCompletePolicy)]) -> Option<Quorum> {
    let (first, others) = rules.split_first()?;
    let (strategy, on_early_complete) = *first;
    let needed = match strategy {
        Strategy::All => return None,
        Strategy::Any => 1,
        Strategy::MOfN(needed) => u64::from(needed),
    };
    others.iter().all(|other| other == first).then_some(Quorum {
        needed,
        cancels: on_early_complete == EarlyCompletePolicy::Cancel,
    })
}

/// The most branches of a spawn, and whether data decides about their number.
fn width_of(spawn: &Spawn, input_schema: Option<&serde_json::Value>) -> (u64, bool) {
    let is_from_data =
        matches!(spawn, Spawn::ForEach { collection, .. } if collection.list_length().is_none());
    let width = known_width(spawn, input_schema).unwrap_or(FAN_OUT_WIDTH as u64);
    (width, is_from_data)
}

/// The most branches of a spawn, if the document says how many.
pub fn known_width(spawn: &Spawn, input_schema: Option<&serde_json::Value>) -> Option<u64> {
    match spawn {
        Spawn::One => Some(1),
        Spawn::Count(count) => Some(u64::from(*count)),
        Spawn::ForEach { collection, .. } => match collection.list_length() {
            Some(length) => Some(length as u64),
            None => items_max(collection, input_schema),
        },
    }
}

/// `maxItems` of the part of the input that a `foreach` goes over.
fn items_max(collection: &Expression, input_schema: Option<&serde_json::Value>) -> Option<u64> {
    let path = collection.as_path()?;
    let (root, members) = path.split_first()?;
    if root != "input" {
        return None;
    }
    let schema = property_at(input_schema?, members)?;
    let most = schema.get("maxItems")?.as_u64()?;
    Some(most.min(FAN_OUT_WIDTH as u64))
}
