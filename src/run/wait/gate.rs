//! Gates: a token stands in front of a person. The first decision counts; none in time is a decision, too.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::base::failure::{Failure, FailureClass};
use crate::base::limits::{PROMPT_BYTES, TooLarge};
use crate::base::text::json_bytes;
use crate::base::time::Millis;
use crate::definition::node::NodeKind;
use crate::definition::wait::{Gate, GateTimeoutPolicy};
use crate::run::header::RunStatus;
use crate::run::rejection::Rejection;
use crate::run::size::check_decision;
use crate::run::state::Run;
use crate::run::time::event_log::RunEventKind;
use crate::run::time::timeout_record::{FinalAction, Passed, TimeoutScope};
use crate::run::token::route::mapping_failure;
use crate::run::token::{TokenId, TokenStatus, warning_at};

pub use crate::protocol::run::GateDecision;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateState {
    pub id: String,
    #[serde(default)]
    pub kind: GateKind,
    /// Of a gate that one token stands at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_id: Option<String>,
    pub prompt: Value,
    pub choices: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    pub opened_at: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_at: Option<Millis>,
    /// Of a gate the whole run stands at; a token knows its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warned: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reminded_at: Option<Millis>,
    pub status: GateStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<GateDecision>,
}

/// Why a person is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateKind {
    /// The workflow has a gate there.
    #[default]
    Node,
    /// The run has used up its time.
    WorkflowTimeout,
    /// The run ended, or a token failed, and somebody is to say whether it goes on.
    Escalation,
}

impl GateState {
    /// One that opens now, for the whole run and without an end of its own.
    pub(in crate::run) fn open(
        id: String,
        kind: GateKind,
        prompt: Value,
        choices: Vec<String>,
        now: Millis,
    ) -> GateState {
        GateState {
            id,
            kind,
            node_id: None,
            token_id: None,
            prompt,
            choices,
            input_schema: None,
            opened_at: now,
            timeout_at: None,
            timeout_ms: None,
            warned: false,
            reminded_at: None,
            status: GateStatus::Open,
            decision: None,
        }
    }

