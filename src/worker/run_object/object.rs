//! One run in memory and the loop around it: an event goes in, its decision is committed, then performed.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use futures_channel::oneshot;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use worker::{Env, Error, Result, State, Storage};

use crate::base::limits::TooLarge;
use crate::base::time::Millis;
use crate::definition::snapshot::Snapshot;
use crate::index::batch::RemovedRun;
use crate::index::run_summary::ProbeResponse;
use crate::protocol::start::StartRun;
use crate::run::{
    AttemptOrder, Command, Decision, DecisionBatch, Event, NewRun, Rejection, Routes, Run, RunEvent,
    Settings, Write,
};
use crate::storage::commit::Commit;
use crate::storage::restore::{self, Snapshots};
use crate::worker::platform::executor_client::Handlers;
use crate::worker::platform::{self, deadline, http_client};
use crate::worker::run_object::dispatch::executor_handlers;
use crate::worker::run_object::executor_calls::{Attempt, Calls};
use crate::worker::run_object::index_publisher::News;
use crate::worker::run_object::subrequests::Turn;
use crate::worker::sqlite::Sqlite;
use crate::worker::task_consumer::{HEARTBEAT, HEARTBEAT_MS};

thread_local! {
    /// Shared by all objects of the isolate.
    static SNAPSHOTS: RefCell<Snapshots> = RefCell::default();
    /// The variables of a deployment do not change while its isolates live.
    static SETTINGS: Cell<Option<(Settings, SignsOfLife)>> = const { Cell::new(None) };
}

pub struct Object {
    state: State,
    storage: Storage,
    sqlite: Sqlite,
    pub(in crate::worker) env: Env,
    settings: Settings,
    pub(in crate::worker) signs_of_life: SignsOfLife,
    run: RefCell<Option<Run>>,
    pub(in crate::worker) calls: Calls,
    pub(in crate::worker) executor: Option<http_client::Peer>,
    pub(in crate::worker) executor_handlers: Handlers,
    pub(in crate::worker) news: News,
    waiting: RefCell<Vec<oneshot::Sender<()>>>,
    requests: Cell<u64>,
    /// The answer to the claim that is being handled.
    handed: RefCell<Option<AttemptOrder>>,
    /// Snapshots of children whose starts are under way, by the node that calls them.
    pub(in crate::worker) child_snapshots: RefCell<Vec<(String, Weak<RawValue>)>>,
}

/// How executors that are called directly say that they live.
#[derive(Clone, Copy)]
pub(in crate::worker) struct SignsOfLife {
    /// How often.
    pub heartbeat_ms: u64,
    /// How long one may be silent before its call counts as gone.
    silence_ms: u64,
}

impl SignsOfLife {
    fn of(env: &Env) -> SignsOfLife {
        let heartbeat_ms = platform::number(env, HEARTBEAT).unwrap_or(HEARTBEAT_MS);
        let silence_ms = platform::number(env, "CURFEW_CALL_SILENCE_MS").unwrap_or(90_000);
        SignsOfLife {
            heartbeat_ms,
            // One heartbeat that comes a little late does not count as silence.
            silence_ms: silence_ms.max(heartbeat_ms.saturating_mul(2)),
        }
    }
}

/// Since when the run is in memory.
#[derive(PartialEq)]
enum Recalled {
    Before,
    Now,
}

/// What came of an attempt to start.
pub enum Started {
    New,
    Same,
    Other,
    TooLarge(TooLarge),
}

impl Object {
    pub fn new(state: State, env: Env) -> Rc<Object> {
        let storage = state.storage();
        let (settings, signs_of_life) = SETTINGS.get().unwrap_or_else(|| {
            let read = (settings(&env), SignsOfLife::of(&env));
            SETTINGS.set(Some(read));
            read
        });
        Rc::new_cyclic(|object| Object {
            executor: http_client::service(&env, "EXECUTOR"),
            executor_handlers: executor_handlers(object),
            sqlite: Sqlite::new(&storage),
            storage,
            state,
            settings,
            signs_of_life,
            env,
            run: RefCell::default(),
            calls: Calls::default(),
            news: News::default(),
            waiting: RefCell::default(),
            requests: Cell::default(),
            handed: RefCell::default(),
            child_snapshots: RefCell::default(),
        })
    }

