//! Fan-in: arrivals, the moment a join fires, fails or gives up waiting. Exactly one continuation, ever.

use serde_json::json;

use crate::base::failure::{Failure, FailureClass};
use crate::base::time::{Limit, MINUTE, Millis};
use crate::definition::fan::{
    BranchFailurePolicy, EarlyCompletePolicy, Strategy, SyncTimeoutPolicy, Synchronization,
};
use crate::run::fan::instances::{Arrival, FanIn, InstanceId};
use crate::run::recovery::undo::Patch;
use crate::run::state::{Due, Run};
use crate::run::time::event_log::RunEventKind;
use crate::run::time::timeout_record::{FinalAction, Passed, TimeoutScope};
use crate::run::token::{TokenId, TokenStatus};

/// The longest a join waits that does not say otherwise.
const DEFAULT_WAIT_MS: u64 = 30 * MINUTE;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Fire,
    Wait,
    Impossible,
}

/// `completed` have arrived, `open` may still arrive, of `total`.
fn judge(join: &Synchronization, completed: u32, open: u32, total: u32) -> Verdict {
    let needed = match join.strategy {
        Strategy::Any => 1,
        Strategy::MOfN(count) => count,
        Strategy::All => match join.on_branch_failure {
            BranchFailurePolicy::Fail => total,
            BranchFailurePolicy::ProceedWithAvailable if open > 0 => return Verdict::Wait,
            BranchFailurePolicy::ProceedWithAvailable => 1,
        },
    };
    if completed >= needed {
        Verdict::Fire
    } else if completed + open < needed {
        Verdict::Impossible
    } else {
        Verdict::Wait
    }
}

impl Run {
    fn join(&self, transition: usize) -> &Synchronization {
        let join = self.snapshot.workflow.transitions[transition]
            .synchronization
            .as_ref();
        join.unwrap_or_else(|| unreachable!("only transitions with a join are joined"))
    }

    /// A token came to a join of its group. It waits there, unless its branch has been here before.
    /// `status` is what it ends as where nobody waits for it any more: one that failed has not completed by coming here.
    pub(in crate::run) fn arrive(
        &mut self,
        id: TokenId,
        status: TokenStatus,
        transition: usize,
        (instance_id, index): (InstanceId, u32),
    ) {
        let node = self.snapshot.workflow.transitions[transition].to;
        let now = self.changes.now;
        let Some(instance) = self.instances.get(&instance_id) else {
            return;
        };
        let is_first = !instance.arrived.contains(&index);
        let has_fired = instance
            .fan_ins
            .get(&node)
            .is_some_and(|fan_in| fan_in.fired_at.is_some());
        if !is_first && !has_fired {
            return self.end_at_join(id, status, "branch_arrived_before", Vec::new());
        }
        self.begin_fan_in(instance_id, node, transition);
        if let Some(instance) = self.instances.get_mut(&instance_id).filter(|_| is_first) {
            instance.arrived.insert(index);
            instance.open = instance.open.saturating_sub(1);
        }
        if has_fired {
            return self.arrive_late(id, status, transition, (instance_id, index), is_first);
        }
        let instance = self.instances.get_mut(&instance_id);
        let Some(fan_in) = instance.and_then(|instance| instance.fan_ins.get_mut(&node)) else {
            return;
        };
        self.arrivals_seen += 1;
        let order = self.arrivals_seen;
        let completed = self.tokens.get(&id).is_some_and(|token| token.error.is_none());
        fan_in.completed += u32::from(completed);
        fan_in.arrivals.insert(
            index,
            Arrival {
                token: id,
                completed,
                order,
            },
        );
        let done = self.work_done() + 1;
        self.change(id, |token| {
            token.status = TokenStatus::WaitingForSiblings;
            token.exit_order = Some(done);
            token.joins_at = Some(node);
            token.arrival = Some(order);
            token.timeout_at = None;
            token.watch_at = None;
            token.ended_at = Some(now);
        });
        self.count_joined(id);
        self.judge_fan_in(instance_id, node, transition, Some(id));
    }

