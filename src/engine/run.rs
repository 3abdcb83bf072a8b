//! A run: its header, its live tokens, its context; `handle` decides what an event means.
//!
//! Only live tokens are held. A token that ends leaves memory with the commit that saves it, so that a loop of
//! ten thousand nodes costs no more per node than the first.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::Value;

use super::branch::{Instance, InstanceId, branch_steps};
use super::conclude::Scratch;
use super::context::Context;
use super::effect::{Effect, Event, Rejection};
use super::gate::GateState;
use super::header::{
    ChildIds, Header, ParentLink, RunStatus, Settings, StartRequest, TriggeredBy, facts_of, hops_of,
    root_event_of,
};
use super::outbox::{OutboxEntry, Starts};
use super::token::{Token, TokenId, TokenStatus};
use crate::model::expression::Scope;
use crate::model::failure::Failure;
use crate::model::snapshot::Snapshot;
use crate::model::time::{Limit, Millis};
use crate::model::timeouts::Layer;
use crate::model::work::Meter;

/// What wakes a run may fail to be saved so many times in a row: then it is given up, or it would never end.
const FAILED_WAKES_MAX: u32 = 5;

/// Something that happens by itself when its moment comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Due {
    Token(TokenId),
    FanIn(InstanceId, usize),
    Message(u64),
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
    pub(super) alarm_at: Option<Millis>,
    /// What needs attention, by its moment.
    pub(super) due: BTreeSet<(Millis, Due)>,
    pub(super) instances: BTreeMap<InstanceId, Instance>,
    pub(super) instances_born: u64,
    pub(super) arrivals_seen: u64,
    pub(super) gates: BTreeMap<String, GateState>,
    /// The gate the whole run stands at.
    pub(super) stands_at: Option<String>,
    /// Events of the run that have a row.
    pub(super) noted: u64,
    /// Attempts whose late result is among them.
    pub(super) late: BTreeSet<(String, u64)>,
    /// Signals that came before anybody waited for them.
    pub(super) signals: BTreeMap<String, Vec<Value>>,
    /// Tokens that wait for a signal, by its name.
    pub(super) listeners: BTreeMap<String, BTreeSet<TokenId>>,
    /// Tokens that wait for a callback.
    pub(super) called_back: BTreeSet<TokenId>,
    pub(super) outbox: BTreeMap<u64, OutboxEntry>,
    pub(super) starts: Starts,
    pub(super) messages_posted: u64,
    /// How often in a row what woke the run could not be saved.
    pub(super) failed_wakes: u32,
    /// What tokens hold that wait at joins.
    pub(super) joined_bytes: usize,
    /// What the decision under way has computed; after it, what it took.
    pub(super) work: Meter,
    /// What decisions before the next one took in the same turn.
    work_before: u64,
    pub(super) scratch: Scratch,
}

/// Names of one token's path.
#[derive(Debug, Default)]
pub(super) struct Vars {
    pub error: Value,
    pub branch: Value,
    pub items: Vec<(String, Value)>,
}

/// A run to be.
pub struct NewRun {
    pub id: String,
    pub snapshot: Rc<Snapshot>,
    pub input: Value,
    pub request: StartRequest,
    pub parent: Option<ParentLink>,
    pub triggered_by: Option<TriggeredBy>,
    /// Nobody can guess it.
    pub secret: String,
}

/// The limit of a run, whatever is left of its parent.
pub(super) fn own_limit_ms(request: &StartRequest, snapshot: &Snapshot) -> Option<u64> {
    let written = snapshot.workflow.timeout;
    let limit = || written.or(snapshot.default_limit(Layer::Flow)).millis();
    request.timeout_ms.or_else(limit)
}

