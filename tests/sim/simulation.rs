//! The simulation of one seed: runs whose objects may crash at any moment, their storage, executors, operators, and the messages
//! between them. A child is a run like any other.
//!
//! The objects run `curfew::host`, the same code as the Durable Object; only the platform below it is simulated.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use curfew::base::time::Millis;
use curfew::host::{
    Config, Delivery, DeliveryKind, DeliveryResult, Host, Payload, Published, SubrequestBudget,
};
use curfew::protocol::caller::Caller;
use curfew::protocol::run::{RunCall, RunRequest, RunResponse};
use curfew::protocol::start::StartRun;
use curfew::protocol::task::TaskReport;
use curfew::run::{NotifySettings, Routes, Settings};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::environment::{ConnectionId, Environment};
use super::faults::Faults;
use super::in_flight::{InFlight, Sender};
use super::outcome::Outcome;
use super::platform::SimPlatform;
use super::simulated_run::SimulatedRun;
use crate::run::driver::{callback_key, store_document};
use crate::run::generator;
use crate::run::rng::Rng;

pub(super) const SETTINGS: Settings = Settings {
    retry_delay_ms: 1_000,
    queue: false,
    routes: Routes::ALL,
    pending_ms: 5_000,
    no_route_ms: 300_000,
    resend_ms: 10_000,
    claim_ms: 30_000,
    // Short, or most attempts would meet their own deadline before their silence is noticed.
    heartbeat_ms: 45_000,
    progress_save_ms: 10_000,
    suspend_ms: 30_000,
    grace_ms: 500,
    watch_ms: 30_000,
    lost_max: 5,
    retention_ms: 86_400_000,
    timeout_max_ms: 2_592_000_000,
    notify: NotifySettings::DEFAULT,
};

pub(super) const SILENCE_MS: u64 = 45_000;
/// The caller that starts the first run.
pub(super) const STARTER: &str = "eve";
/// How much later `entry.mjs` sets an alarm again whose handler failed.
const FAILED_ALARM_MS: u64 = 10_000;
/// How much later the platform repeats an alarm whose object crashed.
const CRASHED_ALARM_MS: u64 = 2_000;

/// Faults happen during the first events only.
const FAULTY_EVENTS: &[u64] = &[15, 40, 150];
/// No simulation needs as many; one that does is stuck.
const EVENTS_MAX: u64 = 20_000;

/// The id of the run that is started first; the others are its descendants.
pub(super) const FIRST_RUN: &str = "run-1";

pub struct Simulation {
    pub(super) environment: Rc<Environment>,
    pub(super) settings: Settings,
    /// Calls that one invocation of an object may make.
    invocation_calls: u32,
    pub(super) runs: BTreeMap<String, SimulatedRun>,
    /// The newest document of the first run's workflow, and its version.
    pub(super) document: Value,
    pub(super) input: Value,
    pub(super) version: u64,
    faulty_events: u64,
    /// No operator acts any more.
    pub(super) is_unattended: bool,
    /// By when runs must have ended that are left alone, not counting the time at gates, and how long they stood there before.
    pub(super) ends_by: BTreeMap<String, (Millis, u64)>,
}

impl Simulation {
    pub fn new(seed: u64, trace: bool) -> Simulation {
        Simulation::prepare(seed, trace, |_, faults| faults).started()
    }

    /// A simulation with the seed's workflow and faults, or what `change` makes of them.
    pub(super) fn prepare(
        seed: u64,
        trace: bool,
        change: impl FnOnce(&mut Value, Faults) -> Faults,
    ) -> Simulation {
        let mut rng = Rng::seeded(seed);
        let faults = Faults::of(&mut rng);
        let mut document = generator::workflow(&mut rng);
        let faults = change(&mut document, faults);
        if trace {
            println!("{faults:?}\n{document:#}");
        }
        let faulty_events = *rng.pick(FAULTY_EVENTS);
        let input = json!({"x": rng.below(4), "name": "Ada"});
        let settings = Settings {
            queue: rng.chance(60),
            ..SETTINGS
        };
        let invocation_calls = *rng.pick(&[24, 24, 1, 2]);
        Simulation {
            environment: Rc::new(Environment::new(rng, faults, trace)),
            settings,
            invocation_calls,
            runs: BTreeMap::new(),
            document,
            input,
            version: 1,
            faulty_events,
            is_unattended: false,
            ends_by: BTreeMap::new(),
        }
    }

