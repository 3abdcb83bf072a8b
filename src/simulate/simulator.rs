//! The loop of a simulation: the next alarm rings or the next message arrives, and the run's object handles it. Objects may
//! crash at any moment. A child is a run like any other.
//!
//! The objects run `host`, the same code as the Durable Object; only the platform below it is simulated.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use serde_json::json;

use crate::base::price::Usage;
use crate::base::time::Millis;
use crate::host::{Config, Delivery, DeliveryKind, DeliveryResult, Host, Payload, SubrequestBudget};
use crate::protocol::caller::Caller;
use crate::protocol::run::{RunCall, RunRequest, RunResponse};
use crate::protocol::task::TaskReport;
use crate::simulate::environment::ConnectionId;
use crate::simulate::in_flight::{InFlight, Sender};
use crate::simulate::object::SimulatedRun;
use crate::simulate::platform::SimPlatform;
use crate::simulate::world::{Happening, World};

/// How much later `entry.mjs` sets an alarm again whose handler failed.
const FAILED_ALARM_MS: u64 = 10_000;
/// How much later the platform repeats an alarm whose object crashed.
const CRASHED_ALARM_MS: u64 = 2_000;

pub struct Simulator<W: World> {
    pub world: Rc<W>,
    pub config: Config,
    /// Calls that one invocation of an object may make.
    pub invocation_calls: u32,
    /// Ended runs are kept: time ends with the last of them.
    pub keeps_ended_runs: bool,
    pub runs: BTreeMap<String, SimulatedRun<W>>,
}

/// What happened in a turn of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Handled,
    /// A message of the world's own has come.
    Scheduled(u64),
    /// Nothing will ever happen again, unless a request comes.
    Nothing,
}

impl<W: World> Simulator<W> {
    pub fn new(world: Rc<W>, config: Config, invocation_calls: u32) -> Simulator<W> {
        Simulator {
            world,
            config,
            invocation_calls,
            keeps_ended_runs: false,
            runs: BTreeMap::new(),
        }
    }

    pub fn now(&self) -> Millis {
        self.world.environment().now.get()
    }

    /// The moment of the next turn. None if there is none.
    pub fn next_at(&self) -> Option<Millis> {
        let alarm_at = self.next_alarm().map(|(at, _)| at);
        self.next_arrival().into_iter().chain(alarm_at).min()
    }

    fn next_arrival(&self) -> Option<Millis> {
        let in_flight = self.world.environment().in_flight.borrow();
        in_flight.first_key_value().map(|((at, _), _)| *at)
    }

    fn next_alarm(&self) -> Option<(Millis, &String)> {
        let alarms = self.runs.iter().filter(|(_, run)| self.may_ring(run));
        let alarms = alarms.filter_map(|(id, run)| Some((run.durable.rings_at.get()?, id)));
        alarms.min()
    }

    fn may_ring(&self, run: &SimulatedRun<W>) -> bool {
        match self.keeps_ended_runs {
            true => run.durable.rings_at.get().is_some() && run.has_something_to_do(),
            false => !run.is_over(),
        }
    }

    /// Handles what comes next.
    pub fn take_turn(&mut self) -> Next {
        let alarm = self.next_alarm().map(|(at, id)| (at, id.clone()));
        match (self.next_arrival(), alarm) {
            (Some(arrives_at), Some((rings_at, id))) if rings_at <= arrives_at => {
                self.fire_alarm(&id, rings_at);
                Next::Handled
            }
            (None, Some((rings_at, id))) => {
                self.fire_alarm(&id, rings_at);
                Next::Handled
            }
            (Some(_), _) => self.message_arrives(),
            (None, None) => Next::Nothing,
        }
    }

