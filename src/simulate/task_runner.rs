//! Runs the tasks of orders as an executor does (`task::run_task`), in virtual time. A task is a future that is polled when the
//! moment has come that it waits for. Its calls are answered by mocks.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use serde_json::{Value, json};

use crate::api::error::Error;
use crate::base::compute::Meter;
use crate::base::failure::Failure;
use crate::base::from_json::from_json;
use crate::base::time::Millis;
use crate::breaker::machine::{Breaker, BreakerEvent, CallOutcome, Settings as BreakerSettings};
use crate::definition::action::Action;
use crate::definition::step::StepAction;
use crate::definition::task::Task;
use crate::host::Attempt;
use crate::protocol::breaker::AdmissionResponse;
use crate::protocol::run::RunRequest;
use crate::protocol::task::{RetryReport, TaskOrder, TaskReport};
use crate::run::TokenId;
use crate::simulate::body::{Mock, MockAnswer};
use crate::simulate::calls::{
    CallEnd, CallLog, Mocks, Place, checked_result, ends_at, failure_of, kind_name, no_mock, request_of,
};
use crate::simulate::environment::Environment;
use crate::simulate::in_flight::InFlight;
use crate::task::breaker::{Admission, AdmissionCache, Permit};
use crate::task::run_task::{Assignment, run_task};
use crate::task::runtime::{ActionCall, Runtime, Stopped};
use crate::task::secrets::SecretStore;
use crate::task::task_cache::TaskCache;
use crate::task::task_result::TaskResult;
use crate::task::trace::TaskTrace;

/// What all tasks of a simulation share.
pub struct Peers {
    pub environment: Environment,
    pub mocks: Mocks,
    pub calls: CallLog,
    pub breaker_settings: BreakerSettings,
    pub breakers: RefCell<BTreeMap<String, Breaker>>,
    pub admissions: RefCell<AdmissionCache>,
    pub tasks: RefCell<TaskCache>,
    /// Why the simulation cannot go on.
    pub error: RefCell<Option<Error>>,
    /// Computation of tasks.
    pub steps: Cell<u64>,
}

impl Peers {
    pub fn fail(&self, error: Error) {
        self.error.borrow_mut().get_or_insert(error);
    }

    fn now(&self) -> Millis {
        self.environment.now.get()
    }
}

/// A task under way.
pub struct RunningTask {
    future: Pin<Box<dyn Future<Output = TaskReport>>>,
    state: Rc<TaskState>,
}

/// What a task tells the simulator while it waits.
struct TaskState {
    /// None: forever.
    wakes_at: Cell<Option<Millis>>,
    /// The number of the call under way.
    call: Cell<Option<usize>>,
}

/// What became of a task when it was polled.
pub enum Polled {
    Reported(Box<TaskReport>),
    WaitsUntil(Millis),
    /// A call hangs that has no deadline.
    WaitsForever,
}

/// What the simulator reads of an order.
pub struct OrderSummary {
    pub run: String,
    pub attempt: Attempt,
    pub deadline_at: Option<Millis>,
    pub run_ends_at: Option<Millis>,
}

impl OrderSummary {
    /// None for a text that is no order: nothing of the simulator sends one.
    pub fn read(text: &str) -> Option<OrderSummary> {
        let order: TaskOrder = from_json(text).ok()?;
        Some(OrderSummary {
            run: order.run_id.to_string(),
            attempt: (TokenId::parse(order.token_id)?, order.epoch),
            deadline_at: order.deadline_at,
            run_ends_at: order.run_ends_at,
        })
    }
}

impl RunningTask {
    pub fn new(peers: &Rc<Peers>, node_id: String, order: String) -> RunningTask {
        let state = Rc::new(TaskState {
            wakes_at: Cell::new(None),
            call: Cell::new(None),
        });
        let runtime_state = Rc::clone(&state);
        let peers = Rc::clone(peers);
        let future = async move {
            let order: TaskOrder = match from_json(&order) {
                Ok(order) => order,
                Err(error) => {
                    let failure = Failure::permanent("invalid_order", error.to_string());
                    return TaskResult::failed(failure).into_report(String::new(), 0);
                }
            };
            let result = match parse(&peers, &order) {
                Ok((task, input)) => {
                    let runtime = MockedRuntime {
                        place: Place {
                            run_id: order.run_id.to_string(),
                            node_id,
                            token_id: order.token_id.to_string(),
                            epoch: order.epoch,
                        },
                        secrets: secrets_of(&task),
                        key: order.idempotency_key,
                        meter: Meter::default(),
                        state: runtime_state,
                        peers: &peers,
                    };
                    let assignment = Assignment {
                        task: &task,
                        input: &input,
                        deadline_at: order.deadline_at,
                        run_ends_at: order.run_ends_at,
                        resume_from: order.checkpoint(),
                        trace: TaskTrace::of(&order),
                        callback: order.callback_url.map_or(Value::Null, |url| json!({"url": url})),
                        action_timeouts: order.action_timeouts.unwrap_or_default(),
                    };
                    let result = run_task(&runtime, assignment).await;
                    runtime.count_steps();
                    result
                }
                Err(message) => TaskResult::failed(Failure::permanent("invalid_order", message)),
            };
            result.into_report(order.token_id.to_string(), order.epoch)
        };
        RunningTask {
            future: Box::pin(future),
            state,
        }
    }

