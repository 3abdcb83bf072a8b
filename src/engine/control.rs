//! What a person does to a run: cancel, pause, resume.

use serde_json::Value;

use super::effect::{Rejection, RestartPoint};
use super::header::{RunStatus, facts_of};
use super::run::{Due, Run};
use super::token::{TokenId, TokenStatus};

impl Run {
    pub(super) fn cancel_requested(&mut self, reason: Option<String>) -> Result<(), Rejection> {
        match self.header.status {
            RunStatus::Running | RunStatus::Waiting | RunStatus::Paused => {}
            // Cancelling twice is cancelling once.
            RunStatus::Cancelled => return Ok(()),
            RunStatus::Completed | RunStatus::Failed | RunStatus::TimedOut => {
                return Err(Rejection::RunFinished);
            }
        }
        self.end_live_tokens(TokenStatus::Cancelled, "run_cancelled");
        self.header.reason = reason;
        self.finish(RunStatus::Cancelled, None, None);
        Ok(())
    }

    /// Stops all clocks. Work in flight goes on and its results are kept; nothing new begins.
    pub(super) fn pause_requested(&mut self) -> Result<(), Rejection> {
        if !self.is_running() {
            return Err(Rejection::RunFinished);
        }
        if self.header.paused_at.is_none() {
            self.header.paused_at = Some(self.scratch.now);
            self.scratch.header_changed = true;
            self.scratch.announce = true;
        }
        Ok(())
    }

    /// Lets the clocks go on from where they stood.
    pub(super) fn resume_requested(&mut self) -> Result<(), Rejection> {
        if !self.is_running() {
            return Err(Rejection::RunFinished);
        }
        let paused_at = self.header.paused_at.take().ok_or(Rejection::NotPaused)?;
        let pause = self.scratch.now.saturating_sub(paused_at);
        self.header.timeout_at = self.header.timeout_at.map(|at| at.saturating_add(pause));
        self.scratch.header_changed = true;
        self.scratch.announce = true;
        let live: Vec<TokenId> = self.tokens.keys().copied().collect();
        for id in live {
            let has_clock = self
                .tokens
                .get(&id)
                .is_some_and(|token| token.timeout_at.or(token.watch_at).is_some());
            if has_clock {
                self.change(id, |token| {
                    token.timeout_at = token.timeout_at.map(|at| at.saturating_add(pause));
                    token.watch_at = token.watch_at.map(|at| at.saturating_add(pause));
                });
            }
            // Held back while the clocks stood still.
            let held = self
                .tokens
                .get(&id)
                .is_some_and(|token| token.status == TokenStatus::Pending && token.watch_at.is_none());
            if held {
                self.scratch.arrivals.push_back(id);
            }
        }
        for (id, instance) in &mut self.instances {
            for (node, fan_in) in &mut instance.fan_ins {
                if let Some(at) = fan_in.timeout_at.filter(|_| fan_in.fired_at.is_none()) {
                    self.due.remove(&(at, Due::FanIn(*id, *node)));
                    let later = at.saturating_add(pause);
                    fan_in.timeout_at = Some(later);
                    self.due.insert((later, Due::FanIn(*id, *node)));
                    self.scratch.changed_instances.insert(*id);
                }
            }
        }
        for (id, gate) in &mut self.gates {
            if let Some(at) = gate
                .timeout_at
                .filter(|_| gate.status == super::gate::GateStatus::Open)
            {
                gate.timeout_at = Some(at.saturating_add(pause));
                self.scratch.changed_gates.insert(id.clone());
            }
        }
        Ok(())
    }

    /// The same run again, as its next attempt with a whole limit of its own.
    pub(super) fn restart_requested(&mut self, from: Option<RestartPoint>) -> Result<(), Rejection> {
        let (node, undo) = match from {
            None => (self.snapshot.workflow.initial_node, None),
            Some(point) => (point.node, Some(way_back(&point)?)),
        };
        if self.is_running() {
            self.end_live_tokens(TokenStatus::Cancelled, "run_restarted");
        }
        match undo {
            None => self.context.clear(),
            Some(undo) => {
                for (key, before) in undo {
                    self.context.undo(&key, before);
                }
            }
        }
        let header = &mut self.header;
        header.status = RunStatus::Running;
        header.attempt += 1;
        header.tokens_before = self.born;
        header.ended_at = None;
        header.output = None;
        header.error = None;
        header.reason = None;
        header.paused_at = None;
        header.timeout_at = header
            .timeout_ms
            .map(|millis| self.scratch.now.saturating_add(millis));
        self.facts = facts_of(&self.header);
        self.scratch.header_changed = true;
        self.scratch.announce = true;
        self.give_birth(node, None, None, Default::default(), None);
        Ok(())
    }
}

/// What to put back so that the state is as it was when the last token was born at the node: every later write,
/// newest first.
fn way_back(point: &RestartPoint) -> Result<Vec<(String, Option<Value>)>, Rejection> {
    let born_there = point.history.iter().filter(|past| past.node == point.node);
    let Some(target) = born_there.max_by_key(|past| past.id) else {
        return Err(Rejection::NoWayBack("the run has never been at this node".into()));
    };
    if target.in_branch {
        let message = "the node lies in a branch; go back to the node that fans out, or to the start";
        return Err(Rejection::NoWayBack(message.into()));
    }
    // A token writes when its work is done, a join when its continuation is born, which is after the work that
    // made it fire.
    let mut later = Vec::new();
    for past in &point.history {
        if let Some(exit_order) = past.exit_order.filter(|order| *order > target.born_order) {
            later.push(((exit_order, 0, past.id), &past.undo));
        }
        if (past.born_order, past.id) > (target.born_order, target.id) {
            later.push(((past.born_order, 1, past.id), &past.merge_undo));
        }
    }
    later.sort_by_key(|(order, _)| std::cmp::Reverse(*order));
    Ok(later
        .into_iter()
        .flat_map(|(_, undo)| undo.iter().rev().cloned())
        .collect())
}
