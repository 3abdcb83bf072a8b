//! The end of a run, from its decision to the end itself: work in flight that must be compensated reports first, then the
//! compensations run in reverse order, then the end handlers. Runs without either end at once.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::base::failure::{Failure, FailureClass};
use crate::base::text::shorten_to;
use crate::base::time::{MINUTE, Millis};
use crate::definition::ending::EndStatus;
use crate::definition::node::NodeRole;
use crate::run::header::{RunStatus, facts_of};
use crate::run::recovery::compensate::{CompensatedToken, CompensationResult};
use crate::run::state::Run;
use crate::run::time::event_log::RunEventKind;
use crate::run::time::row_events::kind_of_end;
use crate::run::time::timeout_record::TimeoutRecord;
use crate::run::token::{Token, TokenId, TokenStatus};

/// An end that was decided and is not reached yet. It is part of the header's row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    pub status: RunStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What tokens become that were in flight and do not complete, and why.
    pub token_status: TokenStatus,
    pub token_reason: String,
    pub phase: EndPhase,
    /// When the current phase is given up.
    pub deadline_at: Millis,
    /// How often the time of the phase was over. After the first time the rest of its work is not tried.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub expirations: u32,
    /// Compensations that failed so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<CompensatedToken>,
    /// Results of the end handlers so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handled: Vec<HandlerResult>,
    /// The event of the end, logged when the end is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<EndEvent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndPhase {
    /// Attempts and child runs that were in flight report before anything is compensated.
    Settling,
    Compensating,
    /// The end handlers run, in their order.
    Handling {
        next: usize,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndEvent {
    pub kind: RunEventKind,
    pub fields: Map<String, Value>,
}

/// How an end handler ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HandlerResult {
    pub status: TokenStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

/// The decision to end.
pub(in crate::run) struct End<'a> {
    pub status: RunStatus,
    pub output: Option<Value>,
    pub error: Option<Failure>,
    pub reason: Option<String>,
    /// What live tokens become.
    pub token_status: TokenStatus,
    pub token_reason: &'a str,
    /// The event of this end, with the record of the timeout that caused it.
    pub event: Option<EventParts>,
}

pub(in crate::run) type EventParts = (RunEventKind, Value, Option<TimeoutRecord>);

/// The code of a failure that is a bug of Curfew.
pub(in crate::run) const INTERNAL_ERROR: &str = "internal_error";

/// So many minutes after its time a compensation whose rows cannot be read is given up.
const EXPIRATIONS_MAX: u32 = 5;

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The longest message of an error in the results of compensations and end handlers, which are part of the header's row.
const SHOWN_MESSAGE: usize = 300;

pub(in crate::run) fn shortened(mut failure: Failure) -> Failure {
    failure.message = shorten_to(&failure.message, SHOWN_MESSAGE);
    failure
}

fn end_status(status: RunStatus) -> EndStatus {
    match status {
        RunStatus::Completed => EndStatus::Completed,
        RunStatus::Failed => EndStatus::Failed,
        RunStatus::TimedOut => EndStatus::TimedOut,
        RunStatus::Cancelled => EndStatus::Cancelled,
        RunStatus::Running | RunStatus::Waiting | RunStatus::Paused | RunStatus::Compensating => {
            unreachable!("a run does not end as {status:?}")
        }
    }
}

impl Run {
    pub(in crate::run) fn is_ending(&self) -> bool {
        self.header.ending.is_some()
    }

    fn ending_mut(&mut self) -> &mut Ending {
        self.changes.header_changed = true;
        let ending = self.header.ending.as_deref_mut();
        ending.expect("called for a run that is ending")
    }

