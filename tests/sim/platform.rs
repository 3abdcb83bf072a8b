//! `host::Platform` with faults: commits that fail, objects that crash before or after a commit or while they perform its
//! commands. Every decision and every commit is checked here.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use curfew::api::recovery;
use curfew::base::time::Millis;
use curfew::host::{
    Attempt, Connection, Delivery, DeliveryKind, Error, IndexChange, LiveEvents, Payload, Platform, Result,
    Storage, SubrequestBudget,
};
use curfew::protocol::notification::NotificationOrder;
use curfew::protocol::task::{TaskMessage, TaskReport};
use curfew::run::{
    Decision, Event, Lane, MeasuredRows, Patch, Run, RunEventKind, TokenId, TokenStatus, Write, WrittenAt,
};
use curfew::storage::commit::{Commit, FAILED_WAKES, OUTBOX, notification_key};
use curfew::storage::pages::ListedRow;
use curfew::storage::restore::Rows;
use curfew::storage::rows::ListedRowEvent;
use serde_json::Value;

use super::environment::{ConnectionId, Environment};
use super::in_flight::Sender;
use super::progress::check_published;
use super::properties::CheckedDecision;
use super::running_time::RunningTime;
use super::store::Store;
use crate::run::driver::render;

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
    /// Rows as Cloudflare bills them, with the table and alarms.
    pub rows_written: Cell<u64>,
    /// The most tokens that were alive after a decision.
    pub tokens_alive_max: Cell<u64>,
}

/// The platform of one incarnation of an object.
pub struct SimPlatform {
    pub run: String,
    pub incarnation: u64,
    environment: Rc<Environment>,
    durable: Rc<Durable>,
    life: Rc<Life>,
    /// The event that is being decided on, and the calls that may be made for it.
    deciding: RefCell<Option<(Event, u32)>>,
    /// Decided and not committed.
    uncommitted: RefCell<Vec<Write>>,
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

impl SimPlatform {
    pub fn new(
        run: &str,
        incarnation: u64,
        environment: &Rc<Environment>,
        durable: &Rc<Durable>,
    ) -> SimPlatform {
        SimPlatform {
            run: run.to_string(),
            incarnation,
            environment: Rc::clone(environment),
            durable: Rc::clone(durable),
            life: Rc::default(),
            deciding: RefCell::default(),
            uncommitted: RefCell::default(),
            woken_at: Cell::default(),
            reported: RefCell::default(),
        }
    }

    pub fn has_crashed(&self) -> bool {
        self.life.has_crashed()
    }

    fn crash(&self, when: &str) -> Error {
        self.environment.note(&self.run, when);
        self.life.has_crashed.set(true);
        Error(when.into())
    }

    pub fn reports_are_handled(&self, reports: &[TaskReport]) {
        let attempts = reports.iter().map(|it| (it.token_id.clone(), it.epoch));
        *self.reported.borrow_mut() = attempts.collect();
    }

    /// A wake must not take an attempt for lost whose report is at hand.
    fn check_reported_calls_are_open(&self, run: &Run, open_calls: &[Attempt]) {
        for (token_id, epoch) in &*self.reported.borrow() {
            let token = TokenId::parse(token_id).expect("a report names a token");
            let is_executing = run
                .live_token(token)
                .is_some_and(|it| it.status == TokenStatus::Executing && it.epoch == *epoch);
            let is_open = open_calls.contains(&(token, *epoch));
            assert!(
                is_open || !is_executing,
                "{token_id} counts as lost when its report comes"
            );
        }
    }

    fn committed(&self) {
        let writes = self.uncommitted.take();
        let environment = &self.environment;
        environment.check_events(&self.run, &self.durable.store.borrow(), &writes);
        environment.check_notifications(&self.run, &self.durable.store.borrow());
        let mut running_time = self.durable.running_time.borrow_mut();
        let stopped = running_time.committed(environment.now.get(), &self.durable.store.borrow(), &writes);
        environment.outcome.borrow_mut().clocks_stopped += u64::from(stopped);
        for write in &writes {
            match write {
                Write::SaveToken(token) => {
                    let is_saved = token.progress.is_some() && token.lane == Some(Lane::Queue);
                    environment.outcome.borrow_mut().progress_saved += u64::from(is_saved);
                    environment.count_token(token);
                    environment.check_answer(&self.run, &self.durable.store.borrow(), token);
                }
                Write::SaveEvent(event) => {
                    let record = event.record.as_ref();
                    let has_output = record.is_some_and(|record| !record.partial_artifacts.is_empty());
                    environment.outcome.borrow_mut().recorded_outputs += u64::from(has_output);
                    environment.count_event(event);
                }
                _others => {}
            }
        }
        for event in writes.iter().filter_map(Write::event) {
            if event.fields.contains_key("given_up") {
                self.durable.given_up.set(true);
                environment.outcome.borrow_mut().ends_given_up += 1;
            }
            if event.kind == RunEventKind::RunRetried {
                self.durable.given_up.set(false);
            }
        }
        // Read from the row, because a run may end in the decision that starts it.
        let ended_at = self
            .durable
            .store
            .borrow()
            .header()
            .and_then(|header| header.ended_at);
        self.durable.ends.borrow_mut().extend(ended_at);
    }