    pub(super) fn started(mut self) -> Simulation {
        let (document, input) = (self.document.clone(), self.input.clone());
        self.start_first(&document, input);
        self
    }

    /// A caller repeats a start until it is confirmed.
    fn start_first(&mut self, document: &Value, input: Value) {
        let stored = to_raw_value(&store_document(document)).expect("a snapshot is JSON");
        let command = StartRun {
            run_id: "run-1".into(),
            stored: Rc::from(stored),
            input,
            request: Default::default(),
            parent: None,
            triggered_by: None,
            callback_secret: Some(callback_key().secret_of("run-1")),
            started_by: None,
            traceparent: None,
        };
        let starter = Caller {
            name: Some(STARTER.into()),
            ..Caller::default()
        };
        loop {
            let start = RunRequest::Start {
                command: command.clone(),
                wait_ms: None,
            };
            match self.call("run-1", Some(starter.clone()), start) {
                Some(RunResponse::Created(_) | RunResponse::Done(_)) => return,
                None | Some(RunResponse::Refused { status: 500, .. }) => {}
                Some(other) => panic!("the start was answered with {other:?}"),
            }
        }
    }

    /// Faults and operators for so many events, instead of as many as the seed says.
    pub fn with_faulty_events(mut self, events: u64) -> Simulation {
        self.faulty_events = events;
        if events == 0 {
            self.stop_faults();
            self.leave_alone();
        }
        self
    }

    pub fn faulty_events(&self) -> u64 {
        self.faulty_events
    }

    pub(super) fn stop_faults(&mut self) {
        *self.environment.faults.borrow_mut() = Faults::default();
    }

    pub fn run(mut self) -> Outcome {
        while self.runs.values().any(|run| !run.is_over()) {
            let events = {
                let mut outcome = self.environment.outcome.borrow_mut();
                outcome.events += 1;
                outcome.events
            };
            assert!(
                events < EVENTS_MAX,
                "the simulation is stuck: {}",
                self.describe()
            );
            if events == self.faulty_events {
                self.stop_faults();
                // Or the routes stay missing: then, too, every run ends.
                if self.environment.chance(70) {
                    self.deploy(Routes::ALL);
                }
                self.leave_alone();
            }
            self.disturb();
            self.next_event();
            for run in self.runs.values() {
                run.check(self.environment.now.get());
            }
            self.check_children_are_paused();
        }
        for (id, run) in &self.runs {
            self.environment.outcome.borrow_mut().joins_continued += run.check_end();
            if run.store().header().is_some() {
                self.environment.check_all_received(id, &run.store());
            }
        }
        self.check_ends();
        self.environment.check_all_published();
        self.count_ends();
        self.check_traces();
        self.environment.outcome.take()
    }

    pub(super) fn faults_are_over(&self) -> bool {
        self.environment.outcome.borrow().events >= self.faulty_events
    }

    /// Drops what operators have sent.
    pub(super) fn forget_requests(&mut self) {
        let is_of_operator =
            |message: &InFlight| matches!(message, InFlight::Request { .. } | InFlight::Retry { .. });
        let mut in_flight = self.environment.in_flight.borrow_mut();
        in_flight.retain(|_, message| !is_of_operator(message));
    }