    /// The run ends: at once, or after its compensations and end handlers.
    pub(in crate::run) fn decide_end(&mut self, end: End) {
        let status = end_status(end.status);
        let compensates = self.compensates(end.status);
        let settling = self.settling_tokens(end.status);
        let workflow = &self.snapshot.workflow;
        let mut handlers = workflow.end_handlers.iter();
        let is_handled = handlers.any(|handler| handler.on.contains(&status));
        if !compensates && !is_handled && settling.is_empty() {
            self.end_live_tokens(end.token_status, end.token_reason);
            // The last event of the run.
            if let Some((kind, fields, record)) = end.event {
                self.note_with(kind, fields, record);
            }
            self.header.reason = end.reason;
            self.header.ends += 1;
            return self.finish(end.status, end.output, end.error);
        }
        let timeout_ms = workflow.compensation.timeout_ms;
        let event = self.note_decided_end(end.status, end.event);
        self.stop_all_but(&settling, end.token_status, end.token_reason);
        self.withdraw_run_gate();
        self.changes
            .orders
            .retain(|order| settling.contains(&order.token));
        self.changes.arrivals.clear();
        self.changes.publish_run = true;
        self.start_clock(self.changes.now);
        self.header.paused_at = None;
        self.header.pause_reasons.clear();
        self.header.status = RunStatus::Compensating;
        self.header.ends += 1;
        self.header.ending = Some(Box::new(Ending {
            status: end.status,
            output: end.output,
            error: end.error,
            reason: end.reason,
            token_status: end.token_status,
            token_reason: end.token_reason.to_string(),
            phase: EndPhase::Settling,
            deadline_at: self.changes.now.saturating_add(timeout_ms),
            expirations: 0,
            failed: Vec::new(),
            handled: Vec::new(),
            event,
        }));
        self.changes.header_changed = true;
        self.changes.end_decided = true;
    }

    /// Logs the decision. The event of the end itself follows when the end is reached.
    fn note_decided_end(&mut self, status: RunStatus, event: Option<EventParts>) -> Option<EndEvent> {
        let mut noted = Map::new();
        let mut record = None;
        let event = event.map(|(kind, fields, of_event)| {
            let Value::Object(fields) = fields else {
                unreachable!("the fields of {kind:?} are an object");
            };
            noted = fields.clone();
            record = of_event;
            EndEvent { kind, fields }
        });
        noted.insert("ends_as".into(), json!(status));
        self.note_with(RunEventKind::RunCompensating, Value::Object(noted), record);
        event
    }

    /// Whether completed work is undone before the run ends as `status`.
    fn compensates(&self, status: RunStatus) -> bool {
        let workflow = &self.snapshot.workflow;
        let mut nodes = workflow.nodes.iter();
        workflow.compensation.on.contains(&end_status(status)) && nodes.any(|node| node.compensate.is_some())
    }

    /// The tokens that must report before the run can end as `status`.
    pub(in crate::run) fn settling_tokens(&self, status: RunStatus) -> Vec<TokenId> {
        let compensates = self.compensates(status);
        let tokens = self.tokens.values();
        let settling = tokens.filter(|token| self.must_settle(token, compensates));
        settling.map(|token| token.id).collect()
    }

    /// Whether the token's work must report before anything is compensated: it may have been done already, or its child run
    /// has an end of its own.
    fn must_settle(&self, token: &Token, compensates: bool) -> bool {
        let node = &self.snapshot.workflow.nodes[token.node];
        let is_undone = compensates && node.compensate.is_some();
        match token.status {
            TokenStatus::Executing => is_undone,
            TokenStatus::Suspended => is_undone && self.waits.awaits_callback(token.id),
            TokenStatus::WaitingForSubworkflow => {
                (is_undone || self.snapshot.child_has_ending(token.node))
                    && !self.outbox.holds_start(token.id, token.epoch)
            }
            TokenStatus::Pending
            | TokenStatus::Dispatched
            | TokenStatus::WaitingForSiblings
            | TokenStatus::AwaitingHuman
            | TokenStatus::Completed
            | TokenStatus::Failed
            | TokenStatus::TimedOut
            | TokenStatus::Cancelled => false,
        }
    }

    /// Ends every live token but those of `settling`, and all joins. Child runs are cancelled in any case.
    fn stop_all_but(&mut self, settling: &[TokenId], status: TokenStatus, reason: &str) {
        let live: Vec<TokenId> = self.tokens.keys().copied().collect();
        for id in live {
            if !settling.contains(&id) {
                self.mark_interrupted(id);
                self.cancel_token(id, status, reason, true);
                continue;
            }
            if self.tokens.live(id).status == TokenStatus::WaitingForSubworkflow {
                let token = self.tokens.live(id).clone();
                self.cancel_child(&token, reason);
            }
            self.fans.leave(self.tokens.live(id));
        }
        self.close_all_instances();
    }

