//! The gate of the whole run: its limit has passed, or it was resumed after its end, and it is paused until a person
//! decides. The gate has a deadline of its own, so the run is certain to end.

use serde_json::{Value, json};

use crate::base::failure::{Failure, FailureClass};
use crate::base::limits::TIMEOUT_MAX_MS;
use crate::base::time::{Millis, format_duration, parse_duration};
use crate::definition::timeouts::TimeoutGatePolicy;
use crate::definition::workflow::WorkflowTimeoutPolicy;
use crate::run::event::Extension;
use crate::run::header::{PauseReason, RunStatus};
use crate::run::recovery::ending::{End, EventParts};
use crate::run::rejection::Rejection;
use crate::run::state::Run;
use crate::run::time::event_log::{RunEventKind, with_name};
use crate::run::time::timeout_record::{FinalAction, Passed, SHOWN, TimeoutScope};
use crate::run::token::{TokenId, TokenStatus};
use crate::run::wait::gate::{GateDecision, GateKind, GateState, GateStatus};

const EXTEND: &str = "extend";
const ABORT: &str = "abort";
const FAIL: &str = "fail";
const RETRY: &str = "retry";

/// The error code of a run whose limit has passed.
pub(in crate::run) const WORKFLOW_TIMEOUT: &str = "workflow_timeout";

/// The error of a run that its limit has ended.
pub fn workflow_timed_out(limit_ms: u64) -> Failure {
    let after = format_duration(limit_ms);
    let message = format!("Workflow execution timed out after {after}");
    Failure::new(WORKFLOW_TIMEOUT, FailureClass::Timeout, message)
}

impl Run {
    /// The run's own limit passed.
    pub(in crate::run) fn workflow_timed_out(&mut self) {
        match self.timeout_policy() {
            WorkflowTimeoutPolicy::CancelAll => {
                let event = self.workflow_timeout_event(RunEventKind::RunTimedOut, FinalAction::Cancel);
                self.end_by_timeout(RunStatus::TimedOut, Some(event));
            }
            WorkflowTimeoutPolicy::Fail => {
                let event = self.workflow_timeout_event(RunEventKind::RunFailed, FinalAction::Fail);
                self.end_by_timeout(RunStatus::Failed, Some(event));
            }
            WorkflowTimeoutPolicy::HumanGate => {
                let (kind, fields, record) =
                    self.workflow_timeout_event(RunEventKind::RunPaused, FinalAction::Escalate);
                self.note_with(kind, fields, record);
                let after = format_duration(self.header.timeout_ms.unwrap_or_default());
                let prompt =
                    format!("The run has used up its limit of {after}. Extend it, abort it or fail it?");
                // Paused as of the limit, however late the alarm fired, so that other deadlines keep the time they had then.
                let limit_at = self.header.timeout_at.unwrap_or(self.changes.now);
                self.pause_since(PauseReason::WorkflowTimeout, limit_at);
                self.open_run_gate(GateKind::WorkflowTimeout, prompt, &[EXTEND, ABORT, FAIL]);
            }
        }
    }

    /// What happens when the run's limit passes. If the limit comes from the parent's node, the run is cancelled and the node's
    /// policy decides; a limit that is the parent's remaining time is not the node's.
    fn timeout_policy(&self) -> WorkflowTimeoutPolicy {
        match self.header.request.node_decides && !self.header.on_budget {
            true => WorkflowTimeoutPolicy::CancelAll,
            false => self.snapshot.workflow.on_timeout,
        }
    }

    /// When the run and all work in flight end, if nothing changes. Where a gate opens at the limit, results are accepted
    /// until the gate's deadline. There is no such moment while the run is paused for another reason.
    pub fn work_ends_at(&self) -> Option<Millis> {
        if self.is_paused() {
            return self.run_gate().and_then(|gate| gate.timeout_at);
        }
        let limit_at = self.workflow_due_at()?;
        if self.is_ending() {
            return Some(limit_at);
        }
        Some(match self.timeout_policy() {
            WorkflowTimeoutPolicy::CancelAll | WorkflowTimeoutPolicy::Fail => limit_at,
            WorkflowTimeoutPolicy::HumanGate => {
                limit_at.saturating_add(self.snapshot.workflow.gate.timeout_ms)
            }
        })
    }

