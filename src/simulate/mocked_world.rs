//! The world of a simulated workflow: executors that run its tasks, peers that are mocks, people and signals.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::{Value, json};

use crate::api::error::Error;
use crate::base::compute::BYTES_PER_STEP;
use crate::base::failure::Failure;
use crate::base::from_json::from_json;
use crate::base::time::Millis;
use crate::host::{Attempt, EmittedEvent, Published};
use crate::protocol::caller::Caller;
use crate::protocol::notification::{NotificationOrder, NotificationReport};
use crate::protocol::run::{GateDecision, RunRequest, RunResponse};
use crate::protocol::start::{ParentLink, StartRun};
use crate::protocol::task::{StepProgress, TaskReport};
use crate::run::{ChildReport, GateKind, GateState, GateStatus, RunStatus, TokenId, Write, token_of_key};
use crate::simulate::body::{MockAnswer, PersonDecision};
use crate::simulate::calls::{CallEnd, Place, failure_of, no_mock_for_child};
use crate::simulate::environment::{ConnectionId, Environment};
use crate::simulate::faults::Faults;
use crate::simulate::in_flight::InFlight;
use crate::simulate::limits::{TASKS_BYTES, too_much_work};
use crate::simulate::platform::Durable;
use crate::simulate::queue::post_heartbeat;
use crate::simulate::store::Store;
use crate::simulate::task_runner::{OrderSummary, Peers, Polled, RunningTask};
use crate::simulate::world::World;
use crate::storage::commit::{Commit, FAILED_WAKES, GATE};
use crate::storage::rows::TokenRow;

/// The word for the gate of a run's limit.
pub const TIMEOUT_GATE: &str = "timeout";

/// How long a report is under way at most, and how late an alarm rings: seconds, as they may be in production.
const SLOW_REPORT_MS: u64 = 3_000;
const LATE_ALARM_MS: u64 = 5_000;
const EARLY_ALARM_MS: u64 = 2_000;

/// A run is given up after five wakes in a row that could not be saved, which says nothing about a workflow.
const REFUSED_COMMITS_MAX: u32 = 3;

pub struct MockedWorld {
    pub peers: Rc<Peers>,
    tasks: RefCell<BTreeMap<u64, Work>>,
    /// Of the orders of `tasks`.
    tasks_bytes: Cell<u64>,
    last_task: Cell<u64>,
    people: RefCell<Vec<Option<PersonDecision>>>,
    /// Gates that were seen open, with the number of the decision that is on its way to each.
    gates: RefCell<BTreeMap<(String, String), Option<usize>>>,
    /// How many commits of each run were refused in a row.
    refused: RefCell<BTreeMap<String, u32>>,
    /// The names of signals, in the order of the list.
    signals: Vec<String>,
    /// Nodes that call workflows without a document.
    stand_ins: BTreeSet<String>,
    /// Children that are not simulated, by the id of their run.
    mocked_children: RefCell<BTreeMap<String, ParentLink>>,
    /// Commits that wrote rows.
    pub commits: Cell<u64>,
    /// Of all rows of all runs.
    pub rows_bytes: Cell<u64>,
    /// Computation of decisions.
    pub steps: Cell<u64>,
    /// What must hold for any run and did not.
    pub broken: RefCell<Vec<String>>,
    /// The faults that happened, and when.
    pub history: RefCell<Vec<(Millis, &'static str)>>,
}

/// A task with the way back of its report.
struct Work {
    task: RunningTask,
    order_bytes: u64,
    run: String,
    attempt: Attempt,
    /// None: a consumer of the queue has it.
    connection: Option<ConnectionId>,
    /// The report never comes.
    is_silent: bool,
}

impl MockedWorld {
    pub fn new(
        peers: Peers,
        people: Vec<PersonDecision>,
        signals: Vec<String>,
        stand_ins: BTreeSet<String>,
    ) -> MockedWorld {
        MockedWorld {
            peers: Rc::new(peers),
            tasks: RefCell::default(),
            tasks_bytes: Cell::default(),
            last_task: Cell::default(),
            people: RefCell::new(people.into_iter().map(Some).collect()),
            gates: RefCell::default(),
            refused: RefCell::default(),
            signals,
            stand_ins,
            mocked_children: RefCell::default(),
            commits: Cell::default(),
            rows_bytes: Cell::default(),
            steps: Cell::default(),
            broken: RefCell::default(),
            history: RefCell::default(),
        }
    }

