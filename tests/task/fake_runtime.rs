//! A fake runtime for one task: its clock only advances when something takes time, and its peer has a list of responses, each
//! for the step that gets it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use curfew::base::failure::{Failure, FailureClass};
use curfew::base::time::Millis;
use curfew::breaker::machine::CallOutcome;
use curfew::definition::action::ActionKind;
use curfew::protocol::task::{RetryReport, StepProgress, TaskOrder};
use curfew::task::breaker::{Admission, Permit};
use curfew::task::progress::ProgressCell;
use curfew::task::run_task::{Assignment, run_task};
use curfew::task::runtime::{ActionCall, Runtime, Stopped};
use curfew::task::secrets::SecretStore;
use curfew::task::task_cache::TaskCache;
use curfew::task::task_result::TaskResult;
use curfew::task::trace::TaskTrace;
use serde_json::{Value, json};

pub const START: Millis = 1_000;

/// How the peer responds to one call.
#[derive(Clone, Debug)]
pub enum PeerResponse {
    Result(Value),
    /// A failure that is not retried.
    Failure(&'static str),
    /// A failure of this class, with the seconds of its `Retry-After`.
    Fails(FailureClass, Option<u64>),
    /// Like `Fails`, with a message.
    Says(FailureClass, String),
    /// Breaks off after this text.
    BreaksOff(&'static str),
    /// Responds with the result after this time.
    After(u64, Value),
    /// Never ends; this text arrives at once.
    Endless(String),
}

#[derive(Default)]
pub struct FakeRuntime {
    clock: Cell<Millis>,
    answers: RefCell<VecDeque<(String, PeerResponse)>>,
    /// The result of every call of `random`.
    pub random: f64,
    pub secrets: SecretStore,
    /// The responses of breakers, in order.
    pub admissions: RefCell<VecDeque<Admission>>,
    /// What happened, in order: `call a {...}`, `sleep 100`.
    pub trace: RefCell<Vec<String>>,
    /// The idempotency key of each call.
    pub keys: RefCell<Vec<String>>,
    /// Where the task writes its progress, if it is sent.
    pub progress: Option<ProgressCell>,
    /// What was sent of it: when a call began, and when its text had arrived.
    pub sent: RefCell<Vec<StepProgress>>,
}

impl FakeRuntime {
    pub fn new(answers: &[(&str, PeerResponse)]) -> FakeRuntime {
        let answers = answers.iter();
        FakeRuntime {
            clock: Cell::new(START),
            answers: RefCell::new(
                answers
                    .map(|(step, answer)| (step.to_string(), answer.clone()))
                    .collect(),
            ),
            random: 0.0,
            secrets: SecretStore::default(),
            admissions: RefCell::default(),
            trace: RefCell::default(),
            keys: RefCell::default(),
            progress: None,
            sent: RefCell::default(),
        }
    }

    /// The sender of heartbeats sends the progress now, after this text has arrived.
    fn send_progress(&self, arrived: &str) {
        if let Some(progress) = &self.progress {
            progress.streamed(arrived);
            let change = progress.take_change(self.secrets.redactor());
            self.sent.borrow_mut().extend(change);
        }
    }

    pub fn order(&self, task: Value, more: Value) -> TaskRun {
        order_in(self, task, more)
    }

    fn pass(&self, millis: u64) {
        self.clock.set(self.clock.get() + millis);
    }
}

impl Runtime for FakeRuntime {
    fn now(&self) -> Millis {
        self.clock.get()
    }

    async fn sleep(&self, millis: u64) {
        self.trace.borrow_mut().push(format!("sleep {millis}"));
        self.pass(millis);
    }

    async fn perform(&self, call: ActionCall<'_>) -> Result<Value, Stopped> {
        self.keys.borrow_mut().push(call.idempotency_key("work"));
        let by = call.deadline_at.map(|at| format!(" by {at}")).unwrap_or_default();
        let body = match &call.action.kind {
            ActionKind::ServiceCall(service) => service.body.as_ref().map_or(Value::Null, |body| {
                body.render(call.scope).expect("the body renders")
            }),
            ActionKind::LlmCall(_) => Value::Null,
            other => panic!("{other:?} is not a call of the fake runtime"),
        };
        let input = call.input;
        let body = if body.is_null() {
            String::new()
        } else {
            format!(" {body}")
        };
        self.trace
            .borrow_mut()
            .push(format!("call {} {input}{body}{by}", call.step_ref));
        let (step, answer) = self.answers.borrow_mut().pop_front().expect("an answer is left");
        assert_eq!(step, call.step_ref, "the answer is for another step");
        self.send_progress("");
        if let PeerResponse::BreaksOff(arrived) = &answer {
            self.send_progress(arrived);
        } else if let PeerResponse::Endless(arrived) = &answer {
            self.send_progress(arrived);
        }
        match answer {
            PeerResponse::Result(result) => Ok(result),
            PeerResponse::Failure(message) => {
                Err(Failure::new("peer_failed", FailureClass::BadRequest, message).into())
            }
            PeerResponse::Fails(class, retry_after) => {
                let mut failure = Failure::new("peer_failed", class, "no luck");
                failure.retry_after_ms = retry_after.map(|seconds| seconds * 1_000);
                Err(failure.into())
            }
            PeerResponse::Says(class, message) => Err(Failure::new("peer_failed", class, message).into()),
            PeerResponse::BreaksOff(arrived) => Err(Stopped::FailedMidway {
                failure: Failure::new("peer_failed", FailureClass::Network, "it broke off"),
                partial: arrived.into(),
            }),
            PeerResponse::Endless(arrived) => {
                let deadline_at = call.deadline_at.expect("without a deadline this would never end");
                self.clock.set(deadline_at);
                Err(Stopped::Deadline {
                    partial: Some(arrived),
                })
            }
            PeerResponse::After(millis, result) => {
                let left = call.deadline_at.map(|at| at.saturating_sub(self.now()));
                match left.filter(|left| *left <= millis) {
                    Some(left) => {
                        self.pass(left);
                        Err(Stopped::Deadline { partial: None })
                    }
                    None => {
                        self.pass(millis);
                        Ok(result)
                    }
                }
            }
        }
    }

    fn random(&self) -> f64 {
        self.random
    }

    fn secrets(&self) -> &SecretStore {
        &self.secrets
    }

    fn progress(&self) -> Option<&ProgressCell> {
        self.progress.as_ref()
    }

    async fn admit(&self, key: &str, deadline_at: Option<Millis>) -> Admission {
        let by = deadline_at.map(|at| format!(" by {at}")).unwrap_or_default();
        self.trace.borrow_mut().push(format!("admit {key}{by}"));
        self.admissions
            .borrow_mut()
            .pop_front()
            .expect("the breaker has an answer")
    }

    async fn report_to_breaker(&self, key: &str, permit: Permit, outcome: CallOutcome) {
        self.trace
            .borrow_mut()
            .push(format!("report {key} {permit:?} {outcome:?}"));
    }

    fn note_retry(&self, step_ref: &str, retry: &RetryReport) {
        let class = json!(retry.class);
        self.trace.borrow_mut().push(format!(
            "retry {step_ref} {} {}",
            class.as_str().unwrap_or_default(),
            retry.code
        ));
    }
}

/// The secrets of an executor whose variable is `setting`.
pub fn secrets(setting: &str, values: &[(&str, &str)]) -> SecretStore {
    SecretStore::new(setting, |name| {
        let found = values.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.to_string())
    })
}

/// Nothing here waits, so that every future is ready when it is polled.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the fake runtime never waits"),
    }
}

