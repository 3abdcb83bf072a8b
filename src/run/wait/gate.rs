//! A gate: a person is asked for a decision. The first decision counts; the deadline decides if no person does.
//!
//! `GateState` is also the row of the gate, so its fields are those of the row.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::time::Millis;
use crate::run::time::row_events::RowEvent;
use crate::run::token::deadline::warning_at;

pub use crate::protocol::run::GateDecision;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateState {
    pub id: String,
    #[serde(default)]
    pub kind: GateKind,
    /// Of a gate of one token.
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
    /// Of a gate of the whole run; that of a token is on the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warned: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reminded_at: Option<Millis>,
    pub status: GateStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<GateDecision>,
    /// Its part of the run's history.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<RowEvent>,
}

/// Why a person is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateKind {
    /// The workflow has a gate there.
    #[default]
    Node,
    /// The run's limit passed.
    WorkflowTimeout,
    /// The run ended or a token failed, and a person decides whether to continue.
    Escalation,
}

impl GateState {
    /// An open gate of the whole run, without a deadline.
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
            events: Vec::new(),
        }
    }

    /// When the timer of a gate of the whole run fires: for a warning, or at its deadline.
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
    /// The token or the run ended before a decision.
    Cancelled,
}
