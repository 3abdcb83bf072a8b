//! Branches: tokens born together, and the account of which of them are still under way.
//!
//! All tokens born of one firing of one sibling group form one instance. Loops and nested fan-outs make new ones,
//! so that a join never mixes up two firings of the same transition. An inner instance counts as one member of the
//! branch it was born in.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::base::compute::copy_steps;
use crate::base::failure::Failure;
use crate::base::time::Millis;
use crate::run::state::Run;
use crate::run::token::{Token, TokenId, warning_at};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InstanceId(pub u64);

/// A token's place among its siblings, and what its branch has made so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    pub instance: InstanceId,
    pub index: u32,
    pub item: Option<Value>,
    pub output: Value,
}

/// Steps that a copy of what a branch carries takes.
pub(in crate::run) fn branch_steps(branch: &Branch) -> u64 {
    branch.item.as_ref().map_or(0, copy_steps) + copy_steps(&branch.output)
}

/// One firing of one sibling group.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    pub id: InstanceId,
    pub group: String,
    pub total: u32,
    /// The branch it was born in, as it was then: where the continuation goes on.
    pub parent: Option<Branch>,
    pub item_var: Option<String>,
    pub fan_ins: BTreeMap<usize, FanIn>,
    pub closed: bool,
    /// The end of the run that closed it.
    pub closed_by: Option<u64>,
    /// Live members of each branch: tokens, and inner instances.
    pub(in crate::run) live: BTreeMap<u32, u32>,
    /// Branches with live members that have not arrived anywhere.
    pub(in crate::run) open: u32,
    pub(in crate::run) members: BTreeSet<TokenId>,
    pub(in crate::run) inner: BTreeSet<InstanceId>,
    /// Branches that arrived at a join.
    pub(in crate::run) arrived: BTreeSet<u32>,
    /// Why a branch ended without arriving: the reason of a join that cannot be met for it.
    pub last_error: Option<Failure>,
}

/// A join of one instance at one node.
#[derive(Clone, Debug, PartialEq)]
pub struct FanIn {
    /// The transition whose `synchronization` counts.
    pub transition: usize,
    /// The first arrival: the wait is measured from here.
    pub started_at: Millis,
    pub timeout_at: Option<Millis>,
    pub timeout_ms: Option<u64>,
    pub fired_at: Option<Millis>,
    /// Its deadline was warned of.
    pub warned: bool,
    pub(in crate::run) arrivals: BTreeMap<u32, Arrival>,
    /// Arrivals that count.
    pub(in crate::run) completed: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub token: TokenId,
    /// False for one that came by a failure or timeout route: it waits, but does not count.
    pub completed: bool,
    pub order: u64,
}

impl FanIn {
    pub fn recalled(
        transition: usize,
        started_at: Millis,
        timeout_at: Option<Millis>,
        timeout_ms: Option<u64>,
        fired_at: Option<Millis>,
        warned: bool,
    ) -> FanIn {
        FanIn {
            transition,
            started_at,
            timeout_at,
            timeout_ms,
            fired_at,
            warned,
            arrivals: BTreeMap::new(),
            completed: 0,
        }
    }

    /// The moment it needs attention: a warning, or the end of the wait.
    pub fn due_at(&self, warn_at: f64) -> Option<Millis> {
        if self.fired_at.is_some() {
            return None;
        }
        let warning_at = match self.warned {
            true => None,
            false => warning_at(self.timeout_at, self.timeout_ms, warn_at),
        };
        self.timeout_at.into_iter().chain(warning_at).min()
    }
}

impl Instance {
    pub fn new(
        id: InstanceId,
        group: String,
        total: u32,
        parent: Option<Branch>,
        item_var: Option<String>,
    ) -> Instance {
        Instance {
            id,
            group,
            total,
            parent,
            item_var,
            fan_ins: BTreeMap::new(),
            closed: false,
            closed_by: None,
            live: BTreeMap::new(),
            open: 0,
            members: BTreeSet::new(),
            inner: BTreeSet::new(),
            arrived: BTreeSet::new(),
            last_error: None,
        }
    }

    /// Branches that have arrived, where that is no longer told by the tokens that wait.
    pub fn late_arrivals(&self) -> Vec<u32> {
        match self.has_fired() {
            true => self.arrived.iter().copied().collect(),
            false => Vec::new(),
        }
    }

    /// Joins that have begun and not fired: node and transition.
    pub(in crate::run) fn joins_that_wait(&self) -> Vec<(usize, usize)> {
        let waiting = self
            .fan_ins
            .iter()
            .filter(|(_, fan_in)| fan_in.fired_at.is_none());
        waiting.map(|(node, fan_in)| (*node, fan_in.transition)).collect()
    }

    pub fn has_fired(&self) -> bool {
        self.fan_ins.values().any(|fan_in| fan_in.fired_at.is_some())
    }

    pub fn remember_arrivals(&mut self, arrived: Vec<u32>) {
        self.arrived.extend(arrived);
    }

    /// A member more in branch `index`.
    pub(in crate::run) fn gain(&mut self, index: u32) {
        // A branch between two of its nodes has no member for a moment; it is open all the same.
        let is_new = !self.live.contains_key(&index);
        *self.live.entry(index).or_default() += 1;
        if is_new && !self.arrived.contains(&index) {
            self.open += 1;
        }
    }