    /// Brings the run into memory if it is not there. `false`: no run lives in this object.
    pub async fn load(self: &Rc<Self>, turn: &Turn) -> Result<bool> {
        let recalled = self.recall().await?;
        if recalled == Some(Recalled::Now) {
            // Before anything that is due: what is due must not take attempts for alive that nobody holds any more.
            self.note_loaded(turn)?;
        }
        Ok(recalled.is_some())
    }

    /// An event that ends the run before anything that is due is looked at, which may be what cannot be carried out.
    /// `None`: no run lives in this object.
    pub async fn feed_first(
        self: &Rc<Self>,
        turn: &Turn,
        event: Event,
    ) -> Result<Option<std::result::Result<(), Rejection>>> {
        let Some(recalled) = self.recall().await? else {
            return Ok(None);
        };
        let answer = self.handle(turn, event)?;
        if answer.is_err() && recalled == Recalled::Now {
            self.note_loaded(turn)?;
        }
        Ok(Some(answer))
    }

    fn note_loaded(self: &Rc<Self>, turn: &Turn) -> Result<()> {
        let loaded = self.handle(turn, Event::Loaded);
        self.count_if_failed(loaded).map(|_| ())
    }

    /// A run that cannot be saved when it is woken is given up after some times, or its alarm would ring for ever.
    fn count_if_failed<T>(&self, handled: Result<T>) -> Result<T> {
        if handled.is_err()
            && let Err(error) = self.sqlite.count_failed_wake()
        {
            report("count_failed_wake_failed", &error.to_string());
        }
        handled
    }

    async fn recall(&self) -> Result<Option<Recalled>> {
        if self.run.borrow().is_some() {
            return Ok(Some(Recalled::Before));
        }
        if !self.sqlite.has_run()? {
            return Ok(None);
        }
        let alarm_at = self.storage.get_alarm().await?;
        if self.run.borrow().is_none() {
            let rows = self.sqlite.load(alarm_at.map(|at| at as u64))?;
            // A start that broke off before its commit leaves the table and nothing in it.
            if !rows.has_run() {
                return Ok(None);
            }
            let run = SNAPSHOTS.with_borrow_mut(|snapshots| restore::run(rows, self.settings, snapshots));
            let run = run.map_err(Error::RustError)?;
            *self.run.borrow_mut() = Some(run);
            return Ok(Some(Recalled::Now));
        }
        Ok(Some(Recalled::Before))
    }

    pub async fn start(self: &Rc<Self>, turn: &Turn, command: StartRun) -> Result<Started> {
        let snapshot = SNAPSHOTS
            .with_borrow_mut(|snapshots| snapshots.get_or_try_insert(command.stored.get(), Snapshot::parse))
            .map_err(|message| Error::RustError(format!("unreadable snapshot: {message}")))?;
        // Nobody comes between the table and what is put into it: nothing is awaited where it is new.
        if self.run.borrow().is_some() || !self.sqlite.create()? {
            self.load(turn).await?;
        }
        if let Some(run) = &*self.run.borrow() {
            let same = run.was_started_by(
                &snapshot.workflow.id,
                &command.input,
                &command.request,
                command.parent.as_ref(),
            );
            return Ok(if same { Started::Same } else { Started::Other });
        }
        let new = NewRun {
            id: command.run_id,
            snapshot,
            input: command.input,
            request: command.request,
            parent: command.parent,
            triggered_by: command.triggered_by,
            secret: platform::random_id()?,
        };
        if let Err(too_large) = new.check_size() {
            self.sqlite.remove()?;
            return Ok(Started::TooLarge(too_large));
        }
        let (run, decision) = Run::create(platform::now(), turn.room(), self.settings, new);
        if let Some(millis) = run.header.timeout_ms {
            platform::log(json!({
                "level": "info", "event": "timeout_set", "run_id": run.header.id, "timeout_ms": millis,
                "source": run.limit_source(),
            }));
        }
        *self.run.borrow_mut() = Some(run);
        if let Err(error) = self.carry_out(turn, decision) {
            // Or the empty table would be taken for a run.
            self.sqlite.remove()?;
            return Err(error);
        }
        Ok(Started::New)
    }

