//! A join fires: the results of its branches are merged, and exactly one token continues.

use serde_json::json;

use crate::definition::fan::EarlyCompletePolicy;
use crate::run::fan::deadline::SYNC_TIMEOUT;
use crate::run::fan::instance::{Arrival, InstanceId};
use crate::run::state::Run;
use crate::run::time::event_log::RunEventKind;
use crate::run::time::timers::Timer;
use crate::run::token::{TokenId, TokenStatus};

impl Run {
    /// Merges the arrivals, creates the token that continues, and ends the branches that the join does not wait for.
    pub(super) fn fire(&mut self, id: InstanceId, node: usize, by_deadline: bool) {
        let instance = self.fans.get(id).expect("an open instance fires");
        let fan_in = self.fans.fan_in(id, node);
        let transition = fan_in.transition;
        let timer = fan_in.due_at(self.snapshot.workflow.timeouts.warn_at);
        let arrivals = fan_in.arrivals().expect("a join fires once");
        let waiting: Vec<(u32, Arrival)> = arrivals.iter().collect();
        let merged: Vec<(u32, Arrival)> = waiting
            .iter()
            .filter(|(_, arrival)| arrival.completed)
            .copied()
            .collect();
        let mut branch = instance.parent.clone();
        let outer = branch.as_mut().map(|branch| &mut branch.output);
        if let Err(failure) = self.merge_branches(transition, &merged, outer) {
            return self.fail_fan_in(id, TokenStatus::Cancelled, failure);
        }
        if let Some(at) = timer {
            self.timers.stop(Timer::Join(id, node), at);
        }
        self.fans.fire(id, node, self.changes.now);
        let node_id = self.snapshot.workflow.nodes[node].id.as_str();
        let fields = json!({"node_id": node_id, "completed": merged.len()});
        self.note_on_instance(id, RunEventKind::FanInCompleted, fields);
        let last = waiting.iter().max_by_key(|(_, arrival)| arrival.order);
        let parent = last.map(|(_, arrival)| arrival.token);
        let last = parent.and_then(|token| self.tokens.get(&token));
        let last = last.expect("a join fires with at least one arrival, and its token is live");
        let loops = self.loops_after(last, transition);
        for (_, arrival) in waiting {
            let status = match arrival.completed {
                true => TokenStatus::Completed,
                false => TokenStatus::Failed,
            };
            self.end(arrival.token, status, |_| {});
        }
        // After the tokens it replaces: a join as wide as `tokens_active` allows must fit.
        self.spawn_token(node, parent, branch, loops, None);
        self.release_siblings(id, self.join(transition).on_early_complete, by_deadline);
    }

    /// Applies `on_early_complete` to the branches that a fired join did not wait for. Branches that a deadline was too early
    /// for have timed out; the policy then says whether their calls run on.
    fn release_siblings(&mut self, id: InstanceId, policy: EarlyCompletePolicy, by_deadline: bool) {
        // False if the new token exceeded a limit and ended the run, which closed the instance.
        let is_open = self.is_running();
        let (status, reason) = match (by_deadline, policy) {
            (true, _) => (TokenStatus::TimedOut, SYNC_TIMEOUT),
            (false, EarlyCompletePolicy::Cancel) => (TokenStatus::Cancelled, "fan_in_completed"),
            (false, EarlyCompletePolicy::Abandon | EarlyCompletePolicy::AllowLateMerge) => {
                (TokenStatus::Cancelled, "abandoned")
            }
        };
        match policy {
            EarlyCompletePolicy::Abandon if is_open => self.end_members(id, status, reason, false),
            EarlyCompletePolicy::Cancel if is_open => self.end_members(id, status, reason, true),
            EarlyCompletePolicy::Abandon | EarlyCompletePolicy::Cancel => {}
            // They stay, and the instance with them, until the last one has arrived or ended.
            EarlyCompletePolicy::AllowLateMerge => {
                let instance = self.fans.get(id);
                if !instance.is_some_and(|instance| instance.has_no_members()) {
                    return;
                }
            }
        }
        self.fans.mark_decided(id);
        if is_open {
            self.close_instance(id);
        }
    }

    /// A token arrives at a join that has fired and still merges late results.
    pub(super) fn arrive_late(
        &mut self,
        id: TokenId,
        status: TokenStatus,
        transition: usize,
        (instance, index): (InstanceId, u32),
        is_first: bool,
    ) {
        self.fans.arrive_late(instance, index);
        let arrival = Arrival {
            token: id,
            completed: self.arriving(id).error.is_none(),
            order: u64::MAX,
        };
        let merged = match is_first && arrival.completed {
            true => self.merge_branches(transition, &[(index, arrival)], None),
            false => Ok(()),
        };
        match merged {
            Ok(()) => {
                let undo = std::mem::take(&mut self.changes.merge_undo);
                self.end_at_join(id, status, "late_merge", undo);
            }
            Err(failure) => {
                self.fans.undo_late_arrival(instance, index);
                self.mark_interrupted(id);
                self.end(id, TokenStatus::Failed, |token| {
                    token.error = Some(failure.clone())
                });
                self.fail(failure);
            }
        }
    }
}
