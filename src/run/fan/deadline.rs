//! The deadlines of joins and the policy that applies when one passes.

use serde_json::json;

use crate::base::failure::{Failure, FailureClass};
use crate::base::time::{Limit, MINUTE, Millis};
use crate::definition::fan::SyncTimeoutPolicy;
use crate::run::fan::instance::{FanIn, FanInState, Instance, InstanceId};
use crate::run::state::Run;
use crate::run::time::event_log::RunEventKind;
use crate::run::time::row_events::TokenTimeout;
use crate::run::time::timeout_record::{FinalAction, Passed, TimeoutScope};
use crate::run::time::timers::Timer;
use crate::run::token::TokenStatus;

/// The code of a join whose deadline passed, and the reason of the branches that were late.
pub(super) const SYNC_TIMEOUT: &str = "sync_timeout";

/// The longest wait of a join without a `timeout`.
const DEFAULT_WAIT_MS: u64 = 30 * MINUTE;

impl Run {
    /// The wait starts with the first arrival. If it started with the fan-out, execution time would count twice.
    pub(super) fn begin_fan_in(&mut self, id: InstanceId, node: usize, transition: usize) {
        let instance = self.fans.get(id).expect("tokens arrive in open instances");
        if instance.fan_ins.contains_key(&node) {
            return;
        }
        let timeout_ms = self.join_limit_ms(transition, instance);
        let fan_in = FanIn {
            transition,
            started_at: self.changes.now,
            timeout_at: timeout_ms.map(|millis| self.clock().saturating_add(millis)),
            timeout_ms,
            warned: false,
            state: FanInState::restored(None),
        };
        if let Some(at) = fan_in.due_at(self.snapshot.workflow.timeouts.warn_at) {
            self.timers.start(Timer::Join(id, node), at);
        }
        self.fans.begin_fan_in(id, node, fan_in);
        let node_id = self.snapshot.workflow.nodes[node].id.as_str();
        self.note_on_instance(id, RunEventKind::FanInStarted, json!({"node_id": node_id}));
    }

    fn join_limit_ms(&self, transition: usize, instance: &Instance) -> Option<u64> {
        match self.join(transition).timeout {
            Limit::After(millis) => Some(millis),
            Limit::Never => None,
            Limit::Unset => Some(self.default_wait_ms(&instance.group, instance.total)),
        }
    }

    /// The joins of a reopened instance have the limits of the run's new version.
    pub(in crate::run) fn set_join_limits(&self, instance: &mut Instance) {
        let joins: Vec<(usize, Option<u64>)> = instance
            .waiting_joins()
            .into_iter()
            .map(|(node, transition)| (node, self.join_limit_ms(transition, instance)))
            .collect();
        for (node, timeout_ms) in joins {
            if let Some(fan_in) = instance.fan_ins.get_mut(&node) {
                fan_in.timeout_ms = timeout_ms;
            }
        }
    }

    /// One and a half times the longest limit in the branches, not counting retries of calls, multiplied by the number of branches: they may run one
    /// after the other.
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
            let limit = self.execution_limit(node).without_retries;
            longest = longest.max(limit.millis().unwrap_or(0));
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

    /// Sets the timers of a reopened instance.
    pub(in crate::run) fn set_fan_in_timers(&mut self, id: InstanceId) {
        let warn_at = self.snapshot.workflow.timeouts.warn_at;
        let instance = self.fans.get(id);
        for (node, at) in instance.into_iter().flat_map(|it| it.timers(warn_at)) {
            self.timers.start(Timer::Join(id, node), at);
        }
    }

    /// A pause does not count as waiting.
    pub(in crate::run) fn shift_joins(&mut self, pause_ms: u64) {
        let warn_at = self.snapshot.workflow.timeouts.warn_at;
        for timer in self.fans.shift_deadlines(pause_ms, warn_at) {
            let join = Timer::Join(timer.instance, timer.node);
            self.timers.reschedule(join, Some(timer.from), timer.to);
        }
    }

    /// Handles the timer of a join: a warning, or its deadline.
    pub(in crate::run) fn fan_in_due(&mut self, id: InstanceId, node: usize) {
        let fan_in = self.fans.fan_in(id, node);
        let due_at = fan_in.due_at(self.snapshot.workflow.timeouts.warn_at);
        self.timers
            .stop(Timer::Join(id, node), due_at.expect("it is due"));
        let timeout_at = fan_in
            .timeout_at
            .expect("only a join with a deadline has a timer");
        let timeout_ms = fan_in.timeout_ms;
        if timeout_at <= self.changes.now {
            return self.sync_timed_out(id, node, timeout_at);
        }
        self.fans.mark_warned(id, node);
        self.timers.start(Timer::Join(id, node), timeout_at);
        self.warn("synchronization", timeout_at, timeout_ms, Some(node), None);
    }

    fn sync_timed_out(&mut self, id: InstanceId, node: usize, due_at: Millis) {
        let fan_in = self.fans.fan_in(id, node);
        let transition = fan_in.transition;
        let arrivals = fan_in.arrivals().expect("a join that fired has no timer");
        let completed = arrivals.completed();
        // Not `started_at`: pauses do not count, and a resumed run starts the wait again.
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
        let late = self.late_members(id, node);
        let record = self.record_of_run(passed, began_at, Some(node), &late, action);
        self.note_with(
            RunEventKind::SyncTimedOut,
            json!({
                "node_id": self.snapshot.workflow.nodes[node].id,
                "timeout_type": "synchronization",
                "timeout_duration_ms": passed.timeout_ms,
                "policy_applied": action.policy(),
                "completed": completed,
            }),
            Some(record),
        );
        let policy = match failure {
            None => "proceed_with_available",
            Some(_) => "fail",
        };
        self.changes.token_timeout = Some(TokenTimeout {
            timeout_type: "synchronization",
            timeout_ms: passed.timeout_ms,
            policy,
        });
        self.end_wait_of_join(id, node, failure);
        self.changes.token_timeout = None;
    }

    fn end_wait_of_join(&mut self, id: InstanceId, node: usize, failure: Option<&str>) {
        let Some(failure) = failure else {
            return self.fire(id, node, true);
        };
        let mut failure = Failure::new(SYNC_TIMEOUT, FailureClass::Timeout, failure);
        failure.node_id = Some(self.snapshot.workflow.nodes[node].id.clone());
        self.fail_fan_in(id, TokenStatus::TimedOut, failure);
    }
}