impl Run {
    /// Starts a run: its first token is born at the initial node.
    pub fn create(now: Millis, room: u32, settings: Settings, new: NewRun) -> (Run, Vec<Effect>) {
        let workflow = &new.snapshot.workflow;
        let own_ms = own_limit_ms(&new.request, &new.snapshot);
        let budget_ms = new.request.budget_ms;
        let on_budget = budget_ms.is_some_and(|budget| own_ms.is_none_or(|own| budget <= own));
        let timeout_ms = if on_budget { budget_ms } else { own_ms };
        let header = Header {
            root_run_id: new
                .parent
                .as_ref()
                .map_or_else(|| new.id.clone(), |it| it.root_run_id.clone()),
            depth: new.parent.as_ref().map_or(0, |parent| parent.depth),
            hops: hops_of(new.parent.as_ref(), new.triggered_by.as_ref()),
            root_event: root_event_of(new.parent.as_ref(), new.triggered_by.as_ref()),
            triggered_by: new.triggered_by,
            parent: new.parent,
            paused_at: None,
            held_by: BTreeSet::new(),
            parent_word: 0,
            words_said: 0,
            on_budget,
            warned: false,
            gates_opened: 0,
            secret: Some(new.secret).filter(|_| new.snapshot.has_async()),
            ends: 0,
            tokens_before: 0,
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
            child_ids: ChildIds::Reserved,
        };
        let initial = workflow.initial_node;
        let snapshot = Rc::clone(&new.snapshot.text);
        let mut run = Run::build(header, new.snapshot, settings, Context::new(Rc::new(new.input)));
        run.scratch.now = now;
        run.scratch.room = room;
        run.scratch.header_changed = true;
        run.scratch.announce = true;
        // It is saved as text.
        run.work.count(run.context.input_steps());
        match run.check_input() {
            Ok(()) => run.give_birth(initial, None, None, BTreeMap::new(), None),
            // A caller hears of it before there is a run; a parent hears of it from the child.
            Err(failure) => run.fail(failure),
        }
        run.settle();
        let mut effects = vec![
            Effect::SaveSnapshot(snapshot),
            Effect::SaveInput(run.context.input.clone()),
        ];
        effects.extend(run.conclude());
        (run, effects)
    }

