//! `host::Platform` with faults: commits that fail, objects that crash before or after a commit or while they perform its
//! commands. Where the environment says so, every decision and every commit is checked.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::Value;

use crate::base::ordered::set_of;
use crate::base::time::Millis;
use crate::host::{
    Attempt, Connection, Delivery, DeliveryKind, Error, IndexChange, LiveEvents, Payload, Platform, Result,
    Storage, SubrequestBudget,
};
use crate::protocol::notification::NotificationOrder;
use crate::protocol::task::{TaskMessage, TaskReport};
use crate::run::{
    Decision, Event, MeasuredRows, Patch, Run, RunEventKind, TokenId, TokenStatus, Write, WrittenAt,
};
use crate::simulate::environment::{ConnectionId, Environment};
use crate::simulate::in_flight::Sender;
use crate::simulate::messages::Messages;
use crate::simulate::properties::{Check, CheckedDecision, check_published_events, ensure};
use crate::simulate::running_time::RunningTime;
use crate::simulate::store::Store;
use crate::simulate::world::{Happening, Observed, World};
use crate::storage::commit::{Commit, FAILED_WAKES, OUTBOX, notification_key};
use crate::storage::pages::ListedRow;
use crate::storage::restore::Rows;
use crate::storage::rows::ListedRowEvent;

/// What `CREATE TABLE` writes.
const TABLE_ROWS: u64 = 1;

/// The durable part of a run's object.
#[derive(Default)]
pub struct Durable {
    pub store: RefCell<Store>,
    pub has_table: Cell<bool>,
    /// When the platform calls the alarm, which may be early or late.
    pub rings_at: Cell<Option<Millis>>,
    pub deleted: Cell<bool>,
    /// Every moment at which the run ended: it may have been retried.
    pub ends: RefCell<BTreeSet<Millis>>,
    /// The rest of the last end was given up.
    pub given_up: Cell<bool>,
    pub running_time: RefCell<RunningTime>,
    /// Rows that were written, as the platform bills them.
    pub rows_written: Cell<u64>,
    /// Bytes of rows that were counted.
    pub counted_bytes: Cell<u64>,
    /// Alarms and requests that the object handled.
    pub requests: Cell<u64>,
    /// The most tokens that were alive after a decision.
    pub tokens_alive_max: Cell<u64>,
}

/// The platform of one incarnation of an object.
pub struct SimPlatform<W> {
    pub run: String,
    pub incarnation: u64,
    world: Rc<W>,
    durable: Rc<Durable>,
    life: Rc<Life>,
    /// The event that is being decided on, and the calls that may be made for it.
    deciding: RefCell<Option<(Event, u32)>>,
    /// Decided and not committed.
    uncommitted: RefCell<Vec<Write>>,
    /// Steps of the invocation under way that were counted.
    counted_steps: Cell<u64>,
    woken_at: Cell<Option<Millis>>,
    /// Reports that arrived and are not decided on yet.
    reported: RefCell<BTreeSet<(String, u64)>>,
}

/// Whether the object still runs. After a crash nothing that its code does has an effect.
#[derive(Default)]
pub struct Life {
    has_crashed: Cell<bool>,
    /// Commands that are still performed before the crash.
    commands_left: Cell<Option<u64>>,
}

impl Life {
    pub fn has_crashed(&self) -> bool {
        self.has_crashed.get() || self.commands_left.get().is_some()
    }

    /// Whether the next command has an effect.
    fn performs(&self) -> bool {
        match self.commands_left.get() {
            Some(0) => self.has_crashed.set(true),
            Some(left) => self.commands_left.set(Some(left - 1)),
            None => {}
        }
        !self.has_crashed.get()
    }
}

impl<W: World> SimPlatform<W> {
    pub fn new(run: &str, incarnation: u64, world: &Rc<W>, durable: &Rc<Durable>) -> SimPlatform<W> {
        SimPlatform {
            run: run.to_string(),
            incarnation,
            world: Rc::clone(world),
            durable: Rc::clone(durable),
            life: Rc::default(),
            deciding: RefCell::default(),
            uncommitted: RefCell::default(),
            counted_steps: Cell::default(),
            woken_at: Cell::default(),
            reported: RefCell::default(),
        }
    }

    fn environment(&self) -> &Environment {
        self.world.environment()
    }

    pub fn has_crashed(&self) -> bool {
        self.life.has_crashed()
    }

    fn crash(&self, when: &str) -> Error {
        self.world.note(&self.run, when);
        self.life.has_crashed.set(true);
        Error(when.into())
    }

    fn checked(&self, check: Check) {
        if let Err(broken) = check {
            self.world.broken(&self.run, broken);
        }
    }