    /// When a gate of the whole run needs attention: a warning, or its end.
    pub(in crate::run) fn due_at(&self, warn_at: f64) -> Option<Millis> {
        let warning_at = match self.warned {
            true => None,
            false => warning_at(self.timeout_at, self.timeout_ms, warn_at),
        };
        self.timeout_at.into_iter().chain(warning_at).min()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateStatus {
    Open,
    Decided,
    TimedOut,
    /// The run ended, or the branch, before anybody decided.
    Cancelled,
}

fn gate_id(token: TokenId) -> String {
    format!("g{}", token.0)
}

impl Run {
    fn gate_of(&self, node: usize) -> Option<Gate> {
        match &self.snapshot.workflow.nodes[node].kind {
            NodeKind::Gate(gate) => Some(Gate::clone(gate)),
            NodeKind::Task { .. }
            | NodeKind::Action { .. }
            | NodeKind::Workflow { .. }
            | NodeKind::Wait(_)
            | NodeKind::PassThrough => None,
        }
    }

    /// A token arrived at a gate: it stands there until a person decides or time is up.
    pub(in crate::run) fn open_gate(&mut self, id: TokenId) {
        let Some(token) = self.tokens.get(&id) else { return };
        let node = token.node;
        let Some(gate) = self.gate_of(node) else { return };
        let node_id = self.snapshot.workflow.nodes[node].id.clone();
        let prompt = match &gate.prompt {
            None => Ok(Value::Null),
            Some(prompt) => self
                .vars(token, crate::run::token::route::error_value(token.cause.as_ref()))
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
        let timeout_at = timeout_ms.map(|millis| now.saturating_add(millis));
        let remind_at = timeout_ms.and_then(|millis| reminder_at(now, millis, &gate.remind_at, 0));
        self.change(id, |token| {
            token.status = TokenStatus::AwaitingHuman;
            token.epoch += 1;
            token.started_at = Some(now);
            token.timeout_ms = timeout_ms;
            token.timeout_at = timeout_at;
            token.watch_at = remind_at;
        });
        let state = GateState {
            node_id: Some(node_id),
            token_id: Some(id.to_string()),
            input_schema: gate.input_schema_document,
            timeout_at,
            ..GateState::open(gate_id(id), GateKind::Node, prompt, gate.choices, now)
        };
        self.changes.changed_gates.insert(state.id.clone());
        self.gates.insert(state.id.clone(), state);
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
        let token = TokenId::parse(token).ok_or(Rejection::UnknownGate)?;
        decision.at = self.changes.now;
        match state.kind {
            GateKind::Escalation => {
                self.escalation_decided(token, decision);
                return Ok(());
            }
            GateKind::Node | GateKind::WorkflowTimeout => {}
        }
        let node = self
            .tokens
            .get(&token)
            .map(|token| token.node)
            .ok_or(Rejection::UnknownGate)?;
        if let Some(schema) = self.gate_of(node).and_then(|gate| gate.input_schema)
            && let Some(problem) = schema
                .validate_metered(Some(&self.work), &decision.input)
                .into_iter()
                .next()
        {
            return Err(invalid(&format!("/input{}", problem.pointer), problem.message));
        }
        self.close_gate(token, GateStatus::Decided, Some(decision));
        Ok(())
    }

    /// Closes the gate of a token and, with a decision, completes the token.
    fn close_gate(&mut self, id: TokenId, status: GateStatus, decision: Option<GateDecision>) {
        if !self.settle_gate(&gate_id(id), status, decision.clone()) {
            return;
        }
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

    /// The gate is open no more; false if there is none.
    pub(in crate::run) fn settle_gate(
        &mut self,
        gate: &str,
        status: GateStatus,
        decision: Option<GateDecision>,
    ) -> bool {
        let Some(state) = self.gates.get_mut(gate) else {
            return false;
        };
        state.status = status;
        state.decision = decision;
        self.changes.changed_gates.insert(state.id.clone());
        true
    }

    /// The gate a token stands at, if it stands at one.
    fn gate_id_of(&self, id: TokenId) -> String {
        let token = self.tokens.get(&id);
        let escalation = token.and_then(|token| token.escalation.as_ref());
        escalation.map_or_else(|| gate_id(id), |escalation| escalation.gate_id.clone())
    }

    /// A token at a gate ends by other hands: nobody is to decide any more.
    pub(in crate::run) fn withdraw_gate(&mut self, id: TokenId) {
        let gate = self.gate_id_of(id);
        if self
            .gates
            .get(&gate)
            .is_some_and(|gate| gate.status == GateStatus::Open)
        {
            self.settle_gate(&gate, GateStatus::Cancelled, None);
        }
    }

    /// A deadline of a gate: its end, or a reminder.
    pub(in crate::run) fn gate_due(&mut self, id: TokenId) {
        let Some(token) = self.tokens.get(&id) else { return };
        if token.escalation.is_some() {
            return self.escalation_due(id);
        }
        let Some(gate) = self.gate_of(token.node) else {
            return;
        };
        let now = self.changes.now;
        if token.timeout_at.is_none_or(|at| at > now) {
            // Not `started_at`: a pause moves the deadline, and the reminders with it.
            let opened_at = token
                .timeout_at
                .unwrap_or(now)
                .saturating_sub(token.timeout_ms.unwrap_or(0));
            let reminded = token.reminded + 1;
            let next = token
                .timeout_ms
                .and_then(|millis| reminder_at(opened_at, millis, &gate.remind_at, reminded as usize));
            self.change(id, |token| {
                token.reminded = reminded;
                token.watch_at = next;
            });
            if let Some(state) = self.gates.get_mut(&gate_id(id)) {
                state.reminded_at = Some(now);
                self.changes.changed_gates.insert(state.id.clone());
            }
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
                self.end_live_tokens(TokenStatus::TimedOut, "gate_timeout");
                self.finish(RunStatus::TimedOut, None, Some(failure));
            }
        }
    }

    pub(in crate::run) fn note_gate_timeout(&mut self, id: TokenId, policy: GateTimeoutPolicy) {
        let Some(token) = self.tokens.get(&id) else { return };
        let action = match policy {
            GateTimeoutPolicy::Approve | GateTimeoutPolicy::Reject => FinalAction::Proceed,
            GateTimeoutPolicy::Fail => FinalAction::Fail,
            GateTimeoutPolicy::CancelAll => FinalAction::Cancel,
        };
        let passed = Passed {
            scope: TimeoutScope::Gate,
            due_at: token.timeout_at.unwrap_or(self.changes.now),
            timeout_ms: token.timeout_ms,
        };
        let record = self.record_of_token(token, passed, action);
        let fields = json!({
            "gate_id": self.gate_id_of(id),
            "token_id": id.to_string(),
            "node_id": self.snapshot.workflow.nodes[token.node].id,
            "timeout_duration_ms": token.timeout_ms,
            "policy_applied": action,
        });
        self.note_with(RunEventKind::GateTimedOut, fields, Some(record));
    }
}

/// When the reminder number `sent` is due. One that lies in the past by now is due at once, and only once.
fn reminder_at(opened_at: Millis, timeout_ms: u64, fractions: &[f64], sent: usize) -> Option<Millis> {
    let fraction = fractions.get(sent)?;
    Some(opened_at.saturating_add((timeout_ms as f64 * fraction) as u64))
}
