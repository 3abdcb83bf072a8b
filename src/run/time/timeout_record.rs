//! The record of a timeout: what was done and how far, so that a person or a program can continue from there.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::base::ordered::object_of;
use crate::base::time::Millis;
use crate::definition::timeouts::TimeoutLayer;
use crate::protocol::task::StepStatus;
use crate::run::state::Run;
use crate::run::time::partial_artifacts::{self, RecordedArtifact};
use crate::run::token::{Token, TokenId};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimeoutRecord {
    pub timeout_event: TimeoutEvent,
    pub last_known_state: LastKnownState,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partial_artifacts: Vec<RecordedArtifact>,
    /// Some of the output so far is not in `partial_artifacts`, because a record has room for so much.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub artifacts_cut: bool,
    pub retry_count: u32,
    pub final_action: FinalAction,
    /// The reason, if it does not follow from the scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TimeoutError>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeoutError {
    pub code: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimeoutEvent {
    pub timestamp: Millis,
    pub scope: TimeoutScope,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    pub elapsed_ms: u64,
    pub due_at: Millis,
    /// How late it was enforced: fired - due.
    pub lateness_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastKnownState {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_ref: Option<String>,
    /// The status of the token, or of the run.
    pub phase: String,
    pub progress: Value,
}

/// Which kind of deadline passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeoutScope {
    Step,
    Flow,
    LlmCall,
    Tool,
    Sync,
    Gate,
}

impl TimeoutScope {
    pub const LAYERS: [&'static str; 4] = ["workflow", "execution", "synchronization", "gate"];

    /// The layer of the deadline, as metrics name it.
    pub fn layer(self) -> &'static str {
        match self {
            TimeoutScope::Step | TimeoutScope::LlmCall | TimeoutScope::Tool => "execution",
            TimeoutScope::Flow => "workflow",
            TimeoutScope::Sync => "synchronization",
            TimeoutScope::Gate => "gate",
        }
    }
}

/// The policy that was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinalAction {
    Escalate,
    Retry,
    Fail,
    Proceed,
    Cancel,
}

impl FinalAction {
    /// The name of the policy, as `policy_applied` of an event has it.
    pub fn policy(self) -> &'static str {
        match self {
            FinalAction::Escalate => "human_gate",
            FinalAction::Retry => "retry",
            FinalAction::Fail => "fail",
            FinalAction::Proceed => "proceed_with_available",
            FinalAction::Cancel => "cancel_all",
        }
    }
}

/// A deadline that passed.
#[derive(Clone, Copy, Debug)]
pub(in crate::run) struct Passed {
    pub scope: TimeoutScope,
    pub due_at: Millis,
    pub timeout_ms: Option<u64>,
}

impl Run {
    pub(in crate::run) fn scope_of(&self, node: usize) -> TimeoutScope {
        match self.snapshot.layer_of(node) {
            TimeoutLayer::Step | TimeoutLayer::Flow => TimeoutScope::Step,
            TimeoutLayer::LlmCall => TimeoutScope::LlmCall,
            TimeoutLayer::Tool => TimeoutScope::Tool,
        }
    }

    /// The record of a token's timeout, from what its row holds.
    pub(in crate::run) fn record_of_token(
        &self,
        token: &Token,
        passed: Passed,
        final_action: FinalAction,
    ) -> TimeoutRecord {
        let total = self
            .snapshot
            .task_of(token.node)
            .map(|task| task.task.steps.len());
        let completed = token
            .steps
            .iter()
            .filter(|step| step.status == StepStatus::Completed)
            .count();
        // The last one: the task went on after those that failed before.
        let stopped = token
            .steps
            .iter()
            .rfind(|step| matches!(step.status, StepStatus::TimedOut | StepStatus::Failed))
            .map(|step| step.reference.clone());
        let mut progress = json!({"steps_completed": completed, "steps_total": total});
        let known = token.progress.as_deref();
        if let Some(known) = known {
            progress["steps_completed"] = json!(completed.max(known.step_index as usize));
            progress["step_index"] = json!(known.step_index);
            progress["attempt"] = json!(known.attempt);
            progress["at"] = json!(known.at);
        }
        let partial = known.into_iter().flat_map(|known| known.partial.iter().cloned());
        let began_at = token.deadline.began_at().or(token.started_at);
        let began_at = began_at.unwrap_or(token.created_at);
        TimeoutRecord {
            timeout_event: self.timeout_event(passed, began_at),
            last_known_state: LastKnownState {
                node_id: Some(self.snapshot.workflow.nodes[token.node].id.clone()),
                token_id: Some(token.id.to_string()),
                step_ref: stopped.or_else(|| known.map(|known| known.step_ref.clone())),
                phase: token.status.name().to_string(),
                progress,
            },
            partial_artifacts: partial.map(RecordedArtifact::from).collect(),
            artifacts_cut: false,
            retry_count: token.retry_count,
            final_action,
            error: None,
        }
    }

