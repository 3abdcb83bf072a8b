//! Fan-in: tokens arrive at joins. The quorum of a join is checked after each arrival and each ended branch.

use crate::base::failure::{Failure, FailureClass};
use crate::definition::fan::Synchronization;
use crate::run::fan::instance::{Branch, InstanceId};
use crate::run::fan::instances::ArrivalKind;
use crate::run::fan::quorum::{BranchCounts, Quorum, needed, quorum};
use crate::run::recovery::undo::Patch;
use crate::run::state::Run;
use crate::run::time::timers::Timer;
use crate::run::token::{JoinWait, Token, TokenId, TokenStatus};

impl Run {
    pub(super) fn join(&self, transition: usize) -> &Synchronization {
        let transition = &self.snapshot.workflow.transitions[transition];
        let join = transition.synchronization.as_ref();
        join.expect("only transitions with a join are joined")
    }

    /// Whether a failure in this branch is left to a join around it.
    pub(in crate::run) fn will_be_joined(&self, branch: Option<&Branch>) -> bool {
        self.fans
            .enclosing(branch)
            .any(|(_, instance)| self.snapshot.joins_of(&instance.group).next().is_some())
    }

    /// A token arrives at a join of its group. It waits there, unless its branch has arrived before or the join has fired.
    /// Then it ends with `status`: a token that failed does not complete by arriving.
    pub(in crate::run) fn arrive(
        &mut self,
        id: TokenId,
        status: TokenStatus,
        transition: usize,
        (instance, index): (InstanceId, u32),
    ) {
        let node = self.snapshot.workflow.transitions[transition].to;
        match self.fans.arrival_kind(instance, index, node) {
            ArrivalKind::Waits => self.wait_at_join(id, transition, (instance, index)),
            ArrivalKind::Repeated => self.end_at_join(id, status, "branch_arrived_before", Vec::new()),
            ArrivalKind::Late { is_first } => {
                self.arrive_late(id, status, transition, (instance, index), is_first);
            }
        }
    }

    fn wait_at_join(&mut self, id: TokenId, transition: usize, (instance, index): (InstanceId, u32)) {
        let now = self.changes.now;
        let node = self.snapshot.workflow.transitions[transition].to;
        self.begin_fan_in(instance, node, transition);
        let completed = self.arriving(id).error.is_none();
        let order = self.fans.arrive((instance, index), node, id, completed);
        let done = self.tokens.count_done() + 1;
        self.change(id, |token| {
            token.status = TokenStatus::WaitingForSiblings;
            token.exit_order = Some(done);
            token.join = Some(JoinWait { node, arrival: order });
            token.deadline.stop();
            token.watch_at = None;
            token.ended_at = Some(now);
        });
        let bytes = self.arriving(id).value_bytes();
        self.fans.hold(id, bytes);
        self.check_quorum(instance, node, transition);
    }

    pub(super) fn arriving(&self, id: TokenId) -> &Token {
        self.tokens.get(&id).expect("a token is live when it arrives")
    }

    /// Ends a token that the join does not wait for. A token that failed keeps its own reason.
    pub(super) fn end_at_join(&mut self, id: TokenId, status: TokenStatus, reason: &str, undo: Vec<Patch>) {
        self.end(id, status, |token| {
            if status == TokenStatus::Completed {
                token.reason = Some(reason.into());
            }
            token.undo.writes.extend(undo);
        });
    }

    fn check_quorum(&mut self, id: InstanceId, node: usize, transition: usize) {
        // Another join of the group may have closed it in the same decision.
        let Some(instance) = self.fans.get(id) else {
            return;
        };
        let branches = BranchCounts {
            completed: instance.completed_at(node),
            pending: instance.pending(),
            total: instance.total,
        };
        match quorum(self.join(transition), branches) {
            Quorum::Open => {}
            Quorum::Reached => self.fire(id, node, false),
            Quorum::Unreachable => {
                let error = instance.last_error.as_ref();
                let cause =
                    error.map_or_else(String::new, |error| format!("; last error: {}", error.message));
                let message = format!(
                    "fan-in at node {} cannot be met: {} of {} branches completed, {} may still and it needs {}{cause}",
                    self.snapshot.workflow.nodes[node].id,
                    branches.completed,
                    branches.total,
                    branches.pending,
                    needed(self.join(transition), branches.total)
                );
                let class = error.map_or(FailureClass::Permanent, |error| error.class);
                let failure = Failure::new("fan_in_failed", class, message);
                self.fail_fan_in(id, TokenStatus::Cancelled, failure);
            }
        }
    }

    /// A branch ended without arriving: checks the joins of its group.
    pub(in crate::run) fn branch_ended(&mut self, id: InstanceId) {
        let instance = self.fans.get(id).expect("the branch ended in an open instance");
        let waiting = instance.waiting_joins();
        if instance.fan_ins.is_empty() {
            let first = self.snapshot.joins_of(&instance.group).next();
            if let Some(transition) = first {
                let node = self.snapshot.workflow.transitions[transition].to;
                self.check_quorum(id, node, transition);
            }
        }
        for (node, transition) in waiting {
            self.check_quorum(id, node, transition);
        }
        if self.fans.get(id).is_some_and(|instance| instance.is_over()) {
            self.close_instance(id);
        }
    }

    /// Closes an instance and removes its timers. Its members have ended.
    pub(super) fn close_instance(&mut self, id: InstanceId) {
        let warn_at = self.snapshot.workflow.timeouts.warn_at;
        let instance = self.fans.close(id);
        for (node, at) in instance.timers(warn_at) {
            self.timers.stop(Timer::Join(id, node), at);
        }
    }

    /// The run ends, and every join with it.
    pub(in crate::run) fn close_all_instances(&mut self) {
        for id in self.fans.ids() {
            self.close_instance(id);
        }
        self.fans.forget_emptied();
    }
}
