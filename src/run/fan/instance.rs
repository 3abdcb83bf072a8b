//! One firing of one sibling group: which branches still have live members, and the joins they arrive at.
//!
//! Loops and nested fan-outs create new instances, so a join never confuses two firings of the same transition. An
//! inner instance counts as one member of the branch it was created in.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::base::compute::copy_steps;
use crate::base::failure::Failure;
use crate::base::time::Millis;
use crate::run::time::row_events::RowEvent;
use crate::run::token::TokenId;
use crate::run::token::deadline::warning_at;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InstanceId(pub u64);

/// A token's place among its siblings, and the output of its branch so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    pub instance: InstanceId,
    pub index: u32,
    pub item: Option<Value>,
    pub output: Value,
}

/// Steps that a copy of a branch takes.
pub(in crate::run) fn branch_steps(branch: &Branch) -> u64 {
    branch.item.as_ref().map_or(0, copy_steps) + copy_steps(&branch.output)
}

/// One firing of one sibling group.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    pub id: InstanceId,
    pub group: String,
    pub total: u32,
    /// The branch it was created in, as it was then: the token after the join continues there.
    pub parent: Option<Branch>,
    pub item_var: Option<String>,
    pub fan_ins: BTreeMap<usize, FanIn>,
    pub status: InstanceStatus,
    /// Why a branch ended without arriving; reported when the quorum of a join is out of reach.
    pub last_error: Option<Failure>,
    /// Its part of the run's history.
    pub events: Vec<RowEvent>,
    /// Live members of each branch: tokens, and inner instances.
    live: BTreeMap<u32, u32>,
    /// Branches with live members that have not arrived at a join.
    pending: u32,
    members: BTreeSet<TokenId>,
    inner: BTreeSet<InstanceId>,
    arrived: BTreeSet<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceStatus {
    Open,
    Closed,
    /// The run's end closed it. A run may be resumed and end again: this is the number of that end.
    ClosedByRunEnd(u64),
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
    /// The warning of its deadline was logged.
    pub warned: bool,
    pub state: FanInState,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FanInState {
    Waiting(Arrivals),
    Fired { at: Millis },
}

/// The branches that wait at a join, by index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arrivals {
    by_branch: BTreeMap<u32, Arrival>,
    completed: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub token: TokenId,
    /// False for a token that came by a failure or timeout route: it waits, but does not count.
    pub completed: bool,
    /// Later arrivals have higher numbers.
    pub order: u64,
}

impl FanInState {
    /// Arrivals of a restored join are added from the tokens that wait there.
    pub fn restored(fired_at: Option<Millis>) -> FanInState {
        match fired_at {
            None => FanInState::Waiting(Arrivals::default()),
            Some(at) => FanInState::Fired { at },
        }
    }
}

impl Arrivals {
    fn insert(&mut self, index: u32, arrival: Arrival) {
        self.completed += u32::from(arrival.completed);
        self.by_branch.insert(index, arrival);
    }

    fn remove(&mut self, index: u32) {
        let removed = self.by_branch.remove(&index);
        self.completed -= u32::from(removed.is_some_and(|arrival| arrival.completed));
    }

    /// Arrivals that count.
    pub(in crate::run) fn completed(&self) -> u32 {
        self.completed
    }

    pub(in crate::run) fn iter(&self) -> impl Iterator<Item = (u32, Arrival)> {
        self.by_branch.iter().map(|(index, arrival)| (*index, *arrival))
    }
}

impl FanIn {
    pub fn fired_at(&self) -> Option<Millis> {
        match self.state {
            FanInState::Waiting(_) => None,
            FanInState::Fired { at } => Some(at),
        }
    }

    /// `None` after the join has fired.
    pub(in crate::run) fn arrivals(&self) -> Option<&Arrivals> {
        match &self.state {
            FanInState::Waiting(arrivals) => Some(arrivals),
            FanInState::Fired { .. } => None,
        }
    }

    /// When its timer fires: for a warning, or at its deadline.
    pub fn due_at(&self, warn_at: f64) -> Option<Millis> {
        if self.fired_at().is_some() {
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
            status: InstanceStatus::Open,
            last_error: None,
            events: Vec::new(),
            live: BTreeMap::new(),
            pending: 0,
            members: BTreeSet::new(),
            inner: BTreeSet::new(),
            arrived: BTreeSet::new(),
        }
    }

    pub fn is_closed(&self) -> bool {
        match self.status {
            InstanceStatus::Open => false,
            InstanceStatus::Closed | InstanceStatus::ClosedByRunEnd(_) => true,
        }
    }

    pub fn has_fired(&self) -> bool {
        self.fan_ins.values().any(|fan_in| fan_in.fired_at().is_some())
    }

