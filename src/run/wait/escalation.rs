//! A token that failed, in front of a person instead of at its end: tried again, let through without a result, or
//! given up. Only the person's word or the gate's deadline ends it, so no failure is asked about twice by itself.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::base::failure::Failure;
use crate::definition::wait::GateTimeoutPolicy;
use crate::run::state::Run;
use crate::run::time::event_log::RunEventKind;
use crate::run::token::{TokenId, TokenStatus};
use crate::run::wait::gate::{GateDecision, GateKind, GateState, GateStatus};

const RETRY: &str = "retry";
const FAIL: &str = "fail";
const SKIP: &str = "skip";

/// How a token ends that stands at such a gate, if nobody helps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Escalation {
    pub gate_id: String,
    pub ends: TokenStatus,
    /// Not the token's error yet: a run that ends meanwhile cuts it off like any other that waits.
    pub failure: Failure,
}

impl Run {
    pub(in crate::run) fn is_escalated(&self, id: TokenId, failure: &Failure) -> bool {
        self.tokens.get(&id).is_some_and(|token| {
            let had_work = match token.status {
                TokenStatus::Pending
                | TokenStatus::Dispatched
                | TokenStatus::Executing
                | TokenStatus::WaitingForSubworkflow
                // Let through, and its mapping could not do without a result.
                | TokenStatus::AwaitingHuman => true,
                // A wait has no work; what is called back has.
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

    /// Puts a token that would end in front of a person.
    pub(in crate::run) fn escalate(&mut self, id: TokenId, ends: TokenStatus, failure: Failure) {
        let Some(token) = self.tokens.get(&id) else { return };
        let node_id = self.snapshot.workflow.nodes[token.node].id.clone();
        let gate_id = self.next_gate_id(id);
        let timeout_ms = self.snapshot.workflow.gate.timeout_ms;
        let timeout_at = Some(self.clock().saturating_add(timeout_ms));
        let prompt = json!({
            "text": format!("Node {node_id} failed: {}. Retry it, fail it or skip it?", failure.message),
            "error": failure,
        });
        self.note(
            RunEventKind::GateOpened,
            json!({"gate_id": gate_id, "token_id": id.to_string(), "node_id": node_id, "code": failure.code,
                "class": failure.class}),
        );
        let choices = [RETRY, FAIL, SKIP].map(str::to_string).to_vec();
        let now = self.changes.now;
        let state = GateState {
            node_id: Some(node_id),
            token_id: Some(id.to_string()),
            timeout_at,
            ..GateState::open(gate_id.clone(), GateKind::Escalation, prompt, choices, now)
        };
        self.change(id, |token| {
            token.status = TokenStatus::AwaitingHuman;
            token.timeout_ms = Some(timeout_ms);
            token.timeout_at = timeout_at;
            token.timeout_reason = None;
            token.executor_deadline = None;
            token.warned = false;
            token.watch_at = None;
            token.reason = Some("escalated".into());
            token.escalation = Some(Box::new(Escalation {
                gate_id: gate_id.clone(),
                ends,
                failure,
            }));
        });
        self.changes.changed_gates.insert(gate_id.clone());
        self.gates.insert(gate_id, state);
    }

    /// A token may fail again after a person had it retried: each time is a gate of its own.
    fn next_gate_id(&self, id: TokenId) -> String {
        let prefix = format!("g{}.", id.0);
        let gates = self.gates.range(prefix.clone()..);
        let opened = gates.take_while(|(gate, _)| gate.starts_with(&prefix)).count();
        format!("{prefix}{}", opened + 1)
    }

    /// A person's word on a token that failed; `choice` is one of the gate's.
    pub(in crate::run) fn escalation_decided(&mut self, id: TokenId, decision: GateDecision) {
        let Some(escalation) = self.take_escalation(id) else {
            return;
        };
        self.note(
            RunEventKind::GateDecided,
            json!({"gate_id": escalation.gate_id, "token_id": id.to_string(), "choice": decision.choice,
                "by": decision.by}),
        );
        let choice = decision.choice.clone();
        self.settle_gate(&escalation.gate_id, GateStatus::Decided, Some(decision));
        match choice.as_str() {
            RETRY => self.retry_escalated(id),
            SKIP => self.succeed(id, Value::Null),
            _fail => self.end_for_good(id, escalation.ends, escalation.failure),
        }
    }

    /// Nobody decided: the failure counts.
    pub(in crate::run) fn escalation_due(&mut self, id: TokenId) {
        let now = self.changes.now;
        let is_over = |token: &crate::run::token::Token| token.timeout_at.is_some_and(|at| at <= now);
        if !self.tokens.get(&id).is_some_and(is_over) {
            return;
        }
        self.note_gate_timeout(id, GateTimeoutPolicy::Fail);
        let Some(escalation) = self.take_escalation(id) else {
            return;
        };
        self.settle_gate(&escalation.gate_id, GateStatus::TimedOut, None);
        self.end_for_good(id, escalation.ends, escalation.failure);
    }

    fn take_escalation(&mut self, id: TokenId) -> Option<Escalation> {
        let mut taken = None;
        self.change(id, |token| {
            taken = token.escalation.take();
            token.reason = None;
        });
        taken.map(|escalation| *escalation)
    }

    /// The next attempt, with what the last one had done. Whoever did not answer before has all its chances again.
    fn retry_escalated(&mut self, id: TokenId) {
        self.change(id, |token| {
            token.status = TokenStatus::Pending;
            token.timeout_at = None;
            token.timeout_ms = None;
            token.watch_at = None;
            token.lost_count = 0;
            token.unclaimed = 0;
            token.output = None;
            token.reason = Some("retried_by_person".into());
        });
        self.begin(id);
    }
}