    fn count_ends(&self) {
        let mut outcome = self.environment.outcome.borrow_mut();
        for run in self.runs.values() {
            let store = run.store();
            let Some(header) = store.header() else { continue };
            outcome.runs += 1;
            outcome.children += u64::from(header.parent.is_some());
            let error = header.error.as_ref();
            outcome.given_up += u64::from(error.is_some_and(|it| it.code == "internal_error"));
            let count = match header.status.name() {
                "completed" => &mut outcome.completed,
                "failed" => &mut outcome.failed,
                "timed_out" => &mut outcome.timed_out,
                "cancelled" => &mut outcome.cancelled,
                other => panic!("{other} is no end"),
            };
            *count += 1;
            let rows = store.run.iter();
            let fired =
                rows.filter(|(key, row)| key.starts_with("instance/") && row.contains("\"fired_at\""));
            outcome.joins_fired += fired.count() as u64;
        }
    }

    pub(super) fn next_event(&mut self) {
        let arrives_at = {
            let in_flight = self.environment.in_flight.borrow();
            in_flight.first_key_value().map(|((at, _), _)| *at)
        };
        let alarms = self.runs.iter().filter(|(_, run)| !run.is_over());
        let alarm = alarms
            .filter_map(|(id, run)| Some((run.durable.rings_at.get()?, id.clone())))
            .min();
        match (arrives_at, alarm) {
            (Some(arrives_at), Some((rings_at, id))) if rings_at <= arrives_at => {
                self.fire_alarm(&id, rings_at)
            }
            (None, Some((rings_at, id))) => self.fire_alarm(&id, rings_at),
            (Some(_), _) => self.message_arrives(),
            (None, None) => {
                let stuck = "nothing will ever happen again";
                assert!(!self.is_unattended, "{stuck}: {}", self.describe());
                let ids: Vec<String> = self.runs.keys().cloned().collect();
                let cared_for = ids.iter().filter(|id| self.take_care(id)).count();
                assert!(cared_for > 0, "{stuck}: {}", self.describe());
            }
        }
    }

    fn advance(&self, to: Millis) {
        let now = self.environment.now.get();
        self.environment.now.set(now.max(to));
    }

    fn fire_alarm(&mut self, id: &str, at: Millis) {
        self.advance(at);
        let durable = Rc::clone(&self.runs[id].durable);
        // The platform clears an alarm before it calls the handler, and calls it again after a crash.
        let alarm_at = durable.store.borrow_mut().alarm_at.take();
        durable.rings_at.set(None);
        self.environment.note(id, "alarm rings");
        let budget = self.budget();
        let result = self.with_host(id, |host| ready(host.alarm(&budget)));
        let now = self.environment.now.get();
        if durable.deleted.get() {
            return;
        }
        match result {
            None if durable.store.borrow().alarm_at.is_none() => {
                durable.store.borrow_mut().alarm_at = alarm_at;
                durable.rings_at.set(Some(now + CRASHED_ALARM_MS));
            }
            Some(Err(_)) => {
                durable.store.borrow_mut().alarm_at = Some(now + FAILED_ALARM_MS);
                durable.rings_at.set(Some(now + FAILED_ALARM_MS));
            }
            None | Some(Ok(())) => {
                if self.environment.fault(|faults| faults.repeated_alarm) {
                    self.environment.note(id, "alarm rings again");
                    let budget = self.budget();
                    self.with_host(id, |host| ready(host.alarm(&budget)));
                }
            }
        }
    }

