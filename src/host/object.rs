//! One run in memory and the loop around it: an event comes in, its decision is committed, then performed.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::base::limits::TooLarge;
use crate::base::time::Millis;
use crate::host::executor_calls::{Attempt, ExecutorCalls};
use crate::host::platform::{Error, IndexChange, Platform, Result, Storage};
use crate::host::subrequests::SubrequestBudget;
use crate::index::batch::RemovedRun;
use crate::index::run_summary::{ProbeResponse, RunSummary};
use crate::protocol::start::StartRun;
use crate::protocol::task::TaskMessage;
use crate::run::{
    AttemptOrder, CallbackSecret, Command, Decision, DecisionBatch, Event, NewRun, Rejection, Run, RunEvent,
    RunEventKind, Settings, Write,
};
use crate::storage::commit::Commit;
use crate::storage::restore::{self, Snapshots};

/// What a deployment sets.
#[derive(Clone, Copy)]
pub struct Config {
    pub settings: Settings,
    /// How long an executor may give no sign of life before its call counts as lost.
    pub silence_ms: u64,
    /// Whether the spans of ended runs are exported.
    pub exports_traces: bool,
}

/// The run of one object. Every method returns with the run as it was committed: a decision that cannot be committed leaves
/// memory, and the next event loads the rows again.
pub struct Host<P: Platform> {
    pub platform: P,
    pub(super) config: Config,
    /// Shared by the objects of an isolate.
    pub(super) snapshots: Rc<RefCell<Snapshots>>,
    run: RefCell<Option<Run>>,
    /// How often the run was loaded.
    pub(super) loads: Cell<u64>,
    pub(super) calls: ExecutorCalls<P::Connection>,
    /// The order that answers the claim being handled.
    claimed: RefCell<Option<AttemptOrder>>,
    /// Snapshots of children that are being started, by the node that calls them.
    pub(super) child_snapshots: RefCell<Vec<(String, Weak<RawValue>)>>,
    /// The number of the last event that was committed.
    pub(super) published_seq: Cell<u64>,
    /// Rows of the run that were written before the storage began to count, less those of others that it counted before.
    rows_before: Cell<i64>,
}

/// Whether the run was in memory already.
#[derive(PartialEq)]
enum Restored {
    Before,
    Now,
}

/// What became of a start.
pub(super) enum Started {
    New,
    /// The run was started before by the same request.
    Same,
    /// Another run has the id.
    Other,
    TooLarge(TooLarge),
}

pub(super) type Accepted = std::result::Result<(), Rejection>;

impl<P: Platform> Host<P> {
    pub fn new(platform: P, config: Config, snapshots: Rc<RefCell<Snapshots>>) -> Host<P> {
        Host {
            platform,
            config,
            snapshots,
            run: RefCell::default(),
            loads: Cell::default(),
            calls: ExecutorCalls::default(),
            claimed: RefCell::default(),
            child_snapshots: RefCell::default(),
            published_seq: Cell::default(),
            rows_before: Cell::new(0),
        }
    }

    pub(super) fn exports_traces(&self) -> bool {
        self.config.exports_traces
    }

    /// Restores the run if it is not in memory. `false`: there is no run.
    pub(super) async fn load(&self, budget: &SubrequestBudget) -> Result<bool> {
        let restored = self.restore().await?;
        if restored == Some(Restored::Now) {
            // Before what is due: attempts whose calls ended with the object's former memory must not count as running.
            self.note_loaded(budget)?;
        }
        Ok(restored.is_some())
    }

    async fn restore(&self) -> Result<Option<Restored>> {
        if self.run.borrow().is_some() {
            return Ok(Some(Restored::Before));
        }
        let storage = self.platform.storage();
        if !storage.has_table()? {
            return Ok(None);
        }
        let alarm_at = storage.alarm_at().await?;
        // Another request may have restored it meanwhile.
        if self.run.borrow().is_some() {
            return Ok(Some(Restored::Before));
        }
        let rows = storage.load(alarm_at)?;
        // A start that broke off before its commit leaves an empty table.
        if !rows.has_run() {
            return Ok(None);
        }
        let run = restore::run(rows, self.config.settings, &mut self.snapshots.borrow_mut())?;
        self.published_seq.set(run.last_event_seq());
        self.rows_before
            .set(run.header.rows_written as i64 - storage.rows_written() as i64);
        *self.run.borrow_mut() = Some(run);
        self.loads.set(self.loads.get() + 1);
        Ok(Some(Restored::Now))
    }