    pub fn reports_are_handled(&self, reports: &[TaskReport]) {
        let attempts = reports.iter().map(|it| (it.token_id.clone(), it.epoch));
        *self.reported.borrow_mut() = set_of(attempts);
    }

    /// A wake must not take an attempt for lost whose report is at hand.
    fn check_reported_calls_are_open(&self, run: &Run, open_calls: &[Attempt]) -> Check {
        for (token_id, epoch) in &*self.reported.borrow() {
            let Some(token) = TokenId::parse(token_id) else {
                continue;
            };
            let is_executing = run
                .live_token(token)
                .is_some_and(|it| it.status == TokenStatus::Executing && it.epoch == *epoch);
            let is_open = open_calls.contains(&(token, *epoch));
            ensure!(
                is_open || !is_executing,
                "{token_id} counts as lost when its report comes"
            );
        }
        Ok(())
    }

    fn check_order(&self, run: &Run, event: &Event) -> Check {
        let now = self.environment().now.get();
        if let Event::TaskReported(report) = event {
            let attempt = (report.token_id.clone(), report.epoch);
            self.reported.borrow_mut().remove(&attempt);
        }
        if let Event::Woken { open_calls } | Event::AlarmFired { open_calls } = event {
            self.woken_at.set(Some(now));
            return self.check_reported_calls_are_open(run, open_calls);
        }
        if run.is_due(now) && !event.comes_first() && !matches!(event, Event::Loaded) {
            // What was too much for one wake may still be due after it.
            ensure!(
                self.woken_at.get() == Some(now),
                "{event:?} overtook what is due: {run:?}"
            );
        }
        Ok(())
    }

    fn check_commit(&self, writes: &[Write]) -> Check {
        let store = self.durable.store.borrow();
        let mut running_time = self.durable.running_time.borrow_mut();
        if running_time.committed(self.environment().now.get(), &store, writes)? {
            self.world.happened(Happening::ClockStopped);
        }
        for event in writes.iter().filter_map(Write::event) {
            if event.fields.contains_key("given_up") {
                self.durable.given_up.set(true);
            }
            if event.kind == RunEventKind::RunRetried {
                self.durable.given_up.set(false);
            }
        }
        // Read from the row, because a run may end in the decision that starts it.
        let ended_at = store.header().and_then(|header| header.ended_at);
        self.durable.ends.borrow_mut().extend(ended_at);
        Ok(())
    }

    fn set_alarm(&self, at: Millis) {
        self.durable.store.borrow_mut().alarm_at = Some(at);
        let rings_at = self.world.alarm_rings_at(at);
        let now = self.environment().now.get();
        self.durable.rings_at.set(Some(rings_at.max(now)));
    }

    fn connection(&self, number: u32) -> SimConnection<W> {
        let id = ConnectionId {
            run: self.run.clone(),
            incarnation: self.incarnation,
            number,
        };
        self.environment()
            .connections
            .borrow_mut()
            .insert(id.clone(), Default::default());
        SimConnection {
            id,
            has_heartbeats: true,
            world: Rc::clone(&self.world),
            life: Rc::clone(&self.life),
            durable: Rc::clone(&self.durable),
        }
    }

    fn sender(&self, budget: &SubrequestBudget) -> Sender {
        Sender {
            run: self.run.clone(),
            incarnation: self.incarnation,
            budget: budget.clone(),
        }
    }
}

impl<W: World> Platform for SimPlatform<W> {
    type Connection = SimConnection<W>;
    type Storage = SimPlatform<W>;

    fn storage(&self) -> &SimPlatform<W> {
        self
    }

    fn now(&self) -> Millis {
        self.environment().now.get()
    }

    fn random_id(&self) -> Result<String> {
        Ok(format!("{:016x}", self.environment().below(u64::MAX)))
    }

    fn log(&self, line: Value) {
        if line["level"] != "info" {
            self.world.note(&self.run, &line.to_string());
        }
    }

    fn connect(&self, number: u32) -> Option<SimConnection<W>> {
        Some(self.connection(number))
    }

    fn send_one(&self, number: u32, order: &str) -> Option<SimConnection<W>> {
        let connection = SimConnection {
            has_heartbeats: false,
            ..self.connection(number)
        };
        connection.send(order);
        Some(connection)
    }

    fn public_url(&self) -> std::result::Result<String, String> {
        Ok("https://curfew.example".into())
    }

    fn enqueue(&self, message: &TaskMessage) {
        if self.life.performs() {
            self.world.enqueue(message);
        }
    }

    fn deliver(&self, budget: &SubrequestBudget, delivery: Delivery) {
        if !self.life.performs() {
            return;
        }
        if let (DeliveryKind::StartOfChild, Payload::Request { run_id, .. }) =
            (delivery.kind, &delivery.payload)
        {
            let mut sent = self.environment().starts_sent.borrow_mut();
            sent.insert(run_id.clone());
        }
        self.world.send_message(self.sender(budget), delivery);
    }

