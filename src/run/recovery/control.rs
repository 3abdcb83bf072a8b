//! Requests of a person about the whole run: cancel it, restart it.

use serde_json::json;

use crate::base::limits::{REASON_BYTES, TooLarge};
use crate::run::event::{Past, RestartPoint};
use crate::run::header::{PauseReason, RunStatus, facts_of};
use crate::run::recovery::compensate::{COMPENSATED, CompensationResult};
use crate::run::recovery::ending::End;
use crate::run::recovery::version::NewVersion;
use crate::run::rejection::Rejection;
use crate::run::state::Run;
use crate::run::time::event_log::{RunEventKind, with_name};
use crate::run::token::{TokenId, TokenStatus};

impl Run {
    pub(in crate::run) fn cancel_requested(
        &mut self,
        reason: Option<String>,
        by: Option<&str>,
    ) -> Result<(), Rejection> {
        match self.header.status {
            RunStatus::Running | RunStatus::Waiting | RunStatus::Paused => {}
            // Cancelling is idempotent, and no cancellation stops what an end has begun.
            RunStatus::Cancelled | RunStatus::Compensating => return Ok(()),
            RunStatus::Completed | RunStatus::Failed | RunStatus::TimedOut => {
                return Err(Rejection::RunFinished);
            }
        }
        TooLarge::check("the reason", reason.as_ref().map_or(0, String::len), REASON_BYTES)
            .map_err(Rejection::TooLarge)?;
        let fields = with_name(by, json!({"reason": reason}));
        self.decide_end(End {
            status: RunStatus::Cancelled,
            output: None,
            error: None,
            reason,
            token_status: TokenStatus::Cancelled,
            token_reason: "run_cancelled",
            event: Some((RunEventKind::RunCancelled, fields, None)),
        });
        Ok(())
    }

    /// Restarts the run as its next attempt, with its whole limit.
    pub(in crate::run) fn restart_requested(
        &mut self,
        from: Option<RestartPoint>,
        version: Option<(NewVersion, Box<Past>)>,
        by: Option<&str>,
    ) -> Result<(), Rejection> {
        if self.is_ending() {
            return Err(Rejection::Ending);
        }
        let undone = self.header.compensation.as_ref();
        if from.is_some() && undone.is_some_and(CompensationResult::undid_work) {
            return Err(Rejection::NoWayBack(COMPENSATED.into()));
        }
        if let Some((version, past)) = &version {
            self.check_restartable_on(version, past, from.is_none())?;
        }
        if self.is_running() {
            self.end_live_tokens(TokenStatus::Cancelled, "run_restarted");
        }
        self.withdraw_run_gate();
        let mut fields = json!({"attempt": self.header.attempt + 1, "from_node_id": null});
        if let Some((version, _)) = version {
            self.note_versions(&version, &mut fields);
            self.change_version_after_tokens(version);
        }
        let workflow = &self.snapshot.workflow;
        let node = from.as_ref().map_or(workflow.initial_node, |point| point.node);
        if from.is_some() {
            fields["from_node_id"] = json!(workflow.nodes[node].id);
        }
        self.note_by(by, RunEventKind::RunRestarted, fields);
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
        let paused_by_parent = self.header.pause_reasons.contains(&PauseReason::Parent);
        self.set_running_again();
        // A restart does not release the pause of a paused parent.
        if paused_by_parent {
            self.pause_since(PauseReason::Parent, self.changes.now);
        }
        self.header.attempt += 1;
        self.facts = facts_of(&self.header);
        self.spawn_token(node, None, None, Default::default(), None);
        // Marks the writes that this restart undid, so that a later restart does not undo them again.
        if self.is_running() {
            self.change(self.tokens.newest(), |token| {
                token.undo.reset_to = Some(went_back_to)
            });
        }
        Ok(())
    }
}

/// The point before the first token, where the context was empty. No token has this id.
const START: TokenId = TokenId(0);