    pub fn poll(&mut self) -> Polled {
        let mut context = Context::from_waker(Waker::noop());
        self.state.wakes_at.set(None);
        match self.future.as_mut().poll(&mut context) {
            Poll::Ready(report) => Polled::Reported(Box::new(report)),
            Poll::Pending => match self.state.wakes_at.get() {
                Some(at) => Polled::WaitsUntil(at),
                None => Polled::WaitsForever,
            },
        }
    }

    /// The executor was stopped.
    pub fn abort(self, peers: &Peers) {
        if let Some(call) = self.state.call.get() {
            peers.calls.end(call, peers.now(), CallEnd::Aborted);
        }
    }
}

fn parse(peers: &Peers, order: &TaskOrder) -> Result<(Rc<Task>, Value), String> {
    let task = peers.tasks.borrow_mut().task(order.task.get())?;
    let input = serde_json::from_str(order.input.get());
    Ok((task, input.map_err(|error| error.to_string())?))
}

/// Every secret that the task names has a value, which is redacted wherever it appears.
fn secrets_of(task: &Task) -> SecretStore {
    let actions = task.steps.iter().filter_map(|step| match &step.action {
        StepAction::Inline(action) => Some(action),
        StepAction::Reference { .. } => None,
    });
    let names: Vec<&str> = actions
        .flat_map(|action| &action.secrets)
        .map(String::as_str)
        .collect();
    SecretStore::new(&names.join(","), |name| Some(format!("simulated secret {name}")))
}

/// The executor of one task.
struct MockedRuntime<'a> {
    place: Place,
    secrets: SecretStore,
    key: &'a str,
    meter: Meter,
    state: Rc<TaskState>,
    peers: &'a Peers,
}

impl MockedRuntime<'_> {
    /// Until the moment, or forever.
    async fn wait(&self, until: Option<Millis>) {
        poll_fn(|_| match until {
            Some(at) if at <= self.peers.now() => Poll::Ready(()),
            Some(_) | None => {
                self.state.wakes_at.set(until);
                Poll::Pending
            }
        })
        .await;
    }

    fn count_steps(&self) {
        let steps = self.meter.spent();
        self.peers.steps.set(self.peers.steps.get().saturating_add(steps));
    }

    fn name_of(action: &Action) -> Option<&str> {
        Some(action.id.as_str()).filter(|id| !id.is_empty())
    }

    /// The request of an async action was accepted. Its result comes by the callback.
    fn call_back(&self, callback_url: &str, mock: &Mock) {
        let body = match &mock.answer {
            MockAnswer::Hang => return,
            MockAnswer::Result(result) => json!({"output": result}),
            MockAnswer::Fail {
                class, code, message, ..
            } => {
                let failure = failure_of(*class, code.as_deref(), message.as_deref(), None);
                json!({"error": {"code": failure.code, "message": failure.message}})
            }
        };
        let (_, capability) = callback_url.rsplit_once('/').unwrap_or_default();
        let Some(token) = TokenId::parse(&self.place.token_id) else {
            return;
        };
        let callback = InFlight::Result {
            run: self.place.run_id.clone(),
            attempt: (token, self.place.epoch),
            request: RunRequest::Callback {
                capability: capability.to_string(),
                body,
            },
        };
        // After the report that the request was accepted.
        self.peers.environment.post(mock.after_ms.max(1), callback);
    }

    async fn answered(&self, call: &ActionCall<'_>, mock: &Mock) -> Result<Value, Stopped> {
        if let Some(callback_url) = call.callback_url {
            self.call_back(callback_url, mock);
            return Ok(json!({"status": 202, "headers": {}, "body": null}));
        }
        let (ends_at, is_answered) = ends_at(mock, self.now(), call.deadline_at);
        self.wait(ends_at).await;
        if !is_answered {
            let partial = mock.partial.clone();
            return Err(Stopped::Deadline { partial });
        }
        match &mock.answer {
            MockAnswer::Result(result) => match checked_result(call, result, self.now()) {
                Ok(checked) => Ok(checked.map(|()| result.clone())?),
                Err(message) => {
                    let pointer = format!("/mocks/{}/result", mock.number);
                    self.peers.fail(Error::invalid_request(&pointer, message));
                    self.wait(None).await;
                    Err(Stopped::Deadline { partial: None })
                }
            },
            MockAnswer::Fail {
                class,
                code,
                message,
                retry_after_ms,
            } => {
                let failure = failure_of(*class, code.as_deref(), message.as_deref(), *retry_after_ms);
                Err(match &mock.partial {
                    Some(partial) => Stopped::FailedMidway {
                        failure,
                        partial: partial.clone(),
                    },
                    None => Stopped::Failed(failure),
                })
            }
            MockAnswer::Hang => Err(Stopped::Deadline { partial: None }),
        }
    }
}