    /// A member less; true if it was the branch's last.
    pub(in crate::run) fn lose(&mut self, index: u32) -> bool {
        let Some(count) = self.live.get_mut(&index) else {
            return false;
        };
        *count = count.saturating_sub(1);
        *count == 0
    }

    /// Nothing of branch `index` is live any more. False if something was born there since.
    pub(in crate::run) fn drop_branch(&mut self, index: u32) -> bool {
        if self.live.get(&index) != Some(&0) {
            return false;
        }
        self.live.remove(&index);
        if !self.arrived.contains(&index) {
            self.open = self.open.saturating_sub(1);
        }
        true
    }
}

impl Run {
    /// Enters a token into the account of its branch.
    pub(in crate::run) fn enter_branch(&mut self, token: &Token) {
        let Some(branch) = &token.branch else { return };
        if let Some(instance) = self.instances.get_mut(&branch.instance) {
            instance.members.insert(token.id);
            instance.gain(branch.index);
        }
    }

    /// Takes a token that ended out of it. Whether that ended the branch is known when everything has settled.
    pub(in crate::run) fn leave_branch(&mut self, token: &Token) {
        let Some(branch) = &token.branch else { return };
        if let Some(instance) = self.instances.get_mut(&branch.instance) {
            instance.members.remove(&token.id);
            if instance.lose(branch.index) {
                self.changes
                    .emptied_branches
                    .insert((branch.instance, branch.index));
            }
        }
    }

    /// Opens an instance: it counts as a member of the branch it was born in.
    pub(in crate::run) fn open_instance(&mut self, instance: Instance) {
        if let Some(parent) = &instance.parent
            && let Some(outer) = self.instances.get_mut(&parent.instance)
        {
            outer.inner.insert(instance.id);
            outer.gain(parent.index);
        }
        self.changes.changed_instances.insert(instance.id);
        self.instances.insert(instance.id, instance);
    }

    /// The instance has no more to decide. Its members have ended or do not matter any more.
    pub(in crate::run) fn close_instance(&mut self, id: InstanceId) {
        let Some(mut instance) = self.instances.remove(&id) else {
            return;
        };
        let warn_at = self.snapshot.workflow.timeouts.warn_at;
        for (node, fan_in) in &instance.fan_ins {
            if let Some(at) = fan_in.due_at(warn_at) {
                self.due.remove(&(at, crate::run::state::Due::FanIn(id, *node)));
            }
        }
        instance.closed = true;
        if let Some(parent) = &instance.parent
            && let Some(outer) = self.instances.get_mut(&parent.instance)
        {
            outer.inner.remove(&id);
            if outer.lose(parent.index) {
                self.changes
                    .emptied_branches
                    .insert((parent.instance, parent.index));
            }
        }
        self.changes.changed_instances.remove(&id);
        self.changes.closed_instances.push(instance);
    }

    /// A token waits at a join, with what it brings.
    pub(in crate::run) fn count_joined(&mut self, id: TokenId) {
        if let Some(token) = self.tokens.get_mut(&id) {
            token.joined_bytes = token.value_bytes();
            self.joined_bytes += token.joined_bytes;
        }
    }

    /// Puts a waiting token back into its join.
    pub(in crate::run) fn recall_arrival(&mut self, token: &Token, node: usize, order: u64) {
        let joined = {
            let fan_in_of = |instance: &&Instance| instance.fan_ins.contains_key(&node);
            let mut chain = self.chain(token.branch.as_ref());
            chain
                .find(|(_, instance)| fan_in_of(instance))
                .map(|(branch, instance)| (instance.id, branch.index))
        };
        let Some((id, index)) = joined else { return };
        let Some(instance) = self.instances.get_mut(&id) else {
            return;
        };
        if instance.arrived.insert(index) && instance.live.contains_key(&index) {
            instance.open = instance.open.saturating_sub(1);
        }
        let completed = token.error.is_none();
        if let Some(fan_in) = instance.fan_ins.get_mut(&node) {
            fan_in.completed += u32::from(completed);
            fan_in.arrivals.insert(
                index,
                Arrival {
                    token: token.id,
                    completed,
                    order,
                },
            );
        }
    }

    /// The branch and the ones around it, innermost first.
    pub(in crate::run) fn chain<'a>(
        &'a self,
        branch: Option<&'a Branch>,
    ) -> impl Iterator<Item = (&'a Branch, &'a Instance)> {
        let look_up = move |branch: &'a Branch| Some((branch, self.instances.get(&branch.instance)?));
        let first = branch.and_then(look_up);
        std::iter::successors(first, move |(_, instance)| {
            instance.parent.as_ref().and_then(look_up)
        })
    }

    /// A join somewhere around this branch will decide what its failure means.
    pub(in crate::run) fn is_covered(&self, branch: Option<&Branch>) -> bool {
        self.chain(branch)
            .any(|(_, instance)| self.snapshot.joins_of(&instance.group).next().is_some())
    }

    /// `_branch` in expressions.
    pub(in crate::run) fn branch_value(&self, branch: &Branch) -> Value {
        let total = self
            .instances
            .get(&branch.instance)
            .map_or(0, |instance| instance.total);
        json!({
            "index": branch.index,
            "total": total,
            "item": branch.item,
            "output": branch.output,
        })
    }
}