    fn count_rows(&self, rows: usize) {
        let before = self.durable.rows_written.get();
        self.durable.rows_written.set(before + rows as u64);
    }

    fn set_alarm(&self, at: Millis) {
        let environment = &self.environment;
        let late = match environment.fault(|faults| faults.late_alarm) {
            true => 1 + environment.below(70_000),
            false => 0,
        };
        let early = match late == 0 && environment.fault(|faults| faults.early_alarm) {
            true => 1 + environment.below(5_000),
            false => 0,
        };
        let mut outcome = environment.outcome.borrow_mut();
        outcome.late_alarms += u64::from(late > 0);
        outcome.early_alarms += u64::from(early > 0);
        self.durable.store.borrow_mut().alarm_at = Some(at);
        let rings_at = at.saturating_add(late).saturating_sub(early);
        self.durable
            .rings_at
            .set(Some(rings_at.max(environment.now.get())));
    }

    fn connection(&self, number: u32) -> SimConnection {
        let id = ConnectionId {
            run: self.run.clone(),
            incarnation: self.incarnation,
            number,
        };
        self.environment
            .connections
            .borrow_mut()
            .insert(id.clone(), Default::default());
        SimConnection {
            id,
            has_heartbeats: true,
            environment: Rc::clone(&self.environment),
            life: Rc::clone(&self.life),
        }
    }
}

impl Platform for SimPlatform {
    type Connection = SimConnection;
    type Storage = SimPlatform;

    fn storage(&self) -> &SimPlatform {
        self
    }

    fn now(&self) -> Millis {
        self.environment.now.get()
    }

    fn random_id(&self) -> Result<String> {
        Ok(format!("{:016x}", self.environment.below(u64::MAX)))
    }

    fn log(&self, line: Value) {
        if self.environment.trace && line["level"] != "info" {
            self.environment.note(&self.run, &line.to_string());
        }
    }

    fn connect(&self, number: u32) -> Option<SimConnection> {
        Some(self.connection(number))
    }

    fn send_one(&self, number: u32, order: &str) -> Option<SimConnection> {
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
            self.environment.enqueue(message);
        }
    }

    fn deliver(&self, budget: &SubrequestBudget, delivery: Delivery) {
        if !self.life.performs() {
            return;
        }
        if let (DeliveryKind::StartOfChild, Payload::Request { run_id, .. }) =
            (delivery.kind, &delivery.payload)
        {
            self.environment.starts_sent.borrow_mut().insert(run_id.clone());
        }
        let from = Sender {
            run: self.run.clone(),
            incarnation: self.incarnation,
            budget: budget.clone(),
        };
        self.environment.send_message(from, delivery);
    }

    fn notify(&self, budget: &SubrequestBudget, number: u64, order: NotificationOrder) {
        if !self.life.performs() {
            return;
        }
        let from = Sender {
            run: self.run.clone(),
            incarnation: self.incarnation,
            budget: budget.clone(),
        };
        self.environment.send_notification(from, number, order);
    }

    fn publish(&self, _change: IndexChange) {
        self.life.performs();
    }

    fn publish_refused(&self) {}

    fn publish_progress(&self, line: &str) {
        check_published(&self.durable.store.borrow(), line);
        if self.life.performs() {
            self.environment.outcome.borrow_mut().progress_published += 1;
        }
    }

    async fn wait_for_end(&self, _millis: u64) {}

    fn notify_run_ended(&self) {
        self.life.performs();
    }

    fn is_watched(&self) -> bool {
        true
    }

    /// What watchers get is what `/events` shows.
    fn publish_events(&self, events: LiveEvents) {
        let store = self.durable.store.borrow();
        let stored = store.history(events.after).into_iter();
        let stored = stored.map(|event| {
            let (seq, kind) = (event.seq, event.kind.name());
            format!("{seq} {kind} {}", recovery::event(&self.run, event))
        });
        let stored: Vec<String> = stored.collect();
        assert_eq!(
            events.lines,
            stored.join("\n"),
            "{}: after {}",
            self.run,
            events.after
        );
        assert_eq!(events.last, events.after + stored.len() as u64);
        let header = store.header().expect("a run that is watched has a header");
        assert_eq!(events.has_ended, header.ended_at.is_some());
        self.environment.outcome.borrow_mut().events_published += stored.len() as u64;
    }

    fn deciding(&self, run: &Run, event: &Event, remaining_calls: u32) {
        let now = self.environment.now.get();
        if let Event::TaskReported(report) = event {
            let attempt = (report.token_id.clone(), report.epoch);
            self.reported.borrow_mut().remove(&attempt);
        }
        if let Event::Woken { open_calls } | Event::AlarmFired { open_calls } = event {
            self.check_reported_calls_are_open(run, open_calls);
            self.woken_at.set(Some(now));
        } else if run.is_due(now) && !event.comes_first() && !matches!(event, Event::Loaded) {
            // What was too much for one wake may still be due after it.
            let woken_at = self.woken_at.get();
            assert_eq!(woken_at, Some(now), "{event:?} overtook what is due: {run:?}");
        }
        *self.deciding.borrow_mut() = Some((event.clone(), remaining_calls));
    }

