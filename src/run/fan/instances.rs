//! The open instances of a run: the members of each branch, the arrivals at joins, and what the current decision changed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::base::failure::Failure;
use crate::base::ordered::sort_by_key;
use crate::base::time::Millis;
use crate::run::fan::instance::{Arrival, Branch, FanIn, FanInState, Instance, InstanceId, InstanceStatus};
use crate::run::time::row_events::RowEvent;
use crate::run::token::{JoinWait, Token, TokenId};

#[derive(Debug, Default)]
pub(in crate::run) struct Instances {
    open: BTreeMap<InstanceId, Instance>,
    created: u64,
    arrivals: u64,
    /// Bytes of the values that waiting tokens hold in memory until their join fires.
    joined: BTreeMap<TokenId, usize>,
    joined_bytes: usize,
    /// Branches that lost their last member; a token may be created there before the decision is complete.
    emptied: BTreeSet<(InstanceId, u32)>,
    changed: BTreeSet<InstanceId>,
    closed: Vec<Instance>,
    /// Instances that closed because their join fired.
    decided: BTreeSet<InstanceId>,
}

/// What happens to a token that arrives at a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::run) enum ArrivalKind {
    /// It waits for its siblings.
    Waits,
    /// Its branch waits at a join already.
    Repeated,
    /// The join has fired and takes late results. `is_first`: the branch has not arrived before.
    Late { is_first: bool },
}

/// A timer of a join that moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::run) struct MovedTimer {
    pub instance: InstanceId,
    pub node: usize,
    pub from: Millis,
    pub to: Option<Millis>,
}

impl Instances {
    pub fn get(&self, id: InstanceId) -> Option<&Instance> {
        self.open.get(&id)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Instance> {
        self.open.values()
    }

    pub fn ids(&self) -> Vec<InstanceId> {
        self.open.keys().copied().collect()
    }

    /// The instance that was created last.
    pub fn newest(&self) -> InstanceId {
        InstanceId(self.created)
    }

    pub fn next_id(&mut self) -> InstanceId {
        self.created += 1;
        InstanceId(self.created)
    }

    /// Opens an instance and counts it as a member of the branch it was created in.
    pub fn open(&mut self, instance: Instance) {
        self.changed.insert(instance.id);
        self.insert(instance);
    }

    /// Restores a saved instance. Outer instances have lower numbers and come first.
    pub fn restore(&mut self, instance: Instance) -> Result<(), String> {
        self.created = self.created.max(instance.id.0);
        if instance.is_closed() {
            return Ok(());
        }
        if let Some(parent) = &instance.parent
            && !self.open.contains_key(&parent.instance)
        {
            let (inner, outer) = (instance.id.0, parent.instance.0);
            return Err(format!(
                "instance {inner} is open inside instance {outer}, which is not"
            ));
        }
        self.insert(instance);
        Ok(())
    }

    /// Counts a saved token as a member of its branch.
    pub fn restore_token(&mut self, token: &Token) -> Result<(), String> {
        if let Some(branch) = &token.branch
            && !self.open.contains_key(&branch.instance)
        {
            return Err(format!(
                "{} is live in instance {}, which is not open",
                token.id, branch.instance.0
            ));
        }
        self.enter(token);
        Ok(())
    }

    fn insert(&mut self, instance: Instance) {
        if let Some(parent) = &instance.parent {
            self.open
                .get_mut(&parent.instance)
                .expect("an instance is open while another is open inside it")
                .add_inner(parent.index, instance.id);
        }
        self.open.insert(instance.id, instance);
    }

    /// Closes an instance: none of its joins can fire any more.
    pub fn close(&mut self, id: InstanceId) -> &Instance {
        let mut instance = self.open.remove(&id).expect("an instance is closed once");
        instance.status = InstanceStatus::Closed;
        // Where the whole run ends, outer instances are closed first.
        if let Some(parent) = &instance.parent
            && let Some(outer) = self.open.get_mut(&parent.instance)
            && outer.remove_inner(parent.index, id)
        {
            self.emptied.insert((parent.instance, parent.index));
        }
        self.changed.remove(&id);
        self.closed.push(instance);
        self.closed.last().expect("pushed just now")
    }

    /// The join of this instance fired, and no branch is left running.
    pub fn mark_decided(&mut self, id: InstanceId) {
        self.decided.insert(id);
    }

    /// Counts a token as a member of its branch.
    pub fn enter(&mut self, token: &Token) {
        if let Some(branch) = &token.branch {
            self.of_live(branch.instance).add_token(branch.index, token.id);
        }
    }

    /// Removes a token that ended. `take_ended_branch` returns its branch if that ended as well.
    pub fn leave(&mut self, token: &Token) {
        let Some(branch) = &token.branch else { return };
        self.joined_bytes -= self.joined.remove(&token.id).unwrap_or(0);
        if self.of_live(branch.instance).remove_token(branch.index, token.id) {
            self.emptied.insert((branch.instance, branch.index));
        }
    }

    fn of_live(&mut self, id: InstanceId) -> &mut Instance {
        self.open
            .get_mut(&id)
            .expect("an instance is open while a token in it is live")
    }

    /// The instance of a branch that lost its last member and got no new one.
    pub fn take_ended_branch(&mut self) -> Option<InstanceId> {
        while let Some((id, index)) = self.emptied.pop_first() {
            // A closed instance needs no check.
            if let Some(instance) = self.open.get_mut(&id)
                && instance.end_branch(index)
            {
                return Some(id);
            }
        }
        None
    }

    /// The run ends, so no join needs a check.
    pub fn forget_emptied(&mut self) {
        self.emptied.clear();
    }

    /// A branch ended with `failure` and without arriving.
    pub fn set_error(&mut self, id: InstanceId, failure: Failure) {
        let instance = self.open.get_mut(&id).expect("only open instances have members");
        instance.last_error = Some(failure);
        self.changed.insert(id);
    }

    /// The branch and the ones around it, innermost first.
    pub fn enclosing<'a>(
        &'a self,
        branch: Option<&'a Branch>,
    ) -> impl Iterator<Item = (&'a Branch, &'a Instance)> {
        let look_up = move |branch: &'a Branch| Some((branch, self.open.get(&branch.instance)?));
        let first = branch.and_then(look_up);
        std::iter::successors(first, move |(_, instance)| {
            instance.parent.as_ref().and_then(look_up)
        })
    }