    /// The deadline sent to the executor of an attempt. If the run's limit is not later, the executor gets at least the limit
    /// plus the grace, so that the run enforces its limit first even if the clocks differ a little.
    pub(in crate::run) fn executor_deadline(&self, timeout_at: Option<Millis>) -> Option<Millis> {
        let at = timeout_at?;
        let limit_at = self.workflow_due_at().filter(|limit_at| *limit_at <= at);
        let wins_by = limit_at.map(|limit_at| limit_at.saturating_add(self.settings.grace_ms));
        wins_by.into_iter().chain(timeout_at).max()
    }

    fn workflow_timeout_event(&self, kind: RunEventKind, action: FinalAction) -> EventParts {
        let timeout_ms = self.header.timeout_ms;
        let due_at = self.header.timeout_at.unwrap_or(self.changes.now);
        let passed = Passed {
            scope: TimeoutScope::Flow,
            due_at,
            timeout_ms,
        };
        // Pauses do not count.
        let began_at = due_at.saturating_sub(timeout_ms.unwrap_or_default());
        let record = self.record_of_run(passed, began_at, None, &self.live_ids(), action);
        let live: Vec<String> = self.tokens.keys().take(SHOWN).map(TokenId::to_string).collect();
        let fields = json!({
            "cause": PauseReason::WorkflowTimeout,
            "timeout_type": "workflow",
            "timeout_duration_ms": timeout_ms,
            "policy_applied": action.policy(),
            "live_tokens": self.tokens.len(),
            "token_ids": live,
        });
        (kind, fields, Some(record))
    }

    fn end_by_timeout(&mut self, status: RunStatus, event: Option<EventParts>) {
        let failure = workflow_timed_out(self.header.timeout_ms.unwrap_or_default());
        self.changes.token_timeout = Some(self.workflow_token_timeout(status));
        self.decide_end(End {
            status,
            output: None,
            error: Some(failure),
            reason: None,
            token_status: TokenStatus::TimedOut,
            token_reason: WORKFLOW_TIMEOUT,
            event,
        });
        self.changes.token_timeout = None;
    }

    pub(in crate::run) fn open_run_gate(&mut self, kind: GateKind, prompt: String, choices: &[&str]) {
        let now = self.changes.now;
        let timeout_ms = self.snapshot.workflow.gate.timeout_ms;
        self.header.gates_opened += 1;
        self.changes.header_changed = true;
        let id = format!("run{}", self.header.gates_opened);
        let choices = choices.iter().map(ToString::to_string).collect();
        let state = GateState {
            input_schema: (kind == GateKind::WorkflowTimeout).then(extension_schema),
            timeout_at: Some(now.saturating_add(timeout_ms)),
            timeout_ms: Some(timeout_ms),
            ..GateState::open(id.clone(), kind, Value::from(prompt), choices, now)
        };
        self.gates.open(state);
        self.note_on_gate(&id, RunEventKind::GateOpened, json!({"gate_kind": kind}));
    }

    /// The open gate of the whole run.
    pub(in crate::run) fn run_gate(&self) -> Option<&GateState> {
        self.gates.run_gate()
    }

    fn close_run_gate(&mut self, status: GateStatus, decision: Option<GateDecision>) {
        let Some(id) = self.gates.run_gate().map(|gate| gate.id.clone()) else {
            return;
        };
        self.close_gate_as(&id, status, decision);
    }

    /// The run continues or ends for another reason, so no decision is needed.
    pub(in crate::run) fn withdraw_run_gate(&mut self) {
        self.close_run_gate(GateStatus::Cancelled, None);
    }