    /// Branches that arrived, if a join has fired. Before that, the waiting tokens show the same.
    pub fn late_arrivals(&self) -> Vec<u32> {
        match self.has_fired() {
            true => self.arrived.iter().copied().collect(),
            false => Vec::new(),
        }
    }

    pub fn restore_arrivals(&mut self, arrived: Vec<u32>) {
        self.arrived.extend(arrived);
    }

    /// A resumed run reopens the instance. Joins that had not fired start their wait again.
    pub(in crate::run) fn reopen(&mut self, now: Millis) {
        self.status = InstanceStatus::Open;
        self.last_error = None;
        for fan_in in self.fan_ins.values_mut() {
            if fan_in.fired_at().is_none() {
                fan_in.timeout_at = fan_in.timeout_ms.map(|millis| now.saturating_add(millis));
                fan_in.warned = false;
            }
        }
    }

    /// Its joins with a timer: node and moment.
    pub(in crate::run) fn timers(&self, warn_at: f64) -> impl Iterator<Item = (usize, Millis)> {
        self.fan_ins
            .iter()
            .filter_map(move |(node, fan_in)| Some((*node, fan_in.due_at(warn_at)?)))
    }

    /// Joins that have begun and not fired: node and transition.
    pub(in crate::run) fn waiting_joins(&self) -> Vec<(usize, usize)> {
        let waiting = self
            .fan_ins
            .iter()
            .filter(|(_, fan_in)| fan_in.fired_at().is_none());
        waiting.map(|(node, fan_in)| (*node, fan_in.transition)).collect()
    }

    /// Arrivals that count at `node`.
    pub(in crate::run) fn completed_at(&self, node: usize) -> u32 {
        let fan_in = self.fan_ins.get(&node);
        fan_in
            .and_then(FanIn::arrivals)
            .map_or(0, |arrivals| arrivals.completed())
    }

    /// Branches that may still arrive.
    pub(in crate::run) fn pending(&self) -> u32 {
        self.pending
    }

    pub(in crate::run) fn members(&self) -> Vec<TokenId> {
        self.members.iter().copied().collect()
    }

    pub(in crate::run) fn inner(&self) -> Vec<InstanceId> {
        self.inner.iter().copied().collect()
    }

    pub(in crate::run) fn has_no_members(&self) -> bool {
        self.members.is_empty() && self.inner.is_empty()
    }

    /// Every branch has ended.
    pub(in crate::run) fn is_over(&self) -> bool {
        self.live.is_empty()
    }

    pub(in crate::run) fn has_arrived(&self, index: u32) -> bool {
        self.arrived.contains(&index)
    }

    pub(super) fn add_token(&mut self, index: u32, token: TokenId) {
        self.members.insert(token);
        self.add_member(index);
    }

    /// True if it was the branch's last member.
    pub(super) fn remove_token(&mut self, index: u32, token: TokenId) -> bool {
        self.members.remove(&token);
        self.remove_member(index)
    }

    pub(super) fn add_inner(&mut self, index: u32, inner: InstanceId) {
        self.inner.insert(inner);
        self.add_member(index);
    }

    /// True if it was the branch's last member.
    pub(super) fn remove_inner(&mut self, index: u32, inner: InstanceId) -> bool {
        self.inner.remove(&inner);
        self.remove_member(index)
    }

    fn add_member(&mut self, index: u32) {
        // A branch between two of its nodes has no members for a moment and still counts.
        let is_new = !self.live.contains_key(&index);
        *self.live.entry(index).or_default() += 1;
        if is_new && !self.arrived.contains(&index) {
            self.pending += 1;
        }
    }

    fn remove_member(&mut self, index: u32) -> bool {
        let count = self.live.get_mut(&index);
        let count = count.expect("a member is counted in its branch until it is removed");
        *count -= 1;
        *count == 0
    }

    /// Ends a branch without members. False if a token was created there since it lost its last one.
    pub(super) fn end_branch(&mut self, index: u32) -> bool {
        if self.live.get(&index) != Some(&0) {
            return false;
        }
        self.live.remove(&index);
        if !self.arrived.contains(&index) {
            self.pending -= 1;
        }
        true
    }

    /// True if the branch had not arrived at any join.
    pub(super) fn mark_arrived(&mut self, index: u32) -> bool {
        let is_first = self.arrived.insert(index);
        if is_first && self.live.contains_key(&index) {
            self.pending -= 1;
        }
        is_first
    }

    pub(super) fn withdraw_arrival(&mut self, node: usize, index: u32) {
        if let Some(FanIn {
            state: FanInState::Waiting(arrivals),
            ..
        }) = self.fan_ins.get_mut(&node)
        {
            arrivals.remove(index);
        }
        self.unmark_arrived(index);
    }