    fn note_loaded(&self, budget: &SubrequestBudget) -> Result<()> {
        let loaded = self.handle(budget, Event::Loaded);
        self.count_if_failed(loaded).map(|_| ())
    }

    /// A run whose wakes cannot be committed is given up after some of them; otherwise its alarm would repeat forever.
    fn count_if_failed<T>(&self, handled: Result<T>) -> Result<T> {
        if handled.is_err()
            && let Err(error) = self.platform.storage().count_failed_wake()
        {
            self.report("count_failed_wake_failed", &error);
        }
        handled
    }

    /// Starting twice is starting once.
    pub(super) async fn start(&self, budget: &SubrequestBudget, start: StartRun) -> Result<Started> {
        let snapshot = self.parse_snapshot(start.stored.get())?;
        let storage = self.platform.storage();
        let rows_of_others = storage.rows_written();
        // A new table is filled without an await in between, so that no other request finds it empty.
        if self.run.borrow().is_some() || !storage.create_table()? {
            self.load(budget).await?;
        }
        if let Some(run) = &*self.run.borrow() {
            let workflow_id = &snapshot.workflow.id;
            let is_same =
                run.was_started_by(workflow_id, &start.input, &start.request, start.parent.as_ref());
            return Ok(if is_same { Started::Same } else { Started::Other });
        }
        let new = NewRun {
            id: start.run_id,
            snapshot,
            input: start.input,
            request: start.request,
            parent: start.parent,
            triggered_by: start.triggered_by,
            callback_secret: match start.callback_secret {
                Some(secret) => CallbackSecret::Derived(secret),
                None => CallbackSecret::Random(self.platform.random_id()?),
            },
            started_by: start.started_by,
            traceparent: start.traceparent,
        };
        if let Err(too_large) = new.check_size() {
            storage.remove_table()?;
            return Ok(Started::TooLarge(too_large));
        }
        let now = self.platform.now();
        let (run, decision) = Run::create(now, budget.remaining(), self.config.settings, new);
        if let Some(millis) = run.header.timeout_ms {
            self.platform.log(json!({
                "level": "info", "event": "timeout_set", "run_id": run.header.id, "timeout_ms": millis,
                "source": run.limit_source(),
            }));
        }
        self.published_seq.set(0);
        *self.run.borrow_mut() = Some(run);
        self.rows_before.set(-(rows_of_others as i64));
        if let Err(error) = self.carry_out(budget, decision) {
            // The empty table would be taken for a run.
            storage.remove_table()?;
            return Err(error);
        }
        let steps = self.with_run(Run::steps)?;
        self.provide_rows(budget, steps)?;
        Ok(Started::New)
    }

    /// The alarm. After an error it must be set again: the platform gives up on an alarm that fails.
    pub async fn alarm(&self, budget: &SubrequestBudget) -> Result<()> {
        if !self.load(budget).await? {
            return Ok(());
        }
        let open_calls = self.open_calls();
        let woken = self.handle(budget, Event::AlarmFired { open_calls });
        self.count_if_failed(woken).map(|_| ())
    }

    /// Makes sure that the run's alarm is set, also where nothing is due, and summarizes the run.
    pub(super) async fn probe(&self, budget: &SubrequestBudget) -> Result<ProbeResponse> {
        if !self.load(budget).await? {
            return Ok(ProbeResponse::default());
        }
        self.wake(0, budget)?;
        // The wake may have deleted it.
        if self.run.borrow().is_none() {
            return Ok(ProbeResponse::default());
        }
        let summary = self.summary()?;
        self.with_run(|run| ProbeResponse::of(run, summary))
    }

