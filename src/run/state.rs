//! A run: its header, live tokens and context. `handle` turns an event into a decision.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::{Value, json};

use crate::base::compute::Meter;
use crate::base::failure::Failure;
use crate::base::time::{Limit, Millis};
use crate::base::trace::TraceParent;
use crate::cel::Scope;
use crate::definition::NOW;
use crate::definition::snapshot::Snapshot;
use crate::definition::timeouts::TimeoutLayer;
use crate::run::context::Context;
use crate::run::decision::Decision;
use crate::run::event::Event;
use crate::run::fan::instance::{Instance, InstanceId, branch_steps};
use crate::run::fan::instances::Instances;
use crate::run::header::{
    ChildIds, Header, ParentLink, RunStatus, Settings, StartRequest, TriggeredBy, facts_of, hops_of,
    root_event_of,
};
use crate::run::metrics::RunMetrics;
use crate::run::notification::Notifications;
use crate::run::outbox::Outbox;
use crate::run::pending_changes::PendingChanges;
use crate::run::recovery::compensate::Compensations;
use crate::run::recovery::version::FormerVersion;
use crate::run::rejection::Rejection;
use crate::run::time::event_log::{EventLog, RunEventKind, with_name};
use crate::run::time::timers::Timers;
use crate::run::token::tokens::Tokens;
use crate::run::token::{Token, TokenId, TokenStatus};
use crate::run::wait::capability::CallbackSecret;
use crate::run::wait::gate::GateState;
use crate::run::wait::gates::Gates;
use crate::run::wait::waits::Waits;

/// After this many consecutive wakes that could not be saved the run fails; otherwise it would never end.
const FAILED_WAKES_MAX: u32 = 5;

#[derive(Debug)]
pub struct Run {
    pub header: Header,
    pub(in crate::run) snapshot: Rc<Snapshot>,
    pub(in crate::run) settings: Settings,
    pub(in crate::run) context: Context,
    pub(in crate::run) tokens: Tokens,
    /// `run` in expressions.
    pub(in crate::run) facts: Value,
    pub(in crate::run) timers: Timers,
    pub(in crate::run) fans: Instances,
    pub(in crate::run) gates: Gates,
    pub(in crate::run) waits: Waits,
    pub(in crate::run) event_log: EventLog,
    pub(in crate::run) outbox: Outbox,
    pub(in crate::run) notifications: Notifications,
    pub(in crate::run) compensations: Compensations,
    pub(in crate::run) former: Option<FormerVersion>,
    /// Consecutive wakes whose decision could not be saved.
    pub(in crate::run) failed_wakes: u32,
    /// Computation steps of the current or last decision.
    pub(in crate::run) work: Meter,
    /// Steps that earlier decisions of the same turn used.
    steps_before: u64,
    /// `None` until they are needed.
    pub(in crate::run) metrics: Option<RunMetrics>,
    pub(in crate::run) changes: PendingChanges,
}

/// Variables that expressions of one token can use beyond the context.
#[derive(Debug, Default)]
pub(in crate::run) struct Vars {
    pub error: Value,
    pub branch: Value,
    pub items: Vec<(String, Value)>,
}

/// The parameters of a new run.
pub struct NewRun {
    pub id: String,
    pub snapshot: Rc<Snapshot>,
    pub input: Value,
    pub request: StartRequest,
    pub parent: Option<ParentLink>,
    pub triggered_by: Option<TriggeredBy>,
    /// Kept if the run needs it.
    pub callback_secret: CallbackSecret,
    pub started_by: Option<String>,
    pub traceparent: Option<TraceParent>,
}

/// The run's own limit, ignoring the remaining time of its parent.
pub(in crate::run) fn own_limit_ms(request: &StartRequest, snapshot: &Snapshot) -> Option<u64> {
    let written = snapshot.workflow.timeout;
    let limit = || written.or(snapshot.default_limit(TimeoutLayer::Flow)).millis();
    request.timeout_ms.or_else(limit)
}