    /// A token ended while the run ends: no transition follows.
    pub(in crate::run) fn end_in_ending(&mut self, id: TokenId, status: TokenStatus, error: Option<Failure>) {
        let role = self.snapshot.workflow.nodes[self.tokens.live(id).node].role;
        let noted = error.clone();
        self.waits.end(id);
        self.end(id, status, |token| {
            token.error = noted;
            // The token that it compensates has the result.
            if let Some(compensates) = &mut token.compensates {
                compensates.result = Value::Null;
            }
        });
        match role {
            NodeRole::Declared => {}
            NodeRole::Compensation { of } => self.compensation_ended(of, id, status, error),
            NodeRole::EndHandler => self.ending_mut().handled.push(HandlerResult {
                status,
                error: error.map(shortened),
            }),
        }
    }

    /// Goes on with the next part of the end once no token is live. Returns whether anything was done.
    pub(in crate::run) fn advance_ending(&mut self) -> bool {
        let Some(ending) = self.header.ending.as_deref() else {
            return false;
        };
        let (phase, status, expired) = (ending.phase, ending.status, ending.expirations > 0);
        self.drop_second_attempts();
        if !self.tokens.is_empty() {
            return false;
        }
        match phase {
            EndPhase::Settling => {
                match self.compensates(status) {
                    true => self.begin_phase(EndPhase::Compensating),
                    false => self.begin_phase(EndPhase::Handling { next: 0 }),
                }
                true
            }
            EndPhase::Compensating => {
                if !self.compensations.is_over(expired) {
                    return false;
                }
                self.give_up_compensations(&expired_failure("it was not tried"));
                self.header.compensation = Some(self.compensation_result());
                self.begin_phase(EndPhase::Handling { next: 0 });
                true
            }
            EndPhase::Handling { next } => self.run_end_handler(next, expired),
        }
    }

    /// A token of before the decision may finish its attempt, but gets no further one.
    fn drop_second_attempts(&mut self) {
        let is_waiting = |token: &&Token| {
            let node = &self.snapshot.workflow.nodes[token.node];
            token.status == TokenStatus::Pending && node.role == NodeRole::Declared
        };
        let waiting: Vec<TokenId> = self
            .tokens
            .values()
            .filter(is_waiting)
            .map(|token| token.id)
            .collect();
        for id in waiting {
            self.drop_token(id);
        }
    }

    /// Ends a token of before the decision.
    pub(in crate::run) fn drop_token(&mut self, id: TokenId) {
        let ending = self
            .header
            .ending
            .as_deref()
            .expect("called for a run that is ending");
        let (status, reason) = (ending.token_status, ending.token_reason.clone());
        self.mark_interrupted(id);
        self.changes.end_decided = true;
        self.cancel_token(id, status, &reason, true);
    }

    /// Each phase has the whole time of `compensation.timeout`.
    fn begin_phase(&mut self, phase: EndPhase) {
        let now = self.changes.now;
        let timeout_ms = self.snapshot.workflow.compensation.timeout_ms;
        let ending = self.ending_mut();
        ending.phase = phase;
        ending.deadline_at = now.saturating_add(timeout_ms);
        ending.expirations = 0;
        self.facts = facts_of(&self.header);
    }

    /// Begins the handler `next` or a later one, or ends the run.
    fn run_end_handler(&mut self, next: usize, expired: bool) -> bool {
        let ending = self
            .header
            .ending
            .as_deref()
            .expect("called for a run that is ending");
        let status = end_status(ending.status);
        let mut handlers = self.snapshot.workflow.end_handlers.iter().enumerate().skip(next);
        let Some((index, handler)) = handlers.find(|(_, handler)| handler.on.contains(&status)) else {
            self.reach_end();
            return false;
        };
        let node = handler.node;
        let ending = self.ending_mut();
        ending.phase = EndPhase::Handling { next: index + 1 };
        if expired {
            ending.handled.push(HandlerResult {
                status: TokenStatus::Cancelled,
                error: Some(expired_failure("the end handler was not run")),
            });
            return true;
        }
        self.insert_token(Token::new(self.tokens.next_id(), node, self.changes.now));
        true
    }

