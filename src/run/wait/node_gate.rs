//! A gate in the workflow: a token waits there for a person's decision, with reminders and a deadline.

use serde_json::{Value, json};

use crate::base::failure::{Failure, FailureClass};
use crate::base::limits::{PROMPT_BYTES, TooLarge};
use crate::base::text::json_bytes;
use crate::base::time::Millis;
use crate::definition::node::NodeKind;
use crate::definition::wait::{Gate, GateTimeoutPolicy};
use crate::run::header::RunStatus;
use crate::run::recovery::ending::End;
use crate::run::rejection::{FourEyes, Rejection};
use crate::run::size::check_decision;
use crate::run::state::Run;
use crate::run::time::event_log::{RunEventKind, with_name};
use crate::run::time::timeout_record::{FinalAction, Passed, TimeoutScope};
use crate::run::token::deadline::TokenDeadline;
use crate::run::token::route::{error_value, mapping_failure};
use crate::run::token::{Token, TokenId, TokenStatus};
use crate::run::wait::gate::{GateDecision, GateKind, GateState, GateStatus};
use crate::run::wait::gates::node_gate_id;

impl Run {
    fn gate_of(&self, node: usize) -> Gate {
        match &self.snapshot.workflow.nodes[node].kind {
            NodeKind::Gate(gate) => Gate::clone(gate),
            NodeKind::Task { .. }
            | NodeKind::Action { .. }
            | NodeKind::Workflow { .. }
            | NodeKind::Wait(_)
            | NodeKind::PassThrough => unreachable!("tokens wait for a decision at gates or are escalated"),
        }
    }

    /// The token that waits at an open gate. Its end closes the gate.
    fn token_at_gate(&self, id: TokenId) -> &Token {
        self.tokens.get(&id).expect("the token of an open gate is live")
    }

    /// A token arrives at a gate and waits there until a person decides or the deadline passes.
    pub(in crate::run) fn open_gate(&mut self, id: TokenId) {
        let token = self.token_at_gate(id);
        let node = token.node;
        let gate = self.gate_of(node);
        let node_id = self.snapshot.workflow.nodes[node].id.clone();
        let prompt = match &gate.prompt {
            None => Ok(Value::Null),
            Some(prompt) => self
                .vars(token, error_value(token.cause.as_ref()))
                .and_then(|vars| {
                    let rendered = prompt.render(&self.scope(&vars));
                    rendered.map_err(|wrong| mapping_failure(&format!("prompt of gate {node_id}"), &wrong))
                }),
        };
        let prompt = prompt.and_then(|prompt| {
            let what = format!("the prompt of gate {node_id}");
            TooLarge::check(what, json_bytes(&prompt), PROMPT_BYTES)?;
            Ok(prompt)
        });
        let prompt = match prompt {
            Ok(prompt) => prompt,
            Err(failure) => return self.end_unsuccessfully(id, TokenStatus::Failed, failure),
        };
        let now = self.changes.now;
        let timeout_ms = gate
            .timeout
            .or(self.snapshot.workflow.nodes[node].timeout)
            .millis();
        let deadline = TokenDeadline::starting(now, timeout_ms);
        let timeout_at = deadline.at;
        let remind_at = timeout_ms.and_then(|millis| reminder_at(now, millis, &gate.remind_at, 0));
        self.change(id, |token| {
            token.status = TokenStatus::AwaitingHuman;
            token.epoch += 1;
            token.started_at = Some(now);
            token.deadline = deadline;
            token.watch_at = remind_at;
        });
        let state = GateState {
            node_id: Some(node_id),
            token_id: Some(id.to_string()),
            input_schema: gate.input_schema_document,
            timeout_at,
            ..GateState::open(node_gate_id(id), GateKind::Node, prompt, gate.choices, now)
        };
        self.gates.open(state);
        self.note_on_gate(
            &node_gate_id(id),
            RunEventKind::GateOpened,
            json!({"gate_kind": GateKind::Node}),
        );
    }