    /// A task begins to work at once.
    fn begin(
        &self,
        store: &Store,
        order: &str,
        summary: &OrderSummary,
        connection: Option<ConnectionId>,
        is_silent: bool,
    ) {
        let order_bytes = order.len() as u64;
        let tasks_bytes = self.tasks_bytes.get() + order_bytes;
        if tasks_bytes > TASKS_BYTES {
            return self.peers.fail(too_much_work());
        }
        self.tasks_bytes.set(tasks_bytes);
        let node_id = node_of(store, summary.attempt.0.0);
        let work = Work {
            task: RunningTask::new(&self.peers, node_id, order.to_string()),
            order_bytes,
            run: summary.run.clone(),
            attempt: summary.attempt,
            connection,
            is_silent,
        };
        self.last_task.set(self.last_task.get() + 1);
        let number = self.last_task.get();
        self.tasks.borrow_mut().insert(number, work);
        self.environment().post(0, InFlight::Scheduled(number));
    }

    /// Attempts that executors began.
    pub fn attempts(&self) -> u64 {
        self.last_task.get()
    }

    /// The moment has come that a task waits for.
    pub fn wake_task(&self, number: u64) {
        let Some(mut work) = self.tasks.borrow_mut().remove(&number) else {
            // It was stopped meanwhile.
            return;
        };
        let environment = self.environment();
        match work.task.poll() {
            Polled::Reported(report) => {
                self.has_ended(&work);
                if !work.is_silent {
                    self.send_report(work, *report);
                }
            }
            Polled::WaitsUntil(at) => {
                let delay = at.saturating_sub(environment.now.get());
                environment.post(delay, InFlight::Scheduled(number));
                self.tasks.borrow_mut().insert(number, work);
            }
            Polled::WaitsForever => {
                self.tasks.borrow_mut().insert(number, work);
            }
        }
    }

    fn send_report(&self, work: Work, report: TaskReport) {
        let environment = self.environment();
        let delay = match self.fault(|faults| faults.slow) {
            true => environment.below(SLOW_REPORT_MS),
            false => environment.delay(400),
        };
        let Work { run, attempt, .. } = work;
        let is_duplicated = self.fault(|faults| faults.duplicated);
        let result = |report: TaskReport| InFlight::Result {
            run: run.clone(),
            attempt,
            request: RunRequest::Report(report),
        };
        if is_duplicated {
            environment.post(delay + environment.below(50_000), result(report.clone()));
        }
        match work.connection {
            Some(connection) => environment.post(delay, InFlight::Report { connection, report }),
            None => environment.post(delay, result(report)),
        }
    }

    /// Stops the tasks that `is_stopped` names.
    fn stop(&self, is_stopped: impl Fn(&Work) -> bool) {
        let mut tasks = self.tasks.borrow_mut();
        let stopped: Vec<u64> = tasks
            .iter()
            .filter(|(_, work)| is_stopped(work))
            .map(|(number, _)| *number)
            .collect();
        for number in stopped {
            if let Some(work) = tasks.remove(&number) {
                self.has_ended(&work);
                work.task.abort(&self.peers);
            }
        }
    }

    fn has_ended(&self, work: &Work) {
        self.tasks_bytes.set(self.tasks_bytes.get() - work.order_bytes);
    }