    /// Its late result could not be merged: a resumed run lets the branch arrive again.
    pub(super) fn unmark_arrived(&mut self, index: u32) {
        if self.arrived.remove(&index) && self.live.contains_key(&index) {
            self.pending += 1;
        }
    }

    /// A branch waits at the join of `node`, which has begun.
    pub(super) fn add_arrival(&mut self, node: usize, index: u32, arrival: Arrival) {
        let fan_in = self.fan_ins.get_mut(&node).expect("the join has begun");
        match &mut fan_in.state {
            FanInState::Waiting(arrivals) => arrivals.insert(index, arrival),
            FanInState::Fired { .. } => unreachable!("nothing waits at a join that has fired"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(total: u32) -> Instance {
        Instance::new(InstanceId(1), "g".into(), total, None, None)
    }

    fn fan_in() -> FanIn {
        FanIn {
            transition: 0,
            started_at: 0,
            timeout_at: Some(100_000),
            timeout_ms: Some(100_000),
            warned: false,
            state: FanInState::restored(None),
        }
    }

    #[test]
    fn a_branch_counts_once_however_many_members_it_has() {
        let mut it = instance(2);
        it.add_token(0, TokenId(1));
        it.add_token(0, TokenId(2));
        it.add_inner(0, InstanceId(2));
        assert_eq!(it.pending(), 1);
        assert!(!it.remove_token(0, TokenId(1)));
        assert!(!it.remove_inner(0, InstanceId(2)));
        assert!(it.remove_token(0, TokenId(2)), "the last member");
        assert!(it.has_no_members());
        assert_eq!(it.pending(), 1, "until the branch is found to have ended");
        assert!(it.end_branch(0));
        assert_eq!(it.pending(), 0);
        assert!(it.is_over());
    }

    #[test]
    fn a_branch_between_two_nodes_has_not_ended() {
        let mut it = instance(1);
        it.add_token(0, TokenId(1));
        assert!(it.remove_token(0, TokenId(1)));
        it.add_token(0, TokenId(2));
        assert!(!it.end_branch(0));
        assert_eq!(it.pending(), 1);
        assert!(!it.is_over());
    }

    #[test]
    fn an_arrived_branch_is_no_longer_pending_and_ends_without_effect_on_the_others() {
        let mut it = instance(2);
        it.add_token(0, TokenId(1));
        it.add_token(1, TokenId(2));
        assert!(it.mark_arrived(0));
        assert!(!it.mark_arrived(0), "a branch arrives once");
        assert_eq!(it.pending(), 1);
        it.remove_token(0, TokenId(1));
        assert!(it.end_branch(0));
        assert_eq!(it.pending(), 1, "branch 1");
        it.unmark_arrived(0);
        assert!(!it.has_arrived(0));
        assert_eq!(it.pending(), 1, "nothing of branch 0 is live");
    }

    #[test]
    fn only_completed_arrivals_count() {
        let mut it = instance(2);
        it.fan_ins.insert(4, fan_in());
        let arrival = |token: u64, completed: bool| Arrival {
            token: TokenId(token),
            completed,
            order: token,
        };
        it.add_arrival(4, 0, arrival(1, true));
        it.add_arrival(4, 1, arrival(2, false));
        assert_eq!(it.completed_at(4), 1);
        assert_eq!(it.completed_at(5), 0, "no join began there");
        assert_eq!(it.waiting_joins(), [(4, 0)]);
        assert_eq!(it.late_arrivals(), [] as [u32; 0]);
    }

    #[test]
    fn the_timer_of_a_join() {
        let cases = [
            ("a warning first", false, None, Some(80_000)),
            ("then the end of the wait", true, None, Some(100_000)),
            ("none once it has fired", false, Some(5), None),
        ];
        for (case, warned, fired_at, expected) in cases {
            let fan_in = FanIn {
                warned,
                state: FanInState::restored(fired_at),
                ..fan_in()
            };
            assert_eq!(fan_in.due_at(0.8), expected, "{case}");
        }
    }

    #[test]
    fn a_reopened_instance_restarts_the_wait_of_joins_that_had_not_fired() {
        let mut it = instance(2);
        it.status = InstanceStatus::ClosedByRunEnd(1);
        it.last_error = Some(Failure::permanent("fan_in_failed", "too few branches"));
        it.fan_ins.insert(
            4,
            FanIn {
                warned: true,
                ..fan_in()
            },
        );
        let fired = FanIn {
            warned: true,
            state: FanInState::Fired { at: 7 },
            ..fan_in()
        };
        it.fan_ins.insert(5, fired.clone());
        it.reopen(1_000_000);
        assert!(!it.is_closed());
        assert_eq!(it.last_error, None);
        assert_eq!(it.fan_ins[&4].timeout_at, Some(1_100_000));
        assert!(!it.fan_ins[&4].warned);
        assert_eq!(it.fan_ins[&5], fired);
    }
}