    /// A person decided at the gate of the run.
    pub(in crate::run) fn run_gate_decided(
        &mut self,
        kind: GateKind,
        mut decision: GateDecision,
    ) -> Result<(), Rejection> {
        decision.at = self.changes.now;
        let by = decision.by.clone();
        let by = by.as_deref();
        match (kind, decision.choice.as_str()) {
            (GateKind::WorkflowTimeout, EXTEND) => {
                let extension = read_extension(&decision.input)?;
                let to = self.check_extension(extension).map_err(in_decision)?;
                self.close_run_gate(GateStatus::Decided, Some(decision));
                self.apply_extension(to, by);
            }
            (GateKind::Escalation, RETRY) => {
                self.close_run_gate(GateStatus::Decided, Some(decision));
                self.end_pause(PauseReason::Escalation, by);
            }
            (GateKind::WorkflowTimeout, ABORT) => {
                self.close_run_gate(GateStatus::Decided, Some(decision));
                let fields = with_name(by, json!({"cause": PauseReason::Person}));
                let event = (RunEventKind::RunTimedOut, fields, None);
                self.end_by_timeout(RunStatus::TimedOut, Some(event));
            }
            (GateKind::WorkflowTimeout, _fail) => {
                self.close_run_gate(GateStatus::Decided, Some(decision));
                let fields = with_name(by, json!({"cause": PauseReason::Person}));
                let event = (RunEventKind::RunFailed, fields, None);
                self.end_by_timeout(RunStatus::Failed, Some(event));
            }
            (GateKind::Escalation | GateKind::Node, _fail) => {
                self.close_run_gate(GateStatus::Decided, Some(decision));
                self.fail_refused("a person decided not to go on", by);
            }
        }
        Ok(())
    }

    fn fail_refused(&mut self, message: &str, by: Option<&str>) {
        let failure = Failure::new("escalation_refused", FailureClass::Permanent, message);
        let fields = with_name(by, json!({"cause": PauseReason::Person}));
        self.decide_end(End {
            status: RunStatus::Failed,
            output: None,
            error: Some(failure),
            reason: None,
            token_status: TokenStatus::Cancelled,
            token_reason: "run_failed",
            event: Some((RunEventKind::RunFailed, fields, None)),
        });
    }

