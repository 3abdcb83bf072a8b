//! Escalation: a token that failed waits at a gate instead of ending. A person retries it, skips it or lets it fail;
//! at the gate's deadline it fails. Only a retry can lead to another gate for the same token.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::base::failure::Failure;
use crate::definition::wait::GateTimeoutPolicy;
use crate::run::state::Run;
use crate::run::time::event_log::RunEventKind;
use crate::run::token::deadline::TokenDeadline;
use crate::run::token::route::NO_TRANSITION;
use crate::run::token::{TokenId, TokenStatus};
use crate::run::wait::gate::{GateDecision, GateKind, GateState, GateStatus};

const RETRY: &str = "retry";
const FAIL: &str = "fail";
const SKIP: &str = "skip";

/// How an escalated token ends if it is not retried or skipped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Escalation {
    pub gate_id: String,
    pub ends: TokenStatus,
    /// Not the token's error yet: if the run ends meanwhile, the token was interrupted like any other that waits.
    pub failure: Failure,
    /// The token has its result, and its writes were taken back. Rows of earlier builds keep them in the context.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unwritten: bool,
}

impl Run {
    pub(in crate::run) fn is_escalated(&self, id: TokenId, failure: &Failure) -> bool {
        self.tokens.get(&id).is_some_and(|token| {
            let had_work = match token.status {
                TokenStatus::Pending
                | TokenStatus::Dispatched
                | TokenStatus::Executing
                | TokenStatus::WaitingForSubworkflow
                // Skipped, and its mapping failed without a result.
                | TokenStatus::AwaitingHuman => true,
                // A wait has no work, an async action has.
                TokenStatus::Suspended => self.async_action(token).is_some(),
                TokenStatus::WaitingForSiblings
                | TokenStatus::Completed
                | TokenStatus::Failed
                | TokenStatus::TimedOut
                | TokenStatus::Cancelled => false,
            };
            had_work && self.snapshot.escalates(token.node, failure.class)
        })
    }

    /// Opens a gate for a token that would end.
    pub(in crate::run) fn escalate(&mut self, id: TokenId, ends: TokenStatus, failure: Failure) {
        let token = self.tokens.get(&id).expect("a token is live until it ends");
        let node_id = self.snapshot.workflow.nodes[token.node].id.clone();
        let gate_id = self.gates.next_escalation_id(id);
        let timeout_ms = self.snapshot.workflow.gate.timeout_ms;
        let deadline = TokenDeadline::starting(self.clock(), Some(timeout_ms));
        let prompt = json!({
            "text": format!("Node {node_id} failed: {}. Retry it, fail it or skip it?", failure.message),
            "error": failure,
        });
        let fields = json!({"gate_kind": GateKind::Escalation, "code": failure.code, "class": failure.class});
        let choices = [RETRY, FAIL, SKIP].map(str::to_string).to_vec();
        let now = self.changes.now;
        let state = GateState {
            node_id: Some(node_id),
            token_id: Some(id.to_string()),
            timeout_at: deadline.at,
            ..GateState::open(gate_id.clone(), GateKind::Escalation, prompt, choices, now)
        };
        self.change(id, |token| {
            token.status = TokenStatus::AwaitingHuman;
            token.deadline = deadline;
            token.watch_at = None;
            token.reason = Some("escalated".into());
            token.escalation = Some(Box::new(Escalation {
                gate_id: gate_id.clone(),
                ends,
                failure,
                unwritten: false,
            }));
        });
        self.gates.open(state);
        self.note_on_gate(&gate_id, RunEventKind::GateOpened, fields);
    }

    /// A person decided about an escalated token; `choice` is one of the gate's.
    pub(in crate::run) fn escalation_decided(&mut self, id: TokenId, decision: GateDecision) {
        let escalation = self.take_escalation(id);
        let choice = decision.choice.clone();
        self.close_gate_as(&escalation.gate_id, GateStatus::Decided, Some(decision));
        match choice.as_str() {
            RETRY => self.retry_escalated(id),
            // Without a result the same transitions would be tried again.
            SKIP if escalation.failure.code == NO_TRANSITION => self.skip_dead_end(id, &escalation),
            SKIP => self.succeed(id, Value::Null),
            _fail => self.fail_escalated(id, escalation),
        }
    }

    /// The gate's deadline passed: the token fails.
    pub(in crate::run) fn escalation_due(&mut self, id: TokenId) {
        let token = self.tokens.get(&id).expect("a token is live while it waits");
        let is_over = token.deadline.has_passed(self.changes.now);
        assert!(is_over, "the only timer of an escalated token is its deadline");
        self.note_gate_timeout(id, GateTimeoutPolicy::Fail);
        let escalation = self.take_escalation(id);
        self.gates.close(&escalation.gate_id, GateStatus::TimedOut, None);
        self.fail_escalated(id, escalation);
    }

    /// The result of the token that waits at its gate is on the token only.
    pub(in crate::run) fn mark_unwritten(&mut self, id: TokenId) {
        self.change(id, |token| {
            if let Some(escalation) = &mut token.escalation {
                escalation.unwritten = true;
            }
        });
    }

    /// The token fails as it would have without a gate: what it had written is in the context of its failure routes.
    fn fail_escalated(&mut self, id: TokenId, escalation: Escalation) {
        if escalation.unwritten {
            // A mapping that does not fit any more writes nothing. The token's own failure says why it ends.
            let _ = self.write_again(id);
        }
        self.end_without_escalation(id, escalation.ends, escalation.failure);
    }

    /// No transition matched, and a person lets the path end here, as `on_no_match: end` does.
    fn skip_dead_end(&mut self, id: TokenId, escalation: &Escalation) {
        let written = match escalation.unwritten {
            true => self.write_again(id),
            false => Ok(()),
        };
        match written {
            Ok(()) => self.end_path(id),
            Err(failure) => self.end_unsuccessfully(id, TokenStatus::Failed, failure),
        }
    }

    fn take_escalation(&mut self, id: TokenId) -> Escalation {
        let mut taken = None;
        self.change(id, |token| {
            taken = token.escalation.take();
            token.reason = None;
        });
        *taken.expect("the token of an escalation gate is escalated")
    }

    /// The next attempt continues from the last one's checkpoint. The counts of lost and unclaimed attempts start again at zero.
    fn retry_escalated(&mut self, id: TokenId) {
        let token = self.tokens.live(id);
        if !token.undo.writes.is_empty() {
            // Of an earlier build, which left them in the context.
            self.take_back_writes(id, token.branch.clone());
        }
        self.change(id, |token| {
            token.status = TokenStatus::Pending;
            token.deadline = TokenDeadline::default();
            token.watch_at = None;
            token.lost_count = 0;
            token.claim.unclaimed = 0;
            token.output = None;
            token.reason = Some("retried_by_person".into());
        });
        self.begin(id);
    }
}