    /// The time of the current phase is over.
    pub(in crate::run) fn ending_timed_out(&mut self) {
        let now = self.changes.now;
        let ending = self.ending_mut();
        ending.expirations += 1;
        ending.deadline_at = now.saturating_add(MINUTE);
        if ending.expirations > EXPIRATIONS_MAX {
            self.compensations.give_up_reading();
        }
        let live: Vec<TokenId> = self.tokens.keys().copied().collect();
        for id in live {
            match self.snapshot.workflow.nodes[self.tokens.live(id).node].role {
                NodeRole::Declared => self.drop_token(id),
                NodeRole::Compensation { .. } | NodeRole::EndHandler => {
                    self.abort_work(id, "compensation_timeout");
                    let failure = expired_failure("it was stopped");
                    self.end_in_ending(id, TokenStatus::TimedOut, Some(failure));
                }
            }
        }
    }

    /// The rest of the end cannot be decided or saved because of a bug: the run ends as it was going to, without it.
    pub(in crate::run) fn give_up_ending(&mut self) {
        let live: Vec<TokenId> = self.tokens.keys().copied().collect();
        for id in live {
            match self.snapshot.workflow.nodes[self.tokens.live(id).node].role {
                NodeRole::Declared => self.drop_token(id),
                NodeRole::Compensation { .. } | NodeRole::EndHandler => {
                    self.abort_work(id, INTERNAL_ERROR);
                    let failure = given_up_failure("it was stopped");
                    self.end_in_ending(id, TokenStatus::Cancelled, Some(failure));
                }
            }
        }
        let ending = self.ending_mut();
        let (phase, status) = (ending.phase, ending.status);
        let event = ending.event.get_or_insert_with(|| EndEvent {
            kind: kind_of_end(status),
            fields: Map::new(),
        });
        event.fields.insert("given_up".into(), json!(INTERNAL_ERROR));
        let first_handler = match phase {
            EndPhase::Settling => {
                let compensates = self.compensates(status);
                self.header.compensation = compensates.then(CompensationResult::not_begun);
                0
            }
            EndPhase::Compensating => {
                self.compensations.give_up_reading();
                self.give_up_compensations(&given_up_failure("it was not tried"));
                self.header.compensation = Some(self.compensation_result());
                0
            }
            EndPhase::Handling { next } => next,
        };
        let handlers = self.snapshot.workflow.end_handlers.iter().skip(first_handler);
        let status = end_status(status);
        let skipped = handlers.filter(|handler| handler.on.contains(&status)).count();
        let skipped = (0..skipped).map(|_| HandlerResult {
            status: TokenStatus::Cancelled,
            error: Some(given_up_failure("the end handler was not run")),
        });
        self.ending_mut().handled.extend(skipped);
        self.reach_end();
    }

    fn reach_end(&mut self) {
        let ending = self
            .header
            .ending
            .take()
            .expect("called for a run that is ending");
        let ending = *ending;
        self.header.on_end = ending.handled;
        self.header.reason = ending.reason;
        if let Some(event) = ending.event {
            self.note(event.kind, Value::Object(event.fields));
        }
        self.finish(ending.status, ending.output, ending.error);
        self.facts = facts_of(&self.header);
    }
}

pub(in crate::run) fn expired_failure(what: &str) -> Failure {
    Failure::new(
        "compensation_timeout",
        FailureClass::Timeout,
        format!("the time of compensation.timeout is over: {what}"),
    )
}

fn given_up_failure(what: &str) -> Failure {
    Failure::new(
        INTERNAL_ERROR,
        FailureClass::Permanent,
        format!(
            "Curfew could not decide or save the end of the run, several times in a row: a bug of Curfew; {what}"
        ),
    )
}
