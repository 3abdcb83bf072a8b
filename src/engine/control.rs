//! What a person does to a run as a whole: cancel it, begin it again.

use serde_json::{Value, json};

use super::chronicle::EntryKind;
use super::effect::{Rejection, RestartPoint};
use super::header::{Holder, RunStatus, facts_of};
use super::run::Run;
use super::token::TokenStatus;
use crate::model::limits::{REASON_BYTES, TooLarge};

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
        TooLarge::check("the reason", reason.as_ref().map_or(0, String::len), REASON_BYTES)
            .map_err(Rejection::TooLarge)?;
        self.note(EntryKind::RunCancelled, json!({"reason": reason}));
        self.end_live_tokens(TokenStatus::Cancelled, "run_cancelled");
        self.header.reason = reason;
        self.finish(RunStatus::Cancelled, None, None);
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
        if self.run_gate().is_some() {
            self.withdraw_run_gate();
            self.tell_parent(false);
        }
        let from = undo
            .as_ref()
            .map(|_| self.snapshot.workflow.nodes[node].id.clone());
        self.note(
            EntryKind::RunRestarted,
            json!({"attempt": self.header.attempt + 1, "from_node_id": from}),
        );
        match undo {
            None => self.context.clear(),
            Some(undo) => {
                for (key, before) in undo {
                    self.context.undo(&key, before);
                }
            }
        }
        let held_by_parent = self.header.held_by.contains(&Holder::Parent);
        self.begin_anew();
        // A parent that stands still holds its child whatever becomes of it.
        if held_by_parent {
            self.hold_since(Holder::Parent, self.scratch.now);
        }
        self.header.attempt += 1;
        self.facts = facts_of(&self.header);
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