impl Runtime for MockedRuntime<'_> {
    fn now(&self) -> Millis {
        self.peers.now()
    }

    async fn sleep(&self, millis: u64) {
        self.wait(Some(self.now().saturating_add(millis))).await;
    }

    async fn perform(&self, call: ActionCall<'_>) -> Result<Value, Stopped> {
        let key = call.idempotency_key(self.key);
        let request = request_of(&call, &key, self.now())?;
        let name = Self::name_of(call.action);
        let mock = self
            .peers
            .mocks
            .take(&self.place.node_id, name, Some(call.step_ref));
        let Some(mock) = mock else {
            self.peers.fail(no_mock(&self.place, call.action, call.step_ref));
            // The simulation ends with that error.
            self.wait(None).await;
            return Err(Stopped::Deadline { partial: None });
        };
        let more = json!({"step": call.step_ref, "action": name, "idempotency_key": key, "request": request});
        let kind = kind_name(&call.action.kind);
        let number = self.peers.calls.begin(self.now(), &self.place, kind, more);
        self.state.call.set(Some(number));
        let result = self.answered(&call, mock).await;
        self.state.call.set(None);
        let end = match &result {
            Ok(_) => CallEnd::Result,
            Err(Stopped::Failed(failure) | Stopped::FailedMidway { failure, .. }) => {
                CallEnd::Failed(failure.class)
            }
            Err(Stopped::Deadline { .. }) => CallEnd::TimedOut,
        };
        self.peers.calls.end(number, self.now(), end);
        result
    }

    fn random(&self) -> f64 {
        const BITS: u64 = 1 << 53;
        self.peers.environment.below(BITS) as f64 / BITS as f64
    }

    fn secrets(&self) -> &SecretStore {
        &self.secrets
    }

    fn note_retry(&self, _step_ref: &str, _retry: &RetryReport) {}

    /// An executor has no meter. Each computation gets a whole unit, so that none fails here that would not fail there; the sum
    /// bounds the simulation.
    fn meter(&self) -> Option<&Meter> {
        self.meter.begin_unit();
        Some(&self.meter)
    }

    async fn admit(&self, key: &str, deadline_at: Option<Millis>) -> Admission {
        if self.peers.admissions.borrow().is_healthy(key, self.now()) {
            return Admission::Call(Permit::Healthy);
        }
        self.ask_breaker(key, BreakerEvent::AdmissionRequested { deadline_at })
            .into()
    }

    async fn report_to_breaker(&self, key: &str, permit: Permit, outcome: CallOutcome) {
        let must_report = self
            .peers
            .admissions
            .borrow_mut()
            .must_report(key, permit, outcome);
        if must_report {
            let trial = match permit {
                Permit::Trial(number) => Some(number),
                Permit::Healthy | Permit::Watched | Permit::Blind => None,
            };
            self.ask_breaker(key, BreakerEvent::CallEnded { outcome, trial });
        }
    }
}

impl MockedRuntime<'_> {
    fn ask_breaker(&self, key: &str, event: BreakerEvent) -> AdmissionResponse {
        let mut breakers = self.peers.breakers.borrow_mut();
        let breaker = breakers.entry(key.to_string()).or_default();
        let (decision, _) = breaker.handle(self.now(), &self.peers.breaker_settings, event);
        let response = AdmissionResponse::from(decision);
        let mut admissions = self.peers.admissions.borrow_mut();
        admissions.store(key, response, self.now());
        response
    }
}