    /// The first arrival starts the wait; not the fan-out, or execution time would count twice.
    fn begin_fan_in(&mut self, instance_id: InstanceId, node: usize, transition: usize) {
        let Some(instance) = self.instances.get(&instance_id) else {
            return;
        };
        if instance.fan_ins.contains_key(&node) {
            return;
        }
        let timeout_ms = match self.join(transition).timeout {
            Limit::After(millis) => Some(millis),
            Limit::Never => None,
            Limit::Unset => Some(self.default_wait_ms(&instance.group, instance.total)),
        };
        let now = self.changes.now;
        let timeout_at = timeout_ms.map(|millis| self.clock().saturating_add(millis));
        let fan_in = FanIn::recalled(transition, now, timeout_at, timeout_ms, None, false);
        if let Some(at) = fan_in.due_at(self.snapshot.workflow.timeouts.warn_at) {
            self.due.insert((at, Due::FanIn(instance_id, node)));
        }
        if let Some(instance) = self.instances.get_mut(&instance_id) {
            instance.fan_ins.insert(node, fan_in);
            self.changes.changed_instances.insert(instance_id);
        }
    }

    /// From the longest limit of an attempt in the branches, for all of them one after the other and half again.
    fn default_wait_ms(&self, group: &str, total: u32) -> u64 {
        let workflow = &self.snapshot.workflow;
        let mut stack: Vec<usize> = workflow
            .transitions
            .iter()
            .filter(|transition| transition.group.as_deref() == Some(group))
            .map(|transition| transition.to)
            .collect();
        let mut seen = vec![false; workflow.nodes.len()];
        let mut longest = 0;
        while let Some(node) = stack.pop() {
            if std::mem::replace(&mut seen[node], true) {
                continue;
            }
            longest = longest.max(self.execution_limit(node).limit.millis().unwrap_or(0));
            for &index in self.snapshot.routes_from(node) {
                let transition = &workflow.transitions[index];
                let is_join = transition
                    .synchronization
                    .as_ref()
                    .is_some_and(|join| join.group == group);
                if !is_join {
                    stack.push(transition.to);
                }
            }
        }
        match longest {
            0 => DEFAULT_WAIT_MS,
            longest => (longest.saturating_mul(u64::from(total)).saturating_mul(3) / 2).min(DEFAULT_WAIT_MS),
        }
    }

    /// A join with so many arrivals may fire, now or later.
    pub(in crate::run) fn may_fire(&self, transition: usize, completed: u32, open: u32, total: u32) -> bool {
        match judge(self.join(transition), completed, open, total) {
            Verdict::Fire | Verdict::Wait => true,
            Verdict::Impossible => false,
        }
    }

    pub(in crate::run) fn judge_fan_in(
        &mut self,
        id: InstanceId,
        node: usize,
        transition: usize,
        last: Option<TokenId>,
    ) {
        let Some(instance) = self.instances.get(&id) else {
            return;
        };
        let completed = instance.fan_ins.get(&node).map_or(0, |fan_in| fan_in.completed);
        match judge(self.join(transition), completed, instance.open, instance.total) {
            Verdict::Wait => {}
            Verdict::Fire => self.fire(id, node, last, false),
            Verdict::Impossible => {
                let cause = match &instance.last_error {
                    Some(error) => format!("; last error: {}", error.message),
                    None => String::new(),
                };
                let message = format!(
                    "fan-in at node {} cannot be met: {completed} of {} branches completed, {} may still{cause}",
                    self.snapshot.workflow.nodes[node].id, instance.total, instance.open
                );
                let class = instance
                    .last_error
                    .as_ref()
                    .map_or(FailureClass::Permanent, |error| error.class);
                let failure = Failure::new("fan_in_failed", class, message);
                self.fail_fan_in(id, TokenStatus::Cancelled, failure);
            }
        }
    }

    /// A branch ended without arriving: the joins of its group decide what that means.
    pub(in crate::run) fn branch_ended(&mut self, id: InstanceId) {
        let Some(instance) = self.instances.get(&id) else {
            return;
        };
        let waiting = instance.joins_that_wait();
        if waiting.is_empty() && instance.fan_ins.is_empty() {
            let first = self.snapshot.joins_of(&instance.group).next();
            if let Some(transition) = first {
                let node = self.snapshot.workflow.transitions[transition].to;
                self.judge_fan_in(id, node, transition, None);
            }
        }
        for (node, transition) in waiting {
            self.judge_fan_in(id, node, transition, None);
        }
        let is_over = self
            .instances
            .get(&id)
            .is_some_and(|instance| instance.live.is_empty());
        if is_over {
            self.close_instance(id);
        }
    }