    fn message_arrives(&mut self) {
        let first = self.environment.in_flight.borrow_mut().pop_first();
        let ((at, _), message) = first.expect("a message was found");
        self.advance(at);
        match message {
            InFlight::QueueMessage {
                message,
                number,
                deliveries_left,
            } => self.claim(message, number, deliveries_left),
            InFlight::Heartbeat { run, attempt, left } => self.heartbeat(&run, attempt, left),
            InFlight::Result {
                run,
                attempt,
                request,
            } => self.result_arrived(run, attempt, request),
            InFlight::Request { run, caller, request } => {
                self.call(&run, caller, request);
            }
            InFlight::Retry { run, mode, choice } => self.retry(&run, mode, choice),
            InFlight::Report { connection, report } => {
                // Reports of a former incarnation are lost with their connection; one by the queue might still come.
                if connection.incarnation != self.runs[&connection.run].incarnation {
                    if self.environment.chance(30) {
                        self.request(&connection.run, RunRequest::Report(report));
                    }
                    return;
                }
                let mut reports = vec![report];
                reports.extend(self.take_reports_beside(&connection));
                let lines: Vec<String> = reports.iter().map(|it| json!(it).to_string()).collect();
                self.on_connection(&connection, |host| {
                    host.platform.reports_are_handled(&reports);
                    host.reports_arrived(connection.number, &lines.join("\n"));
                    host.platform.reports_are_handled(&[]);
                });
            }
            InFlight::Progress { connection, line } => {
                if connection.incarnation == self.runs[&connection.run].incarnation {
                    self.on_connection(&connection, |host| host.reports_arrived(connection.number, &line));
                }
            }
            InFlight::ConnectionClosed { connection } => {
                let incarnation = self.runs[&connection.run].incarnation;
                if connection.incarnation == incarnation {
                    self.on_connection(&connection, |host| {
                        host.connection_closed(connection.number, Some("reset".into()));
                    });
                }
            }
            InFlight::Message { from, delivery } => self.deliver(from, delivery),
            InFlight::Notification { from, number, order } => {
                if let Some(report) = self.environment.receive(&order) {
                    let delay = self.environment.below(300);
                    let ended = InFlight::NotificationEnded {
                        to: from,
                        number,
                        report,
                    };
                    self.environment.post(delay, ended);
                }
            }
            InFlight::NotificationEnded { to, number, report } => {
                // A call ends with the object that made it.
                if to.incarnation == self.runs[&to.run].incarnation {
                    self.with_host(&to.run, |host| {
                        host.notification_ended(&to.budget, number, report)
                    });
                }
            }
            InFlight::DeliveryEnded { to, id, kind, result } => {
                // A call ends with the object that made it.
                if to.incarnation == self.runs[&to.run].incarnation {
                    self.with_host(&to.run, |host| host.delivery_ended(&to.budget, id, kind, result));
                }
            }
        }
    }

    /// Reports that arrive together with the one at hand.
    fn take_reports_beside(&self, connection: &ConnectionId) -> Vec<TaskReport> {
        let together_ms = self.environment.pick(&[0, 100]);
        let latest = self.environment.now.get() + together_ms;
        let mut in_flight = self.environment.in_flight.borrow_mut();
        let is_beside = |at: Millis, message: &InFlight| {
            at <= latest
                && matches!(message, InFlight::Report { connection: other, .. } if other == connection)
        };
        let taken: Vec<(Millis, u64)> = in_flight
            .iter()
            .filter(|((at, _), message)| is_beside(*at, message))
            .map(|(arrival, _)| *arrival)
            .collect();
        self.environment.outcome.borrow_mut().reports_batched += taken.len() as u64;
        taken
            .iter()
            .filter_map(|arrival| match in_flight.remove(arrival) {
                Some(InFlight::Report { report, .. }) => Some(report),
                _others => None,
            })
            .collect()
    }

    /// Nothing comes by a connection that is closed, or whose executor is frozen.
    fn on_connection(&mut self, connection: &ConnectionId, call: impl FnOnce(&Host<SimPlatform>)) {
        let is_open = {
            let connections = self.environment.connections.borrow();
            let state = &connections[connection];
            !state.is_closed && state.frozen_since.is_none()
        };
        if is_open {
            self.with_host(&connection.run, call);
        }
    }