    fn decided(&self, run: &Run, accepted: bool, decision: &Decision) {
        let (event, remaining_calls) = self.deciding.take().expect("`deciding` came first");
        if self.life.has_crashed.get() {
            return;
        }
        let environment = &self.environment;
        let now = environment.now.get();
        if environment.trace {
            println!("{now} {} {event:.200?} -> {accepted}", self.run);
            for line in render(decision, run) {
                println!("    {line}");
            }
        }
        CheckedDecision {
            before: &self.durable.store.borrow(),
            run,
            event: &event,
            decision,
            now,
            remaining_calls,
            starts_sent: &environment.starts_sent.borrow(),
        }
        .check();
        environment.count_features(run, &event, accepted, decision.writes());
        let alive = run.live_tokens().count() as u64;
        let alive_max = self.durable.tokens_alive_max.get().max(alive);
        self.durable.tokens_alive_max.set(alive_max);
        let waits = run.live_tokens().filter(|token| {
            token.status == TokenStatus::Pending && token.epoch == 0 && token.watch_at == Some(now)
        });
        let mut outcome = environment.outcome.borrow_mut();
        outcome.waits_for_calls += waits.count() as u64;
        outcome.rejections += u64::from(!accepted);
        self.uncommitted.borrow_mut().extend_from_slice(decision.writes());
    }
}

impl Storage for SimPlatform {
    fn has_table(&self) -> Result<bool> {
        Ok(self.durable.has_table.get() && !self.durable.deleted.get())
    }

    fn create_table(&self) -> Result<bool> {
        self.count_rows(2);
        Ok(!self.durable.has_table.replace(true))
    }

    fn remove_table(&self) -> Result<()> {
        // A crashed start leaves the empty table, or takes it back with the write that was not confirmed.
        if !self.has_crashed() || self.environment.chance(50) {
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
        let environment = &self.environment;
        if self.has_crashed() {
            return Err(self.crash("crashed between two commits"));
        }
        if environment.fault(|faults| faults.crash_before_commit) {
            environment.outcome.borrow_mut().crashes_before_commit += 1;
            return Err(self.crash("crashed before the commit"));
        }
        let is_empty = *commit == Commit::default() && alarm.is_none();
        if !is_empty && environment.fault(|faults| faults.commit_fails) {
            environment.note(&self.run, "the commit failed");
            environment.outcome.borrow_mut().failed_commits += 1;
            self.uncommitted.take();
            return Err(Error("the commit failed".into()));
        }
        let posted = self.uncommitted.borrow().iter().filter_map(posted_key).collect();
        if let Err(broken) = self.durable.store.borrow_mut().apply_batch(commit, &posted) {
            panic!("{}: {broken}", self.run);
        }
        self.count_rows(commit.run.len() + commit.tokens.len() + commit.deleted.len());
        if let Some(at) = alarm {
            self.count_rows(1);
            self.set_alarm(at);
        }
        self.committed();
        if environment.fault(|faults| faults.crash_after_commit) {
            environment.note(&self.run, "crashes after the commit");
            environment.outcome.borrow_mut().crashes_after_commit += 1;
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
        let before = rows
            .get(FAILED_WAKES)
            .map_or(0, |row| row.parse::<u32>().expect("a number"));
        rows.insert(FAILED_WAKES.to_string(), (before + 1).to_string());
        Ok(())
    }

    /// The rows stay for the checks at the end.
    fn delete_all(&self) {
        if self.has_crashed() || self.environment.fault(|faults| faults.crash_before_commit) {
            self.crash("crashed before the deletion");
            return;
        }
        self.environment.note(&self.run, "deleted");
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
        0
    }

    fn lateness(&self) -> Result<Vec<(String, u64, u64, u64)>> {
        Ok(self.durable.store.borrow().lateness())
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
pub struct SimConnection {
    id: ConnectionId,
    has_heartbeats: bool,
    environment: Rc<Environment>,
    life: Rc<Life>,
}

impl SimConnection {
    fn close(&self) {
        if let Some(state) = self.environment.connections.borrow_mut().get_mut(&self.id) {
            state.is_closed = true;
        }
    }
}

impl Connection for SimConnection {
    fn send(&self, orders: &str) {
        if self.life.performs() {
            self.environment.orders_arrived(&self.id, orders);
        }
    }

    fn finish(&self) {
        self.close();
    }

    fn abort(&self) {
        self.close();
    }

    fn silent_ms(&self) -> u64 {
        let connections = self.environment.connections.borrow();
        let frozen_since = connections.get(&self.id).and_then(|state| state.frozen_since);
        let frozen_since = frozen_since.filter(|_| self.has_heartbeats);
        frozen_since.map_or(0, |since| self.environment.now.get() - since)
    }
}