    fn notify(&self, budget: &SubrequestBudget, number: u64, order: NotificationOrder) {
        if self.life.performs() {
            self.world.send_notification(self.sender(budget), number, order);
        }
    }

    fn publish(&self, _change: IndexChange) {
        self.life.performs();
    }

    fn publish_refused(&self) {}

    fn publish_progress(&self, line: &str) {
        if self.life.performs() {
            self.world.progress_published(&self.durable.store.borrow(), line);
        }
    }

    async fn wait_for_end(&self, _millis: u64) {}

    fn notify_run_ended(&self) {
        self.life.performs();
    }

    /// Every event is published where it is checked.
    fn is_watched(&self) -> bool {
        self.environment().is_checked
    }

    fn publish_events(&self, events: LiveEvents) {
        let store = self.durable.store.borrow();
        self.checked(check_published_events(&self.run, &store, &events));
        self.world.events_published(&self.run, &store, &events);
    }

    fn deciding(&self, run: &Run, event: &Event, remaining_calls: u32) {
        if self.environment().is_checked {
            self.checked(self.check_order(run, event));
            *self.deciding.borrow_mut() = Some((event.clone(), remaining_calls));
        }
    }

    fn decided(&self, run: &Run, accepted: bool, decision: &Decision) {
        let steps = run.steps();
        let before = Some(self.counted_steps.replace(steps)).filter(|before| *before <= steps);
        self.world.computed(steps - before.unwrap_or(0));
        let Some((event, remaining_calls)) = self.deciding.take() else {
            return;
        };
        if self.life.has_crashed.get() {
            return;
        }
        let environment = self.environment();
        let now = environment.now.get();
        self.world.decided(&Observed {
            run_id: &self.run,
            run,
            event: &event,
            is_accepted: accepted,
            decision,
            now,
        });
        let checked = CheckedDecision {
            before: &self.durable.store.borrow(),
            run,
            event: &event,
            decision,
            now,
            remaining_calls,
            starts_sent: &environment.starts_sent.borrow(),
        };
        self.checked(checked.check());
        let alive = run.live_tokens().count() as u64;
        let alive_max = self.durable.tokens_alive_max.get().max(alive);
        self.durable.tokens_alive_max.set(alive_max);
        self.uncommitted.borrow_mut().extend_from_slice(decision.writes());
    }
}

impl<W: World> Storage for SimPlatform<W> {
    fn has_table(&self) -> Result<bool> {
        Ok(self.durable.has_table.get() && !self.durable.deleted.get())
    }

    fn create_table(&self) -> Result<bool> {
        let is_new = !self.durable.has_table.replace(true);
        if is_new {
            self.durable.count_rows(TABLE_ROWS);
        }
        Ok(is_new)
    }

    fn remove_table(&self) -> Result<()> {
        // A crashed start leaves the empty table, or takes it back with the write that was not confirmed.
        if !self.has_crashed() || self.environment().chance(50) {
            self.durable.has_table.set(false);
        }
        Ok(())
    }

    async fn alarm_at(&self) -> Result<Option<Millis>> {
        Ok(self.durable.store.borrow().alarm_at)
    }

    fn load(&self, _alarm_at: Option<Millis>) -> Result<Rows> {
        Ok(self.durable.store.borrow().rows())
    }

    fn commit(&self, commit: &Commit, alarm: Option<Millis>) -> Result<()> {
        let environment = self.environment();
        if self.has_crashed() {
            return Err(self.crash("crashed between two commits"));
        }
        if self.world.fault(|faults| faults.crash_before_commit) {
            return Err(self.crash("crashed before the commit"));
        }
        let is_empty = *commit == Commit::default() && alarm.is_none();
        if !is_empty && self.world.refuses_commit(&self.run, &self.durable.store.borrow()) {
            self.world.note(&self.run, "the commit failed");
            self.uncommitted.take();
            return Err(Error("the commit failed".into()));
        }
        let writes = self.uncommitted.take();
        let applied = match environment.is_checked {
            true => {
                let posted = set_of(writes.iter().filter_map(posted_key));
                self.durable.store.borrow_mut().apply_batch(commit, &posted)
            }
            false => self.durable.store.borrow_mut().apply_unchecked(commit),
        };
        if let Err(broken) = applied {
            self.world.broken(&self.run, broken);
            return Err(Error("the rows were refused".into()));
        }
        let rows =
            commit.run.len() + commit.tokens.len() + commit.deleted.len() + usize::from(alarm.is_some());
        self.durable.count_rows(rows as u64);
        if let Some(at) = alarm {
            self.set_alarm(at);
        }
        if environment.is_checked {
            self.checked(self.check_commit(&writes));
        }
        self.world.committed(&self.run, &self.durable, commit, &writes);
        if self.world.fault(|faults| faults.crash_after_commit) {
            self.world.note(&self.run, "crashes after the commit");
            let commands = environment.pick(&[0, 0, 1, 2]);
            self.life.commands_left.set(Some(commands));
        }
        Ok(())
    }