    /// As `feed`, with an event that is made from the run's rows: what is due has changed them before they are read.
    pub fn feed_from_rows<E>(
        self: &Rc<Self>,
        turn: &Turn,
        event: impl FnOnce() -> Result<std::result::Result<Event, E>>,
    ) -> Result<std::result::Result<std::result::Result<(), Rejection>, E>> {
        if self.with_run(|run| run.is_due(platform::now()))? {
            self.wake(turn)?;
        }
        Ok(match event()? {
            Ok(event) => Ok(self.handle(turn, event)?),
            Err(error) => Err(error),
        })
    }

    /// First what is due, then what came.
    pub fn feed(self: &Rc<Self>, turn: &Turn, event: Event) -> Result<std::result::Result<(), Rejection>> {
        let mut decided = DecisionBatch::default();
        if self.with_run(|run| run.is_due(platform::now()))? {
            decided = DecisionBatch::after(self.wake(turn)?);
        }
        self.handle_in(decided, turn, event).map(|(answer, _)| answer)
    }

    /// As `feed`, but what is decided is left to `carry_out_all`.
    pub(in crate::worker) fn feed_into(
        self: &Rc<Self>,
        decided: &mut DecisionBatch,
        turn: &Turn,
        event: Event,
    ) -> Result<std::result::Result<(), Rejection>> {
        if self.with_run(|run| run.is_due(platform::now()))? {
            let steps = decided.steps();
            self.carry_out_all(std::mem::take(decided), turn)?;
            *decided = DecisionBatch::after(self.wake_after(steps, turn)?);
        }
        Ok(self.decide(decided, turn, event))
    }

    pub(in crate::worker) fn carry_out_all(
        self: &Rc<Self>,
        decided: DecisionBatch,
        turn: &Turn,
    ) -> Result<()> {
        let decision = match &*self.run.borrow() {
            Some(run) => decided.into_decision(run),
            // Nothing can have been decided for a run that is not there.
            None => return Ok(()),
        };
        self.carry_out(turn, decision)?;
        self.announce_again();
        Ok(())
    }

    /// Somebody wants to know whether all is well: what is due is done, and an alarm that was lost is set again, also where
    /// nothing is due.
    pub async fn rung(self: &Rc<Self>, turn: &Turn) -> Result<ProbeResponse> {
        if !self.load(turn).await? {
            return Ok(ProbeResponse::default());
        }
        self.wake(turn)?;
        let run = self.run.borrow();
        Ok(run.as_ref().map_or_else(ProbeResponse::default, |run| {
            ProbeResponse::of(run, platform::now())
        }))
    }

    /// A request came in, or something is due.
    pub fn wake(self: &Rc<Self>, turn: &Turn) -> Result<u64> {
        self.wake_after(0, turn)
    }

    /// As above, after decisions of the same turn that took `steps`; returns what all of them took.
    fn wake_after(self: &Rc<Self>, steps: u64, turn: &Turn) -> Result<u64> {
        let open_calls = self.open_calls();
        let woken = self.handle_in(DecisionBatch::after(steps), turn, Event::Woken { open_calls });
        let (_, steps) = self.count_if_failed(woken)?;
        Ok(steps)
    }

    pub fn alarm_rang(self: &Rc<Self>, turn: &Turn) -> Result<()> {
        let open_calls = self.open_calls();
        let woken = self.handle(turn, Event::AlarmRang { open_calls });
        self.count_if_failed(woken).map(|_| ())
    }

    /// The attempts whose call is there, and whose executor is.
    fn open_calls(&self) -> Vec<Attempt> {
        let silence_ms = self.signs_of_life.silence_ms;
        for attempt in self.calls.drop_silent(silence_ms) {
            platform::log(json!({
                "level": "warn", "event": "call_silent", "run_id": self.run_id(), "token_id": attempt.0.to_string(),
                "epoch": attempt.1, "silence_ms": silence_ms,
            }));
        }
        self.calls.attempts()
    }

    fn handle(self: &Rc<Self>, turn: &Turn, event: Event) -> Result<std::result::Result<(), Rejection>> {
        let (answer, _) = self.handle_in(DecisionBatch::default(), turn, event)?;
        Ok(answer)
    }