    fn deliver(&mut self, from: Sender, delivery: Delivery) {
        let Delivery { id, kind, payload } = delivery;
        let result = match payload {
            Payload::Event(event) => {
                let environment = &self.environment;
                let published = environment.publish(&event.key, &event.payload, event.after.as_deref());
                DeliveryResult::Published(Published {
                    unfinished_after: published.err(),
                    refused: Vec::new(),
                })
            }
            Payload::Request { run_id, request } => {
                let is_known = self.runs.contains_key(&run_id);
                let response = match kind {
                    // A run that was deleted had been started.
                    DeliveryKind::StartOfChild if is_known && self.runs[&run_id].is_deleted() => {
                        Some(RunResponse::Done("{}".into()))
                    }
                    DeliveryKind::StartOfChild => self.request(&run_id, *request),
                    DeliveryKind::ToChild | DeliveryKind::ToParent | DeliveryKind::Event => match is_known {
                        true => self.request(&run_id, *request),
                        false => Some(RunResponse::NotFound("{}".into())),
                    },
                };
                let is_refused = matches!(response, Some(RunResponse::Conflict(_)));
                assert!(
                    !is_refused || kind != DeliveryKind::StartOfChild,
                    "{run_id} is the child of another run"
                );
                match response {
                    Some(response) => DeliveryResult::Response(response),
                    None => DeliveryResult::Failed("the object crashed".into()),
                }
            }
        };
        if !self.environment.fault(|faults| faults.message_lost) {
            let delay = self.environment.below(300);
            let ended = InFlight::DeliveryEnded {
                to: from,
                id,
                kind,
                result,
            };
            self.environment.post(delay, ended);
        }
    }

    fn budget(&self) -> SubrequestBudget {
        SubrequestBudget::new(self.invocation_calls)
    }

    /// A request from inside. `None`: the run's object crashed.
    pub(super) fn request(&mut self, id: &str, request: RunRequest) -> Option<RunResponse> {
        self.call(id, None, request)
    }

    /// The response of the run's object. `None`: it crashed.
    pub(super) fn call(
        &mut self,
        id: &str,
        caller: Option<Caller>,
        request: RunRequest,
    ) -> Option<RunResponse> {
        let text = json!(RunCall {
            caller,
            operation: None,
            request
        })
        .to_string();
        let budget = self.budget();
        self.with_host(id, |host| ready(host.respond(&budget, &text)))
    }

    /// Calls the run's object, which comes into memory for it. `None`: it crashed.
    fn with_host<T>(&mut self, id: &str, call: impl FnOnce(&Host<SimPlatform>) -> T) -> Option<T> {
        let (environment, settings) = (&self.environment, self.settings);
        let run = self.runs.entry(id.to_string()).or_default();
        let host = run.host.get_or_insert_with(|| {
            let platform = SimPlatform::new(id, run.incarnation, environment, &run.durable);
            let config = Config {
                settings,
                silence_ms: SILENCE_MS,
                exports_traces: true,
            };
            Host::new(platform, config, Rc::clone(&environment.snapshots))
        });
        let result = call(host);
        if host.platform.has_crashed() {
            run.evict();
            return None;
        }
        Some(result)
    }

    pub(super) fn run_mut(&mut self, id: &str) -> &mut SimulatedRun {
        self.runs.get_mut(id).expect("a run that was started")
    }

    /// Every object leaves memory and comes back with the new settings.
    pub(super) fn deploy(&mut self, routes: Routes) {
        if self.environment.trace {
            println!("{} deployed with {routes:?}", self.environment.now.get());
        }
        self.settings.routes = routes;
        for run in self.runs.values_mut() {
            run.evict();
        }
    }

    fn describe(&self) -> String {
        let open = self.runs.iter().filter(|(_, run)| !run.is_over());
        open.map(|(id, run)| format!("{id}: {:?}\n", run.store()))
            .collect()
    }
}

/// The simulated platform never waits.
pub(super) fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the simulated platform does not wait"),
    }
}