    /// The join is met: merge, go on with one token, let the rest go.
    fn fire(&mut self, id: InstanceId, node: usize, last: Option<TokenId>, by_deadline: bool) {
        let now = self.changes.now;
        let waiting = self.waiting_tokens(id, node);
        let Some(instance) = self.instances.get_mut(&id) else {
            return;
        };
        let Some(fan_in) = instance.fan_ins.get_mut(&node) else {
            return;
        };
        let transition = fan_in.transition;
        if let Some(at) = fan_in.due_at(self.snapshot.workflow.timeouts.warn_at) {
            self.due.remove(&(at, Due::FanIn(id, node)));
        }
        let mut branch = instance.parent.clone();
        self.changes.changed_instances.insert(id);
        let merged: Vec<(u32, TokenId, u64)> = waiting
            .iter()
            .filter(|(_, _, completed, _)| *completed)
            .map(|(index, token, _, order)| (*index, *token, *order))
            .collect();
        if let Err(failure) =
            self.merge_branches(transition, &merged, branch.as_mut().map(|it| &mut it.output))
        {
            self.fail_fan_in(id, TokenStatus::Cancelled, failure);
            return;
        }
        let joined = self.instances.get_mut(&id);
        if let Some(fan_in) = joined.and_then(|instance| instance.fan_ins.get_mut(&node)) {
            fan_in.fired_at = Some(now);
            fan_in.arrivals.clear();
        }
        let last_arrived = waiting
            .iter()
            .max_by_key(|(_, _, _, order)| *order)
            .map(|(_, token, _, _)| *token);
        let parent = last.or(last_arrived);
        let loops = parent
            .and_then(|token| self.tokens.get(&token))
            .map(|token| token.loops.clone());
        let mut loops = loops.unwrap_or_default();
        let edge = &self.snapshot.workflow.transitions[transition];
        if edge.in_cycle {
            *loops.entry(edge.id.clone()).or_default() += 1;
        }
        for (_, token, completed, _) in waiting {
            let status = match (by_deadline, completed) {
                (true, _) => TokenStatus::TimedOut,
                (false, true) => TokenStatus::Completed,
                (false, false) => TokenStatus::Failed,
            };
            self.end(token, status, |token| {
                if by_deadline {
                    token.reason = Some("sync_timeout".into());
                }
            });
        }
        // After those it replaces: a join as wide as `tokens_active` allows must fit.
        self.spawn_token(node, parent, branch, loops, None);
        match self.join(transition).on_early_complete {
            EarlyCompletePolicy::Abandon => self.end_members(id, "abandoned", false),
            EarlyCompletePolicy::Cancel => self.end_members(id, "fan_in_completed", true),
            // They stay, and with them the instance, until the last one has come or ended.
            EarlyCompletePolicy::AllowLateMerge => {
                let nobody = self
                    .instances
                    .get(&id)
                    .is_some_and(|instance| instance.members.is_empty() && instance.inner.is_empty());
                if !nobody {
                    return;
                }
            }
        }
        self.changes.decided.insert(id);
        self.close_instance(id);
    }

    /// A straggler of a join that has fired and still takes what comes.
    fn arrive_late(
        &mut self,
        id: TokenId,
        status: TokenStatus,
        transition: usize,
        (instance, index): (InstanceId, u32),
        is_first: bool,
    ) {
        let completed = self.tokens.get(&id).is_some_and(|token| token.error.is_none());
        self.changes.changed_instances.insert(instance);
        let mut merged = Ok(());
        if is_first && completed {
            let mut outer = None;
            merged = self.merge_branches(transition, &[(index, id, u64::MAX)], outer.as_mut());
        }
        match merged {
            Ok(()) => {
                let undo = std::mem::take(&mut self.changes.merge_undo);
                self.end_at_join(id, status, "late_merge", undo);
            }
            Err(failure) => {
                // It has not come, as far as a run that is brought back is concerned.
                if let Some(instance) = self.instances.get_mut(&instance) {
                    instance.arrived.remove(&index);
                }
                self.cut_off(id);
                self.end(id, TokenStatus::Failed, |token| {
                    token.error = Some(failure.clone())
                });
                self.fail(failure);
            }
        }
    }

    /// One that failed keeps the reason it failed for.
    fn end_at_join(&mut self, id: TokenId, status: TokenStatus, reason: &str, undo: Vec<Patch>) {
        self.end(id, status, |token| {
            if status == TokenStatus::Completed {
                token.reason = Some(reason.into());
            }
            token.undo.extend(undo);
        });
    }

