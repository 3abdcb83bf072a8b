//! A run: its header, its live tokens, its context; `handle` decides what an event means.
//!
//! Only live tokens are held. A token that ends leaves memory with the commit that saves it, so that a loop of
//! ten thousand nodes costs no more per node than the first.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use serde_json::{Value, json};

use super::context::Context;
use super::effect::{Effect, Event, Order, Rejection};
use super::token::{Token, TokenId, TokenStatus};
use crate::model::expression::Scope;
use crate::model::failure::Failure;
use crate::model::snapshot::{Snapshot, Stored};
use crate::model::time::{DAY, Millis, SECOND};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    Running,
    Completed,
    Failed,
    TimedOut,
    Cancelled,
}

impl RunStatus {
    pub fn is_terminal(self) -> bool {
        match self {
            RunStatus::Running => false,
            RunStatus::Completed | RunStatus::Failed | RunStatus::TimedOut | RunStatus::Cancelled => true,
        }
    }
}

/// What is true of the run as a whole. Saved when the run starts, changes status, and ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    pub id: String,
    pub workflow_id: String,
    pub version: u64,
    pub status: RunStatus,
    pub started_at: Millis,
    pub ended_at: Option<Millis>,
    pub timeout_at: Option<Millis>,
    pub timeout_ms: Option<u64>,
    pub attempt: u64,
    pub output: Option<Value>,
    pub error: Option<Failure>,
    pub reason: Option<String>,
    pub tags: Vec<String>,
    pub request: StartRequest,
    /// Grows with every announcement, so that the index can tell an old message from a new one.
    pub revision: u64,
}

/// What the caller asked for, beyond the input: the same again is the same run.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct StartRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// What an operator may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long a run without a limit of its own may take.
    pub workflow_timeout_ms: u64,
    /// How long after its deadline an executor may still report before it counts as gone.
    pub grace_ms: u64,
    /// How often an attempt without news is looked after.
    pub watch_ms: u64,
    /// How often an attempt may vanish before its token fails.
    pub lost_max: u32,
    /// How long an ended run is kept.
    pub retention_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            workflow_timeout_ms: 3_600 * SECOND,
            grace_ms: 500,
            watch_ms: 30 * SECOND,
            lost_max: 5,
            retention_ms: 30 * DAY,
        }
    }
}

#[derive(Debug)]
pub struct Run {
    pub header: Header,
    pub(super) snapshot: Rc<Snapshot>,
    pub(super) settings: Settings,
    pub(super) context: Context,
    pub(super) tokens: BTreeMap<TokenId, Token>,
    pub(super) counts: BTreeMap<TokenStatus, u64>,
    pub(super) born: u64,
    /// `run` in expressions.
    pub(super) facts: Value,
    /// The moment the storage alarm stands at.
    alarm_at: Option<Millis>,
    /// Live tokens by the moment they need attention.
    pub(super) due: BTreeSet<(Millis, TokenId)>,
    pub(super) scratch: Scratch,
}

/// What one `handle` gathers before it answers.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub now: Millis,
    pub header_changed: bool,
    pub announce: bool,
    pub ended: bool,
    pub delete: bool,
    pub changed: BTreeSet<TokenId>,
    pub terminal: Vec<Token>,
    pub orders: Vec<Order>,
    pub aborts: Vec<(TokenId, u64)>,
    /// Tokens that completed and whose routes are still to be taken.
    pub arrivals: VecDeque<TokenId>,
}

/// A run to be.
pub struct NewRun {
    pub id: String,
    pub stored: Rc<Stored>,
    pub snapshot: Rc<Snapshot>,
    pub input: Value,
    pub request: StartRequest,
}

/// A run as the store remembers it.
pub struct Remembered {
    pub header: Header,
    pub input: Value,
    pub context: Vec<(String, String)>,
    pub live: Vec<Token>,
    pub counts: BTreeMap<TokenStatus, u64>,
    pub alarm_at: Option<Millis>,
}

impl Run {
    /// Starts a run: its first token is born at the initial node.
    pub fn create(now: Millis, settings: Settings, new: NewRun) -> (Run, Vec<Effect>) {
        let workflow = &new.snapshot.workflow;
        let timeout_ms = match new.request.timeout_ms {
            Some(millis) => Some(millis),
            None => workflow
                .timeout
                .or(crate::model::time::Limit::After(settings.workflow_timeout_ms))
                .millis(),
        };
        let header = Header {
            id: new.id,
            workflow_id: workflow.id.clone(),
            version: new.snapshot.version,
            status: RunStatus::Running,
            started_at: now,
            ended_at: None,
            timeout_at: timeout_ms.map(|millis| now.saturating_add(millis)),
            timeout_ms,
            attempt: 1,
            output: None,
            error: None,
            reason: None,
            tags: workflow.tags.clone(),
            request: new.request,
            revision: 0,
        };
        let initial = workflow.initial_node;
        let mut run = Run::build(header, new.snapshot, settings, Context::new(Rc::new(new.input)));
        run.scratch.now = now;
        run.scratch.header_changed = true;
        run.scratch.announce = true;
        run.give_birth(initial, None, BTreeMap::new(), None);
        run.settle();
        let mut effects = vec![
            Effect::SaveSnapshot(new.stored),
            Effect::SaveInput(run.context.input.clone()),
        ];
        effects.extend(run.conclude());
        (run, effects)
    }