    pub(in crate::run) fn gate_decided(
        &mut self,
        gate_id: &str,
        mut decision: GateDecision,
    ) -> Result<(), Rejection> {
        let state = self.gates.get(gate_id).ok_or(Rejection::UnknownGate)?;
        match state.status {
            GateStatus::Open => {}
            GateStatus::Decided | GateStatus::TimedOut | GateStatus::Cancelled => {
                return Err(Rejection::GateClosed(Box::new(state.clone())));
            }
        }
        check_decision(state, &decision)?;
        self.check_four_eyes(state, &decision)?;
        let invalid = |pointer: &str, message: String| Rejection::InvalidDecision {
            pointer: pointer.to_string(),
            message,
        };
        if !state.choices.contains(&decision.choice) {
            let message = format!("\"{}\" is none of {}", decision.choice, state.choices.join(", "));
            return Err(invalid("/choice", message));
        }
        let Some(token) = &state.token_id else {
            return self.run_gate_decided(state.kind, decision);
        };
        let token = TokenId::parse(token).expect("a gate has the id of its token");
        decision.at = self.changes.now;
        match state.kind {
            GateKind::Escalation => {
                self.escalation_decided(token, decision);
                return Ok(());
            }
            GateKind::Node | GateKind::WorkflowTimeout => {}
        }
        let schema = self.gate_of(self.token_at_gate(token).node).input_schema;
        let problem = schema.and_then(|schema| {
            let problems = schema.validate_metered(Some(&self.work), &decision.input);
            problems.into_iter().next()
        });
        if let Some(problem) = problem {
            return Err(invalid(&format!("/input{}", problem.pointer), problem.message));
        }
        self.close_gate(token, GateStatus::Decided, Some(decision));
        Ok(())
    }

    /// The caller that started a run may not decide its gates with `four_eyes`. Only gates of nodes can have it.
    fn check_four_eyes(&self, state: &GateState, decision: &GateDecision) -> Result<(), Rejection> {
        let token = match state.kind {
            GateKind::Node => state.token_id.as_deref().and_then(TokenId::parse),
            GateKind::Escalation | GateKind::WorkflowTimeout => None,
        };
        let needs_another = token.is_some_and(|token| self.gate_of(self.token_at_gate(token).node).four_eyes);
        if !needs_another {
            return Ok(());
        }
        match (&self.header.started_by, &decision.by) {
            (None, _) => Err(Rejection::FourEyes(FourEyes::UnnamedStart)),
            (Some(_), None) => Err(Rejection::FourEyes(FourEyes::UnnamedDecision)),
            (Some(starter), Some(by)) if starter == by => {
                Err(Rejection::FourEyes(FourEyes::SameName(by.clone())))
            }
            (Some(_), Some(_)) => Ok(()),
        }
    }

    /// Closes an open gate. A decision is part of the history; a timeout has an event with its record.
    pub(in crate::run) fn close_gate_as(
        &mut self,
        id: &str,
        status: GateStatus,
        decision: Option<GateDecision>,
    ) {
        if let (GateStatus::Decided, Some(decision)) = (status, &decision) {
            let fields = with_name(decision.by.as_deref(), json!({"choice": decision.choice}));
            self.note_on_gate(id, RunEventKind::GateDecided, fields);
        }
        self.gates.close(id, status, decision);
    }

    /// Closes the gate of a token and, with a decision, completes the token.
    fn close_gate(&mut self, id: TokenId, status: GateStatus, decision: Option<GateDecision>) {
        self.close_gate_as(&node_gate_id(id), status, decision.clone());
        if let Some(decision) = decision {
            let result = json!({
                "choice": decision.choice,
                "input": decision.input,
                "comment": decision.comment,
                "by": decision.by,
            });
            self.succeed(id, result);
        }
    }

    /// The gate that a token waits at, if it waits at one.
    pub fn gate_id_of(&self, id: TokenId) -> String {
        let token = self.tokens.get(&id);
        let escalation = token.and_then(|token| token.escalation.as_ref());
        escalation.map_or_else(|| node_gate_id(id), |escalation| escalation.gate_id.clone())
    }