    /// A person decides at a gate that has opened, if one is to.
    fn gate_opened(&self, run: &str, gate: &GateState) {
        let key = (run.to_string(), gate.id.clone());
        if self.gates.borrow().contains_key(&key) {
            return;
        }
        let name = name_of(gate);
        let mut people = self.people.borrow_mut();
        let number = people
            .iter()
            .position(|person| person.as_ref().is_some_and(|person| person.gate == name));
        self.gates.borrow_mut().insert(key, number);
        let Some(person) = number.and_then(|number| people[number].take()) else {
            return;
        };
        let request = InFlight::Request {
            run: run.to_string(),
            caller: Some(Caller {
                name: person.by,
                ..Caller::default()
            }),
            request: RunRequest::DecideGate {
                gate_id: gate.id.clone(),
                decision: GateDecision {
                    choice: person.choice,
                    input: person.input,
                    comment: None,
                    by: None,
                    at: 0,
                },
            },
            is_repeated: true,
        };
        self.environment().post(person.after_ms, request);
    }

    /// A node that has a mock calls a workflow: the workflow is not simulated.
    fn start_child(&self, parent: &Store, start: &StartRun) -> Option<RunResponse> {
        let link = start.parent.as_ref()?;
        let token = TokenId::parse(&link.token_id)?;
        let created = RunResponse::Created("{}".into());
        // A start may be delivered twice.
        if self.mocked_children.borrow().contains_key(&start.run_id) {
            return Some(created);
        }
        let node_id = node_of(parent, token.0);
        let Some(mock) = self.peers.mocks.take_for_node(&node_id) else {
            // Without a document there is nothing to simulate instead.
            if self.mocks_all_of(&node_id) {
                self.peers.fail(no_mock_for_child(&node_id));
                return Some(created);
            }
            return None;
        };
        let mut children = self.mocked_children.borrow_mut();
        children.insert(start.run_id.clone(), link.clone());
        let place = Place {
            run_id: link.run_id.clone(),
            node_id,
            token_id: link.token_id.clone(),
            epoch: link.epoch,
        };
        let now = self.environment().now.get();
        let more = json!({"child_run_id": start.run_id, "request": start.input});
        let calls = &self.peers.calls;
        let number = calls.begin(now, &place, "workflow", more);
        let (status, output, error) = match &mock.answer {
            MockAnswer::Hang => return Some(created),
            MockAnswer::Result(result) => (RunStatus::Completed, Some(result.clone()), None),
            MockAnswer::Fail {
                class, code, message, ..
            } => {
                let failure = failure_of(*class, code.as_deref(), message.as_deref(), None);
                (RunStatus::Failed, None, Some(failure))
            }
        };
        let end = error.as_ref().map(|error| CallEnd::Failed(error.class));
        let ended_at = now.saturating_add(mock.after_ms);
        calls.end(number, ended_at, end.unwrap_or(CallEnd::Result));
        self.child_ended(&start.run_id, link, mock.after_ms, status, output, error);
        Some(created)
    }

    /// Whether the workflow that a node calls has no document, because mocks answer for it.
    fn mocks_all_of(&self, node: &str) -> bool {
        self.stand_ins.contains(node)
    }

    fn child_ended(
        &self,
        run_id: &str,
        link: &ParentLink,
        after_ms: u64,
        status: RunStatus,
        output: Option<Value>,
        error: Option<Failure>,
    ) {
        let report = ChildReport {
            token_id: link.token_id.clone(),
            epoch: link.epoch,
            run_id: run_id.to_string(),
            status,
            output,
            error,
        };
        let request = InFlight::Request {
            run: link.run_id.clone(),
            caller: None,
            request: RunRequest::ChildEnded(report),
            is_repeated: true,
        };
        self.environment().post(after_ms, request);
    }
}

/// How decisions name a gate.
pub fn name_of(gate: &GateState) -> &str {
    match gate.kind {
        GateKind::WorkflowTimeout => TIMEOUT_GATE,
        GateKind::Node | GateKind::Escalation => gate.node_id.as_deref().unwrap_or_default(),
    }
}

/// The node of a token.
fn node_of(store: &Store, token: u64) -> String {
    let row = store.tokens.get(&token);
    let row = row.and_then(|(_, row)| from_json::<TokenRow>(row).ok());
    row.map(|row| row.node_id).unwrap_or_default()
}

impl World for MockedWorld {
    fn environment(&self) -> &Environment {
        &self.peers.environment
    }