    fn count_failed_wake(&self) -> Result<()> {
        if self.has_crashed() {
            return Ok(());
        }
        let rows = &mut self.durable.store.borrow_mut().run;
        let before = rows.get(FAILED_WAKES).and_then(|row| row.parse::<u32>().ok());
        rows.insert(FAILED_WAKES.to_string(), (before.unwrap_or(0) + 1).to_string());
        Ok(())
    }

    /// The rows stay for the checks at the end.
    fn delete_all(&self) {
        if self.has_crashed() || self.world.fault(|faults| faults.crash_before_commit) {
            self.crash("crashed before the deletion");
            return;
        }
        self.world.note(&self.run, "deleted");
        self.durable.deleted.set(true);
    }

    fn list_tokens(&self, after: u64, limit: u64) -> Result<Vec<ListedRow>> {
        Ok(self.durable.store.borrow().list_tokens(after, limit))
    }

    fn list_events(&self, after: u64, limit: u64) -> Result<Vec<ListedRow>> {
        Ok(self.durable.store.borrow().list_events(after, limit, |_| true))
    }

    fn list_row_events(&self, after: u64, limit: u64) -> Result<Vec<ListedRowEvent>> {
        let listed = self.durable.store.borrow().list_row_events(after, limit);
        listed.map_err(Error)
    }

    fn list_timeouts(&self, after: u64, limit: u64) -> Result<Vec<ListedRow>> {
        let store = self.durable.store.borrow();
        Ok(store.list_events(after, limit, |event| event.record.is_some()))
    }

    fn list_instances(&self) -> Result<Vec<ListedRow>> {
        Ok(self.durable.store.borrow().list_instances())
    }

    fn values(&self, page: &[ListedRow]) -> Result<Vec<String>> {
        let store = self.durable.store.borrow();
        Ok(page.iter().map(|row| store.listed_value(row)).collect())
    }

    fn undo(&self, token: u64, at: WrittenAt) -> Result<Vec<Patch>> {
        Ok(self.durable.store.borrow().undo(token, at))
    }

    fn measured(&self) -> Result<MeasuredRows> {
        self.durable.store.borrow().measured().map_err(Error)
    }

    fn rows_written(&self) -> u64 {
        self.durable.rows_written.get()
    }

    fn lateness(&self) -> Result<Vec<(String, u64, u64, u64)>> {
        Ok(self.durable.store.borrow().lateness())
    }
}

impl Durable {
    fn count_rows(&self, rows: u64) {
        self.rows_written.set(self.rows_written.get() + rows);
    }
}

fn posted_key(write: &Write) -> Option<String> {
    match write {
        Write::SaveMessage { id, .. } => Some(format!("{OUTBOX}{id}")),
        Write::SaveNotification(notification) => Some(notification_key(notification.number)),
        _others => None,
    }
}

/// The object's end of a connection to an executor.
pub struct SimConnection<W> {
    id: ConnectionId,
    has_heartbeats: bool,
    world: Rc<W>,
    life: Rc<Life>,
    durable: Rc<Durable>,
}

impl<W: World> SimConnection<W> {
    fn close(&self) {
        if let Some(state) = self
            .world
            .environment()
            .connections
            .borrow_mut()
            .get_mut(&self.id)
        {
            state.is_closed = true;
        }
        let environment = self.world.environment();
        let now = environment.now.get();
        environment.awake.borrow_mut().closed(&self.id, now);
        self.world.connection_closed(&self.id);
    }
}

impl<W: World> Connection for SimConnection<W> {
    fn send(&self, orders: &str) {
        if !self.life.performs() {
            return;
        }
        if let Some(state) = self
            .world
            .environment()
            .connections
            .borrow_mut()
            .get_mut(&self.id)
        {
            state.batches += 1;
        }
        let environment = self.world.environment();
        let now = environment.now.get();
        environment.awake.borrow_mut().opened(&self.id, now);
        self.world
            .orders_arrived(&self.durable.store.borrow(), &self.id, orders);
    }

    fn finish(&self) {
        self.close();
    }

    fn abort(&self) {
        self.close();
    }

    fn silent_ms(&self) -> u64 {
        let environment = self.world.environment();
        let connections = environment.connections.borrow();
        let frozen_since = connections.get(&self.id).and_then(|state| state.frozen_since);
        let frozen_since = frozen_since.filter(|_| self.has_heartbeats);
        frozen_since.map_or(0, |since| environment.now.get() - since)
    }
}