    /// A token is ended from outside: if it waits at a gate, the gate is cancelled.
    pub(in crate::run) fn withdraw_gate(&mut self, id: TokenId) {
        let gate = self.gate_id_of(id);
        self.gates.withdraw(&gate);
    }

    /// The timer of a gate: a reminder, or its deadline.
    pub(in crate::run) fn gate_due(&mut self, id: TokenId) {
        let token = self.token_at_gate(id);
        if token.escalation.is_some() {
            return self.escalation_due(id);
        }
        let gate = self.gate_of(token.node);
        let now = self.changes.now;
        if !token.deadline.has_passed(now) {
            // Not `started_at`: a pause moves the deadline, and the reminders with it.
            let opened_at = token.deadline.began_at().unwrap_or(now);
            let reminded = token.reminded + 1;
            let next = token
                .deadline
                .timeout_ms
                .and_then(|millis| reminder_at(opened_at, millis, &gate.remind_at, reminded as usize));
            self.change(id, |token| {
                token.reminded = reminded;
                token.watch_at = next;
            });
            self.gates.mark_reminded(&node_gate_id(id), now);
            self.note_on_gate(&node_gate_id(id), RunEventKind::GateReminded, Value::Null);
            return;
        }
        self.note_gate_timeout(id, gate.on_timeout);
        let by_time = |choice: &str| GateDecision {
            choice: choice.to_string(),
            input: Value::Null,
            comment: None,
            by: Some("timeout".into()),
            at: now,
        };
        match gate.on_timeout {
            GateTimeoutPolicy::Approve => self.close_gate(id, GateStatus::TimedOut, Some(by_time("approve"))),
            GateTimeoutPolicy::Reject => self.close_gate(id, GateStatus::TimedOut, Some(by_time("reject"))),
            GateTimeoutPolicy::Fail => {
                self.close_gate(id, GateStatus::TimedOut, None);
                let failure = Failure::new("gate_timeout", FailureClass::Timeout, "nobody decided in time");
                self.end_unsuccessfully(id, TokenStatus::TimedOut, failure);
            }
            GateTimeoutPolicy::CancelAll => {
                self.close_gate(id, GateStatus::TimedOut, None);
                let failure = Failure::new("gate_timeout", FailureClass::Timeout, "nobody decided in time");
                self.decide_end(End {
                    status: RunStatus::TimedOut,
                    output: None,
                    error: Some(failure),
                    reason: None,
                    token_status: TokenStatus::TimedOut,
                    token_reason: "gate_timeout",
                    event: None,
                });
            }
        }
    }

    pub(in crate::run) fn note_gate_timeout(&mut self, id: TokenId, policy: GateTimeoutPolicy) {
        let token = self.token_at_gate(id);
        let action = match policy {
            GateTimeoutPolicy::Approve | GateTimeoutPolicy::Reject => FinalAction::Proceed,
            GateTimeoutPolicy::Fail => FinalAction::Fail,
            GateTimeoutPolicy::CancelAll => FinalAction::Cancel,
        };
        let passed = Passed {
            scope: TimeoutScope::Gate,
            due_at: token.deadline.at.unwrap_or(self.changes.now),
            timeout_ms: token.deadline.timeout_ms,
        };
        let record = self.record_of_token(token, passed, action);
        let fields = json!({
            "gate_id": self.gate_id_of(id),
            "token_id": id.to_string(),
            "node_id": self.snapshot.workflow.nodes[token.node].id,
            "timeout_duration_ms": token.deadline.timeout_ms,
            "policy_applied": action.policy(),
        });
        self.note_with(RunEventKind::GateTimedOut, fields, Some(record));
    }
}

/// When the next reminder is due, after `sent` of them. A moment in the past is due at once.
fn reminder_at(opened_at: Millis, timeout_ms: u64, fractions: &[f64], sent: usize) -> Option<Millis> {
    let fraction = fractions.get(sent)?;
    Some(opened_at.saturating_add((timeout_ms as f64 * fraction) as u64))
}