    /// Puts a run together again from what the store remembers.
    pub fn recall(snapshot: Rc<Snapshot>, settings: Settings, remembered: Remembered) -> Result<Run, String> {
        let mut context = Context::new(Rc::new(remembered.input));
        for (key, text) in &remembered.context {
            context.restore(key, text)?;
        }
        let mut run = Run::build(remembered.header, snapshot, settings, context);
        run.born = remembered.counts.values().sum();
        run.counts = remembered.counts;
        run.alarm_at = remembered.alarm_at;
        for token in remembered.live {
            if let Some(at) = token.due_at(settings.grace_ms) {
                run.due.insert((at, token.id));
            }
            run.tokens.insert(token.id, token);
        }
        Ok(run)
    }

    fn build(header: Header, snapshot: Rc<Snapshot>, settings: Settings, context: Context) -> Run {
        let facts = json!({
            "id": header.id,
            "started_at": header.started_at,
            "attempt": header.attempt,
        });
        Run {
            header,
            snapshot,
            settings,
            context,
            tokens: BTreeMap::new(),
            counts: BTreeMap::new(),
            born: 0,
            facts,
            alarm_at: None,
            due: BTreeSet::new(),
            scratch: Scratch::default(),
        }
    }

    /// Decides what `event` means. A rejection changes nothing but the deadlines that were due anyway.
    pub fn handle(&mut self, now: Millis, event: Event) -> (Result<(), Rejection>, Vec<Effect>) {
        // A clock that jumps back must not make the run younger than what it has already seen.
        self.scratch.now = now.max(self.scratch.now).max(self.header.started_at);
        // Whatever woke the object, the run's own limit comes first: a result cannot outrun it.
        self.pass_workflow_deadline();
        let answer = match event {
            Event::Loaded => {
                self.take_over_lost_attempts();
                Ok(())
            }
            Event::Woken { open_calls } => {
                self.alarm_rang(now);
                self.pass_deadlines(&open_calls);
                Ok(())
            }
            Event::TaskReported(report) => self.task_reported(*report),
            Event::CallLost {
                token,
                epoch,
                message,
            } => self.call_lost(token, epoch, &message),
            Event::CancelRequested { reason } => self.cancel_requested(reason),
        };
        self.settle();
        (answer, self.conclude())
    }

    /// Something is due: the object feeds `Woken` before whatever else came in.
    pub fn is_due(&self, now: Millis) -> bool {
        self.next_deadline().is_some_and(|at| at <= now)
    }

    pub fn snapshot(&self) -> &Rc<Snapshot> {
        &self.snapshot
    }

    pub fn context(&self) -> &Context {
        &self.context
    }

    pub fn live_tokens(&self) -> impl Iterator<Item = &Token> {
        self.tokens.values()
    }

    pub fn counts(&self) -> &BTreeMap<TokenStatus, u64> {
        &self.counts
    }

    pub fn alarm_at(&self) -> Option<Millis> {
        self.alarm_at
    }

    pub(super) fn scope<'a>(&'a self, error: &'a Value) -> Scope<'a> {
        let mut scope = Scope::new();
        scope
            .bind("input", &self.context.input)
            .bind("state", self.context.state())
            .bind("output", self.context.output())
            .bind("run", &self.facts)
            .bind("error", error);
        scope
    }

    pub(super) fn is_running(&self) -> bool {
        !self.header.status.is_terminal()
    }

    fn alarm_rang(&mut self, now: Millis) {
        // The platform clears an alarm before it rings it; one that stands in the future is still there.
        if self.alarm_at.is_some_and(|at| at <= now) {
            self.alarm_at = None;
        }
    }

    /// Turns what was gathered into effects: saves first, the alarm, then orders.
    fn conclude(&mut self) -> Vec<Effect> {
        let scratch = std::mem::take(&mut self.scratch);
        self.scratch.now = scratch.now;
        if scratch.delete {
            return vec![Effect::DeleteStorage];
        }
        let mut effects = Vec::new();
        if scratch.header_changed {
            self.header.revision += 1;
            effects.push(Effect::SaveRun(Box::new(self.header.clone())));
        }
        for (key, text) in self.context.take_changes() {
            effects.push(Effect::SaveContext { key, text });
        }
        for token in scratch.terminal {
            effects.push(Effect::SaveToken(Box::new(token)));
        }
        for id in scratch.changed {
            if let Some(token) = self.tokens.get(&id) {
                effects.push(Effect::SaveToken(Box::new(token.clone())));
            }
        }
        if let Some(next) = self.next_deadline()
            && self.alarm_at.is_none_or(|at| next < at || at <= scratch.now)
        {
            self.alarm_at = Some(next);
            effects.push(Effect::SetAlarm(next));
        }
        for (token, epoch) in scratch.aborts {
            effects.push(Effect::Abort { token, epoch });
        }
        effects.extend(scratch.orders.into_iter().map(Effect::Dispatch));
        if scratch.announce {
            effects.push(Effect::Announce);
        }
        if scratch.ended {
            effects.push(Effect::RunEnded);
        }
        effects
    }
}
