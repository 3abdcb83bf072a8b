//! What a person does to a run as a whole: cancel it, begin it again.

use serde_json::json;

use crate::base::limits::{REASON_BYTES, TooLarge};
use crate::run::event::RestartPoint;
use crate::run::header::{PauseReason, RunStatus, facts_of};
use crate::run::rejection::Rejection;
use crate::run::state::Run;
use crate::run::time::event_log::RunEventKind;
use crate::run::token::{TokenId, TokenStatus};

impl Run {
    pub(in crate::run) fn cancel_requested(&mut self, reason: Option<String>) -> Result<(), Rejection> {
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
        self.note(RunEventKind::RunCancelled, json!({"reason": reason}));
        self.end_live_tokens(TokenStatus::Cancelled, "run_cancelled");
        self.header.reason = reason;
        self.finish(RunStatus::Cancelled, None, None);
        Ok(())
    }

    /// The same run again, as its next attempt with a whole limit of its own.
    pub(in crate::run) fn restart_requested(&mut self, from: Option<RestartPoint>) -> Result<(), Rejection> {
        let node = from
            .as_ref()
            .map_or(self.snapshot.workflow.initial_node, |point| point.node);
        if self.is_running() {
            self.end_live_tokens(TokenStatus::Cancelled, "run_restarted");
        }
        if self.run_gate().is_some() {
            self.withdraw_run_gate();
            self.tell_parent(false);
        }
        let from_node_id = from
            .as_ref()
            .map(|_| self.snapshot.workflow.nodes[node].id.clone());
        self.note(
            RunEventKind::RunRestarted,
            json!({"attempt": self.header.attempt + 1, "from_node_id": from_node_id}),
        );
        let went_back_to = match from {
            None => {
                self.context.clear();
                START
            }
            Some(point) => {
                self.context = *point.context;
                point.target
            }
        };
        let held_by_parent = self.header.pause_reasons.contains(&PauseReason::Parent);
        self.begin_anew();
        // A parent that stands still holds its child whatever becomes of it.
        if held_by_parent {
            self.hold_since(PauseReason::Parent, self.changes.now);
        }
        self.header.attempt += 1;
        self.facts = facts_of(&self.header);
        self.spawn_token(node, None, None, Default::default(), None);
        // What was taken back is not to be taken back again by another restart.
        if self.is_running() {
            self.change(self.tokens.newest(), |token| {
                token.went_back_to = Some(went_back_to)
            });
        }
        Ok(())
    }
}

/// No token has this number: the context was empty before the first.
const START: TokenId = TokenId(0);