    fn fire_alarm(&mut self, id: &str, at: Millis) {
        self.world.environment().advance(at);
        let durable = Rc::clone(&self.runs[id].durable);
        // The platform clears an alarm before it calls the handler, and calls it again after a crash.
        let alarm_at = durable.store.borrow_mut().alarm_at.take();
        durable.rings_at.set(None);
        self.world.note(id, "alarm rings");
        let budget = self.budget();
        let result = self.with_host(id, |host| ready(host.alarm(&budget)));
        let now = self.now();
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
                if self.world.fault(|faults| faults.repeated_alarm) {
                    self.world.note(id, "alarm rings again");
                    let budget = self.budget();
                    self.with_host(id, |host| ready(host.alarm(&budget)));
                }
            }
        }
    }

    fn message_arrives(&mut self) -> Next {
        let first = self.world.environment().in_flight.borrow_mut().pop_first();
        let Some(((at, _), message)) = first else {
            return Next::Nothing;
        };
        self.world.environment().advance(at);
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
            InFlight::Request {
                run,
                caller,
                request,
                is_repeated,
            } => self.request_arrived(run, caller, request, is_repeated),
            InFlight::Report { connection, report } => self.report_arrived(&connection, report),
            InFlight::Progress { connection, line } => {
                if self.is_current(&connection) {
                    self.on_connection(&connection, |host| host.reports_arrived(connection.number, &line));
                }
            }
            InFlight::ConnectionClosed { connection } => {
                if self.is_current(&connection) {
                    self.on_connection(&connection, |host| {
                        host.connection_closed(connection.number, Some("reset".into()));
                    });
                }
            }
            InFlight::Message { from, delivery } => self.deliver(from, delivery),
            InFlight::Notification { from, number, order } => {
                if let Some(report) = self.world.receive(&order) {
                    let environment = self.world.environment();
                    let ended = InFlight::NotificationEnded {
                        to: from,
                        number,
                        report,
                    };
                    environment.post(environment.delay(300), ended);
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
            InFlight::Scheduled(number) => return Next::Scheduled(number),
        }
        Next::Handled
    }

    fn request_arrived(
        &mut self,
        run: String,
        caller: Option<Caller>,
        request: RunRequest,
        is_repeated: bool,
    ) {
        let response = self.call(&run, caller.clone(), request.clone());
        match response {
            Some(response) if !matches!(response, RunResponse::Refused { status: 500, .. }) => {
                self.world.answered(&run, &request, &response);
            }
            Some(_) | None if is_repeated => {
                let again = InFlight::Request {
                    run,
                    caller,
                    request,
                    is_repeated,
                };
                self.world.environment().post(1_000, again);
            }
            Some(_) | None => {}
        }
    }

    fn is_current(&self, connection: &ConnectionId) -> bool {
        connection.incarnation == self.runs[&connection.run].incarnation
    }

    fn report_arrived(&mut self, connection: &ConnectionId, report: TaskReport) {
        // Reports of a former incarnation are lost with their connection; one by the queue might still come.
        if !self.is_current(connection) {
            if self.world.environment().chance(30) {
                self.request(&connection.run, RunRequest::Report(report));
            }
            return;
        }
        let mut reports = vec![report];
        reports.extend(self.take_reports_beside(connection));
        let lines: Vec<String> = reports.iter().map(|it| json!(it).to_string()).collect();
        self.on_connection(connection, |host| {
            host.platform.reports_are_handled(&reports);
            host.reports_arrived(connection.number, &lines.join("\n"));
            host.platform.reports_are_handled(&[]);
        });
    }

    /// Reports that arrive together with the one at hand.
    fn take_reports_beside(&self, connection: &ConnectionId) -> Vec<TaskReport> {
        let environment = self.world.environment();
        let now = environment.now.get();
        let mut in_flight = environment.in_flight.borrow_mut();
        let is_beside = |message: &InFlight| matches!(message, InFlight::Report { connection: other, .. } if other == connection);
        let taken: Vec<(Millis, u64)> = match environment.has_delays {
            true => {
                let latest = now + environment.pick(&[0, 100]);
                let arriving = in_flight.range(..=(latest, u64::MAX));
                let beside = arriving.filter(|(_, message)| is_beside(message));
                beside.map(|(arrival, _)| *arrival).collect()
            }
            // Those that follow at once: thousands of others may arrive at the same moment.
            false => {
                let arriving = in_flight.range(..=(now, u64::MAX));
                let beside = arriving.take_while(|(_, message)| is_beside(message));
                beside.map(|(arrival, _)| *arrival).collect()
            }
        };
        let reports = taken
            .iter()
            .filter_map(|arrival| match in_flight.remove(arrival) {
                Some(InFlight::Report { report, .. }) => Some(report),
                Some(_) | None => None,
            });
        let reports: Vec<TaskReport> = reports.collect();
        drop(in_flight);
        for _ in &reports {
            self.world.happened(Happening::ReportBatched);
        }
        reports
    }

    /// Nothing comes by a connection that is closed, or whose executor is frozen.
    fn on_connection(&mut self, connection: &ConnectionId, call: impl FnOnce(&Host<SimPlatform<W>>)) {
        if self.world.environment().is_open(connection) {
            self.with_host(&connection.run, call);
        }
    }

    fn deliver(&mut self, from: Sender, delivery: Delivery) {
        let Delivery { id, kind, payload } = delivery;
        let result = match payload {
            Payload::Event(event) => DeliveryResult::Published(self.world.publish(&event)),
            Payload::Request { run_id, request } => {
                match self.response_to_message(&from, kind, &run_id, *request) {
                    Some(response) => DeliveryResult::Response(response),
                    None => DeliveryResult::Failed("the object crashed".into()),
                }
            }
        };
        if !self.world.fault(|faults| faults.message_lost) {
            let environment = self.world.environment();
            let ended = InFlight::DeliveryEnded {
                to: from,
                id,
                kind,
                result,
            };
            environment.post(environment.delay(300), ended);
        }
    }

    fn response_to_message(
        &mut self,
        from: &Sender,
        kind: DeliveryKind,
        run_id: &str,
        request: RunRequest,
    ) -> Option<RunResponse> {
        let answer = self.world.answer(&self.runs[&from.run].store(), run_id, &request);
        if answer.is_some() {
            return answer;
        }
        let known = self.runs.get(run_id);
        match kind {
            // A run that was deleted had been started.
            DeliveryKind::StartOfChild if known.is_some_and(SimulatedRun::is_deleted) => {
                Some(RunResponse::Done("{}".into()))
            }
            DeliveryKind::StartOfChild => {
                let response = self.request(run_id, request);
                if matches!(response, Some(RunResponse::Conflict(_))) {
                    self.world.broken(run_id, "it is the child of another run".into());
                }
                response
            }
            DeliveryKind::ToChild | DeliveryKind::ToParent | DeliveryKind::Event => match known {
                Some(_) => self.request(run_id, request),
                None => Some(RunResponse::NotFound("{}".into())),
            },
        }
    }

    fn budget(&self) -> SubrequestBudget {
        SubrequestBudget::new(self.invocation_calls)
    }

    /// A request from inside. `None`: the run's object crashed.
    pub fn request(&mut self, id: &str, request: RunRequest) -> Option<RunResponse> {
        self.call(id, None, request)
    }

    /// The response of the run's object. `None`: it crashed.
    pub fn call(&mut self, id: &str, caller: Option<Caller>, request: RunRequest) -> Option<RunResponse> {
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
    pub fn with_host<T>(&mut self, id: &str, call: impl FnOnce(&Host<SimPlatform<W>>) -> T) -> Option<T> {
        let (world, config) = (&self.world, self.config);
        let run = self.runs.entry(id.to_string()).or_default();
        run.durable.requests.set(run.durable.requests.get() + 1);
        let host = run.host.get_or_insert_with(|| {
            let platform = SimPlatform::new(id, run.incarnation, world, &run.durable);
            Host::new(platform, config, Rc::clone(&world.environment().snapshots))
        });
        let result = call(host);
        if host.platform.has_crashed() {
            self.evict(id);
            return None;
        }
        Some(result)
    }

    /// What all runs used so far. `calls`: of executors.
    pub fn usage(&self, calls: u64) -> Usage {
        let environment = self.world.environment();
        let mut usage = Usage {
            calls,
            queue_messages: environment.queued.get(),
            awake_ms: environment.awake.borrow().total_ms(environment.now.get()),
            ..Usage::default()
        };
        for run in self.runs.values() {
            usage.runs += 1;
            usage.rows_written += run.durable.rows_written.get();
            usage.object_requests += run.durable.requests.get();
        }
        usage
    }

    /// The object leaves memory, if it is there.
    pub fn evict(&mut self, id: &str) {
        if let Some(run) = self.runs.get_mut(id) {
            run.evict();
            let environment = self.world.environment();
            let now = environment.now.get();
            environment.awake.borrow_mut().left(id, now);
            self.world.object_left(id);
        }
    }
}

/// The simulated platform never waits.
pub fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("the simulated platform does not wait"),
    }
}