/// A step that calls the peer.
pub fn call(reference: &str) -> Value {
    json!({"ref": reference, "action": {"kind": "service_call", "implementation": {"binding": "PEER"}}})
}

pub fn set(reference: &str, values: Value) -> Value {
    json!({"ref": reference, "action": {"kind": "update_context", "implementation": {"set": values}}})
}

/// `value` with the fields of `more`.
pub fn with(mut value: Value, more: Value) -> Value {
    for (key, field) in more.as_object().into_iter().flatten() {
        value[key] = field.clone();
    }
    value
}

/// The calls of a task, and its result.
pub struct TaskRun {
    calls: Vec<String>,
    pub result: TaskResult,
}

impl TaskRun {
    /// The calls, each step, the end.
    pub fn trace(&self) -> String {
        let lines = self.calls.iter().cloned().chain(render(&self.result));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The artifacts and the checkpoint of a task that did not complete.
    pub fn left(&self) -> String {
        let artifacts = self.result.partial.iter().map(|artifact| {
            let whole = if artifact.complete { "complete" } else { "partial" };
            format!(
                "{whole} {} {} bytes: {}",
                artifact.name, artifact.bytes, artifact.text
            )
        });
        let checkpoint = self.result.checkpoint.iter().map(|checkpoint| {
            let steps: Vec<_> = checkpoint.steps.iter().map(|step| &*step.reference).collect();
            format!(
                "after {} go on with {}: state {} output {} written {} last {}",
                steps.join(","),
                checkpoint.next,
                checkpoint.state,
                checkpoint.output,
                checkpoint.wrote_output,
                checkpoint.last_result
            )
        });
        artifacts.chain(checkpoint).collect::<Vec<_>>().join("\n")
    }

    /// The checkpoint as the coordinator sends it to the next attempt.
    #[track_caller]
    pub fn checkpoint(&self) -> Value {
        json!(self.result.checkpoint.as_ref().expect("there is a checkpoint"))
    }
}

/// Runs a task as the executor does; `more` are fields of the order.
pub fn order(task: Value, more: Value, answers: &[(&str, PeerResponse)]) -> TaskRun {
    FakeRuntime::new(answers).order(task, more)
}

fn order_in(runtime: &FakeRuntime, task: Value, more: Value) -> TaskRun {
    let order = json!({
        "run_id": "r", "token_id": "t1", "epoch": 1, "task": with(json!({"id": "task"}), task), "input": {"n": 1},
        "idempotency_key": "r:t1",
    });
    let text = with(order, more).to_string();
    let order: TaskOrder = serde_json::from_str(&text).expect("the order can be read");
    let task = TaskCache::default()
        .task(order.task.get())
        .expect("the task can be read");
    let input = serde_json::from_str(order.input.get()).expect("the input can be read");
    let assignment = Assignment {
        callback: order.callback_url.map_or(Value::Null, |url| json!({"url": url})),
        task: &task,
        input: &input,
        deadline_at: order.deadline_at,
        run_ends_at: order.run_ends_at,
        resume_from: order.checkpoint(),
        trace: TaskTrace::of(&order),
        action_timeouts: order.action_timeouts.unwrap_or_default(),
    };
    let result = block_on(run_task(runtime, assignment));
    assert!(runtime.answers.borrow().is_empty(), "a response was not used");
    TaskRun {
        calls: runtime.trace.take(),
        result,
    }
}

/// Runs a task and returns its calls, each step and the end.
pub fn trace_of(task: Value, deadline_at: Option<Millis>, answers: &[(&str, PeerResponse)]) -> String {
    order(task, json!({"deadline_at": deadline_at}), answers).trace()
}

fn render(result: &TaskResult) -> Vec<String> {
    let steps = result.steps.iter().map(|step| {
        let status = json!(step.status);
        format!(
            "step {} {} x{} {} ms",
            step.reference,
            status.as_str().unwrap_or_default(),
            step.attempts,
            step.duration_ms
        )
    });
    let status = json!(result.status);
    let mut end = status.as_str().unwrap_or_default().to_string();
    if let Some(output) = &result.output {
        end += &format!(" {output}");
    }
    if let Some(failure) = &result.error {
        let class = json!(failure.class);
        let step = failure.step_ref.as_deref().unwrap_or("-");
        end += &format!(
            " {}/{} at {step}: {}",
            failure.code,
            class.as_str().unwrap_or_default(),
            failure.message
        );
    }
    steps.chain([end]).collect()
}

#[track_caller]
pub fn check(trace: &str, expected: &str) {
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(str::to_string).collect()
    };
    let (found, expected) = (lines(trace), lines(expected));
    assert!(
        found == expected,
        "expected\n    {}\nfound\n    {}\n",
        expected.join("\n    "),
        found.join("\n    ")
    );
}