    fn handle_in(
        self: &Rc<Self>,
        mut decided: DecisionBatch,
        turn: &Turn,
        event: Event,
    ) -> Result<(std::result::Result<(), Rejection>, u64)> {
        let answer = self.decide(&mut decided, turn, event);
        let steps = decided.steps();
        self.carry_out_all(decided, turn)?;
        Ok((answer, steps))
    }

    fn decide(
        &self,
        decided: &mut DecisionBatch,
        turn: &Turn,
        event: Event,
    ) -> std::result::Result<(), Rejection> {
        let room = turn.room() + u32::from(self.calls.has_one_at_hand());
        match &mut *self.run.borrow_mut() {
            Some(run) => decided.decide(run, platform::now(), room, event),
            // The run was deleted while this event was on its way.
            None => Err(Rejection::RunFinished),
        }
    }

    pub fn with_run<T>(&self, read: impl FnOnce(&Run) -> T) -> Result<T> {
        match &*self.run.borrow() {
            Some(run) => Ok(read(run)),
            None => Err(Error::RustError("no run in memory".into())),
        }
    }

    /// Waits until the run ends, at most `millis`.
    pub async fn ended(&self, millis: u64) -> Result<()> {
        if millis == 0 || self.with_run(|run| run.header.status.is_terminal())? {
            return Ok(());
        }
        let (sender, receiver) = oneshot::channel();
        self.waiting.borrow_mut().push(sender);
        deadline::within(millis, receiver).await;
        Ok(())
    }

    /// The order that the last event handed out.
    pub fn take_handed(&self) -> Option<AttemptOrder> {
        self.handed.take()
    }

    pub fn sqlite(&self) -> &Sqlite {
        &self.sqlite
    }

    /// A request or an alarm came to this object.
    pub fn count_request(&self) {
        self.requests.set(self.requests.get() + 1);
    }

    /// What the platform bills for, since the object came into memory.
    pub fn bill(&self) -> String {
        format!(
            "rows_written={};rows_read={};object_requests={};executor_calls={}",
            self.sqlite.rows_written(),
            self.sqlite.rows_read(),
            self.requests.get(),
            self.calls.opened(),
        )
    }

    /// Commits, then performs. No await stands between the first save and the alarm, so they land together.
    fn carry_out(self: &Rc<Self>, turn: &Turn, decision: Decision) -> Result<()> {
        match decision {
            Decision::Update {
                writes,
                alarm,
                commands,
            } => {
                self.commit(&writes, alarm)?;
                self.perform(turn, commands)
            }
            Decision::DeleteStorage => {
                let removed = self.with_run(RemovedRun::of)?;
                self.delete();
                self.announce_removal(&removed);
                Ok(())
            }
        }
    }

    fn commit(&self, writes: &[Write], alarm: Option<Millis>) -> Result<()> {
        let committed = self
            .with_run(|run| Commit::of(writes, run))?
            .map_err(Error::from)
            .and_then(|commit| {
                commit
                    .check()
                    .map_err(|too_large| Error::RustError(too_large.to_string()))?;
                self.sqlite.commit(&commit)
            });
        if let Err(error) = committed {
            let (run_id, message) = (self.run_id(), error.to_string());
            platform::log(
                json!({"level": "error", "event": "commit_failed", "run_id": run_id, "message": message}),
            );
            self.forget_run();
            return Err(error);
        }
        for event in writes.iter().filter_map(Write::event) {
            self.log_entry(event);
        }
        if let Some(at) = alarm {
            self.set_alarm(at);
        }
        Ok(())
    }

    fn perform(self: &Rc<Self>, turn: &Turn, commands: Vec<Command>) -> Result<()> {
        let mut orders = Vec::new();
        for command in commands {
            match command {
                Command::DispatchTask(order) => orders.push(order),
                Command::AbortAttempt { token, epoch } => self.calls.abort((token, epoch)),
                Command::EnqueueAttempt { token, epoch } => self.ring(token, epoch),
                Command::RespondToClaim(order) => *self.handed.borrow_mut() = Some(order),
                Command::DeliverMessage { id, message } => self.deliver(turn, id, message),
                Command::PublishRun => self.announce(),
                Command::PublishGate(gate) => self.announce_gate(&gate.id),
                Command::PublishLatency {
                    node_id,
                    token,
                    millis,
                } => {
                    let sample = self.with_run(|run| {
                        json!({
                            "workflow_id": run.header.workflow_id, "node_id": node_id, "run_id": run.header.id,
                            "token_id": token.to_string(), "at": platform::now(), "ms": millis,
                        })
                    })?;
                    self.announce_latency(sample);
                }
                Command::NotifyRunEnded => {
                    for sender in self.waiting.take() {
                        sender.send(()).ok();
                    }
                }
            }
        }
        self.dispatch(turn, orders)
    }