    /// Handles the timer of the run's gate: a warning, or its deadline.
    pub(in crate::run) fn pass_run_gate(&mut self) {
        let now = self.changes.now;
        let Some(gate) = self.run_gate() else { return };
        let warn_at = self.snapshot.workflow.timeouts.warn_at;
        if gate.due_at(warn_at).is_none_or(|at| at > now) {
            return;
        }
        let (id, opened_at, timeout_ms) = (gate.id.clone(), gate.opened_at, gate.timeout_ms);
        let kind = gate.kind;
        let due_at = gate.timeout_at.unwrap_or(now);
        if due_at > now {
            self.gates.mark_warned(&id);
            return self.warn("gate", due_at, timeout_ms, None, None);
        }
        let (action, status) = match self.snapshot.workflow.gate.on_timeout {
            TimeoutGatePolicy::CancelAll => (FinalAction::Cancel, RunStatus::TimedOut),
            TimeoutGatePolicy::Fail => (FinalAction::Fail, RunStatus::Failed),
        };
        let passed = Passed {
            scope: TimeoutScope::Gate,
            due_at,
            timeout_ms,
        };
        let record = self.record_of_run(passed, opened_at, None, &self.live_ids(), action);
        let fields = json!({
            "gate_id": id, "timeout_type": "workflow", "timeout_duration_ms": timeout_ms, "policy_applied": action.policy(),
        });
        self.note_with(RunEventKind::GateTimedOut, fields, Some(record));
        self.close_run_gate(GateStatus::TimedOut, None);
        match kind {
            GateKind::WorkflowTimeout => self.end_by_timeout(status, None),
            // The run's own limit had not passed.
            GateKind::Escalation | GateKind::Node => {
                let failure = Failure::new("gate_timeout", FailureClass::Timeout, "nobody decided in time");
                self.decide_end(End {
                    status,
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

    /// Moves the limit of a running run, and closes the gate of its limit if that is open.
    pub(in crate::run) fn extend_requested(
        &mut self,
        extension: Extension,
        by: Option<String>,
        operation: Option<String>,
    ) -> Result<(), Rejection> {
        // The answer to the operation was lost.
        if operation.is_some() && self.header.extended_by_operation == operation {
            return Ok(());
        }
        if self.has_ended() {
            return Err(Rejection::CannotExtend(self.header.status));
        }
        if self.is_ending() {
            return Err(Rejection::Ending);
        }
        if self.header.request.node_decides {
            return Err(Rejection::LimitOfParent);
        }
        let to = self.check_extension(extension)?;
        let gate = self.run_gate().map(|gate| gate.kind);
        if gate == Some(GateKind::WorkflowTimeout) {
            let by_ms = to.saturating_sub(self.limit_clock());
            let decision = GateDecision {
                choice: EXTEND.into(),
                input: json!({"by_ms": by_ms}),
                comment: None,
                by: by.clone(),
                at: self.changes.now,
            };
            self.close_run_gate(GateStatus::Decided, Some(decision));
        }
        self.apply_extension(to, by.as_deref());
        if operation.is_some() {
            self.header.extended_by_operation = operation;
        }
        Ok(())
    }

    /// The extended limit, by the run's own clock. An extension of a limit that has passed counts from now.
    fn extended_to(&self, by: Extension) -> Option<Millis> {
        let timeout_at = self.header.timeout_at?.max(self.limit_clock());
        Some(match by {
            Extension::By(millis) => timeout_at.saturating_add(millis),
            Extension::Until(moment) => {
                let stopped_ms = self.changes.now.saturating_sub(self.limit_clock());
                moment.saturating_sub(stopped_ms)
            }
        })
    }

    /// The extended limit, if the extension is allowed.
    fn check_extension(&self, by: Extension) -> Result<Millis, Rejection> {
        let to = self.extended_to(by).ok_or(Rejection::NoDeadline)?;
        let least = self.header.timeout_at.unwrap_or_default().max(self.limit_clock());
        let message = match to.saturating_sub(least) {
            0 => "the run may take as long as that already; name a later moment".to_string(),
            more if more > TIMEOUT_MAX_MS => {
                let most = format_duration(TIMEOUT_MAX_MS);
                format!("a run can be extended by {most} at a time")
            }
            _more => return Ok(to),
        };
        let pointer = match by {
            Extension::By(_) => "/by_ms",
            Extension::Until(_) => "/until",
        };
        Err(Rejection::InvalidExtension { pointer, message })
    }

    fn apply_extension(&mut self, to: Millis, by: Option<&str>) {
        let from = self
            .header
            .timeout_at
            .expect("only a run with a limit is extended");
        let by_ms = to.saturating_sub(from);
        self.header.timeout_at = Some(to);
        self.header.timeout_ms = self.header.timeout_ms.map(|millis| millis.saturating_add(by_ms));
        // The new limit has its own warning and is no longer the parent's remaining time.
        self.header.warned = false;
        self.header.on_budget = false;
        self.changes.header_changed = true;
        self.changes.publish_run = true;
        self.note_by(
            by,
            RunEventKind::RunExtended,
            json!({"by_ms": by_ms, "timeout_ms": self.header.timeout_ms}),
        );
        if self.header.pause_reasons.contains(&PauseReason::WorkflowTimeout) {
            self.end_pause(PauseReason::WorkflowTimeout, by);
        } else if self.snapshot.workflow.timeouts.inherit_budget {
            self.send_pause_to_children();
        }
    }
}

/// The input of the choice `extend`.
fn extension_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "by_ms": {"type": "integer", "minimum": 1, "maximum": TIMEOUT_MAX_MS},
            "by": {"type": "string"},
        },
    })
}

/// Points a rejection at the input of the decision.
fn in_decision(rejection: Rejection) -> Rejection {
    match rejection {
        Rejection::InvalidExtension { pointer, message } => Rejection::InvalidDecision {
            pointer: format!("/input{pointer}"),
            message,
        },
        other => other,
    }
}

/// `{by_ms}` or `{by}`, a duration.
fn read_extension(input: &Value) -> Result<Extension, Rejection> {
    let invalid = |field: &str, message: String| Rejection::InvalidDecision {
        pointer: format!("/input/{field}"),
        message,
    };
    let by_ms = match (&input["by"], &input["by_ms"]) {
        (Value::String(text), Value::Null) => {
            let parsed = parse_duration(text).map_err(|message| invalid("by", message))?;
            if parsed == 0 {
                return Err(invalid("by", "an extension is at least 1ms".into()));
            }
            Some(parsed)
        }
        (Value::Null, by_ms) => by_ms.as_u64().filter(|millis| *millis > 0),
        (_, _) => {
            let message = "write either \"by\", a duration like \"10m\", or \"by_ms\"";
            return Err(invalid("by", message.into()));
        }
    };
    by_ms.map(Extension::By).ok_or_else(|| {
        let message = "\"extend\" needs the number of milliseconds the run gets more, or \"by\": \"10m\"";
        invalid("by_ms", message.into())
    })
}