    /// `_branch` in expressions.
    pub fn branch_value(&self, branch: &Branch) -> Value {
        let instance = self.open.get(&branch.instance);
        json!({
            "index": branch.index,
            "total": instance.map_or(0, |instance| instance.total),
            "item": branch.item,
            "output": branch.output,
        })
    }

    pub fn arrival_kind(&self, id: InstanceId, index: u32, node: usize) -> ArrivalKind {
        let instance = self.open.get(&id).expect("tokens arrive in open instances");
        let is_first = !instance.has_arrived(index);
        let fan_in = instance.fan_ins.get(&node);
        match fan_in.is_some_and(|fan_in| fan_in.fired_at().is_some()) {
            true => ArrivalKind::Late { is_first },
            false if is_first => ArrivalKind::Waits,
            false => ArrivalKind::Repeated,
        }
    }

    /// The first arrival begins the wait at `node`.
    pub fn begin_fan_in(&mut self, id: InstanceId, node: usize, fan_in: FanIn) {
        self.of_live(id).fan_ins.insert(node, fan_in);
        self.changed.insert(id);
    }

    /// A token waits at a join that has begun. Returns its number in the order of arrivals.
    pub fn arrive(
        &mut self,
        (id, index): (InstanceId, u32),
        node: usize,
        token: TokenId,
        completed: bool,
    ) -> u64 {
        self.arrivals += 1;
        let order = self.arrivals;
        let arrival = Arrival {
            token,
            completed,
            order,
        };
        let instance = self.of_live(id);
        instance.mark_arrived(index);
        instance.add_arrival(node, index, arrival);
        order
    }

    /// A branch arrived at a join that has fired.
    pub fn arrive_late(&mut self, id: InstanceId, index: u32) {
        self.of_live(id).mark_arrived(index);
        self.changed.insert(id);
    }

    /// The late result could not be merged: a resumed run lets the branch arrive again.
    pub fn undo_late_arrival(&mut self, id: InstanceId, index: u32) {
        self.of_live(id).unmark_arrived(index);
    }

    /// Restores the arrival of a saved token at the join it waits at.
    pub fn restore_arrival(&mut self, token: &Token, join: JoinWait) -> Result<(), String> {
        let JoinWait { node, arrival: order } = join;
        self.arrivals = self.arrivals.max(order);
        let joined = self
            .enclosing(token.branch.as_ref())
            .find(|(_, instance)| {
                let fan_in = instance.fan_ins.get(&node);
                fan_in.is_some_and(|fan_in| fan_in.fired_at().is_none())
            })
            .map(|(branch, instance)| (instance.id, branch.index));
        let (id, index) = joined.ok_or_else(|| format!("{} waits at a join that has not begun", token.id))?;
        let arrival = Arrival {
            token: token.id,
            completed: token.error.is_none(),
            order,
        };
        let instance = self.of_live(id);
        instance.mark_arrived(index);
        instance.add_arrival(node, index, arrival);
        Ok(())
    }