    pub(super) fn build(header: Header, snapshot: Rc<Snapshot>, settings: Settings, context: Context) -> Run {
        let facts = facts_of(&header);
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
            instances: BTreeMap::new(),
            instances_born: 0,
            arrivals_seen: 0,
            gates: BTreeMap::new(),
            stands_at: None,
            noted: 0,
            late: BTreeSet::new(),
            signals: BTreeMap::new(),
            listeners: BTreeMap::new(),
            called_back: BTreeSet::new(),
            outbox: BTreeMap::new(),
            starts: Starts::default(),
            messages_posted: 0,
            failed_wakes: 0,
            joined_bytes: 0,
            work: Meter::default(),
            work_before: 0,
            scratch: Scratch::default(),
        }
    }

    /// Decides what `event` means. A rejection changes nothing but the deadlines that were due anyway. `room`: so many
    /// calls to executors may begin; what is beyond that begins in the next wake.
    pub fn handle(&mut self, now: Millis, room: u32, event: Event) -> (Result<(), Rejection>, Vec<Effect>) {
        // A clock that jumps back must not make the run younger than what it has already seen.
        self.scratch.now = now.max(self.scratch.now).max(self.header.started_at);
        self.scratch.room = room;
        if self.is_running() && self.failed_wakes >= FAILED_WAKES_MAX && matches!(event, Event::Loaded) {
            return (self.abandoned(), self.conclude());
        }
        self.work = Meter::after(std::mem::take(&mut self.work_before));
        // Whatever woke the object, the run's own limit comes first: a result cannot outrun it.
        if !event.comes_first() {
            self.pass_workflow_deadline();
        }
        let answer = self.apply(now, event);
        self.settle();
        (answer, self.conclude())
    }

    fn apply(&mut self, now: Millis, event: Event) -> Result<(), Rejection> {
        match event {
            Event::Abandoned => self.abandoned(),
            Event::Loaded => {
                self.take_over_lost_attempts();
                Ok(())
            }
            Event::AlarmRang { open_calls } => {
                self.forget_failed_wakes();
                self.alarm_at = None;
                self.pass_deadlines(&open_calls);
                Ok(())
            }
            Event::Woken { open_calls } => {
                self.forget_failed_wakes();
                self.forget_passed_alarm(now);
                self.pass_deadlines(&open_calls);
                Ok(())
            }
            Event::Claimed {
                token,
                epoch,
                claimant,
            } => self.claimed(&token, epoch, claimant),
            Event::CallbackReceived { capability, outcome } => self.callback_received(&capability, *outcome),
            Event::Heartbeat { token, epoch } => self.heartbeat(&token, epoch),
            Event::TaskReported(report) => self.task_reported(*report),
            Event::CallLost {
                token,
                epoch,
                message,
            } => self.call_lost(token, epoch, &message),
            Event::ChildEnded(report) => self.child_ended(*report),
            Event::ChildRefused { id, refusal } => {
                self.child_refused(id, refusal);
                Ok(())
            }
            Event::FromParent { sender, event } => {
                self.check_parent(&sender)?;
                self.apply(now, *event)
            }
            Event::Delivered { id } => {
                self.unpost(id);
                Ok(())
            }
            Event::DeliveryFailed { id, is_gone } => {
                self.delivery_failed(id, is_gone);
                Ok(())
            }
            Event::StartsRefused { id, workflows } => {
                self.starts_refused(id, &workflows);
                Ok(())
            }
            Event::DeliveryUnfinished { id, after } => {
                self.delivery_unfinished(id, after);
                Ok(())
            }
            Event::SignalReceived { name, payload } => self.signal_received(name, payload),
            Event::GateDecided { gate, decision } => self.gate_decided(&gate, decision),
            Event::CancelRequested { reason } => self.cancel_requested(reason),
            Event::PauseRequested => self.pause_requested(),
            Event::ResumeRequested => self.resume_requested(),
            Event::ExtendRequested(by) => self.extend_requested(by),
            Event::RetryRequested {
                mode,
                token,
                past,
                rows,
            } => self.retry_requested(mode, token, &past, &rows),
            Event::ParentHolds {
                number,
                held,
                budget_ms,
            } => self.parent_holds(number, held, budget_ms),
            Event::ChildNews(news) => self.child_news(*news),
            Event::RestartRequested { from } => self.restart_requested(from),
        }
    }

    /// Counted until a wake is saved, or the run has ended.
    pub(super) fn forget_failed_wakes(&mut self) {
        self.scratch.forget_failed_wakes |= std::mem::take(&mut self.failed_wakes) > 0;
    }

    /// Steps of computation that the last decision took, and those before it in the same turn.
    pub fn steps(&self) -> u64 {
        self.work.spent()
    }

    /// The next decision is made in a turn in which others took `steps` already: it begins no more than is left.
    pub fn continue_turn(&mut self, steps: u64) {
        self.work_before = steps;
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

    pub fn live_token(&self, id: TokenId) -> Option<&Token> {
        self.tokens.get(&id)
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

    pub fn gates(&self) -> impl Iterator<Item = &GateState> {
        self.gates.values()
    }

    /// Whose word the run's limit is.
    pub fn limit_source(&self) -> &'static str {
        let request = &self.header.request;
        match (
            self.header.on_budget,
            request.timeout_ms,
            self.snapshot.workflow.timeout,
        ) {
            (true, _, _) => "parent",
            (false, Some(_), _) => "request",
            (false, None, Limit::After(_) | Limit::Never) => "workflow",
            (false, None, Limit::Unset) => "preset",
        }
    }

    /// The gate the whole run stands at, if it does.
    pub fn gate_of_run(&self) -> Option<&GateState> {
        self.run_gate()
    }

    pub fn instance(&self, id: InstanceId) -> Option<&Instance> {
        self.instances.get(&id)
    }

    pub fn instances(&self) -> impl Iterator<Item = &Instance> {
        self.instances.values()
    }

    /// What expressions of this token may name beyond the context.
    pub(super) fn vars(&self, token: &Token, error: Value) -> Result<Vars, Failure> {
        for (branch, _) in self.chain(token.branch.as_ref()) {
            self.work.pay_for("what the branch holds", branch_steps(branch))?;
        }
        let items = self
            .chain(token.branch.as_ref())
            .filter_map(|(branch, instance)| {
                Some((
                    instance.item_var.clone()?,
                    branch.item.clone().unwrap_or(Value::Null),
                ))
            });
        Ok(Vars {
            error,
            branch: token
                .branch
                .as_ref()
                .map_or(Value::Null, |branch| self.branch_value(branch)),
            items: items.collect(),
        })
    }

    pub(super) fn scope<'a>(&'a self, vars: &'a Vars) -> Scope<'a> {
        let mut scope = Scope::metered(Some(&self.work));
        scope
            .bind("input", &self.context.input)
            .bind("state", self.context.state())
            .bind("output", self.context.output())
            .bind("run", &self.facts)
            .bind("error", &vars.error)
            .bind("_branch", &vars.branch);
        // Innermost last: a nested fan-out may use a name again.
        for (name, item) in vars.items.iter().rev() {
            scope.bind(name, item);
        }
        scope
    }

    pub(super) fn is_running(&self) -> bool {
        !self.header.status.is_terminal()
    }

    /// An alarm whose time has passed may be lost. One in the future still stands: to write it again costs a row.
    fn forget_passed_alarm(&mut self, now: Millis) {
        if self.alarm_at.is_some_and(|at| at <= now) {
            self.alarm_at = None;
        }
    }

    pub(super) fn is_paused(&self) -> bool {
        self.header.paused_at.is_some()
    }

    /// What the run's clocks show. A deadline set while they stand still is moved by the whole pause like all others,
    /// so it counts from where they stand.
    pub(super) fn clock(&self) -> Millis {
        self.header.paused_at.unwrap_or(self.scratch.now)
    }
}