    /// An event that ends the run before anything that is due: that may be what cannot be carried out. `check` comes first.
    /// `None`: no run.
    pub(super) async fn feed_first<E>(
        &self,
        budget: &SubrequestBudget,
        check: impl FnOnce(&Run) -> std::result::Result<(), E>,
        event: Event,
    ) -> Result<Option<std::result::Result<Accepted, E>>> {
        let Some(restored) = self.restore().await? else {
            return Ok(None);
        };
        let fed = match self.with_run(check)? {
            Ok(()) => Ok(self.handle(budget, event)?),
            Err(error) => Err(error),
        };
        if !matches!(fed, Ok(Ok(()))) && restored == Restored::Now {
            self.note_loaded(budget)?;
        }
        Ok(Some(fed))
    }

    /// What is due comes first, then the event.
    pub(super) fn feed(&self, budget: &SubrequestBudget, event: Event) -> Result<Accepted> {
        let mut batch = DecisionBatch::default();
        if self.is_due()? {
            batch = DecisionBatch::after(self.wake(0, budget)?);
        }
        self.handle_in(batch, budget, event).map(|(accepted, _)| accepted)
    }

    /// As `feed`, with an event that is built from the run's rows: what is due changes them first.
    pub(super) fn feed_from_rows<E>(
        &self,
        budget: &SubrequestBudget,
        event: impl FnOnce() -> Result<std::result::Result<Event, E>>,
    ) -> Result<std::result::Result<Accepted, E>> {
        if self.is_due()? {
            self.wake(0, budget)?;
        }
        Ok(match event()? {
            Ok(event) => Ok(self.handle(budget, event)?),
            Err(error) => Err(error),
        })
    }

    /// As `feed`, but the decision is left in the batch, for `carry_out_batch`.
    pub(super) fn feed_into(
        &self,
        batch: &mut DecisionBatch,
        budget: &SubrequestBudget,
        event: Event,
    ) -> Result<Accepted> {
        if self.is_due()? {
            let steps = batch.steps();
            self.carry_out_batch(std::mem::take(batch), budget)?;
            *batch = DecisionBatch::after(self.wake(steps, budget)?);
        }
        Ok(self.decide(batch, budget, event))
    }

    fn is_due(&self) -> Result<bool> {
        self.with_run(|run| run.is_due(self.platform.now()))
    }

    /// Does what is due, after decisions of the same invocation that took `steps` of computation. Returns what all took.
    fn wake(&self, steps: u64, budget: &SubrequestBudget) -> Result<u64> {
        let open_calls = self.open_calls();
        let woken = self.handle_in(DecisionBatch::after(steps), budget, Event::Woken { open_calls });
        let (_, steps) = self.count_if_failed(woken)?;
        Ok(steps)
    }

    /// The attempts whose executor is connected and gives signs of life.
    fn open_calls(&self) -> Vec<Attempt> {
        let silence_ms = self.config.silence_ms;
        for (token, epoch) in self.calls.abort_silent(silence_ms) {
            self.platform.log(json!({
                "level": "warn", "event": "call_silent", "run_id": self.run_id(), "token_id": token.to_string(),
                "epoch": epoch, "silence_ms": silence_ms,
            }));
        }
        self.calls.attempts()
    }

    fn handle(&self, budget: &SubrequestBudget, event: Event) -> Result<Accepted> {
        let (accepted, _) = self.handle_in(DecisionBatch::default(), budget, event)?;
        Ok(accepted)
    }

    fn handle_in(
        &self,
        mut batch: DecisionBatch,
        budget: &SubrequestBudget,
        event: Event,
    ) -> Result<(Accepted, u64)> {
        let accepted = self.decide(&mut batch, budget, event);
        let steps = batch.steps();
        self.carry_out_batch(batch, budget)?;
        Ok((accepted, steps))
    }

    fn decide(&self, batch: &mut DecisionBatch, budget: &SubrequestBudget, event: Event) -> Accepted {
        let remaining = budget.remaining() + u32::from(self.calls.has_reusable());
        match &mut *self.run.borrow_mut() {
            Some(run) => {
                self.platform
                    .deciding(run, &event, remaining.saturating_sub(batch.calls()));
                batch.decide_observed(
                    run,
                    self.platform.now(),
                    remaining,
                    event,
                    |run, accepted, decision| {
                        self.platform.decided(run, accepted, decision);
                    },
                )
            }
            // The run was deleted while the event was on its way.
            None => Err(Rejection::RunFinished),
        }
    }