    pub(in crate::worker) fn run_id(&self) -> String {
        self.with_run(|run| run.header.id.clone()).unwrap_or_default()
    }

    /// Never what a run works on: only what happened to it.
    fn log_entry(&self, entry: &RunEvent) {
        let mut line = json!({"level": "info", "event": entry.kind, "run_id": self.run_id()});
        if let Value::Object(fields) = &mut line {
            fields.extend(entry.fields.clone());
        }
        if let Some(record) = &entry.record {
            line["level"] = json!("warn");
            line["due_at"] = json!(record.timeout_event.due_at);
            line["lateness_ms"] = json!(record.timeout_event.lateness_ms);
        }
        platform::log(line);
    }

    /// Called, not awaited: an await here would split the commit.
    fn set_alarm(&self, at: u64) {
        self.sqlite.count_alarm();
        // "At once" is moment 0 to the engine; the platform refuses that one, and then no alarm would stand.
        let date = js_sys::Date::new(&(at.max(1) as f64).into());
        match self
            .storage
            .as_raw()
            .set_alarm(date, wasm_bindgen::JsValue::NULL.into())
        {
            Ok(promise) => watch_promise(promise, "set_alarm_failed"),
            Err(error) => report("set_alarm_failed", &platform::message_of(&error)),
        }
    }

    fn delete(&self) {
        *self.run.borrow_mut() = None;
        let storage = self.state.storage();
        wasm_bindgen_futures::spawn_local(async move {
            if let Err(error) = storage.delete_all().await {
                report("delete_failed", &error.to_string());
            }
        });
    }

    /// A decision was not saved: memory is ahead of the database, which took nothing of it. The next event loads what is
    /// true. The object itself is not reset: after `abort()` inside wasm the queue of futures, which all
    /// objects of the isolate share, never ran again.
    fn forget_run(&self) {
        *self.run.borrow_mut() = None;
        self.handed.take();
        self.calls.abort_all();
    }
}

fn settings(env: &Env) -> Settings {
    let default = Settings::default();
    let number = |name: &str, default: u64| platform::number(env, name).unwrap_or(default);
    Settings {
        grace_ms: number("CURFEW_GRACE_MS", default.grace_ms),
        // A watch that is due again at once would never let go.
        watch_ms: number("CURFEW_WATCH_MS", default.watch_ms).max(1_000),
        queue: env
            .var("CURFEW_QUEUE")
            .is_ok_and(|value| value.to_string() == "on"),
        routes: Routes {
            executor: http_client::service(env, "EXECUTOR").is_some(),
            queue: env.queue("TASK_QUEUE").is_ok(),
        },
        // One that is due again at once would never let go.
        pending_ms: number("CURFEW_PENDING_MS", default.pending_ms).max(100),
        no_route_ms: number("CURFEW_NO_ROUTE_MS", default.no_route_ms),
        ring_ms: number("CURFEW_RING_MS", default.ring_ms),
        claim_ms: number("CURFEW_CLAIM_MS", default.claim_ms),
        heartbeat_ms: number("CURFEW_SILENCE_MS", default.heartbeat_ms),
        suspend_ms: number("CURFEW_SUSPEND_MS", default.suspend_ms),
        retry_delay_ms: number("CURFEW_RETRY_DELAY_MS", default.retry_delay_ms),
        retention_ms: number("CURFEW_RETENTION_MS", default.retention_ms),
        ..default
    }
}

fn watch_promise(promise: js_sys::Promise, event: &'static str) {
    wasm_bindgen_futures::spawn_local(async move {
        if let Err(error) = wasm_bindgen_futures::JsFuture::from(promise).await {
            report(event, &platform::message_of(&error));
        }
    });
}

pub(in crate::worker) fn report(event: &str, message: &str) {
    platform::log(Value::from_iter([
        ("level", "error"),
        ("event", event),
        ("message", message),
    ]));
}