    /// A token that may wait at a join is ended with the instance it is in. The join waits for its branch again.
    pub fn withdraw_arrival(&mut self, token: &Token) {
        let Some(join) = token.join else { return };
        let waits_at = |instance: &Instance| {
            let arrivals = instance.fan_ins.get(&join.node).and_then(FanIn::arrivals);
            arrivals.is_some_and(|arrivals| arrivals.iter().any(|(_, arrival)| arrival.token == token.id))
        };
        let joined = self
            .enclosing(token.branch.as_ref())
            .find(|(_, instance)| waits_at(instance))
            .map(|(branch, instance)| (instance.id, branch.index));
        if let Some((id, index)) = joined {
            self.of_live(id).withdraw_arrival(join.node, index);
        }
    }

    pub fn fire(&mut self, id: InstanceId, node: usize, now: Millis) {
        self.fan_in_mut(id, node).state = FanInState::Fired { at: now };
        self.changed.insert(id);
    }

    /// A join that has begun, of an open instance.
    pub fn fan_in(&self, id: InstanceId, node: usize) -> &FanIn {
        let fan_in = self.open.get(&id).and_then(|it| it.fan_ins.get(&node));
        fan_in.expect("timers are removed with their join")
    }

    /// The warning of a join's deadline was logged.
    pub fn mark_warned(&mut self, id: InstanceId, node: usize) {
        self.fan_in_mut(id, node).warned = true;
        self.changed.insert(id);
    }

    fn fan_in_mut(&mut self, id: InstanceId, node: usize) -> &mut FanIn {
        let fan_in = self.of_live(id).fan_ins.get_mut(&node);
        fan_in.expect("the join has begun")
    }

    /// Moves the deadlines of all waiting joins by the length of a pause.
    pub fn shift_deadlines(&mut self, pause_ms: u64, warn_at: f64) -> Vec<MovedTimer> {
        let mut moved = Vec::new();
        for (id, instance) in &mut self.open {
            for (node, fan_in) in &mut instance.fan_ins {
                let Some(from) = fan_in.due_at(warn_at) else {
                    continue;
                };
                fan_in.timeout_at = fan_in.timeout_at.map(|at| at.saturating_add(pause_ms));
                self.changed.insert(*id);
                moved.push(MovedTimer {
                    instance: *id,
                    node: *node,
                    from,
                    to: fan_in.due_at(warn_at),
                });
            }
        }
        moved
    }

    /// A token waits at a join and holds values of so many bytes.
    pub fn hold(&mut self, token: TokenId, bytes: usize) {
        self.joined.insert(token, bytes);
        self.joined_bytes += bytes;
    }

    /// Bytes of all values that wait at joins.
    pub fn joined_bytes(&self) -> usize {
        self.joined_bytes
    }

    /// The run failed or timed out and may be resumed: marks the instances that this end closed, so that a resume reopens
    /// them. Returns those that their joins had closed, with all instances inside them: they stay closed.
    pub fn mark_closed_by_run_end(&mut self, end: u64) -> BTreeSet<InstanceId> {
        // Inner instances have higher numbers than those around them.
        sort_by_key(&mut self.closed, |instance| instance.id);
        let mut decided = std::mem::take(&mut self.decided);
        for instance in &mut self.closed {
            let parent = instance.parent.as_ref();
            if parent.is_some_and(|parent| decided.contains(&parent.instance)) {
                decided.insert(instance.id);
            }
            if !decided.contains(&instance.id) {
                instance.status = InstanceStatus::ClosedByRunEnd(end);
            }
        }
        decided
    }

    pub fn add_event(&mut self, id: InstanceId, event: RowEvent) {
        let instance = self.open.get_mut(&id);
        instance
            .expect("an event happens to an open instance")
            .events
            .push(event);
        self.changed.insert(id);
    }

    /// The instances to save: open ones that changed, then those that closed.
    pub fn take_changes(&mut self) -> Vec<Instance> {
        self.emptied.clear();
        self.decided.clear();
        let changed = std::mem::take(&mut self.changed);
        let open = changed.iter().filter_map(|id| self.open.get(id).cloned());
        open.chain(std::mem::take(&mut self.closed)).collect()
    }
}

#[cfg(test)]
mod tests;