impl Run {
    /// Starts a run with its first token at the initial node.
    pub fn create(now: Millis, remaining_calls: u32, settings: Settings, new: NewRun) -> (Run, Decision) {
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
            started_by: new.started_by,
            parent: new.parent,
            paused_at: None,
            stopped_at: None,
            pause_reasons: BTreeSet::new(),
            hold_seq_received: 0,
            hold_seq_sent: 0,
            on_budget,
            warned: false,
            gates_opened: 0,
            callback_secret: Some(new.callback_secret).filter(|_| new.snapshot.has_async),
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
            ending: None,
            compensation: None,
            on_end: Vec::new(),
            settled_order: 0,
            events: Vec::new(),
            extended_by_operation: None,
            rows_written: 0,
            traceparent: new.traceparent,
        };
        let initial = workflow.initial_node;
        let mut run = Run::build(header, new.snapshot, settings, Context::new(Rc::new(new.input)));
        run.metrics = Some(RunMetrics::default());
        run.changes.now = now;
        run.changes.remaining_calls = remaining_calls;
        run.changes.is_new_run = true;
        run.changes.header_changed = true;
        run.changes.publish_run = true;
        let started = with_name(
            run.header.started_by.as_deref(),
            json!({"version": run.header.version}),
        );
        run.note_on_header(RunEventKind::RunStarted, started);
        // Saving the input means writing it as text.
        run.work.count(run.context.input_steps());
        match run.check_input() {
            Ok(()) => run.spawn_token(initial, None, None, BTreeMap::new(), None),
            // The API validates the input before it creates a run. A child with invalid input fails and reports that to its parent.
            Err(failure) => run.fail(failure),
        }
        run.drain();
        let decision = run.build_decision();
        (run, decision)
    }

    pub(in crate::run) fn build(
        header: Header,
        snapshot: Rc<Snapshot>,
        settings: Settings,
        context: Context,
    ) -> Run {
        let facts = facts_of(&header);
        Run {
            header,
            snapshot,
            settings,
            context,
            tokens: Tokens::default(),
            facts,
            timers: Timers::default(),
            fans: Instances::default(),
            gates: Gates::default(),
            waits: Waits::default(),
            event_log: EventLog::default(),
            outbox: Outbox::default(),
            notifications: Notifications::default(),
            compensations: Compensations::default(),
            former: None,
            failed_wakes: 0,
            work: Meter::default(),
            steps_before: 0,
            metrics: None,
            changes: PendingChanges::default(),
        }
    }

    /// Handles `event`. A rejection changes nothing except deadlines that were due anyway. At most `remaining_calls` executor
    /// calls are made; further attempts begin in the next wake.
    pub fn handle(
        &mut self,
        now: Millis,
        remaining_calls: u32,
        event: Event,
    ) -> (Result<(), Rejection>, Decision) {
        // The run's time never goes back, even if the clock does.
        self.changes.now = now.max(self.changes.now).max(self.header.started_at);
        self.former = None;
        self.changes.remaining_calls = remaining_calls;
        self.changes.waited_for_person = self.waits_for_person();
        if !self.has_ended() && self.failed_wakes >= FAILED_WAKES_MAX && matches!(event, Event::Loaded) {
            return (self.abandoned(), self.build_decision());
        }
        self.work = Meter::starting_at(std::mem::take(&mut self.steps_before));
        // The run's own limit is applied first, so that a late result cannot bypass it.
        if !event.comes_first() {
            self.pass_workflow_deadline();
        }
        let answer = self.apply(now, event);
        self.drain();
        (answer, self.build_decision())
    }

    fn apply(&mut self, now: Millis, event: Event) -> Result<(), Rejection> {
        match event {
            Event::Abandoned => self.abandoned(),
            Event::Loaded => {
                self.take_over_lost_attempts();
                Ok(())
            }
            Event::AlarmFired { open_calls } => {
                self.forget_failed_wakes();
                self.timers.alarm_fired();
                self.pass_deadlines(&open_calls);
                Ok(())
            }
            Event::Woken { open_calls } => {
                self.forget_failed_wakes();
                self.timers.forget_passed_alarm(now);
                self.pass_deadlines(&open_calls);
                Ok(())
            }
            Event::Claimed {
                token,
                epoch,
                claimant,
            } => self.claimed(&token, epoch, claimant),
            Event::CallbackReceived { capability, result } => self.callback_received(&capability, *result),
            Event::Heartbeat {
                token,
                epoch,
                progress,
            } => self.heartbeat(&token, epoch, progress.map(|progress| *progress)),
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
                self.outbox.remove(id);
                Ok(())
            }
            Event::DeliveryFailed { id, is_gone } => {
                if is_gone {
                    self.child_is_gone(id);
                }
                self.outbox.failed(id, is_gone, self.changes.now);
                Ok(())
            }
            Event::StartsRefused { id, workflows } => {
                self.starts_refused(id, &workflows);
                Ok(())
            }
            Event::DeliveryUnfinished { id, after } => {
                self.outbox.unfinished(id, after, self.changes.now);
                Ok(())
            }
            Event::NotificationAnswered { number, report } => {
                self.notification_answered(number, report);
                Ok(())
            }
            Event::SignalReceived { name, payload, by } => self.signal_received(name, payload, by.as_deref()),
            Event::GateDecided { gate, decision } => self.gate_decided(&gate, decision),
            Event::CancelRequested { reason, by } => self.cancel_requested(reason, by.as_deref()),
            Event::PauseRequested { by } => self.pause_requested(by.as_deref()),
            Event::ResumeRequested { by } => self.resume_requested(by.as_deref()),
            Event::ExtendRequested {
                extension,
                by,
                operation,
            } => self.extend_requested(extension, by, operation),
            Event::RetryRequested {
                by,
                mode,
                token,
                version,
                past,
                rows,
            } => self.retry_requested(by.as_deref(), (mode, token), version, &past, *rows),
            Event::ParentHolds {
                number,
                held,
                budget_ms,
            } => self.parent_holds(number, held, budget_ms),
            Event::ChildStatusUpdate(news) => self.child_news(*news),
            Event::RestartRequested { from, by, version } => {
                self.restart_requested(from, version, by.as_deref())
            }
            Event::RowsRead(rows) => {
                self.rows_read(rows);
                Ok(())
            }
        }
    }

    /// Resets the count of failed wakes: a wake was saved, or the run has ended.
    pub(in crate::run) fn forget_failed_wakes(&mut self) {
        self.changes.forget_failed_wakes |= std::mem::take(&mut self.failed_wakes) > 0;
    }

    /// Computation steps of the last decision and of those before it in the same turn.
    pub fn steps(&self) -> u64 {
        self.work.spent()
    }

    /// The next decision belongs to a turn that has already used `steps` of its budget.
    pub fn continue_after(&mut self, steps: u64) {
        self.steps_before = steps;
    }

    /// Something is due: the host handles `Woken` before any other event.
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
        self.tokens.counts()
    }

    pub fn alarm_at(&self) -> Option<Millis> {
        self.timers.alarm_at()
    }

    pub fn gates(&self) -> impl Iterator<Item = &GateState> {
        self.gates.iter()
    }

    /// Signals that no node has waited for yet, by name, oldest first.
    pub fn buffered_signals(&self) -> &BTreeMap<String, Vec<Value>> {
        self.waits.buffered()
    }

    /// What set the run's limit.
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

    /// The gate that the whole run waits at, if any.
    pub fn gate_of_run(&self) -> Option<&GateState> {
        self.gates.run_gate()
    }

    pub fn instance(&self, id: InstanceId) -> Option<&Instance> {
        self.fans.get(id)
    }

    pub fn instances(&self) -> impl Iterator<Item = &Instance> {
        self.fans.iter()
    }

    pub(in crate::run) fn vars(&self, token: &Token, error: Value) -> Result<Vars, Failure> {
        for (branch, _) in self.fans.enclosing(token.branch.as_ref()) {
            self.work
                .charge_for("what the branch holds", branch_steps(branch))?;
        }
        let items = self
            .fans
            .enclosing(token.branch.as_ref())
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
                .map_or(Value::Null, |branch| self.fans.branch_value(branch)),
            items: items.collect(),
        })
    }

    pub(in crate::run) fn scope<'a>(&'a self, vars: &'a Vars) -> Scope<'a> {
        let mut scope = Scope::metered(Some(&self.work));
        scope
            .bind("input", &self.context.input)
            .bind("state", self.context.state())
            .bind("output", self.context.output())
            .bind("run", &self.facts)
            .bind_owned(NOW, self.changes.now.into())
            .bind("error", &vars.error)
            .bind("_branch", &vars.branch);
        // Innermost last: a nested fan-out may shadow a name.
        for (name, item) in vars.items.iter().rev() {
            scope.bind(name, item);
        }
        scope
    }

    /// Its end is not decided.
    pub(in crate::run) fn is_running(&self) -> bool {
        !self.has_ended() && !self.is_ending()
    }

    pub(in crate::run) fn has_ended(&self) -> bool {
        self.header.status.is_terminal()
    }

    pub(in crate::run) fn is_paused(&self) -> bool {
        self.header.paused_at.is_some()
    }

    /// The run's clock, which stops during a pause. Resuming moves all deadlines by the whole pause, so a deadline set during
    /// the pause counts from its start.
    pub(in crate::run) fn clock(&self) -> Millis {
        self.header.paused_at.unwrap_or(self.changes.now)
    }
}