    /// The join can no longer be met. What waited ends, what runs is aborted; then the branch around decides, or
    /// the run fails.
    fn fail_fan_in(&mut self, id: InstanceId, waiting_become: TokenStatus, failure: Failure) {
        let Some(instance) = self.instances.get(&id) else {
            return;
        };
        let parent = instance.parent.clone();
        let reason = failure.code.clone();
        // By arrival: one that waits may stand in a branch further inside.
        let arrivals = instance
            .fan_ins
            .values()
            .flat_map(|fan_in| fan_in.arrivals.values());
        let waiting: Vec<TokenId> = arrivals.map(|arrival| arrival.token).collect();
        for token in waiting {
            self.cut_off(token);
            self.end(token, waiting_become, |token| token.reason = Some(reason.clone()));
        }
        self.cut_off_members(id);
        self.end_members(id, &reason, true);
        self.close_instance(id);
        if self.is_covered(parent.as_ref()) {
            if let Some(outer) = parent.and_then(|parent| self.instances.get_mut(&parent.instance)) {
                self.changes.changed_instances.insert(outer.id);
                outer.last_error = Some(failure);
            }
        } else {
            self.fail(failure);
        }
    }

    fn cut_off_members(&mut self, id: InstanceId) {
        let Some(instance) = self.instances.get(&id) else {
            return;
        };
        let members: Vec<TokenId> = instance.members.iter().copied().collect();
        let inner: Vec<InstanceId> = instance.inner.iter().copied().collect();
        for inside in inner {
            self.cut_off_members(inside);
        }
        for token in members {
            self.cut_off(token);
        }
    }

    /// Ends every live member of an instance and of the instances inside it.
    fn end_members(&mut self, id: InstanceId, reason: &str, abort: bool) {
        let Some(instance) = self.instances.get(&id) else {
            return;
        };
        let members: Vec<TokenId> = instance.members.iter().copied().collect();
        let inner: Vec<InstanceId> = instance.inner.iter().copied().collect();
        for inside in inner {
            self.end_members(inside, reason, abort);
            self.close_instance(inside);
        }
        for token in members {
            self.cancel_token(token, TokenStatus::Cancelled, reason, abort);
        }
    }

    /// The wait needs attention: a warning, or it is over.
    pub(in crate::run) fn fan_in_due(&mut self, id: InstanceId, node: usize) {
        let now = self.changes.now;
        let warn_at = self.snapshot.workflow.timeouts.warn_at;
        let Some(fan_in) = self
            .instances
            .get_mut(&id)
            .and_then(|instance| instance.fan_ins.get_mut(&node))
        else {
            return;
        };
        if let Some(at) = fan_in.due_at(warn_at) {
            self.due.remove(&(at, Due::FanIn(id, node)));
        }
        let (Some(timeout_at), timeout_ms) = (fan_in.timeout_at, fan_in.timeout_ms) else {
            return;
        };
        if timeout_at <= now {
            return self.sync_timed_out(id, node, timeout_at);
        }
        fan_in.warned = true;
        self.due.insert((timeout_at, Due::FanIn(id, node)));
        self.changes.changed_instances.insert(id);
        self.warn("synchronization", timeout_at, timeout_ms, Some(node), None);
    }

    /// The wait is over.
    fn sync_timed_out(&mut self, id: InstanceId, node: usize, due_at: Millis) {
        let Some(fan_in) = self
            .instances
            .get(&id)
            .and_then(|instance| instance.fan_ins.get(&node))
        else {
            return;
        };
        let transition = fan_in.transition;
        let completed = fan_in.completed;
        // Not `started_at`: pauses do not count, and a run that was brought back waits anew.
        let began_at = due_at.saturating_sub(fan_in.timeout_ms.unwrap_or_default());
        let passed = Passed {
            scope: TimeoutScope::Sync,
            due_at,
            timeout_ms: fan_in.timeout_ms,
        };
        let (action, failure) = match self.join(transition).on_timeout {
            SyncTimeoutPolicy::ProceedWithAvailable if completed > 0 => (FinalAction::Proceed, None),
            SyncTimeoutPolicy::ProceedWithAvailable => {
                (FinalAction::Fail, Some("No siblings completed before timeout"))
            }
            SyncTimeoutPolicy::Fail => (FinalAction::Fail, Some("Synchronization timeout exceeded")),
        };
        let record = self.record_of_run(passed, began_at, Some(node), action);
        self.note_with(
            RunEventKind::SyncTimedOut,
            json!({
                "node_id": self.snapshot.workflow.nodes[node].id,
                "timeout_type": "synchronization",
                "timeout_duration_ms": passed.timeout_ms,
                "policy_applied": action,
                "completed": completed,
            }),
            Some(record),
        );
        let Some(failure) = failure else {
            return self.fire(id, node, None, true);
        };
        let mut failure = Failure::new("sync_timeout", FailureClass::Timeout, failure);
        failure.node_id = Some(self.snapshot.workflow.nodes[node].id.clone());
        self.fail_fan_in(id, TokenStatus::TimedOut, failure);
    }
}