    /// The record of a deadline that does not belong to one token: `node` is that of a join, `at_work` are the tokens whose
    /// work was not done.
    pub(in crate::run) fn record_of_run(
        &self,
        passed: Passed,
        began_at: Millis,
        node: Option<usize>,
        at_work: &[TokenId],
        final_action: FinalAction,
    ) -> TimeoutRecord {
        let executing: Vec<TokenId> = self.tokens.keys().copied().take(SHOWN).collect();
        let at_work = at_work.iter().filter_map(|id| self.tokens.get(id));
        let mut nodes: BTreeMap<&str, u64> = BTreeMap::new();
        for token in at_work.clone() {
            *nodes.entry(self.node_id(token)).or_default() += 1;
        }
        let working = at_work.clone().map(|token| (self.node_id(token), token));
        let (partial_artifacts, artifacts_cut) = partial_artifacts::shared(working);
        let at_work: Vec<Value> = at_work.take(SHOWN).map(|token| self.place_of(token)).collect();
        let counts = self.tokens.counts().iter().filter(|(_, count)| **count > 0);
        let counts = object_of(counts.map(|(status, count)| (status.name().to_string(), json!(count))));
        TimeoutRecord {
            timeout_event: self.timeout_event(passed, began_at),
            last_known_state: LastKnownState {
                node_id: node.map(|node| self.snapshot.workflow.nodes[node].id.clone()),
                token_id: None,
                step_ref: None,
                phase: serde_json::to_value(self.header.status)
                    .ok()
                    .and_then(|name| name.as_str().map(str::to_string))
                    .unwrap_or_default(),
                progress: json!({
                    "tokens": counts,
                    "live": executing.iter().map(ToString::to_string).collect::<Vec<_>>(),
                    "nodes": nodes,
                    "at_work": at_work,
                }),
            },
            partial_artifacts,
            artifacts_cut,
            retry_count: 0,
            final_action,
            error: None,
        }
    }

    fn node_id(&self, token: &Token) -> &str {
        self.snapshot.workflow.nodes[token.node].shown_id()
    }

    /// Where a token is: its node, its branch if it has one, and the step of its attempt if that is known.
    fn place_of(&self, token: &Token) -> Value {
        let mut place = json!({
            "token_id": token.id.to_string(),
            "node_id": self.node_id(token),
            "status": token.status.name(),
        });
        if let Some(branch) = &token.branch {
            place["branch"] = json!(branch.index);
        }
        if let Some(progress) = &token.progress {
            place["step_ref"] = json!(progress.step_ref);
            place["step_index"] = json!(progress.step_index);
            place["steps_total"] = json!(progress.steps_total);
            place["attempt"] = json!(progress.attempt);
        }
        place
    }

    /// Every live token.
    pub(in crate::run) fn live_ids(&self) -> Vec<TokenId> {
        self.tokens.keys().copied().collect()
    }

    fn timeout_event(&self, passed: Passed, began_at: Millis) -> TimeoutEvent {
        let now = self.changes.now;
        TimeoutEvent {
            timestamp: now,
            scope: passed.scope,
            timeout_ms: passed.timeout_ms,
            elapsed_ms: now.saturating_sub(began_at),
            due_at: passed.due_at,
            lateness_ms: now.saturating_sub(passed.due_at),
        }
    }
}

/// The most tokens listed in one record or event.
pub(in crate::run) const SHOWN: usize = 100;