    pub(super) fn carry_out_batch(&self, batch: DecisionBatch, budget: &SubrequestBudget) -> Result<()> {
        let steps = batch.steps();
        let decision = match &*self.run.borrow() {
            Some(run) => batch.into_decision(run),
            // Nothing was decided: there is no run.
            None => return Ok(()),
        };
        self.carry_out(budget, decision)?;
        self.platform.publish_refused();
        self.provide_rows(budget, steps)
    }

    /// Reads the rows that the engine asks for, as long as it does. Each answer is a decision and a commit of its own. Rows that
    /// cannot be read are asked for again by the alarm.
    fn provide_rows(&self, budget: &SubrequestBudget, mut steps: u64) -> Result<()> {
        while let Some(needed) = self.with_run(Run::needed_rows).ok().flatten() {
            // What is due comes first; the wake that does it ends here, too.
            if self.is_due()? {
                return Ok(());
            }
            let rows = match self.read_rows(needed) {
                Ok(rows) => rows,
                Err(error) => {
                    self.report("rows_not_provided", &error);
                    return Ok(());
                }
            };
            let mut batch = DecisionBatch::after(steps);
            // Rows that are no longer needed change nothing.
            let _accepted = self.decide(&mut batch, budget, Event::RowsRead(rows));
            steps = batch.steps();
            let decision = self.with_run(|run| batch.into_decision(run))?;
            self.carry_out(budget, decision)?;
        }
        Ok(())
    }

    fn carry_out(&self, budget: &SubrequestBudget, decision: Decision) -> Result<()> {
        match decision {
            Decision::Update {
                mut writes,
                alarm,
                commands,
            } => {
                self.count_rows(&mut writes, alarm);
                self.commit(&writes, alarm)?;
                self.publish_events(&writes)?;
                self.perform(budget, commands)?;
                if writes.iter().filter_map(Write::event).any(is_measured_at_once) {
                    self.platform.publish(IndexChange::Run);
                }
                Ok(())
            }
            Decision::DeleteStorage => {
                // With the last summary: the message of the end may have been lost, and nothing asks an ended run for it.
                let last = self.summary()?;
                let removed = self.with_run(|run| RemovedRun::of(run, last))?;
                *self.run.borrow_mut() = None;
                self.platform.storage().delete_all();
                self.platform.publish(IndexChange::Removed(removed));
                Ok(())
            }
        }
    }

    /// The saved header says how many rows the run has written, with those of this commit. Rows that patches need besides
    /// their token are rare and counted by the next header.
    fn count_rows(&self, writes: &mut [Write], alarm: Option<Millis>) {
        let of_commit = writes.len() as i64 + i64::from(alarm.is_some());
        let before = self.rows_before.get() + self.platform.storage().rows_written() as i64;
        let rows = u64::try_from(before + of_commit).unwrap_or(0);
        for write in writes {
            if let Write::SaveRun(header) = write {
                header.rows_written = rows.max(header.rows_written);
                if let Some(run) = &mut *self.run.borrow_mut() {
                    run.note_rows_written(header.rows_written);
                }
            }
        }
    }

    /// The run's entry in the index, with its metrics. They are counted from the rows if the run was loaded.
    pub fn summary(&self) -> Result<RunSummary> {
        let is_loaded = self.with_run(|run| run.metrics().is_none())?;
        if is_loaded {
            match self.platform.storage().measured() {
                Ok(rows) => {
                    if let Some(run) = &mut *self.run.borrow_mut() {
                        run.restore_metrics(rows);
                    }
                }
                // The summary goes without metrics; the next one has them.
                Err(error) => self.report("metrics_unreadable", &error),
            }
        }
        self.with_run(|run| RunSummary::of(run, self.platform.now()))
    }