    fn orders_arrived(&self, store: &Store, connection: &ConnectionId, orders: &str) {
        for order in orders.split('\n') {
            let Some(summary) = OrderSummary::read(order) else {
                continue;
            };
            let environment = self.environment();
            let closed = || InFlight::ConnectionClosed {
                connection: connection.clone(),
            };
            if self.fault(|faults| faults.frozen) {
                let mut connections = environment.connections.borrow_mut();
                if let Some(state) = connections.get_mut(connection) {
                    state.frozen_since.get_or_insert(environment.now.get());
                }
                continue;
            }
            let is_silent = self.fault(|faults| faults.never_answered);
            // Without a limit the run would rightly wait forever: there the connection breaks some day.
            if is_silent && summary.deadline_at.is_none() {
                environment.post(600_000, closed());
            }
            if !is_silent && self.fault(|faults| faults.lost) {
                environment.post(environment.below(2_000), closed());
            }
            self.begin(store, order, &summary, Some(connection.clone()), is_silent);
        }
    }

    fn connection_closed(&self, connection: &ConnectionId) {
        self.stop(|work| work.connection.as_ref() == Some(connection));
    }

    fn object_left(&self, run: &str) {
        self.stop(|work| work.connection.is_some() && work.run == run);
    }

    fn order_claimed(&self, store: &Store, order: &str) {
        let Some(summary) = OrderSummary::read(order) else {
            return;
        };
        if self.fault(|faults| faults.consumer_stops) {
            return;
        }
        let environment = self.environment();
        if self.fault(|faults| faults.lost) {
            let lost = RunRequest::ReportLost {
                token_id: summary.attempt.0.to_string(),
                epoch: summary.attempt.1,
                message: "reset".into(),
            };
            let result = InFlight::Result {
                run: summary.run,
                attempt: summary.attempt,
                request: lost,
            };
            return environment.post(environment.below(2_000), result);
        }
        if !self.fault(|faults| faults.no_heartbeats) {
            post_heartbeat(
                environment,
                &summary.run,
                summary.attempt,
                u64::MAX,
                summary.run_ends_at,
            );
        }
        self.begin(store, order, &summary, None, false);
    }

    fn progress_of(&self, run: &str, attempt: Attempt) -> Option<Option<StepProgress>> {
        let tasks = self.tasks.borrow();
        let works = |work: &Work| work.connection.is_none() && work.run == run && work.attempt == attempt;
        tasks.values().any(works).then_some(None)
    }

    fn claim_ended(&self, run: &str, attempt: Attempt) {
        self.stop(|work| work.connection.is_none() && work.run == run && work.attempt == attempt);
    }

    /// The workflows that the event would trigger are not simulated.
    fn publish(&self, event: &EmittedEvent) -> Published {
        let token = token_of_key(&event.key);
        let run_id = event.key.split('/').next().unwrap_or_default();
        let place = Place {
            run_id: run_id.to_string(),
            node_id: String::new(),
            token_id: token.map(|token| token.to_string()).unwrap_or_default(),
            epoch: 0,
        };
        let now = self.environment().now.get();
        let more = json!({"event": event.name, "key": event.key, "request": event.payload});
        let number = self.peers.calls.begin(now, &place, "emit_event", more);
        self.peers.calls.end(number, now, CallEnd::Result);
        Published {
            unfinished_after: None,
            refused: Vec::new(),
        }
    }

    fn receive(&self, _order: &NotificationOrder) -> Option<NotificationReport> {
        Some(NotificationReport::Delivered)
    }

    fn answer(&self, sender: &Store, run_id: &str, request: &RunRequest) -> Option<RunResponse> {
        if let RunRequest::Start { command, .. } = request {
            return self.start_child(sender, command);
        }
        let link = self.mocked_children.borrow().get(run_id).cloned()?;
        if let RunRequest::CancelChild { .. } = request {
            self.child_ended(run_id, &link, 0, RunStatus::Cancelled, None, None);
        }
        Some(RunResponse::Done("{}".into()))
    }

    /// A conflict means that the gate closed before the decision came.
    fn answered(&self, run: &str, request: &RunRequest, response: &RunResponse) {
        let (what, place, body) = match (request, response) {
            (RunRequest::DecideGate { gate_id, .. }, RunResponse::Refused { body, .. }) => {
                let gates = self.gates.borrow();
                let number = gates.get(&(run.to_string(), gate_id.clone())).copied().flatten();
                let what = format!("a decision of \"people\" for gate \"{gate_id}\" of {run}");
                (what, number.map(|number| format!("/people/{number}")), body)
            }
            (RunRequest::Signal { name, .. }, RunResponse::Refused { body, .. }) => {
                let number = self.signals.iter().position(|signal| signal == name);
                let what = format!("the signal \"{name}\"");
                (what, number.map(|number| format!("/signals/{number}")), body)
            }
            _accepted_or_late => return,
        };
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        let why = body["error"]["message"].as_str().unwrap_or("it was refused");
        let message = format!("{what} was refused: {why}");
        self.peers.fail(match place {
            Some(pointer) => Error::invalid_request(&pointer, message),
            None => Error::new(422, "invalid_request", message),
        });
    }

    fn broken(&self, run: &str, what: String) {
        self.broken.borrow_mut().push(format!("{run}: {what}"));
    }

    fn fault(&self, odds: fn(&Faults) -> u64) -> bool {
        let happens = self.environment().fault(odds);
        if happens {
            let name = Faults::NAMES[odds(&Faults::NUMBERS) as usize];
            let now = self.environment().now.get();
            self.history.borrow_mut().push((now, name));
        }
        happens
    }

    fn committed(&self, run: &str, durable: &Durable, commit: &Commit, _writes: &[Write]) {
        if *commit != Commit::default() {
            self.commits.set(self.commits.get() + 1);
            let rows = commit.run.iter().map(|(_, row)| row);
            let written = rows.chain(commit.tokens.iter().map(|(_, _, row)| row));
            let written: usize = written.map(String::len).sum();
            self.computed(written as u64 / BYTES_PER_STEP);
            let bytes = durable.store.borrow().bytes;
            let before = durable.counted_bytes.replace(bytes);
            self.rows_bytes.set(self.rows_bytes.get() + bytes - before);
        }
        for (key, row) in &commit.run {
            if key.starts_with(GATE)
                && let Ok(gate) = from_json::<GateState>(row)
                && gate.status == GateStatus::Open
            {
                self.gate_opened(run, &gate);
            }
        }
    }

    fn alarm_rings_at(&self, at: Millis) -> Millis {
        let environment = self.environment();
        if self.fault(|faults| faults.late_alarm) {
            return at.saturating_add(1 + environment.below(LATE_ALARM_MS));
        }
        match self.fault(|faults| faults.early_alarm) {
            true => at.saturating_sub(1 + environment.below(EARLY_ALARM_MS)),
            false => at,
        }
    }

    fn refuses_commit(&self, run: &str, store: &Store) -> bool {
        let row = store.run.get(FAILED_WAKES);
        let failed = row.and_then(|row| row.parse::<u32>().ok()).unwrap_or(0);
        let mut refused = self.refused.borrow_mut();
        let in_a_row = refused.entry(run.to_string()).or_default();
        let may_refuse = failed.max(*in_a_row) < REFUSED_COMMITS_MAX;
        let is_refused = may_refuse && self.fault(|faults| faults.commit_fails);
        *in_a_row = if is_refused { *in_a_row + 1 } else { 0 };
        is_refused
    }

    fn computed(&self, steps: u64) {
        self.steps.set(self.steps.get().saturating_add(steps));
    }
}