    fn commit(&self, writes: &[Write], alarm: Option<Millis>) -> Result<()> {
        let committed = self
            .with_run(|run| Commit::of(writes, run))?
            .map_err(Error::from)
            .and_then(|commit| {
                commit.check().map_err(|too_large| Error(too_large.to_string()))?;
                self.platform.storage().commit(&commit, alarm)
            });
        if let Err(error) = committed {
            let (run_id, message) = (self.run_id(), error.to_string());
            self.platform.log(
                json!({"level": "error", "event": "commit_failed", "run_id": run_id, "message": message}),
            );
            self.unload();
            return Err(error);
        }
        for event in writes.iter().filter_map(Write::event) {
            self.log_event(event);
        }
        Ok(())
    }

    fn perform(&self, budget: &SubrequestBudget, commands: Vec<Command>) -> Result<()> {
        let mut orders = Vec::new();
        for command in commands {
            match command {
                Command::DispatchTask(order) => orders.push(order),
                Command::AbortAttempt { token, epoch } => self.calls.abort((token, epoch)),
                // A message that is lost is sent again: the token is in the table.
                Command::EnqueueAttempt { token, epoch } => self.platform.enqueue(&TaskMessage {
                    run_id: self.run_id(),
                    token_id: token.to_string(),
                    epoch,
                }),
                Command::RespondToClaim(order) => *self.claimed.borrow_mut() = Some(order),
                Command::DeliverMessage { id, message } => self.deliver(budget, id, message),
                Command::SendNotification(notification) => self.send_notification(budget, &notification),
                Command::PublishRun => self.platform.publish(IndexChange::Run),
                Command::PublishGate(gate) => self.platform.publish(IndexChange::Gate(gate.id)),
                Command::PublishLatency {
                    node_id,
                    token,
                    millis,
                } => {
                    let now = self.platform.now();
                    let latency = self.with_run(|run| {
                        json!({
                            "workflow_id": run.header.workflow_id, "node_id": node_id, "run_id": run.header.id,
                            "token_id": token.to_string(), "at": now, "ms": millis,
                        })
                    })?;
                    self.platform.publish(IndexChange::Latency(latency));
                }
                Command::PublishProgress { token, epoch } => self.publish_progress(token, epoch)?,
                Command::NotifyRunEnded => self.platform.notify_run_ended(),
            }
        }
        self.dispatch(budget, orders);
        Ok(())
    }

    /// A decision was not committed, so memory is ahead of the rows. The next event restores the run. The object itself is not
    /// reset: after `abort()` inside wasm the queue of futures that all objects of the isolate share never ran again.
    fn unload(&self) {
        *self.run.borrow_mut() = None;
        self.claimed.take();
        self.calls.abort_all();
    }

    pub fn with_run<T>(&self, read: impl FnOnce(&Run) -> T) -> Result<T> {
        match &*self.run.borrow() {
            Some(run) => Ok(read(run)),
            None => Err(Error("no run in memory".into())),
        }
    }

    pub fn run_id(&self) -> String {
        self.with_run(|run| run.header.id.clone()).unwrap_or_default()
    }

    /// Connections to executors since the object came into memory.
    pub fn connections_opened(&self) -> u32 {
        self.calls.opened()
    }

    pub(super) fn take_claimed(&self) -> Option<AttemptOrder> {
        self.claimed.take()
    }

    /// What happened to the run, never its data.
    fn log_event(&self, event: &RunEvent) {
        let mut line = json!({"level": "info", "event": event.kind, "run_id": self.run_id()});
        if let Value::Object(fields) = &mut line {
            fields.extend(event.fields.clone());
            // What a caller wrote is on the run only.
            if event.kind == RunEventKind::RunCancelled {
                fields.remove("reason");
            }
        }
        if let Some(record) = &event.record {
            line["level"] = json!("warn");
            line["due_at"] = json!(record.timeout_event.due_at);
            line["lateness_ms"] = json!(record.timeout_event.lateness_ms);
        }
        self.platform.log(line);
    }

    pub(super) fn report(&self, event: &str, error: &Error) {
        self.platform
            .log(json!({"level": "error", "event": event, "message": error.0}));
    }
}

/// Timeouts and late results are rare and soon of interest. Late results come when the run has ended and publishes nothing more.
fn is_measured_at_once(event: &RunEvent) -> bool {
    event.record.is_some() || event.kind == RunEventKind::LateResultDiscarded
}
